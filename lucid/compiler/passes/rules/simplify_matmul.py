"""Rules of `simplify` for matrix products: one product instead of many, or none at all.

BLAS sums in its own order, so sums may be merged here. A product with an identity matrix, as the
basis vectors of a jacobian create, is replaced by its other operand. That holds for operands with
inf or nan too, which the interpreter would multiply by 0.
"""

from __future__ import annotations

import math

from lucid.ir.graph import Atom, Equation, Var
from lucid.ir.rewrite import Rewriter
from lucid.ir.types import Type
from lucid.ops.elementwise.arithmetic import Cast
from lucid.ops.elementwise.logic import Eq
from lucid.ops.linalg.contraction import Matmul
from lucid.ops.reduce.reduction import Sum
from lucid.ops.shape.full_and_iota import Iota
from lucid.ops.shape.movement import Reshape, Transpose

Found = Atom | None


def simplify_matmul(w: Rewriter, eqn: Equation) -> Found:
    """The first rule that applies to a product or a sum of products."""
    if isinstance(eqn.op, Sum):
        return merge_sum(w, eqn)
    if not isinstance(eqn.op, Matmul) or not all(isinstance(x, Var) for x in eqn.inputs):
        return None
    return drop_identity(w, eqn) or merge_vectors(w, eqn)


def drop_identity(w: Rewriter, eqn: Equation) -> Found:
    """x @ I = x;  I @ y = y, where I is the identity matrix."""
    x, y = eqn.inputs
    if is_identity(w, y) and x.type == eqn.outputs[0].type:
        return x
    return y if is_identity(w, x) and y.type == eqn.outputs[0].type else None


def is_identity(w: Rewriter, x: Atom) -> bool:
    """True if `x` is the identity matrix, written as a comparison of indices."""
    made = w.producer(x)
    while made is not None and isinstance(made.op, (Cast, Transpose)):
        x, made = made.inputs[0], w.producer(made.inputs[0])
    if made is None or not isinstance(made.op, Eq) or x.type.ndim != 2:
        return False
    indices = [w.producer(operand) for operand in made.inputs]
    axes = {
        index.op.axis
        for index, operand in zip(indices, made.inputs)
        if index is not None and isinstance(index.op, Iota) and operand.type.shape == x.type.shape
    }
    return axes == {0, 1} and x.type.shape[0] == x.type.shape[1]


def merge_vectors(w: Rewriter, eqn: Equation) -> Found:
    """x @ y[b] for a batch of column vectors y[b] is one product: y @ x'."""
    x, y = eqn.inputs
    if x.type.ndim != 2 or y.type.ndim < 3 or y.type.shape[-1] != 1 or not eqn.outputs[0].type.size:
        return None
    k = y.type.shape[-2]
    rows = reshape(w, y, (math.prod(y.type.shape[:-2]), k))
    transposed = transpose(w, x)
    out = Type(x.type.dtype, (rows.type.shape[0], x.type.shape[0]))
    found = drop_identity(w, Equation(Matmul(), (rows, transposed), (Var(out),)))
    found = w.make(Matmul(), rows, transposed) if found is None else found
    return reshape(w, found, eqn.outputs[0].type.shape)


def merge_sum(w: Rewriter, eqn: Equation) -> Found:
    """The sum over b of x[b]' @ y[b] is X' @ Y, where X and Y hold all rows of x and y."""
    made = w.producer(eqn.inputs[0])
    if made is None or not isinstance(made.op, Matmul):
        return None
    x, y = made.inputs
    outer = x.type.shape[:-2]
    transposed = w.producer(x)
    if not outer or y.type.shape[:-2] != outer or eqn.op.axes != tuple(range(len(outer))):  # type: ignore[attr-defined]
        return None
    if transposed is None or transposed.op != Transpose(swap_last_axes(x.type.ndim)):
        return None
    source = w.producer(y)
    if source is not None and isinstance(source.op, Transpose):
        return None
    rows = math.prod(outer) * x.type.shape[-1]
    left = reshape(w, transposed.inputs[0], (rows, x.type.shape[-2]))
    right = reshape(w, y, (rows, y.type.shape[-1]))
    return w.make(Matmul(), w.make(Transpose((1, 0)), left), right)


def swap_last_axes(ndim: int) -> tuple[int, ...]:
    """The permutation that swaps the last two axes."""
    return (*range(ndim - 2), ndim - 1, ndim - 2)


def transpose(w: Rewriter, x: Atom) -> Atom:
    """The transpose of a matrix, which cancels a transpose that produced it."""
    made = w.producer(x)
    if made is not None and made.op == Transpose((1, 0)):
        return made.inputs[0]
    return w.make(Transpose((1, 0)), x)


def reshape(w: Rewriter, x: Atom, shape: tuple[int, ...]) -> Atom:
    """`x` in another shape, skipping a reshape that produced `x`."""
    made = w.producer(x)
    if made is not None and isinstance(made.op, Reshape):
        x = made.inputs[0]
    return x if x.type.shape == shape else w.make(Reshape(shape), x)
