"""Powers, exponentials and products of matrices."""

from __future__ import annotations

import operator
from itertools import pairwise
from typing import Any

from lucid.errors import ArgumentError, ShapeError
from lucid.linalg.arguments import as_matrix
from lucid.linalg.solving import inv
from lucid.ops.core.arguments import aliases, public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor, promote
from lucid.ops.elementwise.complexes import conj
from lucid.ops.linalg import adding_products
from lucid.ops.linalg.adding_products import chain_matmul
from lucid.ops.linalg.contraction import product
from lucid.ops.linalg.known_derivatives import identity_like
from lucid.ops.linalg.matrices import check_matrix
from lucid.ops.linalg.matrix_exp import MatrixExp
from lucid.ops.reduce.cumulative import cumprod
from lucid.ops.shape import diagonals
from lucid.ops.shape.creation import ones_like
from lucid.ops.shape.joining import cat
from lucid.tape.bind import bind


@public_function("lucid", "Tensor", "linalg")
def matrix_power(input: Any, n: int) -> Any:
    """The n-th power of a square matrix; of its inverse if n is negative.

    >>> import lucid
    >>> lucid.linalg.matrix_power(lucid.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    Tensor([[1., 3.],
            [0., 1.]])
    """
    A, n = as_tensor(input), operator.index(n)
    if A.dtype.kind in "fc":
        check_matrix("matrix_power", A.type)
    elif A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ShapeError(f"matrix_power: {A.shape}: the matrix must be square")
    if n < 0:
        A, n = inv(A), -n
    power, square = None, A
    while n:
        if n & 1:
            power = square if power is None else product(power, square)
        n >>= 1
        square = product(square, square) if n else square
    return identity_like(A) if power is None else power


@public_function("lucid", "Tensor", "linalg")
def matrix_exp(input: Any) -> Any:
    """The exponential of a square matrix, the sum of Aᵏ/k! over k.

    >>> import lucid
    >>> lucid.linalg.matrix_exp(lucid.zeros(2, 2))
    Tensor([[1., 0.],
            [0., 1.]])
    """
    return bind(MatrixExp(), as_matrix("matrix_exp", input))


@public_function("linalg")
def multi_dot(tensors: Any) -> Any:
    """The product of matrices in the order that takes the fewest multiplications.

    The first and the last may be vectors.
    """
    xs = [as_tensor(x) for x in tensors]
    if len(xs) < 2:
        raise ArgumentError(f"multi_dot: {len(xs)} operands; give two or more")
    for i, x in enumerate(xs):
        if x.ndim != 2 and not (x.ndim == 1 and i in (0, len(xs) - 1)):
            raise ShapeError(f"multi_dot: operand {i} of {x.shape} is not a matrix")
    xs = promote(*xs)
    first, last = xs[0].ndim == 1, xs[-1].ndim == 1
    xs[0] = xs[0].reshape(1, -1) if first else xs[0]
    xs[-1] = xs[-1].reshape(-1, 1) if last else xs[-1]
    for i, (a, b) in enumerate(pairwise(xs)):
        if a.shape[1] != b.shape[0]:
            facts = f"inner sizes {a.shape[1]} and {b.shape[0]} of operands {i} and {i + 1} differ"
            raise ShapeError(f"multi_dot: {facts}")
    y = chain_matmul(xs)
    return y.reshape(([] if first else [y.shape[0]]) + ([] if last else [y.shape[1]]))


@public_function("linalg")
def vander(x: Any, *, N: Any = None) -> Any:
    """The Vandermonde matrix: the powers x⁰, x¹, ..., xᴺ⁻¹ of each number in a row.

    >>> import lucid
    >>> lucid.linalg.vander(lucid.tensor([2.0, 3.0]), N=3)
    Tensor([[1., 2., 4.],
            [1., 3., 9.]])
    """
    x = as_tensor(x)
    x = x if x.ndim else x.reshape(1)
    columns = x.shape[-1] if N is None else operator.index(N)
    if columns < (0 if N is None else 1):
        raise ArgumentError(f"vander: N={columns}; it must be at least 1")
    if columns == 0:
        return x.reshape(*x.shape, 1)[..., :0]
    x = x.reshape(*x.shape, 1)
    if columns == 1:
        return ones_like(x)
    repeated = x.expand(*x.shape[:-1], columns - 1)
    return cumprod(cat([ones_like(x), repeated], -1), -1)


@public_function("linalg")
@aliases(dim="axis")
def vecdot(x: Any, y: Any, *, dim: int = -1) -> Any:
    """The sum of conj(x) · y along `dim`; the other axes broadcast.

    >>> import lucid
    >>> lucid.linalg.vecdot(lucid.ones(2, 3), lucid.tensor([1.0, 2.0, 3.0]))
    Tensor([6., 6.])
    """
    x, y = promote(as_tensor(x), as_tensor(y))
    total = conj(x) * y
    return total.sum(dim=canonicalize_axis("vecdot", dim, total.ndim))


@public_function("linalg")
@aliases(dim="axis")
def cross(input: Any, other: Any, *, dim: int = -1) -> Any:
    """The cross product of 3-vectors along `dim`; the other axes broadcast.

    >>> import lucid
    >>> lucid.linalg.cross(lucid.tensor([1.0, 0.0, 0.0]), lucid.tensor([0.0, 1.0, 0.0]))
    Tensor([0., 0., 1.])
    """
    x, y = as_tensor(input), as_tensor(other)
    if x.ndim != y.ndim:
        raise ShapeError(f"cross: {x.shape} and {y.shape}: the numbers of axes differ")
    return adding_products.cross(x, y, dim)


@public_function("linalg")
def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The diagonals of matrices, as the last axis of the result."""
    return diagonals.diagonal(A, offset, dim1, dim2)
