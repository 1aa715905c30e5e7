"""vmap: a function of one example made one of many, by batching its Graph, without a loop."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from lucid.errors import AxisError, GraphError, LucidError, ShapeError
from lucid.ir.pytree import broadcast_prefix, flatten, unflatten
from lucid.ir.source import at_line
from lucid.ir.types import Type
from lucid.ops.core.axes import axis_of
from lucid.ops.core.promote import as_tensor
from lucid.ops.random.keyed import split
from lucid.tape.cut import cut
from lucid.tape.modes import local
from lucid.tape.node import GRAD, TRACE, Trace, Traced, leaf, unknown_value
from lucid.tape.trace import function_name
from lucid.tape.views import tensor_of
from lucid.transforms.vmap import Batched
from lucid.transforms.vmap import vmap as vmap_graph

RANDOMNESS = ("error", "same", "different")


class Write(NamedTuple):
    """A write of a value that differs between examples to a tensor that had one for all."""

    tensor: weakref.ref[Any]
    value: Any
    node: Any
    line: str


class Map:
    """A running vmap, or one part of it, and the inputs of its function.

    rows      which examples it maps over
    keys      keys drawn in the first part, which the others draw again; None: that is an error
    branch    what Python has read so far, where paths may split; None: to read is an error
    writes    the tensors with values that were given one for each example
    """

    def __init__(
        self, what: str, rows: Sequence[int], keys: Keys | None, branch: Branch | None = None
    ) -> None:
        self.trace = Trace(what, depth=len(local.maps) + 1)
        self.rows = rows
        self.keys = keys
        self.branch = branch
        self.drawn = 0
        self.inputs: list[Any] = []
        self.values: list[Batched] = []
        self.writes: list[Write] = []

    @property
    def n(self) -> int:
        return len(self.rows)

    def input(self, tensor: Any) -> Any:
        """What stands inside the function for one example of `tensor`, which has them in axis 0."""
        flags = TRACE | (tensor.node.flags & GRAD if tensor.node is not None else 0)
        inside = leaf(Type(tensor.dtype, tensor.shape[1:]), self.trace, flags)
        self.inputs.append(inside)
        self.values.append(Batched(tensor, True))
        return inside

    def wrote(self, x: Any) -> None:
        """Note that `x` is about to become a value of every example."""
        self.writes.append(Write(weakref.ref(x), x.value, x.node, at_line()))

    def refuse_writes(self, outputs: Sequence[Any]) -> None:
        """Refuse writes to tensors that outlive the function: such a one has no room for all."""
        own = {id(x) for y in outputs for x in with_bases(y)}
        if self.outliving(own):
            gc.collect()
        written = self.outliving(own)
        if written:
            self.undo_writes()
            raise GraphError(
                f"{self.trace.what}: a value that differs between examples is written to a tensor "
                f"from outside, which has one for all; return it instead{written[0].line}"
            )

    def outliving(self, own: set[int]) -> list[Write]:
        alive = [(write, write.tensor()) for write in self.writes]
        return [
            write for write, x in alive if x is not None and x.value is None and id(x) not in own
        ]

    def undo_writes(self) -> None:
        for write in reversed(self.writes):
            x = write.tensor()
            if x is not None:
                x.value, x.node = write.value, write.node


def with_bases(x: Any) -> Iterator[Any]:
    """A tensor and what it is a view of."""
    while x is not None:
        yield x
        x = None if x.origin is None else x.origin[0]


class Keys:
    """The keys that a vmap of `n` examples draws, each `shared` by all or split between them."""

    def __init__(self, n: int, shared: bool) -> None:
        self.n = n
        self.shared = shared
        self.drawn: list[Any] = []


def draw_key(draw: Callable[[], Any]) -> Any:
    """The key that `draw` gives, as the running vmaps want it: refused, shared, or one for each."""
    for mapped in local.maps:
        if mapped.keys is None:
            raise LucidError(
                f"{mapped.trace.what}: a random number is drawn inside it; "
                "pass randomness='same' to "
                f"draw one for all examples, or 'different' to draw one for each{at_line()}"
            )
    return _draw(draw, local.maps)


def _draw(draw: Callable[[], Any], maps: tuple[Map, ...]) -> Any:
    if not maps:
        return draw()
    mapped: Map = maps[-1]
    keys = mapped.keys
    assert keys is not None  # draw_key has refused it
    if mapped.drawn == len(keys.drawn):
        keys.drawn.append(_draw(draw, maps[:-1]))
    key = keys.drawn[mapped.drawn]
    mapped.drawn += 1
    if keys.shared:
        return key
    each = split(key, keys.n)
    whole = len(mapped.rows) == keys.n
    return mapped.input(each if whole else some_rows(each, mapped.rows))


def vmap(
    f: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
    branching: str = "error",
    in_axes: Any = None,
    out_axes: Any = None,
) -> Callable[..., Any]:
    """`f` over a batch: examples are in axis `in_dims` of arguments, `out_dims` of results.

    in_dims, out_dims   an int, None (shared by all), or a pytree of them; also in_axes, out_axes
    randomness          of numbers drawn inside: "error", "same" or "different" for each example
    chunk_size          how many examples at once
    branching           of Python's `if` and `while` on values inside: "error", or "split", which
                        runs every path that is taken on the examples that take it

    >>> import lucid
    >>> dot = lucid.func.vmap(lambda x, y: (x * y).sum(), in_dims=(0, None))
    >>> dot(lucid.ones(3, 2), lucid.ones(2))
    Tensor([2., 2., 2.])
    """
    dims_in = in_dims if in_axes is None else in_axes
    dims_out = out_dims if out_axes is None else out_axes
    if randomness not in RANDOMNESS:
        raise LucidError(
            f"vmap: randomness {randomness!r}; one of {', '.join(RANDOMNESS)}{at_line()}"
        )
    if branching not in ("error", "split"):
        raise LucidError(f"vmap: branching {branching!r}; one of error, split{at_line()}")
    if chunk_size is not None and chunk_size < 1:
        raise LucidError(f"vmap: chunk_size {chunk_size} must be at least 1{at_line()}")

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        what = f"vmap of {function_name(f)}"
        leaves, tree = flatten(args)
        dims = spread_dims(what, "in_dims", dims_in, args, len(leaves))
        leaves = [to_front(what, x, d) for x, d in zip(leaves, dims)]
        n = batch_size(what, leaves, dims)
        keys = None if randomness == "error" else Keys(n, randomness == "same")
        size = n if chunk_size is None else max(min(chunk_size, n), 1)

        def on(mapped: Map) -> tuple[list[Batched], Any]:
            chosen = leaves
            if len(rows := mapped.rows) != n:
                chosen = [x if d is None else some_rows(x, rows) for x, d in zip(leaves, dims)]
            return run(f, mapped, chosen, dims, tree, kwargs)

        parts, order = [], []
        chunks = [range(start, min(start + size, n)) for start in range(0, max(n, 1), max(size, 1))]
        for chunk in chunks:
            for rows, part, out_tree in paths(on, what, chunk, keys, branching == "split"):
                parts.append((part, out_tree, len(rows)))
                order += rows
        outs, out_tree = joined(what, parts)
        if order != [*range(n)]:
            outs = [in_order(y, order) for y in outs]
        places = unflatten(out_tree, range(len(outs)))
        outer_dims = spread_dims(what, "out_dims", dims_out, places, len(outs))
        return unflatten(out_tree, [place(what, y, d, n) for y, d in zip(outs, outer_dims)])

    return wrapped


def run(
    f: Callable[..., Any],
    mapped: Map,
    leaves: Sequence[Any],
    dims: Sequence[Any],
    tree: Any,
    kwargs: Any,
) -> tuple[list[Batched], Any]:
    """Trace `f` for one example and run its Graph for those of `mapped`."""
    inside = [x if d is None else mapped.input(x) for x, d in zip(leaves, dims)]
    before = local.maps
    local.maps = (*before, mapped)
    try:
        result, out_tree = flatten(f(*unflatten(tree, inside), **kwargs))
    except BaseException:
        mapped.undo_writes()
        raise
    finally:
        local.maps = before
    outputs = [as_tensor(y) for y in result]
    mapped.refuse_writes(outputs)
    traced = [y for y in outputs if y.value is None]
    section = cut(mapped.inputs, traced)
    mapped.trace.active = False
    captured = [section.slots[slot] for slot in section.captured]
    values = [*mapped.values, *[Batched(tensor_of(node), False) for node in captured]]
    results = iter(vmap_graph(section.graph(function_name(f)), mapped.n, values))
    return [next(results) if y.value is None else Batched(y, False) for y in outputs], out_tree


def spread_dims(what: str, name: str, dims: Any, tree: Any, n: int) -> list[Any]:
    """A dim for every leaf of `tree`."""
    if dims is None or isinstance(dims, int):
        return [dims] * n
    if isinstance(dims, list):
        dims = tuple(dims)
    try:
        return list(broadcast_prefix(dims, tree))
    except ValueError as error:
        to = "arguments" if name == "in_dims" else "results"
        raise LucidError(
            f"{what}: {name} {dims!r} does not fit the {to}: {error}{at_line()}"
        ) from None


def to_front(what: str, x: Any, dim: Any) -> Any:
    """A mapped argument as a tensor with its examples in axis 0; others as they are."""
    if dim is None:
        return x
    if isinstance(x, (int, float, complex, str)):
        raise LucidError(
            f"{what}: in_dims is {dim} for {x!r}, which has no axes; make it None{at_line()}"
        )
    x = as_tensor(x)
    if x.ndim == 0:
        raise ShapeError(f"{what}: in_dims is {dim} for a 0-d tensor, which has no axes{at_line()}")
    axis = axis_of(what, dim, x.ndim)
    return x.permute((axis, *[i for i in range(x.ndim) if i != axis])) if axis else x


def batch_size(what: str, leaves: Sequence[Any], dims: Sequence[Any]) -> int:
    sizes = [x.shape[0] for x, d in zip(leaves, dims) if d is not None]
    if not sizes:
        raise LucidError(
            f"{what}: at least one argument must be mapped; in_dims is None for all{at_line()}"
        )
    if len(set(sizes)) != 1:
        raise ShapeError(
            f"{what}: mapped arguments have different numbers of examples: {sizes}{at_line()}"
        )
    return sizes[0]


def some_rows(x: Any, rows: Sequence[int]) -> Any:
    """Some examples of a tensor that has them in axis 0."""
    if isinstance(rows, range):
        return x[rows.start : rows.stop]
    return x[as_tensor(list(rows))]


def joined(what: str, parts: Sequence[tuple[list[Batched], Any, int]]) -> tuple[list[Batched], Any]:
    """The results of parts of a batch as those of the whole."""
    from lucid.ops.shape.joining import cat

    first, out_tree, _ = parts[0]
    if len(parts) == 1:
        return first, out_tree
    if any(tree != out_tree for _, tree, _ in parts):
        raise LucidError(f"{what}: the paths return different structures{at_line()}")
    outs = []
    for i, y in enumerate(first):
        if not any(part[i].batched for part, _, _ in parts) and not has_paths(parts, i):
            outs.append(y)
            continue
        pieces = [each_row(part[i], n) for part, _, n in parts]
        outs.append(Batched(cat(pieces, 0), True))
    return outs, out_tree


def has_paths(parts: Sequence[tuple[list[Batched], Any, int]], i: int) -> bool:
    """Is result `i`, which no example decides, another tensor in another part?"""
    return any(part[i].tensor is not parts[0][0][i].tensor for part, _, _ in parts)


def each_row(y: Batched, n: int) -> Any:
    x: Any = y.tensor if isinstance(y.tensor, Traced) else as_tensor(y.tensor.array)
    return x if y.batched else x.expand((n, *x.shape))


def in_order(y: Batched, order: Sequence[int]) -> Batched:
    """Examples that stand in some order, put back."""
    if not y.batched:
        return y
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return Batched(y.tensor[as_tensor(inverse)], True)


# Python's branches


class Branch:
    """What Python has read on one path: the values, in order, and how many were read again."""

    def __init__(self, known: Sequence[Any]) -> None:
        self.known = list(known)
        self.position = 0


class Split(BaseException):
    """Examples differ in what Python reads: a part for each value."""

    def __init__(self, mapped: Map, parts: list[tuple[list[int], list[Any]]]) -> None:
        self.mapped = mapped
        self.parts = parts


def paths(
    on: Callable[[Map], Any], what: str, rows: Sequence[int], keys: Keys | None, splits: bool
) -> Any:
    """(rows, results, their structure) of every path that some of the rows take."""
    waiting: list[tuple[Sequence[int], list[Any]]] = [(rows, [])]
    while waiting:
        rows, known = waiting.pop()
        mapped = Map(what, rows, keys, Branch(known) if splits else None)
        try:
            part, tree = on(mapped)
        except Split as split:
            if split.mapped is not mapped:
                raise
            waiting += reversed(split.parts)
        else:
            yield rows, part, tree


def read(x: Any, what: str) -> Any:
    """The value of a tensor inside vmap that Python asks for, where all examples agree on it."""
    mapped = next((m for m in local.maps if m.trace is x.node.trace), None)
    if mapped is None or mapped.branch is None or not mapped.trace.active:
        raise unknown_value(x, what)
    branch = mapped.branch
    if branch.position == len(branch.known):
        branch.known.append(agreed(mapped, x, what))
    branch.position += 1
    return branch.known[branch.position - 1]


def agreed(mapped: Map, x: Any, what: str) -> Any:
    """The value of `x` in all examples; raises Split where they differ."""
    section = cut(mapped.inputs, [x])
    captured = [Batched(tensor_of(section.slots[slot]), False) for slot in section.captured]
    (y,) = vmap_graph(section.graph("read"), mapped.n, [*mapped.values, *captured])
    before, local.maps = local.maps, local.maps[: local.maps.index(mapped)]
    try:
        values = each_row(y, mapped.n).array(what)
    finally:
        local.maps = before
    groups: dict[bytes, list[int]] = {}
    for i, value in enumerate(values):
        groups.setdefault(value.tobytes(), []).append(i)
    if len(groups) == 1:
        return values[0]
    known = mapped.branch.known  # type: ignore[union-attr]
    parts = [([mapped.rows[i] for i in own], [*known, values[own[0]]]) for own in groups.values()]
    raise Split(mapped, parts)


def place(what: str, y: Batched, dim: Any, n: int) -> Any:
    """A result with its examples in axis `dim`."""
    x: Any = y.tensor if isinstance(y.tensor, Traced) else as_tensor(y.tensor.array)
    if dim is None:
        if y.batched:
            raise AxisError(
                f"{what}: out_dims is None for a result that differs between examples{at_line()}"
            )
        return x
    if not y.batched:
        x = x.expand((n, *x.shape))
    axis = axis_of(what, dim, x.ndim)
    if axis == 0:
        return x
    order = list(range(1, x.ndim))
    order.insert(axis, 0)
    return x.permute(order)
