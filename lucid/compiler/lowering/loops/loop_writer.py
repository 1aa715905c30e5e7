"""loop_writer: the LLVM text of a small loop, from the instructions that were traced for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lucid.compiler.kernels.nest import GENERAL, Structure
from lucid.compiler.plan.instructions import (
    BRANCH,
    Block,
    Cell,
    IndirectRef,
    Instruction,
    Loop,
    Ref,
)
from lucid.compiler.runtime.kernel_table import TextKernel, name_of
from lucid.compiler.runtime.threads import CLOCK_CHECK_NS

SMALL_WORD = 1 << 15  # smaller integers are sizes, larger ones may be addresses
STEP_NS = 2  # estimated overhead of a step


class NotNative(Exception):
    """Raised while a loop is traced that must stay with the plan."""


@dataclass(eq=False)
class Call:
    """A kernel with its arguments: addresses, sizes, and numbers that may change."""

    source: Structure | TextKernel
    args: list[Any]
    extent: int
    cost: int


class Places:
    """The local memory of a native loop: ranges of the arena that overlap are one allocation."""

    def __init__(self, arena: Cell, allocations: Sequence[tuple[int, int]]) -> None:
        self.arena = arena
        self.ranges: list[tuple[int, int]] = []
        for offset, nbytes in sorted(allocations):
            if self.ranges and offset < self.ranges[-1][1]:
                begin, end = self.ranges.pop()
                self.ranges.append((begin, max(end, offset + nbytes)))
            else:
                self.ranges.append((offset, offset + nbytes))

    def find(self, offset: int) -> tuple[int, int] | None:
        """Return the number of the allocation of an offset in the arena, and where it begins."""
        for i, (begin, end) in enumerate(self.ranges):
            if begin <= offset < end:
                return i, begin
        return None


class LoopWriter:
    """Writes the function of a LoopKernel."""

    NAME = "lucid_native_loop"

    def __init__(self, source: Any) -> None:
        self.source = source
        self.trace = source.trace
        self.places = source.places
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self.bases: dict[Any, str] = {}
        self.cells: dict[Cell, str] = {}
        self.count = 0

    def text(self) -> str:
        local = [
            f"  %local{i} = alloca [{end - begin} x i8], align 64"
            for i, (begin, end) in enumerate(self.places.ranges)
        ]
        return "\n".join(
            [
                f"define void @{self.NAME}(ptr %args, ptr %frame, ptr %check) nounwind {{",
                "entry:",
                "  %fuel = alloca i64",
                *local,
                *self.entry,
                f"  store i64 {CLOCK_CHECK_NS}, ptr %fuel",
                "  br label %start",
                "start:",
                *self.lines,
                "  br label %stop",
                "stop:",
                "  ret void",
                "}",
                "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
                "declare i64 @llvm.smin.i64(i64, i64)",
                "declare i64 @llvm.smax.i64(i64, i64)",
                *sorted(self.declared),
                "",
            ]
        )

    def run(self) -> None:
        self.block(self.trace.main)

    # Values

    def write(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def label(self, what: str) -> str:
        self.count += 1
        return f"{what}{self.count}"

    def begin(self, label: str) -> None:
        self.lines += [f"  br label %{label}", f"{label}:"]

    def variable(self, kind: str, what: str) -> str:
        self.count += 1
        self.entry.append(f"  %{what}{self.count} = alloca {kind}")
        return f"%{what}{self.count}"

    def argument(self, kind: str, word: Any) -> str:
        """Return a word of the plan's argument table, loaded at entry."""
        if (kind, word) not in self.bases:
            i, name = len(self.source.arguments), f"%a{len(self.source.arguments)}"
            self.source.arguments.append(word)
            self.entry += [
                f"  {name}.p = getelementptr i64, ptr %args, i64 {i}",
                f"  {name} = load {kind}, ptr {name}.p",
            ]
            self.bases[kind, word] = name
        return self.bases[kind, word]

    def address(self, ref: Any) -> str:
        """Return the pointer of an address: in local memory, in a loop's cell, or an argument.

        Cells of loops outside are arguments too: the plan updates them.
        """
        if not isinstance(ref, Ref):
            return self.argument("ptr", ref)
        cell, offset, home = ref
        if cell in self.cells:
            base = self.write(f"load ptr, ptr {self.cells[cell]}")
        elif cell is self.places.arena and (found := self.places.find(home)) is not None:
            number, begin = found
            base, offset = f"%local{number}", offset - begin
        else:
            return self.argument("ptr", Ref(cell, offset))
        return self.write(f"getelementptr i8, ptr {base}, i64 {offset}") if offset else base

    # Instructions

    def block(self, block: Block) -> int:
        """Write the instructions of a block, and return their estimated cost."""
        return sum([self.instruction(ins) for ins in block.instructions])

    def instruction(self, ins: Instruction) -> int:
        if ins.loop is not None:
            return self.loop(ins, ins.loop)
        if ins.words[0] == BRANCH:
            return self.branch(ins)
        return self.call(self.trace.calls[ins.words[1]])

    def call(self, call: Call) -> int:
        name = call.source.name if isinstance(call.source, TextKernel) else name_of(call.source)
        self.declared.add(f"declare void @{name}(ptr, i64, i64)")
        table = self.variable(f"[{len(call.args)} x i64]", "table")
        constant = constant_words(call)
        for i, word in enumerate(call.args):
            if isinstance(word, Ref) or i in pointer_words(call):
                value, kind = self.address(word), "ptr"
            elif i in constant:
                value, kind = str(word), "i64"
            else:
                value, kind = self.argument("i64", word), "i64"
            place = self.write(f"getelementptr i64, ptr {table}, i64 {i}")
            self.lines.append(f"  store {kind} {value}, ptr {place}")
        self.lines.append(f"  call void @{name}(ptr {table}, i64 0, i64 {call.extent})")
        return call.cost

    def branch(self, ins: Instruction) -> int:
        _, _, word, count, width = ins.words[:5]
        place = self.address(self.trace.words[word])
        chosen = self.write(f"load i{8 * width}, ptr {place}")
        if width < 8:
            extend = "zext" if width == 1 else "sext"
            chosen = self.write(f"{extend} i{8 * width} {chosen} to i64")
        low = self.write(f"call i64 @llvm.smin.i64(i64 {chosen}, i64 {count - 1})")
        index = self.write(f"call i64 @llvm.smax.i64(i64 {low}, i64 0)")
        labels = [self.label("branch") for _ in range(count)]
        after = self.label("join")
        cases = " ".join(f"i64 {i}, label %{name}" for i, name in enumerate(labels[:-1]))
        self.lines.append(f"  switch i64 {index}, label %{labels[-1]} [ {cases} ]")
        costs = []
        for name, block in zip(labels, ins.blocks):
            self.lines.append(f"{name}:")
            costs.append(self.block(block))
            self.lines.append(f"  br label %{after}")
        self.lines.append(f"{after}:")
        return max(costs)

    def loop(self, ins: Instruction, loop: Loop) -> int:
        body, test = ins.blocks
        _, counter, predicate, trips = ins.words[:4]
        for cell, start in loop.enter:
            self.cells.setdefault(cell, self.variable("ptr", "cell"))
            self.lines.append(f"  store ptr {self.started(start)}, ptr {self.cells[cell]}")
        i = self.variable("i64", "i")
        self.lines.append(f"  store i64 0, ptr {i}")
        again, iterate, done = self.label("next"), self.label("step"), self.label("done")
        self.begin(again)
        step = self.write(f"load i64, ptr {i}")
        if trips >= 0:
            last = self.argument("i64", trips)
            more = self.write(f"icmp slt i64 {step}, {last}")
            begin = self.label("more")
            self.lines += [f"  br i1 {more}, label %{begin}, label %{done}", f"{begin}:"]
        if counter >= 0:
            self.lines.append(f"  store i64 {step}, ptr {self.address(self.trace.words[counter])}")
        cost = STEP_NS
        if predicate >= 0:
            cost += self.block(test)
            answer = self.write(f"load i8, ptr {self.address(self.trace.words[predicate])}")
            more = self.write(f"icmp ne i8 {answer}, 0")
            self.lines += [f"  br i1 {more}, label %{iterate}, label %{done}", f"{iterate}:"]
        cost += self.block(body)
        for cell, other, amount in loop.step:
            self.advance(cell, other, amount)
        following = self.write(f"add nsw i64 {step}, 1")
        self.lines.append(f"  store i64 {following}, ptr {i}")
        self.tick(cost, again)
        self.lines.append(f"{done}:")
        return cost

    def started(self, start: Ref | IndirectRef) -> str:
        if isinstance(start, IndirectRef):
            return self.write(f"load ptr, ptr {self.address(start.address)}")
        return self.address(start)

    def advance(self, cell: Cell, other: Cell | IndirectRef | None, amount: int) -> None:
        """Move a cell by `amount`, reload it, or copy a carry of `amount` bytes."""
        place = self.cells[cell]
        if isinstance(other, Cell):
            now = self.write(f"load ptr, ptr {place}")
            then = self.write(f"load ptr, ptr {self.cells[other]}")
            operands = f"ptr {now}, ptr {then}, i64 {amount}, i1 false"
            self.lines.append(f"  call void @llvm.memcpy.p0.p0.i64({operands})")
        elif other is None:
            now = self.write(f"load ptr, ptr {place}")
            moved = self.write(f"getelementptr i8, ptr {now}, i64 {amount}")
            self.lines.append(f"  store ptr {moved}, ptr {place}")
        else:
            self.lines.append(f"  store ptr {self.started(other)}, ptr {place}")

    def tick(self, cost: int, again: str) -> None:
        """Count the work of a step, and look for signals when enough of it is done."""
        fuel = self.write("load i64, ptr %fuel")
        left = self.write(f"sub i64 {fuel}, {cost}")
        self.lines.append(f"  store i64 {left}, ptr %fuel")
        empty = self.write(f"icmp slt i64 {left}, 0")
        look = self.label("look")
        self.lines += [f"  br i1 {empty}, label %{look}, label %{again}", f"{look}:"]
        self.lines.append(f"  store i64 {CLOCK_CHECK_NS}, ptr %fuel")
        status = self.write(
            "call i64 %check(ptr %frame) nounwind memory(inaccessiblemem: readwrite)"
        )
        fine = self.write(f"icmp eq i64 {status}, 0")
        self.lines.append(f"  br i1 {fine}, label %{again}, label %stop")


def pointer_words(call: Call) -> range:
    """The arguments that are addresses, whether known when the plan is made or not."""
    return range(len(call.source.buffers) if isinstance(call.source, Structure) else 0)


def constant_words(call: Call) -> set[int]:
    """The arguments that become constants of the function: sizes and strides."""
    source = call.source
    if not isinstance(source, Structure):
        words = enumerate(call.args)
        return {i for i, word in words if not isinstance(word, Ref) and 0 <= word < SMALL_WORD}
    first = len(source.buffers)
    strides = sum(c == GENERAL for _, classes in source.buffers for c in classes)
    numbers = first + len(source.reduced) + strides
    count = sum(value.op == "number" for value in source.values)
    every = range(first, len(call.args))
    return {i for i in every if i not in range(numbers, numbers + count)}
