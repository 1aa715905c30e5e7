"""The laws that every primitive obeys, as functions of a Case.

A Case becomes the Graph of one equation. Transforms are applied to that Graph, and the results are
run with NumPy: nothing here knows what an operation computes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from lucid.errors import LucidError
from lucid.ir import Equation, Graph, Literal, Program, Type, Var, parse, verify
from lucid.ir.types import is_differentiable, type_of
from lucid.transforms.derivative import Derivative
from lucid.transforms.jvp import jvp
from lucid.transforms.vjp import vjp
from lucid.transforms.vmap import batch_graph
from tests.cases.case import Case

RTOL = {"float64": 1e-10, "float32": 1e-5, "float16": 2e-2}
EXAMPLES = 5  # under vmap: a number that no case has as a size
EDGES = (0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan)
Arrays = Sequence[np.ndarray]


# The Graph of a case, and how Graphs are run


def graph_of(case: Case, arrays: Arrays) -> Graph:
    """The one equation `op arrays`."""
    return equation_graph(case, [Var(type_of(x), f"a{i}") for i, x in enumerate(arrays)])


def equation_graph(case: Case, atoms: Sequence[Any]) -> Graph:
    result = case.op.infer(*[x.type for x in atoms])
    outputs = tuple(Var(t) for t in (result if isinstance(result, tuple) else (result,)))
    inputs = tuple(x for x in atoms if isinstance(x, Var))
    return Graph(case.op.name, inputs, (Equation(case.op, tuple(atoms), outputs),), outputs)


def run(graph: Graph, arrays: Arrays) -> list[np.ndarray]:
    outputs = Program(graph)(list(arrays))
    assert tuple(map(type_of, outputs)) == graph.out_types, f"{graph}\ngave other types"
    return outputs


def differentiable(atoms: Sequence[Any]) -> list[Any]:
    return [x for x in atoms if is_differentiable(x.type.dtype)]


def joined(graph: Graph, derivative: Derivative) -> tuple[Graph, list[Var]]:
    """One Graph from inputs and seeds (and constants) to derivatives, and the Vars that are new."""
    n = len(derivative.residuals)
    inner = derivative.graph
    stands_for: dict[Any, Any] = dict(zip(inner.inputs[:n], derivative.residuals, strict=True))
    new = list(inner.inputs[n:])

    def rename(atoms: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(stands_for.get(x, x) for x in atoms)

    equations = [Equation(e.op, rename(e.inputs), e.outputs) for e in inner.equations]
    whole = Graph(
        f"{graph.name}_derivative",
        (*graph.inputs, *new),
        (*graph.equations, *equations),
        rename(inner.outputs),
    )
    return verify(whole), new


def derive(derivative: Derivative, graph: Graph, arrays: Arrays, seeds: Arrays) -> list[Any]:
    """The derivatives for these inputs and seeds (one for each there could be), None where zero."""
    every = tuple(graph.vars())
    env = dict(zip(every, run(Graph(graph.name, graph.inputs, graph.equations, every), arrays)))
    residuals = [env[var] for var in derivative.residuals]
    chosen = [seeds[i] for i in derivative.seeds]
    return derivative.with_zeros(
        run(derivative.graph, [*residuals, *chosen, *derivative.constants])
    )


def random_like(types: Sequence[Type], seed: int = 7) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    out = []
    for t in types:
        values = rng.uniform(-1, 1, t.shape)
        if t.dtype.kind == "c":
            values = values + 1j * rng.uniform(-1, 1, t.shape)
        out.append(np.asarray(values).astype(t.dtype))
    return out


def zeros_for_none(values: Sequence[Any], types: Sequence[Type]) -> list[np.ndarray]:
    return [
        np.zeros(t.shape, t.dtype) if v is None else v for v, t in zip(values, types, strict=True)
    ]


# How close is equal


def precision(types: Sequence[Type]) -> str:
    """The coarsest floating dtype among these."""
    widths = [
        t.dtype.itemsize // (2 if t.dtype.kind == "c" else 1) for t in types if t.dtype.kind in "fc"
    ]
    return f"float{8 * min(widths, default=8)}"


def assert_close(actual: Any, expected: Any, rtol: float, what: str) -> None:
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, (
        f"{what}: shape {actual.shape}, expected {expected.shape}"
    )
    if actual.dtype.kind in "fc" or expected.dtype.kind in "fc":
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol, err_msg=what)
    else:
        np.testing.assert_array_equal(actual, expected, err_msg=what)


def as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


# The laws


def value_is_expected(case: Case, dtype: str) -> None:
    """eval gives what NumPy, SciPy or the formula gives."""
    arrays = case.arrays(dtype)
    actual, expected = as_tuple(case.op.eval(*arrays)), as_tuple(case.expected(*arrays))
    assert len(actual) == len(expected)
    rtol = case.rtol.get(dtype, RTOL[dtype])
    for i, (a, e) in enumerate(zip(actual, expected)):
        assert_close(a, e, rtol, f"output {i} of {case} in {dtype}")


def infer_is_eval(case: Case, dtype: str) -> None:
    """eval returns exactly the dtypes and shapes that infer promises."""
    arrays = case.arrays(dtype)
    promised = as_tuple(case.op.infer(*[type_of(x) for x in arrays]))
    given = tuple(type_of(np.asarray(y)) for y in as_tuple(case.op.eval(*arrays)))
    assert given == promised


EXTREMES = (np.inf, -np.inf, np.nan, 0.0, -0.0, 1e308, -1e308, 1e-310, 3.0, -1.0)


def extremes_are_values(case: Case) -> None:
    """inf, nan and overflow are values like others: eval gives them or refuses, and never warns."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        xs = []
        for x in case.arrays("float64"):
            drawn = rng.choice(EXTREMES, x.shape)
            if x.dtype.kind == "c":
                drawn = drawn.astype(x.dtype)
                drawn.imag = rng.choice(EXTREMES, x.shape)
            xs.append(np.asarray(drawn.astype(x.dtype)) if x.dtype.kind in "fc" else x)
        with contextlib.suppress(LucidError):
            case.op.eval(*xs)


def strided(x: np.ndarray) -> np.ndarray:
    bigger = np.zeros([2 * n + 1 for n in x.shape], x.dtype)
    part = bigger[(..., *[slice(1, 2 * n + 1, 2) for n in x.shape])]
    part[...] = x
    return part


def backwards(x: np.ndarray) -> np.ndarray:
    reverse = (..., *[slice(None, None, -1) for _ in x.shape])
    return x[reverse].copy()[reverse]


def fortran_order(x: np.ndarray) -> np.ndarray:
    return x.copy("F")


def layout_is_irrelevant(case: Case) -> None:
    """The strides of the operands do not matter, and eval leaves its operands as they were."""
    arrays = case.arrays("float64")
    expected = run(graph_of(case, arrays), arrays)
    for layout in (strided, backwards, fortran_order):
        moved = [layout(x) for x in arrays]
        for x in moved:
            x.flags.writeable = False
        for y, e in zip(as_tuple(case.op.eval(*moved)), expected, strict=True):
            assert np.asarray(y).dtype == e.dtype
            assert_close(y, e, 1e-12, f"{case} on operands that are {layout.__name__}")
        for x, before in zip(moved, arrays):
            np.testing.assert_array_equal(x, before)


def directional_difference(
    f: Callable[[Arrays], Arrays], xs: Arrays, ts: Arrays, h: float
) -> list[Any]:
    """The derivative of f at xs in the direction ts, by central differences of order four."""

    def at(step: float) -> Arrays:
        return f(
            [
                x + np.asarray(step * t, x.dtype) if x.dtype.kind in "fc" else x
                for x, t in zip(xs, ts)
            ]
        )

    rows = zip(at(-2 * h), at(-h), at(h), at(2 * h))
    with np.errstate(all="ignore"):
        return [(m2 - p2 + 8.0 * (p1 - m1)) / (12 * h) for m2, m1, p1, p2 in rows]


STEP = {"float64": (1e-4, 1e-7), "float32": (3e-2, 2e-3), "float16": (0.25, 5e-2)}


def directions(case: Case, types: Sequence[Type]) -> Iterator[list[Any]]:
    """Tangents to try: of every operand alone (None for the others), of all together."""
    tangents = [t if is_differentiable(t.dtype) else None for t in types]
    movable = [i for i, t in enumerate(tangents) if t is not None]
    subsets = [[i] for i in movable] + ([movable] if len(movable) > 1 else [])
    for subset in subsets:
        values = random_like([types[i] for i in subset])
        parts = [values]
        if any(v.dtype.kind == "c" for v in values):
            parts = [
                [v.real.astype(v.dtype) for v in values],
                [(v - v.real).astype(v.dtype) for v in values],
            ]
        for part in parts:
            row: list[Any] = [None] * len(types)
            for i, v in zip(subset, part):
                row[i] = case.args[i].direction(v)
            yield row


def check_jvp(
    graph: Graph, arrays: Arrays, tangents: Sequence[Any], tolerance: float = 1.0
) -> None:
    """The jvp transform of a Graph agrees with finite differences in one direction."""
    seeded = [t is not None for t in tangents]
    derivative = jvp(graph, graph.inputs, seeded)
    verify(derivative.graph)
    full = zeros_for_none(tangents, graph.in_types)
    actual = zeros_for_none(derive(derivative, graph, arrays, full), graph.out_types)
    h, rtol = STEP[precision([*graph.in_types, *graph.out_types])]
    expected = directional_difference(lambda xs: run(graph, xs), arrays, full, h)
    for y, a, e in zip(graph.outputs, actual, expected):
        if is_differentiable(y.type.dtype):
            assert_close(a, e, rtol * tolerance, f"jvp of {graph.name}, tangents given: {seeded}")


def jvp_is_finite_difference(case: Case) -> None:
    arrays = case.arrays("float64")
    graph = graph_of(case, arrays)
    for tangents in directions(case, graph.in_types):
        check_jvp(graph, arrays, tangents)


def inner(us: Sequence[Any], vs: Sequence[Any]) -> float:
    """The real inner product: Re(conj(u) v), summed."""
    return float(sum(np.vdot(u, v).real for u, v in zip(us, vs, strict=True)))


def dot_product_law(case: Case) -> None:
    """<u, Jv> = <Jᵀu, v>, for cotangents of all outputs and of each alone."""
    arrays = case.arrays("float64")
    graph = graph_of(case, arrays)
    tangents = random_like(graph.in_types, 1)
    forward = jvp(graph, graph.inputs)
    pushed = zeros_for_none(derive(forward, graph, arrays, tangents), graph.out_types)
    movable = [i for i, t in enumerate(graph.out_types) if is_differentiable(t.dtype)]
    subsets = [movable] + ([[i] for i in movable] if len(movable) > 1 else [])
    for subset in subsets:
        seeded = [i in subset for i in range(len(graph.outputs))]
        cotangents = [
            u if there else np.zeros_like(u)
            for u, there in zip(random_like(graph.out_types, 2), seeded)
        ]
        backward = vjp(graph, graph.inputs, seeded)
        verify(backward.graph)
        pulled = zeros_for_none(derive(backward, graph, arrays, cotangents), graph.in_types)
        wrt = [i for i, t in enumerate(graph.in_types) if is_differentiable(t.dtype)]
        left = inner([cotangents[i] for i in subset], [pushed[i] for i in subset])
        right = inner([pulled[i] for i in wrt], [tangents[i] for i in wrt])
        size = 1 + sum(float(np.abs(pushed[i]).sum()) for i in subset)
        rtol = {"float64": 1e-11, "float32": 1e-5, "float16": 1e-2}[
            precision([*graph.in_types, *graph.out_types])
        ]
        assert abs(left - right) <= rtol * size, f"<u, Jv> = {left}, <Jᵀu, v> = {right}"


def derivative_keeps_types(case: Case, dtype: str) -> None:
    """Tangents and cotangents have the types of what they belong to, in this precision too."""
    arrays = case.arrays(dtype)
    graph = graph_of(case, arrays)
    tangents, cotangents = random_like(graph.in_types), random_like(graph.out_types)
    pushed = derive(jvp(graph, graph.inputs), graph, arrays, tangents)
    pulled = derive(vjp(graph, graph.inputs), graph, arrays, cotangents)
    for derivatives, types in ((pushed, graph.out_types), (pulled, graph.in_types)):
        for d, t in zip(derivatives, types, strict=True):
            assert d is None or type_of(d) == t


def saves_covers_the_derivative(case: Case) -> None:
    """The derivative reads only what `saves` names, so eager mode keeps what backward needs."""
    arrays = case.arrays("float64")
    graph = graph_of(case, arrays)
    allowed = {
        *(graph.inputs if "x" in case.op.saves else ()),
        *(graph.outputs if "y" in case.op.saves else ()),
    }
    for transform in (jvp, vjp):
        read = set(transform(graph, graph.inputs).residuals)
        assert read <= allowed, (
            f"{transform.__name__} of {case.op} reads more than saves={case.op.saves!r}"
        )


def subsets_of_operands(case: Case) -> list[tuple[bool, ...]]:
    return [flags for flags in product((True, False), repeat=len(case.args)) if any(flags)]


def vmap_is_loop(case: Case, n: int = EXAMPLES) -> None:
    """vmap gives the stack of what a loop over examples gives, whichever operands are batched."""
    examples = [case.arrays("float64", seed=k) for k in range(n)]
    shared = examples[0]
    graph = graph_of(case, shared)
    for batched in subsets_of_operands(case):
        rows = [[e[i] if b else shared[i] for i, b in enumerate(batched)] for e in examples]
        inputs = [np.stack(column) if b else column[0] for column, b in zip(zip(*rows), batched)]
        expected = [run(graph, row) for row in rows]
        mapped = verify(batch_graph(graph, n, batched))
        for i, y in enumerate(run(mapped, inputs)):
            stacked = np.stack([row[i] for row in expected])
            assert y.dtype == stacked.dtype
            assert_close(y, stacked, 1e-11, f"vmap of {case}, batched: {batched}")


def nested_vmap_is_loop(case: Case) -> None:
    """vmap inside vmap: over all operands, and over the first outside and the last inside."""
    n, m, last = 3, 2, len(case.args) - 1
    examples = [[case.arrays("float64", seed=m * k + j) for j in range(m)] for k in range(n)]
    graph = graph_of(case, examples[0][0])
    every = [True] * (last + 1)
    first_only, last_only = [i == 0 for i in range(last + 1)], [i == last for i in range(last + 1)]
    for outer, within in [(every, every), (first_only, last_only)]:

        def row(k: int, j: int, outer: Any = outer, within: Any = within) -> list[np.ndarray]:
            rows = zip(outer, within)
            return [examples[k * o][j * w][i] for i, (o, w) in enumerate(rows)]

        inputs = []
        for i, (o, w) in enumerate(zip(outer, within)):
            table = np.stack([np.stack([row(k, j)[i] for j in range(m)]) for k in range(n)])
            table = table if w else table[:, 0]
            inputs.append(table if o else table[0])
        twice = verify(batch_graph(batch_graph(graph, m, within), n, outer))
        loops = [[run(graph, row(k, j)) for j in range(m)] for k in range(n)]
        for i, y in enumerate(run(twice, inputs)):
            expected = np.stack([np.stack([results[i] for results in line]) for line in loops])
            assert_close(y, expected, 1e-11, f"vmap of vmap of {case}: {outer}, {within}")


def order_two_is_finite_difference(case: Case) -> None:
    """The jvp of the vjp's Graph agrees with finite differences of that Graph."""
    arrays = case.arrays("float64")
    graph = graph_of(case, arrays)
    backward = vjp(graph, graph.inputs)
    whole, new = joined(graph, backward)
    if not whole.outputs:
        return
    seeds = random_like([var.type for var in new[: len(backward.seeds)]], 3)
    points = [*arrays, *seeds, *backward.constants]
    tangents = [
        t if is_differentiable(t.dtype) and i < len(arrays) + len(seeds) else None
        for i, t in enumerate(random_like(whole.in_types, 4))
    ]
    for i, arg in enumerate(case.args):
        if tangents[i] is not None:
            tangents[i] = arg.direction(tangents[i])
    check_jvp(whole, points, tangents, tolerance=10.0)


def text_round_trips(case: Case) -> None:
    """The Graph, its derivatives and its batched form verify, and their text parses back."""
    arrays = case.arrays("float64")
    graph = graph_of(case, arrays)
    graphs = [graph]
    if case.op.differentiable:
        graphs += [transform(graph, graph.inputs).graph for transform in (jvp, vjp)]
    if case.args:
        graphs.append(batch_graph(graph, 2, [True] * len(case.args)))
    for g in graphs:
        verify(g)
        back = parse(str(g))
        assert back.key == g.key, str(g)
        assert str(back) == str(g)


def literal_is_tensor(case: Case) -> None:
    """A Python scalar as an operand acts as a 0-d tensor of that value, in derivatives too."""
    arrays = case.arrays("float64")
    for i, x in enumerate(arrays):
        if x.size == 0:
            continue
        scalar = x.reshape(-1)[0]
        as_var = [Var(type_of(a)) for a in arrays]
        as_var[i] = Var(Type(x.dtype, ()))
        atoms: list[Any] = list(as_var)
        atoms[i] = Literal(scalar.item(), x.dtype)
        plain, written = equation_graph(case, as_var), equation_graph(case, atoms)
        others = [a for j, a in enumerate(arrays) if j != i]
        given = [*arrays[:i], np.asarray(scalar), *arrays[i + 1 :]]
        for y, e in zip(run(written, others), run(plain, given), strict=True):
            assert_close(y, e, 1e-12, f"{case} with a literal as operand {i}")
        assert parse(str(verify(written))).key == written.key
        verify(batch_graph(written, 2, [True] * len(others)))
        if case.op.differentiable:
            tangents = random_like(plain.in_types, 5)
            fewer = [t for j, t in enumerate(tangents) if j != i]
            seeded = [j != i for j in range(len(arrays))]
            one = derive(jvp(written, written.inputs), written, others, fewer)
            two = derive(jvp(plain, plain.inputs, seeded), plain, given, tangents)
            cotangents = random_like(plain.out_types, 6)
            one += derive(vjp(written, written.inputs), written, others, cotangents)
            pulled = derive(vjp(plain, plain.inputs), plain, given, cotangents)
            two += [p for j, p in enumerate(pulled) if j != i]
            for a, b in zip(one, two, strict=True):
                assert (a is None) == (b is None)
                if a is not None:
                    assert_close(a, b, 1e-12, f"derivative of {case} with a literal as operand {i}")


def half_precision_runs(case: Case) -> None:
    """float16 operands give a float16 result near that in float64 of the same numbers."""
    arrays = case.arrays("float16")
    wide = [x.astype("float64") if x.dtype == np.float16 else x for x in arrays]
    actual, expected = as_tuple(case.op.eval(*arrays)), as_tuple(case.expected(*wide))
    promised = as_tuple(case.op.infer(*[type_of(x) for x in arrays]))
    rtol = case.rtol.get("float16", RTOL["float16"])
    for y, t, e in zip(actual, promised, expected, strict=True):
        assert type_of(np.asarray(y)) == t
        assert_close(y, e, rtol, f"{case} in float16")


def zero_stays_zero(case: Case) -> None:
    """A zero tangent or cotangent gives zero even where the partial derivative is inf or nan."""
    arrays = case.arrays("float64")
    graph = graph_of(case, [np.zeros((), x.dtype) for x in arrays])
    forward, backward = jvp(graph, graph.inputs), vjp(graph, graph.inputs)
    tangents = [np.zeros((), t.dtype) for t in graph.in_types]
    cotangents = [np.zeros((), t.dtype) for t in graph.out_types]
    choices = [EDGES if x.dtype.kind in "fc" else (0, 1) for x in arrays]
    for values in product(*choices):
        point = [np.asarray(v).astype(x.dtype) for v, x in zip(values, arrays)]
        derivatives = derive(forward, graph, point, tangents)
        derivatives += derive(backward, graph, point, cotangents)
        assert all(d is None or d == 0 for d in derivatives), (
            f"{case.op} at {values}: {derivatives}"
        )
