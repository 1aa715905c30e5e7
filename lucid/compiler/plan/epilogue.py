"""epilogue: a large product and the kernel that reads its rows, as one instruction over blocks.

A block of rows is multiplied and given to the kernel while it lies in the cache. That needs memory
in which both may be at work: what the product reads is neither freed nor written before both end.
Results that fit into the cache gain nothing by it, and stay two instructions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lucid.compiler.fusion.groups import Alone, Group, Step
from lucid.compiler.kernels.build import extent_of
from lucid.compiler.kernels.nest import Buffer, Nest, Structure
from lucid.compiler.lowering.matmul import ProductWork, product_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.plan.work import NestWork
from lucid.compiler.runtime import blas
from lucid.compiler.runtime.native_kernel import Kernel
from lucid.ir.graph import Var
from lucid.ops.linalg.contraction import Matmul

LEAST_BYTES = 1 << 24  # of a result that has left the cache when it is read again
BLOCK_BYTES = 1 << 17  # a block and what the kernel reads beside it stay in the cache


def paired(
    steps: Sequence[Step], reads: Callable[[Step], list[Var]]
) -> tuple[list[Step], dict[Step, Step]]:
    """The steps with large products right before the group that reads them first, and which."""
    reader: dict[Var, Step] = {}
    for step in steps:
        for x in reads(step):
            reader.setdefault(x, step)
    before: dict[Step, Step] = {}
    for step in steps:
        if isinstance(step, Alone) and is_large_product(step):
            group = reader.get(step.equation.outputs[0])
            if isinstance(group, Group):
                before[group] = step
    moved = set(before.values())
    ordered: list[Step] = []
    for step in steps:
        if step in before:
            ordered.append(before[step])
        if step not in moved:
            ordered.append(step)
    return ordered, before


def is_large_product(step: Alone) -> bool:
    type = step.equation.outputs[0].type
    large = type.size * type.dtype.itemsize >= LEAST_BYTES
    return large and isinstance(step.equation.op, Matmul)


class Blocks(NamedTuple):
    """Blocks of rows: how many, the tiles of the product and the kernel's units in each."""

    number: int
    tiles: int
    units: int


def blocks_of(work: ProductWork, nest: Nest, arrays: Sequence[Array]) -> Blocks | None:
    """How both can be cut into blocks, None where the kernel needs more than finished rows."""
    product, others = product_of(work.x, work.y, work.out)
    m, n = product.m, product.n
    if min(m, n) < 2 or math.prod(axis.size for axis in others) != 1:
        return None
    tile = blas.tiling(m, n, product.k, product.transpose)
    rows = min(tile.rows, m)
    per_unit = elements_a_unit(nest, arrays, work.out)
    if per_unit is None or (product.batch > 1 and m % rows):
        return None
    tall = max(1, BLOCK_BYTES // (rows * n * work.out.type.dtype.itemsize))
    number = math.ceil(math.ceil(m / rows) * product.batch / tall)
    units, rest = divmod(rows * tall * n, per_unit)
    if rest or extent_of(nest)[0] * per_unit != m * n * product.batch:
        return None
    return Blocks(number, tall * math.ceil(n / tile.columns), units)


def elements_a_unit(nest: Nest, arrays: Sequence[Array], out: Array) -> int | None:
    """How many elements of `out` belong to each unit of a kernel's extent, if they are its own."""
    found = set()
    indexed = {
        Structure.buffer_of(value) for value in nest.values if value.op not in ("load", "const")
    }
    for number, (buffer, array) in enumerate(zip(nest.buffers, arrays)):
        if array.ref == out.ref:
            elsewhere = number in indexed or buffer.box or array.offset != out.offset
            found.add(None if elsewhere else step_of_units(nest, buffer))
    if len(found) != 1 or any(store.at for store in nest.stores):
        return None
    return found.pop()


def step_of_units(nest: Nest, buffer: Buffer) -> int | None:
    """The elements from one unit to the next, None where they are not all of that unit."""
    axes = unit_axes(nest)
    if not axes:
        return None
    step = buffer.strides[axes[-1]]
    apart = step
    for axis in reversed(axes):
        if buffer.strides[axis] != apart:
            return None
        apart *= nest.sizes[axis]
    inside = [a for a in range(len(nest.sizes)) if a not in axes]
    reach = sum(abs(buffer.strides[a]) * (nest.sizes[a] - 1) for a in inside)
    forward = all(buffer.strides[a] >= 0 for a in inside)
    return step if forward and reach < step else None


def unit_axes(nest: Nest) -> list[int]:
    """The axes that the extent of a kernel counts along."""
    if nest.partial or all(nest.reduced):
        return [0]
    kept = [axis for axis, reduced in enumerate(nest.reduced) if not reduced]
    if nest.structure.mode == "columns":
        return []
    return kept if nest.structure.mode == "rows" or len(kept) == 1 else kept[:-1]


class Recorded:
    """Takes calls as a Builder does, and keeps them."""

    def __init__(self) -> None:
        self.calls: list[tuple[Kernel, Sequence[Any], int, float, tuple[int, int]]] = []

    def call(
        self,
        kernel: Kernel,
        args: Sequence[Any],
        extent: int,
        cost: float = 1.0,
        grain: int | None = None,
        step: int = 1,
        label: str = "",
        traffic: tuple[int, int] = (0, 0),
    ) -> None:
        self.calls.append((kernel, args, extent, cost, traffic))


@dataclass(eq=False)
class ByRowsWork:
    """A product and the kernel of a Nest by turns, a block of rows at a time."""

    product: ProductWork
    then: NestWork
    cut: Blocks

    @property
    def label(self) -> str:
        return f"matmul then {self.then.label}"

    @property
    def nest(self) -> Nest:
        return self.then.nest

    def kernels(self) -> Sequence[Any]:
        return self.then.kernels()

    def add(self, builder: Builder, kernels: Any) -> None:
        recorded: Any = Recorded()
        self.product.add(recorded, kernels)
        self.then.add(recorded, kernels)
        product, then = recorded.calls
        number, tiles, units = self.cut
        args = [product[0].address, then[0].address, tiles, product[2], units, then[2]]
        args += [len(product[1]), *product[1], *then[1]]
        builder.kept += [product[0], then[0]]
        cost = tiles * product[3] + units * then[3]
        traffic = tuple(a + b for a, b in zip(product[4], then[4]))
        builder.call(blas.product_then(), args, number, cost, label=self.label, traffic=traffic)  # type: ignore[arg-type]
