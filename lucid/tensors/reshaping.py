"""In-place methods that change the shape or the history of a tensor but not its elements.

The tensor becomes a view of its old self: a new tensor takes over its value, history and views, so
that writes through any of them still reach the same memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lucid.errors import GraphError
from lucid.public.declare import public
from lucid.tape.markers import STOP_GRADIENT
from lucid.tape.modes import local
from lucid.tape.node import GRAD, is_recording
from lucid.tape.writes import check_writable


def move_to_new_tensor(x: Any) -> Any:
    """Return a new tensor that takes over the value, the history and the views of `x`."""
    twin = object.__new__(type(x))
    twin.raw, twin.node, twin.storage, twin.origin = x.raw, x.node, x.storage, x.origin
    if x.storage is not None:
        x.storage.add(twin)
        for view in x.storage.live():
            if view.origin is not None and view.origin[0] is x:
                view.origin = (twin, *view.origin[1:])
    return twin


def is_leaf(x: Any) -> bool:
    """True for a leaf that requires a gradient."""
    return x.node is not None and x.node.op is None and bool(x.node.flags & GRAD)


def check_reshapable(x: Any, what: str) -> None:
    """Raise an error if `x` is not writable, is a leaf that is being recorded or has a gradient of
    its shape, comes from outside a jitted function or is an argument of vmap."""
    check_writable(x, what)
    if is_leaf(x) and (local.grad or x.grad is not None):
        remedy = "do it under no_grad()" if local.grad else "set its .grad to None first"
        raise GraphError(
            f"{what}: the shape of a leaf that requires a gradient cannot change here; {remedy}, "
            "or use the out-of-place operation"
        )
    if is_recording() and local.recorder.is_external(x.node):
        raise GraphError(
            f"{what}: the shape of a tensor from outside cannot change inside a jitted function; "
            "use the out-of-place operation"
        )
    if is_recording() and id(x) in local.recorder.lent:
        raise GraphError(
            f"{what}: the shape of an argument of vmap cannot change; clone() it first"
        )


def in_place_view(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the in-place method of a function that returns a view."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        function(self, *args, **kwargs)  # raises errors before anything is changed
        check_reshapable(self, name)
        leaf, twin = is_leaf(self), move_to_new_tensor(self)
        if leaf:
            twin.node = None
        view = function(twin, *args, **kwargs)
        self.raw, self.node = view.raw, view.node
        self.storage, self.origin = view.storage, view.origin
        if self.storage is not None:
            self.storage.add(self)
        return self.requires_grad_() if leaf else self

    method.__name__, method.__doc__ = name, f"In-place version of `{function.__name__}`."
    method.__wrapped__ = function  # type: ignore[attr-defined]  # it has the same signature
    return method


@public("lucid", "Tensor")
def detach_(input: Any) -> Any:
    """Detach this tensor from its history, in place."""
    origin = input.origin
    if origin is not None and origin[1] is not STOP_GRADIENT:
        raise GraphError("detach_: a view shares its history with its base; use detach()")
    if is_recording() and local.recorder.is_external(input.node):
        raise GraphError(
            "detach_: a tensor from outside cannot be detached inside a jitted function; use "
            "detach()"
        )
    input.node = input.detach().node
    return input
