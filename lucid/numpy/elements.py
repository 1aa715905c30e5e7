"""Elementwise functions and predicates with NumPy's signatures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import ShapeError
from lucid.numpy.reductions import ndarray_of
from lucid.ops.core import promote
from lucid.ops.core.promote import as_tensor
from lucid.ops.elementwise import closeness, complexes, conditional, logic, rounding, trigonometric
from lucid.ops.index import lookup
from lucid.ops.reduce import cumulative
from lucid.ops.shape import creation, joining
from lucid.tape.node import Traced


def clip(
    a: Any,
    /,
    min: Any = None,
    max: Any = None,
    out: None = None,
    *,
    a_min: Any = None,
    a_max: Any = None,
) -> Any:
    """np.clip; its older names for the bounds, a_min and a_max, are keywords."""
    low, high = a_min if min is None else min, a_max if max is None else max
    return as_tensor(a) if low is None and high is None else conditional.clamp(a, low, high)


def around(a: Any, decimals: int = 0, out: None = None) -> Any:
    a = as_tensor(a)
    if a.dtype.kind != "c":
        return rounding.round(a, decimals)
    parts = (rounding.round(part(a), decimals) for part in (complexes.real, complexes.imag))
    return complexes.complex(*parts)


def angle(z: Any, deg: bool = False) -> Any:
    y = complexes.angle(z)
    return trigonometric.rad2deg(y) if deg else y


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    return closeness.nan_to_num(x, nan, posinf, neginf)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    y = default
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        y = conditional.where(condition, choice, y)
    return y


def array_equiv(a1: Any, a2: Any) -> bool:
    try:
        return bool((as_tensor(a1) == as_tensor(a2)).all())
    except ShapeError:
        return False


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    return closeness.equal(a1, a2, equal_nan)


def real_if_close(a: Any, tol: float = 100) -> Any:
    a = as_tensor(a)
    if a.dtype.kind != "c":
        return a
    bound = tol * np.finfo(a.dtype).eps if tol > 1 else tol
    return complexes.real(a) if bool((complexes.imag(a).abs() < bound).all()) else a


def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Any:
    """Add multiples of the period, which are constants for derivatives, so that jumps vanish."""
    p = promote.to_floating(p)
    jumps = lookup.diff(p, 1, axis).detach()
    turns = rounding.floor((jumps + period / 2) / period) * period
    at_end = (jumps - turns == -period / 2) & (jumps > 0)
    turns = conditional.where(at_end, turns - period, turns)
    keep = jumps.abs() < (period / 2 if discont is None else discont)
    correction = cumulative.cumsum(conditional.where(keep, 0.0, -turns), axis)
    place = axis % p.ndim
    first = creation.zeros([1 if i == place else n for i, n in enumerate(p.shape)], dtype=p.dtype)
    return p + joining.concatenate([first, correction], place)


def common_type(*arrays: Any) -> type:
    return np.common_type(*[np.empty(0, as_tensor(x).dtype) for x in arrays])


def min_scalar_type(a: Any, /) -> np.dtype:
    return np.min_scalar_type(ndarray_of(a))


def isreal(x: Any) -> Any:
    return complexes.imag(x) == 0 if as_tensor(x).dtype.kind == "c" else as_tensor(x) == x


def iscomplex(x: Any) -> Any:
    return logic.logical_not(isreal(x))


def size(a: Any, axis: Any = None) -> int:
    shape = as_tensor(a).shape
    return math.prod(shape) if axis is None else shape[axis]


def on_ndarrays(function: Any) -> Any:
    """Adapt may_share_memory and shares_memory to the arrays of two tensors."""

    def run(a: Any, b: Any, /, max_work: Any = None) -> bool:
        return function(ndarray_of(a), ndarray_of(b))

    return run


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(getattr(from_, "dtype", from_), getattr(to, "dtype", to), casting)


def on_ndarray(function: Any) -> Any:
    def run(a: Any, *args: Any, **kwargs: Any) -> str:
        return function(ndarray_of(a), *args, **kwargs)

    return run


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """Return the dtype of arithmetic on these, by Lucid's promotion rules."""
    types = (Traced, np.ndarray, np.generic, bool, int, float, complex)
    xs = [x if isinstance(x, types) else np.dtype(x) for x in arrays_and_dtypes]
    return promote.result_type(*xs)
