"""merge_loops: Graph -> Graph in which independent loops over the same steps are merged.

Switches on the same index are merged too, and a While with the While that forward or reverse mode
derives from it.

Reverse mode leaves two loops where one would do: the original loop, and a copy that also stacks the
residuals. Two loops are merged by concatenating their bodies. Carries that have the same initial
value, and are equal after a step if they are equal before it, become one carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lucid.compiler.passes.cse import cse
from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.rewrite import dce
from lucid.ops.higher_order.control.scan import Scan
from lucid.ops.higher_order.control.switch import Switch
from lucid.ops.higher_order.control.while_loop import While

MAX_LOOPS = 64  # compared pairwise


def merge_loops(graph: Graph) -> Graph:
    """Merge loops as far as their dependences allow."""
    graph = merge_pairs(graph, Scan, same_trip_count, merge_scans)
    graph = merge_pairs(graph, Switch, same_switch_index, merge_switches)
    graph = merge_pairs(graph, While, shares_first_loop, merge_whiles)
    for number in range(sum(isinstance(eqn.op, Scan) for eqn in graph.equations)):
        eqn = [eqn for eqn in graph.equations if isinstance(eqn.op, Scan)][number]
        graph = replace_equations(graph, (eqn,), deduplicate_scan(eqn))
    return graph


def merge_pairs(graph: Graph, kind: type, can_merge: Any, merge: Any) -> Graph:
    """Merge pairs of equations of one kind until no pair is left that `can_merge`."""
    while True:
        found = [eqn for eqn in graph.equations if isinstance(eqn.op, kind)][:MAX_LOOPS]
        pair = next(mergeable(graph, found, can_merge), None)
        if pair is None:
            return graph
        graph = replace_equations(graph, pair, merge(*pair))


class Merged(NamedTuple):
    """An equation that replaces others, and the results of theirs that its results replace."""

    equation: Equation
    renamed: dict[Var, Var]


def mergeable(graph: Graph, some: Sequence[Equation], can_merge: Any) -> Any:
    """Pairs of equations that `can_merge`, neither of which depends on the other."""
    for i, first in enumerate(some):
        after: set[Any] | None = None
        for second in some[i + 1 :]:
            if first.op.ordered or second.op.ordered or not can_merge(first, second):
                continue
            if after is None:
                after = dependents(graph, first)
            if after.isdisjoint(second.inputs):
                yield first, second


def dependents(graph: Graph, first: Equation) -> set[Any]:
    """The Vars computed from the results of an equation, and those results.

    After an ordered equation among them every later ordered equation is one.
    """
    found: set[Any] = set(first.outputs)
    orders = False
    for eqn in graph.equations:
        if (orders and eqn.op.ordered) or not found.isdisjoint(eqn.inputs):
            found.update(eqn.outputs)
            orders = orders or eqn.op.ordered
    return found


def same_trip_count(first: Equation, second: Equation) -> bool:
    a, b = first.op, second.op
    return (a.length, a.reverse) == (b.length, b.reverse)  # type: ignore[attr-defined]


def merge_scans(first: Equation, second: Equation) -> Merged:
    """One scan that computes the results of two."""
    parts = [split_scan(first), split_scan(second)]
    consts = [x for part in parts for x in part.consts]
    carries = [x for part in parts for x in part.carries]
    xs = [x for part in parts for x in part.xs]
    equations = [eqn for part in parts for eqn in part.equations]
    inputs = (*[v for v, _ in consts], *[v for v, _, _, _ in carries], *[v for v, _ in xs])
    outputs = (*[c[2] for c in carries], *[y for part in parts for y, _ in part.ys])
    op: Any = first.op
    body = Graph(op.body.name, inputs, tuple(equations), outputs)
    new = Scan(body, len(consts), len(carries), op.length, op.reverse)
    given = (*[x for _, x in consts], *[c[1] for c in carries], *[x for _, x in xs])
    results = [*[c[3] for c in carries], *[out for part in parts for _, out in part.ys]]
    outs = tuple([Var(v.type) for v in results])
    eqn = Equation(new, given, outs, first.source)
    unique = deduplicate_scan(eqn)
    return Merged(unique.equation, {old: unique.renamed[v] for old, v in zip(results, outs)})


def same_switch_index(first: Equation, second: Equation) -> bool:
    a, b = first.op, second.op
    same = key_of(first.inputs[0]) == key_of(second.inputs[0])
    return same and len(a.branches) == len(b.branches)  # type: ignore[attr-defined]


def merge_switches(first: Equation, second: Equation) -> Merged:
    """One switch that computes the results of two."""
    a, b = first.op.branches, second.op.branches  # type: ignore[attr-defined]
    given: dict[Any, Atom] = {key_of(x): x for x in (*first.inputs[1:], *second.inputs[1:])}
    branches = []
    for pair in zip(a, b):
        inside = {key: Var(x.type) for key, x in given.items()}
        equations: list[Equation] = []
        outputs: list[Atom] = []
        for graph, operands in zip(pair, (first.inputs[1:], second.inputs[1:])):
            names: dict[Any, Any] = {v: Var(v.type) for v in graph.vars()}
            names.update(zip(graph.inputs, [inside[key_of(x)] for x in operands]))
            equations += [rename_vars(e, names) for e in graph.equations]
            outputs += [names.get(y, y) for y in graph.outputs]
        body = Graph(pair[1].name, tuple(inside.values()), tuple(equations), tuple(outputs))
        branches.append(cse(body))
    outs = tuple([Var(v.type) for v in (*first.outputs, *second.outputs)])
    eqn = Equation(Switch(tuple(branches)), (first.inputs[0], *given.values()), outs, first.source)
    return Merged(eqn, dict(zip((*first.outputs, *second.outputs), outs)))


def rename_vars(eqn: Equation, names: dict[Any, Any]) -> Equation:
    inputs = tuple([names.get(x, x) for x in eqn.inputs])
    return Equation(eqn.op, inputs, tuple([names[v] for v in eqn.outputs]), eqn.source)


def shares_first_loop(first: Equation, second: Equation) -> bool:
    """True if the only loop of one While is, or is part of, the first loop of the other."""
    short, long = by_size(first, second)
    op: Any = short.op
    of_loop = min(op.results, default=0) >= len(short.inputs)
    if len(op.loops) > 1 or not of_loop:
        return False
    n = first_carries(short)
    return first_loop(short, n) == first_loop(long, n)


def by_size(first: Equation, second: Equation) -> tuple[Equation, Equation]:
    """The While with fewer loops, or as many and fewer carries in the first, and the other."""
    pair = sorted((first, second), key=lambda eqn: (len(eqn.op.loops), first_carries(eqn)))  # type: ignore[attr-defined]
    return pair[0], pair[1]


def first_carries(eqn: Equation) -> int:
    """How many carries the first loop of a While has."""
    return len(eqn.op.loops[0][3])  # type: ignore[attr-defined]


def first_loop(eqn: Equation, n: int) -> Any:
    """A key that determines the first `n` carries of a While after its first loop.

    None if they depend on other carries, which forward mode adds after those of the primal loop.
    """
    op: Any = eqn.op
    body, _, consts, inits, _ = op.loops[0]
    values = [key_of(x) for x in eqn.inputs]
    cond = with_carries(op.cond, [values[v] for v in op.tests], n, op.cond.outputs)
    step = with_carries(body, [values[v] for v in consts], n, body.outputs[:n])
    if cond is None or step is None:
        return None
    return cond, step, [[values[v] for v in init] for init in inits[:n]]


def with_carries(graph: Graph, consts: Sequence[Any], n: int, outputs: Sequence[Atom]) -> Any:
    """A Graph of the first `n` carries and of the constants it reads, and these constants.

    None if it reads another carry. A Graph of a loop takes constants, then carries.
    """
    carries = graph.inputs[len(consts) :]
    needed = dce(Graph("carries", graph.inputs, graph.equations, tuple(outputs)))
    read = {*[x for eqn in needed.equations for x in eqn.inputs], *needed.outputs}
    if not read.isdisjoint(carries[n:]):
        return None
    kept = [(v, x) for v, x in zip(graph.inputs, consts) if v in read]
    inputs = (*[v for v, _ in kept], *carries[:n])
    return Graph("carries", inputs, needed.equations, needed.outputs), [x for _, x in kept]


def merge_whiles(first: Equation, second: Equation) -> Merged:
    """The larger While, extended by the results of the other."""
    short, long = by_size(first, second)
    op: Any = long.op
    n_short, n_long = len(short.inputs), len(long.inputs)
    results, outs, renamed = list(op.results), list(long.outputs), {v: v for v in long.outputs}
    for v, old in zip(short.op.results, short.outputs):  # type: ignore[attr-defined]
        new = Var(old.type)
        renamed[old] = new
        outs.append(new)
        results.append(n_long + v - n_short)
    eqn = Equation(
        While(op.cond, op.tests, op.loops, tuple(results)), long.inputs, tuple(outs), short.source
    )
    return Merged(eqn, renamed)


class ScanParts(NamedTuple):
    """A scan with fresh Vars: pairs (inside, outside), and carries (in, init, out, last)."""

    consts: list[tuple[Var, Atom]]
    carries: list[tuple[Var, Atom, Atom, Var]]
    xs: list[tuple[Var, Atom]]
    equations: list[Equation]
    ys: list[tuple[Atom, Var]]


def split_scan(eqn: Equation) -> ScanParts:
    op: Any = eqn.op
    new: dict[Any, Any] = {v: Var(v.type, v.name) for v in op.body.vars()}
    equations = [
        Equation(
            e.op,
            tuple([new.get(x, x) for x in e.inputs]),
            tuple([new[v] for v in e.outputs]),
            e.source,
        )
        for e in op.body.equations
    ]
    ins = op.parts([new[v] for v in op.body.inputs])
    given = op.parts(eqn.inputs)
    outs = [new.get(y, y) for y in op.body.outputs]
    n = op.n_carry
    return ScanParts(
        list(zip(ins[0], given[0])),
        list(zip(ins[1], given[1], outs[:n], eqn.outputs[:n])),
        list(zip(ins[2], given[2])),
        equations,
        list(zip(outs[n:], eqn.outputs[n:])),
    )


def key_of(x: Atom) -> Any:
    return x.key if isinstance(x, Literal) else x


def deduplicate_scan(eqn: Equation) -> Merged:
    """Remove duplicate constants, carries, scanned inputs and stacked outputs of a scan."""
    op: Any = eqn.op
    part = split_scan(eqn)
    renamed: dict[Any, Any] = {}
    consts = first_of_each([(v, key_of(x), x) for v, x in part.consts], renamed)
    xs = first_of_each([(v, key_of(x), x) for v, x in part.xs], renamed)
    leader = {i: i for i in range(len(part.carries))}
    seen: dict[Any, int] = {}
    for i, (_, init, _, _) in enumerate(part.carries):
        leader[i] = seen.setdefault(key_of(init), i)
    while True:
        names = dict(renamed)
        names.update((part.carries[i][0], part.carries[k][0]) for i, k in leader.items() if i != k)
        body = cse_body(part, names)
        outs = body.outputs[: len(part.carries)]
        groups: dict[Any, int] = {}
        now = {
            i: groups.setdefault((leader[i], key_of(outs[i])), i) for i in range(len(part.carries))
        }
        if now == leader:
            break
        leader = now
    kept = [i for i in leader if leader[i] == i]
    ys: dict[Any, int] = {}
    y_of = [ys.setdefault(key_of(y), len(ys)) for y in body.outputs[len(part.carries) :]]
    first_y = [y_of.index(k) for k in range(len(ys))]
    inputs = (*[v for v, _ in consts], *[part.carries[i][0] for i in kept], *[v for v, _ in xs])
    n = len(part.carries)
    outputs = (*[outs[i] for i in kept], *[body.outputs[n + i] for i in first_y])
    graph = dce(Graph(op.body.name, inputs, body.equations, outputs))
    new = Scan(graph, len(consts), len(kept), op.length, op.reverse)
    given = (*[x for _, x in consts], *[part.carries[i][1] for i in kept], *[x for _, x in xs])
    results = [*[part.carries[i][3] for i in kept], *[part.ys[i][1] for i in first_y]]
    last = {i: results[k] for k, i in enumerate(kept)}
    names_out = {part.carries[i][3]: last[leader[i]] for i in leader}
    names_out.update((out, results[len(kept) + k]) for (_, out), k in zip(part.ys, y_of))
    return Merged(Equation(new, given, tuple(results), eqn.source), names_out)


def first_of_each(items: Sequence[tuple[Var, Any, Atom]], renamed: dict[Any, Any]) -> list[Any]:
    """(inside, outside) of the first item with each key; the others are renamed to it."""
    found: dict[Any, Var] = {}
    out = []
    for var, key, x in items:
        if key in found:
            renamed[var] = found[key]
        else:
            found[key] = var
            out.append((var, x))
    return out


def cse_body(part: ScanParts, names: dict[Any, Any]) -> Graph:
    """The body after renaming Vars and eliminating common subexpressions."""
    equations = tuple(
        [e._replace(inputs=tuple([names.get(x, x) for x in e.inputs])) for e in part.equations]
    )
    inputs = (
        *[v for v, _ in part.consts], *[c[0] for c in part.carries], *[v for v, _ in part.xs],
    )  # fmt: skip
    outputs = (*[c[2] for c in part.carries], *[y for y, _ in part.ys])
    outputs = tuple([names.get(y, y) for y in outputs])
    return cse(Graph("body", inputs, equations, outputs))


def replace_equations(graph: Graph, old: Sequence[Equation], new: Merged) -> Graph:
    """Replace several equations of a Graph by one, and restore topological order."""
    names: dict[Any, Any] = dict(new.renamed)
    gone = set(old)
    equations = [e for e in graph.equations if e not in gone]
    equations = [e._replace(inputs=tuple([names.get(x, x) for x in e.inputs])) for e in equations]
    outputs = tuple([names.get(x, x) for x in graph.outputs])
    index = graph.equations.index(old[-1]) - len(old) + 1
    ordered = topological_order([*equations[:index], new.equation, *equations[index:]])
    return dce(Graph(graph.name, graph.inputs, tuple(ordered), outputs))


def topological_order(equations: Sequence[Equation]) -> list[Equation]:
    """Sort equations so that each follows those it reads from, otherwise keeping their order.

    An ordered equation also follows the ordered equation before it.
    """
    producer = {v: e for e in equations for v in e.outputs}
    ordered = [e for e in equations if e.op.ordered]
    before = dict(zip(ordered[1:], ordered))
    done: set[Equation] = set()
    out: list[Equation] = []
    for root in equations:
        stack = [root]
        while stack:
            eqn = stack[-1]
            if eqn in done:
                stack.pop()
                continue
            waiting = [
                producer[x]
                for x in eqn.inputs
                if x in producer and producer[x] not in done  # type: ignore[index]
            ]
            if eqn in before and before[eqn] not in done:
                waiting.append(before[eqn])
            if waiting:
                stack += waiting
            else:
                done.add(eqn)
                out.append(eqn)
                stack.pop()
    return out
