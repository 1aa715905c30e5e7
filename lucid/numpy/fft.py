"""np.fft functions for tensors: integers become float64, and dims are called axes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.ops.core.promote import as_tensor, cast


def fft_function(name: str) -> Callable[..., Any]:
    """Return the lucid.fft function with this name, imported when it is first called."""
    from lucid import fft

    return getattr(fft, name)


def to_float64_or_complex(a: Any) -> Any:
    a = as_tensor(a)
    return a if a.dtype.kind in "fc" else cast(a, "float64")


def one_axis(name: str) -> Callable[..., Any]:
    def function(a: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Any:
        return fft_function(name)(to_float64_or_complex(a), n, -1 if axis is None else axis, norm)

    return function


def two_axes(name: str) -> Callable[..., Any]:
    def function(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
        return fft_function(name)(to_float64_or_complex(a), s, axes, norm)

    return function


def n_axes(name: str) -> Callable[..., Any]:
    def function(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
        return fft_function(name)(to_float64_or_complex(a), s, axes, norm)

    return function


def shift(name: str) -> Callable[..., Any]:
    def function(x: Any, axes: Any = None) -> Any:
        return fft_function(name)(x, axes)

    return function


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    getattr(np.fft, name): kind(name)
    for kind, names in {
        one_axis: ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"),
        two_axes: ("fft2", "ifft2", "rfft2", "irfft2"),
        n_axes: ("fftn", "ifftn", "rfftn", "irfftn"),
        shift: ("fftshift", "ifftshift"),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    if name != "__all__" and not hasattr(np.fft, name):  # what looks at modules need not import
        facts = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(facts, name=name, obj=sys.modules[__name__])
    from lucid.numpy import namespace

    if name == "__all__":
        return namespace.names("numpy.fft")
    return namespace.attribute(__name__, name)


def __dir__() -> list[str]:
    from lucid.numpy import namespace

    return namespace.names("numpy.fft")
