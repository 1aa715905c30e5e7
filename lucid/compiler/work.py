"""Work of a plan: what must be compiled for it (`kernels`) and the instructions it adds (`add`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lucid.compiler.arrays import Array
from lucid.compiler.nest import Nest
from lucid.compiler.nesting import extent_of
from lucid.compiler.plan import Builder

COLUMNS = 32  # adjacent columns that one thread takes at least: they share cache lines


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
        if nest.structure.mode == "rows" and all(nest.reduced):
            grain = self.grain or extent
            words.append(grain)
        starts = [
            replace(array, offset=array.offset - buffer.shift) if buffer.box else array
            for array, buffer in zip(self.arrays, nest.buffers)
        ]
        args: list[Any] = [*[array.address for array in starts], *words]
        if nest.places:
            assert self.status is not None
            args += [self.status.address, *[word for place in nest.places for word in place]]
        kernel = kernels[nest.structure.key]
        step = COLUMNS if nest.structure.mode == "columns" and nest.kept_axes == 1 else 1
        cost = max(self.cost * unit, 0.01)
        builder.call(kernel, args, extent, cost, grain, step, label=self.label)
