"""Outputs in the memory of inputs: state is written where it lies, donated arguments are gone."""

import numpy as np
import pytest

import lucid
from lucid.compiler.jit.jit import jit
from lucid.errors import LeakError
from lucid.func import grad, vmap


def address(x):
    return x.value.__array_interface__["data"][0]


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def sgd(params, x):
    grads = grad(lambda p: (lucid.tanh(x @ p[0] + p[1]) ** 2).sum())(params)
    return [p - 0.1 * g for p, g in zip(params, grads)]


def parameters():
    return [lucid.tensor(floats(5, 3)), lucid.tensor(floats(3, seed=1))]


# Donated arguments


def test_results_take_the_memory_of_donated_arguments():
    x = lucid.tensor(floats(7, 5, seed=2))
    step, plain = jit(sgd, donate_argnums=0), parameters()
    params = parameters()
    for _ in range(4):
        plain = sgd(plain, x)
        before = [address(p) for p in params]
        recorded = bool(step.paths)
        params = step(params, x)
        if recorded:
            assert [address(p) for p in params] == before
        for a, b in zip(params, plain):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)
    ((path,),) = step.paths.values()
    assert path.overwritten == [0, 1]


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x + 1,
        lambda x: x.numpy(),
        lambda x: x.sum(),
        lambda x: x[0],
        lambda x: float(x[0]),
        lambda x: lucid.stack([x, x]),
        lambda x: x.tolist(),
        lambda x: x.add_(1.0),
    ],
)
def test_a_donated_tensor_says_that_it_is_gone(use):
    f = jit(lambda x: x * 2, donate_argnums=(0,))
    for _ in range(3):
        x = lucid.ones(3)
        assert f(x).tolist() == [2, 2, 2]
        with pytest.raises(LeakError, match=r"donated to lambda.*test_donation.py"):
            use(x)
        assert x.shape == (3,) and "f32" in str(x.type)


def test_an_array_that_others_see_is_copied_and_not_overwritten():
    f = jit(lambda x, y: (x * 2, y), donate_argnums=0)
    f(lucid.ones(3), lucid.ones(3))
    x = lucid.ones(3)
    seen = x.numpy()
    assert f(x, lucid.zeros(3))[0].tolist() == [2, 2, 2]
    assert seen.tolist() == [1, 1, 1]
    x = lucid.ones(6)
    half = x[:3]
    assert f(half, lucid.zeros(3))[0].tolist() == [2, 2, 2]
    assert x.tolist() == [1] * 6
    x = lucid.ones(3)
    both = f(x, x)
    assert [y.tolist() for y in both] == [[2, 2, 2], [1, 1, 1]]
    array = np.ones(3, "float32")
    assert f(array, array)[0].tolist() == [2, 2, 2]
    assert array.tolist() == [1, 1, 1]


def test_donated_arguments_may_change_places():
    f = jit(lambda a, b: (b, a), donate_argnums=(0, 1))
    for _ in range(3):
        a, b = f(lucid.tensor([1.0, 2.0]), lucid.tensor([3.0, 4.0]))
        assert (a.tolist(), b.tolist()) == ([3, 4], [1, 2])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.T + x,
        lambda x: (x.flip(0), x * 2),
        lambda x: x - x.sum(0),
        lambda x: x @ x,
        lambda x: lucid.softmax(x, 1) * x.sum(),
        lambda x: (lucid.exp(x), x.sum(1)),
        lambda x: (x.sum(0), lucid.exp(x) + x.max()),
        lambda x: lucid.cumsum(x, 0),
        lambda x: lucid.sort(x)[0],
        lambda x: lucid.tanh(x @ x) @ x,
        lambda x: (x * 2) @ x + x,
    ],
)
@pytest.mark.parametrize("n", [6, 200])
def test_an_argument_is_only_overwritten_once_it_is_read(f, n):
    x = floats(n, n) / 8
    donating, plain = jit(f, donate_argnums=0), jit(f)
    for _ in range(3):
        given, wanted = (lucid.ir.pytree.flatten(g(lucid.tensor(x)))[0] for g in (donating, plain))
        for a, b in zip(given, wanted, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_nothing_is_given_up_where_a_derivative_is_wanted():
    f = jit(lambda x: (x * x).sum(), donate_argnums=0)
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        x.grad = None
        f(x).backward()
        assert x.grad.tolist() == [2, 4]
    y = lucid.ones(4, 2)
    assert vmap(f)(y).tolist() == [2] * 4
    assert y.tolist() == [[1, 1]] * 4


# State


def test_written_state_is_computed_where_it_lies():
    w, m = lucid.tensor(floats(8, 8), requires_grad=True), lucid.zeros(8, 8)

    @jit
    def step(x):
        loss = (lucid.tanh(x @ w) ** 2).sum()
        w.grad = None
        loss.backward()
        with lucid.no_grad():
            m.mul_(0.9).add_(w.grad)
            w.sub_(0.01 * m)
        return loss

    places = [address(w), address(m)]
    w2, m2 = floats(8, 8).astype("float64"), np.zeros((8, 8))
    for k in range(5):
        x = floats(4, 8, seed=k)
        step(lucid.tensor(x))
        y = np.tanh(x @ w2)
        m2 = 0.9 * m2 + x.T @ (2 * y * (1 - y * y))
        w2 = w2 - 0.01 * m2
        np.testing.assert_allclose(w.detach().numpy(), w2, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(m.numpy(), m2, rtol=1e-4, atol=1e-5)
    assert [address(w), address(m)] == places
    assert len(step.last.overwritten) == 2


def test_state_with_views_and_other_layouts_is_still_right():
    base = lucid.zeros(2, 3)
    row, turned = base[0], lucid.tensor(np.zeros((3, 2), "float32").T)

    @jit
    def step(x):
        base.add_(x)
        turned.add_(base)
        return row * 1.0

    for k in range(1, 4):
        assert step(lucid.ones(2, 3)).tolist() == [k] * 3
        assert base.tolist() == [[k] * 3] * 2
        assert row.tolist() == [k] * 3
        assert turned.tolist() == [[k * (k + 1) / 2] * 3] * 2


def test_state_that_is_also_an_argument_changes_as_in_python():
    w = lucid.ones(3)

    @jit
    def step(x):
        w.mul_(2.0)
        return x.sum() + w

    for k in range(1, 4):
        assert step(w).tolist() == [4 * 2**k] * 3
    assert step(lucid.ones(3)).tolist() == [3 + 2**4] * 3


def test_a_failed_guard_leaves_the_state_as_it_was():
    w = lucid.zeros(1)

    @jit
    def step(x):
        w.add_(x)
        return w * 2 if x.sum() > 0 else w * 3

    expected = 0.0
    for v in (1.0, 2.0, -1.0, 4.0, -2.0):
        expected += v
        assert step(lucid.tensor([v])).tolist() == [expected * (2 if v > 0 else 3)]
        assert w.tolist() == [expected]


def test_an_index_out_of_range_leaves_the_state_as_it_was():
    w = lucid.zeros(4)

    @jit
    def step(i):
        w.add_(1.0)
        return w[i]

    step(lucid.tensor([1]))
    step(lucid.tensor([2]))
    with pytest.raises(lucid.errors.IndexingError):
        step(lucid.tensor([9]))
    assert w.tolist() == [2] * 4


# Parts of a buffer


def fill(n, size=64):
    @jit
    def f(x):
        out = lucid.zeros(n, size) + x[0, 0]
        for i in range(n):
            out[i] = x[i % 3] * (i + 1.0)
        return out

    return f


def test_writing_rows_of_a_buffer_copies_it_never():
    f, x = fill(20), lucid.tensor(floats(3, 64))
    for _ in range(3):
        got = f(x).numpy()
    expected = np.stack([x.numpy()[i % 3] * np.float32(i + 1) for i in range(20)])
    np.testing.assert_array_equal(got, expected)
    whole = [r for r in executed(f, x) if r.label.startswith("slice_set")]
    assert sum(r.calls for r in whole) == 20, "one instruction for each row, and no copy"


def executed(f, *args):
    with lucid.profile() as p:
        f(*args)
    return p.rows


def test_writing_rows_of_a_captured_buffer_copies_it_never():
    buffer = lucid.zeros(20, 64)

    @jit
    def f(x):
        for i in range(20):
            buffer[i] = x * (i + 1.0)

    for k in range(1, 4):
        f(lucid.full((64,), float(k)))
        expected = np.arange(1.0, 21.0)[:, None] * np.full(64, float(k))
        np.testing.assert_array_equal(buffer.numpy(), expected)
    assert len(f.last.overwritten) == 1
    x = lucid.ones(64)
    assert sum(r.calls for r in executed(f, x) if r.label.startswith("slice_set")) == 20
    assert buffer[:, 0].tolist() == list(range(1, 21))


def test_a_captured_buffer_that_is_read_again_is_not_written_too_early():
    buffer = lucid.zeros(4)

    @jit
    def f(x):
        old = buffer * 1.0
        before = buffer.clone()
        buffer[0] = x[0]
        middle = buffer.sum()
        buffer[1] = x[1] + old[0]
        return before, middle, buffer * 2

    a = np.zeros(4)
    for k in range(1, 4):
        before, middle, after = f(lucid.tensor([float(k), 10.0 * k]))
        assert before.tolist() == a.tolist()
        first = a[0]
        a[0] = k
        assert middle.item() == a.sum()
        a[1] = 10 * k + first
        assert after.tolist() == (2 * a).tolist() and buffer.tolist() == a.tolist()


def test_an_old_value_that_is_still_needed_is_kept():
    @jit
    def f(x):
        a = x * 2
        b = a.clone()
        b[0] = 5.0
        b[1] = b[0] + a[0]
        c = b.clone()
        c[1:] = b[:-1]
        c[lucid.tensor([0, 2])] = a[1]
        return a, b, c

    for _ in range(3):
        a, b, c = f(lucid.tensor([1.0, 2.0, 3.0]))
        assert a.tolist() == [2, 4, 6]
        assert b.tolist() == [5, 7, 6]
        assert c.tolist() == [4, 5, 4]
