"""Reductions with NumPy's signatures and defaults: ddof 0, values without indices."""

from __future__ import annotations

import functools
import math
from typing import Any

from lucid.errors import ShapeError
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor, cast, to_floating
from lucid.ops.elementwise import conditional, rounding
from lucid.ops.index import lookup
from lucid.ops.reduce import covariance, extrema, integrals, sorting
from lucid.ops.reduce.reduction import reduced_axes
from lucid.ops.shape import creation, diagonals, joining, shaping
from lucid.tape.node import Traced


def ndarray_of(x: Any) -> Any:
    """Return the ndarray of a tensor; other objects are returned unchanged."""
    return x.array() if isinstance(x, Traced) else x  # type: ignore[attr-defined]


ALL = True  # where=: all elements


def masked(a: Any, where: Any, replacement: Any) -> Any:
    """Return `a` with a replacement where `where` is false."""
    return a if where is ALL else conditional.where(where, a, replacement)


def widened(a: Any) -> Any:
    """Return the dtype of the sum of unsigned integers, None for the default of others."""
    return "uint64" if a.dtype.kind == "u" else None


def _count(a: Any, where: Any, axis: Any, keepdims: Any) -> Any:
    """Return how many elements `where` selects along the axes."""
    return cast(as_tensor(where).expand(a.shape), "float64").sum(axis=axis, keepdims=keepdims)


def sum_or_product(function: Any, identity: int, combine: Any) -> Any:
    """sum, prod: (a, axis, dtype, out, keepdims, initial, where)."""

    def reduce(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = ALL,
    ) -> Any:
        a = masked(as_tensor(a), where, identity)
        y = function(a, axis=axis, keepdims=keepdims, dtype=dtype or widened(a))
        return y if initial is None else combine(y, initial)

    return reduce


def mean(function: Any) -> Any:
    """mean: (a, axis, dtype, out, keepdims, where)."""

    def reduce(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: Any = False,
        *,
        where: Any = ALL,
    ) -> Any:
        if where is ALL:
            return function(a, axis=axis, keepdims=keepdims, dtype=dtype)
        a = to_floating(a) if dtype is None else cast(as_tensor(a), dtype)
        total = masked(a, where, 0).sum(axis=axis, keepdims=keepdims)
        return total / cast(_count(a, where, axis, keepdims), total.dtype)

    return reduce


def extremum(function: Any, combine: Any) -> Any:
    """max, min: (a, axis, out, keepdims, initial, where)."""

    def reduce(
        a: Any,
        axis: Any = None,
        out: None = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = ALL,
    ) -> Any:
        a = as_tensor(a)
        if initial is None:
            if where is not ALL:
                facts = "where= needs initial=, the result where no element is selected"
                raise ShapeError(f"np.{function.__name__[1:]}: {facts}")
            return function(a, axis=axis, keepdims=keepdims)
        a = masked(a, where, initial)
        if a.numel():
            return combine(function(a, axis=axis, keepdims=keepdims), initial)
        return cast(a, a.dtype).sum(axis=axis, keepdims=keepdims) + cast(
            as_tensor(initial), a.dtype
        )

    return reduce


def logical(function: Any, identity: bool) -> Any:
    """any, all: (a, axis, out, keepdims, where)."""

    def reduce(
        a: Any, axis: Any = None, out: None = None, keepdims: Any = False, *, where: Any = ALL
    ) -> Any:
        a = as_tensor(a) if where is ALL else masked(as_tensor(a) != 0, where, identity)
        return function(a, axis=axis, keepdims=keepdims)

    return reduce


def position(function: Any) -> Any:
    """argmax, argmin: (a, axis, out, keepdims)."""

    def reduce(a: Any, axis: Any = None, out: None = None, *, keepdims: Any = False) -> Any:
        return function(a, axis=axis, keepdims=keepdims)

    return reduce


def nan_position(function: Any, replacement: float) -> Any:
    """nanargmax, nanargmin."""

    def reduce(a: Any, axis: Any = None, out: None = None, *, keepdims: Any = False) -> Any:
        a = as_tensor(a)
        return function(conditional.where(a != a, replacement, a), axis=axis, keepdims=keepdims)

    return reduce


def nan_extremum(function: Any, replacement: float, combine: Any) -> Any:
    """nanmax, nanmin: (a, axis, out, keepdims, initial, where); nan where all elements are."""
    plain = extremum(function, combine)

    def reduce(
        a: Any,
        axis: Any = None,
        out: None = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = ALL,
    ) -> Any:
        a = as_tensor(a)
        if a.dtype.kind != "f":
            return plain(a, axis, None, keepdims, initial, where)
        filled = conditional.where(a != a, replacement, a)
        result = plain(filled, axis, None, keepdims, initial, where)
        if initial is not None:
            return result
        return conditional.where((a != a).all(axis=axis, keepdims=keepdims), math.nan, result)

    return reduce


def without_nan(reduce: Any) -> Any:
    """nansum, nanprod, nanmean, nanvar, nanstd: the reduction of the elements that are not nan."""

    @functools.wraps(reduce)
    def nan_reduce(a: Any, *args: Any, where: Any = ALL, **kwargs: Any) -> Any:
        a = as_tensor(a)
        if a.dtype.kind in "fc":
            where = a == a if where is ALL else (a == a) & as_tensor(where)
        return reduce(a, *args, where=where, **kwargs)

    return nan_reduce


def deviation(function: Any, finish: Any) -> Any:
    """var, std: (a, axis, dtype, out, ddof, keepdims, where, mean, correction), with ddof 0."""

    def reduce(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: Any = False,
        *,
        where: Any = ALL,
        mean: Any = None,
        correction: Any = None,
    ) -> Any:
        a = to_floating(a) if dtype is None else cast(as_tensor(a), dtype)
        ddof = ddof if correction is None else correction
        if where is ALL and mean is None:
            return function(a, axis=axis, ddof=ddof, keepdims=keepdims)
        n = cast(_count(a, where, axis, True), a.dtype)
        middle = masked(a, where, 0).sum(axis=axis, keepdims=True) / n if mean is None else mean
        off = masked(a - middle, where, 0)
        total = (off * off).sum(axis=axis, keepdims=keepdims)
        return finish(total / ((n if keepdims else n.reshape(total.shape)) - ddof))

    return reduce


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: Any = False
) -> Any:
    a = to_floating(a)
    if weights is None:
        mean = a.mean(axis=axis, keepdims=keepdims)
        total: Any = creation.full(
            mean.shape, float(a.numel() // max(mean.numel(), 1)), dtype=mean.dtype
        )
    else:
        weights = as_tensor(weights)
        if weights.shape != a.shape:
            place = canonicalize_axis("average", axis, a.ndim)
            weights = weights.reshape([-1 if i == place else 1 for i in range(a.ndim)])
            weights = weights.expand(a.shape)
        total = weights.sum(axis=axis, keepdims=keepdims)
        mean = (a * weights).sum(axis=axis, keepdims=keepdims) / total
    return (mean, total) if returned else mean


def ptp(a: Any, axis: Any = None, out: None = None, keepdims: Any = False) -> Any:
    return extrema.amax(a, axis=axis, keepdims=keepdims) - extrema.amin(
        a, axis=axis, keepdims=keepdims
    )


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
) -> Any:
    if method != "linear":
        facts = f"method {method!r} is not supported for tensors; use 'linear'"
        raise ShapeError(f"np.quantile: {facts}")
    a = to_floating(a)
    axes = reduced_axes("quantile", a.ndim, None, axis)
    rest = [i for i in range(a.ndim) if i not in axes]
    rows = a.permute((*rest, *axes)).reshape([a.shape[i] for i in rest] + [-1])
    ordered = sorting.sort(rows, -1).values
    n = ordered.shape[-1]
    positions = as_tensor(q, "float64") * float(n - 1)
    low = cast(rounding.floor(positions), "int64")
    below, above = (
        lookup.take(ordered, low, axis=-1),
        lookup.take(ordered, conditional.clamp(low + 1, None, n - 1), axis=-1),
    )
    y = below + (above - below) * cast(positions - low, a.dtype)
    y = conditional.where(
        rows.isnan().any(-1).reshape(*rows.shape[:-1], *[1] * positions.ndim), math.nan, y
    )
    y = shaping.movedim(y, tuple(range(len(rest), y.ndim)), tuple(range(positions.ndim)))
    if keepdims:
        y = y.reshape(*positions.shape, *[1 if i in axes else n for i, n in enumerate(a.shape)])
    return y


def percentile(a: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
    return quantile(a, as_tensor(q, "float64") / 100.0, *args, **kwargs)


def median(
    a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: Any = False
) -> Any:
    return quantile(a, 0.5, axis, keepdims=keepdims)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return cast(as_tensor(a) != 0, "int64").sum(axis=axis, keepdims=keepdims)


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Any:
    x = shaping.atleast_2d(to_floating(m))
    x = x if rowvar or x.shape[0] == 1 else x.t()
    if y is not None:
        other = shaping.atleast_2d(to_floating(y))
        x = joining.concatenate([x, other if rowvar or other.shape[0] == 1 else other.t()], 0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    found = covariance.cov(x, correction=ddof, fweights=fweights, aweights=aweights)
    return shaping.squeeze(found)


def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    c = cov(x, y, rowvar)
    if not c.ndim:
        return c / c
    d = diagonals.diagonal(c).sqrt()
    return c / d / d.reshape(-1, 1)


def cumulative(function: Any) -> Any:
    """cumsum, cumprod: (a, axis, dtype, out), over the flattened array by default."""

    def run(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        a = shaping.ravel(as_tensor(a)) if axis is None else shaping.atleast_1d(as_tensor(a))
        return function(a, 0 if axis is None else axis, dtype=dtype or widened(a))

    return run


def cumulative_along(function: Any, identity: int) -> Any:
    """cumulative_sum, cumulative_prod: (x, /, *, axis, dtype, out, include_initial)."""

    def run(
        x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False
    ) -> Any:
        x = as_tensor(x)
        place = canonicalize_axis("cumulative", 0 if axis is None else axis, x.ndim)
        y = function(x, place, dtype=dtype or widened(x))
        if not include_initial:
            return y
        shape = [1 if i == place else n for i, n in enumerate(y.shape)]
        return joining.concatenate([creation.full(shape, identity, dtype=y.dtype), y], place)

    return run


def nan_cumulative(function: Any, replacement: float) -> Any:
    def run(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        a = as_tensor(a)
        return cumulative(function)(conditional.where(a != a, replacement, a), axis, dtype)

    return run


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    a = as_tensor(a)
    place = canonicalize_axis("diff", axis, a.ndim)
    ends = [None if end is None else as_tensor(end) for end in (prepend, append)]
    shape = [1 if i == place else size for i, size in enumerate(a.shape)]
    before, after = [end if end is None or end.ndim else end.expand(shape) for end in ends]
    parts = [part for part in (before, a, after) if part is not None]
    return lookup.diff(joining.concatenate(parts, place) if len(parts) > 1 else a, n, place)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    steps = lookup.diff(shaping.ravel(as_tensor(ary)))
    ends = [None if x is None else cast(shaping.ravel(as_tensor(x)), steps.dtype)
            for x in (to_begin, to_end)]  # fmt: skip
    parts = [x for x in (ends[0], steps, ends[1]) if x is not None]
    return joining.concatenate(parts, 0) if len(parts) > 1 else steps


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    return integrals.trapezoid(y, x, dx=None if x is not None else dx, dim=axis)
