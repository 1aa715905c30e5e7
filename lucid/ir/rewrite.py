"""rewrite: Graph -> Graph by a rule that replaces equations; dead-code elimination, inlining."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.infer import infer
from lucid.ir.primitive import Primitive, graphs_of


class Rewriter:
    """The Graph being written: `make` adds an equation, `producer` finds the one of a Var."""

    def __init__(self) -> None:
        self.equations: list[Equation] = []
        self.producers: dict[Var, Equation] = {}
        self.source: Any = None

    def make(self, op: Primitive, *inputs: Atom) -> Var:
        """Add an equation with one output and return the output."""
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
        """Return the equation that computes `x`, None for inputs and literals."""
        return self.producers.get(x) if isinstance(x, Var) else None


Rule = Callable[[Rewriter, Equation], Atom | None]


def rewrite(graph: Graph, rule: Rule) -> Graph:
    """Replace the result of each equation by `rule(rewriter, equation)`.

    If the rule returns None, the equation stays.
    """
    writer = Rewriter()
    replaced: dict[Var, Atom] = {}
    for eqn in graph.equations:
        inputs = tuple([replaced.get(x, x) if x.__class__ is Var else x for x in eqn.inputs])
        writer.source = eqn.source
        current = Equation(eqn.op, inputs, eqn.outputs, eqn.source)
        found = rule(writer, current)
        if found is None:
            writer.add(current)
        else:
            assert found.type == eqn.outputs[0].type, (
                f"{eqn.op!r}: {eqn.outputs[0].type} became {found.type}"
            )
            replaced[eqn.outputs[0]] = found
    outputs = tuple([replaced.get(x, x) if x.__class__ is Var else x for x in graph.outputs])
    return dce(Graph(graph.name, graph.inputs, tuple(writer.equations), outputs))


def inline_regions(graph: Graph) -> Graph:
    """Return the Graph with each region replaced by its equations."""

    def inline_region(writer: Rewriter, eqn: Equation) -> Atom | None:
        if not eqn.op.is_region:
            return None
        inner = eqn.op.graph  # type: ignore[attr-defined]
        env: dict[Any, Atom] = dict(zip(inner.inputs, eqn.inputs))
        for op, inputs, outputs, _ in inner.equations:
            operands = tuple([x if x.__class__ is Literal else env[x] for x in inputs])
            results = tuple([Var(y.type) for y in outputs])
            env.update(zip(outputs, results))
            writer.add(Equation(op, operands, results, writer.source))
        return env[inner.outputs[0]]

    return rewrite(graph, inline_region) if any(e.op.is_region for e in graph.equations) else graph


def dce(graph: Graph) -> Graph:
    """Remove dead code: equations that no output needs and that are not ordered."""
    wanted = {x for x in graph.outputs if not isinstance(x, Literal)}
    kept = []
    for eqn in reversed(graph.equations):
        if eqn.op.ordered or any([var in wanted for var in eqn.outputs]):
            eqn = prune_outputs(eqn, wanted)
            kept.append(eqn)
            wanted.update(x for x in eqn.inputs if not isinstance(x, Literal))
    return Graph(graph.name, graph.inputs, tuple(reversed(kept)), graph.outputs)


def prune_outputs(eqn: Equation, wanted: Collection[Any]) -> Equation:
    """Return the equation without unwanted outputs, if its operation can drop them."""
    if type(eqn.op).prune_outputs is Primitive.prune_outputs:
        return eqn
    found = eqn.op.prune_outputs(len(eqn.inputs), [var in wanted for var in eqn.outputs])
    if found is None:
        return eqn
    op, operands, outputs = found
    inputs = tuple([eqn.inputs[i] for i in operands])
    return Equation(op, inputs, tuple([eqn.outputs[i] for i in outputs]), eqn.source)


def with_graphs(op: Primitive, change: Callable[[Graph], Graph]) -> Primitive:
    """Apply `change` to every Graph among the parameters of `op`; return `op` if there is none.

    The result is not interned: an equal instance may differ in source lines.
    """

    def changed(value: Any) -> Any:
        if isinstance(value, Graph):
            return change(value)
        return tuple([changed(v) for v in value]) if isinstance(value, tuple) else value

    if op.single_use or not graphs_of(op):
        return op
    return type.__call__(type(op), *map(changed, op.params().values()))
