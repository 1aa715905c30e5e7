"""LAPACK as work of a plan: a routine for every matrix of a batch, in parallel.

LAPACK is column-major, so it sees row-major matrices transposed. Each lowering is written for the
transposes, which avoids almost all copies: the factors of aᵀ, read by rows, are those of a.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.instructions import Ref, chunk_length
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime import blas, openblas
from lucid.compiler.runtime.kernel_table import TextKernel
from lucid.ir.types import Type
from lucid.support.caches import memoize

PREFIXES = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}
CALL_NS = 500.0
FLOPS_PER_NS = 4.0


def prefix(dtype: np.dtype) -> str:
    return PREFIXES[dtype.str[1:]]


def is_supported(type: Type) -> bool:
    """True if LAPACK has routines for this dtype and the array is not empty."""
    return type.dtype.str[1:] in PREFIXES and type.size > 0


class Operand(NamedTuple):
    """An argument: its address, and the strides in bytes per matrix and per chunk of the batch."""

    address: Ref | int
    stride: int = 0
    chunk_stride: int = 0


def per_matrix(array: Array, axes: int = 2) -> Operand:
    """The matrices (or rows, or numbers) of a dense batch."""
    count = math.prod(array.shape[len(array.shape) - axes :])
    return Operand(array.address, count * array.type.dtype.itemsize)


def broadcast(array: Array) -> Operand:
    """One matrix for the whole batch."""
    return Operand(array.address)


class Workspace(NamedTuple):
    """The workspace of a call: `size` elements for each chunk of the batch."""

    dtype: str
    size: int


Argument = str | int | np.ndarray | Operand | Workspace


@dataclass(eq=False)
class LapackWork:
    """The call of a routine for each of `batch` matrices.

    Arguments are characters, integers, numbers (0-d arrays), operands and workspaces.
    """

    routine: str
    args: Sequence[Argument]
    batch: int
    cost: float
    label: str
    workspaces: list[Array]

    @property
    def grain(self) -> int:
        return chunk_length(self.batch, self.cost)

    @property
    def kernel(self) -> TextKernel:
        return caller_kernel(len(self.args))

    def kernels(self) -> Sequence[Any]:
        return (self.kernel,)

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        workspaces = iter(self.workspaces)
        operands = [self.operand(builder, argument, workspaces) for argument in self.args]
        table: list[Any] = [openblas.address(self.routine), self.grain]
        table += [word for operand in operands for word in operand]
        kernel = kernels[self.kernel.key]
        builder.call(kernel, table, self.batch, self.cost, self.grain, label=self.label)

    def operand(self, builder: Builder, argument: Argument, workspaces: Any) -> Operand:
        if isinstance(argument, Operand):
            return argument
        if isinstance(argument, Workspace):
            space = next(workspaces)
            return Operand(space.address, 0, space.shape[1] * space.type.dtype.itemsize)
        if isinstance(argument, str):
            return Operand(blas.character(builder, argument))
        if isinstance(argument, int):
            return Operand(blas.scalar(builder, argument))
        return Operand(builder.constant(argument))


def call(
    layout: Any, routine: str, args: Sequence[Argument], batch: int, flops: float, label: str
) -> LapackWork:
    """Return a LapackWork whose workspaces are in the plan's arena."""
    work = LapackWork(routine, args, batch, CALL_NS + flops / FLOPS_PER_NS, label, [])
    chunks = math.ceil(batch / work.grain)
    for argument in args:
        if isinstance(argument, Workspace):
            type = Type(np.dtype(argument.dtype), (chunks, -(-max(argument.size, 1) // 8) * 8))
            work.workspaces.append(layout.scratch(type))
    return work


@memoize(maxsize=64)
def caller_kernel(count: int) -> TextKernel:
    """A kernel that calls a Fortran routine with `count` addresses for each unit of its extent."""
    name = f"lapack_{count}"
    lines = [
        f"define void @{name}(ptr %args, i64 %lo, i64 %hi) nounwind {{",
        "entry:",
        "%routine = load ptr, ptr %args",
        "%grain.at = getelementptr i64, ptr %args, i64 1",
        "%grain = load i64, ptr %grain.at",
        "%chunk = udiv i64 %lo, %grain",
    ]
    for i in range(count):
        for k, word in enumerate(("base", "stride", "apart")):
            lines.append(f"%{word}{i}.at = getelementptr i64, ptr %args, i64 {2 + 3 * i + k}")
            lines.append(f"%{word}{i} = load i64, ptr %{word}{i}.at")
        lines.append(f"%skip{i} = mul i64 %chunk, %apart{i}")
        lines.append(f"%start{i} = add i64 %base{i}, %skip{i}")
    lines += [
        "br label %next",
        "next:",
        "%unit = phi i64 [ %lo, %entry ], [ %unit1, %run ]",
        "%more = icmp slt i64 %unit, %hi",
        "br i1 %more, label %run, label %done",
        "run:",
    ]
    for i in range(count):
        lines.append(f"%offset{i} = mul i64 %unit, %stride{i}")
        lines.append(f"%place{i} = add i64 %start{i}, %offset{i}")
        lines.append(f"%a{i} = inttoptr i64 %place{i} to ptr")
    # The hidden lengths of CHARACTER arguments follow the others in Fortran's calling convention.
    arguments = ", ".join([f"ptr %a{i}" for i in range(count)] + ["i64 1"] * 4)
    lines += [
        f"call void %routine({arguments})",
        "%unit1 = add i64 %unit, 1",
        "br label %next",
        "done:",
        "ret void",
        "}",
    ]
    return TextKernel(name, "\n".join(lines))


@memoize(maxsize=1024)
def query_workspace(routine: str, dtype: str, args: tuple[str | int, ...], after: int = 1) -> int:
    """Return the number of elements of workspace that a routine asks for.

    `args` are its arguments before the workspace, with 0 for each array; `after` is the number of
    arguments that follow lwork.
    """
    answer = np.zeros(2, dtype)
    arrays: list[np.ndarray] = [np.zeros(2, "int64") for _ in range(after)]
    given = [
        np.frombuffer(a.encode(), np.uint8) if isinstance(a, str) else np.array(a, np.int32)
        for a in args
    ]
    everything = [*given, answer, np.array(-1, np.int32), *arrays]
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in everything]
    types = [ctypes.c_void_p] * len(pointers) + [ctypes.c_size_t] * 4
    ctypes.CFUNCTYPE(None, *types)(openblas.address(routine))(*pointers, 1, 1, 1, 1)
    return int(answer[0].real) + 1
