"""Promises of backward, grad and modes that are easily broken."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.func as F
from lucid import autograd
from lucid.errors import ArgumentError, GraphError, LucidError


def leaf(*values):
    return lucid.tensor(list(values), requires_grad=True)


@pytest.mark.parametrize("f", [lucid.floor, lucid.sign, lucid.round, lambda x: x // 2.0])
def test_the_gradient_of_a_piecewise_constant_function_is_zero(f):
    x, unused = leaf(1.4, 2.6), leaf(1.0)
    np.testing.assert_array_equal(autograd.grad(f(x).sum(), x).numpy(), [0, 0])
    (g,) = autograd.grad(f(x).sum() * 3, [x], allow_unused=True)
    np.testing.assert_array_equal(g.numpy(), [0, 0])
    (g,) = autograd.grad(lucid.jit(lambda a: f(a).sum())(x), [x])
    np.testing.assert_array_equal(g.numpy(), [0, 0])
    with pytest.raises(GraphError, match="was not used"):
        autograd.grad(f(x).sum(), unused)
    with pytest.raises(GraphError, match="was not used"):
        autograd.grad((x.detach() * unused).sum(), x)
    assert autograd.grad(f(x).sum(), unused, allow_unused=True) is None


SECOND_USES = {
    "vjp": lambda x, m: F.vjp(lambda a: a * m, x.detach())[1],
    "linearize": lambda x, m: F.linearize(lambda a: a * m, x.detach())[1],
}


@pytest.mark.parametrize("name", SECOND_USES)
def test_a_pullback_that_needs_a_freed_graph_says_so(name):
    x = leaf(1.0, 2.0)
    m = x * x
    apply = SECOND_USES[name](x, m)
    m.sum().backward()
    with pytest.raises(GraphError, match="retain_graph=True"):
        apply(lucid.ones(2))


def test_a_result_of_a_freed_graph_is_still_a_value():
    x = leaf(1.0, 2.0)
    m = x * x
    m.sum().backward()
    np.testing.assert_array_equal((m.detach() * 2).numpy(), [2, 8])
    with pytest.raises(GraphError, match="retain_graph=True"):
        lucid.jit(lambda a: (a * m).sum())(lucid.ones(2)).backward()
    with pytest.raises(GraphError, match="retain_graph=True"):
        F.vmap(lambda a: (a * m).sum())(lucid.ones(3, 2)).sum().backward()


def test_an_array_that_does_not_fit_into_memory_is_a_memory_error():
    one = lucid.ones(1, 1)
    calls = [
        lambda: lucid.zeros(10**15),
        lambda: lucid.rand(10**15),
        lambda: one.expand(10**8, 10**8) + 1,
        lambda: lucid.jit(lambda x: x.expand(10**8, 10**8) * x + 1)(one),
    ]
    for call in calls:
        with pytest.raises(MemoryError) as caught:
            call()
        assert isinstance(caught.value, LucidError) and not isinstance(caught.value, TypeError)
        assert "[test_smaller_promises.py:" in str(caught.value)


def test_a_zero_dimensional_tensor_has_no_length_and_no_elements():
    x = lucid.tensor(1.0)
    for use in (len, iter, list, lambda x: max(*x)):
        with pytest.raises(TypeError) as caught:
            use(x)
        assert type(caught.value) is ArgumentError


def test_keep_grad_is_handed_on_to_what_is_computed_from_it():
    x = lucid.Tensor([1.0, 2.0, 3.0], requires_grad=True, keep_grad=True)
    w = leaf(1.0, 1.0)
    part, other = x[1:], w * 2.0
    square = part * part
    assert x.keep_grad and part.keep_grad and square.keep_grad
    assert not other.keep_grad and not w.keep_grad
    (square * other).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 8, 12])
    np.testing.assert_array_equal(part.grad.numpy(), [8, 12])
    np.testing.assert_array_equal(square.grad.numpy(), [2, 2])
    assert other.grad is None and w.grad.tolist() == [8, 18]


def test_keep_grad_of_a_tensor_without_a_gradient_does_nothing():
    x = lucid.Tensor([1.0], keep_grad=True)
    assert not x.keep_grad and not (x * 2).keep_grad


def test_detect_anomaly_looks_into_compiled_functions():
    def difference(x):
        y = lucid.log(x)
        return (y / y).sum()

    line = difference.__code__.co_firstlineno + 2
    jitted, slope = lucid.jit(difference), lucid.jit(F.grad(difference))
    for _ in range(3):
        jitted(lucid.ones(2)), slope(lucid.ones(2))
    later = jitted(x := leaf(0.0, 1.0))
    for y in (lambda: jitted(x), lambda: later):
        with autograd.detect_anomaly(), pytest.raises(GraphError) as caught:
            y().backward()
        assert f"test_smaller_promises.py:{line}" in str(caught.value)
    assert np.isnan(jitted(x).item())


def test_detect_anomaly_checks_a_compiled_step():
    w = leaf(0.0, 1.0)

    @lucid.jit
    def step(x):
        w.grad = None
        (lucid.sqrt(w) * x / lucid.sqrt(w)).sum().backward()
        return w.grad

    step(lucid.ones(2)), step(lucid.ones(2))
    with autograd.detect_anomaly(), pytest.raises(GraphError, match="nan in"):
        step(lucid.ones(2))
    assert np.isnan(step(lucid.ones(2)).numpy()[0])
