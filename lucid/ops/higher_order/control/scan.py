"""Scan: a loop with a known number of steps over stacked values.

    c = init;  for x in xs: c, y = body(consts, c, x)  gives the last c and the stacked ys

Forward mode is a Scan with tangents beside the carries. Reverse mode is two Scans: one forward that
also stacks the residuals of the body, and one backward over those stacks. Loop-invariant residuals
are computed once, outside the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lucid.errors import ShapeError
from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.interpret import program_of
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.higher_order.control.subgraphs import (
    BodyDerivative,
    Writer,
    ancestors,
    batched_graph,
    body_derivative,
    copy_aliased,
    count_loop_work,
    differentiable,
    estimated_work,
    expand_unbatched,
    loop_program,
)
from lucid.ops.shape.derivative_seeds import zeros_like
from lucid.support.caches import memoize
from lucid.tape.bind import bind
from lucid.tape.modes import local
from lucid.tape.node import GRAD, wrap
from lucid.tape.recording.trace import replay


class Scan(Primitive):
    """Operands: `n_consts` constants, `n_carry` carries, then values with `length` steps in axis 0.

    body    (constants, carries, one step of each value) -> (carries, one step of each result)
    """

    body: Graph
    n_consts: int
    n_carry: int
    length: int
    reverse: bool
    lowering = "lucid.compiler.lowering.loops.control_flow:ScanLowering"
    decomposition = "lucid.compiler.passes.expand.decompose:inline_single_step"
    control_flow = True

    def body_operands(self, xs: Sequence[Any]) -> list[tuple[Graph, list[Any]]]:
        return [(self.body, list(xs[: self.n_consts]))]

    operand_layout = "dense"

    def parts(self, xs: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Split values that belong to the operands into constants, carries and stepped values."""
        first, last = self.n_consts, self.n_consts + self.n_carry
        return list(xs[:first]), list(xs[first:last]), list(xs[last:])

    def infer(self, *types: Type) -> tuple[Type, ...]:
        consts, carries, xs = self.parts(types)
        for x in xs:
            if not x.shape or x.shape[0] != self.length:
                raise ShapeError(f"scan: {x} does not have {self.length} steps in axis 0")
        steps = [Type(x.dtype, x.shape[1:]) for x in xs]
        if self.body.in_types != (*consts, *carries, *steps):
            raise ShapeError(f"scan: the body takes {self.body.in_types}, not {types}")
        out = self.body.out_types
        if out[: self.n_carry] != tuple(carries):
            facts = f"from {tuple(carries)} to {out[: self.n_carry]}"
            raise ShapeError(f"scan: the body changes the types of carries {facts}")
        stacked = [Type(y.dtype, (self.length, *y.shape)) for y in out[self.n_carry :]]
        return (*carries, *stacked)

    def eval(self, *operands: np.ndarray) -> tuple[Any, ...]:
        native = loop_program(self)
        if native is not None:
            return tuple(native(operands))
        consts, carries, xs = self.parts(operands)
        run, n = program_of(self.body), self.n_carry
        types = self.body.out_types[n:]
        stacks = [np.empty((self.length, *t.shape), t.dtype) for t in types]
        order = range(self.length)
        for i in reversed(order) if self.reverse else order:
            outs = run([*consts, *carries, *[x[i] for x in xs]])
            carries = outs[:n]
            for stack, y in zip(stacks, outs[n:]):
                stack[i] = y
        count_loop_work(self, self.length * estimated_work(self.body), operands)
        return (*copy_aliased(carries, operands), *stacks)

    # Forward mode

    def jvp(self, ts: Any, ys: Any, *operands: Any) -> tuple[Any, ...]:
        consts, carries, xs = self.parts(operands)
        t_consts, t_carries, t_xs = self.parts(ts)
        d, active = body_jvp(self, ts)
        c_in, k_in, x_in = self.parts(self.body.inputs)
        s_consts, s_carries, s_xs = self.parts(d.seeds)
        t_init = [
            (zeros(x) if t is None else t) for x, t, w in zip(carries, t_carries, active) if w
        ]
        writer = Writer([*self.body.equations, *d.equations])
        n = self.n_carry
        t_outs = [
            writer.zeros(x.type) if r is None else r
            for x, r, w in zip(k_in, d.results[:n], active)
            if w
        ]
        t_ys = d.results[n:]
        inputs = [
            *c_in, *not_none(s_consts), *[var for var, _ in d.constants],
            *k_in, *not_none(s_carries), *x_in, *not_none(s_xs),
        ]  # fmt: skip
        outputs = [*self.body.outputs[:n], *t_outs, *not_none(t_ys)]
        body = writer.graph(self.body.name, inputs, outputs)
        extra = [wrap(array) for _, array in d.constants]
        given = [*consts, *not_none(t_consts), *extra, *carries, *t_init, *xs, *not_none(t_xs)]
        n_consts = len(consts) + len(not_none(t_consts)) + len(extra)
        op = Scan(body, n_consts, n + len(t_init), self.length, self.reverse)
        rest = iter(bind(op, *given)[n:])
        return tuple([next(rest) if w else None for w in [*active, *[t is not None for t in t_ys]]])

    # Reverse mode

    def vjp(self, cts: Any, ys: Any, *operands: Any) -> tuple[Any, ...]:
        n = self.n_carry
        d, active = body_vjp(self.body, self.n_consts, n, cts)
        d_consts, d_carries, d_xs = self.parts(d.results)
        saved = self.residuals(d, ys, operands)
        s_carries, s_ys = d.seeds[:n], d.seeds[n:]
        ct_init = [zeros(y) if ct is None else ct for y, ct, w in zip(ys, cts[:n], active) if w]
        constant = invariant_equations(self.body, invariant(self.body, ()))
        writer = Writer([*constant, *d.equations])
        k_in = self.body.inputs[self.n_consts : self.n_consts + n]
        ct_carries = [
            writer.zeros(x.type) if r is None else r
            for x, r, w in zip(k_in, d_carries, active)
            if w
        ]
        totals = [Var(r.type) for r in d_consts if r is not None]
        sums = [writer.add(total, r) for total, r in zip(totals, not_none(d_consts))]
        constants = [var for var, _ in d.constants]
        inputs = [
            *saved.fixed, *constants, *not_none(s_carries), *totals,
            *saved.stacked, *not_none(s_ys),
        ]  # fmt: skip
        body = writer.graph(self.body.name, inputs, [*ct_carries, *sums, *not_none(d_xs)])
        extra = [wrap(array) for _, array in d.constants]
        given = [
            *saved.fixed.values(), *extra, *ct_init, *map(zeros, totals),
            *saved.stacked.values(), *not_none(cts[n:]),
        ]  # fmt: skip
        n_consts, n_carry = len(saved.fixed) + len(extra), len(ct_init) + len(totals)
        op = Scan(body, n_consts, n_carry, self.length, not self.reverse)
        outs = list(bind(op, *given))
        by_carry, rest = iter(outs[: len(ct_init)]), iter(outs[len(ct_init) :])
        g_consts = [None if r is None else next(rest) for r in d_consts]
        g_carries = [next(by_carry) if w else None for w in active]
        return (*g_consts, *g_carries, *[None if r is None else next(rest) for r in d_xs])

    def residuals(self, d: BodyDerivative, ys: Sequence[Any], operands: Sequence[Any]) -> Residuals:
        """Return the residuals of the body; a Scan stacks those that are not available yet."""
        c_in, _, x_in = self.parts(self.body.inputs)
        consts, _, xs = self.parts(operands)
        known = dict(zip(c_in, consts))
        fixed = {var: known[var] for var in d.residuals if var in known}
        outside, written = invariant(self.body, c_in), invariant(self.body, ())
        read = [var for var in d.residuals if var not in written]
        moved = [var for var in read if var in outside and var not in known]
        if moved:
            graph = Writer(invariant_equations(self.body, outside)).graph("outside", c_in, moved)
            fixed.update(zip(moved, replay(graph, consts)))
        stacked = {var: x for var, x in zip(x_in, xs) if var in read}
        for var, y in zip(self.body.outputs[self.n_carry :], ys[self.n_carry :]):
            if var in read and isinstance(var, Var) and var not in fixed:
                stacked.setdefault(var, y)
        missing = [var for var in read if var not in fixed and var not in stacked]
        if missing:
            stacked.update(zip(missing, bind(self.with_stacked(missing), *operands)[len(ys) :]))
        return Residuals(fixed, stacked)

    def with_stacked(self, missing: Sequence[Var]) -> Scan:
        """Return the same loop with values of its body as further results."""
        g = self.body
        body = Graph(g.name, g.inputs, g.equations, (*g.outputs, *missing))
        return Scan(body, self.n_consts, self.n_carry, self.length, self.reverse)

    # Batching

    def batch(self, n: int, batched: tuple[bool, ...], *operands: Any) -> tuple[Any, ...]:
        from lucid.transforms.vmap import Batched

        b_consts, b_carries, b_xs = self.parts(batched)
        not_forced = [False] * (len(self.body.outputs) - self.n_carry)
        while True:
            flags = [*b_consts, *b_carries, *b_xs]
            found = batched_graph(self.body, n, flags, [*b_carries, *not_forced])
            now = list(found.batched[: self.n_carry])
            if now == b_carries:
                break
            b_carries = now
        consts, carries, xs = self.parts(operands)
        given_carries = self.parts(batched)[1]
        carries = [
            expand_unbatched(n, w or not b, c) for c, w, b in zip(carries, given_carries, b_carries)
        ]
        xs = [swap_leading_axes(x) if b else x for x, b in zip(xs, b_xs)]
        op = Scan(found.graph, self.n_consts, self.n_carry, self.length, self.reverse)
        outs = bind(op, *consts, *carries, *xs)
        finals = [Batched(y, b) for y, b in zip(outs, b_carries)]
        rest = zip(outs[self.n_carry :], found.batched[self.n_carry :])
        return (*finals, *[Batched(swap_leading_axes(y) if b else y, b) for y, b in rest])

    def prune_outputs(
        self, n_operands: int, used: Sequence[bool]
    ) -> tuple[Primitive, list[int], list[int]] | None:
        """Return the Scan without unused outputs: (primitive, its operands, its outputs)."""
        body, n = self.body, self.n_carry
        k_in = self.parts(body.inputs)[1]
        kept = {i for i, u in enumerate(used) if u}
        while True:
            needed = ancestors(body, [body.outputs[i] for i in kept])
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
    """`bind(op, *operands)`; an eager run that requires gradients also saves the residuals."""
    if not local.fast_record or not any([needs_grad(x) for x in operands]):
        return bind(op, *operands)  # type: ignore[no-any-return]
    return bind(with_residuals(op), *operands)[: len(op.body.outputs)]  # type: ignore[no-any-return]


def needs_grad(x: Any) -> bool:
    return x.raw is not None and x.node is not None and x.node.flags == GRAD


@memoize(maxsize=256)
def with_residuals(op: Scan) -> Scan:
    """Return the Scan with all residuals of its derivative among its results."""
    body, n = op.body, op.n_carry
    d, _ = body_vjp(body, op.n_consts, n, [differentiable(y) or None for y in body.outputs])
    c_in, _, x_in = op.parts(body.inputs)
    at_hand = {*invariant(body, c_in), *x_in, *body.outputs[n:]}
    return op.with_stacked([var for var in d.residuals if var not in at_hand])


class Residuals(NamedTuple):
    """The residuals of a backward body, by Var: the same at every step, or stacked."""

    fixed: dict[Var, Any]
    stacked: dict[Var, Any]


def not_none(xs: Sequence[Any]) -> list[Any]:
    return [x for x in xs if x is not None]


def zeros(like: Any) -> Any:
    return zeros_like(like if not isinstance(like, Var) else like.type, True)


def swap_leading_axes(x: Any) -> Any:
    """Swap the first two axes: batch and steps."""
    return x.permute((1, 0, *range(2, x.ndim)))


def body_jvp(op: Any, ts: Sequence[Any]) -> tuple[BodyDerivative, list[bool]]:
    """Return the jvp of a Scan's body, and which carries have a tangent after some step."""
    t_consts, t_carries, t_xs = op.parts([t is not None for t in ts])
    while True:
        d = body_derivative("jvp", op.body, op.body.inputs, [*t_consts, *t_carries, *t_xs])
        now = [t or r is not None for t, r in zip(t_carries, d.results)]
        if now == t_carries:
            return d, now
        t_carries = now


def body_vjp(
    body: Graph, n_consts: int, n_carry: int, cts: Sequence[Any]
) -> tuple[BodyDerivative, list[bool]]:
    """Return the vjp of a body, and which carries have a cotangent before some step."""
    active = [ct is not None for ct in cts]
    while True:
        d = body_derivative("vjp", body, body.inputs, active)
        pulled = d.results[n_consts : n_consts + n_carry]
        now = [t or r is not None for t, r in zip(active, pulled)]
        if now == active[:n_carry]:
            return d, now
        active = [*now, *active[n_carry:]]


def invariant(body: Graph, fixed: Sequence[Var]) -> set[Any]:
    """Return the loop-invariant Vars: those computed from `fixed` and literals alone."""
    known: set[Any] = set(fixed)
    for eqn in body.equations:
        stays = eqn.op.single_use or eqn.op.ordered
        if stays or not all(x in known for x in eqn.inputs if isinstance(x, Var)):
            continue
        known.update(eqn.outputs)
    return known


def invariant_equations(body: Graph, known: set[Any]) -> list[Equation]:
    return [eqn for eqn in body.equations if eqn.outputs[0] in known]
