"""Stacks that grow while a plan runs: values that a loop of unknown length saves for later loops.

A stack has five words in the arena: its address, its capacity and its number of rows, and the
addresses of the next row to write and of the last row written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.instructions import IndirectRef, Ref
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import TextKernel
from lucid.ir.types import Type

BEGIN, CAPACITY, COUNT, NEXT, LAST = range(0, 40, 8)
COST_NS = 5.0

HEAD = """
define void @{name}(ptr %args, i64 %lo, i64 %hi) nounwind {{
entry:
  %stack = load ptr, ptr %args
  %p1 = getelementptr i64, ptr %args, i64 1
  %row = load i64, ptr %p1
  %p.capacity = getelementptr i64, ptr %stack, i64 1
  %p.count = getelementptr i64, ptr %stack, i64 2
  %p.next = getelementptr i64, ptr %stack, i64 3
  %p.last = getelementptr i64, ptr %stack, i64 4
"""

# Allocate a stack with as many rows as another one has, and room for at least 16.
OPEN = (
    HEAD.format(name="lucid_stack_open")
    + """
  %p2 = getelementptr i64, ptr %args, i64 2
  %other = load ptr, ptr %p2
  %p.rows = getelementptr i64, ptr %other, i64 2
  %rows = load i64, ptr %p.rows
  %asked = call i64 @llvm.smax.i64(i64 %rows, i64 16)
  %bytes = mul i64 %asked, %row
  %some = add i64 %bytes, 8
  %memory = call ptr @malloc(i64 %some)
  store ptr %memory, ptr %stack
  store i64 %asked, ptr %p.capacity
  store i64 %rows, ptr %p.count
  store ptr %memory, ptr %p.next
  %before = sub i64 %rows, 1
  %far = mul i64 %before, %row
  %end = getelementptr i8, ptr %memory, i64 %far
  store ptr %end, ptr %p.last
  ret void
}
declare ptr @malloc(i64)
declare i64 @llvm.smax.i64(i64, i64)
"""
)

# Count the row just written, and make room for the next one.
PUSH = (
    HEAD.format(name="lucid_stack_push")
    + """
  %count = load i64, ptr %p.count
  %more = add i64 %count, 1
  store i64 %more, ptr %p.count
  %capacity = load i64, ptr %p.capacity
  %full = icmp sge i64 %more, %capacity
  br i1 %full, label %grow, label %go
grow:
  %twice = shl i64 %capacity, 1
  store i64 %twice, ptr %p.capacity
  %bytes = mul i64 %twice, %row
  %some = add i64 %bytes, 8
  %old = load ptr, ptr %stack
  %new = call ptr @realloc(ptr %old, i64 %some)
  store ptr %new, ptr %stack
  br label %go
go:
  %memory = load ptr, ptr %stack
  %far = mul i64 %more, %row
  %end = getelementptr i8, ptr %memory, i64 %far
  store ptr %end, ptr %p.next
  %behind = mul i64 %count, %row
  %last = getelementptr i8, ptr %memory, i64 %behind
  store ptr %last, ptr %p.last
  ret void
}
declare ptr @realloc(ptr, i64)
"""
)

CLOSE = (
    HEAD.format(name="lucid_stack_close")
    + """
  %memory = load ptr, ptr %stack
  call void @free(ptr %memory)
  ret void
}
declare void @free(ptr)
"""
)

# Write a bool: true while the step's number is less than the number of rows of a stack.
MORE = (
    HEAD.format(name="lucid_stack_more")
    + """
  %p2 = getelementptr i64, ptr %args, i64 2
  %answer = load ptr, ptr %p2
  %p3 = getelementptr i64, ptr %args, i64 3
  %counter = load ptr, ptr %p3
  %i = load i64, ptr %counter
  %count = load i64, ptr %p.count
  %less = icmp slt i64 %i, %count
  %bit = zext i1 %less to i8
  store i8 %bit, ptr %answer
  ret void
}
"""
)

KERNELS = {
    "open": TextKernel("lucid_stack_open", OPEN),
    "push": TextKernel("lucid_stack_push", PUSH),
    "close": TextKernel("lucid_stack_close", CLOSE),
    "more": TextKernel("lucid_stack_more", MORE),
}


@dataclass(eq=False)
class StackWork:
    """One of the kernels above."""

    kernel_name: str
    args: Sequence[Any]

    @property
    def label(self) -> str:
        return f"stack {self.kernel_name}"

    def kernels(self) -> Sequence[Any]:
        return (KERNELS[self.kernel_name],)

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        kernel = kernels[KERNELS[self.kernel_name].key]
        builder.call(kernel, self.args, 1, COST_NS, label=self.label)


class Stack:
    """A stack of rows of one type, whose state is in the arena."""

    def __init__(self, layout: Any, type: Type) -> None:
        self.type = type
        self.row = type.size * type.dtype.itemsize
        self.state: Ref = layout.scratch(Type(np.dtype("int64"), (5,))).address

    def open(self, like: Any) -> StackWork:
        """Allocate as many rows as the stack whose state is at `like` has."""
        return StackWork("open", [self.state, self.row, like])

    def push(self) -> StackWork:
        return StackWork("push", [self.state, self.row])

    def close(self) -> StackWork:
        return StackWork("close", [self.state, self.row])

    def more(self, answer: Any, counter: Any) -> StackWork:
        return StackWork("more", [self.state, self.row, answer, counter])

    def next_row(self, loop: Any) -> Array:
        """The row at the end, which a loop writes next."""
        return Array.of(loop.reload(IndirectRef(self.state.at(NEXT))), self.type)

    def current_row(self, loop: Any, backwards: bool) -> Array:
        """The row of the current step, counted from the first or from the last."""
        start = IndirectRef(self.state.at(LAST if backwards else BEGIN))
        return Array.of(loop.slide(start, -self.row if backwards else self.row), self.type)
