"""What a jitted function returns and writes shares memory with its arguments as eager code says.

A tensor that was given or closed over is returned itself, a write to an argument is a write to the
caller's tensor, and any other result has memory of its own; all the same on every call.
"""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.func as F
from lucid.errors import GraphError

X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T,
        lambda x: x[0],
        lambda x: x.reshape(-1),
        lambda x: x.detach(),
        lambda x: x.data,
        lambda x: x.diagonal(),
        lambda x: x.unfold(1, 2, 1),
        lambda x: x.expand(2, 2, 3),
        lambda x: (x, x.T)[1],
    ],
)
def test_a_view_of_an_argument_or_of_state_is_returned_as_a_copy(view):
    x, state = lucid.tensor(X), lucid.tensor(X)
    of_argument, of_state = lucid.jit(view), lucid.jit(lambda: view(state))
    nested = lucid.jit(lambda x: of_argument(x))
    for _ in range(3):
        for y in (of_argument(x), of_state(), nested(x)):
            assert np.array_equal(y, view(lucid.tensor(X)))
            y.clone() if y.stride()[0] == 0 else y.fill_(-1.0)
    assert np.array_equal(x, X) and np.array_equal(state, X)


def test_results_share_no_memory_with_each_other():
    def f(x):
        y = x * 2
        return y, y, y.T, y.reshape(-1)

    jitted = lucid.jit(f)
    for _ in range(3):
        a, b, c, d = jitted(lucid.tensor(X))
        a.zero_()
        assert np.array_equal(b, 2 * X) and np.array_equal(c, 2 * X.T)
        assert np.array_equal(d, 2 * X.ravel())


def test_an_argument_that_is_returned_is_itself():
    f = lucid.jit(lambda x, y: (x, {"y": y}, x * 2))
    x, y = lucid.tensor(X), lucid.tensor(X, requires_grad=True)
    for _ in range(3):
        a, rest, c = f(x, y)
        assert a is x and rest["y"] is y and np.array_equal(c, 2 * X)
    y.sum().backward()


def test_state_that_is_returned_is_itself():
    state, weight = lucid.zeros(3), lucid.nn.Parameter(lucid.ones(3))

    @lucid.jit
    def f(x):
        state.add_(x)
        return state, weight, state * 1, state[1:]

    for count in (1.0, 2.0, 3.0):
        a, b, c, d = f(lucid.ones(3))
        assert a is state and b is weight and state.tolist() == [count] * 3
        assert c.tolist() == [count] * 3 and d.tolist() == [count] * 2


def add_one(x):
    return x.add_(1.0)


def in_a_view(x):
    x[0].mul_(2.0)
    x.T[1] = x[0, 0] - 1.0
    return x.sum()


def twice(x):
    x.mul_(2.0)
    y = x + 1
    x.copy_(y * y)
    return y


def by_a_mask(x):
    x[x > 2.0] = 0.0
    x.diagonal().sub_(1.0)
    return x.reshape(-1)


PROGRAMS = [add_one, in_a_view, twice, by_a_mask]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("order", ["rows", "columns", "view", "array"])
def test_a_write_to_an_argument_is_one_to_the_callers_tensor(f, order):
    def argument(scale):
        a = scale * X
        if order == "array":
            return a
        if order == "view":
            return lucid.tensor(np.stack([a, a], 1))[:, 1]
        return lucid.tensor(a) if order == "rows" else lucid.tensor(np.array(a.T)).T

    jitted = lucid.jit(f)
    for scale in (1, 2, 3):
        given, plain = argument(scale), lucid.as_tensor(argument(scale))
        for _ in range(2):
            found, expected = jitted(given), f(plain)
            np.testing.assert_array_equal(np.asarray(given), plain.numpy())
            np.testing.assert_array_equal(found, expected)
            if f is add_one and order != "array":
                assert found is given


def test_arguments_in_the_same_memory_are_written_as_eager_code_does():
    def f(x, y):
        x.mul_(y)
        y[0] = 5.0
        return (x + y).sum()

    jitted = lucid.jit(f)
    jitted(lucid.ones(2), lucid.ones(2))
    jitted(lucid.ones(2), lucid.ones(2))
    x, plain = lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 2.0])
    for _ in range(3):
        assert jitted(x, x).item() == f(plain, plain).item() and x.tolist() == plain.tolist()
    base, plain = lucid.arange(3.0), lucid.arange(3.0)
    assert jitted(base[:2], base[1:]).item() == f(plain[:2], plain[1:]).item()
    assert base.tolist() == plain.tolist()


def test_an_argument_that_is_also_state_is_written_as_eager_code_does():
    state = lucid.tensor([1.0, 2.0])
    f = lucid.jit(lambda x: x.add_(1.0).sum() + (state * 10).sum())
    for _ in range(2):
        assert f(lucid.zeros(2)).item() == 2 + 30
    assert f(state).item() == 5 + 50 and state.tolist() == [2.0, 3.0]


def test_views_outside_see_the_write():
    x = lucid.tensor(X)
    column, f = x[:, 0], lucid.jit(add_one)
    for n in (1, 2, 3):
        f(x)
        assert column.tolist() == [n, 3 + n] and x._version >= n


def test_a_graph_that_needs_the_old_value_is_refused():
    f = lucid.jit(add_one)
    f(lucid.ones(3))
    w, x = lucid.ones(3, requires_grad=True), lucid.ones(3)
    y = w * x
    f(x)
    with pytest.raises(lucid.errors.MutationError):
        y.sum().backward()


def test_a_tracked_argument_is_written_and_differentiated():
    f = lucid.jit(lambda x: x.mul_(3.0))
    for _ in range(3):
        leaf = lucid.tensor(X, requires_grad=True)
        y = leaf * 1
        assert f(y) is y
        (y * y).sum().backward()
        np.testing.assert_allclose(leaf.grad, 18 * X)
        with pytest.raises(GraphError, match="a leaf that requires a gradient"):
            f(leaf)
        assert np.array_equal(leaf.detach(), X)
    with lucid.no_grad():
        assert f(leaf) is leaf and np.array_equal(leaf, 3 * X)


def test_under_grad_an_argument_is_still_the_callers():
    f = lucid.jit(lambda x: x.add_(1.0).sum())
    f(lucid.ones(3))
    with pytest.raises(GraphError, match="cannot be modified in place"):
        F.grad(f)(lucid.ones(3))


def test_under_vmap_an_argument_is_a_part_of_the_callers():
    f = lucid.jit(lambda x: x.add_(1.0).sum())
    f(lucid.ones(3))
    for _ in range(3):
        a = lucid.ones(2, 3)
        assert F.vmap(f)(a).tolist() == [6.0, 6.0]
        assert a.tolist() == [[2.0] * 3] * 2


def test_read_only_memory_is_refused():
    a = np.ones(3)
    f = lucid.jit(add_one)
    f(a)
    f(a)
    a.flags.writeable = False
    with pytest.raises(GraphError, match="read-only"):
        f(a)
    assert a.tolist() == [3.0] * 3


def test_a_donated_argument_may_be_written():
    f = lucid.jit(lambda x: x.add_(1.0) * 2, donate_argnums=0)
    for _ in range(3):
        assert f(lucid.ones(3)).tolist() == [4.0] * 3


def test_a_step_through_data_stays_a_write_when_everything_is_hot():
    w, g = lucid.zeros(40_000), lucid.ones(40_000)
    step = lucid.jit(lambda: w.data.add_(g))
    for _ in range(40):
        step()
    fresh = lucid.jit(lambda: w.data.add_(g))
    for _ in range(3):
        fresh()
    assert w[0].item() == w[-1].item() == 43.0


@pytest.mark.parametrize("copy", [lambda x: x.reshape(-1), lambda x: x.contiguous()])
def test_a_write_to_what_is_a_view_of_one_argument_and_a_copy_of_another(copy):
    jitted = lucid.jit(lambda x: copy(x).mul_(2.0).sum())
    base, dense = lucid.tensor(np.arange(9.0).reshape(3, 3)), lucid.tensor(X[:, :2].copy())
    for n in range(1, 4):
        for _ in range(2):
            assert jitted(base[:2, :2]).item() == 16
        jitted(dense)
        assert np.array_equal(dense, X[:, :2] * 2**n)
    assert np.array_equal(base, np.arange(9.0).reshape(3, 3))


@pytest.mark.parametrize(
    "read",
    [
        lambda x, c: c * 1,
        lambda x, c: c.sum(),
        lambda x, c: x + c,
        lambda x, c: c.T * 1,
        lambda x, c: c.reshape(-1).sum(0),
        lambda x, c: c.split(1)[1] * 2,
    ],
)
def test_an_argument_that_is_written_is_a_captured_tensor(read):
    def run(transform):
        c, other = lucid.tensor(X), lucid.tensor(X + 5)
        f = transform(lambda x: (x.add_(1.0), read(x, c))[1])
        return [x.numpy().copy() for x in (*[f(y) for y in (c, c, other, c, other)], c, other)]

    for a, b in zip(run(lucid.jit), run(lambda f: f), strict=True):
        assert np.array_equal(a, b)


def test_a_view_of_what_a_settled_run_has_written_stays_writable():
    c, base = lucid.zeros(2, 2), lucid.tensor(np.arange(16.0).reshape(4, 4))
    d = c.T

    @lucid.jit
    def f(x, y):
        c.add_(1.0)
        x.add_(1.0)
        d.mul_(2.0)
        return x * 1

    apart = [lucid.ones(2, 2), lucid.ones(2, 2)]
    woven = [base[::2, ::2], base[1::2, 1::2]]
    for args in (woven, woven, apart, woven):
        f(*args)
    c.add_(1.0)
    assert np.array_equal(c, np.full((2, 2), 31.0)) and np.array_equal(d, c)


@pytest.mark.parametrize("since", [0, 1, 3])
@pytest.mark.parametrize("make", [lambda x: x.data, lambda x: x.data.view(-1)])
def test_writes_to_tensors_that_were_given_one_memory(make, since):
    """`b.data = a.data` makes neither a view of the other."""
    a, b = lucid.tensor([1.0, 2.0]), lucid.tensor([3.0, 0.5])
    x, y = np.array([1.0, 2.0]), np.array([3.0, 0.5])

    @lucid.jit
    def step():
        a.add_(1.0)
        b.mul_(2.0)

    for i in range(5):
        if i == since:
            b.data, y = make(a), x
        step()
        x += 1.0
        y *= 2.0
        np.testing.assert_allclose(a.numpy(), x)
        np.testing.assert_allclose(b.numpy(), y)


@pytest.mark.parametrize("since", [0, 12])
def test_an_update_of_parameters_that_share_memory_takes_both_steps(since):
    a, b = (lucid.tensor([2.0, -1.0], requires_grad=True) for _ in range(2))
    optimizer, x = lucid.optim.SGD([a, b], lr=0.5), np.array([2.0, -1.0])
    for i in range(20):
        if i == since:
            b.data = a.data
        optimizer.zero_grad()
        (a * lucid.tensor([1.0, 2.0]) + b * 4.0).sum().backward()
        optimizer.step()
        x -= 0.5 * np.array([1.0, 2.0])
        if i >= since:
            x -= 0.5 * 4.0
            np.testing.assert_allclose(b.detach().numpy(), x)
        np.testing.assert_allclose(a.detach().numpy(), x)


@pytest.mark.parametrize("view", [
    lambda x: x[:1].expand(2, 3), lambda x: x.as_strided((2, 3), (1, 1)),
])  # fmt: skip
def test_an_argument_with_elements_in_the_same_memory_cannot_be_written(view):
    base = lucid.tensor(X)
    step = lucid.jit(lambda x: x.T[0].add_(1.0) * 2.0)
    for _ in range(2):
        with pytest.raises(GraphError, match="clone"):
            step(view(base))
        np.testing.assert_array_equal(base.numpy(), X)


def test_a_write_is_seen_through_a_captured_tensor_of_the_same_array_at_every_call():
    memory = np.zeros(2, "float32")
    one, other = lucid.from_numpy(memory), lucid.from_numpy(memory)

    @lucid.jit
    def step(x):
        one.add_(x)
        return other * 1.0

    for k in range(1, 5):
        assert step(lucid.ones(2)).tolist() == [k, k]
    assert memory.tolist() == [4, 4]
