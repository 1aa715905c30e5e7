"""Small loops as one LLVM function: the kernels of their steps inlined, their state in registers.

A loop of a few scalars spends its time between the instructions of the plan, 30 ns each. Here the
instructions of a loop, of its branches and of the loops inside are written as calls in one
function, and LLVM inlines the kernels. The memory of temporaries and carries is local to the
function, sizes are constants, so that LLVM unrolls the loops of kernels and keeps the values in
registers. A loop that needs anything else (BLAS, LAPACK, long arrays) stays with the plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lucid.compiler.backends import selection
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
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import TextKernel, is_steppable, name_of, nest_request
from lucid.compiler.runtime.native_kernel import Request, texts_of
from lucid.compiler.runtime.threads import CLOCK_CHECK_NS
from lucid.ir.graph import Graph

VERSION = 1
MAX_ELEMENTS = 64  # of an array in a native loop: longer ones profit from kernels of their own
MAX_KERNEL_BYTES = 4096  # that one kernel of a native loop reads and writes
MAX_CALLS = 300  # kernels in a native loop, which LLVM compiles as one function
SMALL_WORD = 1 << 15  # smaller integers are sizes, larger ones may be addresses
STEP_NS = 2  # estimated overhead of a step


class NotNative(Exception):
    """Raised while a loop is traced that must stay with the plan."""


def is_small(graph: Graph) -> bool:
    """True if no value of a body, or of the Graphs inside, is too long for a native loop."""
    values = [*graph.inputs, *[v for eqn in graph.equations for v in eqn.outputs]]
    return all(v.type.size <= MAX_ELEMENTS for v in values)


def as_native(layout: Any, works: Sequence[Any], start: int, label: str) -> list[Any]:
    """Return the work of a loop as one native function, or as it is if it must stay a plan.

    start    the arena above this offset belongs to the loop alone
    """
    if is_steppable(selection.current()):
        return list(works)
    builder = layout.builder
    allocations = [a for a in builder.allocations if a[0] >= start]
    try:
        source = LoopKernel(Trace.of(works), Places(builder.arena_cell, allocations))
        return [NativeLoopWork(list(works), source, label)] if source.text else list(works)
    except NotNative:
        return list(works)


@dataclass(eq=False)
class NativeLoopWork:
    """A loop with what precedes and follows it, as one native function."""

    works: list[Any]
    source: LoopKernel
    label: str
    before: Sequence[Any] = ()

    def blocks(self) -> list[tuple[str, Sequence[Any]]]:
        """The work of the function, for people to read."""
        return [("native", self.works)]

    def kernels(self) -> Sequence[Any]:
        return (self.source,)

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        if isinstance(builder, Trace):
            for work in self.works:
                work.add(builder, kernels)
        else:
            builder.native_loop(kernels[self.source.key], self.source.arguments, self.label)


class _Sources(dict[Any, Any]):
    """Stands for a table of loaded kernels: every key has its source."""

    def add(self, works: Sequence[Any]) -> _Sources:
        for work in works:
            if isinstance(work, NativeLoopWork):
                self.add(work.works)
            else:
                self.update((source.key, source) for source in work.kernels())
                for _, inside in getattr(work, "blocks", lambda: ())():
                    self.add(inside)
        return self


@dataclass(eq=False)
class Call:
    """A kernel with its arguments: addresses, sizes, and numbers that may change."""

    source: Structure | TextKernel
    args: list[Any]
    extent: int
    cost: int


class Trace(Builder):
    """Collects the instructions of a loop, with the sources of kernels instead of addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []

    @staticmethod
    def of(works: Sequence[Any]) -> Trace:
        trace = Trace()
        sources = _Sources().add(works)
        for work in works:
            work.add(trace, sources)
        return trace

    def call(
        self,
        kernel: Any,
        args: Sequence[Ref | int],
        extent: int,
        cost: float = 1.0,
        grain: int | None = None,
        step: int = 1,
        label: str = "",
        traffic: tuple[int, int] = (0, 0),
    ) -> None:
        if extent <= 0:
            return
        known = isinstance(kernel, Structure | TextKernel)
        if not known or traffic[0] > MAX_KERNEL_BYTES or (grain or extent) < extent:
            raise NotNative
        if len(self.calls) == MAX_CALLS:
            raise NotNative
        self.calls.append(Call(kernel, list(args), extent, int(extent * cost) + 1))
        self._add([-1, len(self.calls) - 1], label)

    def constant(self, array: Any) -> int:
        raise NotNative


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


@dataclass(eq=False)
class LoopKernel:
    """The source of a native loop: a function of (args, frame, check) that calls kernels.

    arguments    the addresses and numbers that the plan passes to it
    """

    trace: Trace
    places: Places
    arguments: list[Any] = field(default_factory=list)

    @property
    def key(self) -> Hashable:
        return ("native loop", self.text)

    @property
    def name(self) -> str:
        return "loop" + hashlib.sha256(self.text.encode()).hexdigest()[:20]

    @cached_property
    def text(self) -> str:
        writer = LoopWriter(self)
        writer.run()
        return writer.text()

    @cached_property
    def structures(self) -> dict[str, Structure]:
        found = [call.source for call in self.trace.calls if isinstance(call.source, Structure)]
        return {name_of(s): s for s in found}

    def texts(self) -> tuple[str, ...]:
        """The modules to link: the function itself, the kernels it calls, scalar functions."""
        own = self.text.replace(LoopWriter.NAME, self.name)
        hand_written = {c.source.text for c in self.trace.calls if isinstance(c.source, TextKernel)}
        nests = texts_of(self.kernels.source) if self.structures else ()
        return (own, *[inlined(str(text)) for text in (*nests, *sorted(hand_written))])

    @property
    def kernels(self) -> Request:
        """The kernels that it calls, as the current backend compiles them."""
        return nest_request(self.structures, selection.current())

    def request(self) -> Request:
        nests = self.kernels.key if self.structures else b""
        if nests is None:  # a user's text, which is not cached
            return Request((self.name,), self.texts)
        return Request((self.name,), self.texts, f"{VERSION}\n{self.text}\n".encode() + nests)


def inlined(text: str) -> str:
    """Let LLVM inline the kernels of a module, and drop them afterward."""
    text = text.replace("\ndefine void @", "\ndefine linkonce_odr void @")
    if text.startswith("define void @"):
        text = text.replace("define void @", "define linkonce_odr void @", 1)
    return text.replace("i64 %hi) nounwind {", "i64 %hi) nounwind alwaysinline {")


class LoopWriter:
    """Writes the function of a LoopKernel."""

    NAME = "lucid_native_loop"

    def __init__(self, source: LoopKernel) -> None:
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
