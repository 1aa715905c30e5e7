"""In-place methods that change the shape or the history of a tensor and leave its elements.

The tensor becomes a view of what it was: a twin takes over its place, and with it all its views,
so that writes through any of them still meet in one memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lucid.errors import GraphError
from lucid.ir.source import at_line
from lucid.ops.shape import shaping
from lucid.tape.markers import STOP_GRADIENT
from lucid.tape.modes import local
from lucid.tape.node import GRAD, Traced, is_recording
from lucid.tensors.mutation import check_writable


def twin_of(x: Any) -> Any:
    """Another tensor with the value, the history and the views of `x`, which has none of them."""
    twin = object.__new__(type(x))
    twin.value, twin.node, twin.storage, twin.origin = x.value, x.node, x.storage, x.origin
    if x.storage is not None:
        x.storage.add(twin)
        for view in x.storage.live():
            if view.origin is not None and view.origin[0] is x:
                view.origin = (twin, *view.origin[1:])
    return twin


def check_own(x: Any, what: str) -> None:
    """Refuse what `check_writable` refuses, leaves, and what a jitted function did not make."""
    check_writable(x, what)
    if x.node is not None and x.node.op is None and x.node.flags & GRAD:
        raise GraphError(
            f"{what}: a leaf that requires a gradient keeps its shape; use the operation that "
            f"gives a new tensor{at_line()}"
        )
    if is_recording() and local.recorder.is_outside(x.node):
        raise GraphError(
            f"{what}: a tensor from outside keeps its shape inside a jitted function; use the "
            f"operation that gives a new tensor{at_line()}"
        )


def in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """The in-place method of a function that gives a view."""
    name = f"{function.__name__}_"

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        function(self, *args, **kwargs)  # refuses bad arguments before anything is changed
        check_own(self, name)
        seen = function(twin_of(self), *args, **kwargs)
        self.value, self.node = seen.value, seen.node
        self.storage, self.origin = seen.storage, seen.origin
        if self.storage is not None:
            self.storage.add(self)
        return self

    method.__name__, method.__doc__ = name, f"`{function.__name__}`, in place."
    method.__wrapped__ = function  # type: ignore[attr-defined]  # the signature is its
    return method


def detach_(self: Any) -> Any:
    """Forget how this tensor was computed, in place."""
    origin = self.origin
    if origin is not None and origin[1] is not STOP_GRADIENT:
        raise GraphError(
            f"detach_: a view shares its history with its base; use detach(){at_line()}"
        )
    if is_recording() and local.recorder.is_outside(self.node):
        raise GraphError(
            f"detach_: a tensor from outside keeps its history inside a jitted function; use "
            f"detach(){at_line()}"
        )
    self.node = self.detach().node
    return self


class Reshaping(Traced):
    """Methods that change the shape or the history in place."""

    __slots__ = ()

    squeeze_ = in_place(shaping.squeeze)
    unsqueeze_ = in_place(shaping.unsqueeze)
    transpose_ = in_place(shaping.transpose)
    swapaxes_ = in_place(shaping.swapaxes)
    swapdims_ = in_place(shaping.swapdims)
    t_ = in_place(shaping.t)
    detach_ = detach_
