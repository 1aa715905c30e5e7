"""NumPy's namespace: its functions accept tensors, and array constructors accept lists of them."""

from __future__ import annotations

import functools as _functools
from typing import Any

import numpy as _np

import lucid.numpy as _lnp
from lucid.compat.autograd.extend import isbox as _isbox
from lucid.ops.core.promote import contains_tensors as _contains_tensors
from lucid.support.locks import import_module as _import_module


def __getattr__(name: str) -> Any:
    if name in ("linalg", "fft", "random"):
        return _import_module(f"{__name__}.{name}")
    return getattr(_np, name)


def __dir__() -> list[str]:
    return dir(_np)


def array(A: Any, *args: Any, **kwargs: Any) -> Any:
    """np.array, also of tensors and of lists with tensors."""
    module = _lnp if _isbox(A) or _contains_tensors(A) else _np
    return module.array(A, *args, **kwargs)


def asarray(A: Any, *args: Any, **kwargs: Any) -> Any:
    """np.asarray, also of tensors and of lists with tensors."""
    module = _lnp if _isbox(A) or _contains_tensors(A) else _np
    return module.asarray(A, *args, **kwargs)


def _of_lists(name: str) -> Any:
    """Return NumPy's function, for lists with tensors as first argument too."""
    function = getattr(_np, name)

    @_functools.wraps(function)
    def call(a: Any, *args: Any, **kwargs: Any) -> Any:
        return function(_lnp.array(a) if _contains_tensors(a) else a, *args, **kwargs)

    return call


mean, std, var, sum, prod = (_of_lists(name) for name in ("mean", "std", "var", "sum", "prod"))
max, min, append, ravel = (_of_lists(name) for name in ("max", "min", "append", "ravel"))


def full(shape: Any, fill_value: Any, *args: Any, **kwargs: Any) -> Any:
    """np.full, also with a tensor."""
    module = _lnp if _isbox(fill_value) else _np
    return module.full(shape, fill_value, *args, **kwargs)


def make_diagonal(D: Any, offset: int = 0, axis1: int = -1, axis2: int = -2) -> Any:
    """Return arrays with the last axis of `D` on their diagonals: the inverse of np.diagonal."""
    if not _isbox(D):
        return _diagonals(_lnp.asarray(D), offset, axis1, axis2).numpy()
    return _diagonals(D, offset, axis1, axis2)


def _diagonals(D: Any, offset: int, axis1: int, axis2: int) -> Any:
    from lucid.ops.shape.diagonals import diag_embed

    return diag_embed(D, offset, axis1, axis2)


class _Joined:
    """np.r_ and np.c_, also of tensors, which are joined along the first or the second axis."""

    def __init__(self, original: Any, columns: bool) -> None:
        self.original, self.columns = original, columns

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not any(_isbox(x) for x in parts):
            return self.original[key]
        arrays = [x if _isbox(x) else _np.r_[x] for x in parts]
        if self.columns:
            return _np.column_stack(arrays)
        return _np.concatenate([_np.atleast_1d(x) for x in arrays])


r_, c_ = _Joined(_np.r_, False), _Joined(_np.c_, True)
