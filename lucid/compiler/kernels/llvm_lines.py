"""The instructions of a kernel: loops, and loads and stores at the addresses of buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lucid.compiler.kernels.nest import Structure
from lucid.compiler.kernels.scalar_code import LLVM, STORED, ScalarWriter, constant


class LineWriter:
    """The part of the Emitter that writes single lines, and loops around them."""

    def __init__(self, structure: Structure, first_id: int, parallel: bool) -> None:
        self.structure = structure
        self.first_id = first_id
        self.parallel = parallel
        self.loop_ids: list[tuple[int, str]] = []
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.owners: list[int] = []  # for each line, the value that it computes, or -1
        self.value = -1
        self.declared: set[str] = set()
        self.used: set[tuple[str, str]] = set()
        self.number = 0
        self.block = "start"
        self.innermost = False
        self.loops = 0
        self.scalar = ScalarWriter(
            self.write, self.declared.add, lambda op, code: self.used.add((op, code))
        )
        self.stride_names: dict[tuple[int, int], str] = {}

    def fresh(self) -> str:
        self.number += 1
        return f"%v{self.number}"

    def write(self, instruction: str) -> str:
        name = self.fresh()
        self.line(f"{name} = {instruction}")
        return name

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")
        self.owners.append(self.value)

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.owners.append(-1)
        self.block = name

    @contextmanager
    def loop(
        self,
        start: str,
        stop: str,
        innermost: bool,
        scalar: bool = False,
        by: str = "1",
        strided: bool = False,
    ) -> Iterator[str]:
        """A loop from `start` to `stop`, never empty; yields the name of its index.

        LLVM vectorizes an innermost loop, but not a scalar or strided one; a scalar one is not even
        unrolled. `by` is a number, or a name that is defined inside.
        """
        innermost = innermost and self.parallel
        self.loops += 1
        tag = f"l{self.loops}"
        before, index, following = self.block, f"%l{self.loops}.i", f"%l{self.loops}.next"
        self.line(f"br label %{tag}")
        self.label(tag)
        head = len(self.lines)
        outer, self.innermost = self.innermost, innermost
        yield index
        self.innermost, self.value = outer, -1
        self.line(f"{following} = add nuw nsw i64 {index}, {by}")
        more = self.write(f"icmp slt i64 {following}, {stop}")
        kinds = "!1" if innermost else "!2, !3" if scalar else "!2, !4" if strided else ""
        mark = f", !llvm.loop !{self.identify(kinds)}" if kinds else ""
        self.line(f"br i1 {more}, label %{tag}, label %{tag}.exit{mark}")
        phi = f"  {index} = phi i64 [ {start}, %{before} ], [ {following}, %{self.block} ]"
        self.lines.insert(head, phi)
        self.owners.insert(head, -1)
        self.label(f"{tag}.exit")

    @contextmanager
    def loop_along(
        self,
        axis: int,
        start: str,
        stop: str,
        bases: Sequence[str],
        innermost: bool = True,
        scalar: bool = False,
    ) -> Iterator[tuple[str, Sequence[str]]]:
        """A loop along an axis; yields its index, and the addresses of all buffers there."""
        strided = self.structure.is_strided and not self.structure.collects
        if innermost and not scalar and strided:
            with self.strided_loop(axis, start, stop, bases) as (i, at):
                yield i, at
        else:
            with self.loop(start, stop, innermost and not scalar, scalar) as i:
                yield i, self.step(bases, axis, i)

    @contextmanager
    def strided_loop(
        self, axis: int, start: str, stop: str, bases: Sequence[str]
    ) -> Iterator[tuple[str, Sequence[str]]]:
        """A loop along an axis where no elements are adjacent.

        It is neither vectorized, nor copied for strides that are 1, which none is, and the next
        address is an addition: the index times the stride would take as long as the rest.
        """
        at = list(bases) if start == "0" else self.step(bases, axis, start)
        moving = [b for b, (_, kinds) in enumerate(self.structure.buffers) if kinds[axis]]
        before = self.block
        with self.loop(start, stop, innermost=False, strided=True) as i:
            head, inside = len(self.lines), list(at)
            for b in moving:
                inside[b] = f"{i}.p{b}"
            yield i, inside
            self.value = -1
            for b in moving:
                here, following = inside[b], f"{inside[b]}.next"
                element = STORED[self.structure.buffers[b][0]]
                stride = self.stride_names[b, axis]
                self.line(f"{following} = getelementptr {element}, ptr {here}, i64 {stride}")
                phi = f"phi ptr [ {at[b]}, %{before} ], [ {following}, %{self.block} ]"
                self.lines.insert(head, f"  {here} = {phi}")
                self.owners.insert(head, -1)

    @contextmanager
    def branch(self, condition: str) -> Iterator[None]:
        """What is written inside runs if a condition holds."""
        self.number += 1
        tag = f"g{self.number}"
        self.line(f"br i1 {condition}, label %{tag}, label %{tag}.exit")
        self.label(tag)
        yield
        self.line(f"br label %{tag}.exit")
        self.label(f"{tag}.exit")

    def identify(self, kinds: str) -> int:
        """A new metadata id for a loop, where LLVM records that it is vectorized."""
        self.loop_ids.append((len(self.loop_ids) + self.first_id, kinds))
        return self.loop_ids[-1][0]

    # Memory

    def access(self) -> str:
        return ", !llvm.access.group !0" if self.innermost else ""

    def step(self, bases: Sequence[str], axis: int, index: str) -> list[str]:
        """The addresses of all buffers at `index` along `axis`."""
        out = []
        self.value = -1
        for i, base in enumerate(bases):
            dtype, classes = self.structure.buffers[i]
            kind = classes[axis]
            if kind == 0:
                out.append(base)
                continue
            offset = (
                index
                if kind == 1
                else self.write(f"mul nsw i64 {index}, {self.stride_names[i, axis]}")
            )
            out.append(self.write(f"getelementptr {STORED[dtype]}, ptr {base}, i64 {offset}"))
        return out

    def load(self, pointer: str, dtype: str) -> str:
        value = self.write(f"load {STORED[dtype]}, ptr {pointer}{self.access()}")
        return self.write(f"icmp ne i8 {value}, 0") if dtype == "bool" else value

    def guarded(self, condition: str, pointer: str, dtype: str) -> str:
        """A load where a condition holds, else 0: LLVM makes it a masked load."""
        if condition == "true":
            return self.load(pointer, dtype)
        before = self.block
        with self.branch(condition):
            found, inside = self.load(pointer, dtype), self.block
        zero = constant(0, dtype)
        return self.write(f"phi {LLVM[dtype]} [ {zero}, %{before} ], [ {found}, %{inside} ]")

    def store(self, pointer: str, dtype: str, value: str) -> None:
        if dtype == "bool":
            value = self.write(f"zext i1 {value} to i8")
        self.line(f"store {STORED[dtype]} {value}, ptr {pointer}{self.access()}")
