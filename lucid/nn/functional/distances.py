"""Distances and similarities of vectors."""

from __future__ import annotations

from typing import Any

from lucid.nn.functional.arguments import as_reals, check_number
from lucid.ops.core.arguments import aliases, public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import promote_tensors
from lucid.ops.elementwise.conditional import clamp
from lucid.ops.reduce.statistics import norm
from lucid.ops.shape.shaping import broadcast_tensors


@public_function("lucid", "nn.functional")
def cosine_similarity(
    x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8, *, axis: Any = None
) -> Any:
    """x1·x2 / (|x1| |x2|) along `dim`, with norms of at least `eps`.

    >>> import lucid
    >>> lucid.nn.functional.cosine_similarity(
    ...     lucid.tensor([2.0, 0.0]), lucid.tensor([-3.0, 0.0]), dim=0)
    Tensor(-1.)
    """
    x, y = broadcast_tensors(*as_reals("cosine_similarity", x1, x2))
    at = canonicalize_axis("cosine_similarity", dim if axis is None else axis, x.ndim)
    least = check_number("cosine_similarity", eps, "eps")
    a, b = (clamp(norm(v, 2, axis=at, keepdim=True), least) for v in (x, y))
    return ((x / a) * (y / b)).sum(axis=at)


@public_function("lucid", "nn.functional")
@aliases(keepdim="keepdims")
def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    """The p-norm of x1 - x2 + eps along the last axis."""
    x, y = promote_tensors(x1, x2, floating=True)
    check_number("pairwise_distance", p, "p")
    gap = x - y + check_number("pairwise_distance", eps, "eps")
    return norm(gap, p, -1, keepdim)
