"""Rules of `simplify` for reads and writes at indices: a reshape moves to the indices.

An index axis that is split after a gather, or merged before a scatter, is split or merged in the
indices instead, which are a view. What remains is a transpose, which loops read in place, where a
reshape of a transposed array would have to be copied.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lucid.compiler.passes.rules.simplify_matmul import reshape
from lucid.ir.graph import Atom, Equation
from lucid.ir.rewrite import Rewriter
from lucid.ops.index.gather_scatter import Gather, ScatterAdd
from lucid.ops.shape.movement import Reshape, Transpose

Found = Atom | None


def simplify_indexing(w: Rewriter, eqn: Equation) -> Found:
    """reshape (transpose (gather x i)) = transpose (gather x (reshape i));
    scatter_add (transpose (reshape y)) i = scatter_add (transpose y) (reshape i).
    """
    if isinstance(eqn.op, Reshape):
        return split_gather(w, eqn)
    if isinstance(eqn.op, ScatterAdd) and not eqn.op.batch_dims:
        return split_scatter(w, eqn)
    return None


def split_gather(w: Rewriter, eqn: Equation) -> Found:
    moved = w.producer(eqn.inputs[0])
    if moved is None or not isinstance(moved.op, Transpose):
        return None
    made = w.producer(moved.inputs[0])
    if made is None or not isinstance(made.op, Gather) or made.op.batch_dims:
        return None
    x, *indices = made.inputs
    parts = split_axes(eqn.inputs[0].type.shape, eqn.outputs[0].type.shape)
    order = moved.op.permutation
    axes = None if parts is None else split_order(order, parts, indices[0].type.ndim)
    if axes is None:
        return None
    shape, permutation = axes
    read = w.make(made.op, x, *[reshape(w, i, shape) for i in indices])
    return w.make(Transpose(permutation), read)


def split_scatter(w: Rewriter, eqn: Equation) -> Found:
    updates, *indices = eqn.inputs
    moved = w.producer(updates)
    if moved is None or not isinstance(moved.op, Transpose):
        return None
    made = w.producer(moved.inputs[0])
    if made is None or not isinstance(made.op, Reshape):
        return None
    y, order = made.inputs[0], moved.op.permutation
    parts = split_axes(made.outputs[0].type.shape, y.type.shape)
    inverse = tuple(order.index(axis) for axis in range(len(order)))
    axes = None if parts is None else split_order(inverse, parts, indices[0].type.ndim)
    if axes is None:
        return None
    shape, permutation = axes
    back = tuple(permutation.index(axis) for axis in range(len(permutation)))
    split = w.make(Transpose(back), y)
    return w.make(eqn.op, split, *[reshape(w, i, shape) for i in indices])


def split_axes(whole: Sequence[int], split: Sequence[int]) -> list[tuple[int, ...]] | None:
    """The sizes that each axis of `whole` is split into, None if `split` merges any or is empty.

    >>> split_axes((7, 30), (7, 6, 5))
    [(7,), (6, 5)]
    """
    if 0 in whole or len(split) <= len(whole):
        return None
    rest = list(split)
    parts = []
    for size in whole:
        part = [rest.pop(0)] if rest else []
        while rest and math.prod(part) < size:
            part.append(rest.pop(0))
        if math.prod(part) != size or not part:
            return None
        parts.append(tuple(part))
    if rest:  # ones
        parts[-1] = (*parts[-1], *rest)
    return parts


def split_order(
    order: Sequence[int], parts: Sequence[tuple[int, ...]], depth: int
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The shape of split indices, and the permutation of a result whose first axes they are.

    Axis a of the moved result, split into `parts[a]`, was axis `order[a]` of the gather, whose
    first `depth` axes are those of the indices. None if another axis is split.
    """
    if any(len(part) > 1 and axis >= depth for axis, part in zip(order, parts)):
        return None
    sizes = dict(zip(order, parts))
    starts, count = {}, 0
    for axis in range(len(order)):
        starts[axis] = count
        count += len(sizes[axis])
    shape = tuple(n for axis in range(depth) for n in sizes[axis])
    permutation = [starts[axis] + k for axis, part in zip(order, parts) for k in range(len(part))]
    return shape, tuple(permutation)
