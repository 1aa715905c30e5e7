"""Products added to a tensor (addmm and related functions), cross products, matrix chains."""

from __future__ import annotations

from typing import Any

from lucid.errors import ArgumentError, ShapeError
from lucid.ir.types import broadcast_shapes
from lucid.ops.core.apply import dtype_error
from lucid.ops.core.arguments import is_one, public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor, promote
from lucid.ops.linalg.contraction import MATMUL, bind_einsum
from lucid.ops.linalg.products import bmm, mm, mv, outer, promote_ranks
from lucid.ops.shape.joining import roll
from lucid.ops.shape.movement import broadcast_to
from lucid.tape.bind import bind
from lucid.tape.node import Traced


def scale(x: Any, factor: Any) -> Any:
    return x if is_one(factor) else x * factor


def add_scaled(name: str, x: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """Return beta * x + alpha * product; with beta = 0, x is ignored, even its nan."""
    x, product = promote(as_tensor(x), product)
    if x.dtype.kind in "biu" and any(isinstance(f, float) for f in (beta, alpha)):
        raise ArgumentError(f"{name}: beta and alpha must be integers for integer operands")
    try:
        x = broadcast_to(x, product.shape)
    except ShapeError:
        facts = f"shape {x.shape} does not broadcast to the product's shape {product.shape}"
        raise ShapeError(f"{name}: {facts}") from None
    product = scale(product, alpha)
    if not isinstance(beta, Traced) and beta == 0:
        return product
    return scale(x, beta) + product


@public_function("lucid", "Tensor", inplace=True)
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * (mat1 @ mat2)` for matrices.

    >>> import lucid
    >>> lucid.addmm(lucid.ones(1), lucid.ones(2, 3), lucid.ones(3, 2), alpha=2)
    Tensor([[7., 7.],
            [7., 7.]])
    """
    return add_scaled("addmm", input, mm(mat1, mat2), beta, alpha)


@public_function("lucid", "Tensor", inplace_function=True)
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * (mat @ vec)` for a matrix and a vector."""
    return add_scaled("addmv", input, mv(mat, vec), beta, alpha)


@public_function("lucid", "Tensor", inplace=True)
def addr(input: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * outer(vec1, vec2)` for vectors."""
    return add_scaled(
        "addr", input, outer(*promote_ranks("addr", (vec1, vec2), (1, 1))), beta, alpha
    )


@public_function("lucid", "Tensor", inplace=True)
def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * (batch1 @ batch2)` for matrices, pair by pair along axis 0."""
    return add_scaled("baddbmm", input, bmm(batch1, batch2), beta, alpha)


@public_function("lucid", "Tensor", inplace=True)
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha` times the sum of the products of matrices, pair by pair in axis 0."""
    a, b = promote_ranks("addbmm", (batch1, batch2), (3, 3))
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise ShapeError(f"addbmm: shapes {a.shape} and {b.shape} do not match")
    return add_scaled("addbmm", input, bind_einsum(["bij", "bjk"], "ik", a, b), beta, alpha)


@public_function("lucid", "Tensor")
def cross(input: Any, other: Any, dim: Any = None, *, axis: Any = None) -> Any:
    """The cross products of 3-vectors along `dim`, by default the first axis of size 3.

    >>> import lucid
    >>> lucid.cross(lucid.tensor([1.0, 0.0, 0.0]), lucid.tensor([0.0, 1.0, 0.0]))
    Tensor([0., 0., 1.])
    """
    x, other = promote(as_tensor(input), as_tensor(other))
    if x.dtype.kind == "b":
        raise dtype_error("cross", x.dtype, "the difference of booleans is not defined")
    try:
        shape = broadcast_shapes(x.shape, other.shape)
    except ShapeError as error:
        raise ShapeError(f"cross: {error}") from None
    x, other = broadcast_to(x, shape), broadcast_to(other, shape)
    dim = dim if axis is None else axis
    if dim is None:
        dim = next((i for i, n in enumerate(shape) if n == 3), None)
    if dim is None or not shape or shape[canonicalize_axis("cross", dim, len(shape))] != 3:
        facts = f"vectors along axis {dim} of {shape}"
        raise ShapeError(f"cross: {facts}; they must have three elements")
    one, two = (lambda v: roll(v, -1, dim)), (lambda v: roll(v, -2, dim))
    return one(x) * two(other) - two(x) * one(other)


@public_function()
def chain_matmul(*matrices: Any) -> Any:
    """The product of matrices, multiplied in the order that takes the fewest operations."""
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    if not matrices:
        raise ShapeError("chain_matmul: give at least one matrix")
    xs = promote(*[as_tensor(x) for x in matrices])
    for x, y in zip(xs, [*xs[1:], None]):
        if x.ndim != 2 or (y is not None and (y.ndim != 2 or x.shape[1] != y.shape[0])):
            shapes = ", ".join(str(x.shape) for x in xs)
            raise ShapeError(f"chain_matmul: matrices of {shapes} cannot be chained")
    return multiply_chain(
        xs, optimal_splits([xs[0].shape[0], *[x.shape[1] for x in xs]]), 0, len(xs) - 1
    )


def optimal_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Return, for every part of a chain, the matrix after which to split it."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            costs = [
                cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            ]
            cost[i, j] = min(costs)
            split[i, j] = i + costs.index(cost[i, j])
    return split


def multiply_chain(xs: list[Any], split: dict[tuple[int, int], int], i: int, j: int) -> Any:
    if i == j:
        return xs[i]
    k = split[i, j]
    return bind(MATMUL, multiply_chain(xs, split, i, k), multiply_chain(xs, split, k + 1, j))
