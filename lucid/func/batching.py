"""vmap: vectorize a function of one example over a batch, by batching its Graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from lucid.errors import AxisError, GraphError, LucidError, ShapeError
from lucid.func.numpy_results import returns_numpy
from lucid.func.state import locks_of, write_back
from lucid.ir.pytree import broadcast_prefix, flatten, unflatten
from lucid.ir.types import Type
from lucid.ops.core.arguments import public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor
from lucid.ops.random.keyed import split
from lucid.ops.shape.copying import COPY
from lucid.tape.bind import bind
from lucid.tape.body import BodyRecorder, State, trace_state
from lucid.tape.modes import local
from lucid.tape.node import GRAD, TRACE, Traced, as_source, leaf, missing_value_error
from lucid.tape.recorder import Locks
from lucid.tape.trace import function_name
from lucid.tape.views import node_of
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
    """

    def __init__(self, what: str, n: int, randomness: str, axis_name: Any = None) -> None:
        self.what = what
        self.n = n
        self.randomness = randomness
        self.axis_name = axis_name
        self.seeds: dict[int, tuple[Any, Any]] = {}
        self.state: list[State] = []
        self.after: dict[int, Any] = {}
        self.parts = 0
        self.held: Locks | None = None

    def hold_locks(self, recorder: BodyRecorder) -> None:
        """Hold the locks of the state from its first reading to the end of the call."""
        if self.held is None and recorder.locks:
            self.held = locks_of(recorder.found_state(), traces=True)
            self.held.__enter__()

    def release_locks(self) -> None:
        if self.held is not None:
            self.held.__exit__()

    def on_part(self, recorder: BodyRecorder, values: Sequence[Batched]) -> None:
        """Note the state after a part of the batch, which must be the same after every part."""
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
        write_back(self.state, [self.after[id(s.tensor)] for s in self.state], "vmap")


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

    def input(self, tensor: Any) -> Any:
        """Return the traced value of one example of `tensor`, whose examples are in axis 0."""
        flags = TRACE | (tensor.node.flags & GRAD if tensor.node is not None else 0)
        inside = leaf(Type(tensor.dtype, tensor.shape[1:]), self.trace, flags)
        self.recorder.inputs.add(inside.node)
        self.inputs.append(inside)
        self.values.append(Batched(tensor, True))
        return inside

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

    With randomness="same" it is the stream around the vmap, whose state is that of any outside
    tensor; with "different" each example has a stream of its own, from one key of that stream.
    """
    for mapped in local.maps:
        if mapped.call.randomness == "error":
            raise LucidError(
                f"{mapped.call.what}: random numbers are drawn inside it; pass randomness='same' "
                f"to share them between examples, or 'different' to draw for each one"
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


@public_function("lucid", "func")
def vmap(
    f: Callable[P, R],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
    branching: str = "error",
    in_axes: Any = ...,
    out_axes: Any = ...,
    axis_name: Any = None,
    axis_size: int | None = None,
) -> Callable[P, R]:
    """Return `f` vectorized over axis `in_dims` of its arguments and `out_dims` of its results.

    in_dims, out_dims   an int, None (not batched), or a pytree of them; also in_axes, out_axes
    randomness          random draws inside `f`: "error", "same" or "different" for each example
    chunk_size          the number of examples to compute at once
    branching           Python's `if` and `while` on values inside `f`: "error", or "split", which
                        runs every path on the examples that take it
    axis_name           a name of the batch axis, for `func.psum` and other collectives in `f`
    axis_size           the number of examples, needed only if no argument is mapped

    >>> import lucid
    >>> dot = lucid.func.vmap(lambda x, y: (x * y).sum(), in_dims=(0, None))
    >>> dot(lucid.ones(3, 2), lucid.ones(2))
    Tensor([2., 2., 2.])
    """
    dims_in = in_dims if in_axes is ... else in_axes  # None means that nothing is mapped
    dims_out = out_dims if out_axes is ... else out_axes
    if randomness not in RANDOMNESS:
        raise LucidError(f"vmap: randomness={randomness!r} is not one of {', '.join(RANDOMNESS)}")
    if branching not in ("error", "split"):
        raise LucidError(f"vmap: branching={branching!r} is not one of error, split")
    if chunk_size is not None and chunk_size < 1:
        raise LucidError(f"vmap: chunk_size={chunk_size} must be at least 1")

    @returns_numpy(lambda args: args)
    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        what = f"vmap of {function_name(f)}"
        leaves, tree = flatten(args)
        dims = broadcast_dims(what, "in_dims", dims_in, args, len(leaves))
        leaves = [to_front(what, x, d) for x, d in zip(leaves, dims)]
        n = batch_size(what, leaves, dims, axis_size)
        call = VmapCall(what, n, randomness, axis_name)
        size = n if chunk_size is None else max(min(chunk_size, n), 1)

        def run_on(mapped: VmapLevel) -> tuple[list[Batched], Any]:
            chosen = leaves
            if len(rows := mapped.rows) != n:
                chosen = [x if d is None else select_rows(x, rows) for x, d in zip(leaves, dims)]
            return run(f, mapped, chosen, dims, tree, kwargs)

        parts, order = [], []
        chunks = [range(start, min(start + size, n)) for start in range(0, max(n, 1), max(size, 1))]
        try:
            for chunk in chunks:
                for rows, part, out_tree in run_paths(run_on, call, chunk, branching == "split"):
                    parts.append((part, out_tree, len(rows)))
                    order += rows
            call.write_back()
        finally:
            call.release_locks()
        outs, out_tree = concatenate_parts(what, parts)
        if order != [*range(n)]:
            outs = [restore_order(y, order) for y in outs]
        places = unflatten(out_tree, range(len(outs)))
        outer_dims = broadcast_dims(what, "out_dims", dims_out, places, len(outs))
        return unflatten(
            out_tree, [move_batch_axis(what, y, d, n) for y, d in zip(outs, outer_dims)]
        )

    return wrapped


def run(
    f: Callable[..., Any],
    mapped: VmapLevel,
    leaves: Sequence[Any],
    dims: Sequence[Any],
    tree: Any,
    kwargs: Any,
) -> tuple[list[Batched], Any]:
    """Trace `f` for one example and run the batched Graph on the examples of `mapped`."""
    call = mapped.call

    def trace(recorder: BodyRecorder) -> tuple[Any, ...]:
        mapped.begin(recorder)
        inside = [x if d is None else mapped.input(x) for x, d in zip(leaves, dims)]
        before = local.maps
        local.maps = (*before, mapped)
        try:
            result, out_tree = flatten(f(*unflatten(tree, inside), **kwargs))
        finally:
            local.maps = before
        outputs = [as_tensor(y) for y in result]
        graph, captured = recorder.cut(mapped.inputs, outputs, function_name(f))
        return graph, captured, out_tree

    (graph, captured, out_tree), recorder = trace_state(call.what, trace, state=call.state)
    call.hold_locks(recorder)
    values = [*mapped.values, *[Batched(bind(COPY, x), False) for x in recorder.state]]
    given = [*values, *[Batched(x, False) for x in captured]]
    results = vmap_graph(graph, mapped.n, given, call.axis_name)
    n_out = len(results) - len(recorder.state)
    call.on_part(recorder, results[n_out:])
    return results[:n_out], out_tree


def broadcast_dims(what: str, name: str, dims: Any, tree: Any, n: int) -> list[Any]:
    """Return the dim of every leaf of `tree`."""
    if dims is None or isinstance(dims, int):
        return [dims] * n
    if isinstance(dims, list):
        dims = tuple(dims)
    try:
        return list(broadcast_prefix(dims, tree))
    except ValueError as error:
        to = "arguments" if name == "in_dims" else "results"
        raise LucidError(f"{what}: {name}={dims!r} does not match the {to}: {error}") from None


def to_front(what: str, x: Any, dim: Any) -> Any:
    """Move the batch axis of a mapped argument to the front; return others unchanged."""
    if dim is None:
        return x
    if isinstance(x, (int, float, complex, str)):
        raise LucidError(f"{what}: in_dims is {dim} for {x!r}, which has no axes; make it None")
    x = as_tensor(x)
    if x.ndim == 0:
        raise ShapeError(f"{what}: in_dims is {dim} for a 0-d tensor, which has no axes")
    axis = canonicalize_axis(what, dim, x.ndim)
    return x.permute((axis, *[i for i in range(x.ndim) if i != axis])) if axis else x


def batch_size(
    what: str, leaves: Sequence[Any], dims: Sequence[Any], axis_size: int | None = None
) -> int:
    sizes = [x.shape[0] for x, d in zip(leaves, dims) if d is not None]
    if axis_size is not None and not all(size == axis_size for size in sizes):
        raise ShapeError(
            f"{what}: axis_size={axis_size}, but mapped arguments have {sizes} examples"
        )
    if axis_size is not None:
        return axis_size
    if not sizes:
        raise LucidError(f"{what}: at least one argument must be mapped; in_dims is None for all")
    if len(set(sizes)) != 1:
        raise ShapeError(f"{what}: mapped arguments have different numbers of examples: {sizes}")
    return sizes[0]


def select_rows(x: Any, rows: Sequence[int]) -> Any:
    """Return the examples `rows` of a tensor with its batch axis in front."""
    if isinstance(rows, range):
        return x[rows.start : rows.stop]
    return x[as_tensor(list(rows))]


def concatenate_parts(
    what: str, parts: Sequence[tuple[list[Batched], Any, int]]
) -> tuple[list[Batched], Any]:
    """Concatenate the results of the parts of a batch."""
    from lucid.ops.shape.joining import cat

    first, out_tree, _ = parts[0]
    if len(parts) == 1:
        return first, out_tree
    if any(tree != out_tree for _, tree, _ in parts):
        raise LucidError(f"{what}: the branches return different structures")
    outs = []
    for i, y in enumerate(first):
        if not any(part[i].batched for part, _, _ in parts) and not differs_between_parts(parts, i):
            outs.append(y)
            continue
        pieces = [broadcast_rows(part[i], n) for part, _, n in parts]
        outs.append(Batched(cat(pieces, 0), True))
    return outs, out_tree


def differs_between_parts(parts: Sequence[tuple[list[Batched], Any, int]], i: int) -> bool:
    """True if the unbatched result `i` is not the same tensor in all parts."""
    return any(part[i].tensor is not parts[0][0][i].tensor for part, _, _ in parts)


def broadcast_rows(y: Batched, n: int) -> Any:
    x: Any = y.tensor if isinstance(y.tensor, Traced) else as_tensor(y.tensor.array)
    return x if y.batched else x.expand((n, *x.shape))


def restore_order(y: Batched, order: Sequence[int]) -> Batched:
    """Reorder examples that were computed in `order`."""
    if not y.batched:
        return y
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return Batched(y.tensor[as_tensor(inverse)], True)


# Branching on values in Python


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


def move_batch_axis(what: str, y: Batched, dim: Any, n: int) -> Any:
    """Move the batch axis of a result to `dim`."""
    x: Any = y.tensor if isinstance(y.tensor, Traced) else as_tensor(y.tensor.array)
    if dim is None:
        if y.batched:
            raise AxisError(f"{what}: out_dims is None for a batched result")
        return x
    if not y.batched:
        x = x.expand((n, *x.shape))
    axis = canonicalize_axis(what, dim, x.ndim)
    if axis == 0:
        return x
    order = list(range(1, x.ndim))
    order.insert(axis, 0)
    return x.permute(order)
