"""While: a loop that runs while a condition holds, and its reverse mode.

The number of steps is known only at run time, so values stacked over the steps have no static type.
A While therefore holds several loops with the same number of steps, the first of which has the
condition. A loop may produce stacks, which later loops read forwards or backwards; stacks live
inside the primitive and are never its results. Reverse mode adds for every loop, the last one
first, a loop in the opposite direction; so derivatives of any order are again a While.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.errors import ShapeError
from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.interpret import program_of
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.higher_order.control.scan import (
    body_jvp,
    body_vjp,
    invariant,
    invariant_equations,
    not_none,
    zeros,
)
from lucid.ops.higher_order.control.subgraphs import (
    Writer,
    copy_aliased,
    count_loop_work,
    differentiable,
    estimated_work,
    loop_program,
)
from lucid.ops.higher_order.control.while_chain import Loop, LoopChain, Value, with_references
from lucid.tape.bind import bind
from lucid.tape.node import wrap


class While(Primitive):
    """Values are numbered: the operands, then the final carries of each loop; stacks likewise.

    cond       (tests, carries of the first loop) -> bool
    tests      which values the condition reads besides the carries
    loops      see `Loop`
    results    which values are the results
    """

    cond: Graph
    tests: tuple[int, ...]
    loops: tuple[tuple[Any, ...], ...]
    results: tuple[int, ...]
    lowering = "lucid.compiler.lowering.loops.control_flow:WhileLowering"
    control_flow = True
    operand_layout = "dense"

    def body_operands(self, xs: Sequence[Any]) -> list[tuple[Graph, list[Any]]]:
        values = dict(enumerate(xs))
        found = [(self.cond, [values.get(v) for v in self.tests])]
        for body, _, consts, *_ in self.loops:
            found.append((body, [values.get(v) for v in consts]))
        return found

    def infer(self, *xs: Type) -> tuple[Type, ...]:
        values, stacks = list(xs), list[Type]()
        for i, loop in enumerate(Loop(*numbers) for numbers in self.loops):
            carries = [values[init[0]] for init in loop.inits]
            given = [values[v] for v in loop.consts] + carries + [stacks[s] for s in loop.stacks]
            if loop.body.in_types != tuple(given):
                raise ShapeError(f"while: the body takes {loop.body.in_types}, not {given}")
            n = loop.n_carry
            if loop.body.out_types[:n] != tuple(carries):
                facts = f"from {carries} to {loop.body.out_types[:n]}"
                raise ShapeError(f"while: the body changes the types of carries {facts}")
            if i == 0:
                asked = (*[values[v] for v in self.tests], *carries)
                if self.cond.in_types != asked or self.cond.out_types != (Type.parse("bool[]"),):
                    facts = f"takes {self.cond.in_types} and returns {self.cond.out_types}"
                    raise ShapeError(f"while: the condition {facts}; it gets {asked}")
            values += carries
            stacks += loop.body.out_types[n:]
        return tuple([values[v] for v in self.results])

    def eval(self, *operands: np.ndarray) -> tuple[Any, ...]:
        native = loop_program(self)
        if native is not None:
            return tuple(native(operands))
        values: list[np.ndarray] = list(operands)
        stacks: list[list[np.ndarray]] = []
        steps = 0
        test = program_of(self.cond)
        tests = [values[v] for v in self.tests]
        for number, loop in enumerate(Loop(*numbers) for numbers in self.loops):
            run, n = program_of(loop.body), loop.n_carry
            consts = [values[v] for v in loop.consts]
            carries = [sum_all([values[v] for v in init]) for init in loop.inits]
            new: list[list[np.ndarray]] = [[] for _ in loop.body.outputs[n:]]
            i = 0
            while test([*tests, *carries])[0] if number == 0 else i < steps:
                at = steps - 1 - i if loop.reverse else i
                outs = run([*consts, *carries, *[stacks[s][at] for s in loop.stacks]])
                carries = outs[:n]
                for stack, y in zip(new, outs[n:]):
                    stack.append(y)
                i += 1
            steps = i if number == 0 else steps
            count_loop_work(self, steps * (2 + estimated_work(loop.body)), operands)
            values += carries
            stacks += [stack[::-1] if loop.reverse else stack for stack in new]
        return tuple(copy_aliased([values[v] for v in self.results], operands))

    def bind_chain(
        self, chain: LoopChain, cond: Graph, tests: Any, results: Sequence[Value]
    ) -> Any:
        """Bind the While that a LoopChain describes."""
        loops, asked, chosen = chain.to_numbers(tests, results)
        return bind(While(cond, asked, loops, chosen), *chain.operands)

    # Derivatives

    def jvp(self, ts: Any, ys: Any, *operands: Any) -> tuple[Any, ...]:
        loops, tests, results = with_references(self, len(operands))
        chain = LoopChain(operands)
        tangent: dict[Any, Any] = {
            Value(-1, i): chain.operand(t) for i, t in enumerate(ts) if t is not None
        }
        moved: dict[Any, Any] = {Value(-1, i): Value(-1, i) for i in range(len(operands))}
        for number, loop in enumerate(loops):
            add_jvp_loop(chain, number, loop, moved, tangent)
        cond = self.cond
        carries = len(cond.inputs) - len(tests)
        extra = [Var(t) for t in chain.loops[0].body.out_types[carries : chain.loops[0].n_carry]]
        cond = Graph(cond.name, (*cond.inputs, *extra), cond.equations, cond.outputs)
        wanted = [r for r in results if tangent.get(r) is not None]
        if not wanted:
            return (None,) * len(results)
        outs = iter(
            self.bind_chain(chain, cond, [moved[v] for v in tests], [tangent[r] for r in wanted])
        )
        return tuple([None if tangent.get(r) is None else next(outs) for r in results])

    def vjp(self, cts: Any, ys: Any, *operands: Any) -> tuple[Any, ...]:
        loops, tests, results = with_references(self, len(operands))
        chain = LoopChain(operands)
        cotangents: dict[Any, list[Any]] = {}
        for r, ct in zip(results, cts):
            if ct is not None:
                cotangents.setdefault(r, []).append(chain.operand(ct))
        for loop in loops:
            chain.add(loop)
        for number in reversed(range(len(loops))):
            add_vjp_loop(chain, number, cotangents)
        pending: list[list[Value]] = [
            cotangents.get(Value(-1, i), []) if differentiable(x) else []
            for i, x in enumerate(operands)
        ]
        asked = [v for found in pending for v in found]
        if not asked:
            return (None,) * len(operands)
        outs = iter(self.bind_chain(chain, self.cond, tests, asked))
        return tuple([sum_all([next(outs) for _ in found]) for found in pending])

    # Batching

    def batch(self, n: int, batched: tuple[bool, ...], *operands: Any) -> tuple[Any, ...]:
        from lucid.ops.higher_order.control.while_batching import batch_while

        return batch_while(self, n, batched, operands)

    def prune_outputs(
        self, n: int, used: Sequence[bool]
    ) -> tuple[Primitive, list[int], list[int]] | None:
        """Return the While without unused outputs: (primitive, its operands, its outputs)."""
        from lucid.ops.higher_order.control.while_trimming import prune_while

        return prune_while(self, n, used)


def sum_all(xs: Sequence[Any]) -> Any:
    if not xs:
        return None
    out = xs[0]
    for x in xs[1:]:
        out = out + x
    return out


def add_jvp_loop(chain: LoopChain, number: int, loop: Loop, moved: Any, tangent: Any) -> None:
    """Add a loop with tangents beside its values."""
    seeds = [
        *[tangent.get(v) for v in loop.consts],
        *[[tangent[v] for v in init if v in tangent] or None for init in loop.inits],
        *[tangent.get(("stack", *s)) for s in loop.stacks],
    ]
    d, active = body_jvp(ScanLikeBody(loop), seeds)
    n = loop.n_carry
    c_in, k_in, x_in = loop.split(loop.body.inputs)
    s_consts, s_carries, s_xs = loop.split(d.seeds)
    t_consts, t_inits, t_stacks = loop.split(seeds)
    writer = Writer([*loop.body.equations, *d.equations])
    t_outs = [
        writer.zeros(x.type) if r is None else r for x, r, w in zip(k_in, d.results, active) if w
    ]
    t_ys = d.results[n:]
    inputs = [
        *c_in, *not_none(s_consts), *[var for var, _ in d.constants],
        *k_in, *not_none(s_carries), *x_in, *not_none(s_xs),
    ]  # fmt: skip
    outputs = [*loop.body.outputs[:n], *t_outs, *loop.body.outputs[n:], *not_none(t_ys)]
    inits = [
        tuple(t) if t is not None else (chain.operand(zeros(x)),)
        for x, t, w in zip(k_in, t_inits, active)
        if w
    ]
    extra = [chain.operand(wrap(array)) for _, array in d.constants]
    carries, stacks = chain.add(
        Loop(
            writer.graph(loop.body.name, inputs, outputs),
            loop.reverse,
            (*[moved[v] for v in loop.consts], *not_none(t_consts), *extra),
            (*[tuple([moved[v] for v in init]) for init in loop.inits], *inits),
            (*[moved["stack", *s] for s in loop.stacks], *not_none(t_stacks)),
        )
    )
    moved.update((Value(number, i), carries[i]) for i in range(n))
    rest = iter(carries[n:])
    tangent.update((Value(number, i), next(rest)) for i, w in enumerate(active) if w)
    n_ys = len(t_ys)
    moved.update((("stack", number, i), stacks[i]) for i in range(n_ys))
    rest_ys = iter(stacks[n_ys:])
    there_ys = [i for i in range(n_ys) if t_ys[i] is not None]
    tangent.update((("stack", number, i), next(rest_ys)) for i in there_ys)


class ScanLikeBody:
    """Adapts a Loop to the attributes of a Scan that `body_jvp` reads."""

    def __init__(self, loop: Loop) -> None:
        self.body = loop.body
        self.parts = loop.split


def add_vjp_loop(chain: LoopChain, number: int, cotangents: dict[Any, list[Any]]) -> None:
    """Add the backward loop of a loop, whose residuals the forward loop stacks."""
    loop = chain.loops[number]
    body, n = loop.body, loop.n_carry
    from_carries = [cotangents.get(Value(number, i)) for i in range(n)]
    from_stacks = [cotangents.get(("stack", number, i)) for i in range(len(body.outputs) - n)]
    if not any([*from_carries, *from_stacks]):
        return
    given = [*[c or None for c in from_carries], *[c or None for c in from_stacks]]
    d, active = body_vjp(body, len(loop.consts), n, given)
    d_consts, d_carries, d_steps = loop.split(d.results)
    c_in, k_in, x_in = loop.split(body.inputs)
    fixed = invariant(body, c_in)
    known_step = dict(zip(x_in, loop.stacks))
    missing = [v for v in d.residuals if v not in fixed and v not in known_step]
    extended = Graph(body.name, body.inputs, body.equations, (*body.outputs, *missing))
    chain.loops[number] = loop._replace(body=extended)
    known_step.update((v, (number, len(body.outputs) - n + i)) for i, v in enumerate(missing))
    steps = [v for v in d.residuals if v in known_step]

    writer = Writer([*invariant_equations(body, fixed), *d.equations])
    seeds = list(d.seeds)
    ct_steps: list[Var] = []
    ct_refs: list[Any] = []
    equations: list[Equation] = []
    sums = Writer(equations)
    for i, refs in enumerate(from_stacks):
        if refs:
            parts = [Var(body.outputs[n + i].type) for _ in refs]
            ct_steps += parts
            ct_refs += refs
            summed = sums.sum(parts, parts[0].type)
            renamed = {seeds[n + i]: summed}
            writer.equations = [substitute(eqn, renamed) for eqn in writer.equations]
            d = d._replace(results=[renamed.get(r, r) for r in d.results])
    d_consts, d_carries, d_steps = loop.split(d.results)
    writer.equations = [*sums.equations, *writer.equations]
    ct_carries = [
        writer.zeros(x.type) if r is None else r for x, r, w in zip(k_in, d_carries, active) if w
    ]
    totals = [Var(r.type) for r in d_consts if r is not None]
    added = [writer.add(t, r) for t, r in zip(totals, not_none(d_consts))]
    inits = [
        tuple(refs) if refs else (chain.operand(zeros(x)),)
        for x, refs, w in zip(k_in, from_carries, active)
        if w
    ]
    inits += [(chain.operand(zeros(t)),) for t in totals]
    extra = [chain.operand(wrap(array)) for _, array in d.constants]
    s_carries = not_none(seeds[:n])
    inputs = [*c_in, *[v for v, _ in d.constants], *s_carries, *totals, *steps, *ct_steps]
    outputs = [*ct_carries, *added, *not_none(d_steps)]
    carries, stacks = chain.add(
        Loop(
            writer.graph(body.name, inputs, outputs),
            not loop.reverse,
            (*loop.consts, *extra),
            tuple(inits),
            (*[known_step[v] for v in steps], *ct_refs),
        )
    )
    rest = iter(carries)
    for init, w in zip(loop.inits, active):
        if w:
            ct = next(rest)
            for v in init:
                cotangents.setdefault(v, []).append(ct)
    for v, r in zip(loop.consts, d_consts):
        if r is not None:
            cotangents.setdefault(v, []).append(next(rest))
    new_stacks = iter(stacks)
    for s, r in zip(loop.stacks, d_steps):
        if r is not None:
            cotangents.setdefault(("stack", *s), []).append(next(new_stacks))


def substitute(eqn: Equation, names: dict[Any, Any]) -> Equation:
    return eqn._replace(inputs=tuple([names.get(x, x) for x in eqn.inputs]))
