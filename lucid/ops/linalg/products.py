"""Products of vectors and matrices, all through matmul and einsum."""

from __future__ import annotations

import math
from string import ascii_letters
from typing import Any

from lucid.errors import ShapeError
from lucid.ops.core.arguments import public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.kinds import conjugate
from lucid.ops.core.promote import as_tensor, promote
from lucid.ops.linalg.contraction import MATMUL, bind_einsum
from lucid.ops.shape.movement import Reshape, Transpose
from lucid.ops.shape.shaping import ravel
from lucid.public.declare import public
from lucid.tape.bind import bind


def promote_ranks(name: str, xs: tuple[Any, ...], ndims: tuple[int, ...]) -> list[Any]:
    """Promote operands to one dtype and check their numbers of axes."""
    tensors = promote(*[as_tensor(x) for x in xs])
    if tuple(x.ndim for x in tensors) != ndims:
        shapes = " and ".join(str(x.shape) for x in tensors)
        wanted = " and ".join(map(str, ndims))
        facts = f"shapes {shapes}; it takes operands with {wanted} axes"
        raise ShapeError(f"{name}: {facts} (matmul takes others)")
    return tensors


@public("lucid", "Tensor")
def mm(input: Any, mat2: Any) -> Any:
    """The product of two matrices."""
    return bind(MATMUL, *promote_ranks("mm", (input, mat2), (2, 2)))


@public("lucid", "Tensor")
def bmm(input: Any, mat2: Any) -> Any:
    """The products of matrices, pair by pair along axis 0."""
    a, b = promote_ranks("bmm", (input, mat2), (3, 3))
    if a.shape[0] != b.shape[0]:
        raise ShapeError(f"bmm: {a.shape[0]} and {b.shape[0]} matrices")
    return bind(MATMUL, a, b)


@public("lucid", "Tensor")
def mv(input: Any, vec: Any) -> Any:
    """A matrix times a vector."""
    return bind(MATMUL, *promote_ranks("mv", (input, vec), (2, 1)))


@public("lucid", "Tensor")
def dot(input: Any, tensor: Any) -> Any:
    """The dot product of two vectors; with more axes, NumPy's dot.

    >>> import lucid
    >>> lucid.dot(lucid.tensor([1.0, 2.0]), lucid.tensor([3.0, 4.0]))
    Tensor(11.)
    """
    x, other = promote(as_tensor(input), as_tensor(tensor))
    if not x.ndim or not other.ndim:
        return x * other
    if x.ndim <= 2 or other.ndim == 1:
        if other.ndim <= 2:
            return bind(MATMUL, x, other)
    return tensordot(x, other, ((-1,), (-2 if other.ndim > 1 else -1,)))


@public("lucid", "Tensor")
def vdot(input: Any, other: Any) -> Any:
    """The inner product of all elements: the conjugate of `input` times `other`, summed."""
    x, other = promote(as_tensor(input), as_tensor(other))
    return bind(MATMUL, conjugate(ravel(x)), ravel(other))


@public("lucid", "Tensor")
def inner(input: Any, other: Any) -> Any:
    """Sums of products over the last axis of both."""
    x, other = promote(as_tensor(input), as_tensor(other))
    if not x.ndim or not other.ndim:
        return x * other
    return tensordot(x, other, ((-1,), (-1,)))


@public("lucid", "Tensor", aliases=("ger",))
def outer(input: Any, vec2: Any) -> Any:
    """The matrix of all products of elements of two vectors."""
    x, vec2 = promote(as_tensor(input), as_tensor(vec2))
    return x.reshape(-1, 1) * vec2.reshape(1, -1)


@public_function("lucid", "Tensor")
def tensordot(a: Any, b: Any, dims: Any = 2, *, axes: Any = None) -> Any:
    """Sums of products over the last `dims` axes of `a` and the first of `b`, or over two lists.

    >>> import lucid
    >>> lucid.tensordot(lucid.ones(2, 3, 4), lucid.ones(4, 3, 5), dims=([1, 2], [1, 0])).shape
    (2, 5)
    """
    x, other = promote(as_tensor(a), as_tensor(b))
    left, right = contracted_axes(x, other, dims if axes is None else axes)
    x, other = sum_broadcast_axes(x, left, other, right), sum_broadcast_axes(other, right, x, left)
    keep_left = [i for i in range(x.ndim) if i not in left]
    keep_right = [i for i in range(other.ndim) if i not in right]
    rows = tuple(x.shape[i] for i in keep_left)
    columns = tuple(other.shape[i] for i in keep_right)
    inner = math.prod(x.shape[i] for i in left)
    x = bind(Transpose((*keep_left, *left)), x)
    other = bind(Transpose((*right, *keep_right)), other)
    x = bind(Reshape((math.prod(rows), inner)), x)
    other = bind(Reshape((inner, math.prod(columns))), other)
    return bind(Reshape(rows + columns), bind(MATMUL, x, other))


def contracted_axes(x: Any, other: Any, dims: Any) -> tuple[list[int], list[int]]:
    if isinstance(dims, int):
        if not 0 <= dims <= min(x.ndim, other.ndim):
            raise ShapeError(f"tensordot: {dims} axes of {x.shape} and {other.shape}")
        dims = range(x.ndim - dims, x.ndim), range(dims)
    pair = [d if isinstance(d, (list, tuple, range)) else (d,) for d in dims]
    left = [canonicalize_axis("tensordot", d, x.ndim) for d in pair[0]]
    right = [canonicalize_axis("tensordot", d, other.ndim) for d in pair[1]]
    sizes = [(x.shape[i], other.shape[j]) for i, j in zip(left, right)]
    if len(left) != len(right) or any(m != n and 1 not in (m, n) for m, n in sizes):
        facts = f"axes {left} of {x.shape} and {right} of {other.shape} differ in size"
        raise ShapeError(f"tensordot: {facts}")
    return left, right


def sum_broadcast_axes(x: Any, axes: list[int], other: Any, its: list[int]) -> Any:
    """Sum `x` over contracted axes that have size 1 in the other operand, which broadcasts."""
    alone = [i for i, j in zip(axes, its) if other.shape[j] == 1 != x.shape[i]]
    return x.sum(dim=tuple(alone), keepdim=True) if alone else x


@public("lucid", "Tensor", numpy="kron")
def kron(input: Any, other: Any) -> Any:
    """The Kronecker product: every element of `input` times all of `other`."""
    x, other = promote(as_tensor(input), as_tensor(other))
    ndim = max(x.ndim, other.ndim)
    a, b = (1,) * (ndim - x.ndim) + x.shape, (1,) * (ndim - other.ndim) + other.shape
    names = ascii_letters[: 2 * ndim]
    out = "".join(names[i] + names[ndim + i] for i in range(ndim))
    y = bind_einsum([names[:ndim], names[ndim:]], out, x.reshape(a), other.reshape(b))
    return y.reshape(tuple(m * n for m, n in zip(a, b)))
