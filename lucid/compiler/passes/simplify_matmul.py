"""Rules of `simplify` for matrix products: one product instead of many, or none at all.

BLAS adds in an order of its own, so here sums may be joined. A product with an identity matrix, as
the basis vectors of a jacobian make it, is its other operand: elements are selected. A matrix that
holds inf or nan is selected from as well, where the interpreter would multiply these by 0.
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
from lucid.ops.shape.creation import Iota
from lucid.ops.shape.movement import Reshape, Transpose

Found = Atom | None


def products(w: Rewriter, eqn: Equation) -> Found:
    """The first rule that applies to a product or a sum of products."""
    if isinstance(eqn.op, Sum):
        return summed(w, eqn)
    if not isinstance(eqn.op, Matmul) or not all(isinstance(x, Var) for x in eqn.inputs):
        return None
    return identity(w, eqn) or shared(w, eqn)


def identity(w: Rewriter, eqn: Equation) -> Found:
    """x @ 1 = x;  1 @ y = y, where 1 is the identity matrix."""
    x, y = eqn.inputs
    if is_identity(w, y) and x.type == eqn.outputs[0].type:
        return x
    return y if is_identity(w, x) and y.type == eqn.outputs[0].type else None


def is_identity(w: Rewriter, x: Atom) -> bool:
    """Is `x` 1 where its two indices are equal and 0 elsewhere?"""
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


def shared(w: Rewriter, eqn: Equation) -> Found:
    """x @ y[b] for many vectors y[b] (k, 1) is the product y @ x', one for all."""
    x, y = eqn.inputs
    if x.type.ndim != 2 or y.type.ndim < 3 or y.type.shape[-1] != 1 or not eqn.outputs[0].type.size:
        return None
    k = y.type.shape[-2]
    rows = reshaped(w, y, (math.prod(y.type.shape[:-2]), k))
    turned = swapped(w, x)
    out = Type(x.type.dtype, (rows.type.shape[0], x.type.shape[0]))
    found = identity(w, Equation(Matmul(), (rows, turned), (Var(out),)))
    found = w.make(Matmul(), rows, turned) if found is None else found
    return reshaped(w, found, eqn.outputs[0].type.shape)


def summed(w: Rewriter, eqn: Equation) -> Found:
    """The sum over b of x[b]' @ y[b] is X' @ Y, where X and Y hold all rows of x and y."""
    made = w.producer(eqn.inputs[0])
    if made is None or not isinstance(made.op, Matmul):
        return None
    x, y = made.inputs
    outer = x.type.shape[:-2]
    turned = w.producer(x)
    if not outer or y.type.shape[:-2] != outer or eqn.op.axes != tuple(range(len(outer))):  # type: ignore[attr-defined]
        return None
    if turned is None or turned.op != Transpose(swap(x.type.ndim)):
        return None
    source = w.producer(y)
    if source is not None and isinstance(source.op, Transpose):
        return None
    rows = math.prod(outer) * x.type.shape[-1]
    left = reshaped(w, turned.inputs[0], (rows, x.type.shape[-2]))
    right = reshaped(w, y, (rows, y.type.shape[-1]))
    return w.make(Matmul(), w.make(Transpose((1, 0)), left), right)


def swap(ndim: int) -> tuple[int, ...]:
    """The permutation that swaps the last two axes."""
    return (*range(ndim - 2), ndim - 1, ndim - 2)


def swapped(w: Rewriter, x: Atom) -> Atom:
    """A matrix transposed, from before it was last transposed."""
    made = w.producer(x)
    if made is not None and made.op == Transpose((1, 0)):
        return made.inputs[0]
    return w.make(Transpose((1, 0)), x)


def reshaped(w: Rewriter, x: Atom, shape: tuple[int, ...]) -> Atom:
    """`x` in another shape, from before it was last reshaped."""
    made = w.producer(x)
    if made is not None and isinstance(made.op, Reshape):
        x = made.inputs[0]
    return x if x.type.shape == shape else w.make(Reshape(shape), x)
