"""Fusion groups, and which ops can be fused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lucid.compiler.kernels import scalars
from lucid.compiler.kernels.scalar_code import LLVM, supported
from lucid.ir.graph import Equation, Literal, Var
from lucid.ir.types import SHORT_NAMES
from lucid.ops.core.kinds import Elementwise
from lucid.ops.elementwise.arithmetic import Cast
from lucid.ops.elementwise.complexes import Imag, Real
from lucid.ops.higher_order.checkpoint_op import OptimizationBarrier
from lucid.ops.index.gather_scatter import Gather, PutAlong, TakeAlong
from lucid.ops.reduce.extrema import Max, Min
from lucid.ops.reduce.reduction import AllTrue, AnyTrue, Prod, Sum
from lucid.ops.shape.copying import Copy
from lucid.ops.shape.creation import Full, Iota
from lucid.ops.shape.movement import Broadcast, Flip, Pad, Reshape, Slice, Transpose

VIEWS = (OptimizationBarrier, Broadcast, Flip, Imag, Real, Reshape, Slice, Transpose)
INDEXED = (Gather, TakeAlong)  # the first operand is read from memory, at indices
MEMORY_READS = (*INDEXED, Pad)  # the first operand is read from memory, at other points
REDUCTIONS: dict[type, str] = {
    Sum: "sum", Prod: "prod", Max: "max", Min: "min", AnyTrue: "any", AllTrue: "all",
}  # fmt: skip
FUNCTION_WEIGHT = 20  # the weight of a function such as exp; an addition has weight 1
MAX_WEIGHT = 600  # of a kernel: longer ones take seconds to compile and run no faster


Coords = tuple[int | None, ...]


@dataclass(eq=False)
class Group:
    """Equations that one kernel computes.

    sizes      sizes of the axes of the domain
    reduced    axes that its reductions remove; None before the first reduction
    coords     for each Var computed here, the axis of the domain that each of its axes runs along
    points     the same for the points at which its equation is computed: before a reduction
    loops      for each Var, the number of reductions before it: the loop in which it is available
    weight     estimated length of the code
    readers    the steps that read what is computed here
    """

    sizes: tuple[int, ...]
    level: int
    reduced: frozenset[int] | None = None
    equations: list[Equation] = field(default_factory=list)
    coords: dict[Var, Coords] = field(default_factory=dict)
    points: dict[Var, Coords] = field(default_factory=dict)
    loops: dict[Var, int] = field(default_factory=dict)
    weight: int = 0
    readers: set[Step] = field(default_factory=set)


@dataclass(eq=False)
class Standalone:
    """An equation that is a step of its own, outside any kernel of loops."""

    equation: Equation
    level: int


Step = Group | Standalone


@dataclass(frozen=True)
class Reading:
    """How a view is read from its base Var.

    axes     the axis of the base for each axis of the view, None where it is broadcast
    plain    True if `axes` describes the view completely; otherwise it is read from memory
    after    values that must be computed before it is read
    """

    base: Any
    axes: tuple[int | None, ...]
    plain: bool = True
    after: tuple[Any, ...] = ()


def scalar_name(op: Any) -> str:
    """The scalar operation of a primitive, "" if it has none."""
    if isinstance(op, Cast):
        return "cast"
    if isinstance(op, Copy):
        return "copy"
    if isinstance(op, Elementwise):
        if op.params() and op.name != "round":
            return ""
        if op.name == "round" and op.decimals:  # type: ignore[attr-defined]
            return ""
        return op.scalar or op.name
    return ""


def fusible(eqn: Equation) -> bool:
    """True if the equation can be computed inside a loop."""
    out = SHORT_NAMES[eqn.outputs[0].type.dtype]
    if isinstance(eqn.op, (Full, Iota)):
        return out in LLVM
    if type(eqn.op) in REDUCTIONS:
        x = eqn.inputs[0]
        has_code = out in LLVM and SHORT_NAMES[x.type.dtype] in LLVM
        return has_code and isinstance(x, Var) and x.type.size > 0
    if isinstance(eqn.op, INDEXED):
        types = [x.type for x in eqn.inputs]
        return all(SHORT_NAMES[t.dtype] in LLVM for t in types) and types[0].size > 0
    if isinstance(eqn.op, Pad):
        shape = eqn.inputs[0].type.shape
        left = [n + min(a, 0) + min(b, 0) for n, a, b in zip(shape, eqn.op.low, eqn.op.high)]
        plain = isinstance(eqn.inputs[0], Var) and not any(eqn.op.interior)
        countable = max(eqn.outputs[0].type.shape, default=0) < 2**31
        return out in LLVM and plain and countable and min(left, default=0) > 0
    if isinstance(
        eqn.op, PutAlong
    ):  # one element per row: selected where the index equals the point
        values, indices = (x.type for x in eqn.inputs)
        has_code = out in LLVM and SHORT_NAMES[indices.dtype] in LLVM
        return has_code and values.shape[eqn.op.axis] == 1 and eqn.outputs[0].type.size > 0
    name = scalar_name(eqn.op)
    if not name:
        return False
    return all(supported(name, out, SHORT_NAMES[x.type.dtype]) for x in eqn.inputs)


def aligned(eqn: Equation, ndim: int) -> list[tuple[Any, int]]:
    """The operands that are read at the equation's points, and the axis at which each begins."""
    if isinstance(eqn.op, MEMORY_READS):
        return [(x, 0) for x in eqn.inputs[1:]]
    return [(x, ndim - x.type.ndim) for x in eqn.inputs]


def is_scalar_constant(eqn: Equation) -> bool:
    """True if the result is a literal broadcast to a shape."""
    return isinstance(eqn.op, Full) and isinstance(eqn.inputs[0], Literal)


def weight_of(eqn: Equation) -> int:
    return FUNCTION_WEIGHT if scalar_name(eqn.op) in scalars.table else 1


def compatible(a: Group, b: Group) -> bool:
    """True if two groups over one domain can be one kernel."""
    one_reduction = a.reduced is None or b.reduced is None or a.reduced == b.reduced
    return one_reduction and a.weight + b.weight <= MAX_WEIGHT


def rename_axes(coords: Coords, names: dict[int, int]) -> Coords:
    return tuple([None if a is None else names[a] for a in coords])
