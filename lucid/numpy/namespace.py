"""The namespaces lucid.numpy, lucid.numpy.linalg and lucid.numpy.fft, made of NumPy's own names.

A function is the counterpart of NumPy's function with the same name; a ufunc also has the ufunc's
methods; dtypes and constants are NumPy's own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from lucid.numpy import inspection
from lucid.numpy.protocols.dispatch import find_counterpart
from lucid.numpy.protocols.ufuncs import ufunc_method
from lucid.ops.core.promote import as_operand, as_tensor
from lucid.ops.elementwise.conditional import where
from lucid.tensors.numpy_protocols import call_counterpart, call_ufunc

DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 "
    "complex64 complex128"
).split()
CONSTANTS = "e euler_gamma inf nan newaxis pi".split()
CLASSES = "dtype errstate generic integer floating complexfloating number".split()


class Ufunc:
    """The counterpart of a ufunc: a function of tensors with the methods reduce, outer, ..."""

    def __init__(self, ufunc: np.ufunc) -> None:
        functools.update_wrapper(self, ufunc, ("__name__", "__doc__"), ())
        self.ufunc = ufunc
        self.nin, self.nout, self.nargs = ufunc.nin, ufunc.nout, ufunc.nargs

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r} of tensors>"  # type: ignore[attr-defined]

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        return call_ufunc(self.ufunc, "__call__", *inputs, **kwargs)

    def reduce(self, array: Any, *args: Any, **kwargs: Any) -> Any:
        """Reduce along an axis."""
        return call_ufunc(self.ufunc, "reduce", array, *args, **kwargs)

    def accumulate(self, array: Any, *args: Any, **kwargs: Any) -> Any:
        """Accumulate along an axis."""
        return call_ufunc(self.ufunc, "accumulate", array, *args, **kwargs)

    def outer(self, a: Any, b: Any, **kwargs: Any) -> Any:
        """Apply the function to all pairs of elements."""
        return call_ufunc(self.ufunc, "outer", a, b, **kwargs)

    def at(self, a: Any, indices: Any, b: Any) -> None:
        """Apply the function in place at indices, which may repeat."""
        call_ufunc(self.ufunc, "at", a, indices, b)


class FloorDivide(Ufunc):
    """floor(x1 / x2) as the standard defines it at infinities: `inf // 2` is inf.

    NumPy's function and the operator `//` return nan there, as Python does.
    """

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        if kwargs:
            return super().__call__(*inputs, **kwargs)
        infinite = np.logical_or(*[np.isinf(as_tensor(x)) for x in inputs])
        exact = np.floor(np.divide(*[as_operand(x) for x in inputs]))
        found = super().__call__(*inputs)
        return where(infinite, exact, found) if found.dtype.kind == "f" else found


def on_tensors(numpy_function: Any, counterpart: Callable[..., Any]) -> Callable[..., Any]:
    """Return the counterpart as a function with NumPy's name, signature and documentation."""

    @functools.wraps(numpy_function)
    def function(*args: Any, **kwargs: Any) -> Any:
        return call_counterpart(numpy_function, counterpart, args, kwargs)

    given = signature_of(numpy_function)
    wanted = signature_of(counterpart)
    rest = {"args", "kwargs"}
    names, others = ({*s.parameters} - rest if s is not None else set() for s in (wanted, given))
    if given is None or names == others or names - others:
        function.__signature__ = wanted  # type: ignore[attr-defined]
    function.__module__ = __name__
    return function


def signature_of(function: Any) -> Any:
    try:
        return inspect.signature(function)
    except ValueError:
        return None


def numpy_module(package: str) -> ModuleType:
    """Return NumPy's module for one of ours: "lucid.numpy.fft" -> np.fft."""
    return import_module(package.removeprefix("lucid."))


def attribute(package: str, name: str) -> Any:
    """Return a public name of lucid.numpy, or of its linalg or fft."""
    if package == "lucid.numpy":
        if name in inspection.NAMES:
            return inspection.NAMES[name]
        if name == "__all__":
            return names("numpy")
    original = getattr(numpy_module(package), name, None)
    if name in CONSTANTS and package == "lucid.numpy":
        return original
    found = None if name.startswith("_") else counterpart_of(name, original)
    if found is None:
        raise AttributeError(
            f"module {package!r} has no attribute {name!r}", name=name, obj=import_module(package)
        )
    return found


def counterpart_of(name: str, original: Any) -> Any:
    if name in DTYPES:
        return np.dtype(name)
    if name in CLASSES:
        return original
    if isinstance(original, np.ufunc):
        made = FloorDivide if original is np.floor_divide else Ufunc
        return None if ufunc_method(original, "__call__") is None else made(original)
    counterpart = find_counterpart(original) if callable(original) else None
    return None if counterpart is None else on_tensors(original, counterpart)


def names(module: str) -> list[str]:
    """Return the public names of numpy, numpy.linalg or numpy.fft that have counterparts."""
    original = import_module(module)
    found = [n for n in dir(original) if counterpart_of(n, getattr(original, n, None)) is not None]
    own = [*inspection.NAMES, *CONSTANTS, "linalg", "fft"] if module == "numpy" else []
    return sorted({*found, *own})
