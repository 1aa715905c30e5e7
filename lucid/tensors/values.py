"""The value of a Tensor as Python reads it: numbers, lists, truth, text and ndarrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ops.core.arguments import flag
from lucid.ops.core.promote import as_read
from lucid.support.source import caller
from lucid.tape.conversion import check_number_conversion, check_numpy_call
from lucid.tape.modes import local
from lucid.tape.node import (
    Traced,
    followers,
    is_recording,
)
from lucid.tape.recording.pending import is_pending
from lucid.tape.views import make_row_major, mark_exported
from lucid.tape.writes import flush_pending, keep_for_others, others_have_pending
from lucid.tensors import numpy_protocols

if TYPE_CHECKING:
    from lucid.tensors.tensor import Tensor


def read_number(x: Any, what: str) -> Any:
    """Return the only element of a tensor as a Python number; `what` says how Python reads it."""
    value = as_read(x).array(what)
    if value.size != 1:
        facts = f"item: a tensor of shape {value.shape} does not have one element"
        raise ShapeError(f"{facts}; index it, or use tolist()")
    return value.item()


class Values(Traced):
    """Reads of the value, and NumPy's protocols."""

    __slots__ = ()

    def array(self, what: str = "this") -> np.ndarray:
        """Return the ndarray, or raise an error if there is none; all reads by Python end here."""
        if self.raw is None:
            from lucid.func.mapping.levels import read_value

            return read_value(self, what)
        if is_recording():
            return local.recorder.on_value_read(self, what, caller())
        if followers:
            flush_pending()
            if others_have_pending() and not is_pending(self.raw):
                keep_for_others([self.raw])
        return self.value

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return the value as an ndarray without a copy; read-only while a graph may still need it.

        Inside a transform it raises an error for a value that is differentiated; `force` skips
        that check, as in PyTorch.

        >>> import lucid
        >>> lucid.tensor([1.0, 2.0], requires_grad=True).numpy()
        array([1., 2.], dtype=float32)
        """
        if force is False or not flag("numpy", "force", force):
            check_numpy_call(self)
        if self.storage is None:
            make_row_major(self)
        value = self.array("numpy()")
        if self.node is not None and self.node.flags:
            value = value.view()
            value.flags.writeable = False
        else:
            mark_exported(value)
        return value

    def item(self) -> Any:
        """Return the value of a tensor with one element as a Python number."""
        return read_number(self, "item()")

    def tolist(self) -> Any:
        """Return the value as nested lists of Python numbers."""
        return self.array("tolist()").tolist()

    def __bytes__(self) -> bytes:
        check_numpy_call(self)
        return self.array("bytes()").tobytes()

    def __buffer__(self, flags: int) -> memoryview:
        """Return the memory, for `memoryview` and other readers of buffers (Python 3.12)."""
        return memoryview(np.asarray(self))  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        value = as_read(self).array("bool()")
        if value.size != 1:
            raise ShapeError(
                f"bool: the truth value of a tensor of shape {value.shape} is ambiguous; use any() "
                "or all()"
            )
        return bool(value.item())

    def __float__(self) -> float:
        check_number_conversion(self, "float")
        return float(self.item())

    def __int__(self) -> int:
        check_number_conversion(self, "int")
        return int(read_number(self, "int()"))

    def __complex__(self) -> complex:
        check_number_conversion(self, "complex")
        return complex(self.item())

    def __index__(self) -> int:
        value = self.array("an index")
        if value.size != 1 or value.dtype.kind not in "biu":
            raise DTypeError(f"index: a tensor of type {self.type} is not an integer")
        return int(value.item())

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("len: a 0-d tensor has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise ArgumentError("iter: a 0-d tensor has no elements to iterate over")
        this: Any = self
        return (this[i] for i in range(len(self)))

    def __contains__(self, x: Any) -> bool:
        return bool((self == x).any())

    __hash__ = object.__hash__

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self.shape and spec else format(str(self), spec)

    def __repr__(self) -> str:
        from lucid.tensors.printing import tensor_repr

        return tensor_repr(self)

    def _repr_html_(self) -> str:
        from lucid.tensors.printing import tensor_html

        return tensor_html(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return numpy_protocols.to_array(self, dtype, copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return numpy_protocols.apply_ufunc(self, ufunc, method, *inputs, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return numpy_protocols.apply_function(function, types, args, kwargs)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return numpy_protocols.array_namespace(api_version)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        return numpy_protocols.to_dlpack(
            self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array("__dlpack_device__").__dlpack_device__()
