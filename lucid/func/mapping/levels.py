"""Levels of vmap: one call of a vmapped function, its random streams, and its branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from lucid.errors import GraphError, LucidError
from lucid.func.state import locks_of, write_back
from lucid.ir.types import Type
from lucid.ops.core.promote import as_tensor
from lucid.ops.random.keyed import split
from lucid.support.locks import Locks
from lucid.support.source import at_line
from lucid.tape.modes import local
from lucid.tape.node import GRAD, TRACE, Traced, as_source, leaf, missing_value_error
from lucid.tape.recording.body import BodyRecorder, State
from lucid.tape.views import node_of
from lucid.tape.writes import check_writable
from lucid.transforms.vmap import Batched
from lucid.transforms.vmap import vmap as vmap_graph

RANDOMNESS = ("error", "same", "different")

P = ParamSpec("P")
R = TypeVar("R")


class VmapCall:
    """One call of a vmapped function, which may run in chunks and on several paths.

    what          the function, for errors
    n             the number of examples
    randomness    what random draws inside it mean
    axis_name     the name of its batch axis for collectives, or None
    seeds         id -> (Generator, the key that the streams of the examples start from)
    state         outside tensors that the function writes, and their values after it
    written       mapped arguments that the function writes: which, in which rows, new values
    """

    def __init__(self, what: str, n: int, randomness: str, axis_name: Any = None) -> None:
        self.what = what
        self.n = n
        self.randomness = randomness
        self.axis_name = axis_name
        self.seeds: dict[int, tuple[Any, Any]] = {}
        self.state: list[State] = []
        self.after: dict[int, Any] = {}
        self.written: list[tuple[State, Sequence[int], Any]] = []
        self.parts = 0
        self.held: Locks | None = None

    def hold_locks(self, recorder: BodyRecorder) -> None:
        """Hold the locks of the state from its first reading to the end of the call."""
        if self.held is None and recorder.locks:
            self.held = locks_of(recorder.found_state(), traces=True)
            self.held.acquire()

    def release_locks(self) -> None:
        if self.held is not None:
            self.held.release()

    def on_part(self, recorder: BodyRecorder, values: Sequence[Batched]) -> None:
        """Record the state after a part of the batch, which must be the same after every part."""
        self.state = recorder.found_state()
        for s, y in zip(self.state, values):
            value = broadcast_rows(y, 1)
            if y.batched or (self.parts and not same_value(self.after.get(id(s.tensor)), value)):
                remedy = "return it instead"
                if s.locks and self.randomness == "same":
                    remedy = "draws that only some examples make need randomness='different'"
                raise GraphError(
                    f"{self.what}: a per-example value is written to a tensor from outside, "
                    f"{s.tensor.type}, which has no batch axis; {remedy}"
                    f"   [{as_source(recorder.write_sources.get(id(s.tensor)))}]"
                )
            self.after[id(s.tensor)] = y.tensor
        self.parts += 1

    def write_back(self) -> None:
        for s, _, _ in self.written:
            check_writable(s.tensor, "vmap")
        write_back(self.state, [self.after[id(s.tensor)] for s in self.state], "vmap")
        for s, rows, value in self.written:
            if len(rows) < self.n:
                value = s.tensor.index_copy(0, as_tensor(list(rows)), value)
            write_back([s], [value], "vmap")


def same_value(x: Any, y: Any) -> bool:
    """True if two values that a state has after different parts of a batch are known to agree."""
    if x is None or x.raw is None or y.raw is None:
        return False
    return np.array_equal(x.value, y.value[0], equal_nan=x.dtype.kind in "fc")


class VmapLevel:
    """An active vmap, or one chunk of it, and the inputs of its function.

    call      the call that it is part of
    rows      the examples it maps over
    branch    values that Python has read so far; None: reading a value is an error
    streams   id -> the stream that a Generator is for each example
    """

    def __init__(
        self, call: VmapCall, rows: Sequence[int], branch: BranchRecord | None = None
    ) -> None:
        self.call = call
        self.rows = rows
        self.branch = branch

    def begin(self, recorder: BodyRecorder) -> None:
        """Start a trace of the function."""
        self.recorder = recorder
        self.trace = recorder.trace
        self.streams: dict[int, Any] = {}
        self.inputs: list[Any] = []
        self.values: list[Batched] = []
        self.numbers: Any = None

    @property
    def n(self) -> int:
        return len(self.rows)

    def input(self, tensor: Any, is_lent: bool = False) -> Any:
        """Return the traced value of one example of `tensor`, whose examples are in axis 0.

        is_lent    whether the function may write it
        """
        flags = TRACE | (tensor.node.flags & GRAD if tensor.node is not None else 0)
        inside = leaf(Type(tensor.dtype, tensor.shape[1:]), self.trace, flags)
        self.recorder.inputs.add(inside.node)
        self.inputs.append(inside)
        self.values.append(Batched(tensor, True))
        return self.recorder.lend(inside) if is_lent else inside

    def index(self) -> Any:
        """Return the number of the example, a traced value like an argument."""
        if self.numbers is None:
            rows = as_tensor(np.array(self.rows, np.int64))
            self.numbers = self.capture(lambda: self.input(rows))
        return self.numbers

    def capture(self, make: Callable[[], Any]) -> Any:
        """Return a new input, made outside the bodies in this vmap that are being traced."""
        before, innermost = (local.recorder, local.maps), local.recorder
        try:
            local.recorder = self.recorder
            local.maps = local.maps[: local.maps.index(self) + 1]
            made = make()
        finally:
            local.recorder, local.maps = before
        while innermost is not self.recorder:
            innermost.captured[node_of(made)] = made
            innermost = innermost.outer
        return made


# Random draws


def stream_of(generator: Any) -> Any:
    """Return the stream that a Generator stands for inside the active vmaps.

    With randomness="same" it is the stream outside the vmap, whose state is an outside tensor
        like any other; with "different" each example has its own stream, from one key of that one.
    """
    for mapped in local.maps:
        if mapped.call.randomness == "error":
            raise LucidError(
                f"{mapped.call.what}: the function draws random numbers; pass randomness='same' "
                "to share them between examples, or 'different' to draw for each one"
            )
    return _stream(generator, local.maps)


def _stream(generator: Any, maps: tuple[VmapLevel, ...]) -> Any:
    if not maps:
        return generator
    mapped = maps[-1]
    if mapped.call.randomness == "same":
        return _stream(generator, maps[:-1])
    if id(generator) not in mapped.streams:
        mapped.streams[id(generator)] = start_stream(generator, mapped, maps)
    return mapped.streams[id(generator)]


def start_stream(generator: Any, mapped: VmapLevel, maps: tuple[VmapLevel, ...]) -> Any:
    """Start the streams of a vmap's examples, outside the bodies in it that are being traced."""
    call = mapped.call
    before = local.recorder, local.maps
    try:
        local.recorder, local.maps = mapped.recorder.outer, maps[:-1]
        if id(generator) not in call.seeds:
            call.seeds[id(generator)] = (generator, _stream(generator, maps[:-1]).draw())
        keys = split(call.seeds[id(generator)][1], call.n)
        keys = keys if len(mapped.rows) == call.n else select_rows(keys, mapped.rows)
    finally:
        local.recorder, local.maps = before
    streams: list[Any] = []

    def start() -> Any:
        streams.append(generator.substream(mapped.input(keys)))
        return streams[0]._state

    mapped.capture(start)
    return streams[0]


class BranchRecord:
    """The values that Python has read on one path, in order, and how many were replayed."""

    def __init__(self, values_read: Sequence[Any]) -> None:
        self.values_read = list(values_read)
        self.position = 0


class BranchSplit(BaseException):
    """Raised when examples differ in a value that Python reads: one part for each value."""

    def __init__(self, mapped: VmapLevel, parts: list[tuple[list[int], list[Any]]]) -> None:
        self.mapped = mapped
        self.parts = parts


def run_paths(
    run_on: Callable[[VmapLevel], Any], call: VmapCall, rows: Sequence[int], splits: bool
) -> Any:
    """Yield (rows, results, their structure) of every path that some of the rows take."""
    waiting: list[tuple[Sequence[int], list[Any]]] = [(rows, [])]
    while waiting:
        rows, values_read = waiting.pop()
        mapped = VmapLevel(call, rows, BranchRecord(values_read) if splits else None)
        try:
            part, tree = run_on(mapped)
        except BranchSplit as split:
            if split.mapped is not mapped:
                raise
            waiting += reversed(split.parts)
        else:
            yield rows, part, tree


def read_value(x: Any, what: str) -> Any:
    """Return the value of a tensor that Python reads inside vmap, if all examples agree on it."""
    mapped = next((m for m in local.maps if m.trace is x.node.trace), None)
    if mapped is None or mapped.branch is None or not mapped.trace.active:
        raise missing_value_error(x, what)
    branch = mapped.branch
    if branch.position == len(branch.values_read):
        branch.values_read.append(common_value(mapped, x, what))
    branch.position += 1
    return branch.values_read[branch.position - 1]


def common_value(mapped: VmapLevel, x: Any, what: str) -> Any:
    """Return the value of `x` in all examples; raise BranchSplit if they differ."""
    graph, captured = mapped.recorder.cut(mapped.inputs, [x], "read", with_state=False)
    given = [Batched(y, False) for y in (*mapped.recorder.values_before(), *captured)]
    before = local.recorder, local.maps
    local.recorder, local.maps = mapped.recorder.outer, local.maps[: local.maps.index(mapped)]
    try:
        (y,) = vmap_graph(graph, mapped.n, [*mapped.values, *given], mapped.call.axis_name)
        values = broadcast_rows(y, mapped.n).array(what)
    finally:
        local.recorder, local.maps = before
    groups: dict[bytes, list[int]] = {}
    for i, value in enumerate(values):
        groups.setdefault(value.tobytes(), []).append(i)
    if len(groups) == 1:
        return values[0]
    values_read = mapped.branch.values_read  # type: ignore[union-attr]
    parts = [
        ([mapped.rows[i] for i in kept], [*values_read, values[kept[0]]])
        for kept in groups.values()
    ]
    raise BranchSplit(mapped, parts)


def check_unshared(what: str, x: Any, others: Sequence[Any]) -> None:
    """Raise an error if memory that examples write through an argument is read another way."""
    for y in others:
        if isinstance(y, Traced) and shares_memory(x, y):
            raise GraphError(
                f"{what}: an argument is written, {x.type}, whose memory the function also reads "
                f"through another tensor, {y.type}; clone() one of them{at_line()}"
            )


def shares_memory(x: Any, y: Any) -> bool:
    """True if two tensors may have elements in the same memory."""
    if x.raw.__class__ is np.ndarray is y.raw.__class__:
        return np.may_share_memory(x.raw, y.raw)
    return root_of(x) is root_of(y)


def root_of(x: Any) -> Any:
    while x.origin is not None:
        x = x.origin[0]
    return x


def select_rows(x: Any, rows: Sequence[int]) -> Any:
    """Return the examples `rows` of a tensor with its batch axis in front."""
    if isinstance(rows, range):
        return x[rows.start : rows.stop]
    return x[as_tensor(list(rows))]


def broadcast_rows(y: Batched, n: int) -> Any:
    x: Any = y.tensor if isinstance(y.tensor, Traced) else as_tensor(y.tensor.array)
    return x if y.batched else x.expand((n, *x.shape))
