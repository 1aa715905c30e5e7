"""A Nest: the loops of one fused kernel, as data, between a group of equations and its code.

The domain is a box of axes; some of them are reduced. A value is a number at each point of the
domain, computed from loads, constants, scalar operations and reductions over the reduced axes:

    values[3] = Value("mul", (1, 2), "f32")

A kernel depends on the structure alone (which axes are reduced, which strides are 0 or 1, the
values). Sizes, strides, addresses and the numbers of the program are arguments (`lift_numbers`), so
that a new batch size, whose mean divides by another number, and a new learning rate need no new
kernel.
"""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from lucid.ir.types import DTYPES

CODED = ("pow", "floor_divide", "remainder", "fmod", "left_shift", "right_shift")  # by constants
READS = ("load", "at", "guarded")
GENERAL = 2  # the class of a stride that is neither 0 nor 1


class Value(NamedTuple):
    """One number at each point: `op` of other values.

    op "load" reads buffer `param`, "const" is the number `param`, "number" the argument `param` of
    the kernel, "iota" the index along axis `param`, "reduce" combines its argument over the reduced
    axes by `param`. "place" is how far an index leads by the Place of number `param`, "at" reads
    buffer `param` at the sum of such places, "guarded" reads it where its argument is true and is 0
    elsewhere, "scan" is a running result along the reduced axes. The rest are scalar operations.
    """

    op: str
    args: tuple[int, ...]
    dtype: str
    param: Any = None


class Buffer(NamedTuple):
    """An array: its dtype, and its strides, in elements, along the axes of the domain.

    Where it covers a part of the domain, `box` says for each axis at which index it begins and how
    far it goes; what lies outside is never read.
    """

    dtype: str
    strides: tuple[int, ...]
    box: tuple[tuple[int, int], ...] = ()

    @property
    def shift(self) -> int:
        """How many elements before the array the domain begins."""
        return sum(start * stride for (start, _), stride in zip(self.box, self.strides))


class Store(NamedTuple):
    """A value for a buffer, moved on by the places `at`; combined with what is there by an op."""

    buffer: int
    value: int
    at: tuple[int, ...] = ()
    combines: str = ""  # the op, such as "add"; none overwrites


def needs(stores: Iterable[Store]) -> list[int]:
    """The values that stores write, and those that say where."""
    return [v for store in stores for v in (store.value, *store.at)]


class Place(NamedTuple):
    """An axis that is indexed: its size, its stride in elements, the code of an error."""

    size: int
    stride: int
    code: int


class Scan(NamedTuple):
    """A running result: how it goes on, whether without its own element, the buffer of its state.

    Where the last axis is reduced the state is a local variable, and there is no buffer (-1).
    """

    kind: str
    exclusive: bool = False
    buffer: int = -1


@dataclass(frozen=True)
class Nest:
    """The loops of one kernel over a domain of `sizes`; `partial` as in its Structure."""

    sizes: tuple[int, ...]
    reduced: tuple[bool, ...]
    buffers: tuple[Buffer, ...]
    values: tuple[Value, ...]
    stores: tuple[Store, ...]
    places: tuple[Place, ...] = ()
    numbers: tuple[Any, ...] = ()
    partial: bool = False

    @cached_property
    def structure(self) -> Structure:
        buffers = tuple(
            (b.dtype, tuple(min(s, GENERAL) if s >= 0 else GENERAL for s in b.strides))
            for b in self.buffers
        )
        return Structure(
            self.reduced, buffers, self.values, self.stores, len(self.places), self.partial
        )

    @property
    def kept_axes(self) -> int:
        return self.reduced.count(False)

    @property
    def kept_size(self) -> int:
        return math.prod(n for n, r in zip(self.sizes, self.reduced) if not r)

    @property
    def size(self) -> int:
        return math.prod(self.sizes)

    def arguments(self) -> list[int]:
        """What a kernel is told after the addresses: sizes, general strides, numbers."""
        strides = [
            stride
            for buffer, (_, classes) in zip(self.buffers, self.structure.buffers)
            for stride, c in zip(buffer.strides, classes)
            if c == GENERAL
        ]
        lifted = {v.param: v.dtype for v in self.values if v.op == "number"}
        numbers = [word_of(x, lifted[k]) for k, x in enumerate(self.numbers)]
        return [*self.sizes, *strides, *numbers]


@dataclass(frozen=True)
class Structure:
    """What the code of a kernel depends on.

    A `partial` kernel of columns runs over a part [lo, hi) of its rows, and leaves a row of results
    for each chunk; others run over a part of what they keep.
    """

    reduced: tuple[bool, ...]
    buffers: tuple[tuple[str, tuple[int, ...]], ...]
    values: tuple[Value, ...]
    stores: tuple[Store, ...]
    places: int = 0
    partial: bool = False

    @property
    def key(self) -> Hashable:
        values, stores = tuple(map(_exact, self.values)), tuple(map(tuple, self.stores))
        return (self.reduced, self.buffers, values, stores, self.places, self.partial)

    @cached_property
    def depends(self) -> tuple[frozenset[int], ...]:
        """The axes along which each value varies."""
        out: list[frozenset[int]] = []
        gone = frozenset(i for i, r in enumerate(self.reduced) if r)
        for value in self.values:
            if value.op == "load":
                classes = self.buffers[value.param][1]
                out.append(frozenset(i for i, c in enumerate(classes) if c))
            elif value.op == "iota":
                out.append(frozenset([value.param]))
            else:
                union = frozenset().union(*[out[a] for a in value.args])
                buffer = self.buffer_of(value)
                if buffer >= 0:
                    union |= {i for i, c in enumerate(self.buffers[buffer][1]) if c}
                if value.op == "scan":
                    union |= gone
                out.append(union - gone if value.op == "reduce" else union)
        return tuple(out)

    @staticmethod
    def buffer_of(value: Value) -> int:
        """The buffer that a value reads, -1 where it reads none."""
        if value.op in READS:
            return value.param
        return value.param.buffer if value.op == "scan" else -1

    @cached_property
    def stage(self) -> tuple[int, ...]:
        """How many reductions must be finished before each value can be computed."""
        out: list[int] = []
        for value in self.values:
            before = max((out[a] for a in value.args), default=0)
            out.append(before + 1 if value.op == "reduce" else before)
        return tuple(out)

    def closure(self, wanted: Iterable[int], known: Container[int]) -> list[int]:
        """The values that must be computed for `wanted` where some are known, in order."""
        seen: set[int] = set()
        stack = list(wanted)
        while stack:
            v = stack.pop()
            if v not in seen and v not in known:
                seen.add(v)
                stack.extend(self.values[v].args)
        return sorted(seen)

    def reductions(self, stage: int) -> list[int]:
        """The reductions of values that are known after so many others."""
        return [
            v
            for v, value in enumerate(self.values)
            if value.op == "reduce" and self.stage[value.args[0]] == stage
        ]

    def full_stores(self, axes: Sequence[int]) -> list[tuple[int, int]]:
        """The numbers of stores that vary along the reduced axes, with their stages."""
        inside = frozenset(axes)
        return [
            (k, self.stage[store.value])
            for k, store in enumerate(self.stores)
            if any(self.depends[v] & inside for v in needs([store]))
            or any(self.buffers[store.buffer][1][a] for a in axes)
        ]

    @property
    def mode(self) -> str:
        """ "map" without reduction, "rows" if the last axis is reduced, "columns" if it is kept."""
        if not any(self.reduced):
            return "map"
        return "rows" if self.reduced[-1] else "columns"


def _exact(value: Value) -> Hashable:
    """A key in which 0.0 and -0.0, 1 and True differ."""
    return (value.op, value.args, value.dtype, repr(value.param))


def word_of(value: Any, dtype: str) -> int:
    """A number in the low bytes of a word of 64 bits."""
    with np.errstate(over="ignore"):
        found = np.array(value).astype(DTYPES[dtype])
    return int.from_bytes(found.tobytes().ljust(8, b"\0"), "little", signed=True)


def lift_numbers(nest: Nest) -> Nest:
    """Constants become arguments, but for those on which the code depends."""
    inline = {a for value in nest.values if value.op in CODED for a in value.args}
    inline |= {
        v.args[1] for v in nest.values if v.op == "div" and nest.values[v.args[1]].param == 2
    }
    values, numbers = list(nest.values), list(nest.numbers)
    for v, value in enumerate(values):
        if value.op == "const" and v not in inline and is_lifted(value):
            values[v] = value._replace(op="number", param=len(numbers))
            numbers.append(value.param)
    return replace(nest, values=tuple(values), numbers=tuple(numbers))


def is_lifted(constant: Value) -> bool:
    """Is a constant more than a truth value, 0, 1, -1, inf or nan?"""
    x = constant.param
    return constant.dtype != "bool" and x not in (0, 1, -1) and abs(x) < math.inf


def simplify_axes(nest: Nest) -> Nest:
    """Leave out axes of size 1 and join neighbours that all buffers cross as if they were one."""
    axes = [i for i, n in enumerate(nest.sizes) if n != 1 or _counted(nest, i)]
    groups: list[list[int]] = []
    for axis in axes:
        if groups and _joinable(nest, groups[-1][-1], axis):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    place = {axis: i for i, group in enumerate(groups) for axis in group}
    values = tuple(v._replace(param=place[v.param]) if v.op == "iota" else v for v in nest.values)
    return Nest(
        tuple(math.prod(nest.sizes[a] for a in group) for group in groups),
        tuple(nest.reduced[group[0]] for group in groups),
        tuple(_with_axes(b, [group[-1] for group in groups]) for b in nest.buffers),
        values,
        nest.stores,
        nest.places,
        nest.numbers,
    )


def _with_axes(buffer: Buffer, axes: Sequence[int]) -> Buffer:
    """A buffer along some of the axes, which stand for all."""
    box = tuple(buffer.box[a] for a in axes) if buffer.box else ()
    return Buffer(buffer.dtype, tuple(buffer.strides[a] for a in axes), box)


def _counted(nest: Nest, axis: int) -> bool:
    if nest.reduced[axis] and any(v.op == "scan" for v in nest.values):
        return True
    return any(v.op == "iota" and v.param == axis for v in nest.values)


def _joinable(nest: Nest, a: int, b: int) -> bool:
    if nest.reduced[a] != nest.reduced[b] or _counted(nest, a) or _counted(nest, b):
        return False
    if any(buf.box and buf.box[b] != (0, nest.sizes[b]) for buf in nest.buffers):
        return False
    return all(buf.strides[a] == buf.strides[b] * nest.sizes[b] for buf in nest.buffers)
