"""associative_scan: running combinations of elements, computed as a tree instead of a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lucid.errors import ArgumentError, DTypeError, LucidError, ShapeError
from lucid.func.control_flow import leaf_names, trace_body
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.types import Type
from lucid.ops.core.arguments import public_function
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import as_tensor
from lucid.ops.shape.joining import cat, stack


@public_function("func")
def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """Return all running combinations e0, fn(e0, e1), fn(fn(e0, e1), e2), ... along `axis`.

    `fn` must be associative. It combines many pairs at once, elementwise along `axis`, and is
    called about 2 log2(n) times.

    >>> import lucid
    >>> lucid.func.associative_scan(lambda a, b: a * b, lucid.tensor([1.0, 2.0, 3.0, 4.0]))
    Tensor([ 1.,  2.,  6., 24.])
    """
    leaves, tree = flatten(elems)
    rows = []
    for x in leaves:
        x = as_tensor(x)
        if not x.shape:
            raise ShapeError("associative_scan: elems contains a 0-d tensor")
        position = canonicalize_axis("associative_scan", axis, x.ndim)
        rows.append((x, position))
    if not rows:
        raise ArgumentError("associative_scan: elems contains no tensors")
    sizes = {x.shape[position] for x, position in rows}
    if len(sizes) > 1:
        raise ShapeError(
            f"associative_scan: elems have different sizes {sorted(sizes)} along axis {axis}"
        )
    scan = AssociativeScan(fn, tree, [position for _, position in rows])
    refuse_effects(fn, tree, [x.type for x, _ in rows])
    inputs = [x.flip(position) if reverse else x for x, position in rows]
    outs = scan.run(inputs)
    return unflatten(tree, [y.flip(p) if reverse else y for y, (_, p) in zip(outs, rows)])


def refuse_effects(fn: Callable[[Any, Any], Any], tree: Any, types: Sequence[Type]) -> None:
    """Raise an error if `fn` draws random numbers or writes to a tensor from outside."""
    pair = unflatten(tree, range(len(types)))
    refused = "the order of the combinations is not defined; fn must not write or draw"
    trace_body("associative_scan", fn, flatten((pair, pair))[1], [*types, *types], refused=refused)


class AssociativeScan:
    """The recursion of `associative_scan`: scan the combined pairs, then fill in between."""

    def __init__(self, fn: Callable[[Any, Any], Any], tree: Any, axes: Sequence[int]) -> None:
        self.fn = fn
        self.tree = tree
        self.axes = axes

    def combine(self, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        leaves, tree = flatten(self.fn(unflatten(self.tree, a), unflatten(self.tree, b)))
        if tree != self.tree:
            raise LucidError(f"associative_scan: fn returns {tree} for elements {self.tree}")
        outs = [as_tensor(y) for y in leaves]
        for name, x, y in zip(leaf_names(tree, "result"), a, outs):
            if x.type != y.type:
                raise (ShapeError if x.shape != y.shape else DTypeError)(
                    f"associative_scan: fn returns {y.type} for {x.type} in {name}"
                )
        return outs

    def take_slice(self, xs: Sequence[Any], start: Any, stop: Any, step: int = 1) -> list[Any]:
        return [
            x[(*[slice(None)] * axis, slice(start, stop, step))] for x, axis in zip(xs, self.axes)
        ]

    def run(self, xs: list[Any]) -> list[Any]:
        n = xs[0].shape[self.axes[0]]
        if n < 2:
            return xs
        even = n - n % 2
        pairs = self.combine(self.take_slice(xs, 0, even, 2), self.take_slice(xs, 1, even, 2))
        odd = self.run(pairs)
        before = odd if n % 2 else self.take_slice(odd, 0, n // 2 - 1)
        first = self.take_slice(xs, 0, 1)
        if n > 2:
            more = self.combine(before, self.take_slice(xs, 2, None, 2))
            first = [cat([a, b], axis) for a, b, axis in zip(first, more, self.axes)]
        return [interleave(a, b, axis) for a, b, axis in zip(first, odd, self.axes)]


def interleave(a: Any, b: Any, axis: int) -> Any:
    """Return a0, b0, a1, b1, ...; `a` may have one element more."""
    n = b.shape[axis]
    head = a[(*[slice(None)] * axis, slice(0, n))]
    shape = (*b.shape[:axis], 2 * n, *b.shape[axis + 1 :])
    mixed = stack([head, b], axis + 1).reshape(shape)
    if a.shape[axis] == n:
        return mixed
    return cat([mixed, a[(*[slice(None)] * axis, slice(n, n + 1))]], axis)
