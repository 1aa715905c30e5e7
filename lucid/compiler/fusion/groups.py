"""Fusion groups, and which ops can be fused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lucid.compiler.kernels import scalars
from lucid.compiler.kernels.scalar_code import LLVM, supported
from lucid.ir.graph import Equation, Literal, Var
from lucid.ir.types import SHORT_NAMES

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
Guest = tuple[Group, dict[int, int]]  # a group to be merged, and the axes its axes become


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


def fusible(eqn: Equation) -> bool:
    """True if the equation can be computed inside a loop."""
    op, x = eqn.op, eqn.inputs[0] if eqn.inputs else None
    if not (op.scalar or op.monoid or op.has_loop):
        return False
    given = [SHORT_NAMES[x.type.dtype] for x in eqn.inputs]
    out = SHORT_NAMES[eqn.outputs[0].type.dtype]
    if op.scalar:
        return all(supported(op.scalar, out, dtype) for dtype in given)
    if not all(dtype in LLVM for dtype in (*given, out)):
        return False
    return isinstance(x, Var) and x.type.size > 0 if op.monoid else op.can_loop(eqn)


def domain(eqn: Equation) -> tuple[int, ...]:
    """The shape of the points at which an equation is computed: before a reduction."""
    return (eqn.inputs if eqn.op.monoid else eqn.outputs)[0].type.shape


def aligned(eqn: Equation, ndim: int) -> list[tuple[Any, int]]:
    """The operands that are read at the equation's points, and the axis at which each begins."""
    if eqn.op.reads_memory:
        return [(x, 0) for x in eqn.inputs[1:]]
    return [(x, ndim - x.type.ndim) for x in eqn.inputs]


def is_scalar_constant(eqn: Equation) -> bool:
    """True if the result is a literal broadcast to a shape."""
    return eqn.op.fills and isinstance(eqn.inputs[0], Literal)


def weight_of(eqn: Equation) -> int:
    return FUNCTION_WEIGHT if eqn.op.scalar in scalars.table else 1


def compatible(a: Group, b: Group) -> bool:
    """True if two groups over one domain can be one kernel."""
    one_reduction = a.reduced is None or b.reduced is None or a.reduced == b.reduced
    return one_reduction and a.weight + b.weight <= MAX_WEIGHT


def rename_axes(coords: Coords, names: dict[int, int]) -> Coords:
    return tuple([None if a is None else names[a] for a in coords])
