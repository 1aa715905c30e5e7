"""simplify: Graph -> Graph by algebra that holds for every number, ±0, inf and nan included.

A docstring states each rewrite as an equation. `x` and `y` are values, `c` a literal.
"""

from __future__ import annotations

import math
from typing import Any

from lucid.compiler.fuse import scalar_name
from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.rewrite import Rewriter, rewrite
from lucid.ir.tape import Alias, StopGradient
from lucid.ir.types import SHORT_NAMES, is_differentiable
from lucid.ops.arithmetic import Add, Cast, Div, Mul, Neg, Sub
from lucid.ops.conditional import Where
from lucid.ops.creation import Full
from lucid.ops.kinds import Elementwise, Scale
from lucid.ops.movement import Broadcast, Reshape, Transpose
from lucid.ops.power import Pow
from lucid.ops.reduction import Sum


def simplify(graph: Graph) -> Graph:
    """All rules below, in one walk: each sees operands that are already simple."""
    return rewrite(graph, rule)


def rule(w: Rewriter, eqn: Equation) -> Atom | None:
    for part in (identities, folding, literals, arithmetic, scaling, movement, reductions):
        found = part(w, eqn)
        if found is not None:
            return found
    return None


def identities(w: Rewriter, eqn: Equation) -> Atom | None:
    """alias x = x;  stop_gradient x = x;  cast x = x where the dtype is the same."""
    match eqn:
        case Equation(Alias() | StopGradient(), (x,)):
            return x
        case Equation(Cast(dtype), (x,)) if SHORT_NAMES[x.type.dtype] == dtype:
            return x
    return None


def folding(w: Rewriter, eqn: Equation) -> Atom | None:
    """op c d = e, computed now."""
    if not eqn.inputs or len(eqn.outputs) != 1 or not all(isinstance(x, Literal) for x in eqn.inputs):
        return None
    if not isinstance(eqn.op, (Elementwise, Cast)):
        return None
    import numpy as np

    with np.errstate(all="ignore"):
        value = np.asarray(eqn.op.eval(*[x.array for x in eqn.inputs]))  # type: ignore[union-attr]
    return Literal(value.item(), eqn.outputs[0].type.dtype)


def literals(w: Rewriter, eqn: Equation) -> Atom | None:
    """op x (full c) = op x c where x has the shape of the result: an elementwise operand may be a number."""
    if not isinstance(eqn.op, Elementwise) or not scalar_name(eqn.op):
        return None
    constants = [constant_of(w, x) for x in eqn.inputs]
    if not any(c is not None and isinstance(x, Var) for c, x in zip(constants, eqn.inputs)):
        return None
    inputs = [x if c is None else c for c, x in zip(constants, eqn.inputs)]
    out = eqn.outputs[0].type
    if all(isinstance(x, Literal) for x in inputs):
        folded = folding(w, Equation(eqn.op, tuple(inputs), eqn.outputs, eqn.source))
        return None if folded is None else w.make(Full(out.shape, SHORT_NAMES[out.dtype]), folded)
    if not any(isinstance(x, Var) and x.type.shape == out.shape for x in inputs):
        return None
    new = Equation(eqn.op, tuple(inputs), eqn.outputs, eqn.source)
    return arithmetic(w, new) or scaling(w, new) or w.make(eqn.op, *inputs)


def constant_of(w: Rewriter, x: Atom) -> Literal | None:
    """The number that every element of `x` is, where that is written in the Graph."""
    made = w.producer(x)
    if made is not None and isinstance(made.op, Full) and isinstance(made.inputs[0], Literal):
        return made.inputs[0]
    return None


def is_number(x: Atom, value: float) -> bool:
    return isinstance(x, Literal) and x.value == value and math.copysign(1, x.value) == math.copysign(1, value)  # type: ignore[arg-type]


def arithmetic(w: Rewriter, eqn: Equation) -> Atom | None:
    """x*1 = x;  x/1 = x;  x-0 = x;  x + -0 = x;  -(-x) = x;  x**1 = x;  x**2 = x*x;  x*-1 = -x."""
    out = eqn.outputs[0].type
    if out.dtype.kind == "c":
        return None
    match eqn:
        case Equation(Mul(), (x, c)) | Equation(Mul(), (c, x)) if is_number(c, 1) and x.type == out:
            return x
        case Equation(Mul(), (x, c)) | Equation(Mul(), (c, x)) if is_number(c, -1) and x.type == out:
            return w.make(Neg(), x) if out.dtype.kind in "if" else None
        case Equation(Div(), (x, c)) if is_number(c, 1) and x.type == out:
            return x
        case Equation(Sub(), (x, c)) if is_number(c, 0.0) and x.type == out:
            return x
        case Equation(Add(), (x, c)) | Equation(Add(), (c, x)) if is_number(c, -0.0) and x.type == out:
            return x
        case Equation(Pow(), (x, c)) if is_number(c, 1) and x.type == out:
            return x
        case Equation(Pow(), (x, c)) if is_number(c, 2) and x.type == out:
            return w.make(Mul(), x, x)
        case Equation(Neg(), (x,)):
            inner = w.producer(x)
            return inner.inputs[0] if inner is not None and isinstance(inner.op, Neg) else None
    return None


def scaling(w: Rewriter, eqn: Equation) -> Atom | None:
    """scale t c = t * c and scale c t = t * c where c is finite and, as a tangent, not zero."""
    out = eqn.outputs[0].type
    match eqn:
        case Equation(Scale(), (t, Literal() as c)) if is_finite(c) and t.type == out:
            return w.make(Mul(), t, c) if not is_number(c, 1) else t
        case Equation(Scale(), (Literal() as c, p)) if is_finite(c) and c.value != 0 and p.type == out:
            return w.make(Mul(), p, c) if not is_number(c, 1) else p
    return None


def is_finite(c: Literal) -> bool:
    return is_differentiable(c.dtype) and abs(c.value) < math.inf


def movement(w: Rewriter, eqn: Equation) -> Atom | None:
    """Two reshapes are one, two transposes are one, and neither is there where it changes nothing."""
    if len(eqn.inputs) != 1:
        return None
    x, out = eqn.inputs[0], eqn.outputs[0].type
    inner = w.producer(x)
    match eqn.op:
        case Reshape() if x.type == out:
            return x
        case Reshape() if inner is not None and isinstance(inner.op, Reshape):
            return x if x.type == out else regrouped(w, inner.inputs[0], out)
        case Transpose(permutation) if permutation == tuple(range(len(permutation))):
            return x
        case Transpose(permutation) if inner is not None and isinstance(inner.op, Transpose):
            joined = tuple(inner.op.permutation[i] for i in permutation)
            if joined == tuple(range(len(joined))):
                return inner.inputs[0]
            return w.make(Transpose(joined), inner.inputs[0])
        case Broadcast(shape, axes) if x.type == out and axes == tuple(range(len(shape))):
            return x
    constant = constant_of(w, x)
    if constant is not None and isinstance(eqn.op, (Reshape, Transpose, Broadcast)):
        return w.make(Full(out.shape, SHORT_NAMES[out.dtype]), constant)
    return None


def regrouped(w: Rewriter, x: Atom, out: Any) -> Atom:
    return x if x.type == out else w.make(Reshape(out.shape), x)


def reductions(w: Rewriter, eqn: Equation) -> Atom | None:
    """sum over axes of size 1 = reshape;  where(true, x, y) = x."""
    out = eqn.outputs[0].type
    match eqn:
        case Equation(Sum(axes), (x,)) if all(x.type.shape[a] == 1 for a in axes):
            return x if x.type == out else w.make(Reshape(out.shape), x)
        case Equation(Where(), (Literal() as c, x, y)):
            chosen = x if c.value else y
            return chosen if chosen.type == out else None
    return None
