"""Functions that create arrays, with NumPy's signatures and Lucid's default dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.numpy.reductions import ndarray_of
from lucid.ops.core.promote import as_tensor, default_dtype
from lucid.ops.shape import copying, creation
from lucid.tensors import numpy_protocols


def filled(function: Any) -> Any:
    """zeros, ones, empty: (shape, dtype, order)."""

    def make(shape: Any, dtype: Any = None, order: str = "C") -> Any:
        return function(shape, dtype=dtype)

    return make


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> Any:
    return creation.full(shape, fill_value, dtype=dtype)


def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: bool | None = None) -> Any:
    """A tensor of the data; tensors and NumPy arrays of this dtype share memory with it."""
    x = as_tensor(a, dtype)
    shares = x is a or (isinstance(a, np.ndarray) and np.shares_memory(x.value, a))
    if copy is False and not shares and not np.isscalar(a):
        raise ValueError(f"asarray: copy=False, but {type(a).__name__} needs a copy")
    return copying.clone(x) if copy and shares else x


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
) -> Any:
    x = asarray(object, dtype, copy=copy)
    return x.reshape((1,) * (ndmin - x.ndim) + x.shape) if x.ndim < ndmin else x


def arange(
    start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None
) -> Any:
    """np.arange; results that would be float64 have the default dtype."""
    start, stop = (0, start) if stop is None else (start, stop)
    numbers = [ndarray_of(x) for x in (start, stop, step)]
    if dtype is None and not all(np.asarray(x).dtype.kind in "iu" for x in numbers):
        dtype = default_dtype(1.0)
    return as_tensor(np.arange(*numbers, dtype=dtype))


def eye(N: int, M: Any = None, k: int = 0, dtype: Any = None, order: str = "C") -> Any:
    return as_tensor(np.eye(N, M, k, default_dtype(1.0) if dtype is None else np.dtype(dtype)))


def identity(n: int, dtype: Any = None) -> Any:
    return eye(n, dtype=dtype)


def tri(N: int, M: Any = None, k: int = 0, dtype: Any = None) -> Any:
    return as_tensor(np.tri(N, M, k, default_dtype(1.0) if dtype is None else np.dtype(dtype)))


def from_dlpack(x: Any, /, *, copy: Any = None) -> Any:
    found = numpy_protocols.from_dlpack(x)
    return copying.clone(found) if copy else found


def of_numbers(function: Any) -> Any:
    """hanning, tril_indices, ...: NumPy's function of numbers, as tensors."""

    def run(*args: Any, **kwargs: Any) -> Any:
        args = tuple(ndarray_of(x) for x in args)
        made = function(*args, **kwargs)
        return tuple(map(_tensor, made)) if isinstance(made, tuple) else _tensor(made)

    return run


def frequencies(function: Any) -> Any:
    """fftfreq, rfftfreq: (n, d, *, dtype)."""

    def run(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
        return _tensor(function(n, d)) if dtype is None else as_tensor(function(n, d), dtype)

    return run


def _tensor(array: np.ndarray) -> Any:
    return as_tensor(array, default_dtype(1.0) if array.dtype == np.float64 else None)
