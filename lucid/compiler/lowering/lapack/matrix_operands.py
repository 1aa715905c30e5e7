"""Helpers of LAPACK lowerings: copies of matrices to where LAPACK reads and writes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.compiler.lowering.nest_builder import NestWriter, fill
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.work import NestWork
from lucid.compiler.runtime.lapack import Operand, broadcast, is_supported, per_matrix
from lucid.ir.graph import Equation
from lucid.ir.types import Type
from lucid.ops.shape.movement import Slice, Transpose

INT32 = np.dtype("int32")


def accepts(eqn: Equation) -> bool:
    return all(is_supported(x.type) for x in eqn.inputs if x.type.dtype.kind in "fc")


def batch_size(x: Array, axes: int = 2) -> int:
    return math.prod(x.shape[: len(x.shape) - axes])


def transposed(x: Array) -> Array:
    """The transposed matrices, in the same memory."""
    n = len(x.shape)
    found = x.view(Transpose((*range(n - 2), n - 1, n - 2)))
    assert found is not None
    return found


def leading_block(x: Array, rows: int, columns: int) -> Array:
    """The first rows and columns of each matrix, in the same memory."""
    sizes = (*x.shape[:-2], rows, columns)
    found = x.view(Slice((0,) * len(sizes), sizes, (1,) * len(sizes)))
    assert found is not None
    return found


def real_parts(x: Array) -> list[Array]:
    """The array itself if it is real, else its real and imaginary parts."""
    if x.type.dtype.kind != "c":
        return [x]
    return list(x.parts())


def copy_matrices(
    source: Array, target: Array, label: str, triangle: str = "", conjugate: bool = False
) -> list[NestWork]:
    """Copy matrices or their conjugates, or only a `triangle` ("lower", "upper") of them."""
    work = []
    for is_imaginary, (x, y) in enumerate(zip(real_parts(source), real_parts(target))):
        writer = NestWriter(y.shape)
        value = writer.load(x)
        if conjugate and is_imaginary:
            value = writer.value("neg", x.dtype, value)
        if triangle:
            value = mask_triangle(writer, value, x.dtype, triangle == "lower")
        writer.store(value, y)
        work += writer.work(label)
    return work


def mask_triangle(writer: NestWriter, value: int, dtype: str, lower: bool) -> int:
    """The value on one side of the diagonal, zero on the other."""
    ndim = len(writer.sizes)
    row, column = (writer.value("iota", "i64", param=ndim - k) for k in (2, 1))
    inside = writer.value("ge" if lower else "le", "bool", row, column)
    zero = writer.value("const", dtype, param=0.0)
    return writer.value("where", dtype, inside, value, zero)


def as_operand(layout: Any, x: Any, label: str, axes: int = 2) -> tuple[Operand, list[NestWork]]:
    """An operand of a routine: the array itself if it is dense or broadcast, otherwise a copy."""
    array = layout.array(x)
    inner = array.shape[len(array.shape) - axes :]
    dense = math.prod(inner)
    if array.is_dense:
        return per_matrix(array, axes), []
    outer = array.strides[: len(array.shape) - axes]
    own = Array(array.ref, Type(array.type.dtype, inner), array.strides[-axes:], array.offset)
    if own.is_dense and all(s == 0 for s in outer) and dense:
        return broadcast(array), []
    space = layout.scratch(array.type)
    return per_matrix(space, axes), copy_matrices(array, space, label)


def check_info(layout: Any, eqn: Equation, info: Array) -> list[NestWork]:
    """Report an error where an element is not zero, as an out-of-range index into one element."""
    code = layout.add_check(eqn)
    place = layout.scratch(Type(np.dtype("int64"), (1,)))
    writer = NestWriter(info.shape)
    at = writer.offset(writer.load(info), place, 0, code)
    writer.store(writer.value("const", "i64", param=0), place, (None,), at=[at])
    return writer.work(f"{eqn.op.name} check", layout)


def alloc_info(layout: Any, shape: tuple[int, ...]) -> Array:
    return layout.scratch(Type(INT32, shape))


def scalar(value: Any, dtype: np.dtype) -> np.ndarray:
    return np.array(value, dtype)


def fill_zeros(target: Array, label: str) -> list[NestWork]:
    return [work for part in real_parts(target) for work in fill(0, part, label)]
