"""Plans: a table of instructions over buffers in, one native call on ndarrays out.

A `Builder` collects the buffers and the instructions; `build` encodes them as the threaded code
that `native/plan.ll` runs. Each argument of an instruction is a `Ref` (an address that is known
only when the plan runs: an input, an output, an offset in the arena, the carry of a loop) or an
integer stored in the argument table itself (sizes, strides, addresses of constants).

    b = Builder()
    x = b.input(np.float32, (n,))
    y = b.output(np.float32, (n,))
    t = b.arena(offset=0)                               # offsets are planned by the caller
    b.call(kernels["exp"], [x, t], extent=n, cost=0.4)  # cost: ns for each unit of the extent
    b.call(kernels["half"], [t, y], extent=n, cost=0.1)
    plan = b.build(arena_bytes=4 * n)
    (result,) = plan(array)

`plan.run` is the bare native function: it returns None if an argument is not exactly the expected
ndarray (type, shape, C order, alignment). `plan(...)` then copies arguments that only differ in
layout, and raises for the others. Plans may be called from many threads at once: each call has its
own frame and arena. Ctrl-C interrupts a plan within about 50 ms, even in a long instruction.

Control flow is an instruction that holds blocks of instructions:

    with b.block() as small: b.call(...)
    with b.block() as large: b.call(...)
    b.branch(flag, [small, large])                      # flag: Ref of a bool

    loop = b.loop(trips=10)
    now, then = loop.carry(b.arena(0), b.arena(64))     # buffers that swap after each step
    row = loop.slide(x, stride=4 * n)                   # an address that moves at each step
    with loop.body: b.call(step, [now, row, then], ...)
    b.call(read, [now, y], ...)                         # after the loop: the last carry
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.compiler.plan import layout
from lucid.compiler.plan.instructions import (
    BRANCH,
    CALL,
    LOOP,
    NATIVE_LOOP,
    PARALLEL,
    STOP,
    UNKNOWN,
    Address,
    Block,
    Cell,
    Input,
    Instruction,
    Loop,
    Output,
    Ref,
    chunk_length,
)
from lucid.compiler.runtime.native_kernel import Kernel
from lucid.public.lazy import LazyModule

interrupts: Any = LazyModule("lucid.compiler.runtime.interrupts")
LONG_NS = 50_000_000  # estimated time of one chunk from which another thread runs the plan

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

RELEASE_NS = 5_000  # cheaper plans keep the GIL: taking it back would cost as much


class Builder:
    """Collects buffers and instructions of a plan; see the module's docstring."""

    def __init__(self) -> None:
        self.main = Block()
        self.current = self.main
        self.inputs: list[Input] = []
        self.outputs: list[Output] = []
        self.arena_cell = Cell()
        self.allocations: list[tuple[int, int]] = []  # of the arena: offset, bytes
        self.words: list[int | Ref] = []
        self.keep_alive: list[object] = []
        self.constants: list[np.ndarray] = []
        self.work = 0.0
        self.polled = 0.0  # the work before the latest instruction that polls
        self.longest = 0  # estimated ns between two checks for signals
        self.settle: Callable[[BaseException | None], None] | None = None  # called after each run

    def input(self, dtype: DTypeLike, shape: Sequence[int], writeable: bool = False) -> Ref:
        """The next positional argument; writeable if some instruction writes into it."""
        cell = Cell()
        self.inputs.append(Input(cell, np.dtype(dtype), tuple(shape), writeable))
        return Ref(cell)

    def output(self, dtype: DTypeLike, shape: Sequence[int], into: Ref | None = None) -> Ref:
        """The next result: a new array, or the input `into` itself, which is overwritten."""
        cell, alias = Cell(), -1
        if into is not None:
            alias = [given.cell for given in self.inputs].index(into.cell)
            self.inputs[alias] = self.inputs[alias]._replace(writeable=True)
        self.outputs.append(Output(cell, np.dtype(dtype), tuple(shape), alias))
        return Ref(cell)

    def receive(self, ref: Ref) -> None:
        """Note that other processes send what is written to `ref`, if it is a result."""
        for i, made in enumerate(self.outputs):
            if made.cell is ref.cell:
                self.outputs[i] = made._replace(travels=True)

    def arena(self, offset: int) -> Ref:
        """An offset in the arena, which is 64-byte aligned; its contents do not outlive a call."""
        return Ref(self.arena_cell, offset, offset)

    def constant(self, array: np.ndarray) -> Address:
        """The address of an array that the plan keeps alive."""
        self.constants.append(np.ascontiguousarray(array))
        return Address(self.constants[-1].ctypes.data, "constant", len(self.constants) - 1)

    def call(
        self,
        kernel: Kernel,
        args: Sequence[Ref | int],
        extent: int,
        cost: float = 1.0,
        grain: int | None = None,
        step: int = 1,
        label: str = "",
        traffic: tuple[int, int] = (0, 0),
    ) -> None:
        """Run kernel(args, lo, hi) over [0, extent); `cost` is the estimated ns for one unit.

        Chunks are multiples of `step` and follow from extent and cost, unless `grain` fixes them: a
        kernel that leaves one partial result per chunk needs to know their number.
        """
        if extent <= 0:
            return
        size = grain or chunk_length(extent, cost, step)
        kind = PARALLEL if size < extent and not kernel.is_python else CALL
        spent = int(min(extent, size) * cost) + 1
        words = [kind, self._function(kernel), self._table(args), extent, size, spent]
        self.work += extent * cost
        self.longest = max(self.longest, spent)
        self._add(words, label or kernel.name, traffic=traffic)

    def branch(self, chosen: Ref, blocks: Sequence[Block], width: int = 1, label: str = "") -> None:
        """Run the block that the integer at `chosen` (of 1, 4 or 8 bytes) selects, clamped."""
        words = [BRANCH, 0, self._table([chosen]), len(blocks), width]
        self._add(words, label or "branch", tuple(blocks))

    def loop(
        self,
        trips: int | None = None,
        predicate: Ref | None = None,
        counter: Ref | None = None,
        label: str = "",
        loop: Loop | None = None,
    ) -> Loop:
        """Repeat a body `trips` times, or while the bool at `predicate` is true.

        The predicate is computed by `loop.test` before each step; the step's number is written as
        int64 to `counter`. A `loop` whose carries are already set may be given.
        """
        if trips is None and predicate is None:
            raise ValueError("loop: pass trips or a predicate, otherwise it does not end")
        loop = loop or Loop(self)
        count = self._table([counter]) if counter is not None else -1
        asked = self._table([predicate]) if predicate is not None else -1
        words = [LOOP, count, asked, -1 if trips is None else trips]
        self.work += RELEASE_NS
        blocks = (loop.body_block, loop.test_block)
        self._add(words, label or "loop", blocks, loop)
        return loop

    def native_loop(self, kernel: Kernel, args: Sequence[Ref | int], label: str = "") -> None:
        """Run kernel(args, frame, check): a loop that calls check(frame) for signals itself."""
        self.work += RELEASE_NS
        words = [NATIVE_LOOP, self._function(kernel), self._table(args)]
        self._add(words, label or kernel.name)

    def stop(self, status: Ref, label: str = "stop") -> None:
        """End the run here, without an error, unless the int64 at `status` is zero."""
        self._add([STOP, 0, self._table([status])], label)

    @contextmanager
    def block(self, block: Block | None = None) -> Iterator[Block]:
        """Context in which instructions go into a block of their own."""
        block = block or Block()
        outer, self.current = self.current, block
        try:
            yield block
        finally:
            self.current = outer

    def build(self, arena_bytes: int = 0) -> Plan:
        """The finished plan."""
        return Plan(layout.encode(self, arena_bytes, self.work >= RELEASE_NS))

    def _function(self, kernel: Kernel) -> Address:
        self.keep_alive.append(kernel)
        address = kernel.address
        return address if isinstance(address, Address) else Address(address, UNKNOWN)

    def _table(self, args: Sequence[Ref | int]) -> int:
        first = len(self.words)
        self.words += args
        return first

    def _add(
        self,
        words: list[int],
        label: str,
        blocks: tuple[Block, ...] = (),
        loop: Loop | None = None,
        traffic: tuple[int, int] = (0, 0),
    ) -> None:
        self.current.instructions.append(Instruction(words, label, blocks, loop, traffic))


class Plan:
    """A compiled program: call it with ndarrays, get the tuple of its outputs."""

    def __init__(self, image: layout.Image) -> None:
        self.image = image
        self.inputs = image.inputs
        self.outputs = image.outputs
        self.arena_bytes = image.arena_bytes
        self.labels = image.labels
        self.traffic = image.traffic
        self._code = image.place()
        self.run = layout.native_function(self._code)
        steppable = any(getattr(x, "is_python", False) for x in image.keep_alive)
        if image.settle is not None:
            self.run = settled(self.run, image.settle)
        if image.longest > LONG_NS and not steppable:
            written = [i for i, given in enumerate(self.inputs) if given.writeable]
            self.run = interrupts.interruptible(self.run, written)
            if image.settle is not None:  # an interrupt of this thread, while another runs the plan
                self.run = settled(self.run, image.settle)
        if steppable:
            from lucid.compiler.backends.numba.steppable import raise_errors

            self.run = raise_errors(self.run)
        self._timers: np.ndarray | None = None

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        results = self.run(*arrays)
        if results is None:
            results = self.run(*self._convert_all(arrays))
        if results is None:
            raise TypeError("plan: an argument is not a plain ndarray")
        return results

    def profile(self, on: bool = True) -> None:
        """Start or stop counting the calls and nanoseconds of each instruction."""
        if not on:
            self._code[layout.TIMERS] = 0
            return
        self._timers = np.zeros((len(self.labels), 2), np.int64)
        self._code.keep_alive.append(self._timers)  # a running call may still write to it
        self._code[layout.TIMERS] = self._timers.ctypes.data

    def timings(self) -> list[tuple[str, int, int]]:
        """Return the label, the number of runs and the total nanoseconds of each instruction."""
        if self._timers is None:
            return []
        pairs = zip(self.labels, self._timers.tolist(), strict=True)
        return [(label, count, spent) for label, (count, spent) in pairs]

    def _convert_all(self, arrays: tuple[np.ndarray, ...]) -> list[np.ndarray]:
        if len(arrays) != len(self.inputs):
            raise TypeError(f"plan: {len(arrays)} arguments given, {len(self.inputs)} expected")
        return [_convert(i, *pair) for i, pair in enumerate(zip(self.inputs, arrays, strict=True))]


def settled(
    run: Callable[..., Any], settle: Callable[[BaseException | None], None]
) -> Callable[..., Any]:
    """Return `run`, followed by `settle`, which raises what an instruction in Python has kept."""

    def call(*arrays: np.ndarray) -> Any:
        try:
            results = run(*arrays)
        except BaseException as error:
            settle(error)
            raise
        settle(None)
        return results

    return call


def _convert(i: int, wanted: Input, array: np.ndarray) -> np.ndarray:
    array = np.asarray(array)
    if array.dtype.newbyteorder("=") != wanted.dtype or array.shape != wanted.shape:
        have, want = (f"{x.dtype}{list(x.shape)}" for x in (array, wanted))
        raise TypeError(f"plan: argument {i} is {have}, expected {want}")
    flags = array.flags
    if not wanted.writeable:
        if array.dtype == wanted.dtype and flags.c_contiguous and flags.aligned:
            return array
        return np.array(array, wanted.dtype, order="C", ndmin=0)
    if not (flags.c_contiguous and flags.aligned and flags.writeable):
        raise ValueError(
            f"plan: argument {i} is overwritten, so it must be contiguous and writeable"
        )
    return array
