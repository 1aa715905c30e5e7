"""Functions of samples with NumPy's signatures: histograms, sorting, gradients, interpolation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor, cast, to_floating
from lucid.ops.elementwise import conditional
from lucid.ops.index import lookup, searching
from lucid.ops.reduce import counting, integrals, sorting
from lucid.ops.reduce import quantiles as ordered
from lucid.ops.shape import arranging, joining
from lucid.ops.shape.shaping import ravel
from lucid.tape.conversion import needs_grad
from lucid.tape.node import Traced, wrap
from lucid.tensors import numpy_protocols


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
) -> Any:
    x = as_tensor(ar)
    place = None if axis is None else canonicalize_axis("unique", axis, x.ndim)
    _, first, inverse, counts = np.unique(
        x.array("unique"), True, True, True, axis=place, equal_nan=equal_nan
    )
    values = lookup.index_select(ravel(x) if place is None else x, place or 0, wrap(first))
    found = [values]
    for wanted, array in (
        (return_index, first),
        (return_inverse, inverse),
        (return_counts, counts),
    ):
        if wanted:
            found.append(wrap(np.asarray(array, "int64")))
    return tuple(found) if len(found) > 1 else values


class UniqueAll(NamedTuple):
    """The result of unique_all."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """The result of unique_counts."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """The result of unique_inverse."""

    values: Any
    inverse_indices: Any


def unique_all(x: Any) -> UniqueAll:
    return UniqueAll(*unique(x, True, True, True, equal_nan=False))


def unique_counts(x: Any) -> UniqueCounts:
    return UniqueCounts(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any) -> UniqueInverse:
    return UniqueInverse(*unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: Any) -> Any:
    return unique(x, equal_nan=False)


def union1d(ar1: Any, ar2: Any) -> Any:
    return unique(joining.concatenate([ravel(as_tensor(ar1)), ravel(as_tensor(ar2))], 0))


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    ar1 = ravel(as_tensor(ar1)) if assume_unique else unique(ar1)
    return ar1[~searching.isin(ar1, as_tensor(ar2))]


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    return unique(joining.concatenate([setdiff1d(ar1, ar2), setdiff1d(ar2, ar1)], 0))


def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    ar1, ar2 = ravel(as_tensor(ar1)), ravel(as_tensor(ar2))
    _, first, second = np.intersect1d(
        ar1.array("intersect1d"), ar2.array("intersect1d"), assume_unique, True
    )
    common = ar1[first]
    return (common, wrap(first), wrap(second)) if return_indices else common


def sort_complex(a: Any) -> Any:
    a = as_tensor(a)
    order = np.lexsort((np.imag(a.array()), np.real(a.array())))
    a = lookup.take_along_dim(a, wrap(order), -1)
    return a if a.dtype.kind == "c" else cast(a, np.result_type(a.dtype, np.complex64))


def of_values(function: Any) -> Any:
    """Wrap a function whose results have no derivative: NumPy's own, on the values of tensors."""

    def convert(x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return type(x)(convert(part) for part in x)
        if needs_grad(x):
            raise numpy_protocols.no_counterpart(f"np.{function.__name__}")
        return x.array() if isinstance(x, Traced) else x  # type: ignore[attr-defined]

    def run(*args: Any, **kwargs: Any) -> Any:
        found = function(*map(convert, args), **{k: convert(v) for k, v in kwargs.items()})
        return tuple(map(tensors, found)) if isinstance(found, tuple) else tensors(found)

    def tensors(x: Any) -> Any:
        return [tensors(part) for part in x] if isinstance(x, (list, tuple)) else as_tensor(x)

    return run


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
