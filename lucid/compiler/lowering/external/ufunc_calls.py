"""Elementwise functions that a ufunc computes: its inner loop is called by its address.

A ufunc of NumPy or SciPy holds, for each combination of dtypes, a C function that works on whole
arrays and needs neither Python nor the GIL. Such a step is a kernel that calls it on a part of the
arrays. Addresses are words of the plan; the kernel, which may be kept on disk, knows none of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lucid.compiler.lowering.index.concatenate_pad import PARTS
from lucid.compiler.lowering.nest_builder import copy, label_of
from lucid.compiler.plan.arrays import Array, reshaped
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import TextKernel
from lucid.ir.graph import Equation, Literal
from lucid.ir.types import Type
from lucid.ops.core.kinds import Elementwise
from lucid.ops.shape.movement import Broadcast
from lucid.ops.special.from_scipy import FromScipy, ufunc

NS = 40.0  # estimated, for an element

# What NumPy computes where there is no code of our own: above all complex numbers and float16.
NUMPY = {
    name: getattr(np, theirs)
    for name, theirs in {
        "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2",
        "log10": "log10", "log1p": "log1p", "sqrt": "sqrt", "sin": "sin", "cos": "cos",
        "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "sinh": "sinh",
        "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
        "atan2": "arctan2", "hypot": "hypot", "pow": "power", "reciprocal": "reciprocal",
        "square": "square", "cbrt": "cbrt", "logaddexp": "logaddexp", "logaddexp2": "logaddexp2",
        "gcd": "gcd", "nextafter": "nextafter",
    }.items()
}  # fmt: skip


class _Ufunc(ctypes.Structure):
    """The first fields of a PyUFuncObject after its header, which NumPy's C API makes public."""

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
    """The loop of a ufunc for dtypes such as "dd->d", None where it has none."""
    if types not in function.types:
        return None
    number = function.types.index(types)
    fields = _Ufunc.from_address(id(function) + object.__basicsize__)
    if (fields.nin, fields.nout, fields.ntypes) != (function.nin, function.nout, function.ntypes):
        return None  # another layout than the one that is known here
    address = fields.functions[number]
    return InnerLoop(address, fields.data[number] or 0) if address else None


def ufunc_of(op: Any) -> np.ufunc | None:
    """The ufunc that computes a primitive."""
    if isinstance(op, FromScipy):
        return ufunc(op.function)
    return NUMPY.get(op.name) if isinstance(op, Elementwise) and not op.params() else None


def loop_of(eqn: Equation) -> InnerLoop | None:
    """The loop for the dtypes of an equation."""
    function = ufunc_of(eqn.op)
    if function is None:
        return None
    out = eqn.outputs[0].type.dtype.char
    given = [out if isinstance(x, float) else x.type.dtype.char for x in arguments_of(eqn)]
    return inner_loop(function, f"{''.join(given)}->{out * function.nout}")


def arguments_of(eqn: Equation) -> Sequence[Any]:
    """The operands of an equation as its ufunc takes them, with numbers between."""
    op = eqn.op
    return op.arguments(*eqn.inputs) if isinstance(op, FromScipy) else eqn.inputs


@lru_cache(maxsize=64)
def kernel_text(count: int) -> TextKernel:
    """The kernel that calls a loop over `count` arrays: args are its address, its data, and of each
    array its own address and the distance between elements in bytes."""
    name = f"foreign_{count}"
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
class ForeignWork:
    """The call of a loop on arrays: operands (an Array, or a number) and results."""

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
                args += [array.address, distance(array)]
            else:
                args += [builder.constant(np.asarray(array)), 0]
        (text,) = self.kernels()
        builder.call(kernels[text.key], args, self.size, NS, label=self.label)


def distance(array: Array) -> int | None:
    """The bytes between elements that follow one another, None where it varies."""
    if array.type.size == 1:
        return 0
    found = reshaped(array.shape, array.strides, (array.type.size,))
    return None if found is None else found[0] * array.type.dtype.itemsize


class ForeignStep:
    """How the equation of a ufunc becomes an instruction."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return loop_of(eqn) is not None

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        loop, out, op = loop_of(eqn), layout.array(eqn.outputs[0]), eqn.op
        assert loop is not None
        if out.type.size == 0:
            return []
        function: Any = ufunc_of(op)
        work: list[Any] = []
        operands: list[Array | np.generic] = []
        for x in arguments_of(eqn):
            if isinstance(x, float):
                operands.append(out.type.dtype.type(x))
            elif isinstance(x, Literal):
                operands.append(x.dtype.type(x.value))
            else:
                operands.append(spread(layout, layout.array(x), out, work, label_of(eqn)))
        unwanted = layout.scratch(out.type) if function.nout > 1 else out
        wanted = op.output if isinstance(op, FromScipy) else 0
        results = [out if i == wanted else unwanted for i in range(function.nout)]
        work.append(ForeignWork(loop, [*operands, *results], out.type.size, label_of(eqn)))
        return work


class FrexpStep:
    """The mantissa and the exponent of every element, by NumPy's loop of two results."""

    @staticmethod
    def loop(eqn: Equation) -> InnerLoop | None:
        char = eqn.inputs[0].type.dtype.char
        return inner_loop(np.frexp, f"{char}->{char}i")

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return FrexpStep.loop(eqn) is not None

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        loop, outs = FrexpStep.loop(eqn), [layout.array(var) for var in eqn.outputs]
        assert loop is not None
        if outs[0].type.size == 0:
            return []
        work: list[Any] = []
        x = spread(layout, layout.array(eqn.inputs[0]), outs[0], work, label_of(eqn))
        return [*work, ForeignWork(loop, [x, *outs], outs[0].type.size, label_of(eqn))]


def spread(layout: Any, x: Array, out: Array, work: list[Any], label: str) -> Array:
    """An operand whose elements lie at equal distances in the order of the result's, or one."""
    if x.type.size == 1:
        return x
    axes = tuple(range(len(out.shape) - len(x.shape), len(out.shape)))
    full = x if x.shape == out.shape else x.view(Broadcast(out.shape, axes))
    assert full is not None
    return full if distance(full) is not None else copied(layout, full, work, label)


def copied(layout: Any, full: Array, work: list[Any], label: str) -> Array:
    """An array in order, of the elements of another; `work` gets what copies them."""
    dense = layout.scratch(full.type)
    pairs = [(full, dense)]
    if full.type.dtype.kind == "c":
        pairs = [(full.view(part), dense.view(part)) for part in PARTS]  # type: ignore[misc]
    elif full.type.dtype == np.float16:
        pairs = [(bits(full), bits(dense))]
    for source, target in pairs:
        work += copy(layout, source, target, label)
    return dense


def bits(array: Array) -> Array:
    """An array of float16 as one of integers, which kernels can copy."""
    return Array(array.ref, Type(np.dtype("uint16"), array.shape), array.strides, array.offset)
