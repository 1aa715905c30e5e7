"""Work of a plan: the kernels to compile for it (`kernels`), its instructions (`add`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lucid.compiler.kernels.build import extent_of
from lucid.compiler.kernels.nest import Nest
from lucid.compiler.kernels.transposed import ROWS
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.instructions import Instruction
from lucid.compiler.plan.plan import Builder
from lucid.ir.types import DTYPES

LEAVES = ("load", "const", "number", "iota", "at", "offset")  # ops that compute nothing
COLUMNS = 32  # the fewest adjacent columns for one thread: they share cache lines


def traffic_of(nest: Nest) -> tuple[int, int]:
    """The bytes that a kernel reads and writes, and its number of operations.

    Every element of a buffer counts once; a function such as `exp` is one operation.
    """
    nbytes = 0
    for buffer in nest.buffers:
        whole = [extent for _, extent in buffer.box] or nest.sizes
        sizes = [n for n, stride in zip(whole, buffer.strides) if stride]
        nbytes += math.prod(sizes) * DTYPES[buffer.dtype].itemsize
    operations, depends = 0, nest.structure.depends
    for v, value in enumerate(nest.values):
        if value.op not in LEAVES:
            axes = depends[value.args[0]] if value.op == "reduce" else depends[v]
            operations += math.prod([nest.sizes[a] for a in axes])
    return nbytes, operations


def note_traffic(work: Any, made: Sequence[Instruction]) -> None:
    """Default traffic of a work's instructions: its last one reads or writes all of its arrays."""
    if made and not any(ins.traffic[0] for ins in made):
        arrays = [x for x in vars(work).values() if isinstance(x, Array)]
        nbytes = sum(x.type.size * x.type.dtype.itemsize for x in arrays)
        made[-1].traffic = (nbytes, 0)


@dataclass(eq=False)
class StopWork:
    """The end of a run in which a kernel has reported an error."""

    status: Array
    label: str = "stop if a check failed"

    def kernels(self) -> Sequence[Any]:
        return ()

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        builder.stop(self.status.address, self.label)  # type: ignore[arg-type]


@dataclass(eq=False)
class NestWork:
    """The kernel of a Nest on the arrays of its buffers."""

    nest: Nest
    arrays: Sequence[Array]
    label: str
    cost: float
    grain: int = 0
    status: Array | None = None

    def kernels(self) -> Sequence[Any]:
        return (self.nest.structure,)

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        nest = self.nest
        if nest.size == 0:
            return  # the loops of a kernel run at least once
        extent, unit = extent_of(nest)
        words = nest.arguments()
        grain = None
        if nest.partial or all(nest.reduced):
            grain = self.grain or extent
            words.append(grain)
        starts = [
            replace(array, offset=array.offset - buffer.shift) if buffer.box else array
            for array, buffer in zip(self.arrays, nest.buffers)
        ]
        args: list[Any] = [*[array.address for array in starts], *words]
        if nest.indexed_axes:
            assert self.status is not None
            args += [self.status.address, *[word for place in nest.indexed_axes for word in place]]
        kernel = kernels[nest.structure.key]
        by_columns = nest.structure.mode == "columns" and not nest.partial
        step = COLUMNS if by_columns and nest.kept_axes == 1 else ROWS if nest.tiled else 1
        cost = max(self.cost * unit, 0.01)
        traffic = traffic_of(nest)
        builder.call(kernel, args, extent, cost, grain, step, label=self.label, traffic=traffic)
