"""Numba types of what a listing is given: buffers, indexed axes, and float16.

A buffer is an address and the strides that are neither 0 nor 1; `b[i0, i1]` is one load, marked as
an access that no other iteration of the innermost loop depends on (`loops.py`). An IndexedAxis has
a size, an error code, and the word in which the kernel notes that an index was out of bounds.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.datamodel.models import PrimitiveModel, StructModel
from numba.core.datamodel.registry import register_default
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature

from lucid.compiler.kernels.nest import GENERAL

ACCESS = "lucid.access"  # what the metadata of an access is called until `loops.annotate`


class Half(types.Type):
    """A float16: its bits, which are only moved and converted."""

    def __init__(self) -> None:
        super().__init__("f16")


half = Half()
NUMBA = {
    "bool": types.boolean, "i8": types.int8, "u8": types.uint8, "i16": types.int16,
    "u16": types.uint16, "i32": types.int32, "u32": types.uint32, "i64": types.int64,
    "u64": types.uint64, "f16": half, "f32": types.float32, "f64": types.float64,
}  # fmt: skip
SHORT = {numba: short for short, numba in NUMBA.items()}


@register_default(Half)
class HalfModel(PrimitiveModel):
    """The bits of a float16."""

    def __init__(self, manager: Any, fe_type: Half) -> None:
        super().__init__(manager, fe_type, ir.IntType(16))


class Buffer(types.Type):
    """A buffer of a kernel: its dtype, and for each index whether its stride is 1 or general."""

    def __init__(self, dtype: str, classes: tuple[int, ...]) -> None:
        self.dtype, self.classes = dtype, classes
        super().__init__(f"Buffer({dtype}, {classes})")

    @property
    def stored(self) -> ir.Type:
        """The LLVM type of an element in memory."""
        if self.dtype in ("f32", "f64"):
            return ir.FloatType() if self.dtype == "f32" else ir.DoubleType()
        return ir.IntType({"bool": 8, "f16": 16}.get(self.dtype) or int(self.dtype[1:]))


@register_default(Buffer)
class BufferModel(StructModel):
    """The address of a buffer and its general strides."""

    def __init__(self, manager: Any, fe_type: Buffer) -> None:
        general = [axis for axis, c in enumerate(fe_type.classes) if c == GENERAL]
        members = [("address", types.voidptr), *[(f"s{axis}", types.int64) for axis in general]]
        super().__init__(manager, fe_type, members)


class IndexedAxis(types.Type):
    """An indexed axis of a buffer."""

    def __init__(self) -> None:
        super().__init__("IndexedAxis")


indexed_axis = IndexedAxis()


@register_default(IndexedAxis)
class IndexedAxisModel(StructModel):
    """The size of an axis, its error code, and the address of the word for errors."""

    def __init__(self, manager: Any, fe_type: IndexedAxis) -> None:
        members = [("size", types.int64), ("code", types.int64), ("wrong", types.voidptr)]
        super().__init__(manager, fe_type, members)


def index_types(buffer: Any, index: Any) -> Any:
    """The type of an index as a buffer takes it, or None."""
    if not isinstance(buffer, Buffer):
        return None
    given = [index] if isinstance(index, types.Integer) else list(getattr(index, "types", [None]))
    if len(given) != len(buffer.classes) or not all(isinstance(t, types.Integer) for t in given):
        return None
    if isinstance(index, types.Integer):
        return types.int64
    return types.UniTuple(types.int64, len(given)) if given else types.Tuple(())


@infer_global(operator.getitem)
class GetElement(AbstractTemplate):
    """The type of `b[i0, i1]`."""

    def generic(self, args: Any, kws: Any) -> Any:
        index = index_types(*args)
        return None if index is None else signature(NUMBA[args[0].dtype], args[0], index)


@infer_global(operator.setitem)
class SetElement(AbstractTemplate):
    """The type of `b[i0, i1] = x`."""

    def generic(self, args: Any, kws: Any) -> Any:
        buffer, index, _ = args
        index = index_types(buffer, index)
        if index is None:
            return None
        return signature(types.none, buffer, index, NUMBA[buffer.dtype])


def element_address(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """The address of `args[0][args[1]]`."""
    from numba.core import cgutils

    buffer, index = sig.args[:2]
    fields = context.make_helper(builder, buffer, args[0])
    single = isinstance(index, types.Integer)
    indices = [args[1]] if single else cgutils.unpack_tuple(builder, args[1], len(buffer.classes))
    offset: Any = None
    for axis, (kind, i) in enumerate(zip(buffer.classes, indices)):
        if kind == GENERAL:
            i = builder.mul(i, getattr(fields, f"s{axis}"), flags=("nsw",))
        offset = i if offset is None else builder.add(offset, i, flags=("nsw",))
    address = builder.bitcast(fields.address, buffer.stored.as_pointer())
    return address if offset is None else builder.gep(address, [offset])


def note_access(builder: Any, instruction: Any) -> None:
    instruction.set_metadata("llvm.access.group", builder.module.add_metadata([ACCESS]))


@lower_builtin(operator.getitem, Buffer, types.Any)
def get_element(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Load an element."""
    value = builder.load(element_address(context, builder, sig, args))
    note_access(builder, value)
    if sig.args[0].dtype == "bool":
        return builder.icmp_unsigned("!=", value, value.type(0))
    return value


@lower_builtin(operator.setitem, Buffer, types.Any, types.Any)
def set_element(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Store an element."""
    value = args[2]
    if sig.args[0].dtype == "bool":
        value = builder.zext(value, ir.IntType(8))
    note_access(builder, builder.store(value, element_address(context, builder, sig, args)))
    return context.get_dummy_value()
