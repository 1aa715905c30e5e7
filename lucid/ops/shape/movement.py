"""Movement primitives: reshape, transpose, slice, pad, ... All are linear; adjoints move back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import ShapeError
from lucid.ir.facts import Box, Points
from lucid.ir.graph import Literal
from lucid.ir.types import Type
from lucid.ops.core.axes import (
    canonicalize_axis,
    canonicalize_shape,
    drop_axes,
    exclusive_keyword,
    resolve_shape,
)
from lucid.ops.core.kinds import Linear
from lucid.ops.core.promote import as_tensor
from lucid.public.declare import public
from lucid.support.caches import cached_property, memoize
from lucid.tape.bind import bind
from lucid.tape.fast_bind import bind_view
from lucid.tape.node import Traced


class Reshape(Linear):
    """The elements, in row-major order, in another shape."""

    shape: tuple[int, ...]
    is_view = True
    moves = True

    def infer(self, x: Type) -> Type:
        if math.prod(self.shape) != x.size:
            raise ShapeError(f"reshape: {x.size} elements of {x.shape} do not fill {self.shape}")
        return Type(x.dtype, self.shape)

    def eval(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(self.shape)

    def view(self, x: Any) -> Any:
        return x.reshaped(self.shape)

    def axes_read(self, x: Type) -> Points | None:
        if not self.only_ones_change(x.shape):
            return None
        long = iter([i for i, n in enumerate(x.shape) if n != 1])
        return tuple(None if n == 1 else next(long) for n in self.shape)

    def only_ones_change(self, shape: tuple[int, ...]) -> bool:
        """True if a reshape of `shape` adds and removes axes of size 1 alone."""
        return [n for n in self.shape if n != 1] == [n for n in shape if n != 1]

    def has_window(self, eqn: Any) -> bool:
        return self.only_ones_change(eqn.inputs[0].type.shape)

    def make_window(self, sinker: Any, eqn: Any, box: Box) -> Any:
        (x,) = eqn.inputs
        long = iter([b for b, n in zip(box, self.shape) if n != 1])
        inner = tuple([(0, 1) if n == 1 else next(long) for n in x.type.shape])
        short = tuple([1 if n == 1 else b[1] for b, n in zip(box, self.shape)])
        window = sinker.make(Reshape(short), sinker.window(x, inner))
        return sinker.broadcast(window, tuple([n for _, n in box]))

    def adjoint(self, ct: Any, x: Any) -> Any:
        return ct.reshape(x.shape)

    def insert(self, base: Any, part: Any) -> Any:
        return self.adjoint(part, base)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Reshape((n, *self.shape)), x)


class Transpose(Linear):
    """Axis i of the result is axis `permutation[i]` of the operand."""

    permutation: tuple[int, ...]
    is_view = True
    moves = True

    def infer(self, x: Type) -> Type:
        if sorted(self.permutation) != list(range(x.ndim)):
            raise ShapeError(f"transpose: {self.permutation} is not a permutation of {x.ndim} axes")
        return Type(x.dtype, tuple(x.shape[i] for i in self.permutation))

    def eval(self, x: np.ndarray) -> np.ndarray:
        return x.transpose(self.permutation)

    def view(self, x: Any) -> Any:
        order = self.permutation
        return x.over(tuple(x.shape[i] for i in order), tuple(x.strides[i] for i in order))

    def axes_read(self, x: Type) -> Points:
        return self.permutation

    def has_window(self, eqn: Any) -> bool:
        return True

    def make_window(self, sinker: Any, eqn: Any, box: Box) -> Any:
        inner = [box[self.permutation.index(i)] for i in range(len(box))]
        return sinker.make(self, sinker.window(eqn.inputs[0], tuple(inner)))

    def adjoint(self, ct: Any, x: Any) -> Any:
        inverse = sorted(range(len(self.permutation)), key=self.permutation.__getitem__)
        return bind(Transpose(tuple(inverse)), ct)

    def insert(self, base: Any, part: Any) -> Any:
        return self.adjoint(part, base)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Transpose((0, *[i + 1 for i in self.permutation])), x)


class Broadcast(Linear):
    """The operand's axes become `axes` of the result; a size 1 is repeated, other axes are new."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    is_view = True
    moves = True

    def infer(self, x: Type) -> Type:
        fits = len(self.axes) == x.ndim and all(
            n in (1, self.shape[axis]) for n, axis in zip(x.shape, self.axes)
        )
        if not fits:
            raise ShapeError(
                f"broadcast: {x.shape} does not broadcast to {self.shape} along {self.axes}"
            )
        return Type(x.dtype, self.shape)

    def eval(self, x: np.ndarray) -> np.ndarray:
        if x.size and x.flags.c_contiguous:  # 0.5 µs, where np.broadcast_to takes 5
            strides = [0] * len(self.shape)
            for n, step, axis in zip(x.shape, x.strides, self.axes):
                if n != 1:
                    if n != self.shape[axis]:
                        raise ValueError(f"size {n} is not {self.shape[axis]}")
                    strides[axis] = step
            view = np.ndarray(self.shape, x.dtype, x, 0, strides)
            view.flags.writeable = False
            return view
        sizes = [1] * len(self.shape)
        for n, axis in zip(x.shape, self.axes):
            sizes[axis] = n
        return np.broadcast_to(x.reshape(sizes), self.shape)

    def view(self, x: Any) -> Any:
        strides = [0] * len(self.shape)
        for n, stride, axis in zip(x.shape, x.strides, self.axes):
            strides[axis] = stride if n == self.shape[axis] else 0
        return x.over(self.shape, tuple(strides))

    def axes_read(self, x: Type) -> Points:
        source = {axis: i for i, axis in enumerate(self.axes) if x.shape[i] == self.shape[axis]}
        return tuple(source.get(i) for i in range(len(self.shape)))

    def has_window(self, eqn: Any) -> bool:
        return True

    def make_window(self, sinker: Any, eqn: Any, box: Box) -> Any:
        (x,) = eqn.inputs
        inner = [(0, 1) if n == 1 else box[axis] for n, axis in zip(x.type.shape, self.axes)]
        window = sinker.window(x, tuple(inner))
        return sinker.make(Broadcast(tuple([n for _, n in box]), self.axes), window)

    def adjoint(self, ct: Any, x: Any) -> Any:
        repeated = {axis for n, axis in zip(x.shape, self.axes) if n == 1}
        axes = tuple(i for i in range(len(self.shape)) if i not in self.axes or i in repeated)
        return ct.sum(dim=axes).reshape(x.shape) if axes else ct

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Broadcast((n, *self.shape), (0, *[i + 1 for i in self.axes])), x)


class Slice(Linear):
    """`x[start:limit:stride]` in every axis, strides > 0; axes `drop`, of size 1, are removed."""

    starts: tuple[int, ...]
    limits: tuple[int, ...]
    strides: tuple[int, ...]
    drop: tuple[int, ...] = ()
    is_view = True
    moves = True

    def infer(self, x: Type) -> Type:
        if not len(self.starts) == len(self.limits) == len(self.strides) == x.ndim:
            raise ShapeError(f"slice: {self!r} does not have one entry for each axis of {x.shape}")
        for axis, (start, limit, stride, n) in enumerate(
            zip(self.starts, self.limits, self.strides, x.shape)
        ):
            if not (0 <= start <= limit <= n and stride > 0):
                raise ShapeError(
                    f"slice: {start}:{limit}:{stride} is out of range for axis {axis} of {x.shape}"
                )
        if any(self.sizes[axis] != 1 for axis in self.drop):
            raise ShapeError(f"slice: not all axes {self.drop} of {self.sizes} have size 1")
        return Type(x.dtype, drop_axes(self.sizes, self.drop))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The shape of the result before axes are dropped."""
        bounds = zip(self.starts, self.limits, self.strides)
        return tuple(max(0, -((start - limit) // stride)) for start, limit, stride in bounds)

    @cached_property
    def subscript(self) -> tuple[Any, ...]:
        slices = list(map(slice, self.starts, self.limits, self.strides))
        return (*[s.start if axis in self.drop else s for axis, s in enumerate(slices)], ...)

    def eval(self, x: np.ndarray) -> np.ndarray:
        return x[self.subscript]

    def view(self, x: Any) -> Any:
        strides = [a * b for a, b in zip(x.strides, self.strides)]
        first = sum(a * s for a, s in zip(self.starts, x.strides))
        shape, apart = drop_axes(self.sizes, self.drop), drop_axes(tuple(strides), self.drop)
        return x.over(shape, apart, first)

    def has_window(self, eqn: Any) -> bool:
        return set(self.strides) <= {1}

    def make_window(self, sinker: Any, eqn: Any, box: Box) -> Any:
        rest = iter(box)
        inner = [(0, 1) if i in self.drop else next(rest) for i in range(len(self.starts))]
        moved = tuple([(s + a, n) for s, (a, n) in zip(self.starts, inner)])
        window = sinker.window(eqn.inputs[0], moved)
        return sinker.make(Reshape(tuple([n for _, n in box])), window) if self.drop else window

    def adjoint(self, ct: Any, x: Any) -> Any:
        if self.drop:
            ct = ct.reshape(self.sizes)
        ends = [
            start + (size - 1) * stride + 1 if size else start
            for start, size, stride in zip(self.starts, self.sizes, self.strides)
        ]
        high = tuple(n - end for n, end in zip(x.shape, ends))
        return bind(Pad(self.starts, high, tuple(stride - 1 for stride in self.strides)), ct)

    def insert(self, base: Any, part: Any) -> Any:
        from lucid.ops.index.writing import SliceSet

        part = part.reshape(self.sizes) if self.drop else part
        return bind(SliceSet(self.starts, self.limits, self.strides), base, part)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        drop = tuple(i + 1 for i in self.drop)
        return bind(Slice((0, *self.starts), (n, *self.limits), (1, *self.strides), drop), x)


class Pad(Linear):
    """Zero padding: `low` before, `high` after and `interior` between elements, for each axis.

    Negative `low` and `high` crop instead, after the interior zeros are inserted.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    interior: tuple[int, ...]
    moves = reads_memory = True
    operand_layout = "rows"
    lowering = "lucid.compiler.lowering.index.concatenate_pad:PadLowering"

    def infer(self, x: Type) -> Type:
        if not len(self.low) == len(self.high) == len(self.interior) == x.ndim:
            raise ShapeError(f"pad: {self!r} does not have one entry for each axis of {x.shape}")
        shape = padded_shape(self.low, self.high, self.interior, x.shape)
        if min(shape, default=0) < 0 or min(self.interior, default=0) < 0:
            raise ShapeError(f"pad: {self!r} of {x.shape} gives the invalid shape {shape}")
        return Type(x.dtype, shape)

    def eval(self, x: np.ndarray) -> np.ndarray:
        shape, target, source = pad_plan(self.low, self.high, self.interior, x.shape)
        out = np.zeros(shape, x.dtype)
        out[target] = x if source is None else x[source]
        return out

    def can_loop(self, eqn: Any) -> bool:
        x, out = eqn.inputs[0], eqn.outputs[0].type
        left = [n + min(a, 0) + min(b, 0) for n, a, b in zip(x.type.shape, self.low, self.high)]
        countable = max(out.shape, default=0) < 2**31
        plain = x.__class__ is not Literal and not any(self.interior)
        return plain and countable and min(left, default=0) > 0

    def loop(self, kernel: Any, eqn: Any, points: Points) -> int:
        return kernel.read_inside(eqn.inputs[0], points, self.low, self.high)

    def has_window(self, eqn: Any) -> bool:
        return True

    def make_window(self, sinker: Any, eqn: Any, box: Box) -> Any:
        moved = tuple([(a - s, n) for s, (a, n) in zip(self.low, box)])
        is_masked = eqn.outputs[0] not in sinker.unmasked
        window = sinker.masked_window if is_masked else sinker.window
        return window(eqn.inputs[0], moved)

    def adjoint(self, ct: Any, x: Any) -> Any:
        if min(self.low, default=0) < 0 or min(self.high, default=0) < 0:
            low = tuple(max(-n, 0) for n in self.low)
            high = tuple(max(-n, 0) for n in self.high)
            ct = bind(Pad(low, high, (0,) * len(low)), ct)
        starts = tuple(max(n, 0) for n in self.low)
        limits = tuple(n - max(high, 0) for n, high in zip(ct.shape, self.high))
        return bind(Slice(starts, limits, tuple(n + 1 for n in self.interior)), ct)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Pad((0, *self.low), (0, *self.high), (0, *self.interior)), x)


def padded_shape(
    low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[int, ...]:
    rows = zip(low, high, interior, shape)
    return tuple(a + n + max(n - 1, 0) * between + b for a, b, between, n in rows)


@memoize(maxsize=4096)
def pad_plan(
    low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[tuple[int, ...], Any, Any]:
    """Return the padded shape, the slices written in it, and those read from x (None: all)."""
    padded = padded_shape(low, high, interior, shape)
    target, source = [], []
    for start, size, between, n in zip(low, padded, interior, shape):
        step = between + 1
        first = max(0, -(start // step))
        last = min(n, max(first, -((start - size) // step)))
        target.append(slice(start + first * step, max(start + last * step - between, 0), step))
        source.append(slice(first, last))
    whole = all(s == slice(0, n) for s, n in zip(source, shape))
    return padded, (*target, ...), None if whole else (*source, ...)


class Flip(Linear):
    """The elements in reverse order along `axes`."""

    axes: tuple[int, ...]
    is_view = True
    moves = True

    def infer(self, x: Type) -> Type:
        if not all(0 <= axis < x.ndim for axis in self.axes):
            raise ShapeError(f"flip: {x.shape} does not have all of the axes {self.axes}")
        return x

    @cached_property
    def subscript(self) -> tuple[Any, ...]:
        last = max(self.axes, default=-1)
        return (*[slice(None, None, -1 if i in self.axes else 1) for i in range(last + 1)], ...)

    def eval(self, x: np.ndarray) -> np.ndarray:
        return x[self.subscript]

    def view(self, x: Any) -> Any:
        strides = tuple(-s if i in self.axes else s for i, s in enumerate(x.strides))
        return x.over(x.shape, strides, sum((x.shape[i] - 1) * x.strides[i] for i in self.axes))

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(self, ct)

    def insert(self, base: Any, part: Any) -> Any:
        return bind(self, part)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Flip(tuple(i + 1 for i in self.axes)), x)


def pad_axis(x: Any, axis: int, low: int, high: int) -> Any:
    """Pad `x` with zeros before and after along one axis."""
    if not low and not high:
        return x
    none = [0] * x.ndim
    return bind(Pad(with_size(none, axis, low), with_size(none, axis, high), tuple(none)), x)


def slice_axis(x: Any, axis: int, start: int, limit: int, stride: int = 1) -> Any:
    """Return `x[start:limit:stride]` along one axis, for bounds within it."""
    return bind_view(slice_op(x.shape, axis, start, limit, stride), x)


@memoize(maxsize=4096)
def slice_op(shape: tuple[int, ...], axis: int, start: int, limit: int, stride: int) -> Slice:
    ndim = len(shape)
    starts, strides = with_size([0] * ndim, axis, start), with_size([1] * ndim, axis, stride)
    return Slice(starts, with_size(shape, axis, limit), strides)


def with_size(sizes: Any, axis: int, size: int) -> tuple[int, ...]:
    """Return `sizes` with the size of one axis replaced."""
    return (*sizes[:axis], size, *sizes[axis + 1 :])


def broadcast_unbatched(n: int, batched: tuple[bool, ...], *xs: Any) -> list[Any]:
    """Give all operands a batch axis 0: unbatched ones are broadcast, without copying."""
    return [x if b else broadcast_leading(n, x) for b, x in zip(batched, xs)]


def broadcast_leading(n: int, x: Any) -> Any:
    """Broadcast `x` along a new leading axis of size n."""
    return bind(Broadcast((n, *x.shape), tuple(range(1, x.ndim + 1))), x)


@public("lucid", "Tensor")
def reshape(input: Any, *sizes: Any, shape: Any = None) -> Any:
    """The elements of `input`, in row-major order, in another shape; one size may be -1.

    >>> import lucid
    >>> lucid.arange(6).reshape(2, -1).shape
    (2, 3)
    """
    x = input if isinstance(input, Traced) else as_tensor(input)
    if shape is not None:
        sizes = exclusive_keyword("reshape", "shape", sizes, shape)
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    try:
        op = reshape_op(x.shape if x.raw is None else x.raw.shape, *sizes)
    except TypeError:  # an unhashable argument is not a size
        raise ShapeError(f"reshape: {sizes} is not a shape: sizes must be integers") from None
    return bind_view(op, x)


@memoize(maxsize=4096, typed=True)
def reshape_op(old: tuple[int, ...], *shape: Any) -> Reshape:
    return Reshape(resolve_shape("reshape", canonicalize_shape("reshape", shape), math.prod(old)))


@public("lucid", "Tensor")
def permute(input: Any, *order: Any, dims: Any = None) -> Any:
    """Permute the axes of `input`.

    >>> import lucid
    >>> lucid.zeros(2, 3, 4).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    x = as_tensor(input)
    order = order if dims is None else exclusive_keyword("permute", "dims", order, dims)
    order = tuple(
        canonicalize_axis("permute", d, x.ndim) for d in canonicalize_shape("permute", order)
    )
    if sorted(order) != list(range(x.ndim)):
        raise ShapeError(f"permute: {order} is not a permutation of {x.ndim} axes")
    return bind_view(Transpose(order), x)


@public("lucid", "Tensor")
def broadcast_to(input: Any, *sizes: Any, size: Any = None) -> Any:
    """Broadcast `input` to a larger shape by NumPy's rules, without copying."""
    x = as_tensor(input)
    sizes = sizes if size is None else exclusive_keyword("broadcast_to", "size", sizes, size)
    shape = canonicalize_shape("broadcast_to", sizes)
    extra = len(shape) - x.ndim
    if extra < 0:
        raise ShapeError(f"broadcast_to: {x.shape} has more axes than {shape}")
    if x.shape == shape:
        return x
    return bind_view(Broadcast(shape, tuple(range(extra, len(shape)))), x)
