"""Matrix products as work of a plan: which sizes, strides and transposes BLAS is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lucid.compiler import blas
from lucid.compiler.arrays import Array
from lucid.compiler.plan import Builder
from lucid.ir.graph import Equation


class MatmulStep:
    """How `matmul` becomes instructions."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        x, y = eqn.inputs
        floating = x.type.dtype.str[1:] in ("f4", "f8")
        return floating and x.type.ndim <= 3 and y.type.ndim <= 3 and x.type.size * y.type.size > 0

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> list[ProductWork]:
        x, y = (layout.array(operand) for operand in eqn.inputs)
        label = f"matmul  [{eqn.source}]" if eqn.source else "matmul"
        return [ProductWork(x, y, layout.array(eqn.outputs[0]), label)]


@dataclass(eq=False)
class ProductWork:
    """A (batched) matrix product at known places."""

    x: Array
    y: Array
    out: Array
    label: str

    def kernels(self) -> Sequence[Any]:
        return ()

    def add(self, builder: Builder, kernels: Any) -> None:
        add_product(builder, self.x, self.y, self.out, self.label)


def add_product(builder: Builder, x: Array, y: Array, out: Array, label: str) -> None:
    """A (batched) matrix product as instructions."""
    xs, ys = matrices(x, left=True), matrices(y, left=False)
    (m, k), n = xs[0], ys[0][1]
    batches = [a[2] for a in (xs, ys) if a[2] is not None]
    batch = batches[0] if batches else 1
    if batch > 1 and xs[2] is not None and ys[2] is None and not xs[4] and xs[3] * 1 == m * xs[5]:
        m, batch = m * batch, 1  # one product over all rows
    size = x.type.dtype.itemsize
    strides = (
        (xs[3] if xs[2] is not None else 0) * size,
        (ys[3] if ys[2] is not None else 0) * size,
        m * n * size,
    )
    product = blas.Product(
        x.type.dtype,
        m,
        n,
        k,
        (xs[4], ys[4]),
        (xs[5], ys[5], max(n, 1)),
        batch=batch,
        strides=strides if batch > 1 else (0, 0, 0),
    )
    blas.gemm(builder, product, x.address, y.address, out.address, label)


def matrices(a: Array, left: bool) -> tuple[tuple[int, int], Any, int | None, int, bool, int]:
    """(rows, columns), None, batch or None, its stride, transposed as stored, distance between stored rows."""
    shape, strides = a.shape, a.strides
    if len(shape) == 1:
        shape, strides = ((1, shape[0]), (shape[0], 1)) if left else ((shape[0], 1), (1, 1))
    batch, step = (shape[0], strides[0]) if len(shape) == 3 else (None, 0)
    (m, n), (down, across) = shape[-2:], strides[-2:]
    if (across == 1 or n == 1) and (down >= n or m == 1):
        return (m, n), None, batch, step, False, max(down if m > 1 else n, n, 1)
    return (m, n), None, batch, step, True, max(across if n > 1 else m, m, 1)
