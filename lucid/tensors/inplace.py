"""In-place methods of Tensor: each computes what its function computes and stores the result.

If nothing is tracked, NumPy writes into the memory; otherwise the result goes through `assign`.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

import numpy as np

from lucid.errors import GraphError, ShapeError
from lucid.ops.core.apply import cached_scalar
from lucid.ops.core.arguments import flag
from lucid.ops.core.errstate import quiet
from lucid.ops.core.promote import as_tensor, literal
from lucid.ops.elementwise import arithmetic, logic, power, rounding
from lucid.ops.linalg import contraction
from lucid.ops.shape.copying import COPY
from lucid.public.declare import public
from lucid.public.lazy import LazyModule
from lucid.support.source import caller
from lucid.tape.bind import bind
from lucid.tape.cut import ancestors
from lucid.tape.modes import current, local
from lucid.tape.node import (
    GRAD,
    TRACE,
    Node,
    Packed,
    Traced,
    active_recorders,
    followers,
    is_deferring,
    is_recording,
    note_read,
    wrap,
)
from lucid.tape.recording.pending import array_of, is_pending
from lucid.tape.views import layout, node_of
from lucid.tape.writes import (
    await_own_value,
    can_defer_write,
    check_writable,
    flags_of,
    has_pending,
    has_shared_elements,
    is_recorded,
    mark_written,
    others_have_pending,
    shared_elements_error,
)
from lucid.tensors.mutation import RANK, assign

subscript: Any = LazyModule("lucid.ops.index.subscript")
conditional: Any = LazyModule("lucid.ops.elementwise.conditional")


def in_place(
    function: Callable[..., Any], ufunc: np.ufunc | None = None, name: str = ""
) -> Callable[..., Any]:
    """Return the in-place method `add_` of a function `add`; `ufunc` serves untracked operands."""
    name = name or function.__name__ + "_"
    fast = None if ufunc is None else quiet(ufunc, into=True)
    n_operands = -1 if ufunc is None else ufunc.nin - 1
    takes_alpha = "alpha" in (getattr(function, "__kwdefaults__", None) or ()) and n_operands == 1

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if followers and args and has_pending() and _is_deferred(function, self, args, kwargs):
            return self
        if len(args) == n_operands and not kwargs:  # exactly what the ufunc takes
            if n_operands and (operand := plain_operand(self, args[0])) is not None:
                try:
                    fast(self.raw, operand)  # type: ignore[misc]
                    mark_written(self)
                    return self
                except Exception:
                    pass  # the general path below raises the right error, also for read-only memory
            if _write_with_ufunc(fast, self, args, name):  # type: ignore[arg-type]
                return self
        elif takes_alpha and is_scaled(self, args, kwargs):
            return method(self, arithmetic.multiply(args[0], kwargs["alpha"]))
        old = before_write(self)
        args = tuple([old if arg is self else arg for arg in args])
        if kwargs:
            kwargs = {key: old if arg is self else arg for key, arg in kwargs.items()}
        new = function(old, *args, **kwargs)
        if new is old or any([new is arg for arg in (*args, *kwargs.values())]):
            new = bind(COPY, new)
        save_overwritten(self, old, new)
        return self if store_plainly(self, new) else assign(self, new, name)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = (
        f"In-place version of `{function.__name__}`: the result is stored in this tensor."
    )
    method.__wrapped__ = function  # type: ignore[attr-defined]  # it has the same signature
    return method


def overwrite(x: Any, new: Any, what: str) -> None:
    """Give `x` the value of `new`, of the same type, once that is computed if it is pending."""
    if followers and is_pending(new.raw) and can_defer_write(x):
        follower = followers.get(get_ident())
        if follower is not None and follower.defer_write(x, new):
            return
    assign(x, new, what)


def _is_deferred(function: Any, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Let `x` wait for the result of a function of pending values; False if it cannot."""
    pending = [arg for arg in (x, *args) if isinstance(arg, Traced) and is_pending(arg.raw)]
    if not pending or not can_defer_write(x):
        return False
    new = function(x, *args, **kwargs)
    follower = followers.get(get_ident())
    if follower is None or new is x or any([new is arg for arg in (*args, *kwargs.values())]):
        return False
    return follower.defer_write(x, new)


def _write_with_ufunc(fast: Callable[..., Any], x: Any, args: tuple[Any, ...], what: str) -> bool:
    """Let NumPy write its result into the memory of `x`; return False if that is not possible."""
    value = x.raw
    if value is None or current().maps:
        return False
    values, tensors = [], []
    for arg in args:
        if isinstance(arg, Traced):
            tensors.append(arg)
            arg = arg.raw
            if arg is None or arg.dtype is not value.dtype:
                return False
        elif value.dtype.kind == "f":
            if arg.__class__ is not float and arg.__class__ is not int:
                return False
        elif value.dtype.kind != "i" or arg.__class__ is not int:
            return False
        values.append(arg)
    if is_recorded(x, *tensors):
        return False
    check_writable(x, what)  # computes what is pending, which may give x its memory back
    try:
        arrays = [array_of(value) for value in values]
        fast(x.value, *arrays)
    except Exception:
        return False
    mark_written(x)
    return True


def plain_operand(x: Any, other: Any) -> np.ndarray | None:
    """Return the array that NumPy may combine with that of `x`, or store in it.

    None if `x` is a view, `other` is neither a tensor of its dtype nor a number for one, the write
    is recorded, or what is pending reads the memory of `x`.
    """
    value, node = x.raw, x.node
    if active_recorders or value is None or x.origin is not None:
        return None
    flags = 0 if node is None else node.flags
    if other.__class__ is float or other.__class__ is int:
        kind = value.dtype.kind
        fits = kind == "f" or (kind == "i" and other.__class__ is int)
        found = cached_scalar(other, value.dtype) if fits else None
        if found is None:
            return None
        operand = found[1]
    elif isinstance(other, Traced):
        operand = other.raw
        if operand is None or operand.dtype is not value.dtype:
            return None
        if other.node is not None:
            flags |= other.node.flags
    else:
        return None
    if followers:
        if others_have_pending():
            return None
        if has_pending():
            if operand.__class__ is not np.ndarray or followers[get_ident()].touches(x):
                return None
    modes = current()
    is_unrecorded = (not flags or (flags == GRAD and not modes.grad)) and not modes.maps
    return operand if is_unrecorded else None


def store_plainly(x: Any, other: Any) -> bool:
    """Let NumPy copy a `plain_operand` that fits to the memory of `x`; False if it is none."""
    operand = plain_operand(x, other)
    if operand.__class__ is not np.ndarray or operand.shape not in ((), x.raw.shape):  # type: ignore[union-attr]
        return False
    try:
        x.raw[...] = operand
    except Exception:
        return False
    mark_written(x)
    return True


def is_scaled(x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """True for `x.add_(y, alpha=2.0)`, which is `x.add_(2.0 * y)`."""
    if len(args) != 1 or len(kwargs) != 1 or args[0] is x or not isinstance(args[0], Traced):
        return False
    alpha = kwargs.get("alpha")
    return alpha.__class__ in (float, int) and alpha != 1


def before_write(x: Any) -> Any:
    """Return `x` as an operand of the op that overwrites it, with a Node of its own."""
    if x.raw is None:
        return x
    await_own_value(x)
    node = None
    flags = flags_of(x)
    if flags & TRACE or (flags and current().grad) or is_recording():
        origin = note_read(node_of(x), x)
        node = Node(COPY, (origin,), origin.flags, None, origin.type, caller())
    return wrap(x.raw, node)


def save_overwritten(x: Any, old: Any, new: Any) -> None:
    """Copy the old value if the derivative of what overwrites it needs it, or views of it."""
    if old is x or old.node is None:
        return
    pending = is_deferring()  # no memory is overwritten yet
    if old.storage is not None and new.node is not None:
        for node in ancestors([new.node], old.node.serial):
            for i in (node, *node.inputs):
                if i.__class__ is Node and i.stamp is not None and i.stamp[0] is old.storage:
                    saved = i.saved.unpack() if i.saved.__class__ is Packed else i.saved
                    i.saved, i.stamp = saved if pending else np.array(saved), None
    if old.node.saved is not None:
        old.node.saved = x.raw if pending else x.value.copy()
    elif new.node is not None and old.node in new.node.inputs:
        (origin,) = old.node.inputs
        new.node.inputs = tuple([origin if i is old.node else i for i in new.node.inputs])


def set_item(x: Any, index: Any, value: Any) -> None:
    """Do `x[index] = value`, recorded if either is tracked."""
    if isinstance(value, Traced) and is_same_view(x, index, value):
        return
    if x.origin is not None and has_shared_elements(x):
        part = subscript.getitem(x, index)
        if part.origin is None:
            facts = "several elements of this view are in the same memory, and an index tensor"
            raise GraphError(f"setitem: {facts} may select some of them; clone() it")
        if has_shared_elements(part):
            raise shared_elements_error("setitem")
        set_item(part, ..., value)
    elif not _set_item_with_numpy(x, index, value):
        check_integer_range(x, value)
        new = subscript.setitem(x, index, value)
        assign(x, bind(COPY, new) if new is x or new is value else new, "setitem")


def check_integer_range(x: Any, value: Any) -> None:
    """Raise an error for a Python integer that the dtype of `x` cannot hold."""
    if value.__class__ is int and x.dtype.kind in "iu":
        literal(value, x.dtype)


def is_same_view(x: Any, index: Any, value: Any) -> bool:
    """True for the second half of `x[i] += v`, which Python runs as `x[i] = (x[i] += v)`."""
    if value.origin is None or value.storage is not x.storage or value.raw is None:
        return False
    if x.raw.__class__ is np.ndarray:
        array, source = x.value, value.value
    else:
        base, op, _ = value.origin
        if base is not x:
            return False
        array = layout(x)
        source = op.eval(array)
    try:
        target = array[index, ...] if isinstance(index, int) else array[index]
    except Exception:
        return False
    return (
        isinstance(target, np.ndarray)
        and target.dtype == source.dtype
        and target.__array_interface__["data"] == source.__array_interface__["data"]
        and (target.shape, target.strides) == (source.shape, source.strides)
    )


@quiet
def _set_item_with_numpy(x: Any, index: Any, value: Any) -> bool:
    """Let NumPy do `x[index] = value`; return False if it is tracked or invalid."""
    if x.raw is None or local.maps:
        return False
    if isinstance(value, Traced):
        if is_recorded(x, value) or RANK[value.dtype.kind] > RANK[x.dtype.kind]:
            return False
        value = value.value
    elif is_recorded(x) or not isinstance(value, (bool, int, float)):
        return False
    elif isinstance(value, float) and x.dtype.kind not in "fc":
        return False
    parts = index if isinstance(index, tuple) else (index,)
    arrays = []
    for part in parts:
        if isinstance(part, Traced):
            if part.raw is None:
                return False
            part = part.value
            if part.dtype.kind not in "biu":
                return False
        elif not (part is None or part is Ellipsis or isinstance(part, (int, slice, np.ndarray))):
            return False
        arrays.append(part)
    check_writable(x, "setitem")
    try:
        x.value[tuple(arrays)] = value
    except Exception:
        return False
    mark_written(x)
    return True


@public("Tensor")
def copy_(x: Any, other: Any, non_blocking: bool = False) -> Any:
    """Overwrite `x` with the values of `other`, cast to its dtype and broadcast to its shape."""
    if store_plainly(x, other):
        return x
    return assign(x, bind(COPY, as_tensor(other, x.dtype)), "copy_")


@public("lucid", "Tensor")
def fill_(input: Any, value: Any) -> Any:
    """Overwrite every element of `input` with one number."""
    if not isinstance(value, Traced) and store_plainly(input, value):
        return input
    check_integer_range(input, value)
    value = as_tensor(value, input.dtype)
    if value.ndim:
        raise ShapeError(f"fill_: the value has shape {value.shape}; it must be a scalar")
    if is_recorded(input, value):
        return assign(input, bind(COPY, value), "fill_")
    check_writable(input, "fill_")
    mark_written(input)
    input.value[...] = value.value
    return input


@public("lucid", "Tensor")
def zero_(input: Any) -> Any:
    """Overwrite every element of `input` with zero."""
    return fill_(input, 0)


@public("Tensor")
def masked_fill_(x: Any, mask: Any, value: Any) -> Any:
    """Overwrite the elements of `x` where `mask` is True with one number."""
    old = before_write(x)
    new = conditional.where(mask, as_tensor(value, x.dtype), old)
    save_overwritten(x, old, new)
    return assign(x, new, "masked_fill_")


@public("Tensor")
def fill_diagonal_(x: Any, fill_value: Any, wrap: bool = False) -> Any:
    """Overwrite the main diagonal of `x` with one number; `wrap` repeats it in tall matrices."""
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        facts = f"a tensor of shape {x.shape}; it must be a matrix or have equal sizes on all axes"
        raise ShapeError(f"fill_diagonal_: {facts}")
    least = min(x.shape)
    if x.ndim > 2 or not flag("fill_diagonal_", "wrap", wrap):
        x[(np.arange(least),) * x.ndim] = fill_value
        return x
    rows, columns = x.shape
    positions = np.arange(0, rows * columns, columns + 1)
    x[positions // max(columns, 1), positions % max(columns, 1)] = fill_value
    return x


class InPlaceOperators(Traced):
    """Python's augmented assignments, and assignment to an index."""

    __slots__ = ()

    __iadd__ = in_place(arithmetic.add, np.add, "add_")
    __isub__ = in_place(arithmetic.subtract, np.subtract, "sub_")
    __imul__ = in_place(arithmetic.multiply, np.multiply, "mul_")
    __itruediv__ = in_place(arithmetic.divide, np.true_divide, "div_")
    __ifloordiv__ = in_place(rounding.floor_divide, np.floor_divide)
    __imod__ = in_place(rounding.remainder, np.remainder)
    __ipow__ = in_place(power.pow, np.power)
    __iand__ = in_place(logic.bitwise_and, np.bitwise_and)
    __ior__ = in_place(logic.bitwise_or, np.bitwise_or)
    __ixor__ = in_place(logic.bitwise_xor, np.bitwise_xor)
    __ilshift__ = in_place(logic.left_shift, name="bitwise_left_shift_")
    __irshift__ = in_place(logic.right_shift, name="bitwise_right_shift_")
    __imatmul__ = in_place(contraction.matmul)

    __setitem__ = set_item
