"""What steps of linear algebra share: matrices copied to where LAPACK reads and writes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.compiler.lowering.nest_builder import NestWriter, fill
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.work import NestWork
from lucid.compiler.runtime.lapack import Operand, each, is_known, shared
from lucid.ir.graph import Equation
from lucid.ir.types import Type
from lucid.ops.elementwise.complexes import Imag, Real
from lucid.ops.shape.movement import Slice, Transpose

INT32 = np.dtype("int32")


def accepts(eqn: Equation) -> bool:
    return all(is_known(x.type) for x in eqn.inputs if x.type.dtype.kind in "fc")


def batch_of(x: Array, axes: int = 2) -> int:
    return math.prod(x.shape[: len(x.shape) - axes])


def turned(x: Array) -> Array:
    """The transposed matrices, in the same memory."""
    n = len(x.shape)
    found = x.view(Transpose((*range(n - 2), n - 1, n - 2)))
    assert found is not None
    return found


def leading(x: Array, rows: int, columns: int) -> Array:
    """The first rows and columns of each matrix, in the same memory."""
    sizes = (*x.shape[:-2], rows, columns)
    found = x.view(Slice((0,) * len(sizes), sizes, (1,) * len(sizes)))
    assert found is not None
    return found


def parts(x: Array) -> list[Array]:
    """The real array, or the real and the imaginary part."""
    if x.type.dtype.kind != "c":
        return [x]
    return [x.view(Real()), x.view(Imag())]  # type: ignore[list-item]


def move(
    source: Array, target: Array, label: str, triangle: str = "", hermitian: bool = False
) -> list[NestWork]:
    """Copy matrices: only a `triangle` ("lower", "upper"), or their Hermitian part."""
    work = []
    for i, (x, y) in enumerate(zip(parts(source), parts(target))):
        writer = NestWriter(y.shape)
        value = writer.load(x)
        if hermitian:
            other = writer.load(turned(x))
            both = writer.value("sub" if i else "add", x.dtype, value, other)
            half = writer.value("const", x.dtype, param=0.5)
            value = writer.value("mul", x.dtype, both, half)
        if triangle:
            value = masked(writer, value, x.dtype, triangle == "lower")
        writer.store(value, y)
        work += writer.work(label)
    return work


def masked(writer: NestWriter, value: int, dtype: str, lower: bool) -> int:
    """The value on one side of the diagonal, 0 on the other."""
    ndim = len(writer.sizes)
    row, column = (writer.value("iota", "i64", param=ndim - k) for k in (2, 1))
    inside = writer.value("ge" if lower else "le", "bool", row, column)
    zero = writer.value("const", dtype, param=0.0)
    return writer.value("where", dtype, inside, value, zero)


def readable(layout: Any, x: Any, label: str, axes: int = 2) -> tuple[Operand, list[NestWork]]:
    """An operand of a routine: in place where it lies densely or is one for all, or a copy."""
    array = layout.array(x)
    inner = array.shape[len(array.shape) - axes :]
    dense = math.prod(inner)
    if array.is_dense:
        return each(array, axes), []
    outer = array.strides[: len(array.shape) - axes]
    own = Array(array.ref, Type(array.type.dtype, inner), array.strides[-axes:], array.offset)
    if own.is_dense and all(s == 0 for s in outer) and dense:
        return shared(array), []
    space = layout.scratch(array.type)
    return each(space, axes), move(array, space, label)


def checked(layout: Any, eqn: Equation, info: Array) -> list[NestWork]:
    """Note an error where an element is not zero: an index into one place, which it is outside."""
    code = layout.check(eqn)
    place = layout.scratch(Type(np.dtype("int64"), (1,)))
    writer = NestWriter(info.shape)
    at = writer.place(writer.load(info), place, 0, code)
    writer.store(writer.value("const", "i64", param=0), place, (None,), at=[at])
    return writer.work(f"{eqn.op.name} check", layout)


def info_for(layout: Any, shape: tuple[int, ...]) -> Array:
    return layout.scratch(Type(INT32, shape))


def number(value: Any, dtype: np.dtype) -> np.ndarray:
    return np.array(value, dtype)


def zeros(target: Array, label: str) -> list[NestWork]:
    return [work for part in parts(target) for work in fill(0, part, label)]
