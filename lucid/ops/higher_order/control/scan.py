"""Scan: a loop of a known number of steps, which reads and writes stacked values step by step.

    c = init;  for x in xs: c, y = body(consts, c, x)  gives the last c and the ys, stacked

Forward mode is a Scan with tangents beside the carries. Reverse mode is two: one forward that also
stacks what the derivative of the body reads, and one backward over those stacks. What it reads but
no step changes is computed once, outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lucid.errors import ShapeError
from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.higher_order.control.subgraphs import (
    Differential,
    Writer,
    batched_graph,
    differentiable,
    differential,
    hot_loop,
    over_examples,
    owned,
    program,
    reached,
    work_of,
)
from lucid.tape.bind import bind
from lucid.tape.modes import local
from lucid.tape.node import GRAD, wrap
from lucid.tape.tiering import single
from lucid.tape.trace import replay


class Scan(Primitive):
    """Operands: `n_consts` constants, `n_carry` carries, then values with `length` steps in axis 0.

    body    (constants, carries, one step of each value) -> (carries, one step of each result)
    """

    body: Graph
    n_consts: int
    n_carry: int
    length: int
    reverse: bool

    def parts(self, xs: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Constants, carries and stepped values of what belongs to the operands."""
        first, last = self.n_consts, self.n_consts + self.n_carry
        return list(xs[:first]), list(xs[first:last]), list(xs[last:])

    def infer(self, *types: Type) -> tuple[Type, ...]:
        consts, carries, xs = self.parts(types)
        for x in xs:
            if not x.shape or x.shape[0] != self.length:
                raise ShapeError(f"scan: a value of {x} for {self.length} steps")
        steps = [Type(x.dtype, x.shape[1:]) for x in xs]
        if self.body.in_types != (*consts, *carries, *steps):
            raise ShapeError(f"scan: operands {types} for a body that takes {self.body.in_types}")
        out = self.body.out_types
        if out[: self.n_carry] != tuple(carries):
            raise ShapeError(f"scan: carries {tuple(carries)} become {out[: self.n_carry]}")
        stacked = [Type(y.dtype, (self.length, *y.shape)) for y in out[self.n_carry :]]
        return (*carries, *stacked)

    def eval(self, *operands: np.ndarray) -> tuple[Any, ...]:
        hot = hot_loop(self)
        if hot.native is not None:
            return tuple(hot.native(operands))
        consts, carries, xs = self.parts(operands)
        run, n = program(self.body), self.n_carry
        types = self.body.out_types[n:]
        stacks = [np.empty((self.length, *t.shape), t.dtype) for t in types]
        order = range(self.length)
        for i in reversed(order) if self.reverse else order:
            outs = run([*consts, *carries, *[x[i] for x in xs]])
            carries = outs[:n]
            for stack, y in zip(stacks, outs[n:]):
                stack[i] = y
        hot.worked(self.length * work_of(self.body), lambda: single(self, operands))
        return (*owned(carries, operands), *stacks)

    # Forward mode

    def jvp(self, ts: Any, ys: Any, *operands: Any) -> tuple[Any, ...]:
        consts, carries, xs = self.parts(operands)
        t_consts, t_carries, t_xs = self.parts(ts)
        d, there = pushed_body(self, ts)
        c_in, k_in, x_in = self.parts(self.body.inputs)
        s_consts, s_carries, s_xs = self.parts(d.seeds)
        t_init = [(zeros(x) if t is None else t) for x, t, w in zip(carries, t_carries, there) if w]
        writer = Writer([*self.body.equations, *d.equations])
        n = self.n_carry
        t_outs = [
            writer.zeros(x.type) if r is None else r
            for x, r, w in zip(k_in, d.results[:n], there)
            if w
        ]
        t_ys = d.results[n:]
        inputs = [
            *c_in, *present(s_consts), *[var for var, _ in d.constants],
            *k_in, *present(s_carries), *x_in, *present(s_xs),
        ]  # fmt: skip
        outputs = [*self.body.outputs[:n], *t_outs, *present(t_ys)]
        body = writer.graph(self.body.name, inputs, outputs)
        extra = [wrap(array) for _, array in d.constants]
        given = [*consts, *present(t_consts), *extra, *carries, *t_init, *xs, *present(t_xs)]
        n_consts = len(consts) + len(present(t_consts)) + len(extra)
        op = Scan(body, n_consts, n + len(t_init), self.length, self.reverse)
        rest = iter(bind(op, *given)[n:])
        return tuple([next(rest) if w else None for w in [*there, *[t is not None for t in t_ys]]])

    # Reverse mode

    def vjp(self, cts: Any, ys: Any, *operands: Any) -> tuple[Any, ...]:
        n = self.n_carry
        d, there = pulled_body(self.body, self.n_consts, n, cts)
        d_consts, d_carries, d_xs = self.parts(d.results)
        saved = self.save(d, ys, operands)
        s_carries, s_ys = d.seeds[:n], d.seeds[n:]
        ct_init = [zeros(y) if ct is None else ct for y, ct, w in zip(ys, cts[:n], there) if w]
        constant = outside_equations(self.body, invariant(self.body, ()))
        writer = Writer([*constant, *d.equations])
        k_in = self.body.inputs[self.n_consts : self.n_consts + n]
        ct_carries = [
            writer.zeros(x.type) if r is None else r for x, r, w in zip(k_in, d_carries, there) if w
        ]
        totals = [Var(r.type) for r in d_consts if r is not None]
        sums = [writer.add(total, r) for total, r in zip(totals, present(d_consts))]
        constants = [var for var, _ in d.constants]
        inputs = [
            *saved.fixed, *constants, *present(s_carries), *totals, *saved.stacked, *present(s_ys),
        ]  # fmt: skip
        body = writer.graph(self.body.name, inputs, [*ct_carries, *sums, *present(d_xs)])
        extra = [wrap(array) for _, array in d.constants]
        given = [
            *saved.fixed.values(), *extra, *ct_init, *map(zeros, totals),
            *saved.stacked.values(), *present(cts[n:]),
        ]  # fmt: skip
        n_consts, n_carry = len(saved.fixed) + len(extra), len(ct_init) + len(totals)
        op = Scan(body, n_consts, n_carry, self.length, not self.reverse)
        outs = list(bind(op, *given))
        by_carry, rest = iter(outs[: len(ct_init)]), iter(outs[len(ct_init) :])
        g_consts = [None if r is None else next(rest) for r in d_consts]
        g_carries = [next(by_carry) if w else None for w in there]
        return (*g_consts, *g_carries, *[None if r is None else next(rest) for r in d_xs])

    def save(self, d: Differential, ys: Sequence[Any], operands: Sequence[Any]) -> Saved:
        """What the derivative of the body reads: stacked by a Scan where it is not there."""
        c_in, _, x_in = self.parts(self.body.inputs)
        consts, _, xs = self.parts(operands)
        known = dict(zip(c_in, consts))
        fixed = {var: known[var] for var in d.residuals if var in known}
        outside, written = invariant(self.body, c_in), invariant(self.body, ())
        read = [var for var in d.residuals if var not in written]
        moved = [var for var in read if var in outside and var not in known]
        if moved:
            graph = Writer(outside_equations(self.body, outside)).graph("outside", c_in, moved)
            fixed.update(zip(moved, replay(graph, consts)))
        stacked = {var: x for var, x in zip(x_in, xs) if var in read}
        for var, y in zip(self.body.outputs[self.n_carry :], ys[self.n_carry :]):
            if var in read and isinstance(var, Var) and var not in fixed:
                stacked.setdefault(var, y)
        missing = [var for var in read if var not in fixed and var not in stacked]
        if missing:
            stacked.update(zip(missing, bind(self.stacking(missing), *operands)[len(ys) :]))
        return Saved(fixed, stacked)

    def stacking(self, missing: Sequence[Var]) -> Scan:
        """The same loop with values of its body as further results."""
        g = self.body
        body = Graph(g.name, g.inputs, g.equations, (*g.outputs, *missing))
        return Scan(body, self.n_consts, self.n_carry, self.length, self.reverse)

    # Many examples

    def batch(self, n: int, batched: tuple[bool, ...], *operands: Any) -> tuple[Any, ...]:
        b_consts, b_carries, b_xs = self.parts(batched)
        no_more = [False] * (len(self.body.outputs) - self.n_carry)
        while True:
            flags = [*b_consts, *b_carries, *b_xs]
            found = batched_graph(self.body, n, flags, [*b_carries, *no_more])
            now = list(found.batched[: self.n_carry])
            if now == b_carries:
                break
            b_carries = now
        consts, carries, xs = self.parts(operands)
        was = self.parts(batched)[1]
        carries = [over_examples(n, w or not b, c) for c, w, b in zip(carries, was, b_carries)]
        xs = [swapped(x) if b else x for x, b in zip(xs, b_xs)]
        op = Scan(found.graph, self.n_consts, self.n_carry, self.length, self.reverse)
        outs = bind(op, *consts, *carries, *xs)
        finals = [over_examples(n, b, y) for y, b in zip(outs, b_carries)]
        rest = zip(outs[self.n_carry :], found.batched[self.n_carry :])
        return (*finals, *[swapped(y) if b else over_examples(n, False, y) for y, b in rest])

    def trimmed(
        self, n_operands: int, used: Sequence[bool]
    ) -> tuple[Primitive, list[int], list[int]] | None:
        """The Scan without what nobody reads: (operation, its operands, its outputs)."""
        body, n = self.body, self.n_carry
        k_in = self.parts(body.inputs)[1]
        kept = {i for i, u in enumerate(used) if u}
        while True:
            needed = reached(body, [body.outputs[i] for i in kept])
            more = {i for i in range(n) if k_in[i] in needed} | kept
            if more == kept:
                break
            kept = more
        outputs = sorted(kept)
        carries = [i for i in outputs if i < n]
        inputs = [
            i
            for i, x in enumerate(body.inputs)
            if (x in needed if not 0 <= i - self.n_consts < n else i - self.n_consts in kept)
        ]
        if len(outputs) == len(used) and len(inputs) == len(body.inputs):
            return None
        graph = Writer(body.equations).graph(
            body.name, [body.inputs[i] for i in inputs], [body.outputs[i] for i in outputs]
        )
        n_consts = sum(i < self.n_consts for i in inputs)
        op = Scan(graph, n_consts, len(carries), self.length, self.reverse)
        return op, inputs, outputs


def run_scan(op: Scan, *operands: Any) -> tuple[Any, ...]:
    """`bind(op, *operands)`; an eager run that `backward` may follow keeps what that will read."""
    if not local.plain or not any([is_followed(x) for x in operands]):
        return bind(op, *operands)  # type: ignore[no-any-return]
    return bind(remembering(op), *operands)[: len(op.body.outputs)]  # type: ignore[no-any-return]


def is_followed(x: Any) -> bool:
    return x.value is not None and x.node is not None and x.node.flags == GRAD


@lru_cache(maxsize=256)
def remembering(op: Scan) -> Scan:
    """The Scan with all that its derivative reads among its results."""
    body, n = op.body, op.n_carry
    d, _ = pulled_body(body, op.n_consts, n, [differentiable(y) or None for y in body.outputs])
    c_in, _, x_in = op.parts(body.inputs)
    at_hand = {*invariant(body, c_in), *x_in, *body.outputs[n:]}
    return op.stacking([var for var in d.residuals if var not in at_hand])


class Saved(NamedTuple):
    """What a backward body reads, by Var: the same at every step, or stacked."""

    fixed: dict[Var, Any]
    stacked: dict[Var, Any]


def present(xs: Sequence[Any]) -> list[Any]:
    return [x for x in xs if x is not None]


def zeros(like: Any) -> Any:
    from lucid.transforms.constants import zeros_like

    return zeros_like(like if not isinstance(like, Var) else like.type, True)


def swapped(x: Any) -> Any:
    """The first two axes exchanged: examples and steps."""
    return x.permute((1, 0, *range(2, x.ndim)))


def pushed_body(op: Any, ts: Sequence[Any]) -> tuple[Differential, list[bool]]:
    """The jvp of a Scan's body, and which carries have a tangent after some step."""
    t_consts, t_carries, t_xs = op.parts([t is not None for t in ts])
    while True:
        d = differential("jvp", op.body, op.body.inputs, [*t_consts, *t_carries, *t_xs])
        now = [t or r is not None for t, r in zip(t_carries, d.results)]
        if now == t_carries:
            return d, now
        t_carries = now


def pulled_body(
    body: Graph, n_consts: int, n_carry: int, cts: Sequence[Any]
) -> tuple[Differential, list[bool]]:
    """The vjp of a body, and which carries have a cotangent before some step."""
    there = [ct is not None for ct in cts]
    while True:
        d = differential("vjp", body, body.inputs, there)
        pulled = d.results[n_consts : n_consts + n_carry]
        now = [t or r is not None for t, r in zip(there, pulled)]
        if now == there[:n_carry]:
            return d, now
        there = [*now, *there[n_carry:]]


def invariant(body: Graph, fixed: Sequence[Var]) -> set[Any]:
    """The Vars that are the same at every step: computed from `fixed` and literals alone."""
    known: set[Any] = set(fixed)
    for eqn in body.equations:
        if eqn.op.once or not all(x in known for x in eqn.inputs if isinstance(x, Var)):
            continue
        known.update(eqn.outputs)
    return known


def outside_equations(body: Graph, known: set[Any]) -> list[Equation]:
    return [eqn for eqn in body.equations if eqn.outputs[0] in known]
