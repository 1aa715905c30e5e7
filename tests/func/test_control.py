"""Control flow against the same programs written with Python's own if, for and while.

A pair is (f, twin): `f` uses func.cond, func.scan, ...; the twin unrolls it in Python, which is
what an eager program does anyway. Values, both modes, second order and vmap must agree.
"""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import func as F
from lucid.errors import ArgumentError, DTypeError, LucidError, ShapeError, TracedValueError

rng = np.random.default_rng(5)
A = lucid.tensor(rng.normal(size=(3, 3)) / 2)
XS = lucid.tensor(rng.normal(size=(4, 3)))


def value(x):
    return float(x.detach().numpy())


# Pairs


def cond_on_sum(x):
    return F.cond(x.sum() > 0, lambda x: lucid.sin(x) * A[0], lambda x: x * x, x)


def cond_on_sum_twin(x):
    return lucid.sin(x) * A[0] if value(x.sum()) > 0 else x * x


BRANCHES = [lambda x: (x, x.sum()), lambda x: (x * x, x[0] * x[1]), lambda x: (A @ x, x.prod())]


def switch_on_sum(x):
    return F.switch(x.sum().floor().to(lucid.int64), BRANCHES, x)


def switch_on_sum_twin(x):
    return BRANCHES[min(max(int(np.floor(value(x.sum()))), 0), 2)](x)


def recurrence(x):
    def step(c, row):
        h, n = c["h"], c["n"]
        h = lucid.tanh(A @ h + row * x)
        return {"h": h, "n": n + 1}, (h.sum(), h * n)

    last, ys = F.scan(step, {"h": x, "n": 0}, XS)
    return last["h"], ys


def recurrence_twin(x):
    h, sums, products = x, [], []
    for i in range(4):
        h = lucid.tanh(A @ h + XS[i] * x)
        sums.append(h.sum())
        products.append(h * float(i))
    return h, (lucid.stack(sums), lucid.stack(products))


def backwards(x):
    return F.scan(lambda c, row: (lucid.sin(c * row), c), x, (XS * x), reverse=True)


def backwards_twin(x):
    rows, ys = XS * x, [None] * 4
    for i in reversed(range(4)):
        ys[i], x = x, lucid.sin(x * rows[i])
    return x, lucid.stack(ys)


def no_steps(x):
    return F.scan(lambda c, row: (c * row, c.sum()), x, XS[:0])


def no_steps_twin(x):
    return x * 1.0, lucid.zeros(0, dtype=lucid.float64)


def counted(x):
    return F.fori_loop(1, 5, lambda i, c: lucid.sin(c) * i + x, x)


def counted_twin(x):
    c = x
    for i in range(1, 5):
        c = lucid.sin(c) * i + x
    return c


def doubled(x):
    """Doubles until it is large: the number of steps depends on x."""
    large = F.while_loop(
        lambda c: (c[0] * c[0]).sum() < 40, lambda c: (c[0] * 1.7 + x * x, c[1] + 1), (x, 0)
    )
    return large[0]


def doubled_twin(x):
    c = x
    while value((c * c).sum()) < 40:
        c = c * 1.7 + x * x
    return c


def never(x):
    return F.while_loop(lambda c: c.sum() > 1e6, lambda c: c * c, x * 2.0)


def never_twin(x):
    return x * 2.0


def counted_at_run_time(x):
    n = (x * x).sum().to(lucid.int64)
    return F.fori_loop(0, n, lambda i, c: lucid.sin(c * A[0]) + x / (i + 1), x)


def counted_at_run_time_twin(x):
    c = x
    for i in range(int(value((x * x).sum()))):
        c = lucid.sin(c * A[0]) + x / (i + 1)
    return c


def nested(x):
    def outer(c, row):
        inner, _ = F.scan(lambda d, r: (lucid.sin(d * r + row), None), c, XS[:2])
        small = F.while_loop(lambda d: (d * d).sum() < 2, lambda d: d * 1.5 + c * 0.1, inner)
        return F.cond(small.sum() > 0, lambda s: s * c, lambda s: s + row, small), small.sum()

    return F.scan(outer, x, XS)


def nested_twin(x):
    c, ys = x, []
    for row in XS:
        d = c
        for r in XS[:2]:
            d = lucid.sin(d * r + row)
        while value((d * d).sum()) < 2:
            d = d * 1.5 + c * 0.1
        ys.append(d.sum())
        c = d * c if value(d.sum()) > 0 else d + row
    return c, lucid.stack(ys)


def products(x):
    elements = (XS * x).reshape(12)
    return F.associative_scan(lambda a, b: a * b, elements)


def products_twin(x):
    out = []
    for e in (XS * x).reshape(12):
        out.append(e if not out else out[-1] * e)
    return lucid.stack(out)


def affine(x):
    """The linear recurrence h = a h + b, by pairs (a, b)."""
    elements = (lucid.sin(XS * x), XS + x)
    return F.associative_scan(
        lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), elements, reverse=True
    )


def affine_twin(x):
    a, b = lucid.sin(XS * x), XS + x
    out = []
    for i in reversed(range(4)):
        pair = (a[i], b[i])
        if out:
            p = out[-1]
            pair = (p[0] * a[i], a[i] * p[1] + b[i])
        out.append(pair)
    out = out[::-1]
    return lucid.stack([p[0] for p in out]), lucid.stack([p[1] for p in out])


def mapped(x):
    return F.map(lambda row: lucid.sin(row * x).sum(), XS), F.map(
        lambda row: lucid.sin(row * x), XS, batch_size=3
    )


def mapped_twin(x):
    return lucid.sin(XS * x).sum(1), lucid.sin(XS * x)


PAIRS = [
    (cond_on_sum, cond_on_sum_twin), (switch_on_sum, switch_on_sum_twin),
    (recurrence, recurrence_twin), (backwards, backwards_twin), (no_steps, no_steps_twin),
    (counted, counted_twin), (doubled, doubled_twin), (never, never_twin),
    (counted_at_run_time, counted_at_run_time_twin), (nested, nested_twin),
    (products, products_twin), (affine, affine_twin), (mapped, mapped_twin),
]  # fmt: skip
pairs = pytest.mark.parametrize("f, twin", PAIRS, ids=[f.__name__ for f, _ in PAIRS])
POINTS = [lucid.tensor(np.array(p)) for p in ([0.7, 0.4, 1.1], [-0.5, 0.2, -0.4], [1.3, 0.9, 0.6])]


def leaves(tree):
    return lucid.ir.pytree.flatten(tree)[0]


def agree(got, wanted, tol=1e-9):
    got, wanted = leaves(got), leaves(wanted)
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tol, atol=tol)


def loss(f):
    """A scalar to which all results contribute differently."""

    def scalar(x):
        total = 0.0
        for i, y in enumerate(leaves(f(x))):
            if y.dtype == lucid.float64:
                total = total + lucid.sin(y * (0.3 + 0.2 * i)).sum()
        return total

    return scalar


@pytest.fixture(autouse=True)
def double():
    before = lucid.get_default_dtype()
    lucid.set_default_dtype(lucid.float64)
    yield
    lucid.set_default_dtype(before)


@pairs
def test_value_and_gradient_are_those_of_the_python_twin(f, twin):
    for x in POINTS:
        agree(f(x), twin(x))
        agree(F.grad(loss(f))(x), F.grad(loss(twin))(x))


@pairs
def test_forward_mode_is_that_of_the_python_twin(f, twin):
    for x in POINTS:
        agree(F.jvp(f, (x,), (POINTS[0],)), F.jvp(twin, (x,), (POINTS[0],)))


@pairs
def test_second_order_in_every_mix_of_modes_is_that_of_the_python_twin(f, twin):
    x = POINTS[0]
    wanted = F.hessian(loss(twin))(x)
    agree(F.hessian(loss(f))(x), wanted)
    agree(F.jacrev(F.grad(loss(f)))(x), wanted)
    agree(F.jacfwd(F.jacfwd(loss(f)))(x), wanted)
    agree(F.jacrev(F.jacfwd(loss(f)))(x), wanted)


@pytest.mark.parametrize("f, twin", [PAIRS[i] for i in (0, 2, 6)], ids=lambda f: f.__name__)
def test_third_order_in_reverse_is_that_of_the_python_twin(f, twin):
    def third(g):
        return F.grad(lambda x: F.grad(lambda x: F.grad(loss(g))(x).sum())(x).sum())

    agree(third(f)(POINTS[0]), third(twin)(POINTS[0]), 1e-7)


@pairs
def test_vmap_is_a_loop_over_examples_even_where_they_take_other_ways(f, twin):
    batch = lucid.stack(POINTS)
    agree(F.vmap(f)(batch), lucid.func.stop_gradient(stacked([twin(x) for x in POINTS])))
    agree(F.vmap(F.grad(loss(f)))(batch), stacked([F.grad(loss(twin))(x) for x in POINTS]))
    agree(F.vmap(F.hessian(loss(f)))(batch), stacked([F.hessian(loss(twin))(x) for x in POINTS]))


@pairs
def test_gradient_through_vmap_is_that_of_the_sum(f, twin):
    batch = lucid.stack(POINTS)

    def total(f):
        return lambda batch: F.vmap(loss(f))(batch).sum()

    wanted = lucid.stack([F.grad(loss(twin))(x) for x in POINTS])
    agree(F.grad(total(f))(batch), wanted)


@pairs
def test_backward_reaches_leaves_outside(f, twin):
    x = POINTS[0].clone().requires_grad_()
    loss(f)(x).backward()
    agree(x.grad, F.grad(loss(twin))(POINTS[0]))


@pairs
def test_graph_prints_parses_and_verifies(f, twin):
    graph = lucid.ir.trace(F.grad(loss(f)))(POINTS[0])
    again = lucid.ir.parse(str(graph))
    assert again.key == graph.key
    lucid.ir.verify(again)
    inputs = [np.full(var.type.shape, 0.4, var.type.dtype) for var in graph.inputs]
    for a, b in zip(lucid.ir.evaluate(graph, *inputs), lucid.ir.evaluate(again, *inputs)):
        np.testing.assert_array_equal(a, b)


def stacked(trees):
    structure = lucid.ir.pytree.flatten(trees[0])[1]
    rows = zip(*[leaves(tree) for tree in trees])
    return lucid.ir.pytree.unflatten(structure, [lucid.stack(list(row)) for row in rows])


# Closures


@pytest.mark.parametrize("kind", ["scan", "while_loop", "cond", "switch", "fori_loop"])
def test_gradients_flow_to_tensors_closed_over(kind):
    w = lucid.tensor([0.5, 1.5], requires_grad=True)

    def run(w):
        x = lucid.tensor([1.0, 2.0])
        match kind:
            case "scan":
                return F.scan(lambda c, _: (c * w, None), x, length=3)[0].sum()
            case "while_loop":
                return F.while_loop(lambda c: c.sum() < 8, lambda c: c * w + 1, x).sum()
            case "cond":
                return F.cond(True, lambda x: x * w * w, lambda x: x + w, x).sum()
            case "switch":
                return F.switch(1, [lambda x: x, lambda x: x * w], x).sum()
            case "fori_loop":
                return F.fori_loop(0, lucid.tensor(3), lambda i, c: c * w, x).sum()

    run(w).backward()
    agree(w.grad, F.grad(run)(w.detach()))
    eps = 1e-6
    for i in range(2):
        e = lucid.tensor(np.eye(2)[i] * eps)
        slope = (run(w.detach() + e) - run(w.detach() - e)) / (2 * eps)
        assert abs(value(slope) - w.grad.numpy()[i]) < 1e-6


def test_a_body_runs_once_in_python_however_long_the_loop():
    calls = []
    F.scan(lambda c, _: (calls.append(1), (c * 2, None))[1], lucid.tensor(1.0), length=50)
    assert len(calls) == 1


def test_eager_python_control_flow_still_looks_at_values():
    def f(x):
        while x.sum() < 10:
            x = x * 2
        return x if x[0] > 0 else -x

    agree(f(lucid.tensor([-1.0, 3.0])), lucid.tensor([8.0, -24.0]) * 1.0)


# nan and inf


def test_nan_of_the_branch_not_taken_does_not_reach_the_gradient():
    def f(x):
        return F.cond(x > 0, lucid.sqrt, lambda x: x * 0.0, x)

    points = lucid.tensor([4.0, 0.0, -1.0])
    agree(F.vmap(F.grad(f))(points), lucid.tensor([0.25, 0.0, 0.0]))
    agree(F.grad(lambda x: F.vmap(f)(x).sum())(points), lucid.tensor([0.25, 0.0, 0.0]))


def test_nan_of_examples_that_have_finished_does_not_reach_the_gradient():
    def f(x):
        return F.while_loop(lambda c: c > 1, lambda c: lucid.sqrt(c - 1), x)

    points = lucid.tensor([1.0, 4.0, 0.5])
    slopes = [1.0, 1 / (2 * np.sqrt(3.0)) / (2 * np.sqrt(np.sqrt(3.0) - 1)), 1.0]
    agree(F.vmap(f)(points), lucid.tensor([1.0, np.sqrt(np.sqrt(3.0) - 1), 0.5]))
    agree(F.grad(lambda x: F.vmap(f)(x).sum())(points), lucid.tensor(slopes))


def test_nan_made_in_a_loop_stays_where_it_is_made():
    out, ys = F.scan(lambda c, x: (c + 1, lucid.log(x)), lucid.tensor(0), lucid.tensor([1.0, -1.0]))
    assert np.isnan(ys.numpy()[1]) and ys.numpy()[0] == 0 and int(out) == 2


# Residuals


def test_only_what_the_derivative_reads_is_stacked_and_what_no_step_changes_is_not():
    def f(c):
        w = lucid.exp(A[0])
        return F.scan(lambda c, _: (lucid.sin(c) * lucid.exp(w) + 1, None), c, length=7)[0].sum()

    graph = lucid.ir.trace(F.grad(f))(POINTS[0])
    stacks = {v.type for eqn in graph.equations for v in eqn.outputs if v.type.shape[:1] == (7,)}
    saving = [e for e in graph.equations if e.op.name == "scan" and not e.op.reverse]
    made = [v for e in saving for v in e.outputs if v.type.shape[:1] == (7,)]
    assert stacks == {lucid.ir.Type.parse("f64[7,3]")}
    assert len(made) == 1  # cos reads the carry; exp(w) is the same at every step


def test_a_gradient_that_is_not_asked_for_is_not_carried():
    def f(x, y):
        return F.scan(lambda c, _: (lucid.sin(c) * y, None), x, length=3)[0].sum()

    one = lucid.ir.trace(F.grad(f))(POINTS[0], POINTS[1])
    both = lucid.ir.trace(F.grad(f, argnums=(0, 1)))(POINTS[0], POINTS[1])
    carried = [
        max(e.op.n_carry for e in g.equations if e.op.name == "scan" and e.op.reverse)
        for g in (one, both)
    ]
    assert carried == [1, 2]


# Errors


def test_carry_that_changes_type_is_named():
    with pytest.raises(ShapeError, match=r"scan: carry\['h'\]\[1\] starts as f64\[2\]"):
        F.scan(
            lambda c, _: ({"h": (c["h"][0], c["h"][1].sum())}, None),
            {"h": (lucid.ones(2), lucid.ones(2))},
            length=2,
        )
    with pytest.raises(DTypeError, match=r"while_loop: carry starts as i64\[1\].*to\(dtype\)"):
        F.while_loop(lambda c: c.sum() < 3, lambda c: c * 0.5, lucid.tensor([1]))
    with pytest.raises(LucidError, match="structures must match"):
        F.fori_loop(0, 3, lambda i, c: (c, c), lucid.ones(2))


def test_branches_that_differ_are_named():
    with pytest.raises(ShapeError, match=r"cond: .* return f64\[\] and f64\[2\] for result"):
        F.cond(True, lambda x: x, lambda x: x.sum(), lucid.ones(2))
    with pytest.raises(LucidError, match="structures must match"):
        F.cond(True, lambda x: x, lambda x: (x, x), lucid.ones(2))


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: F.scan(lambda c, x: c, 0.0, XS), LucidError, r"must return \(carry, y\)"),
        (lambda: F.scan(lambda c, x: (c, x), 0.0), ArgumentError, "give xs or length"),
        (lambda: F.scan(lambda c, x: (c, x), 0.0, (XS, XS[:2])), ShapeError, "2, 4"),
        (lambda: F.scan(lambda c, x: (c, x), 0.0, XS, length=3), ShapeError, "3, 4"),
        (lambda: F.scan(lambda c, x: (c, x), 0.0, length=-1), ArgumentError, "length=-1"),
        (lambda: F.cond(XS[0] > 0, lucid.sin, lucid.cos, XS), ShapeError, r"where\(\)"),
        (lambda: F.cond(True, 3, lucid.cos, XS), ArgumentError, "not callable"),
        (lambda: F.switch(0.5, [lucid.sin], XS), DTypeError, "must be an integer"),
        (lambda: F.switch(0, [], XS), ArgumentError, "not a list of functions"),
        (lambda: F.while_loop(lambda c: c, lambda c: c, 1.0), DTypeError, "one bool"),
        (lambda: F.fori_loop(0.5, 3, lambda i, c: c, 1.0), DTypeError, "a bound"),
        (lambda: F.map(lucid.sin, XS, batch_size=0), ArgumentError, "at least 1"),
        (lambda: F.associative_scan(lambda a, b: a[0], XS), ShapeError, "fn returns"),
        (lambda: F.associative_scan(lambda a, b: a, ()), ArgumentError, "no tensor"),
    ],
)  # fmt: skip
def test_bad_input_is_explained(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_body_that_raises_leaves_its_own_error():
    def body(c, _):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        F.scan(body, 0.0, length=2)
    agree(F.scan(lambda c, _: (c + 1, None), lucid.tensor(0.0), length=2)[0], lucid.tensor(2.0))


def test_looking_at_a_value_inside_a_body_names_what_to_use():
    with pytest.raises(TracedValueError, match=r"inside scan of .*func\.cond"):
        F.scan(lambda c, _: (c if c > 0 else -c, None), lucid.tensor(1.0), length=2)


def test_python_numbers_as_carry_take_the_dtype_of_the_body():
    total, _ = F.scan(lambda c, x: (c + x, None), 0, lucid.tensor([0.5, 1.0]))
    agree(total, lucid.tensor(1.5))


# What vmap makes of choices


def names_of(f, *args):
    return [eqn.op.name for eqn in lucid.ir.trace(f)(*args).equations]


def test_a_predicate_shared_by_all_examples_stays_a_branch():
    def f(flag, x):
        return F.vmap(lambda x: F.cond(flag, lucid.sin, lucid.cos, x))(x)

    assert "switch" in names_of(f, lucid.tensor(True), XS)
    agree(f(lucid.tensor(True), XS), lucid.sin(XS))
    agree(f(lucid.tensor(False), XS), lucid.cos(XS))


def test_a_predicate_of_each_example_becomes_a_selection():
    def f(x):
        return F.vmap(lambda x: F.cond(x.sum() > 0, lucid.sin, lucid.cos, x))(x)

    names = names_of(f, XS)
    assert "switch" not in names and "where" in names


def test_only_carries_that_differ_between_examples_are_batched():
    def f(xs):
        def step(c, x):
            return (c[0] + 1.0, c[1] * x + c[0]), c[0]

        return F.vmap(lambda x: F.scan(step, (lucid.zeros(()), x), lucid.ones(5)))(xs)

    (scan,) = [e for e in lucid.ir.trace(f)(lucid.ones(7)).equations if e.op.name == "scan"]
    assert [t.shape for t in scan.op.body.out_types] == [(), (7,), ()]
    (count, _), ys = f(lucid.ones(7))
    assert count.shape == (7,) and ys.shape == (7, 5)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "bool"])
def test_branches_are_chosen_by_any_integer(dtype):
    index = lucid.tensor(1, dtype=dtype)
    f = lucid.jit(lambda i, x: F.switch(i, [lucid.sin, lucid.cos], x))
    for _ in range(2):
        agree(f(index, XS), lucid.cos(XS))


def test_a_branch_computes_what_it_closes_over_and_nothing_older():
    """A constant (`full`) in the history of a closure drew that history into every branch."""

    def f(s):
        x = F.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, s + lucid.full((2,), 1.0))
        return F.cond(s.sum() > 0, lambda: lucid.sin(x) * s, lambda: x)

    graph = lucid.ir.trace(f)(lucid.ones(2))
    names = [eqn.op.name for eqn in graph.equations]
    assert (names.count("while"), names.count("sin"), names[-1]) == (1, 0, "switch")
    inside = graph.equations[-1].op.branches[1]
    assert [eqn.op.name for eqn in inside.equations] == ["sin", "mul"]
    slope = F.grad(lambda s: f(s).sum())(lucid.ones(2))
    expected = np.sin(64.0) + 32 * np.cos(64.0)  # x = 32 (s + 1) after five steps
    np.testing.assert_allclose(np.asarray(slope), [expected] * 2, rtol=1e-5)


def test_a_branch_may_close_over_a_result_that_no_derivative_reads():
    a = lucid.tensor([1.0, 2.0], requires_grad=True)
    v = lucid.stack([a, -a])
    y = F.cond(v.sum() > 1, lambda w: w * 2.0, lambda w: lucid.sin(w) + v.sum(), v)
    y[0].sum().backward()
    np.testing.assert_allclose(a.grad, np.cos([1.0, 2.0]), rtol=1e-6)


def test_branches_without_operands_may_close_over_results_that_no_derivative_reads():
    a = lucid.tensor([1.0, 2.0], requires_grad=True)
    v = lucid.stack([a, -a])
    y = F.cond(v.sum() > 1, lambda: v[0] * 2.0, lambda: (v + 1).sum(0) + v[0])
    z = F.cond(
        v.sum() > 1, lambda: v[0], lambda: F.cond(v.sum() < 1, lambda: (v + v)[1], lambda: v[1])
    )
    (3 * y + z).sum().backward()
    np.testing.assert_allclose(a.grad, [3.0 - 2.0] * 2)


def test_a_loop_that_starts_from_constants_is_differentiated_again_under_vmap():
    def last(x):
        step = lambda c, v: ((c[0] * v * c[1], c[1] + 1), c)  # noqa: E731
        return F.scan(step, (lucid.tensor(1.0), 1), x)[0][0]

    rows = lucid.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    expected = lucid.tensor([[36.0, 18.0, 12.0], [180.0, 144.0, 120.0]])  # of 6 x0 x1 x2
    for _ in range(2):  # the second call finds its derivative prepared
        agree(F.vmap(F.grad(last))(rows), expected)
