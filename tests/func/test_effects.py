"""Effects inside control flow: writes and random draws happen as in a Python loop.

The reference of every program is the same program with Python's own `for`, `if` and `while`.
"""

import numpy as np
import pytest

import lucid
import lucid.func as F
from lucid import nn
from lucid.errors import GraphError, LucidError

T = lucid.tensor
XS = [1.0, 2.0, 3.0]


class Python:
    """Control flow as Python has it, on eager values."""

    @staticmethod
    def scan(f, c, xs, length=None):
        ys = []
        for x in xs if length is None else [None] * length:
            c, y = f(c, x)
            ys.append(y)
        return c, None if ys[0] is None else lucid.stack(ys)

    @staticmethod
    def cond(p, f, g, *xs):
        return f(*xs) if bool(p) else g(*xs)

    @staticmethod
    def switch(i, branches, *xs):
        return branches[int(i)](*xs)

    @staticmethod
    def while_loop(test, body, x):
        while bool(test(x)):
            x = body(x)
        return x

    @staticmethod
    def fori_loop(a, b, body, x):
        for i in range(int(a), int(b)):
            x = body(T(i), x)
        return x

    @staticmethod
    def map(f, xs):
        return lucid.stack([f(x) for x in xs])

    @staticmethod
    def checkpoint(f):
        return f


def program(make):
    return pytest.param(make, id=make.__name__)


def counter():
    n = lucid.zeros(())

    def f(c, x):
        def step(carry, row):
            before = n.clone()
            n.add_(1.0)
            return carry + row * n.clone() * x, before + n

        last, ys = c.scan(step, x * 0.0, T(XS))
        return last + ys.sum() + n.clone() * x

    return f, [n]


def through_a_view():
    n = lucid.zeros(3)
    v = n[1:]

    def f(c, x):
        def step(carry, row):
            v[0].add_(row * x)
            n.mul_(1.5)
            return carry + n.sum(), v.sum()

        last, ys = c.scan(step, x, T(XS))
        return last + ys.sum()

    return f, [n, v]


def taken_branch():
    n, m = lucid.zeros(()), lucid.ones(2)

    def f(c, x):
        def yes(x):
            n.add_(x)
            return x * 2

        def no(x):
            m[1] = x * 3
            return x * m[1].clone()

        return c.cond(x > 2, yes, no, x) + c.cond(x > 1, yes, no, x) + m.sum() + n

    return f, [n, m]


def switched():
    n = T([1.0, 2.0])

    def f(c, x):
        branches = [
            lambda x: x * 1.0,
            lambda x: x * n.mul_(2.0)[0].clone(),
            lambda x: n.add_(x).sum(),
        ]
        return sum(c.switch(T(i), branches, x) for i in (2, 0, 1, 2)) + n.sum()

    return f, [n]


def while_on_state():
    n = lucid.zeros(())

    def f(c, x):
        n.zero_()

        def body(v):
            n.add_(1.0)
            return v * n.clone() + x

        return c.while_loop(lambda v: n < 3, body, x)

    return f, [n]


def while_test_draws():
    def f(c, x):
        return c.while_loop(lambda v: lucid.rand(()) < 0.8, lambda v: v + lucid.rand(()) * x, x)

    return f, []


def nested_loops():
    n = lucid.zeros(())

    def f(c, x):
        def inner(carry, row):
            n.add_(row)
            return carry + lucid.rand(()) * n.clone(), n.clone() * x

        def outer(carry, row):
            carry, ys = c.scan(inner, carry + row, T([1.0, 2.0]))
            return c.cond(carry > 3, lambda a: a + lucid.rand(()), lambda a: a, carry), ys.sum()

        last, ys = c.scan(outer, x, T(XS))
        return last + ys.sum()

    return f, [n]


def draws_in_every_loop():
    g = lucid.random.Generator(5)

    def f(c, x):
        _, ys = c.scan(lambda s, row: (s, lucid.randn(2, generator=g) * x), x, T(XS))
        many = c.map(lambda row: lucid.rand(2) * row, T(XS))
        total = c.fori_loop(0, 3, lambda i, v: v + lucid.rand(()) * x, x)
        more = c.fori_loop(T(0), T(2), lambda i, v: v * lucid.rand(()), x)
        return ys.sum() + (many.sum() + total + more) * x

    return f, [g._state]


def dropout_and_batch_norm():
    lucid.manual_seed(1)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    rows = lucid.randn(3, 5, 3)

    def f(c, x):
        return c.map(lambda row: net(row * x), rows).sum()

    return f, [net[1].running_mean, net[1].running_var, net[1].num_batches_tracked]


def checkpointed():
    n = lucid.ones(2)

    def f(c, x):
        def block(x):
            n.copy_(n.clone() * x)
            return (lucid.rand(2) * n.clone() * x).sum()

        return c.checkpoint(block)(x) + c.checkpoint(block)(x * 2)

    return f, [n]


def checkpoint_in_a_loop():
    n = lucid.ones(())

    def f(c, x):
        def block(x):
            n.copy_(n.clone() * x)
            return lucid.sin(lucid.rand(()) * n.clone() * x)

        return c.scan(lambda s, row: (s + c.checkpoint(block)(row * x), None), x, T(XS))[0] + n

    return f, [n]


def detached_update():
    p = T(1.0, requires_grad=True)

    def f(c, x):
        def step(carry, row):
            with lucid.no_grad():
                p.sub_(0.1 * (p - row))
            return carry + p.detach().clone() * row * x, None

        return c.scan(step, x, T(XS))[0]

    return f, [p]


PROGRAMS = [
    program(make)
    for make in (
        counter, through_a_view, taken_branch, switched, while_on_state, while_test_draws,
        nested_loops, draws_in_every_loop, dropout_and_batch_norm, checkpointed,
        checkpoint_in_a_loop, detached_update,
    )
]  # fmt: skip


def run(make, flow, wrap, values=(1.7, 0.6, 2.9)):
    """Return the results of a program on several values, and all that it leaves behind."""
    f, state = make()
    lucid.manual_seed(7)
    g = wrap(lambda x: f(flow, x))
    results = []
    for x in values:
        leaves, _ = lucid.ir.pytree.flatten(g(T(x, dtype="float32")))
        results += [np.array(y.detach().numpy()) for y in leaves]
        results += [np.array(s.detach().numpy()) for s in state]
    return [*results, lucid.random.get_rng_state().numpy()]


WAYS = {
    "eager": lambda f: f,
    "jit": lucid.jit,
    "grad": F.value_and_grad,
    "jvp": lambda f: lambda x: F.jvp(f, (x,), (T(0.5),)),
    "jit of grad": lambda f: lucid.jit(F.value_and_grad(f)),
    "grad of jit": lambda f: F.value_and_grad(lucid.jit(f)),
    "jvp of jit": lambda f: (lambda j: lambda x: F.jvp(j, (x,), (T(0.5),)))(lucid.jit(f)),
    "hessian": F.hessian,
}
REFERENCE = {
    "jit": "eager", "jit of grad": "grad", "grad of jit": "grad", "jvp of jit": "jvp",
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", PROGRAMS)
def test_effects_are_those_of_a_python_loop(make, way):
    expected = run(make, Python, WAYS[REFERENCE.get(way, way)])
    found = run(make, F, WAYS[way])
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


def test_backward_through_a_loop_with_state():
    def total(flow, w):
        n = lucid.ones(())

        def step(carry, row):
            n.copy_(n.clone() * w * row)
            return carry + n.clone(), None

        flow.scan(step, T(0.0), T(XS))[0].backward()
        return w.grad.item()

    expected = 1 + 2 * 2 * 1.5 + 3 * 6 * 1.5**2  # of w + 2w² + 6w³
    for flow in (Python, F):
        np.testing.assert_allclose(total(flow, T(1.5, requires_grad=True)), expected, rtol=1e-6)


@pytest.mark.parametrize("fails", ["scan", "cond", "while_loop", "map", "checkpoint", "vmap"])
def test_an_exception_in_a_body_leaves_outside_tensors_as_they_were(fails):
    n = T([1.0, 2.0])
    v = n[0]
    state = lucid.random.get_rng_state().tolist()

    def body(*xs):
        v.add_(xs[0])
        if fails != "vmap":
            lucid.rand(2)
        raise KeyError("inside")

    calls = {
        "scan": lambda: F.scan(body, T(0.0), T(XS)),
        "cond": lambda: F.cond(T(True), body, body, T(1.0)),
        "while_loop": lambda: F.while_loop(lambda x: x < 1, body, T(0.0)),
        "map": lambda: F.map(body, T(XS)),
        "checkpoint": lambda: F.scan(lambda c, x: (F.checkpoint(body)(x), x), T(0.0), T(XS)),
        "vmap": lambda: F.vmap(body)(T(XS)),
    }
    with pytest.raises(KeyError, match="inside"):
        calls[fails]()
    assert n.tolist() == [1.0, 2.0] and v.item() == 1.0
    assert lucid.random.get_rng_state().tolist() == state
    n.add_(1.0)
    assert v.item() == 2.0


def test_what_cannot_be_right_is_refused_with_the_line():
    n = lucid.zeros(())
    p = T(1.0, requires_grad=True)

    def backward(c, x):
        (p * x).backward()
        return c, None

    with pytest.raises(GraphError, match=r"\.grad of a tensor from outside.*test_effects"):
        F.scan(backward, T(0.0), T(XS))
    assert p.grad is None
    with pytest.raises(GraphError, match=r"leaf that requires a gradient.*\[test_effects"):
        F.scan(lambda c, x: (p.add_(x), None), T(0.0), T(XS))
    with pytest.raises(GraphError, match=r"linear_solve.*from outside.*\[test_effects"):
        F.linear_solve(lambda x: x * n.add_(1.0), T([1.0, 2.0]))
    for combine in (lambda a, b: a + b * n.add_(1.0), lambda a, b: a + b * lucid.rand(())):
        with pytest.raises(GraphError, match=r"associative_scan.*order.*\[test_effects"):
            F.associative_scan(combine, T(XS))
    with pytest.raises(LucidError, match=r"per-example.*\[test_effects"):
        F.vmap(lambda x: F.scan(lambda c, y: (c, n.add_(x)), x, T(XS))[0])(T(XS))
    assert n.item() == 0.0 and p.item() == 1.0


def test_draws_in_a_rule_that_is_traced_once_are_refused():
    @F.custom_jvp
    def f(x):
        return x * 1.0

    f.defjvp(lambda p, t: (f(p[0]), t[0] * lucid.rand(())))
    for derivative in (F.grad(f), lambda x: F.jvp(f, (x,), (x,)), lucid.jit(F.grad(f))):
        with pytest.raises(GraphError, match=r"drawn in a custom rule.*\[test_effects"):
            derivative(T(1.0))


def test_draws_and_writes_in_custom_vjp_rules_happen_at_every_call():
    n = lucid.zeros(())

    @F.custom_vjp
    def f(x):
        return x * 1.0

    def forward(x):
        u = lucid.rand(())
        return x * u, u

    f.defvjp(forward, lambda u, ct: (ct * u + 0 * n.add_(1.0),))
    for derivative in (F.value_and_grad(f), lucid.jit(F.value_and_grad(f))):
        lucid.manual_seed(0)
        n.zero_()
        found = [[v.item() for v in derivative(T(1.0))] for _ in range(3)]
        lucid.manual_seed(0)
        assert found == [[u, u] for u in lucid.stack([lucid.rand(()) for _ in range(3)]).tolist()]
        assert n.item() == 3.0
    gradients = F.grad(lambda x: F.map(f, x).sum())(lucid.ones(3)).tolist()
    assert len(set(gradients)) == 3


def test_a_gradient_written_by_a_custom_rule_is_refused_and_undone():
    n = lucid.zeros(())

    @F.custom_vjp
    def f(x):
        return x * 1.0

    f.defvjp(lambda x: (x * 1.0, x), lambda x, ct: (ct * x + n.add_(ct),))
    with pytest.raises(GraphError, match=r"depends on a gradient.*\[test_effects"):
        F.grad(f)(T(1.0))
    assert n.item() == 0.0


def test_a_trace_has_no_effects():
    n, state = T(1.0), lucid.random.get_rng_state().tolist()
    graph = lucid.ir.trace(lambda x: x * n.add_(x) + lucid.rand(()))(lucid.ir.Type.parse("f32[]"))
    assert [str(t) for t in graph.in_types] == ["f32[]"] * 3 and n.item() == 1.0
    assert lucid.random.get_rng_state().tolist() == state


def test_the_state_of_a_generator_is_never_on_a_tape():
    F.grad(lambda x: F.map(lambda v: v * lucid.rand(()), x).sum())(lucid.ones(3))
    assert lucid.random.default_generator._state.node is None


def test_a_tensor_made_in_the_body_is_not_state():
    def step(c, x):
        buffer = lucid.zeros(2)
        buffer[0] = x
        buffer.add_(1.0)
        return c + buffer.sum(), buffer

    last, ys = F.scan(step, T(0.0), T(XS))
    assert last.item() == 12.0 and ys.tolist() == [[2.0, 1.0], [3.0, 1.0], [4.0, 1.0]]


def test_what_does_not_depend_on_the_step_is_computed_outside():
    w = lucid.ones(4, 4)
    graph = lucid.ir.trace(lambda c: F.scan(lambda c, _: (c + (w @ w)[0], None), c, length=3)[0])
    text = str(graph(lucid.ones(4)))
    assert "matmul" not in text.split("scan", 1)[1]


# Under vmap

PER_EXAMPLE = T([[1.0, 2.0], [0.5, 3.0], [2.0, 0.1]])


def noise_in_loops(x, positive=None):
    """Draws in every kind of loop, on one example."""
    _, ys = F.scan(lambda c, row: (c, lucid.rand(()) + row * 0), x[0], x)
    total = F.fori_loop(0, 2, lambda i, v: v + lucid.rand(()), x[0] * 0)
    positive = x[0] > 0 if positive is None else positive
    drawn = F.cond(positive, lambda v: lucid.rand(()) + v * 0, lambda v: v, x[0])
    return lucid.cat([ys, lucid.stack([total, drawn])])


@pytest.mark.parametrize("chunk_size", [None, 1, 2])
def test_each_example_and_each_step_has_its_own_draw(chunk_size):
    def draw():
        lucid.manual_seed(4)
        mapped = F.vmap(noise_in_loops, randomness="different", chunk_size=chunk_size)
        return mapped(PER_EXAMPLE).numpy(), lucid.rand(2).tolist()

    (values, after), (again, _) = draw(), draw()
    assert len(np.unique(values)) == 12
    np.testing.assert_array_equal(values, again)
    lucid.manual_seed(4)
    whole = F.vmap(noise_in_loops, randomness="different")(PER_EXAMPLE).numpy()
    np.testing.assert_array_equal(values, whole)
    assert lucid.rand(2).tolist() == after


def test_examples_share_the_draws_of_every_step_where_randomness_is_same():
    lucid.manual_seed(4)
    mapped = F.vmap(noise_in_loops, (0, None), randomness="same", chunk_size=2)
    shared = mapped(PER_EXAMPLE, T(True)).numpy()
    after = lucid.rand(2).tolist()
    lucid.manual_seed(4)
    alone = noise_in_loops(PER_EXAMPLE[0]).numpy()
    np.testing.assert_array_equal(shared, np.tile(alone, (3, 1)))
    assert lucid.rand(2).tolist() == after
    with pytest.raises(GraphError, match=r"only some examples.*'different'.*\[test_effects"):
        F.vmap(noise_in_loops, randomness="same")(PER_EXAMPLE)


def test_draws_under_vmap_are_the_same_in_jit():
    f = lambda x: F.vmap(noise_in_loops, randomness="different")(x)  # noqa: E731
    lucid.manual_seed(4)
    eager = [f(PER_EXAMPLE * k).numpy() for k in (1, 2, 3)]
    lucid.manual_seed(4)
    jitted = lucid.jit(f)
    np.testing.assert_array_equal([jitted(PER_EXAMPLE * k).numpy() for k in (1, 2, 3)], eager)


def test_nested_vmaps_in_a_loop_draw_for_every_step_and_example():
    def step(c, row):
        inner = F.vmap(lambda x: lucid.rand(()) + x * 0, randomness="different")
        return c, F.vmap(inner, randomness="different")(PER_EXAMPLE)

    assert len(np.unique(F.scan(step, None, length=2)[1].numpy())) == 12
    assert len(np.unique(F.map(lambda x: lucid.rand(()) + x * 0, T(XS), batch_size=2).numpy())) == 3


@pytest.mark.parametrize("chunk_size", [None, 1])
def test_a_write_that_is_the_same_for_all_examples_happens_once(chunk_size):
    n = lucid.zeros(())

    def f(x):
        n.add_(1.0)
        return F.scan(lambda c, row: (c * n.add_(2.0).clone(), None), x, T(XS))[0]

    out = F.vmap(f, chunk_size=chunk_size)(T([1.0, 2.0]))
    assert n.item() == 7.0 and out.tolist() == [105.0, 210.0]


def test_a_write_that_differs_between_examples_is_refused_and_undone():
    n = lucid.zeros(())
    for write in (lambda x: n.add_(x), lambda x: F.cond(x > 1.5, lambda: n.add_(1.0), lambda: n)):
        with pytest.raises(GraphError, match=r"per-example.*\[test_effects"):
            F.vmap(lambda x: write(x) * 1.0)(T(XS))  # noqa: B023
        assert n.item() == 0.0
    with pytest.raises(GraphError, match="per-example"):
        F.vmap(lambda x: n.add_(1.0) if x > 2 else x * 1.0, branching="split")(T(XS))
    assert n.item() == 0.0


def test_a_constant_made_in_a_body_may_be_read_before_it_is_written():
    def f(x):
        buffer = lucid.zeros(())
        before = buffer * x
        buffer.add_(5.0)
        return before + buffer * x

    assert F.vmap(f)(T(XS)).tolist() == [5.0, 10.0, 15.0]
    assert F.map(f, T(XS)).tolist() == [5.0, 10.0, 15.0]
    assert lucid.jit(lambda: F.map(f, T(XS)))().tolist() == [5.0, 10.0, 15.0]
