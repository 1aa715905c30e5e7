"""Lowers elementwise ops that a ufunc computes: its inner loop is called by its address.

A ufunc of NumPy or SciPy holds, for each combination of dtypes, a C function that processes whole
arrays and needs neither Python nor the GIL. A kernel calls it on a chunk of the arrays. Addresses
are words of the plan; the kernel, which the disk cache may store, contains none of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lucid.compiler.lowering.nest_builder import copy, label_of
from lucid.compiler.plan.arrays import Array, reshaped
from lucid.compiler.plan.instructions import UNKNOWN, Address
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import TextKernel
from lucid.ir.graph import Equation, Literal
from lucid.ir.types import Type
from lucid.ops.shape.movement import Broadcast
from lucid.support.caches import memoize

NS = 40.0  # estimated, for an element


class _Ufunc(ctypes.Structure):
    """The first fields of a PyUFuncObject after its header, which are public in NumPy's C API."""

    _fields_ = [
        *[(name, ctypes.c_int) for name in ("nin", "nout", "nargs", "identity")],
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
    ]


class InnerLoop(NamedTuple):
    """A C function void(char **args, intptr *n, intptr *steps, void *data), and its data."""

    function: int
    data: int


def inner_loop(function: np.ufunc, types: str) -> InnerLoop | None:
    """The loop of a ufunc for dtypes such as "dd->d", or None."""
    if types not in function.types:
        return None
    number = function.types.index(types)
    fields = _Ufunc.from_address(id(function) + object.__basicsize__)
    if (fields.nin, fields.nout, fields.ntypes) != (function.nin, function.nout, function.ntypes):
        return None  # an unknown struct layout
    address = fields.functions[number]
    data = fields.data[number] or 0
    return InnerLoop(Address(address, UNKNOWN), Address(data, UNKNOWN)) if address else None


def loop_of(eqn: Equation) -> InnerLoop | None:
    """The loop for the dtypes of an equation, or None."""
    function = eqn.op.ufunc  # type: ignore[attr-defined]
    if function is None:
        return None
    out = eqn.outputs[0].type.dtype.char
    given = [out if isinstance(x, float) else x.type.dtype.char for x in arguments_of(eqn)]
    return inner_loop(function, f"{''.join(given)}->{out * function.nout}")


def arguments_of(eqn: Equation) -> Sequence[Any]:
    """The operands of an equation in the order of its ufunc, including constant numbers."""
    return eqn.op.arguments(*eqn.inputs)  # type: ignore[attr-defined]


@memoize(maxsize=64)
def kernel_text(count: int) -> TextKernel:
    """The kernel that calls a loop over `count` arrays.

    Its arguments are the loop's address and data, and the address and stride of each array.
    """
    name = f"ufunc_{count}"
    lines = [
        f"define void @{name}(ptr %args, i64 %lo, i64 %hi) nounwind {{",
        "  %function = load ptr, ptr %args",
        "  %data.p = getelementptr i64, ptr %args, i64 1",
        "  %data = load ptr, ptr %data.p",
        f"  %arrays = alloca [{count} x ptr]",
        f"  %steps = alloca [{count} x i64]",
        "  %length = alloca i64",
        "  %n = sub i64 %hi, %lo",
        "  store i64 %n, ptr %length",
    ]
    for i in range(count):
        lines += [
            f"  %p{i} = getelementptr i64, ptr %args, i64 {2 + 2 * i}",
            f"  %base{i} = load ptr, ptr %p{i}",
            f"  %q{i} = getelementptr i64, ptr %args, i64 {3 + 2 * i}",
            f"  %step{i} = load i64, ptr %q{i}",
            f"  %offset{i} = mul i64 %lo, %step{i}",
            f"  %array{i} = getelementptr i8, ptr %base{i}, i64 %offset{i}",
            f"  %a{i} = getelementptr ptr, ptr %arrays, i64 {i}",
            f"  store ptr %array{i}, ptr %a{i}",
            f"  %s{i} = getelementptr i64, ptr %steps, i64 {i}",
            f"  store i64 %step{i}, ptr %s{i}",
        ]
    call = "  call void %function(ptr %arrays, ptr %length, ptr %steps, ptr %data)"
    return TextKernel(name, "\n".join([*lines, call, "  ret void", "}"]))


@dataclass(eq=False)
class UfuncWork:
    """The call of a ufunc loop on operands (an Array or a number) and results."""

    loop: InnerLoop
    arrays: Sequence[Array | np.generic]
    size: int
    label: str

    def kernels(self) -> Sequence[Any]:
        return (kernel_text(len(self.arrays)),)

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        args: list[Any] = [*self.loop]
        for array in self.arrays:
            if isinstance(array, Array):
                args += [array.address, uniform_stride(array)]
            else:
                args += [builder.constant(np.asarray(array)), 0]
        (text,) = self.kernels()
        builder.call(kernels[text.key], args, self.size, NS, label=self.label)


def uniform_stride(array: Array) -> int | None:
    """The bytes between consecutive elements, None if they vary."""
    if array.type.size == 1:
        return 0
    found = reshaped(array.shape, array.strides, (array.type.size,))
    return None if found is None else found[0] * array.type.dtype.itemsize


class UfuncLowering:
    """Lowers an op to a call of its ufunc's inner loop."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return loop_of(eqn) is not None

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        op: Any = eqn.op
        loop, out, function = loop_of(eqn), layout.array(eqn.outputs[0]), op.ufunc
        assert loop is not None
        if out.type.size == 0:
            return []
        work: list[Any] = []
        operands: list[Array | np.generic] = []
        for x in arguments_of(eqn):
            if isinstance(x, float):
                operands.append(out.type.dtype.type(x))
            elif isinstance(x, Literal):
                operands.append(x.dtype.type(x.value))
            else:
                operands.append(
                    broadcast_operand(layout, layout.array(x), out, work, label_of(eqn))
                )
        unwanted = layout.scratch(out.type) if function.nout > 1 else out
        results = [out if i == op.output else unwanted for i in range(function.nout)]
        work.append(UfuncWork(loop, [*operands, *results], out.type.size, label_of(eqn)))
        return work


class FrexpLowering:
    """Lowers frexp to NumPy's loop, which has two results."""

    @staticmethod
    def loop(eqn: Equation) -> InnerLoop | None:
        char = eqn.inputs[0].type.dtype.char
        return inner_loop(np.frexp, f"{char}->{char}i")

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return FrexpLowering.loop(eqn) is not None

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        loop, outs = FrexpLowering.loop(eqn), [layout.array(var) for var in eqn.outputs]
        assert loop is not None
        if outs[0].type.size == 0:
            return []
        work: list[Any] = []
        x = broadcast_operand(layout, layout.array(eqn.inputs[0]), outs[0], work, label_of(eqn))
        return [*work, UfuncWork(loop, [x, *outs], outs[0].type.size, label_of(eqn))]


def broadcast_operand(layout: Any, x: Array, out: Array, work: list[Any], label: str) -> Array:
    """Broadcast an operand to the result's shape with a uniform stride, copying it if needed."""
    if x.type.size == 1:
        return x
    axes = tuple(range(len(out.shape) - len(x.shape), len(out.shape)))
    full = x if x.shape == out.shape else x.view(Broadcast(out.shape, axes))
    assert full is not None
    return full if uniform_stride(full) is not None else copy_dense(layout, full, work, label)


def copy_dense(layout: Any, full: Array, work: list[Any], label: str) -> Array:
    """A dense copy of an array; the work that copies it is added to `work`."""
    dense = layout.scratch(full.type)
    pairs = [(full, dense)]
    if full.type.dtype.kind == "c":
        pairs = list(zip(full.parts(), dense.parts()))
    elif full.type.dtype == np.float16:
        pairs = [(bits(full), bits(dense))]
    for source, target in pairs:
        work += copy(layout, source, target, label)
    return dense


def bits(array: Array) -> Array:
    """A float16 array viewed as integers, which kernels can copy."""
    return Array(array.ref, Type(np.dtype("uint16"), array.shape), array.strides, array.offset)
