"""Conversion of tensors to numbers and ndarrays: one that drops a gradient warns or raises.

`item()`, `tolist()`, `detach()` and `numpy()` outside transforms ask for a constant explicitly.
An implicit conversion to an ndarray raises, and one to a Python number warns once a line.
"""

from __future__ import annotations

import os
import sys
import warnings
from opcode import opmap
from types import FrameType
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DetachWarning, GraphError
from lucid.support.source import Source, at_line, is_internal
from lucid.tape.modes import local
from lucid.tape.node import GRAD, Traced

_STORE_ITEM = opmap["STORE_SUBSCR"]
_SITE = os.path.dirname(os.path.dirname(np.__file__))
_LIBRARIES = tuple(
    os.path.join(_SITE, name, "") for name in ("numpy", "scipy", "matplotlib", "pandas", "sklearn")
)


def needs_grad(x: Any) -> bool:
    """True for a tensor through which a derivative flows, which a conversion would stop."""
    if not isinstance(x, Traced) or x.node is None or not x.node.flags & GRAD:
        return False
    return local.grad and x.dtype.kind in "fc"


class TensorForNumberError(ArgumentError):
    """A function got a tensor that requires a gradient where it needs a plain number."""

    def __init__(self, tensor: Any, function: str = "", parameter: str = "an argument") -> None:
        self.tensor = tensor
        where = f"{function}: " if function else ""
        super().__init__(
            f"{where}{parameter} is a tensor {tensor.type} that requires a gradient, but there is "
            f"no derivative in it; pass its item() if a constant is meant{_user_line()}"
        )


def _user_line() -> str:
    """Return `at_line()` of the user's call of a function of Lucid."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_internal(name) and not name.startswith(_LIBRARIES):
            return f"   [{Source(frame.f_code, frame.f_lasti)}]"
        frame = frame.f_back
    return ""


def _converting_frame(depth: int) -> FrameType:
    """Return the frame that converts a tensor, or that calls the library which does."""
    frame = sys._getframe(depth)
    while frame.f_code.co_filename.startswith(_LIBRARIES) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def check_array_conversion(x: Any) -> None:
    """Raise an error if an implicit conversion to an ndarray would drop a derivative."""
    if not needs_grad(x):
        return
    frame = _converting_frame(4)  # behind to_array and __array__
    if is_internal(frame.f_code.co_filename):
        raise TensorForNumberError(x)
    raise GraphError(
        f"__array__: {x.type} requires a gradient, and an ndarray would be a constant; use a "
        "function of lucid, lucid.tensor for a list of tensors, or detach().numpy() if a "
        f"constant is meant   [{Source(frame.f_code, frame.f_lasti)}]"
    )


def check_numpy_call(x: Any) -> None:
    """Raise an error for `numpy()` of a value that a running transform differentiates."""
    if local.transforms and needs_grad(x):
        raise GraphError(
            f"numpy: {x.type} is differentiated by the running transform, and an ndarray would be "
            f"a constant; use detach().numpy() if a constant is meant{at_line()}"
        )


def check_number_conversion(x: Any, what: str) -> None:
    """Warn that a conversion to a Python number drops a derivative.

    It raises an error if the number is wanted by Lucid itself, which got a tensor for a number, or
    is stored in an ndarray.
    """
    if not needs_grad(x):
        return
    frame = _converting_frame(3)
    if is_internal(frame.f_code.co_filename):
        raise TensorForNumberError(x)
    source = Source(frame.f_code, frame.f_lasti)
    if frame.f_code.co_code[frame.f_lasti] == _STORE_ITEM:
        raise GraphError(
            f"setitem: {x.type} requires a gradient, and an ndarray would store a constant; store "
            f"it in a tensor, or store its item() if a constant is meant   [{source}]"
        )
    warnings.warn_explicit(
        f"{what}: {x.type} requires a gradient, and a Python number is a constant: its derivative "
        "is zero; use functions of lucid, or item() if a constant is meant",
        DetachWarning,
        source.file,
        source.line,
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )
