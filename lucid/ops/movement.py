"""Movement: the same elements in another arrangement. All of it is linear, and each op's adjoint moves back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import ShapeError
from lucid.ir.source import at_line
from lucid.ir.tape import bind
from lucid.ir.types import Type
from lucid.ops.axes import axis_of, resolve_shape, shape_of
from lucid.ops.kinds import Linear
from lucid.ops.promote import as_tensor


class Reshape(Linear):
    """The elements in row-major order in another shape."""

    shape: tuple[int, ...]
    is_view = True

    def infer(self, x: Type) -> Type:
        if math.prod(self.shape) != x.size:
            raise ShapeError(f"reshape: {x.size} elements of {x.shape} do not fill shape {self.shape}")
        return Type(x.dtype, self.shape)

    def eval(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(self.shape)

    def adjoint(self, ct: Any, x: Any) -> Any:
        return ct.reshape(x.shape)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Reshape((n, *self.shape)), x)


class Transpose(Linear):
    """Axis i of the result is axis `permutation[i]` of the operand."""

    permutation: tuple[int, ...]
    is_view = True

    def infer(self, x: Type) -> Type:
        if sorted(self.permutation) != list(range(x.ndim)):
            raise ShapeError(f"transpose: {self.permutation} is not a permutation of {x.ndim} axes")
        return Type(x.dtype, tuple(x.shape[i] for i in self.permutation))

    def eval(self, x: np.ndarray) -> np.ndarray:
        return x.transpose(self.permutation)

    def adjoint(self, ct: Any, x: Any) -> Any:
        inverse = sorted(range(len(self.permutation)), key=self.permutation.__getitem__)
        return bind(Transpose(tuple(inverse)), ct)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Transpose((0, *[i + 1 for i in self.permutation])), x)


class Broadcast(Linear):
    """The operand's axes become `axes` of the result; a size 1 is repeated, other axes are new."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    is_view = True

    def infer(self, x: Type) -> Type:
        fits = len(self.axes) == x.ndim and all(
            n in (1, self.shape[axis]) for n, axis in zip(x.shape, self.axes)
        )
        if not fits:
            raise ShapeError(f"broadcast: {x.shape} does not broadcast to {self.shape} along {self.axes}")
        return Type(x.dtype, self.shape)

    def eval(self, x: np.ndarray) -> np.ndarray:
        sizes = [1] * len(self.shape)
        for n, axis in zip(x.shape, self.axes):
            sizes[axis] = n
        return np.broadcast_to(x.reshape(sizes), self.shape)

    def adjoint(self, ct: Any, x: Any) -> Any:
        repeated = {axis for n, axis in zip(x.shape, self.axes) if n == 1}
        axes = tuple(i for i in range(len(self.shape)) if i not in self.axes or i in repeated)
        return ct.sum(dim=axes).reshape(x.shape) if axes else ct

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(Broadcast((n, *self.shape), (0, *[i + 1 for i in self.axes])), x)


def reshape(x: Any, *shape: Any) -> Any:
    """The elements of `x` in row-major order in another shape; one size may be -1.

    >>> import lucid
    >>> lucid.arange(6).reshape(2, -1).shape
    (2, 3)
    """
    x = as_tensor(x)
    wanted = resolve_shape("reshape", shape_of("reshape", shape), math.prod(x.shape))
    return bind(Reshape(wanted), x)


def permute(x: Any, *dims: Any) -> Any:
    """`x` with its axes in another order.

    >>> import lucid
    >>> lucid.zeros(2, 3, 4).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    x = as_tensor(x)
    order = tuple(axis_of("permute", d, x.ndim) for d in shape_of("permute", dims))
    if sorted(order) != list(range(x.ndim)):
        raise ShapeError(f"permute: {order} is not a permutation of {x.ndim} axes{at_line()}")
    return bind(Transpose(order), x)


def broadcast_to(x: Any, shape: Any) -> Any:
    """`x` repeated to a larger shape by NumPy's rules, without copying."""
    x = as_tensor(x)
    shape = shape_of("broadcast_to", (shape,))
    extra = len(shape) - x.ndim
    if extra < 0:
        raise ShapeError(f"broadcast_to: {x.shape} has more axes than {shape}{at_line()}")
    if x.shape == shape:
        return x
    return bind(Broadcast(shape, tuple(range(extra, len(shape)))), x)
