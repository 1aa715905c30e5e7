"""merge: Graph -> Graph in which loops over the same steps that do not wait for each other are one.

So are choices by the same number, and a While and the one that reverse mode makes of it.

Reverse mode leaves two loops where one would do: the one that the program asked for, and the same
once more that also stacks what its derivative reads. Two loops become one by putting their bodies
side by side. Carries that begin with the same value and, if they are equal before a step, are equal
after it, are one carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lucid.compiler.passes.cse import share
from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.rewrite import remove_dead
from lucid.ops.higher_order.control.scan import Scan
from lucid.ops.higher_order.control.switch import Switch
from lucid.ops.higher_order.control.while_loop import While

MOST_LOOPS = 64  # every two of them are compared


def merge(graph: Graph) -> Graph:
    """The Graph with as few loops as its dependences allow."""
    for kind, alike, join in KINDS:
        while True:
            found = [eqn for eqn in graph.equations if isinstance(eqn.op, kind)][:MOST_LOOPS]
            pair = next(mergeable(graph, found, alike), None)
            if pair is None:
                break
            graph = replaced(graph, pair, join(*pair))
    for number in range(sum(isinstance(eqn.op, Scan) for eqn in graph.equations)):
        eqn = [eqn for eqn in graph.equations if isinstance(eqn.op, Scan)][number]
        graph = replaced(graph, (eqn,), one_of_equals(eqn))
    return graph


class Joined(NamedTuple):
    """An equation that stands for others, and which of its results are theirs."""

    equation: Equation
    renamed: dict[Var, Var]


def mergeable(graph: Graph, some: Sequence[Equation], alike: Any) -> Any:
    """Pairs of equations that are `alike`, of which neither needs a result of the other."""
    for i, first in enumerate(some):
        after: set[Any] | None = None
        for second in some[i + 1 :]:
            if not alike(first, second):
                continue
            if after is None:
                after = depending(graph, first)
            if after.isdisjoint(second.inputs):
                yield first, second


def depending(graph: Graph, first: Equation) -> set[Any]:
    """The Vars that are computed from the results of an equation."""
    found: set[Any] = set(first.outputs)
    for eqn in graph.equations:
        if not found.isdisjoint(eqn.inputs):
            found.update(eqn.outputs)
    return found


def same_steps(first: Equation, second: Equation) -> bool:
    a, b = first.op, second.op
    return (a.length, a.reverse) == (b.length, b.reverse)  # type: ignore[attr-defined]


def joined(first: Equation, second: Equation) -> Joined:
    """One loop that does what two do."""
    parts = [side(first), side(second)]
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
    again = one_of_equals(eqn)
    return Joined(again.equation, {old: again.renamed[v] for old, v in zip(results, outs)})


def same_choice(first: Equation, second: Equation) -> bool:
    a, b = first.op, second.op
    same = key_of(first.inputs[0]) == key_of(second.inputs[0])
    return same and len(a.branches) == len(b.branches)  # type: ignore[attr-defined]


def joined_switch(first: Equation, second: Equation) -> Joined:
    """One choice between branches that do what those of two do."""
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
            equations += [with_names(e, names) for e in graph.equations]
            outputs += [names.get(y, y) for y in graph.outputs]
        body = Graph(pair[1].name, tuple(inside.values()), tuple(equations), tuple(outputs))
        branches.append(share(body))
    outs = tuple([Var(v.type) for v in (*first.outputs, *second.outputs)])
    eqn = Equation(Switch(tuple(branches)), (first.inputs[0], *given.values()), outs, first.source)
    return Joined(eqn, dict(zip((*first.outputs, *second.outputs), outs)))


def with_names(eqn: Equation, names: dict[Any, Any]) -> Equation:
    inputs = tuple([names.get(x, x) for x in eqn.inputs])
    return Equation(eqn.op, inputs, tuple([names[v] for v in eqn.outputs]), eqn.source)


def begins_alike(first: Equation, second: Equation) -> bool:
    """Is the only loop of one While the first loop of the other?"""
    short, long = by_loops(first, second)
    op: Any = short.op
    of_loop = min(op.results, default=0) >= len(short.inputs)
    return len(op.loops) == 1 and of_loop and first_loop(short) == first_loop(long)


def by_loops(first: Equation, second: Equation) -> tuple[Equation, Equation]:
    pair = sorted((first, second), key=lambda eqn: len(eqn.op.loops))  # type: ignore[attr-defined]
    return pair[0], pair[1]


def first_loop(eqn: Equation) -> Any:
    """What the carries of a While are after its first loop depends on this alone."""
    op: Any = eqn.op
    body, _, consts, inits, _ = op.loops[0]
    carries = Graph("carries", body.inputs, body.equations, body.outputs[: len(inits)])
    values = [key_of(x) for x in eqn.inputs]
    return (
        op.cond,
        [values[v] for v in op.tests],
        remove_dead(carries),
        [values[v] for v in consts],
        [[values[v] for v in init] for init in inits],
    )


def joined_while(first: Equation, second: Equation) -> Joined:
    """The While with more loops, which also gives the results of the other."""
    short, long = by_loops(first, second)
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
    return Joined(eqn, renamed)


class Side(NamedTuple):
    """A loop with Vars of its own: (inside, outside), carries (in, init, out, last)."""

    consts: list[tuple[Var, Atom]]
    carries: list[tuple[Var, Atom, Atom, Var]]
    xs: list[tuple[Var, Atom]]
    equations: list[Equation]
    ys: list[tuple[Atom, Var]]


def side(eqn: Equation) -> Side:
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
    return Side(
        list(zip(ins[0], given[0])),
        list(zip(ins[1], given[1], outs[:n], eqn.outputs[:n])),
        list(zip(ins[2], given[2])),
        equations,
        list(zip(outs[n:], eqn.outputs[n:])),
    )


def key_of(x: Atom) -> Any:
    return x.key if isinstance(x, Literal) else x


def one_of_equals(eqn: Equation) -> Joined:
    """The loop in which equal constants, carries, rows and results are there once."""
    op: Any = eqn.op
    part = side(eqn)
    renamed: dict[Any, Any] = {}
    consts = firsts([(v, key_of(x), x) for v, x in part.consts], renamed)
    xs = firsts([(v, key_of(x), x) for v, x in part.xs], renamed)
    leader = {i: i for i in range(len(part.carries))}
    seen: dict[Any, int] = {}
    for i, (_, init, _, _) in enumerate(part.carries):
        leader[i] = seen.setdefault(key_of(init), i)
    while True:
        names = dict(renamed)
        names.update((part.carries[i][0], part.carries[k][0]) for i, k in leader.items() if i != k)
        body = shared_body(part, names)
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
    graph = remove_dead(Graph(op.body.name, inputs, body.equations, outputs))
    new = Scan(graph, len(consts), len(kept), op.length, op.reverse)
    given = (*[x for _, x in consts], *[part.carries[i][1] for i in kept], *[x for _, x in xs])
    results = [*[part.carries[i][3] for i in kept], *[part.ys[i][1] for i in first_y]]
    place = {i: results[k] for k, i in enumerate(kept)}
    names_out = {part.carries[i][3]: place[leader[i]] for i in leader}
    names_out.update((out, results[len(kept) + k]) for (_, out), k in zip(part.ys, y_of))
    return Joined(Equation(new, given, tuple(results), eqn.source), names_out)


def firsts(items: Sequence[tuple[Var, Any, Atom]], renamed: dict[Any, Any]) -> list[Any]:
    """(inside, outside) of the first of each key; the others are renamed to it."""
    found: dict[Any, Var] = {}
    out = []
    for var, key, x in items:
        if key in found:
            renamed[var] = found[key]
        else:
            found[key] = var
            out.append((var, x))
    return out


def shared_body(part: Side, names: dict[Any, Any]) -> Graph:
    """The body with these Vars renamed and equal equations made one."""
    equations = tuple(
        [e._replace(inputs=tuple([names.get(x, x) for x in e.inputs])) for e in part.equations]
    )
    inputs = (
        *[v for v, _ in part.consts], *[c[0] for c in part.carries], *[v for v, _ in part.xs],
    )  # fmt: skip
    outputs = (*[c[2] for c in part.carries], *[y for y, _ in part.ys])
    outputs = tuple([names.get(y, y) for y in outputs])
    return share(Graph("body", inputs, equations, outputs))


def replaced(graph: Graph, old: Sequence[Equation], new: Joined) -> Graph:
    """The Graph with one equation for several, in an order in which everything is known in time."""
    names: dict[Any, Any] = dict(new.renamed)
    gone = set(old)
    equations = [e for e in graph.equations if e not in gone]
    equations = [e._replace(inputs=tuple([names.get(x, x) for x in e.inputs])) for e in equations]
    outputs = tuple([names.get(x, x) for x in graph.outputs])
    place = graph.equations.index(old[-1]) - len(old) + 1
    ordered = in_order([*equations[:place], new.equation, *equations[place:]])
    return remove_dead(Graph(graph.name, graph.inputs, tuple(ordered), outputs))


def in_order(equations: Sequence[Equation]) -> list[Equation]:
    """Each equation behind those it reads from, and otherwise as they were."""
    producer = {v: e for e in equations for v in e.outputs}
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
            if waiting:
                stack += waiting
            else:
                done.add(eqn)
                out.append(eqn)
                stack.pop()
    return out


KINDS = (
    (Scan, same_steps, joined),
    (Switch, same_choice, joined_switch),
    (While, begins_alike, joined_while),
)
