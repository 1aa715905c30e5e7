"""simplify: Graph -> Graph by algebra that holds for every number, inf, nan and ±0 included.

The docstrings state each rewrite as an equation: `x` and `y` are values, `c` and `d` literals. Two
rules may change what the interpreter leaves open too: the sign of a zero that `scale` gives, and
the last bit of x**2. Sums are never reordered here and products never expanded; matrix products
have rules of their own (`simplify_matmul`), and so have reads at indices (`simplify_indexing`).
"""

from __future__ import annotations

import math

import numpy as np

from lucid.compiler.passes.rules.simplify_indexing import simplify_indexing
from lucid.compiler.passes.rules.simplify_matmul import reshape, simplify_matmul
from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.primitive import Primitive
from lucid.ir.rewrite import Rewriter, rewrite
from lucid.ir.types import SHORT_NAMES, Type, is_differentiable
from lucid.ops.core.kinds import Elementwise, Scale
from lucid.ops.elementwise.arithmetic import Abs, Add, Cast, Div, Mul, Neg, Sub
from lucid.ops.elementwise.conditional import Where
from lucid.ops.elementwise.logic import BitwiseNot
from lucid.ops.elementwise.power import Pow
from lucid.ops.shape.full_and_iota import Full
from lucid.ops.shape.movement import Broadcast, Flip, Pad, Reshape, Slice, Transpose

Found = Atom | None


def simplify(graph: Graph) -> Graph:
    """Apply all rules below in one walk; each rule sees operands that are already simplified."""
    return rewrite(graph, rule)


def rule(w: Rewriter, eqn: Equation) -> Found:
    """The result of the first rule that applies, or None."""
    if len(eqn.outputs) != 1:
        return None
    if isinstance(eqn.op, Elementwise):
        return fold(w, eqn) or fold_literals(w, eqn) or algebra(w, eqn)
    found = identities(w, eqn) or fold(w, eqn) or movement(w, eqn) or reductions(w, eqn)
    return found or simplify_indexing(w, eqn) or simplify_matmul(w, eqn)


def algebra(w: Rewriter, eqn: Equation) -> Found:
    return arithmetic(w, eqn) or signs(w, eqn) or scaling(w, eqn) or simplify_where(w, eqn)


# Identities and constant folding


def identities(w: Rewriter, eqn: Equation) -> Found:
    """alias x = stop_gradient x = copy x = x;
    overwritten y x = replaced y x = once_differentiable x y = x;
    cast x = x to its own dtype;
    cast (cast x) = cast x where the inner cast is lossless;
    pad x = x by nothing.
    """
    if eqn.op.forwards:
        return eqn.op.forwarded(eqn.inputs, 1)[0]
    match eqn:
        case Equation(Cast(dtype), (x,)):
            inner = w.producer(x)
            if inner is not None and isinstance(inner.op, Cast):
                first = inner.inputs[0]
                if is_lossless_cast(first.type.dtype, x.type.dtype):
                    same = SHORT_NAMES[first.type.dtype] == dtype
                    return first if same else w.make(eqn.op, first)
            return x if SHORT_NAMES[x.type.dtype] == dtype else None
        case Equation(Pad(low, high, interior), (x,)) if not any((*low, *high, *interior)):
            return x
    return None


def is_lossless_cast(a: np.dtype, b: np.dtype) -> bool:
    """True if dtype `b` represents every number of dtype `a`.

    >>> is_lossless_cast(np.dtype("i4"), np.dtype("f8"))
    True
    >>> is_lossless_cast(np.dtype("i8"), np.dtype("f8"))
    False
    """
    if "c" in (a.kind, b.kind):
        return a == b
    wide_integer = a.kind in "iu" and a.itemsize == 8 and b.kind == "f"
    return np.can_cast(a, b, "safe") and not wide_integer


def fold(w: Rewriter, eqn: Equation) -> Found:
    """op c d = e, computed at compile time."""
    if not eqn.inputs or not all([x.__class__ is Literal for x in eqn.inputs]):
        return None
    if not (isinstance(eqn.op, Elementwise) or eqn.op.scalar):
        return None
    with np.errstate(all="ignore"):
        value = np.asarray(eqn.op.eval(*[x.array for x in eqn.inputs]))  # type: ignore[union-attr]
    return Literal(value.item(), eqn.outputs[0].type.dtype)


def fold_literals(w: Rewriter, eqn: Equation) -> Found:
    """op x (full c) = op x c where x has the result's shape;  op (full c) (full d) = full e."""
    constants = [constant_of(w, x) for x in eqn.inputs]
    if not any([c is not None for c in constants]) or not (eqn.op.scalar or not eqn.op.params()):
        return None
    inputs = tuple([x if c is None else c for c, x in zip(constants, eqn.inputs)])
    out = eqn.outputs[0].type
    new = Equation(eqn.op, inputs, eqn.outputs, eqn.source)
    folded = fold(w, new)
    if folded is not None:
        return full(w, out, folded)
    if not any([x.__class__ is Var and x.type.shape == out.shape for x in inputs]):
        return None
    return algebra(w, new) or w.make(eqn.op, *inputs)


def constant_of(w: Rewriter, x: Atom) -> Literal | None:
    """The literal that fills `x`, or None."""
    made = w.producer(x)
    if made is not None and isinstance(made.op, Full) and isinstance(made.inputs[0], Literal):
        return made.inputs[0]
    return None


def full(w: Rewriter, type: Type, c: Atom) -> Atom:
    return w.make(Full(type.shape, SHORT_NAMES[type.dtype]), c)


def is_number(x: Atom, value: float) -> bool:
    """True if `x` is this literal, including the sign of zero."""
    if not isinstance(x, Literal) or x.value != value:
        return False
    return math.copysign(1, x.value) == math.copysign(1, value)  # type: ignore[arg-type]


# Arithmetic


def arithmetic(w: Rewriter, eqn: Equation) -> Found:
    """x*1 = x/1 = x**1 = x;  x-0 = x;  x + -0 = x;  n+0 = n for integers;
    x**2 = x*x;  x**3 = x*x*x;  x**-1 = 1/x.
    """
    out = eqn.outputs[0].type
    if out.dtype.kind == "c":
        return None
    zero = 0.0 if out.dtype.kind in "iu" else -0.0
    match eqn.op, literal_last(eqn):
        case ((Mul() | Div() | Pow()), (x, c)) if is_number(c, 1) and x.type == out:
            return x
        case Sub(), (x, c) if is_number(c, 0.0) and x.type == out:
            return x
        case Add(), (x, c) if is_number(c, zero) and x.type == out:
            return x
        case Pow(), (x, c) if is_number(c, 2) and x.type == out:
            return w.make(Mul(), x, x)
        case Pow(), (x, c) if is_number(c, 3) and x.type == out:
            return w.make(Mul(), w.make(Mul(), x, x), x)
        case Pow(), (x, c) if is_number(c, -1) and x.type == out and out.dtype.kind == "f":
            return w.make(Div(), Literal(1.0, out.dtype), x)
    return None


def literal_last(eqn: Equation) -> tuple[Atom, ...]:
    """The operands, with the literal of a sum or product last."""
    swap = isinstance(eqn.op, (Add, Mul)) and isinstance(eqn.inputs[0], Literal)
    return eqn.inputs[::-1] if swap else eqn.inputs


def signs(w: Rewriter, eqn: Equation) -> Found:
    """-(-x) = x;  x*-1 = -x;  x + -y = x - y;  -x + y = y - x;  x - -y = x + y;
    -x * -y = x * y;  -x * c = x * -c;  |-x| = |x|;  ~(~x) = x.
    """
    out = eqn.outputs[0].type
    if out.dtype.kind not in "if" and not isinstance(eqn.op, BitwiseNot):
        return None
    inputs = literal_last(eqn)
    minus = [negated_operand(w, x) for x in inputs]
    match eqn.op, inputs, minus:
        case Mul(), (x, c), _ if is_number(c, -1) and x.type == out:
            return w.make(Neg(), x)
        case Mul(), (_, Literal() as c), (Var() as x, _):
            return w.make(Mul(), x, Literal(-c.value, c.dtype))
        case Mul(), _, (Var() as x, Var() as y):
            return w.make(Mul(), x, y)
        case Neg(), _, (Var() as x,):
            return x
        case Abs(), _, (Var() as x,):
            return w.make(Abs(), x)
        case Add(), (x, _), (_, Var() as y):
            return w.make(Sub(), x, y)
        case Add(), (_, y), (Var() as x, _):
            return w.make(Sub(), y, x)
        case Sub(), (x, _), (_, Var() as y):
            return w.make(Add(), x, y)
        case BitwiseNot(), (x,), _:
            inner = w.producer(x)
            return inner.inputs[0] if inner and isinstance(inner.op, BitwiseNot) else None
    return None


def negated_operand(w: Rewriter, x: Atom) -> Found:
    """y if x is -y, else None."""
    made = w.producer(x)
    return made.inputs[0] if made is not None and isinstance(made.op, Neg) else None


def scaling(w: Rewriter, eqn: Equation) -> Found:
    """scale x c = x * c where c is finite;  scale c x = x * c where c is finite and not zero."""
    out = eqn.outputs[0].type
    match eqn:
        case Equation(Scale(), (x, Literal() as c)) if is_finite(c) and x.type == out:
            pass
        case Equation(Scale(), (Literal() as c, x)) if is_finite(c) and c.value and x.type == out:
            pass
        case _:
            return None
    if is_number(c, 1):
        return x
    return w.make(Neg(), x) if is_number(c, -1) else w.make(Mul(), x, c)


def is_finite(c: Literal) -> bool:
    return is_differentiable(c.dtype) and abs(c.value) < math.inf


def simplify_where(w: Rewriter, eqn: Equation) -> Found:
    """where true x y = x;  where false x y = y;  where c x x = x;  where c true false = c;
    where ~c x y = where c y x.
    """
    if not isinstance(eqn.op, Where):
        return None
    condition, x, y = eqn.inputs
    out = eqn.outputs[0].type
    if isinstance(condition, Literal):
        chosen = x if condition.value else y
        return chosen if chosen.type == out else None
    if same(x, y):
        return x if x.type == out else None
    if out.dtype.kind == "b" and is_number(x, 1) and is_number(y, 0) and condition.type == out:
        return condition
    made = w.producer(condition)
    if made is not None and isinstance(made.op, BitwiseNot):
        return w.make(eqn.op, made.inputs[0], y, x)
    return None


def same(x: Atom, y: Atom) -> bool:
    if isinstance(x, Literal) and isinstance(y, Literal):
        return x.key == y.key
    return x is y


# Movement and reductions


def movement(w: Rewriter, eqn: Equation) -> Found:
    """Two reshapes, transposes, flips or broadcasts become one, or none if nothing moves;
    a broadcast that only adds axes of size 1 is a reshape;  movement of (full c) = full c.
    """
    if not eqn.op.aliases or not eqn.op.moves or eqn.op.orders:
        return None
    x, out = eqn.inputs[0], eqn.outputs[0].type
    constant = x if isinstance(x, Literal) else constant_of(w, x)
    if constant is not None:
        return full(w, out, constant)
    if is_identity_movement(eqn.op, x.type, out):
        return x
    made = w.producer(x)
    op: Primitive
    match eqn.op, None if made is None else made.op:
        case Reshape(), Reshape():
            return reshape(w, x, out.shape)
        case Transpose(outer), Transpose(inner):
            op = Transpose(tuple(inner[i] for i in outer))
        case Broadcast(shape, outer), Broadcast(_, inner):
            op = Broadcast(shape, tuple(outer[i] for i in inner))
        case Flip(outer), Flip(inner):
            op = Flip(tuple(sorted(set(outer) ^ set(inner))))
        case Broadcast(_, axes), _ if x.type.size == out.size and list(axes) == sorted(axes):
            return reshape(w, x, out.shape)
        case _:
            return None
    source = made.inputs[0]  # type: ignore[union-attr]
    return source if is_identity_movement(op, source.type, out) else w.make(op, source)


def is_identity_movement(op: Primitive, x: Type, out: Type) -> bool:
    """True if the operation leaves every element at its index."""
    if x != out:
        return False
    match op:
        case Transpose(axes) | Broadcast(_, axes):
            return axes == tuple(range(len(axes)))
        case Flip(axes):
            return all(x.shape[i] == 1 for i in axes)
        case Reshape() | Slice():
            return True
    return False


def reductions(w: Rewriter, eqn: Equation) -> Found:
    """A reduction over axes of size 1 is a reshape;  max, min, any, all of (full c) = full c."""
    if not eqn.op.monoid:
        return None
    x, out = eqn.inputs[0], eqn.outputs[0].type
    if x.type.dtype == out.dtype and all(x.type.shape[a] == 1 for a in eqn.op.axes):  # type: ignore[attr-defined]
        return reshape(w, x, out.shape)
    constant = constant_of(w, x)
    if constant is not None and x.type.size and eqn.op.monoid in ("max", "min", "any", "all"):
        return full(w, out, constant)
    return None
