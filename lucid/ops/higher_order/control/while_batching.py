"""Batching a While: with one condition for all examples, or while the condition of any holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.types import Type
from lucid.ops.higher_order.control.subgraphs import BatchedGraph, batched_graph, expand_unbatched
from lucid.ops.higher_order.control.while_chain import Loop, LoopChain, Value, with_references
from lucid.tape.bind import bind


def batch_while(op: Any, n: int, batched: Sequence[bool], operands: Sequence[Any]) -> Any:
    """Return the results for `n` examples, as Batched."""
    forced: set[Value] = set()
    while True:
        batching = WhileBatching(op, n, batched, operands, forced)
        batching.add_loops()
        if batching.forced == forced:
            return batching.outputs()
        forced = batching.forced


class WhileBatching:
    """One run of `batch_while`.

    is_batched    whether each value and stack is batched
    moved         every value and stack in the new While
    active        the stack of which examples make a step; None if all make the same steps
    forced        values that must be batched because a later loop starts from them
    """

    def __init__(
        self,
        op: Any,
        n: int,
        batched: Sequence[bool],
        operands: Sequence[Any],
        forced: set[Value],
    ) -> None:
        self.op = op
        self.n = n
        self.loops, self.tests, self.results = with_references(op, len(operands))
        self.chain = LoopChain(operands)
        values = [Value(-1, i) for i in range(len(operands))]
        self.is_batched: dict[Any, bool] = dict(zip(values, batched))
        self.moved: dict[Any, Any] = {v: v for v in values}
        self.active: Any = None
        self.forced = set(forced)

    def add_loops(self) -> None:
        self.cond, per_example = self.condition()
        for number, loop in enumerate(self.loops):
            self.add_loop(number, loop, per_example)

    def outputs(self) -> tuple[Any, ...]:
        from lucid.transforms.vmap import Batched

        loops, asked, chosen = self.chain.to_numbers(
            [self.moved[v] for v in self.tests], [self.moved[r] for r in self.results]
        )
        outs = bind(type(self.op)(self.cond, asked, loops, chosen), *self.chain.operands)
        return tuple([Batched(y, self.is_batched[r]) for r, y in zip(self.results, outs)])

    def condition(self) -> tuple[Graph, bool]:
        """Return the condition that any example continues, and whether it differs by example."""
        op, loop = self.op, self.loops[0]
        carries = self.fixpoint(loop, self.batched_inits(loop, 0))
        while True:
            flags = [*[self.is_batched[v] for v in self.tests], *carries.batched[: loop.n_carry]]
            found = batched_graph(op.cond, self.n, flags, [False])
            if not found.batched[0]:
                return found.graph, False
            if all(carries.batched[: loop.n_carry]):
                break
            every = [True] * loop.n_carry
            carries = carries._replace(batched=(*every, *carries.batched[loop.n_carry :]))
        return any_example(found.graph), True

    def batched_inits(self, loop: Loop, number: int) -> list[bool]:
        """Return which carries are batched before the first step."""
        return [
            any(self.is_batched[v] for v in init) or Value(number, i) in self.forced
            for i, init in enumerate(loop.inits)
        ]

    def fixpoint(
        self, loop: Loop, carries: list[bool], graph: Any = None, postprocess: Any = None
    ) -> BatchedGraph:
        """Batch the body, with every carry batched that is batched after some step."""
        graph = graph or loop.body
        n = loop.n_carry
        free = [False] * (len(graph.outputs) - n)
        ends = [self.is_batched["stack", *s] for s in loop.stacks]
        begins = [self.is_batched[v] for v in loop.consts]
        while True:
            flags = [*begins, *carries, *ends]
            flags += [True] * (len(graph.inputs) - len(flags))
            found = batched_graph(graph, self.n, flags, [*carries, *free], postprocess)
            now = list(found.batched[:n])
            if now == carries:
                return found
            carries = now

    def add_loop(self, number: int, loop: Loop, per_example: bool) -> None:
        """Add the batched loop; only active examples change."""
        n = loop.n_carry
        if not per_example:
            found = self.fixpoint(loop, self.batched_inits(loop, number))
        elif number == 0:
            found, loop = self.first_loop(loop)
        else:
            active = Var(Type.parse("bool[]"))
            graph = Graph(
                loop.body.name,
                (*loop.body.inputs, active),
                loop.body.equations,
                loop.body.outputs,
            )
            extended = loop._replace(stacks=(*loop.stacks, self.active))
            begin = len(loop.consts)

            def keep(given: Sequence[Any], results: Sequence[Any]) -> list[Any]:
                return update_active(given[-1].tensor, given[begin : begin + n], results, n)

            self.is_batched["stack", *self.active] = True
            self.moved["stack", *self.active] = self.active
            found = self.fixpoint(extended, [True] * n, graph, keep)
            loop = extended
        inits = tuple([self.expand_init(init, b) for init, b in zip(loop.inits, found.batched)])
        finals, stacks = self.chain.add(
            Loop(
                found.graph,
                loop.reverse,
                tuple([self.moved[v] for v in loop.consts]),
                inits,
                tuple([self.moved["stack", *s] for s in loop.stacks]),
            )
        )
        self.moved.update((Value(number, i), v) for i, v in enumerate(finals))
        self.is_batched.update((Value(number, i), b) for i, b in enumerate(found.batched[:n]))
        for i, (s, b) in enumerate(zip(stacks, found.batched[n:])):
            self.moved["stack", number, i] = s
            self.is_batched["stack", number, i] = b
        if per_example and number == 0:
            self.active = stacks[-1]

    def first_loop(self, loop: Loop) -> tuple[BatchedGraph, Loop]:
        """Batch the first loop; examples whose condition no longer holds do not change."""
        body, cond, n = loop.body, self.op.cond, loop.n_carry
        carries = loop.split(body.inputs)[1]
        names: dict[Any, Any] = dict(zip(cond.inputs[len(self.tests) :], carries))
        tests = [Var(x.type) for x in cond.inputs[: len(self.tests)]]
        names.update(zip(cond.inputs, tests))
        equations = list(body.equations)
        for eqn in cond.equations:
            new = tuple([Var(v.type) for v in eqn.outputs])
            inputs = tuple([names.get(x, x) for x in eqn.inputs])
            equations.append(Equation(eqn.op, inputs, new, eqn.source))
            names.update(zip(eqn.outputs, new))
        goes_on = names.get(cond.outputs[0], cond.outputs[0])
        first = len(tests)
        graph = Graph(body.name, (*tests, *body.inputs), tuple(equations), (*body.outputs, goes_on))
        begin = first + len(loop.consts)

        def keep(given: Sequence[Any], results: Sequence[Any]) -> list[Any]:
            return update_active(results[-1].tensor, given[begin : begin + n], results, n)

        extended = loop._replace(consts=(*self.tests, *loop.consts))
        return self.fixpoint(extended, [True] * n, graph, keep), extended

    def expand_init(self, init: tuple[Value, ...], batched: bool) -> tuple[Any, ...]:
        """Return the initial values of a carry, expanded if it is batched."""
        out = []
        for v in init:
            ref = self.moved[v]
            if batched and not self.is_batched[v]:
                if v.loop >= 0:
                    self.forced.add(v)
                    continue
                ref = self.chain.operand(
                    expand_unbatched(self.n, False, self.chain.operands[v.position])
                )
            out.append(ref)
        return tuple(out)


def update_active(active: Any, before: Sequence[Any], results: Sequence[Any], n: int) -> list[Any]:
    """Update carries only where an example is active."""
    from lucid.ops.elementwise.conditional import where
    from lucid.ops.higher_order.control.subgraphs import record_literal
    from lucid.transforms.vmap import Batched

    out = []
    for old, new in zip(before, results[:n]):
        x, y = record_literal(old.tensor), record_literal(new.tensor)
        ndim = y.ndim if new.batched else y.ndim + 1
        mask = active.reshape((active.shape[0], *[1] * (ndim - 1)))
        x = x if old.batched else x.reshape((1, *x.shape))
        y = y if new.batched else y.reshape((1, *y.shape))
        out.append(Batched(where(mask, y, x), True))
    return [*out, *results[n:]]


def any_example(graph: Graph) -> Graph:
    """Reduce the only output of a Graph, one bool per example, by `any`."""
    from lucid.ops.reduce.reduction import AnyTrue

    out = Var(Type.parse("bool[]"))
    equations = (*graph.equations, Equation(AnyTrue((0,)), graph.outputs, (out,)))
    return Graph(graph.name, graph.inputs, equations, (out,))
