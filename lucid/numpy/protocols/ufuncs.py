"""Ufuncs of tensors, and their methods: reduce, accumulate, outer and at."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.numpy.protocols.declared import declared_counterpart
from lucid.ops.core.promote import as_tensor, cast, to_floating
from lucid.ops.elementwise import arithmetic, blending, complexes, conditional, rounding
from lucid.ops.linalg import contraction
from lucid.ops.reduce import cumulative, extrema, reduction
from lucid.ops.shape import shaping
from lucid.support.locks import import_module
from lucid.tape.node import Traced, wrap
from lucid.tensors import mutation


def fabs(x: Any) -> Any:
    return arithmetic.abs(to_floating(x))


def heaviside(x1: Any, x2: Any) -> Any:
    return blending.heaviside(to_floating(x1), to_floating(x2))


def rint(x: Any) -> Any:
    return rounding.round(to_floating(x))


def divmod(x: Any, y: Any) -> Any:
    return rounding.floor_divide(x, y), rounding.remainder(x, y)


def modf(x: Any) -> Any:
    x = to_floating(x)
    whole = rounding.trunc(x)
    return x - whole, whole


def vecdot(x: Any, y: Any, *, axis: int = -1) -> Any:
    x, y = (shaping.movedim(as_tensor(a), axis, -1) for a in (x, y))
    if x.shape[-1] != y.shape[-1]:
        facts = f"vectors of sizes {x.shape[-1]} and {y.shape[-1]}"
        raise ShapeError(f"np.vecdot: {facts}")
    row = shaping.unsqueeze(complexes.conj(x), -2)
    column = shaping.unsqueeze(y, -1)
    return contraction.matmul(row, column).squeeze(-1).squeeze(-1)


def matvec(x1: Any, x2: Any) -> Any:
    return contraction.matmul(x1, shaping.unsqueeze(as_tensor(x2), -1)).squeeze(-1)


def vecmat(x1: Any, x2: Any) -> Any:
    row = shaping.unsqueeze(complexes.conj(as_tensor(x1)), -2)
    return contraction.matmul(row, x2).squeeze(-2)


ADAPTERS: dict[np.ufunc, Callable[..., Any]] = {
    np.divmod: divmod,
    np.fabs: fabs,
    np.heaviside: heaviside,
    np.modf: modf,
    np.matvec: matvec,
    np.rint: rint,
    np.vecdot: vecdot,
    np.vecmat: vecmat,
}

REDUCTIONS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: reduction.sum,
    np.multiply: reduction.prod,
    np.maximum: extrema.amax,
    np.minimum: extrema.amin,
    np.logical_and: reduction.all,
    np.logical_or: reduction.any,
    np.logaddexp: reduction.logsumexp,
}

ACCUMULATIONS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: cumulative.cumsum,
    np.multiply: cumulative.cumprod,
    np.maximum: lambda x, axis: cumulative.cummax(x, axis).values,
    np.minimum: lambda x, axis: cumulative.cummin(x, axis).values,
    np.logaddexp: cumulative.logcumsumexp,
}


# Ufuncs of scipy.special that have another name in lucid.special.
SCIPY_NAMES = {
    "j0": "bessel_j0", "j1": "bessel_j1", "y0": "bessel_y0", "y1": "bessel_y1",
    "k0": "modified_bessel_k0", "k1": "modified_bessel_k1", "k0e": "scaled_modified_bessel_k0",
    "k1e": "scaled_modified_bessel_k1",
}  # fmt: skip


def scipy_counterpart(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """Return the function of lucid.special for a ufunc of scipy.special, or None."""
    module = sys.modules.get("scipy.special")
    name = ufunc.__name__
    if getattr(module, name, None) is not ufunc:
        return None
    return getattr(import_module("lucid.special"), SCIPY_NAMES.get(name, name), None)


def ufunc_method(ufunc: np.ufunc, method: str) -> Callable[..., Any] | None:
    """Return the counterpart of a ufunc's method, with NumPy's signature, or None."""
    function = declared_counterpart(ufunc) or ADAPTERS.get(ufunc) or scipy_counterpart(ufunc)
    if method == "__call__" and function is not None:
        return _with_dtype(function)
    if method == "reduce" and ufunc in REDUCTIONS:
        return _reduce(ufunc)
    if method == "accumulate" and ufunc in ACCUMULATIONS:
        return _accumulate(ACCUMULATIONS[ufunc])
    if method == "outer" and function is not None and ufunc.nin == 2:
        return _outer(function)
    if method == "at" and ufunc in (np.add, np.subtract):
        return _at(1 if ufunc is np.add else -1)
    return None


def _with_dtype(function: Any) -> Any:
    def call(*xs: Any, dtype: Any = None, casting: str = "", order: str = "", **axis: Any) -> Any:
        xs = xs if dtype is None else tuple(cast(as_tensor(x), dtype) for x in xs)
        return function(*xs, **axis)

    return call


def _reduce(ufunc: np.ufunc) -> Any:
    function, identity, combine = REDUCTIONS[ufunc], ufunc.identity, declared_counterpart(ufunc)

    def reduce(
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        array = as_tensor(array) if dtype is None else cast(as_tensor(array), dtype)
        if where is not True:
            array = conditional.where(where, array, initial if identity is None else identity)
        result = function(array, axis=axis, keepdims=keepdims)
        return result if initial is None else combine(result, initial)  # type: ignore[misc]

    return reduce


def _accumulate(function: Any) -> Any:
    def accumulate(array: Any, axis: int = 0, dtype: Any = None) -> Any:
        return function(as_tensor(array) if dtype is None else cast(as_tensor(array), dtype), axis)

    return accumulate


def _outer(function: Any) -> Any:
    def outer(x: Any, y: Any) -> Any:
        x, y = as_tensor(x), as_tensor(y)
        return function(x.reshape(x.shape + (1,) * y.ndim), y)

    return outer


def _at(sign: int) -> Any:
    def at(x: Any, indices: Any, values: Any) -> None:
        from lucid.func import vjp

        if not isinstance(x, Traced):
            facts = "an ndarray cannot store the sum with a tensor; make it a tensor"
            raise DTypeError(f"ufunc.at: {facts}")
        part, add = vjp(lambda zeros: zeros[indices], wrap(np.zeros(x.shape, x.dtype)))
        mutation.assign(
            x, x + sign * add(cast(as_tensor(values), x.dtype).expand(part.shape))[0], "at"
        )

    return at
