"""decompose: Graph -> Graph in which composite operations are expanded, so that they fuse.

logsumexp       max, sub, exp, sum, log; softmax, log_softmax and log_softmax_at likewise
argmax, argmin  the least index of the extreme element
var             the mean, deviations from it, and the sum of their squares
stack           reshapes and a concatenate
take_one        take_along of indices with one more axis
einsum          transposes, reshapes, products and sums of two operands at a time
matmul          of integers: products and sums; of empty arrays: zeros
any of float16  the same in float32, rounded (`promote_float16`)
call            its Graph, as for checkpoint; for custom_vjp and custom_jvp the forward Graph
scan            of one step: its body
matrix_exp      a Padé approximation and squarings
precomputed_det the value it is given, like other operations that only add a derivative
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from lucid.compiler.passes.expand.expand_einsum import expand_einsum
from lucid.compiler.passes.expand.promote_float16 import promote_float16
from lucid.compiler.resolve import resolve
from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.infer import infer
from lucid.ir.primitive import Primitive
from lucid.ir.rewrite import Rewriter, dce
from lucid.ir.types import DTYPES, SHORT_NAMES, Type
from lucid.ops.core.axes import keepdims_shape
from lucid.ops.elementwise.arithmetic import Add, Cast, Div, Mul, Sub
from lucid.ops.elementwise.conditional import Where
from lucid.ops.elementwise.exponential import Exp, Log
from lucid.ops.elementwise.logic import BitwiseOr, Eq, Isfinite, Lt, Ne
from lucid.ops.elementwise.rounding import Round
from lucid.ops.index.gather_scatter import TakeAlong
from lucid.ops.reduce.extrema import Max, Min
from lucid.ops.reduce.reduction import AnyTrue, Sum
from lucid.ops.shape.concatenate import Concatenate
from lucid.ops.shape.full_and_iota import Full, Iota
from lucid.ops.shape.movement import Broadcast, Reshape, Transpose
from lucid.ops.special.error_and_gamma import LOWEST, polygamma_factor
from lucid.ops.special.zeta import Zeta

Rule = Callable[["Decomposer", Equation], Sequence[Atom] | None]


def decompose(graph: Graph) -> Graph:
    """Expand the operations above."""
    writer = Decomposer()
    outputs = writer.inline(graph, graph.inputs, fresh=False)
    return dce(Graph(graph.name, graph.inputs, tuple(writer.equations), tuple(outputs)))


class Decomposer(Rewriter):
    """A Rewriter whose equations are themselves decomposed."""

    def inline(self, graph: Graph, inputs: Sequence[Atom], fresh: bool = True) -> list[Atom]:
        """Write a Graph's equations, with new Vars if `fresh`; return its outputs."""
        env: dict[Any, Atom] = dict(zip(graph.inputs, inputs))
        for eqn in graph.equations:
            self.source = eqn.source
            operands = tuple([env[x] if x.__class__ is Var else x for x in eqn.inputs])
            found = decompose_equation(self, Equation(eqn.op, operands, eqn.outputs, eqn.source))
            if found is None:
                found = tuple([Var(var.type) for var in eqn.outputs]) if fresh else eqn.outputs
                self.add(Equation(eqn.op, operands, found, eqn.source))  # type: ignore[arg-type]
            env.update(zip(eqn.outputs, found))
        return [env[x] if x.__class__ is Var else x for x in graph.outputs]

    def make(self, op: Primitive, *inputs: Atom) -> Any:
        result = infer(op, tuple([x.type for x in inputs]))
        assert isinstance(result, Type)
        return self.emit(Equation(op, inputs, (Var(result),), self.source))[0]

    def emit(self, eqn: Equation) -> Sequence[Atom]:
        """Decompose and add an equation; return its results."""
        found = decompose_equation(self, eqn)
        if found is not None:
            return found
        self.add(eqn)
        return eqn.outputs

    def full(self, type: Type, value: Any) -> Var:
        return self.make(Full(type.shape, SHORT_NAMES[type.dtype]), literal(value, type))

    def broadcast_back(self, y: Atom, x: Atom, axes: Sequence[int]) -> Atom:
        """A reduced value broadcast over the axes of `x` that were reduced."""
        kept = tuple(i for i in range(x.type.ndim) if i not in axes)
        return self.make(Broadcast(x.type.shape, kept), y)

    def total(self, x: Atom, axes: tuple[int, ...]) -> Atom:
        """The sum over axes; for booleans `any`, as NumPy adds them."""
        return self.make((AnyTrue if x.type.dtype.kind == "b" else Sum)(axes), x)


def literal(value: Any, type: Type) -> Literal:
    return Literal(type.dtype.type(value).item(), type.dtype)


def decompose_equation(w: Decomposer, eqn: Equation) -> Sequence[Atom] | None:
    """The values that replace the results of an equation, or None if it stays."""
    op = eqn.op
    if op.value_graph:
        inner = getattr(op, op.value_graph)
        source, outs = w.source, w.inline(inner, eqn.inputs[: len(inner.inputs)])
        w.source = source
        return outs
    if op.forwards:
        return op.forwarded(eqn.inputs, len(eqn.outputs))
    promoted = promote_float16(w, eqn)
    if promoted is not None:
        return promoted
    value = empty_value(eqn)
    if value is not None:
        return [w.full(eqn.outputs[0].type, value)]
    rule = resolve(op.decomposition)
    return None if rule is None else rule(w, eqn)


def empty_value(eqn: Equation) -> Any:
    """The number that fills a result made of no elements, or None if the result has some."""
    op, (first, *indices) = eqn.op, eqn.inputs or (None,)
    if first is None or any(x.type.dtype.kind == "c" for x in eqn.inputs):
        return None
    if op.empty is not None and any(x.type.size == 0 for x in eqn.inputs):
        return op.empty
    nothing = indices[0] if op.reads_memory and indices else eqn.outputs[0]
    return 0 if (op.monoid or (op.reads_memory and indices)) and nothing.type.size == 0 else None


def inline_single_step(w: Decomposer, eqn: Equation) -> Sequence[Atom] | None:
    """scan[length=1] consts carries xs = body consts carries xs[0], with results[None]."""
    op: Any = eqn.op
    if op.length != 1:
        return None
    consts, carries, xs = op.parts(eqn.inputs)
    steps = [w.make(Reshape(x.type.shape[1:]), x) for x in xs]
    source, outs = w.source, w.inline(op.body, [*consts, *carries, *steps])
    w.source = source
    stacked = [w.make(Reshape((1, *y.type.shape)), y) for y in outs[op.n_carry :]]
    return [*outs[: op.n_carry], *stacked]


def real_only(rule: Rule) -> Rule:
    """A rule that leaves equations of complex numbers as they are."""

    @functools.wraps(rule)
    def checked(w: Decomposer, eqn: Equation) -> Sequence[Atom] | None:
        is_complex = any(x.type.dtype.kind == "c" for x in eqn.inputs)
        return None if is_complex else rule(w, eqn)

    return checked


@real_only
def logsumexp(w: Decomposer, eqn: Equation) -> Sequence[Atom]:
    """m + log(sum(exp(x - m))), where m is the maximum, or 0 if that is infinite or nan."""
    (x,), axes = eqn.inputs, eqn.op.axes  # type: ignore[attr-defined]
    top = w.make(Max(axes), x)
    top = w.make(Where(), w.make(Isfinite(), top), top, literal(0, x.type))
    powers = w.make(Exp(), w.make(Sub(), x, w.broadcast_back(top, x, axes)))
    return [w.make(Add(), w.make(Log(), w.make(Sum(axes), powers)), top)]


@real_only
def softmax(w: Decomposer, eqn: Equation) -> Sequence[Atom]:
    """exp(s) / sum(exp(s)), where s = x - max(x)."""
    (x,), axes = eqn.inputs, eqn.op.axes  # type: ignore[attr-defined]
    if x.type.size == 0:
        return [x]
    _, powers, total = shifted_powers(w, x, axes)
    return [w.make(Div(), powers, w.broadcast_back(total, x, axes))]


@real_only
def log_softmax(w: Decomposer, eqn: Equation) -> Sequence[Atom]:
    """s - log(sum(exp(s))), where s = x - max(x)."""
    (x,), axes = eqn.inputs, eqn.op.axes  # type: ignore[attr-defined]
    if x.type.size == 0:
        return [x]
    below, _, total = shifted_powers(w, x, axes)
    return [w.make(Sub(), below, w.broadcast_back(w.make(Log(), total), x, axes))]


def shifted_powers(w: Decomposer, x: Atom, axes: tuple[int, ...]) -> tuple[Atom, Atom, Atom]:
    """s = x - max(x), exp(s), and its sum."""
    below = w.make(Sub(), x, w.broadcast_back(w.make(Max(axes), x), x, axes))
    powers = w.make(Exp(), below)
    return below, powers, w.make(Sum(axes), powers)


@real_only
def log_softmax_at(w: Decomposer, eqn: Equation) -> Sequence[Atom]:
    """x[i] - max(x) - log(sum(exp(x - max(x)))), without storing the whole row."""
    x, indices = eqn.inputs
    out, axes = eqn.outputs[0], (eqn.op.axis,)  # type: ignore[attr-defined]
    if out.type.size == 0:
        return [w.full(out.type, 0)]
    top = w.make(Max(axes), x)
    total = w.make(Sum(axes), w.make(Exp(), w.make(Sub(), x, w.broadcast_back(top, x, axes))))
    chosen = w.make(Sub(), w.make(TakeAlong(axes[0]), x, indices), w.broadcast_back(top, out, axes))
    return [w.make(Sub(), chosen, w.broadcast_back(w.make(Log(), total), out, axes))]


@real_only
def argmax(w: Decomposer, eqn: Equation) -> Sequence[Atom]:
    return arg_extremum(w, eqn, Max)


@real_only
def argmin(w: Decomposer, eqn: Equation) -> Sequence[Atom]:
    return arg_extremum(w, eqn, Min)


def arg_extremum(w: Decomposer, eqn: Equation, extremum: type[Primitive]) -> Sequence[Atom]:
    """The least index of an element that equals the extremum, or is nan."""
    (x,), axis = eqn.inputs, eqn.op.axis  # type: ignore[attr-defined]
    out = eqn.outputs[0].type
    extreme = w.make(extremum((axis,)), x)
    chosen = w.make(Eq(), x, w.broadcast_back(extreme, x, (axis,)))
    if x.type.dtype.kind == "f":
        chosen = w.make(BitwiseOr(), chosen, w.make(Ne(), x, x))
    n = x.type.shape[axis]
    dtype = "i32" if n < 2**31 else "i64"  # smaller integers put more of them in a vector
    indices = w.make(Iota(x.type.shape, axis, dtype))
    found = w.make(Where(), chosen, indices, Literal(n, DTYPES[dtype]))
    least = w.make(Min((axis,)), found)
    return [least if least.type == out else w.make(Cast(SHORT_NAMES[out.dtype]), least)]


def take_one(w: Decomposer, eqn: Equation) -> Sequence[Atom]:
    (x, indices), axis = eqn.inputs, eqn.op.axis  # type: ignore[attr-defined]
    kept = w.make(Reshape(keepdims_shape(x.type.shape, (axis,))), indices)
    return [w.make(Reshape(indices.type.shape), w.make(TakeAlong(axis), x, kept))]


def stack(w: Decomposer, eqn: Equation) -> Sequence[Atom]:
    axis = eqn.op.axis  # type: ignore[attr-defined]
    shape = eqn.inputs[0].type.shape
    op = Reshape((*shape[:axis], 1, *shape[axis:]))
    return [w.make(Concatenate(axis), *[w.make(op, x) for x in eqn.inputs])]


@real_only
def var(w: Decomposer, eqn: Equation) -> Sequence[Atom]:
    """sum(d * d) / divisor, where d = x - sum(x) / n."""
    (x,), op = eqn.inputs, eqn.op
    n, divisor = op.counts(x.type.shape)  # type: ignore[attr-defined]
    mean = w.make(Div(), w.make(Sum(op.axes), x), literal(n, x.type))  # type: ignore[attr-defined]
    apart = w.make(Sub(), x, w.broadcast_back(mean, x, op.axes))  # type: ignore[attr-defined]
    total = w.make(Sum(op.axes), w.make(Mul(), apart, apart))  # type: ignore[attr-defined]
    return [w.make(Div(), total, literal(divisor, x.type))]


def einsum(w: Decomposer, eqn: Equation) -> Sequence[Atom]:
    terms, out = eqn.op.terms  # type: ignore[attr-defined]
    y = expand_einsum(w, terms, eqn.inputs, out)
    return [w.make(Add(), y, literal(0, y.type)) if isinstance(y, Literal) else y]


def integer_matmul(w: Decomposer, eqn: Equation) -> Sequence[Atom] | None:
    """matmul of dtypes without BLAS: x[..., m, 1, k] * y[..., 1, n, k], summed over k."""
    x, y = eqn.inputs
    if x.type.dtype.kind in "fc":
        return None
    if x.type.ndim > 1:
        x = w.make(Reshape((*x.type.shape[:-1], 1, x.type.shape[-1])), x)
    if y.type.ndim > 1:
        ndim = y.type.ndim
        y = w.make(Transpose((*range(ndim - 2), ndim - 1, ndim - 2)), y)
        if eqn.inputs[0].type.ndim > 1:
            y = w.make(Reshape((*y.type.shape[:-2], 1, *y.type.shape[-2:])), y)
    products = w.make(Mul(), x, y)
    total = w.total(products, (products.type.ndim - 1,))
    return [w.make(Reshape(eqn.outputs[0].type.shape), total)]


@real_only
def round_integers(w: Decomposer, eqn: Equation) -> Sequence[Atom] | None:
    """floor, ceil and trunc of integers return them unchanged."""
    return list(eqn.inputs) if eqn.inputs[0].type.dtype.kind != "f" else None


@real_only
def round_decimals(w: Decomposer, eqn: Equation) -> Sequence[Atom] | None:
    """round to decimals: scale, round, scale back; integers in float64, as NumPy does."""
    (x,), decimals = eqn.inputs, eqn.op.decimals  # type: ignore[attr-defined]
    dtype = x.type.dtype
    if dtype.kind != "f" and decimals >= 0:
        return [x]
    if decimals == 0:
        return None
    y = x if dtype.kind == "f" else w.make(Cast("f64"), x)
    power = literal(10.0 ** abs(decimals), y.type)
    scale, unscale = (Mul(), Div()) if decimals > 0 else (Div(), Mul())
    y = w.make(unscale, w.make(Round(0), w.make(scale, y, power)), power)
    return [y if dtype.kind == "f" else w.make(Cast(SHORT_NAMES[dtype]), y)]


@real_only
def never_true(w: Decomposer, eqn: Equation) -> Sequence[Atom] | None:
    """isnan and isinf of integers, which are all finite."""
    return None if eqn.inputs[0].type.dtype.kind == "f" else [w.full(eqn.outputs[0].type, False)]


@real_only
def always_true(w: Decomposer, eqn: Equation) -> Sequence[Atom] | None:
    """isfinite of integers."""
    return None if eqn.inputs[0].type.dtype.kind == "f" else [w.full(eqn.outputs[0].type, True)]


@real_only
def polygamma(w: Decomposer, eqn: Equation) -> Sequence[Atom]:
    """polygamma(n, x) = (-1)**(n + 1) n! zeta(n + 1, x), in float64."""
    (x,), n = eqn.inputs, eqn.op.n  # type: ignore[attr-defined]
    wide = x if isinstance(x, Literal) or x.type.dtype == DTYPES["f64"] else w.make(Cast("f64"), x)
    wide = literal(wide.value, Type(DTYPES["f64"], ())) if isinstance(wide, Literal) else wide
    numbers = (n + 1, polygamma_factor(n), LOWEST, math.nan)
    number, factor, lowest, nan = (literal(v, Type(DTYPES["f64"], ())) for v in numbers)
    wide = w.make(Where(), w.make(Lt(), wide, lowest), nan, wide)
    y = w.make(Mul(), w.make(Zeta(), number, wide), factor)
    return [y if y.type.dtype == x.type.dtype else w.make(Cast(SHORT_NAMES[x.type.dtype]), y)]
