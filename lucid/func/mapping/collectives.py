"""Collectives over the named axes of vmap, as in jax.lax: psum, pmax, all_gather, axis_index ..."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, ShapeError
from lucid.ir.pytree import flatten, unflatten
from lucid.ops.core.arguments import public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor
from lucid.ops.elementwise.conditional import where
from lucid.ops.reduce.named_axes import AxisGather, AxisMax, AxisScatter, AxisSum, find_level
from lucid.ops.shape.shaping import movedim
from lucid.tape.bind import bind


def names_of(axis_name: Any) -> tuple[Any, ...]:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def whole_level(axis_name: Any, what: str) -> Any:
    """Return the running vmap with this name; raise an error if it runs only some examples."""
    level = find_level(axis_name, what)
    if level.n != level.call.n:
        raise ArgumentError(
            f"{what}: over {axis_name!r} it needs all {level.call.n} examples at once, but "
            f"chunk_size or branching='split' run {level.n} of them"
        )
    return level


def map_leaves(f: Callable[[Any], Any], tree: Any) -> Any:
    leaves, structure = flatten(tree)
    return unflatten(structure, [f(as_tensor(x)) for x in leaves])


def reduce_over(op: Any, what: str, x: Any, axis_name: Any) -> Any:
    """Return the reduction of every leaf of `x` over one or several named axes."""
    for name in names_of(axis_name):
        x = map_leaves(partial(bind, op(name, whole_level(name, what).n)), x)
    return x


@public_function("func")
def psum(x: Any, axis_name: Any) -> Any:
    """Return the sum of `x` (a pytree) over all examples of the vmap with `axis_name`.

    Booleans are counted. The derivative is a psum too: inside the vmap, `grad` differentiates the
    sum of all examples' results.

    >>> import lucid
    >>> from lucid.func import psum, vmap
    >>> vmap(lambda x: x / psum(x, "i"), axis_name="i")(lucid.tensor([1.0, 3.0]))
    Tensor([0.25, 0.75])
    """
    counted = map_leaves(lambda x: x.to("int64") if x.dtype.kind == "b" else x, x)
    return reduce_over(AxisSum, "psum", counted, axis_name)


@public_function("func")
def pmean(x: Any, axis_name: Any) -> Any:
    """Return the mean of `x` (a pytree) over all examples of the vmap with `axis_name`."""
    size = axis_size(axis_name)
    return map_leaves(lambda total: total / size, psum(x, axis_name))


@public_function("func")
def pmax(x: Any, axis_name: Any) -> Any:
    """Return the maximum of `x` (a pytree) over all examples of the vmap with `axis_name`.

    The examples that attain it share the derivative.
    """
    return reduce_over(AxisMax, "pmax", x, axis_name)


@public_function("func")
def pmin(x: Any, axis_name: Any) -> Any:
    """Return the minimum of `x` (a pytree) over all examples of the vmap with `axis_name`."""
    return map_leaves(lambda y: -y, pmax(map_leaves(lambda y: -y, x), axis_name))


@public_function("func")
def axis_index(axis_name: Any) -> Any:
    """Return the number of the example along the axis `axis_name`, from 0.

    Several names act as one axis whose last name varies fastest.

    >>> from lucid.func import axis_index, vmap
    >>> import lucid
    >>> vmap(lambda x: x * axis_index("i"), axis_name="i")(lucid.ones(3))
    Tensor([0., 1., 2.])
    """
    index: Any = as_tensor(np.zeros((), np.int64))
    for name in names_of(axis_name):
        level = find_level(name, "axis_index")
        index = index * level.call.n + level.index()
    return index


@public_function("func")
def axis_size(axis_name: Any) -> int:
    """Return the number of examples of the vmap with `axis_name`; for several, the product."""
    size = 1
    for name in names_of(axis_name):
        size *= find_level(name, "axis_size").call.n
    return size


@public_function("func")
def all_gather(x: Any, axis_name: Any, *, axis: int = 0, tiled: bool = False) -> Any:
    """Return the values of `x` (a pytree) in all examples, along a new axis `axis`.

    With `tiled` they are concatenated along the existing axis instead.

    >>> import lucid
    >>> from lucid.func import all_gather, vmap
    >>> vmap(lambda x: all_gather(x, "i").sum() - x, axis_name="i")(lucid.tensor([1.0, 2.0]))
    Tensor([2., 1.])
    """
    for name in reversed(names_of(axis_name)):
        level = whole_level(name, "all_gather")
        x = map_leaves(partial(gather_one, level), x)
    n_axes = len(names_of(axis_name))
    return map_leaves(lambda y: place(merge_leading(y, n_axes), axis, tiled), x)


def gather_one(level: Any, x: Any) -> Any:
    if x.raw is not None:  # each example has a copy of its own, with a derivative of its own
        x = where(level.index() >= 0, x, x)
    return bind(AxisGather(level.call.axis_name, level.n), x)


def merge_leading(x: Any, n: int) -> Any:
    return x if n == 1 else x.flatten(0, n - 1)


def place(x: Any, axis: int, tiled: bool) -> Any:
    """Move axis 0 to `axis`, merged with the axis there if `tiled`."""
    axis = canonicalize_axis("all_gather", axis, x.ndim - 1 if tiled else x.ndim)
    moved = movedim(x, 0, axis)
    return moved.flatten(axis, axis + 1) if tiled else moved


@public_function("func")
def psum_scatter(x: Any, axis_name: Any, *, scatter_dimension: int = 0, tiled: bool = False) -> Any:
    """Return, in example i, part i along `scatter_dimension` of the sum of `x` over all examples.

    The axis has the size of the vmap and is removed; with `tiled` it is a multiple and is divided.
    """
    level = whole_level(axis_name, "psum_scatter")
    op = AxisScatter(axis_name, level.n)

    def scatter(x: Any) -> Any:
        return op.inline(parts_along(x, scatter_dimension, level.n, tiled, "psum_scatter"))

    return map_leaves(scatter, x)


def parts_along(x: Any, axis: int, n: int, tiled: bool, what: str) -> Any:
    """Return `x` with `n` parts of an axis in front; without `tiled` each part has one element."""
    axis = canonicalize_axis(what, axis, x.ndim)
    size = x.shape[axis]
    if (size % n if tiled else size != n) != 0:
        need = f"a multiple of {n}" if tiled else str(n)
        raise ShapeError(f"{what}: axis {axis} has size {size}, not {need}")
    if not tiled:
        return movedim(x, axis, 0)
    return movedim(x.unflatten(axis, (n, size // n)), axis, 0)


@public_function("func")
def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, tiled: bool = False
) -> Any:
    """Return, in example i, part i along `split_axis` of every example, along `concat_axis`.

    Several names act as one axis whose last name varies fastest.
    """
    levels = [whole_level(name, "all_to_all") for name in names_of(axis_name)]
    index, n = axis_index(axis_name), axis_size(axis_name)

    def exchange(x: Any) -> Any:
        parts = parts_along(x, split_axis, n, tiled, "all_to_all")
        for level in reversed(levels):
            parts = gather_one(level, parts)
        parts = merge_leading(parts, len(levels))
        return place(parts.transpose(0, 1)[index], concat_axis, tiled)

    return map_leaves(exchange, x)


@public_function("func")
def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Return, in example `dest`, the value of example `source` for each (source, dest) in `perm`.

    Examples that receive nothing get zeros.
    """
    level = whole_level(axis_name, "ppermute")
    source = np.full(level.n, -1)
    for i, j in perm:
        if not (0 <= i < level.n and 0 <= j < level.n) or source[j] >= 0:
            facts = f"({i}, {j}) in perm is out of range or its destination is there twice"
            raise ArgumentError(f"ppermute: {facts}")
        source[j] = i
    mine = as_tensor(source)[level.index()]

    def permute(x: Any) -> Any:
        found = gather_one(level, x)[mine.clamp(0)]
        return where(mine >= 0, found, found * 0)

    return map_leaves(permute, x)
