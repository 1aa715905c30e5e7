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
from lucid.compiler.kernels.nest import Structure
from lucid.compiler.lowering.loops.loop_writer import Call, LoopWriter, NotNative, Places
from lucid.compiler.plan.instructions import (
    Ref,
)
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import TextKernel, is_steppable, name_of, nest_request
from lucid.compiler.runtime.native_kernel import Request, texts_of
from lucid.ir.graph import Graph

VERSION = 1
MAX_ELEMENTS = 64  # of an array in a native loop: longer ones profit from kernels of their own
MAX_KERNEL_BYTES = 4096  # that one kernel of a native loop reads and writes
MAX_CALLS = 300  # kernels in a native loop, which LLVM compiles as one function


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
