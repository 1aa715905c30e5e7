"""widen: what is computed with float16 is computed in float32 and rounded once, at its end.

    exp x = cast[f16] (exp (cast[f32] x))

So kernels need no arithmetic of halves: they load, store and convert them. NumPy computes sums,
products and functions of float16 in float32 as well; of + - * / the results are the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.compiler.fusion.groups import VIEWS
from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.infer import infer
from lucid.ir.types import Type
from lucid.ops.elementwise.arithmetic import Cast
from lucid.ops.elementwise.conditional import Where
from lucid.ops.elementwise.digits import Nextafter
from lucid.ops.index.gather_scatter import Gather, TakeAlong
from lucid.ops.index.writing import ScatterSet, SliceSet
from lucid.ops.shape.copying import Copy
from lucid.ops.shape.creation import Full, Iota
from lucid.ops.shape.movement import Concatenate, Pad
from lucid.tape.markers import Alias, Overwritten, StopGradient

HALF, SINGLE = np.dtype("float16"), np.dtype("float32")
MOVES = (
    *VIEWS, Alias, Cast, Concatenate, Copy, Full, Gather, Overwritten, Pad, ScatterSet, SliceSet,
    StopGradient, TakeAlong, Where,
)  # fmt: skip
IN_HALVES = (Nextafter,)  # what is defined by the digits of a half itself


def widened(w: Any, eqn: Equation) -> Sequence[Atom] | None:
    """The results of an equation by way of float32; None where it has no halves or moves them."""
    types = [x.type for x in (*eqn.inputs, *eqn.outputs)]
    if not any([is_half(t) for t in types]) or isinstance(eqn.op, (*MOVES, *IN_HALVES)):
        return None
    if isinstance(eqn.op, Iota):
        wide = w.make(Iota(eqn.op.shape, eqn.op.axis, "f32"))
        return [w.make(Cast("f16"), wide)]
    if not any([is_half(x.type) for x in eqn.inputs]):
        return None
    if any(
        [isinstance(value, (Graph, tuple)) and has_graph(value) for value in vars(eqn.op).values()]
    ):
        return None
    given = tuple([raised(w, x) for x in eqn.inputs])
    found = infer(eqn.op, tuple([x.type for x in given]))
    outs = found if isinstance(found, tuple) else (found,)
    if [t.shape for t in outs] != [y.type.shape for y in eqn.outputs]:
        return None
    results = w.written(Equation(eqn.op, given, tuple([Var(t) for t in outs]), eqn.source))
    both = zip(results, eqn.outputs)
    return [w.make(Cast("f16"), y) if is_half(out.type) else y for y, out in both]


def has_graph(value: Any) -> bool:
    return isinstance(value, Graph) or any([isinstance(part, Graph) for part in value])


def is_half(type: Type) -> bool:
    return type.dtype == HALF


def raised(w: Any, x: Atom) -> Atom:
    """`x`, in float32 if it is of halves."""
    if not is_half(x.type):
        return x
    if isinstance(x, Literal):
        return Literal(float(x.array), SINGLE)
    return w.make(Cast("f32"), x)
