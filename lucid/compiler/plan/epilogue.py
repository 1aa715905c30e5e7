"""epilogue: a large matmul and the kernel that reads its rows, as one instruction over row blocks.

A block of rows is multiplied and passed to the kernel while it is in the cache. The operands of the
product must then neither be freed nor overwritten before both have ended. Results that fit into the
cache gain nothing, and stay two instructions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lucid.compiler.fusion.groups import Group, Standalone, Step
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

MIN_BYTES = 1 << 24  # smallest result that has left the cache when it is read again
BLOCK_BYTES = 1 << 17  # a block and what the kernel reads beside it stay in the cache


def pair_products(
    steps: Sequence[Step], reads: Callable[[Step], list[Var]]
) -> tuple[list[Step], dict[Step, Step]]:
    """Move large products right before the group that first reads them; map group to product."""
    reader: dict[Var, Step] = {}
    for step in steps:
        for x in reads(step):
            reader.setdefault(x, step)
    before: dict[Step, Step] = {}
    for step in steps:
        if isinstance(step, Standalone) and is_large_product(step):
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


def is_large_product(step: Standalone) -> bool:
    type = step.equation.outputs[0].type
    large = type.size * type.dtype.itemsize >= MIN_BYTES
    return large and isinstance(step.equation.op, Matmul)


class Blocks(NamedTuple):
    """Blocks of rows: their number, and the product's tiles and the kernel's units in each."""

    number: int
    tiles: int
    units: int


def row_blocks(work: ProductWork, nest: Nest, arrays: Sequence[Array]) -> Blocks | None:
    """Split both into blocks of rows, or return None if the kernel needs more than those rows."""
    product, others = product_of(work.x, work.y, work.out)
    m, n = product.m, product.n
    if min(m, n) < 2 or math.prod(axis.size for axis in others) != 1:
        return None
    tile = blas.tiling(product.code, m, n, product.k)
    rows = min(tile.rows, m)
    per_unit = elements_per_unit(nest, arrays, work.out)
    if per_unit is None or (product.batch > 1 and m % rows):
        return None
    tiles_per_block = max(1, BLOCK_BYTES // (rows * n * work.out.type.dtype.itemsize))
    number = math.ceil(math.ceil(m / rows) * product.batch / tiles_per_block)
    units, rest = divmod(rows * tiles_per_block * n, per_unit)
    if rest or extent_of(nest)[0] * per_unit != m * n * product.batch:
        return None
    return Blocks(number, tiles_per_block * math.ceil(n / tile.columns), units)


def elements_per_unit(nest: Nest, arrays: Sequence[Array], out: Array) -> int | None:
    """The elements of `out` that each unit of a kernel's extent reads, if no other unit does."""
    found = set()
    indexed = {
        Structure.buffer_of(value) for value in nest.values if value.op not in ("load", "const")
    }
    for number, (buffer, array) in enumerate(zip(nest.buffers, arrays)):
        if array.ref == out.ref:
            elsewhere = number in indexed or buffer.box or array.offset != out.offset
            found.add(None if elsewhere else unit_stride(nest, buffer))
    if len(found) != 1 or any(store.at for store in nest.stores):
        return None
    return found.pop()


def unit_stride(nest: Nest, buffer: Buffer) -> int | None:
    """The elements from one unit to the next, None if a unit reads beyond its own."""
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


class CallRecorder:
    """Records the calls that work would add to a Builder."""

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
class EpilogueWork:
    """A product and the kernel of a Nest, alternating over blocks of rows."""

    product: ProductWork
    epilogue: NestWork
    partition: Blocks

    @property
    def label(self) -> str:
        return f"matmul then {self.epilogue.label}"

    @property
    def nest(self) -> Nest:
        return self.epilogue.nest

    def kernels(self) -> Sequence[Any]:
        return self.epilogue.kernels()

    def add(self, builder: Builder, kernels: Any) -> None:
        recorded: Any = CallRecorder()
        self.product.add(recorded, kernels)
        self.epilogue.add(recorded, kernels)
        product, epilogue = recorded.calls
        number, tiles, units = self.partition
        args = [product[0].address, epilogue[0].address, tiles, product[2], units, epilogue[2]]
        args += [len(product[1]), *product[1], *epilogue[1]]
        builder.keep_alive += [product[0], epilogue[0]]
        cost = tiles * product[3] + units * epilogue[3]
        traffic = tuple(a + b for a, b in zip(product[4], epilogue[4]))
        builder.call(blas.gemm_epilogue(), args, number, cost, label=self.label, traffic=traffic)  # type: ignore[arg-type]
