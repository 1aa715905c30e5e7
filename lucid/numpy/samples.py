"""Functions of samples with NumPy's signatures: histograms, sorting, gradients, interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ArgumentError
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor, cast, to_floating
from lucid.ops.elementwise import conditional
from lucid.ops.index import lookup, searching
from lucid.ops.reduce import counting, integrals, sorting
from lucid.ops.reduce import quantiles as ordered
from lucid.ops.shape import arranging
from lucid.ops.shape.shaping import ravel


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
) -> Any:
    if return_index:
        raise ArgumentError("np.unique: return_index is not supported for tensors")
    return searching.unique(ar, True, return_inverse, return_counts, axis)


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    return counting.bincount(x, weights, minlength)


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    counts, edges = counting.histogram(
        to_floating(a), bins, range=range, weight=weights, density=bool(density)
    )
    return (counts if density or weights is not None else cast(counts, "int64")), edges


def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    return searching.bucketize(x, bins, right=not right)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    spacing: Any = tuple(varargs) if len(varargs) > 1 else varargs[0] if varargs else 1
    if len(varargs) == 1 and np.ndim(spacing):
        spacing = (spacing,)
    found = integrals.gradient(f, spacing=spacing, dim=axis, edge_order=edge_order)
    return found[0] if len(found) == 1 else found


def nanmedian(
    a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: Any = False
) -> Any:
    return nanquantile(a, 0.5, axis, keepdims=keepdims)


def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
) -> Any:
    a = to_floating(a)
    levels = as_tensor(q, a.dtype)
    return ordered.nanquantile(a, levels, axis, keepdims, interpolation=method)


def nanpercentile(a: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
    return nanquantile(a, as_tensor(q, "float64") / 100.0, *args, **kwargs)


def partition(a: Any, kth: Any, axis: Any = -1) -> Any:
    """Sort the rows, which partitions them at every index."""
    return sorting.sort(ravel(as_tensor(a)) if axis is None else a, -1 if axis is None else axis)[0]


def argpartition(a: Any, kth: Any, axis: Any = -1) -> Any:
    return sorting.argsort(ravel(as_tensor(a)) if axis is None else a, -1 if axis is None else axis)


def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    return arranging.vander(x, N, increasing)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    return searching.unravel_index(indices, shape)


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Any:
    """Interpolate linearly between neighboring points; constant beyond the ends."""
    x, xp, fp = (to_floating(v) for v in (x, xp, fp))
    n = xp.shape[canonicalize_axis("interp", 0, xp.ndim)]
    place = conditional.clamp(searching.bucketize(x, xp, right=True), 1, n - 1)
    low, high = (lookup.take(xp, place - 1), lookup.take(xp, place))
    below, above = (lookup.take(fp, place - 1), lookup.take(fp, place))
    y = below + (above - below) / (high - low) * (x - low)
    y = conditional.where(x < xp[0], fp[0] if left is None else left, y)
    return conditional.where(x > xp[n - 1], fp[n - 1] if right is None else right, y)
