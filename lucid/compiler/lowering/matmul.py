"""matmul as work of a plan: the sizes, strides and transposes of its matrix products."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime import blas
from lucid.ir.graph import Equation


class MatmulLowering:
    """Lowers `matmul` to matrix products."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        x, y = eqn.inputs
        return x.type.dtype.str[1:] in ("f4", "f8") and x.type.size * y.type.size > 0

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[Any]:
        blas.prepare(eqn.inputs[0].type.dtype.str[1:])
        x, y = (layout.array(operand) for operand in eqn.inputs)
        source = f"  [{eqn.source}]" if eqn.source else ""
        return [ProductWork(x, y, layout.array(eqn.outputs[0]), f"matmul{source}")]


@dataclass(eq=False)
class ProductWork:
    """A (batched) matrix product of arrays at given addresses."""

    x: Array
    y: Array
    out: Array
    label: str

    def kernels(self) -> Sequence[Any]:
        return ()

    def add(self, builder: Builder, kernels: Any) -> None:
        add_product(builder, self.x, self.y, self.out, self.label)


class Matrix(NamedTuple):
    """The last two axes of an operand: sizes, whether it is stored transposed, row stride."""

    rows: int
    columns: int
    transposed: bool
    leading: int


class Axis(NamedTuple):
    """A batch axis: its size, and its strides in x, y and out, in elements."""

    size: int
    strides: tuple[int, int, int]


def add_product(builder: Builder, x: Array, y: Array, out: Array, label: str) -> None:
    """Add the instructions of a (batched) matrix product."""
    product, others = product_of(x, y, out)
    for place in itertools.product(*[range(axis.size) for axis in others]):
        at = [sum(i * axis.strides[j] for i, axis in zip(place, others)) for j in range(3)]
        a, b, c = (replace(v, offset=v.offset + o).address for v, o in zip((x, y, out), at))
        blas.gemm(builder, product, a, b, c, label)


def product_of(x: Array, y: Array, out: Array) -> tuple[blas.Product, list[Axis]]:
    """Return the BLAS call, and the outer batch axes along which it is repeated."""
    left, right = matrix(x, left=True), matrix(y, left=False)
    m, n, k = left.rows, right.columns, left.columns
    axes = batch_axes(x, y, out, m * n)
    if axes and not left.transposed and axes[-1].strides == (m * left.leading, 0, m * n):
        m *= axes.pop().size  # one product over all rows
    size = x.type.dtype.itemsize
    *others, outer, inner = [Axis(1, (0, 0, 0)), Axis(1, (0, 0, 0)), *axes]
    product = blas.Product(
        x.type.dtype,
        m,
        n,
        k,
        (left.transposed, right.transposed),
        (left.leading, right.leading, max(n, 1)),
        batch=outer.size * inner.size,
        strides=scaled(inner.strides, size),
        inner=inner.size,
        outer_strides=scaled(outer.strides, size),
    )
    return product, others


def scaled(strides: tuple[int, int, int], size: int) -> tuple[int, int, int]:
    a, b, c = strides
    return a * size, b * size, c * size


def batch_axes(x: Array, y: Array, out: Array, matrix_size: int) -> list[Axis]:
    """The axes before the last two, which broadcast; adjacent ones are merged where possible."""
    ndim = max(len(x.shape), len(y.shape), 2) - 2
    shape = out.shape[:ndim]
    strides = []
    for a in (x, y):
        missing = ndim - max(len(a.shape) - 2, 0)
        own = list(zip(a.shape[:-2], a.strides[:-2]))
        strides.append([0] * missing + [0 if n == 1 else s for n, s in own])
    steps = [matrix_size] * ndim
    for i in reversed(range(ndim - 1)):
        steps[i] = steps[i + 1] * shape[i + 1]
    axes: list[Axis] = []
    for n, *apart in zip(shape, *strides, steps):
        if n == 1:
            continue
        now = Axis(n, tuple(apart))  # type: ignore[arg-type]
        before = axes[-1] if axes else None
        if before and all(a == b * n for a, b in zip(before.strides, now.strides)):
            now = Axis(before.size * n, now.strides)
            axes.pop()
        axes.append(now)
    return axes


def matrix(a: Array, left: bool) -> Matrix:
    """The layout of an operand's matrices; a vector is a row on the left, a column on the right."""
    shape, strides = a.shape, a.strides
    if len(shape) == 1:
        shape, strides = ((1, shape[0]), (shape[0], 1)) if left else ((shape[0], 1), (1, 1))
    (m, n), (down, across) = shape[-2:], strides[-2:]
    if (across == 1 or n == 1) and (down >= n or m == 1):
        return Matrix(m, n, False, max(down if m > 1 else n, n, 1))
    return Matrix(m, n, True, max(across if n > 1 else m, m, 1))
