"""rewrite: a walk over a Graph in which a rule replaces equations, as the compiler's passes do."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.infer import infer
from lucid.ir.primitive import Primitive


class Rewriter:
    """The Graph being written: `make` adds an equation, `producer` finds that of a Var."""

    def __init__(self) -> None:
        self.equations: list[Equation] = []
        self.producers: dict[Var, Equation] = {}
        self.source: Any = None

    def make(self, op: Primitive, *inputs: Atom) -> Var:
        """The result of a new equation with one output."""
        result = infer(op, tuple([x.type for x in inputs]))
        assert not isinstance(result, tuple)
        out = Var(result)
        self.add(Equation(op, inputs, (out,), self.source))
        return out

    def add(self, eqn: Equation) -> None:
        self.equations.append(eqn)
        for var in eqn.outputs:
            self.producers[var] = eqn

    def producer(self, x: Atom) -> Equation | None:
        """The equation that computes `x`, None for inputs and literals."""
        return self.producers.get(x) if isinstance(x, Var) else None


Rule = Callable[[Rewriter, Equation], Atom | None]


def rewrite(graph: Graph, rule: Rule) -> Graph:
    """The Graph with the result of `rule(rewriter, equation)` for that of each equation.

    Where the rule gives None the equation stays.
    """
    writer = Rewriter()
    known: dict[Var, Atom] = {}
    for eqn in graph.equations:
        inputs = tuple([known.get(x, x) if x.__class__ is Var else x for x in eqn.inputs])
        writer.source = eqn.source
        current = Equation(eqn.op, inputs, eqn.outputs, eqn.source)
        found = rule(writer, current)
        if found is None:
            writer.add(current)
        else:
            assert found.type == eqn.outputs[0].type, (
                f"{eqn.op!r}: {eqn.outputs[0].type} became {found.type}"
            )
            known[eqn.outputs[0]] = found
    outputs = tuple([known.get(x, x) if x.__class__ is Var else x for x in graph.outputs])
    return remove_dead(Graph(graph.name, graph.inputs, tuple(writer.equations), outputs))


def opened(graph: Graph) -> Graph:
    """The Graph with the equations inside of its regions in their places."""

    def open_region(writer: Rewriter, eqn: Equation) -> Atom | None:
        if not eqn.op.is_region:
            return None
        inner = eqn.op.graph  # type: ignore[attr-defined]
        known: dict[Any, Atom] = dict(zip(inner.inputs, eqn.inputs))
        for op, inputs, outputs, _ in inner.equations:
            operands = tuple([x if x.__class__ is Literal else known[x] for x in inputs])
            results = tuple([Var(y.type) for y in outputs])
            known.update(zip(outputs, results))
            writer.add(Equation(op, operands, results, writer.source))
        return known[inner.outputs[0]]

    return rewrite(graph, open_region) if any(e.op.is_region for e in graph.equations) else graph


def remove_dead(graph: Graph) -> Graph:
    """The Graph without equations that no output needs."""
    wanted = {x for x in graph.outputs if not isinstance(x, Literal)}
    kept = []
    for eqn in reversed(graph.equations):
        if any([var in wanted for var in eqn.outputs]):
            eqn = trimmed(eqn, wanted)
            kept.append(eqn)
            wanted.update(x for x in eqn.inputs if not isinstance(x, Literal))
    return Graph(graph.name, graph.inputs, tuple(reversed(kept)), graph.outputs)


def trimmed(eqn: Equation, wanted: Collection[Any]) -> Equation:
    """The equation without outputs that are not wanted, where its operation can leave them out."""
    if type(eqn.op).trimmed is Primitive.trimmed:
        return eqn
    found = eqn.op.trimmed(len(eqn.inputs), [var in wanted for var in eqn.outputs])
    if found is None:
        return eqn
    op, operands, outputs = found
    inputs = tuple([eqn.inputs[i] for i in operands])
    return Equation(op, inputs, tuple([eqn.outputs[i] for i in outputs]), eqn.source)


def with_graphs(op: Primitive, change: Callable[[Graph], Graph]) -> Primitive:
    """The operation with every Graph among its parameters changed, itself where it has none.

    It is a new instance even where an equal one is known, which may differ in source lines.
    """
    found = False

    def changed(value: Any) -> Any:
        nonlocal found
        if isinstance(value, Graph):
            found = True
            return change(value)
        return tuple([changed(v) for v in value]) if isinstance(value, tuple) else value

    if op.once:
        return op
    values = [changed(value) for value in op.params().values()]
    return type.__call__(type(op), *values) if found else op
