"""In-place operations: a tensor's value is replaced, in the same memory, and the tape keeps the old meaning.

A Node never changes its value. A tensor that is written to gets a new Node; the old one keeps the
equations that used it, and if one of them needs the overwritten value, `backward` says so. Writing to
a view writes to its base: the base gets the Node of "the old base with this region replaced".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.errors import DTypeError, GraphError, LucidError, ShapeError
from lucid.ir.modes import local
from lucid.ir.source import at_line, caller
from lucid.ir.tape import GRAD, Mutated, Node, bind, record, wrap
from lucid.ops.promote import as_tensor, cast

_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def assign(x: Any, new: Any, what: str) -> Any:
    """Make the tensor `x` have the value, and the history, of `new`."""
    new = fitting(x, as_tensor(new), what)
    check_writable(x, what)
    tracked = flags_of(x) | flags_of(new)
    bases = updated_bases(x, new) if x.view is not None and (tracked or flags_of(x.view[0])) else []
    write(x, new)
    renew_node(x, new)
    for base, node in bases:
        base.node = node
        if base.view is not None:
            base.view = (*base.view[:2], x.storage.version)
    if x.view is not None:
        x.view = (*x.view[:2], x.storage.version)
    return x


def fitting(x: Any, new: Any, what: str) -> Any:
    """`new` at the dtype of `x`, refused where it does not fit."""
    if _RANK[new.dtype.kind] > _RANK[x.dtype.kind]:
        raise DTypeError(
            f"{what}: a result of dtype {new.dtype} cannot be stored in a tensor of dtype {x.dtype}; "
            f"use the out-of-place operation{at_line()}"
        )
    if new.shape != x.shape:
        try:
            new = new.expand(x.shape)
        except LucidError:
            raise ShapeError(
                f"{what}: a result of shape {new.shape} does not fit into a tensor of shape {x.shape}{at_line()}"
            ) from None
    return cast(new, x.dtype)


def check_writable(x: Any, what: str) -> None:
    root = x
    while root is not None:
        if local.grad and root.node is not None and root.node.op is None and root.node.flags & GRAD:
            kind = "a leaf" if root is x else "a view of a leaf"
            raise GraphError(
                f"{what}: {kind} that requires a gradient cannot be changed in place; "
                f"do it under no_grad(), or on a clone(){at_line()}"
            )
        root = None if root.view is None else root.view[0]
    if x.value is not None and not x.value.flags.writeable:
        raise GraphError(
            f"{what}: this tensor's memory is read-only: an expanded tensor, or one made from a "
            f"read-only array; clone() it first{at_line()}"
        )


def flags_of(x: Any) -> int:
    return 0 if x.node is None else x.node.flags


def updated_bases(x: Any, new: Any) -> list[tuple[Any, Node | None]]:
    """For every tensor that `x` is a view of, its Node after `x` has become `new`."""
    out = []
    while x.view is not None:
        base, op, _ = x.view
        new = inserted(base, op, new)
        out.append((base, new.node))
        x = base
    return out


def inserted(base: Any, op: Any, part: Any) -> Any:
    """`base` with the region that the view `op` shows replaced by `part`."""
    from lucid.ops.selection import where

    placed = op.adjoint(part, base)
    region = op.adjoint(wrap(np.ones(part.shape, base.dtype)), base).value != 0
    return placed if region.all() else where(wrap(region), placed, base)


def write(x: Any, new: Any) -> None:
    """Overwrite the memory of `x`, and leave word of it for the graphs that still need the old value."""
    node = x.node
    source = caller()
    if x.storage is not None:
        x.storage.version += 1
        x.storage.source = source
    elif node is not None and node.saved is not None:
        node.saved = Mutated(node.saved, source) if node.saved.__class__ is not Mutated else node.saved
    if x.value is None or new.value is None:
        x.value = None if new.value is None else x.value
        return
    x.value[...] = new.value


def renew_node(x: Any, new: Any) -> None:
    old = x.node
    if flags_of(new):
        x.node = new.node
        if new.node.op is None:
            x.node = record(_copy(), (new,), x.value, new.node.flags)
    elif old is None or not (old.flags or old.cell):
        x.node = None
    elif old.op is None:
        x.node = Node(None, (), old.flags, x.value, old.type)
        x.node.trace = old.trace
    else:
        x.node = None if local.grad else Node(_alias(), (old,), old.flags, x.value, old.type)
    if old is not None and old.op is None and x.node is not None and x.node.op is None:
        x.node.cell = old.cell


def _copy() -> Any:
    from lucid.ops.copying import COPY

    return COPY


def _alias() -> Any:
    from lucid.ir.tape import ALIAS

    return ALIAS


def in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """The in-place method of a function: `add_` of `add`."""
    name = function.__name__ + "_"

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return assign(self, function(self, *args, **kwargs), name)

    method.__name__ = name
    method.__doc__ = f"`{function.__name__}` in place: the result is stored in this tensor."
    return method


def set_item(x: Any, index: Any, value: Any) -> None:
    """`x[index] = value`, recorded where either is tracked."""
    from lucid.ops.subscript import setitem

    assign(x, setitem(x, index, value), "setitem")


def copy_(x: Any, source: Any) -> Any:
    """Overwrite `x` with the values of `source`, which is cast and broadcast."""
    source = as_tensor(source)
    return assign(x, bind(_copy(), cast(source, x.dtype)), "copy_")


def fill_(x: Any, value: Any) -> Any:
    """Overwrite every element of `x` with one number."""
    return assign(x, cast(as_tensor(value), x.dtype).expand(x.shape), "fill_")


def zero_(x: Any) -> Any:
    """Overwrite every element of `x` with zero."""
    return fill_(x, 0)
