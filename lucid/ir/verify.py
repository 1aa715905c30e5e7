"""verify: a Graph, checked. Every Var is defined once and before its use, and every type is what `infer` gives."""

from __future__ import annotations

from lucid.errors import LucidError, VerifyError
from lucid.ir.graph import Graph, Literal, Var


def verify(graph: Graph) -> Graph:
    """The same Graph, or a VerifyError that names the equation."""
    defined: set[Var] = set()

    def define(var: Var, where: str) -> None:
        if var in defined:
            raise VerifyError(f"{graph.name}: {where} defines {var!r} a second time")
        defined.add(var)

    for var in graph.inputs:
        define(var, "an input")
    for number, eqn in enumerate(graph.equations):
        where = f"equation {number}, {eqn.op!r}"
        for x in eqn.inputs:
            if not isinstance(x, Literal) and x not in defined:
                raise VerifyError(f"{graph.name}: {where} reads {x!r} before it is defined")
        try:
            result = eqn.op.infer(*[x.type for x in eqn.inputs])
        except LucidError as error:
            raise VerifyError(f"{graph.name}: {where}: {error}") from None
        types = result if isinstance(result, tuple) else (result,)
        written = tuple(var.type for var in eqn.outputs)
        if types != written:
            raise VerifyError(f"{graph.name}: {where} is of type {types}, written {written}")
        for var in eqn.outputs:
            define(var, where)
    for x in graph.outputs:
        if isinstance(x, Var) and x not in defined:
            raise VerifyError(f"{graph.name}: the output {x!r} is not defined")
    return graph
