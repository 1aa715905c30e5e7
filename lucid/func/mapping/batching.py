"""vmap: vectorize a function of one example over a batch, by batching its Graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from lucid.errors import AxisError, LucidError, ShapeError
from lucid.func.mapping.hot_vmap import vmap_cut
from lucid.func.mapping.levels import (
    VmapCall,
    VmapLevel,
    broadcast_rows,
    check_unshared,
    run_paths,
    select_rows,
)
from lucid.func.numpy_results import returns_numpy
from lucid.ir.pytree import broadcast_prefix, flatten, unflatten
from lucid.ops.core.arguments import public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor
from lucid.ops.shape.copying import COPY
from lucid.tape.bind import bind
from lucid.tape.modes import local
from lucid.tape.node import Traced
from lucid.tape.recording.body import BodyRecorder, State, trace_state
from lucid.tape.recording.trace import function_name
from lucid.transforms.vmap import Batched

RANDOMNESS = ("error", "same", "different")

P = ParamSpec("P")
R = TypeVar("R")


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
    axis_name           a name for the batch axis, used by `func.psum` and other collectives in `f`
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
        is_tensor = [isinstance(x, Traced) for x in leaves]
        leaves = [to_front(what, x, d) for x, d in zip(leaves, dims)]
        n = batch_size(what, leaves, dims, axis_size)
        call = VmapCall(what, n, randomness, axis_name)
        size = n if chunk_size is None else max(min(chunk_size, n), 1)

        def run_on(mapped: VmapLevel) -> tuple[list[Batched], Any]:
            chosen = leaves
            if len(rows := mapped.rows) != n:
                chosen = [x if d is None else select_rows(x, rows) for x, d in zip(leaves, dims)]
            return run(f, mapped, chosen, dims, tree, kwargs, leaves, is_tensor)

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
    whole: Sequence[Any],
    is_tensor: Sequence[bool],
) -> tuple[list[Batched], Any]:
    """Trace `f` for one example and run the batched Graph on the examples of `mapped`.

    whole        the arguments with all examples
    is_tensor    which of them are the caller's tensors, so that `f` may write its examples
    """
    call = mapped.call

    def trace(recorder: BodyRecorder) -> tuple[Any, ...]:
        mapped.begin(recorder)
        given = zip(leaves, dims, is_tensor)
        inside = [x if d is None else mapped.input(x, is_lent) for x, d, is_lent in given]
        before = local.maps
        local.maps = (*before, mapped)
        try:
            result, out_tree = flatten(f(*unflatten(tree, inside), **kwargs))
        finally:
            local.maps = before
        outputs = [as_tensor(y) for y in result]
        written = recorder.written_arguments(inside) if recorder.writes else {}
        same = {j: i for i in written for j, y in enumerate(outputs) if y is inside[i]}
        outputs += [inside[i] for i in written]
        return *recorder.section(mapped.inputs, outputs), out_tree, written, same

    traced, recorder = trace_state(call.what, trace, state=call.state)
    section, captured, out_tree, written, same = traced
    call.hold_locks(recorder)
    values = [*mapped.values, *[Batched(bind(COPY, x), False) for x in recorder.state]]
    for i in written:  # a derivative may need the value before
        values[sum(d is not None for d in dims[:i])] = Batched(bind(COPY, leaves[i]), True)
    given = [*values, *[Batched(x, False) for x in captured]]
    results = vmap_cut(section, function_name(f), mapped.n, given, call.axis_name)
    n_out = len(results) - len(recorder.state)
    call.on_part(recorder, results[n_out:])
    n_out -= len(written)
    for (i, detached), y in zip(written.items(), results[n_out:]):
        others = [*whole[:i], *whole[i + 1 :], *captured, *recorder.state]
        check_unshared(call.what, whole[i], others)
        call.written.append((State(whole[i], detached), mapped.rows, broadcast_rows(y, mapped.n)))
    for j, i in same.items():
        if mapped.n == call.n:
            results[j] = Batched(whole[i], True)
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


def restore_order(y: Batched, order: Sequence[int]) -> Batched:
    """Reorder examples that were computed in `order`."""
    if not y.batched:
        return y
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return Batched(y.tensor[as_tensor(inverse)], True)


# Branching on values in Python


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
