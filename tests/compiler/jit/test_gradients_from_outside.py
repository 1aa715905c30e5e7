"""`.grad` of tensors from outside in a jitted function: the tensor that is there at each call."""

from __future__ import annotations

import numpy as np
import pytest

import lucid

W, V = np.array([1.0, 2.0]), np.array([3.0, 5.0])


class Calls:
    """Three calls of a jitted function of two leaves, each with other gradients."""

    def __init__(self, function):
        w, v = self.leaves = [lucid.tensor(x, requires_grad=True) for x in (W, V)]
        self.jitted = lucid.jit(lambda: function(w, v))

    def __iter__(self):
        """Yield the leaves, their gradients before the call and what these were, and the result."""
        w, v = self.leaves
        for i in range(1, 4):
            w.grad = v.grad = None
            (w * w * i + v * v * v).sum().backward()
            before, values = (w.grad, v.grad), (2 * W * i, 3 * V**2)
            result = self.jitted()
            yield w, v, before, values, result


def equal(x, y):
    np.testing.assert_allclose(x.numpy(), y)


def test_a_gradient_that_is_only_read_stays_the_same_tensor():
    for w, v, (g, h), (a, b), result in Calls(lambda w, v: w.grad * v.grad):
        assert w.grad is g and v.grad is h
        equal(result, a * b)


def test_a_gradient_that_is_returned_is_that_of_the_call():
    for w, _, (g, _), (a, _), result in Calls(lambda w, v: w.grad):
        assert result is g is w.grad
        equal(result, a)


def test_a_gradient_that_is_cleared_and_returned_is_that_of_the_call():
    def take(w, v):
        g, w.grad = w.grad, None
        return g

    for w, _, _, (a, _), result in Calls(take):
        assert w.grad is None
        equal(result, a)


@pytest.mark.parametrize("write", [
    lambda g: g.mul_(0.5), lambda g: g.data.mul_(0.5), lambda g: g.view(-1).mul_(0.5),
    lambda g: g.detach().copy_(g * 0.5),
])  # fmt: skip
def test_a_gradient_is_written_in_its_own_memory(write):
    kept = []
    for w, _, (g, _), (a, _), _ in Calls(lambda w, v: [write(w.grad)] and None):
        assert w.grad is g
        kept.append((g, a * 0.5))
        for x, want in kept:  # those of earlier calls too
            equal(x, want)


def test_gradients_are_exchanged_and_shared():
    def exchange(w, v):
        w.grad, v.grad = v.grad, w.grad

    for w, v, (g, h), (a, b), _ in Calls(exchange):
        assert w.grad is h and v.grad is g
        equal(w.grad, b)
        equal(v.grad, a)

    def share(w, v):
        v.grad = w.grad

    for w, v, (g, _), (a, _), _ in Calls(share):
        assert w.grad is g is v.grad
        equal(g, a)


def test_a_tensor_from_outside_becomes_the_gradient():
    buffer = lucid.tensor([9.0, 8.0], dtype="float64")

    def assign(w, v):
        w.grad = buffer

    for w, _, _, _, _ in Calls(assign):
        assert w.grad is buffer
        equal(buffer, [9.0, 8.0])


def test_backward_adds_to_a_gradient_in_its_memory():
    for w, v, (g, h), (a, b), _ in Calls(lambda w, v: (w * v).sum().backward()):
        assert w.grad is g and v.grad is h
        equal(g, a + V)
        equal(h, b + W)


def test_gradients_that_are_views_of_one_buffer_are_added_up_there():
    w, v = (lucid.tensor(x, requires_grad=True) for x in (W, V))
    buffer = lucid.zeros(4, dtype="float64")
    w.grad, v.grad = buffer[:2], buffer[2:]
    step = lucid.jit(lambda: (w * v).sum().backward())
    for i in range(1, 4):
        step()
        equal(buffer, i * np.concatenate([V, W]))
        equal(w.grad, i * V)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_an_update_leaves_the_gradient_tensors(name):
    w = lucid.tensor(W, requires_grad=True)
    optimizer = getattr(lucid.optim, name)([w], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (w * V).sum().backward()
        g = w.grad
        optimizer.step()
        assert w.grad is g
        equal(g, V)
