"""decompose: Graph -> Graph in which composite operations are expanded, so that they fuse.

logsumexp       max, sub, exp, sum, log; softmax, log_softmax and log_softmax_at likewise
argmax, argmin  the least index of the extreme element
einsum          transposes, reshapes, products and sums of two operands at a time
matmul          of integers: products and sums; of empty arrays: zeros
any of float16  the same in float32, rounded (`promote_float16`)
call            its Graph, as for checkpoint; for custom_vjp and custom_jvp the forward Graph
matrix_exp      a Padé approximation and squarings
precomputed_det the value it is given, like other operations that only add a derivative
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lucid.compiler.kernels.scalar_code import LLVM
from lucid.compiler.passes.expand.expand_einsum import expand_einsum
from lucid.compiler.passes.expand.expand_matrix_exp import expand_matrix_exp
from lucid.compiler.passes.expand.expand_searchsorted import expand_searchsorted
from lucid.compiler.passes.expand.promote_float16 import promote_float16
from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.infer import infer
from lucid.ir.primitive import Primitive
from lucid.ir.rewrite import Rewriter, dce
from lucid.ir.types import DTYPES, SHORT_NAMES, Type
from lucid.ops.elementwise.arithmetic import Add, Cast, Div, Mul, Sub
from lucid.ops.elementwise.conditional import Where
from lucid.ops.elementwise.exponential import Exp, Log
from lucid.ops.elementwise.logic import BitwiseOr, Eq, Isfinite, Isinf, Isnan, Ne
from lucid.ops.elementwise.rounding import Ceil, Floor, Round, Trunc
from lucid.ops.higher_order.call import Call
from lucid.ops.higher_order.checkpoint_op import Checkpoint
from lucid.ops.higher_order.custom_derivative import CustomFunction, CustomJvp, CustomVjp
from lucid.ops.higher_order.implicit_solve import LinearSolve, Root
from lucid.ops.higher_order.region import Region
from lucid.ops.index.gather_scatter import Gather, TakeAlong
from lucid.ops.index.searching import Searchsorted
from lucid.ops.linalg.contraction import Einsum, Matmul
from lucid.ops.linalg.known_derivatives import PrecomputedDet, PrecomputedPinv, PrecomputedSlogdet
from lucid.ops.linalg.matrix_exp import MatrixExp
from lucid.ops.nn.softmax import LogSoftmax, LogSoftmaxAt, Softmax
from lucid.ops.reduce.extrema import Argmax, Argmin, Max, Min
from lucid.ops.reduce.reduction import AllTrue, AnyTrue, LogSumExp, Prod, Sum
from lucid.ops.shape.creation import Full, Iota
from lucid.ops.shape.movement import Broadcast, Reshape, Transpose
from lucid.ops.special.error_and_gamma import Polygamma, polygamma_factor
from lucid.ops.special.zeta import Zeta

EMPTY: dict[type, Any] = {
    Sum: 0, Prod: 1, AnyTrue: False, AllTrue: True, Matmul: 0, Einsum: 0, LogSumExp: -math.inf,
}  # fmt: skip


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


# Operations that hold the Graph of their value, and the field that holds it.
INLINED = {
    Call: "graph", Region: "graph", Checkpoint: "graph", CustomVjp: "forward", CustomJvp: "forward",
    CustomFunction: "forward",
    LinearSolve: "solve", Root: "solve",
}  # fmt: skip


def decompose_equation(w: Decomposer, eqn: Equation) -> Sequence[Atom] | None:
    """The values that replace the results of an equation, or None if it stays."""
    op = type(eqn.op)
    if op in INLINED:
        inner = getattr(eqn.op, INLINED[op])
        source, outs = w.source, w.inline(inner, eqn.inputs[: len(inner.inputs)])
        w.source = source
        return outs
    if op in (PrecomputedDet, PrecomputedPinv, PrecomputedSlogdet):
        return eqn.inputs[-len(eqn.outputs) :]
    if op is MatrixExp:
        return expand_matrix_exp(w, eqn)
    promoted = promote_float16(w, eqn)
    if promoted is not None:
        return promoted
    has_code = all(SHORT_NAMES[x.type.dtype] in LLVM for x in eqn.inputs)
    if not has_code and (op is not Einsum or eqn.inputs[0].type.dtype.kind != "c"):
        return None
    if op in EMPTY and any(x.type.size == 0 for x in eqn.inputs):
        return [w.full(eqn.outputs[0].type, EMPTY[op])]
    if op in (Max, Min) and eqn.outputs[0].type.size == 0:
        return [w.full(eqn.outputs[0].type, 0)]
    if op in (Gather, TakeAlong) and eqn.inputs[1].type.size == 0:
        return [w.full(eqn.outputs[0].type, 0)]
    rule = RULES.get(op)
    return None if rule is None else rule(w, eqn)


def logsumexp(w: Decomposer, eqn: Equation) -> Sequence[Atom]:
    """m + log(sum(exp(x - m))), where m is the maximum, or 0 if that is infinite or nan."""
    (x,), axes = eqn.inputs, eqn.op.axes  # type: ignore[attr-defined]
    top = w.make(Max(axes), x)
    top = w.make(Where(), w.make(Isfinite(), top), top, literal(0, x.type))
    powers = w.make(Exp(), w.make(Sub(), x, w.broadcast_back(top, x, axes)))
    return [w.make(Add(), w.make(Log(), w.make(Sum(axes), powers)), top)]


def softmax(w: Decomposer, eqn: Equation) -> Sequence[Atom]:
    """s = x - max(x); softmax is exp(s) / sum(exp(s)), log_softmax is s - log(sum(exp(s)))."""
    (x,), axes = eqn.inputs, eqn.op.axes  # type: ignore[attr-defined]
    if x.type.size == 0:
        return [x]
    below = w.make(Sub(), x, w.broadcast_back(w.make(Max(axes), x), x, axes))
    powers = w.make(Exp(), below)
    total = w.make(Sum(axes), powers)
    if isinstance(eqn.op, Softmax):
        return [w.make(Div(), powers, w.broadcast_back(total, x, axes))]
    return [w.make(Sub(), below, w.broadcast_back(w.make(Log(), total), x, axes))]


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


def arg_extremum(w: Decomposer, eqn: Equation) -> Sequence[Atom]:
    """The least index of an element that equals the extremum, or is nan."""
    (x,), axis = eqn.inputs, eqn.op.axis  # type: ignore[attr-defined]
    out = eqn.outputs[0].type
    extreme = w.make((Max if isinstance(eqn.op, Argmax) else Min)((axis,)), x)
    chosen = w.make(Eq(), x, w.broadcast_back(extreme, x, (axis,)))
    if x.type.dtype.kind == "f":
        chosen = w.make(BitwiseOr(), chosen, w.make(Ne(), x, x))
    n = x.type.shape[axis]
    dtype = "i32" if n < 2**31 else "i64"  # smaller integers put more of them in a vector
    indices = w.make(Iota(x.type.shape, axis, dtype))
    found = w.make(Where(), chosen, indices, Literal(n, DTYPES[dtype]))
    least = w.make(Min((axis,)), found)
    return [least if least.type == out else w.make(Cast(SHORT_NAMES[out.dtype]), least)]


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


def round_integers(w: Decomposer, eqn: Equation) -> Sequence[Atom] | None:
    """floor, ceil and trunc of integers return them unchanged."""
    return list(eqn.inputs) if eqn.inputs[0].type.dtype.kind != "f" else None


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


def test_integers(w: Decomposer, eqn: Equation) -> Sequence[Atom] | None:
    """isnan, isinf and isfinite of integers, which are all finite."""
    if eqn.inputs[0].type.dtype.kind == "f":
        return None
    return [w.full(eqn.outputs[0].type, isinstance(eqn.op, Isfinite))]


def polygamma(w: Decomposer, eqn: Equation) -> Sequence[Atom]:
    """polygamma(n, x) = (-1)**(n + 1) n! zeta(n + 1, x), in float64."""
    (x,), n = eqn.inputs, eqn.op.n  # type: ignore[attr-defined]
    wide = x if isinstance(x, Literal) or x.type.dtype == DTYPES["f64"] else w.make(Cast("f64"), x)
    wide = literal(wide.value, Type(DTYPES["f64"], ())) if isinstance(wide, Literal) else wide
    number, factor = (literal(v, Type(DTYPES["f64"], ())) for v in (n + 1, polygamma_factor(n)))
    y = w.make(Mul(), w.make(Zeta(), number, wide), factor)
    return [y if y.type.dtype == x.type.dtype else w.make(Cast(SHORT_NAMES[x.type.dtype]), y)]


RULES: dict[type, Any] = {
    Polygamma: polygamma,
    Floor: round_integers, Ceil: round_integers, Trunc: round_integers, Round: round_decimals,
    Isnan: test_integers, Isinf: test_integers, Isfinite: test_integers,
    LogSumExp: logsumexp, Softmax: softmax, LogSoftmax: softmax,
    LogSoftmaxAt: log_softmax_at,
    Argmax: arg_extremum, Argmin: arg_extremum, Einsum: einsum, Searchsorted: expand_searchsorted,
    Matmul: integer_matmul,
}  # fmt: skip
