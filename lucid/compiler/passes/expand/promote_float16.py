"""promote_float16: operations on float16 are computed in float32 and rounded once, at the end.

    exp x = cast[f16] (exp (cast[f32] x))

So kernels need no float16 arithmetic: they load, store and convert it. NumPy computes sums,
products and functions of float16 in float32 as well; + - * / give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.compiler.passes.subgraph_passes import subgraphs
from lucid.ir.graph import Atom, Equation, Literal, Var
from lucid.ir.infer import infer
from lucid.ir.types import Type
from lucid.ops.elementwise.arithmetic import Cast
from lucid.ops.shape.full_and_iota import Iota

FLOAT16, FLOAT32 = np.dtype("float16"), np.dtype("float32")


def promote_float16(w: Any, eqn: Equation) -> Sequence[Atom] | None:
    """The results computed in float32; None if the equation has no float16 or only moves it."""
    types = [x.type for x in (*eqn.inputs, *eqn.outputs)]
    if not any([is_float16(t) for t in types]) or eqn.op.moves or eqn.op.keeps_float16:
        return None
    if not any([is_float16(x.type) for x in eqn.inputs]):
        return None
    if subgraphs(eqn):
        return None
    given = tuple([to_float32(w, x) for x in eqn.inputs])
    found = infer(eqn.op, tuple([x.type for x in given]))
    outs = found if isinstance(found, tuple) else (found,)
    if [t.shape for t in outs] != [y.type.shape for y in eqn.outputs]:
        return None
    results = w.emit(Equation(eqn.op, given, tuple([Var(t) for t in outs]), eqn.source))
    both = zip(results, eqn.outputs)
    return [w.make(Cast("f16"), y) if is_float16(out.type) else y for y, out in both]


def float16_indices(w: Any, eqn: Equation) -> Sequence[Atom] | None:
    """iota of float16 is counted in float32."""
    op: Any = eqn.op
    if op.dtype != "f16":
        return None
    return [w.make(Cast("f16"), w.make(Iota(op.shape, op.axis, "f32")))]


def is_float16(type: Type) -> bool:
    return type.dtype == FLOAT16


def to_float32(w: Any, x: Atom) -> Atom:
    """`x`, cast to float32 if it is float16."""
    if not is_float16(x.type):
        return x
    if isinstance(x, Literal):
        return Literal(float(x.array), FLOAT32)
    return w.make(Cast("f32"), x)
