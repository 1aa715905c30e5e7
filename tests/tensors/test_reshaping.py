"""In-place changes of shape and history: the elements, the views and the gradients stay right."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import AxisError, GraphError
from tests.compiled import compiled

X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("unsqueeze_", (1,), X[:, None]),
        ("unsqueeze_", (-1,), X[..., None]),
        ("transpose_", (0, 1), X.T),
        ("swapaxes_", (0, 1), X.T),
        ("swapdims_", (1, 0), X.T),
        ("t_", (), X.T),
        ("squeeze_", (), X),
    ],
)
def test_the_tensor_itself_has_another_shape(name, args, expected):
    x = lucid.tensor(X)
    assert getattr(x, name)(*args) is x
    np.testing.assert_array_equal(x, expected)
    y = lucid.ones(1, 2, 1).squeeze_(0)
    assert y.shape == (2, 1)


def test_gradients_pass_through_a_change_of_shape():
    w = lucid.tensor(X, requires_grad=True)
    y = w * 2
    before = y * y
    y.t_().unsqueeze_(0)
    assert y.shape == (1, 3, 2)
    (y * lucid.tensor(X.T)).sum().backward(retain_graph=True)
    np.testing.assert_array_equal(w.grad, 2 * X)
    before.sum().backward()
    np.testing.assert_array_equal(w.grad, 2 * X + 8 * X)


def test_views_made_before_and_after_share_the_memory():
    x = lucid.tensor(X)
    row = x[0]
    x.t_()
    column = x[:, 1]
    x.mul_(10.0)
    np.testing.assert_array_equal(row, 10 * X[0])
    row.fill_(7.0)
    np.testing.assert_array_equal(x[:, 0], [7.0, 7.0, 7.0])
    column.zero_()
    np.testing.assert_array_equal(x, np.stack([[7.0] * 3, [0.0] * 3], 1))


def test_writes_to_views_are_recorded_across_a_change_of_shape():
    w = lucid.tensor(X, requires_grad=True)
    y = w * 1.0
    row = y[0]
    y.unsqueeze_(0)
    row.mul_(3.0)
    (y * y).sum().backward()
    expected = 2 * X
    expected[0] *= 9
    np.testing.assert_array_equal(w.grad, expected)


def test_inside_jit_and_vmap():
    def f(x):
        y = x * 2
        y.unsqueeze_(0).transpose_(0, 1)
        return y.sum(0)

    x = lucid.tensor(X)
    np.testing.assert_array_equal(compiled(f)(x), 2 * X.sum(0, keepdims=True))
    np.testing.assert_array_equal(
        lucid.func.vmap(f)(x), np.stack([np.asarray(f(row)) for row in x])
    )
    np.testing.assert_array_equal(lucid.func.grad(lambda x: f(x).sum())(x), np.full((2, 3), 2.0))
    outside = lucid.tensor(X)
    with pytest.raises(GraphError, match="cannot change"):
        lucid.jit(lambda: outside.t_())()
    with pytest.raises(GraphError, match="clone"):
        lucid.func.vmap(lambda x: x.unsqueeze_(0))(x)


def test_what_is_refused_changes_nothing():
    x = lucid.tensor(X)
    with pytest.raises(AxisError):
        x.unsqueeze_(5)
    leaf = lucid.tensor(X, requires_grad=True)
    with pytest.raises(GraphError, match="leaf"):
        leaf.t_()
    assert x.shape == leaf.shape == (2, 3) and leaf.requires_grad


def test_detach_forgets_the_history_in_place():
    w = lucid.tensor(X, requires_grad=True)
    y = w * 2
    assert y.detach_() is y and not y.requires_grad and y.is_leaf
    (y * w).sum().backward()
    np.testing.assert_array_equal(w.grad, 2 * X)
    with pytest.raises(GraphError, match="view"):
        (w * 2)[0].detach_()

    @compiled
    def f(w):
        return lucid.func.grad(lambda w: ((w * 2).detach_() * w).sum())(w)

    np.testing.assert_array_equal(f(lucid.tensor(X)), 2 * X)


def test_truncated_backpropagation_detaches_the_state():
    w = lucid.tensor(0.5, requires_grad=True)
    h = lucid.tensor(1.0)
    for _ in range(3):
        h = h * w
        h.backward()
        h.detach_()
    assert w.grad.item() == 1.0 + 0.5 + 0.25
