"""lower_complex: Graph -> Graph in which complex arithmetic is done on real and imaginary parts.

A complex value becomes a pair of real values wherever the operation has a rule, so that its loops
are those of real numbers and fuse with them. `real` and `imag` of a value in memory are views;
`complex` interleaves the parts of a result. Other operations take complex values.
"""

from __future__ import annotations

import math
from typing import Any

from lucid.compiler.passes.expand.decompose import Decomposer
from lucid.compiler.resolve import resolve
from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.primitive import Primitive
from lucid.ir.rewrite import dce
from lucid.ir.types import DTYPES, SHORT_NAMES
from lucid.ops.elementwise.arithmetic import Abs, Add, Cast, Div, Mul, Neg, Sub
from lucid.ops.elementwise.complexes import Complex, Imag, Real
from lucid.ops.elementwise.conditional import Maximum, Minimum, Where
from lucid.ops.elementwise.exponential import Sqrt
from lucid.ops.elementwise.logic import (
    BitwiseAnd,
    BitwiseOr,
    Eq,
    Ge,
    Isinf,
    Lt,
    Ne,
)
from lucid.ops.shape.full_and_iota import Full, Iota
from lucid.ops.shape.movement import Broadcast, Flip, Pad, Reshape, Slice, Transpose

Pair = tuple[Atom, Atom]

REAL_OF = {"c64": "f32", "c128": "f64"}


def is_complex(x: Atom) -> bool:
    return x.type.dtype.kind == "c"


def lower_complex(graph: Graph) -> Graph:
    """Replace complex arithmetic by real arithmetic on the parts."""
    if not any(is_complex(var) for var in graph.vars()):
        return graph
    writer = ComplexLowering()
    for eqn in graph.equations:
        writer.lower(eqn)
    outputs = tuple([writer.value(x) if isinstance(x, Var) else x for x in graph.outputs])
    return dce(Graph(graph.name, graph.inputs, tuple(writer.equations), outputs))


class ComplexLowering(Decomposer):
    """The Graph that is being written, and the pairs that represent its complex values."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: dict[Var, Pair] = {}
        self.values: dict[Var, Atom] = {}

    def lower(self, eqn: Equation) -> None:
        self.source = eqn.source
        rule = None
        if any(is_complex(x) for x in (*eqn.inputs, *eqn.outputs)):
            rule = complex_rule(eqn.op)
        if rule is None:
            inputs = tuple([self.value(x) if isinstance(x, Var) else x for x in eqn.inputs])
            self.add(Equation(eqn.op, inputs, eqn.outputs, eqn.source))
            return
        found, (out,) = rule(self, eqn), eqn.outputs
        if is_complex(out):
            self.pairs[out] = found
        else:
            self.values[out] = found

    def value(self, x: Var) -> Atom:
        """`x` as one value, built from its parts if necessary."""
        if x in self.pairs and x not in self.values:
            self.values[x] = self.make(Complex(), *self.pairs[x])
        return self.values.get(x, x)

    def parts(self, x: Atom) -> Pair:
        """The real and the imaginary part of `x`."""
        if isinstance(x, Literal):
            dtype = DTYPES[REAL_OF[SHORT_NAMES[x.dtype]]]
            value = complex(x.value)
            return Literal(value.real, dtype), Literal(value.imag, dtype)
        if x not in self.pairs:
            self.pairs[x] = self.make(Real(), x), self.make(Imag(), x)
            self.values[x] = x
        return self.pairs[x]

    def part(self, x: Atom, i: int) -> Atom:
        if is_complex(x):
            return self.parts(x)[i]
        return self.value(x) if isinstance(x, Var) else x


def complex_rule(op: Primitive) -> Any:
    """The rule of an operation on complex numbers, None if it takes them as they are."""
    is_partwise = op.complex_rule is None and (op.partwise or op.moves)
    return partwise if is_partwise else resolve(op.complex_rule)


def zero(x: Atom) -> Literal:
    return Literal(0.0, x.type.dtype)


def partwise(w: ComplexLowering, eqn: Equation) -> Any:
    first, second = (w.make(eqn.op, *[w.part(x, i) for x in eqn.inputs]) for i in (0, 1))
    return first, second


def optimization_barrier(w: ComplexLowering, eqn: Equation) -> Any:
    """optimization_barrier x ct: of a complex number that is waited for, one part will do."""
    x, after = eqn.inputs[0], [w.part(v, 0) for v in eqn.inputs[1:]]
    if not is_complex(x):
        return w.make(eqn.op, w.part(x, 0), *after)
    return tuple([w.make(eqn.op, w.part(x, i), *after) for i in (0, 1)])


def conjugate(w: ComplexLowering, eqn: Equation) -> Pair:
    a, b = w.parts(eqn.inputs[0])
    return a, w.make(Neg(), b)


def full(w: ComplexLowering, eqn: Equation) -> Pair:
    a, b = w.parts(eqn.inputs[0])
    op = Full(eqn.op.shape, SHORT_NAMES[a.type.dtype])  # type: ignore[attr-defined]
    return w.make(op, a), w.make(op, b)


def make_complex(w: ComplexLowering, eqn: Equation) -> Pair:
    """complex a b, with the parts broadcast to one shape."""
    a, b = (w.part(x, 0) for x in eqn.inputs)
    out = eqn.outputs[0].type
    parts = []
    for x in (a, b):
        if isinstance(x, Literal):
            x = w.make(Full(out.shape, SHORT_NAMES[x.dtype]), x)
        elif x.type.shape != out.shape:
            axes = tuple(range(len(out.shape) - x.type.ndim, len(out.shape)))
            x = w.make(Broadcast(out.shape, axes), x)
        parts.append(x)
    return parts[0], parts[1]


def cast(w: ComplexLowering, eqn: Equation) -> Any:
    (x,), dtype = eqn.inputs, eqn.op.dtype  # type: ignore[attr-defined]
    if dtype in REAL_OF:
        op = Cast(REAL_OF[dtype])
        if not is_complex(x):
            a = w.make(op, w.part(x, 0))
            return a, w.make(Full(a.type.shape, REAL_OF[dtype]), zero(a))
        a, b = w.parts(x)
        return w.make(op, a), w.make(op, b)
    a, b = w.parts(x)
    if dtype == "bool":
        return w.make(BitwiseOr(), w.make(Ne(), a, zero(a)), w.make(Ne(), b, zero(b)))
    return w.make(Cast(dtype), a)


def multiply(w: ComplexLowering, op: Any, x: Pair, y: Pair) -> Pair:
    """(a + ib)(c + id) = (ac - bd) + i(ad + bc) for any product."""
    (a, b), (c, d) = x, y
    re = w.make(Sub(), w.make(op, a, c), w.make(op, b, d))
    return re, w.make(Add(), w.make(op, a, d), w.make(op, b, c))


def product(w: ComplexLowering, eqn: Equation) -> Pair:
    x, y = (w.parts(x) for x in eqn.inputs)
    return multiply(w, eqn.op, x, y)


def scaled(w: ComplexLowering, eqn: Equation) -> Pair:
    """t p, and 0 where t is 0, even if p is infinite."""
    t, p = (w.parts(x) for x in eqn.inputs)
    none = w.make(BitwiseAnd(), w.make(Eq(), t[0], zero(t[0])), w.make(Eq(), t[1], zero(t[1])))
    a, b = multiply(w, Mul(), t, p)
    return w.make(Where(), none, zero(a), a), w.make(Where(), none, zero(b), b)


def quotient(w: ComplexLowering, eqn: Equation) -> Pair:
    """Smith's division, which overflows only where the result does; division by 0 as in NumPy."""
    (a, b), (c, d) = (w.parts(x) for x in eqn.inputs)
    mul, sub, add, where = Mul(), Sub(), Add(), Where()
    size_c, size_d = w.make(Abs(), c), w.make(Abs(), d)
    first = w.make(Ge(), size_c, size_d)
    big, small = w.make(where, first, c, d), w.make(where, first, d, c)
    ratio = w.make(Div(), small, big)
    scale = w.make(Div(), Literal(1.0, c.type.dtype), w.make(add, big, w.make(mul, small, ratio)))
    p, q = w.make(where, first, a, b), w.make(where, first, b, a)
    re = w.make(mul, w.make(add, p, w.make(mul, q, ratio)), scale)
    one = w.make(sub, b, w.make(mul, a, ratio))
    other = w.make(sub, w.make(mul, b, ratio), a)
    im = w.make(mul, w.make(where, first, one, other), scale)
    none = w.make(BitwiseAnd(), w.make(Eq(), size_c, zero(c)), w.make(Eq(), size_d, zero(d)))
    re = w.make(where, none, w.make(Div(), a, size_c), re)
    return re, w.make(where, none, w.make(Div(), b, size_c), im)


def absolute(w: ComplexLowering, eqn: Equation) -> Atom:
    """The larger part times sqrt(1 + ratio²), without overflow; inf if a part is infinite."""
    a, b = (w.make(Abs(), part) for part in w.parts(eqn.inputs[0]))
    big, small = w.make(Maximum(), a, b), w.make(Minimum(), a, b)
    ratio = w.make(Div(), small, big)
    one = Literal(1.0, a.type.dtype)
    size = w.make(Mul(), big, w.make(Sqrt(), w.make(Add(), w.make(Mul(), ratio, ratio), one)))
    size = w.make(Where(), w.make(Eq(), big, zero(big)), zero(big), size)
    infinite = w.make(BitwiseOr(), w.make(Isinf(), a), w.make(Isinf(), b))
    return w.make(Where(), infinite, Literal(float("inf"), a.type.dtype), size)


def both_parts(w: ComplexLowering, eqn: Equation) -> Atom:
    """A test that is true if it is true of both parts."""
    return w.make(BitwiseAnd(), *partwise(w, eqn))


def either_part(w: ComplexLowering, eqn: Equation) -> Atom:
    """A test that is true if it is true of one part."""
    return w.make(BitwiseOr(), *partwise(w, eqn))


def any_all(w: ComplexLowering, eqn: Equation) -> Atom:
    a, b = w.parts(eqn.inputs[0])
    true = w.make(BitwiseOr(), w.make(Ne(), a, zero(a)), w.make(Ne(), b, zero(b)))
    return w.make(eqn.op, true)


def real_part(w: ComplexLowering, eqn: Equation) -> Atom:
    return w.parts(eqn.inputs[0])[0]


def imaginary_part(w: ComplexLowering, eqn: Equation) -> Atom:
    return w.parts(eqn.inputs[0])[1]


def cumprod(w: ComplexLowering, eqn: Equation) -> Pair:
    op: Any = eqn.op
    return cumulative_product(w, w.parts(eqn.inputs[0]), op.axis, op.reverse, op.exclusive)


def cumulative_product(
    w: ComplexLowering, x: Pair, axis: int, reverse: bool = False, exclusive: bool = False
) -> Pair:
    """Cumulative products by doubling: of 1, 2, 4, ... neighbors."""
    x = each_part(w, Flip((axis,)), x) if reverse else x
    x = shift(w, x, axis, 1) if exclusive else x
    distance = 1
    while distance < x[0].type.shape[axis]:
        x = multiply(w, Mul(), x, shift(w, x, axis, distance))
        distance *= 2
    return each_part(w, Flip((axis,)), x) if reverse else x


def each_part(w: ComplexLowering, op: Any, x: Pair) -> Pair:
    return w.make(op, x[0]), w.make(op, x[1])


def shift(w: ComplexLowering, x: Pair, axis: int, distance: int) -> Pair:
    """Elements shifted along an axis, with ones in front."""
    shape = x[0].type.shape
    move = tuple(distance if i == axis else 0 for i in range(len(shape)))
    back, none = tuple(-m for m in move), (0,) * len(shape)
    a, b = each_part(w, Pad(move, back, none), x)
    index = w.make(Iota(shape, axis, "i64"))
    first = w.make(Lt(), index, Literal(distance, index.type.dtype))
    return w.make(Where(), first, Literal(1.0, a.type.dtype), a), b


def prod(w: ComplexLowering, eqn: Equation) -> Pair:
    """The last of the cumulative products over the reduced axes, flattened."""
    x, out = w.parts(eqn.inputs[0]), eqn.outputs[0].type
    axes, type = eqn.op.axes, eqn.inputs[0].type  # type: ignore[attr-defined]
    n = math.prod(type.shape[i] for i in axes)
    if not n or not out.size:
        a, b = (Literal(v, x[0].type.dtype) for v in (1.0, 0.0))
        full = Full(out.shape, SHORT_NAMES[a.dtype])
        return w.make(full, a), w.make(full, b)
    kept = tuple(i for i in range(type.ndim) if i not in axes)
    x = each_part(w, Reshape((*out.shape, n)), each_part(w, Transpose((*kept, *axes)), x))
    starts, limits = (0,) * len(kept) + (n - 1,), (*out.shape, n)
    last = Slice(starts, limits, (1,) * len(limits), (len(kept),))
    return each_part(w, last, cumulative_product(w, x, len(kept)))
