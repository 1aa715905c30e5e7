"""The cost of a Graph: its operations, and the bytes that it must read and write at least.

Operations are counted as written, after the compiler's passes: a product of matrices is 2 m n k, a
convolution two for each element of a window inside the image, all others one an element, `exp` too.
Every input is read once and every output written once; between them anything may stay in registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cost:
    """Operations, in those of float32 (one of float64 counts twice), and bytes."""

    flops: float
    bytes: int


def count(graph: Any) -> Cost:
    """The cost of a program; one from the disk cache has its Graph as recorded."""
    from lucid.compiler.passes.pipeline import stages
    from lucid.ir.graph import Var

    *_, graph = stages(graph).values()
    moved = sum(read_bytes(graph, x) for x in graph.inputs)
    moved += sum(nbytes(x) for x in dict.fromkeys(graph.outputs) if isinstance(x, Var))
    return Cost(operations(graph), moved)


def size(x: Any) -> int:
    return math.prod(x.type.shape)


def nbytes(x: Any) -> int:
    return size(x) * x.type.dtype.itemsize


def read_bytes(graph: Any, x: Any) -> int:
    """The bytes of an input that are read: of a table, those that are looked up."""
    uses = [eqn for eqn in graph.equations if x in eqn.inputs]
    if any(x is y for y in graph.outputs) or not all(is_lookup(eqn, x) for eqn in uses):
        return nbytes(x)
    return min(nbytes(x), sum(nbytes(y) for eqn in uses for y in eqn.outputs))


def is_lookup(eqn: Any, x: Any) -> bool:
    reads = eqn.op.reads_memory or eqn.op.name == "slice"
    return reads and not any(y is x for y in eqn.inputs[1:])


def operations(graph: Any) -> float:
    return sum(map(equation, graph.equations))


def equation(eqn: Any) -> float:
    """The operations of an equation."""
    from lucid.ir.primitive import graphs_of

    op, out = eqn.op, eqn.outputs[0]
    scale = out.type.dtype.itemsize / 4
    if op.name in FORMULAS:
        return scale * FORMULAS[op.name](op, *[x.type.shape for x in eqn.inputs], out.type.shape)
    bodies = list(map(operations, graphs_of(op)))
    if op.name == "switch":
        return min(bodies)
    if bodies:
        return getattr(op, "length", 1) * sum(bodies)
    if op.monoid or op.scan:
        return scale * max(size(x) for x in eqn.inputs)
    return scale * size(out) if op.scalar and not op.moves else 0.0


def matmul(op: Any, a: Any, b: Any, out: Any) -> float:
    return 2.0 * math.prod(out) * a[-1]


def taps(op: Any, image: Iterable[int], kernel: Iterable[int], windows: Iterable[int]) -> int:
    """Pairs of a window and an element of it inside the image."""
    axes = zip(image, kernel, windows, op.stride, op.padding, op.dilation)
    return math.prod(
        sum(0 <= q * s + k * d - p < n for q in range(m) for k in range(length))
        for n, length, m, s, p, d in axes
    )


def convolution(op: Any, x: Any, w: Any, y: Any) -> float:
    return 2.0 * x[0] * math.prod(w[:2]) * taps(op, x[2:], w[2:], y[2:])


def square(op: Any, a: Any, *rest: Any) -> float:
    """n³, for each matrix of a stack."""
    return float(math.prod(a[:-1]) * a[-1] ** 2)


FORMULAS: dict[str, Callable[..., float]] = {
    "matmul": matmul,
    "convolution": convolution,
    "convolution_transpose": lambda op, y, w, x: convolution(op, x, w, y),
    "convolution_weight": lambda op, x, y, w: convolution(op, x, w, y),
    "cholesky": lambda op, *shapes: square(op, *shapes) / 3,
    "lu_factor": lambda op, *shapes: square(op, *shapes) * 2 / 3,
    "triangular_solve": lambda op, a, b, out: float(a[-1] * math.prod(out)),
    "lu_solve": lambda op, a, *rest: 2.0 * a[-1] * math.prod(rest[-1]),
}
