"""verify: check that Vars are defined once and before use, and that types match `infer`."""

from __future__ import annotations

from lucid.errors import LucidError, VerifyError
from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.infer import infer
from lucid.public.declare import public


@public("ir")
def verify(graph: Graph) -> Graph:
    """Return the Graph, or raise a VerifyError that names the equation."""
    defined: set[Var] = set()
    for var in graph.inputs:
        if var in defined:
            raise VerifyError(f"{graph.name}: input {var!r} is defined twice")
        defined.add(var)
    for number, eqn in enumerate(graph.equations):
        op, inputs, outputs, _ = eqn
        for x in inputs:
            if x not in defined and x.__class__ is Var:
                raise verify_error(graph, number, eqn, f" reads {x!r} before it is defined")
        try:
            result = infer(op, tuple([x.type for x in inputs]))
        except LucidError as error:
            raise verify_error(graph, number, eqn, f": {error}") from None
        except (TypeError, ValueError, LookupError, AttributeError) as error:  # parsed from text
            raise verify_error(graph, number, eqn, f": {error}") from error
        types = result if result.__class__ is tuple else (result,)
        declared = tuple([var.type for var in outputs])
        if types != declared:
            raise verify_error(graph, number, eqn, f" has type {types}, declared {declared}")
        for var in outputs:
            if var in defined:
                raise verify_error(graph, number, eqn, f" defines {var!r} twice")
            defined.add(var)
    for x in graph.outputs:
        if x.__class__ is Var and x not in defined:
            raise VerifyError(f"{graph.name}: the output {x!r} is not defined")
    return graph


def verify_error(graph: Graph, number: int, eqn: Equation, what: str) -> VerifyError:
    return VerifyError(f"{graph.name}: equation {number}, {eqn.op!r}{what}")
