"""Collectives over the named axis of a vmap: sum, maximum, gather and scatter of all examples.

Inside `vmap(f, axis_name="i")` such an operation is on the tape like any other. The vmap with that
name batches it with `collect`, which reads the examples along the batch axis and may return a value
that all examples share; every other vmap batches it with `batch`, one example at a time. `eval`
computes the result outside every vmap, where a value is the same for all examples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, GraphError, ShapeError
from lucid.ir.graph import Graph
from lucid.ir.primitive import NEVER, Primitive
from lucid.ir.types import Type
from lucid.ops.core.kinds import Linear, times
from lucid.ops.elementwise.logic import eq
from lucid.support.caches import memoize
from lucid.tape.bind import bind
from lucid.tape.modes import local


class NamedAxis(Primitive, abstract=True):
    """An operation over the `size` examples of the vmap with a name."""

    axis_name: str
    size: int
    native_from = NEVER

    def infer(self, x: Type) -> Type:
        return x

    def collect(self, batched: bool, x: Any) -> tuple[Any, bool]:
        """Return the result over the examples in axis 0 of `x`, and whether it is batched."""
        raise NotImplementedError(f"{self.name} has no collect rule")

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)


class AxisSum(NamedAxis, Linear):
    """The sum over all examples, which every example gets; it is its own adjoint."""

    def eval(self, x: np.ndarray) -> Any:
        return np.multiply(x, self.size, dtype=x.dtype)

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(self, ct)

    def collect(self, batched: bool, x: Any) -> tuple[Any, bool]:
        total = x.sum(dim=0) if batched else x * self.size
        return total.to(x.dtype), False


class AxisMax(NamedAxis):
    """The maximum over all examples; those that attain it share the derivative."""

    saves = "xy"

    def eval(self, x: np.ndarray) -> Any:
        return x.copy()

    def share(self, y: Any, x: Any) -> Any:
        attained = eq(x, y).to(y.dtype)
        return attained / bind(AxisSum(self.axis_name, self.size), attained)

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        return bind(AxisSum(self.axis_name, self.size), times(ts[0], self.share(y, x)))

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return (times(bind(AxisSum(self.axis_name, self.size), ct), self.share(y, x)),)

    def collect(self, batched: bool, x: Any) -> tuple[Any, bool]:
        from lucid.ops.reduce.extrema import amax

        return (amax(x, 0) if batched else x), False


class AxisGather(NamedAxis, Linear):
    """The values of all examples along a new axis 0, which every example gets."""

    def infer(self, x: Type) -> Type:
        return Type(x.dtype, (self.size, *x.shape))

    def eval(self, x: np.ndarray) -> Any:
        return np.broadcast_to(x, (self.size, *x.shape)).copy()

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(AxisScatter(self.axis_name, self.size), ct)

    def collect(self, batched: bool, x: Any) -> tuple[Any, bool]:
        return (x if batched else x.expand((self.size, *x.shape))), False

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x).transpose(0, 1)


class AxisScatter(NamedAxis, Linear):
    """Example i gets the sum over all examples of their rows i: the adjoint of AxisGather."""

    def infer(self, x: Type) -> Type:
        if not x.shape or x.shape[0] != self.size:
            facts = f"{x} has no leading axis of the size {self.size} of {self.axis_name!r}"
            raise ShapeError(f"{self.name}: {facts}")
        return Type(x.dtype, x.shape[1:])

    def eval(self, x: np.ndarray) -> Any:
        raise GraphError(
            f"{self.name}: the result differs between the examples of {self.axis_name!r}, so it "
            "exists only inside their vmap"
        )

    def inline(self, x: Any) -> Any:
        if x.raw is None:
            return bind(self, x)
        return x[find_level(self.axis_name, "psum_scatter").index()] * self.size

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(AxisGather(self.axis_name, self.size), ct)

    def collect(self, batched: bool, x: Any) -> tuple[Any, bool]:
        return (x.sum(dim=0).to(x.dtype) if batched else x * self.size), True

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x.transpose(0, 1))


def find_level(axis_name: Any, what: str) -> Any:
    """Return the innermost running vmap with a name, or raise an error if there is none."""
    for level in reversed(local.maps):
        if level.call.axis_name == axis_name:
            return level
    known = [repr(level.call.axis_name) for level in local.maps if level.call.axis_name is not None]
    facts = f"the running ones have {', '.join(known)}" if known else "none is running"
    raise ArgumentError(
        f"{what}: no vmap with axis_name={axis_name!r} is running ({facts}); pass axis_name= to "
        "vmap"
    )


def mentions_axis(op: Primitive, axis_name: str) -> bool:
    """True for a collective over a named axis, and for an operation with one in its Graphs."""
    return axis_name in names_in_op(op)


@memoize(maxsize=4096)
def names_in_op(op: Primitive) -> frozenset[Any]:
    if isinstance(op, NamedAxis):
        return frozenset([op.axis_name])
    return frozenset(name for graph in graphs_of(op) for name in names_in_graph(graph))


@memoize(maxsize=1024)
def names_in_graph(graph: Graph) -> frozenset[Any]:
    return frozenset(name for eqn in graph.equations for name in names_in_op(eqn.op))


def graphs_of(op: Primitive) -> Iterator[Graph]:
    """Yield the Graphs that an operation holds in its parameters."""
    for value in op.params().values():
        for part in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(part, Graph):
                yield part
