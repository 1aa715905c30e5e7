"""Branches and loops compiled: one plan with the results of the interpreter, at any length."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import lucid
from lucid import func as F
from lucid.compiler.compile import compile_graph
from lucid.compiler.inspect.stages import planned_text
from lucid.compiler.passes.pipeline import stages
from lucid.compiler.passes.subgraph_passes import subgraphs
from lucid.errors import IndexingError
from lucid.ir import evaluate, parse, trace
from tests.func.test_control import PAIRS, POINTS, double, loss  # noqa: F401

TRANSFORMS = {
    "value": lambda f: f,
    "gradient": F.grad,
    "hessian": F.hessian,
    "second order in reverse": lambda f: F.grad(lambda x: F.grad(f)(x).sum()),
    "gradients of examples": lambda f: lambda x: F.vmap(F.grad(f))(lucid.stack([x, -x, 2 * x])),
}


def same(graph, arrays, rtol=1e-11):
    """Compiled as one plan, the Graph gives what the interpreter gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = compile_graph(graph)
    assert program.plan is not None, planned_text(graph)
    for got, want in zip(program(arrays), evaluate(graph, *arrays), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


def arrays_for(graph, seed=0):
    rng = np.random.default_rng(seed)
    made = []
    for var in graph.inputs:
        values = rng.normal(size=var.type.shape)
        made.append(np.asarray(values).astype(var.type.dtype))
    return made


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("f", [f for f, _ in PAIRS], ids=lambda f: f.__name__)
def test_compiled_is_interpreted_and_one_plan(f, transform, double):  # noqa: F811
    jitted = lucid.jit(TRANSFORMS[transform](loss(f)))
    for x in POINTS:
        first, again = jitted(x), jitted(x)
        np.testing.assert_allclose(again.numpy(), first.numpy(), rtol=1e-9, atol=1e-9)
    assert "numpy" not in str(jitted.graph(POINTS[0], stage="planned"))


@pytest.mark.parametrize("f", [f for f, _ in PAIRS], ids=lambda f: f.__name__)
def test_every_stage_computes_the_same_and_prints_with_its_bodies(f, double):  # noqa: F811
    graph = trace(F.grad(loss(f)))(POINTS[0])
    arrays = arrays_for(graph, 3)
    want = evaluate(graph, *arrays)
    for name, stage in stages(graph).items():
        assert parse(str(stage)).key == stage.key, name
        for got, expected in zip(evaluate(stage, *arrays), want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9, err_msg=name)


KINDS = """
graph f(c: {0}[2,3], xs: {0}[{1},2,3]):
    %0: {0}[2,3], %1: {0}[{1},3] = scan[body=@0, n_consts=0, n_carry=1, length={1}, reverse=False] c xs
    return %0, %1
graph @0(c: {0}[2,3], x: {0}[2,3]):
    %0: {0}[2,3] = {2} c x
    %1: {0}[3]   = slice[starts=(1,0), limits=(2,3), strides=(1,1), drop=(0,)] c
    return %0, %1
"""  # noqa: E501


@pytest.mark.parametrize("length", [0, 1, 2, 5])
@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "i32", "i64", "u8", "c64", "c128", "bool"])
def test_carries_of_every_dtype_and_loops_of_few_steps(dtype, length):
    op = "bitwise_xor" if dtype == "bool" else "add"
    graph = parse(KINDS.format(dtype, length, op))
    program = compile_graph(graph)
    arrays = [(10 * a * a).astype(a.dtype) for a in arrays_for(graph)]
    for got, want in zip(program(arrays), evaluate(graph, *arrays), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_carry_that_stands_still_and_one_that_is_swapped():
    def f(a, b, xs):
        return F.scan(lambda c, x: ((c[1], c[0], c[2]), c[0] + x), (a, b, a), xs)

    graph = trace(f)(lucid.ones(3), lucid.zeros(3), lucid.ones(5, 3))
    same(graph, arrays_for(graph))


def test_operands_that_do_not_lie_in_order_are_copied():
    def f(x, w):
        return F.scan(lambda c, row: (c @ w.T + row, c), x[:, 0], x.T[:, ::-1])

    graph = trace(f)(lucid.ones(3, 3), lucid.ones(3, 3))
    same(graph, arrays_for(graph))


def test_a_long_while_loop_grows_its_stacks(double):  # noqa: F811
    def f(x):
        start = (x, lucid.tensor(0))
        return F.while_loop(lambda c: c[1] < 5000, lambda c: (lucid.sin(c[0]) + x, c[1] + 1), start)

    def total(x):
        return (f(x)[0] ** 2).sum()

    x = lucid.tensor([0.3, 0.7])
    jitted = lucid.jit(F.grad(total))
    jitted(x)
    got = jitted(x).numpy()
    assert "numpy" not in str(jitted.graph(x, stage="planned"))
    y, t = x.numpy(), np.ones(2)
    for _ in range(5000):
        y, t = np.sin(y) + x.numpy(), np.cos(y) * t + 1
    np.testing.assert_allclose(got, 2 * y * t, rtol=1e-9)


def test_a_program_may_run_many_times_and_in_threads(double):  # noqa: F811
    from concurrent.futures import ThreadPoolExecutor

    f = lucid.jit(
        F.grad(lambda x: F.while_loop(lambda c: (c * c).sum() < 1e3, lambda c: c * x + 1, x).sum())
    )
    points = [lucid.tensor([1.1 + 0.01 * i, 1.3]) for i in range(40)]
    want = [f(x).numpy() for x in points]
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda x: f(x).numpy(), points))
    np.testing.assert_array_equal(got, want)


def test_a_large_body_is_split_between_threads_inside_the_loop(threads):
    def f(x):
        return F.scan(lambda c, _: (lucid.sin(c) * 1.5, c.sum()), x, length=4)

    graph = trace(f)(lucid.ones(200_000))
    program = compile_graph(graph)
    arrays = arrays_for(graph)
    results = []
    for n in (1, 2, 4):
        threads(n)
        results.append(program(arrays))
    for other in results[1:]:
        for a, b in zip(results[0], other):
            np.testing.assert_array_equal(a, b)
    for a, b in zip(results[0], evaluate(graph, *arrays)):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_an_index_out_of_range_inside_a_body_is_told():
    table = lucid.tensor([1.0, 2.0, 3.0])

    def f(indices):
        return F.scan(lambda c, i: (c + table[i], None), lucid.tensor(0.0), indices)[0]

    jitted = lucid.jit(f)
    for _ in range(3):
        assert float(jitted(lucid.tensor([0, 2]))) == 4.0
    with pytest.raises(IndexingError):
        jitted(lucid.tensor([0, 3]))


# What the passes make of loops


def recurrent(w, u, xs):
    def step(h, x):
        h = lucid.tanh(x @ w + h @ u)
        return h, h

    _, hs = F.scan(step, lucid.zeros(4, 5), xs)
    return (hs * hs).sum()


def recurrent_graph(length):
    args = lucid.ones(3, 5), lucid.ones(5, 5), lucid.ones(length, 4, 3)
    return trace(F.grad(recurrent, argnums=(0, 1)))(*args)


def test_gradient_has_one_loop_each_way():
    graph = stages(recurrent_graph(7))["copies_inserted"]
    names = [(e.op.name, e.op.reverse) for e in graph.equations if e.op.name == "scan"]
    assert names == [("scan", False), ("scan", True)]


def test_only_products_with_the_carry_stay_in_the_loops():
    final = stages(recurrent_graph(7))["copies_inserted"]
    inside = [
        [e.op.name for e in body.equations].count("matmul")
        for eqn in final.equations
        for body in subgraphs(eqn)
    ]
    assert inside == [1, 1]
    outside = [e for e in final.equations if e.op.name == "matmul"]
    assert len(outside) == 3  # x @ w before the loop, the gradients of w and u after it


def test_what_is_compiled_does_not_depend_on_the_length():
    def text(length):
        plan = planned_text(recurrent_graph(length))
        return re.sub(r"arena \d+ bytes|\d+ times", "", plan)

    assert text(5) == text(500)
    short, long = (
        len(str(stages(recurrent_graph(n))["copies_inserted"]).splitlines()) for n in (5, 500)
    )
    assert short == long


def test_loops_that_need_one_another_are_not_merged():
    def f(x):
        a, _ = F.scan(lambda c, _: (c * 2.0, None), x, length=3)
        b, _ = F.scan(lambda c, _: (c + 1.0, None), a, length=3)
        return b

    graph = trace(f)(lucid.ones(2))
    merged = stages(graph)["loops_merged"]
    assert [e.op.name for e in merged.equations] == ["scan", "scan"]
    same(graph, arrays_for(graph))


def test_carries_that_only_begin_the_same_stay_apart():
    def f(x):
        def step(c, _):
            return (c[0] * 2.0, c[1] * 3.0, c[0] * 2.0), None

        return F.scan(step, (x, x, x), length=3)[0]

    graph = trace(f)(lucid.ones(2))
    (scan,) = [e for e in stages(graph)["loops_merged"].equations if e.op.name == "scan"]
    assert scan.op.n_carry == 2
    same(graph, arrays_for(graph))


def test_a_total_that_is_read_in_the_loop_stays_there():
    def f(x, ys):
        def step(c, y):
            y = y * c[0]
            total = c + y.T @ y
            return total, total.sum()

        return F.scan(step, x, ys)

    graph = trace(f)(lucid.ones(3, 3), lucid.ones(4, 2, 3))
    final = stages(graph)["copies_inserted"]
    assert all(e.op.name != "matmul" for e in final.equations)
    same(graph, arrays_for(graph))


def test_value_and_gradient_of_a_while_loop_share_its_first_loop():
    def f(x):
        return F.while_loop(lambda c: c.sum() < 9, lambda c: lucid.sin(c) * x + c + 1, x).sum()

    jitted = lucid.jit(F.value_and_grad(f))
    x = lucid.tensor([0.5, 1.0])
    want = jitted(x)
    got = jitted(x)
    np.testing.assert_allclose(got[0].numpy(), want[0].numpy(), rtol=1e-12)
    np.testing.assert_allclose(got[1].numpy(), want[1].numpy(), rtol=1e-12)
    names = [e.op.name for e in jitted.graph(x, stage="copies_inserted").equations]
    assert names.count("while") == 1


def test_value_and_gradient_of_a_choice_run_its_branch_once():
    def f(x):
        return (F.cond(x.sum() > 0, lambda x: lucid.sin(x) * x.sum(), lucid.exp, x) ** 2).sum()

    graph = trace(F.value_and_grad(f))(lucid.ones(3))
    final = stages(graph)["copies_inserted"]
    inside = [e.op.name for eqn in final.equations for b in subgraphs(eqn) for e in b.equations]
    assert inside.count("sin") == inside.count("exp") == 1
    for sign in (1.0, -1.0):
        same(graph, [sign * np.ones(3)])


def test_while_loops_that_begin_otherwise_stay_apart():
    def f(x):
        small = F.while_loop(lambda c: c.sum() < 5.0, lambda c: c * 2.0, x)
        return small + F.while_loop(lambda c: c.sum() < 50.0, lambda c: c * 2.0, x)

    graph = trace(f)(lucid.ones(2))
    names = [e.op.name for e in stages(graph)["loops_merged"].equations]
    assert names.count("while") == 2
    same(graph, [np.array([0.3, 1.0])])


def test_an_eager_loop_is_compiled_once_it_has_taken_long(monkeypatch):
    from lucid.tape import tiering

    monkeypatch.setattr(tiering.LOOP, "run", 3)  # 48 equations at 16 runs
    tiering.table.clear()
    x = lucid.tensor([0.25, 0.5])
    results = []
    for _ in range(4):
        last, path = F.scan(lambda c, _: (lucid.sin(c) * 1.5 + x, c), x, length=20)
        grown = F.while_loop(lambda c: c.sum() < 1e4, lambda c: c * 1.1 + x, x)
        results.append([last.numpy(), path.numpy(), grown.numpy()])
    loops = tiering.table.of(tiering.LOOP).values()
    assert [loop.program is not None for loop in loops] == [True, True]
    for other in results[1:]:
        for a, b in zip(results[0], other):
            np.testing.assert_allclose(a, b, rtol=1e-13)


def test_a_carry_of_which_a_part_changes_is_written_in_place():
    def f(buffer, x):
        def body(i, buffer):
            buffer = buffer.clone()
            buffer[i] = x * i
            return buffer

        return F.fori_loop(0, 40, body, buffer)

    jitted = lucid.jit(f)
    buffer, x = lucid.zeros(50, 2000), lucid.ones(2000)
    jitted(buffer, x)
    want = np.zeros((50, 2000))
    want[:40] = np.arange(40)[:, None]
    np.testing.assert_array_equal(jitted(buffer, x).numpy(), want)
    np.testing.assert_array_equal(buffer.numpy(), 0)
    arena = re.search(r"arena (\d+) bytes", str(jitted.graph(buffer, x, stage="planned")))
    assert int(arena.group(1)) < buffer.numpy().nbytes  # no second place for the buffer


def test_carries_that_read_one_another_keep_their_old_values_until_all_are_written():
    def f(a, b, c):
        def step(carry, _):
            a, b, c = carry
            return (b + c, a * 2.0, a + b), a.sum() + c[0]

        return F.scan(step, (a, b, c), length=5)

    graph = trace(f)(lucid.ones(3), lucid.ones(3), lucid.ones(3))
    same(graph, arrays_for(graph))


def test_a_weight_that_a_loop_reads_transposed_is_transposed_once():
    def f(w, c):
        return F.scan(lambda c, _: (lucid.tanh(c @ w.T), None), c, length=5)[0]

    arrays = [np.random.default_rng(0).normal(size=shape) for shape in ((4, 4), (3, 4))]
    graph = trace(f)(*[lucid.tensor(x) for x in arrays])
    (scan,) = [e for e in stages(graph)["hoisted"].equations if e.op.name == "scan"]
    assert [e.op.name for e in scan.op.body.equations] == ["matmul", "tanh"]
    same(graph, arrays)
