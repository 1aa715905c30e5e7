"""What fusing is about: which operations loops can hold, and groups of them over one domain."""

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
from lucid.ops.higher_order.checkpoint_op import Again
from lucid.ops.index.gather_scatter import Gather, PutAlong, TakeAlong
from lucid.ops.reduce.extrema import Max, Min
from lucid.ops.reduce.reduction import AllTrue, AnyTrue, Prod, Sum
from lucid.ops.shape.copying import Copy
from lucid.ops.shape.creation import Full, Iota
from lucid.ops.shape.movement import Broadcast, Flip, Pad, Reshape, Slice, Transpose

VIEWS = (Again, Broadcast, Flip, Imag, Real, Reshape, Slice, Transpose)
INDEXED = (Gather, TakeAlong)  # the first operand is read at indices, from memory
ELSEWHERE = (*INDEXED, Pad)  # the first operand is read at other points, from memory
REDUCTIONS: dict[type, str] = {
    Sum: "sum", Prod: "prod", Max: "max", Min: "min", AnyTrue: "any", AllTrue: "all",
}  # fmt: skip
HEAVY = 20  # the weight of a function such as exp, where an addition has 1
MOST_WEIGHT = 600  # of a kernel: longer ones compile for seconds and run no faster


Coords = tuple[int | None, ...]


@dataclass(eq=False)
class Group:
    """Equations that one kernel computes.

    sizes      of the axes of the domain
    reduced    axes that its reductions take away; None before there is one
    coords     for each Var computed here, the axis of the domain that each of its axes runs along
    points     the same for the points at which its equation is computed: before a reduction
    loops      the loop over the reduced axes in which each Var is known: the reductions before it
    weight     how long the code is, about
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
class Alone:
    """An equation that is a step by itself."""

    equation: Equation
    level: int


Step = Group | Alone


@dataclass(frozen=True)
class Reading:
    """How a Var is read from another: axis by axis, None where repeated; `plain`: and no more.

    after    what must be known before it is read
    """

    base: Any
    axes: tuple[int | None, ...]
    plain: bool = True
    after: tuple[Any, ...] = ()


def scalar_name(op: Any) -> str:
    """The scalar operation of a primitive, "" where it has none."""
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
    """Has the equation code for the inside of a loop?"""
    out = SHORT_NAMES[eqn.outputs[0].type.dtype]
    if isinstance(eqn.op, (Full, Iota)):
        return out in LLVM
    if type(eqn.op) in REDUCTIONS:
        x = eqn.inputs[0]
        known = out in LLVM and SHORT_NAMES[x.type.dtype] in LLVM
        return known and isinstance(x, Var) and x.type.size > 0
    if isinstance(eqn.op, INDEXED):
        types = [x.type for x in eqn.inputs]
        return all(SHORT_NAMES[t.dtype] in LLVM for t in types) and types[0].size > 0
    if isinstance(eqn.op, Pad):
        shape = eqn.inputs[0].type.shape
        left = [n + min(a, 0) + min(b, 0) for n, a, b in zip(shape, eqn.op.low, eqn.op.high)]
        plain = isinstance(eqn.inputs[0], Var) and not any(eqn.op.interior)
        countable = max(eqn.outputs[0].type.shape, default=0) < 2**31
        return out in LLVM and plain and countable and min(left, default=0) > 0
    if isinstance(eqn.op, PutAlong):  # one element a row: where the index is that of the point
        values, indices = (x.type for x in eqn.inputs)
        known = out in LLVM and SHORT_NAMES[indices.dtype] in LLVM
        return known and values.shape[eqn.op.axis] == 1 and eqn.outputs[0].type.size > 0
    name = scalar_name(eqn.op)
    if not name:
        return False
    return all(supported(name, out, SHORT_NAMES[x.type.dtype]) for x in eqn.inputs)


def aligned(eqn: Equation, ndim: int) -> list[tuple[Any, int]]:
    """The operands that are read at the equation's points, and the axis where theirs begin."""
    if isinstance(eqn.op, ELSEWHERE):
        return [(x, 0) for x in eqn.inputs[1:]]
    return [(x, ndim - x.type.ndim) for x in eqn.inputs]


def is_number(eqn: Equation) -> bool:
    """Is the result one number everywhere, written in the Graph?"""
    return isinstance(eqn.op, Full) and isinstance(eqn.inputs[0], Literal)


def weight_of(eqn: Equation) -> int:
    return HEAVY if scalar_name(eqn.op) in scalars.table else 1


def compatible(a: Group, b: Group) -> bool:
    """May two groups over one domain be one kernel?"""
    one_reduction = a.reduced is None or b.reduced is None or a.reduced == b.reduced
    return one_reduction and a.weight + b.weight <= MOST_WEIGHT


def renamed(coords: Coords, names: dict[int, int]) -> Coords:
    return tuple([None if a is None else names[a] for a in coords])
