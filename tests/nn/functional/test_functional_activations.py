"""Activations as users call them: at extremes, at kinks, in place, at random."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
import lucid.nn.functional as F
from lucid.errors import ArgumentError, GraphError

INF = math.inf
FAR = [-INF, -1e4, 1e4, INF]


def derivatives(f, x, dtype="float32"):
    """The value, the first and the second derivative at every point."""
    x = lucid.tensor(np.asarray(x, dtype))
    first = lucid.func.vmap(lucid.func.grad(f))
    second = lucid.func.vmap(lucid.func.grad(lucid.func.grad(f)))
    return [y.numpy().tolist() for y in (f(x), first(x), second(x))]


@pytest.mark.parametrize(
    ("f", "value", "slope"),
    [
        (F.relu, [0, 0, 1e4, INF], [0, 0, 1, 1]),
        (F.relu6, [0, 0, 6, 6], [0, 0, 0, 0]),
        (F.elu, [-1, -1, 1e4, INF], [0, 0, 1, 1]),
        (F.celu, [-1, -1, 1e4, INF], [0, 0, 1, 1]),
        (F.hardtanh, [-1, -1, 1, 1], [0, 0, 0, 0]),
        (F.hardsigmoid, [0, 0, 1, 1], [0, 0, 0, 0]),
        (F.hardshrink, FAR, [1, 1, 1, 1]),
        (F.softplus, [0, 0, 1e4, INF], [0, 0, 1, 1]),
        (F.logsigmoid, [-INF, -1e4, 0, 0], [1, 1, 0, 0]),
        (F.tanhshrink, [-INF, -9999, 9999, INF], [1, 1, 1, 1]),
        (F.sigmoid, [0, 0, 1, 1], [0, 0, 0, 0]),
        (F.tanh, [-1, -1, 1, 1], [0, 0, 0, 0]),
    ],
    ids=lambda f: getattr(f, "__name__", ""),
)
def test_values_and_derivatives_far_from_zero(f, value, slope):
    assert derivatives(f, FAR) == [value, slope, [0, 0, 0, 0]]


@pytest.mark.parametrize("f", [F.gelu, lambda x: F.gelu(x, "tanh"), F.silu, F.mish, F.hardswish])
def test_gates_are_zero_or_the_identity_far_from_zero(f):
    assert derivatives(f, [-1e4, 1e4]) == [[0, 1e4], [0, 1], [0, 0]]


def test_softsign_loses_nothing_far_from_zero():
    """1 / (1 + |x|)², which x / (1 + |x|) differentiated would find as a difference of equals."""
    value, slope, bend = derivatives(F.softsign, [*FAR, 0.0])
    np.testing.assert_allclose(value, [-1, -1e4 / 10001, 1e4 / 10001, 1, 0], rtol=1e-7)
    np.testing.assert_allclose(slope, [0, 1 / 10001**2, 1 / 10001**2, 0, 1], rtol=1e-6)
    np.testing.assert_allclose(bend[:4], [0, 2 / 10001**3, -2 / 10001**3, 0], rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_softplus_does_not_overflow_below_a_high_threshold(dtype):
    x = lucid.tensor(np.array([-1000.0, 15.0, 90.0, 1000.0], dtype))
    y = F.softplus(x, threshold=2000.0)
    np.testing.assert_array_equal(y.numpy(), np.logaddexp(x.numpy().astype("f8"), 0).astype(dtype))


def test_gelu_is_exact_far_below_zero():
    """-5 Φ(-5) with Φ(-5) = 2.8665157187919333e-07, where 1 + erf has no digit left."""
    y = F.gelu(lucid.tensor([-5.0]))
    np.testing.assert_allclose(y.numpy(), [-5 * 2.8665157187919333e-07], rtol=1e-5)


@pytest.mark.parametrize(
    ("f", "at", "slope"),
    [
        (F.relu6, [0.0, 6.0], [0, 0]),
        (F.hardtanh, [-1.0, 1.0], [0, 0]),
        (F.leaky_relu, [0.0], [0.01]),
        (F.elu, [0.0], [1]),
        (F.hardsigmoid, [-3.0, 3.0], [0, 0]),
        (F.hardswish, [-3.0, 3.0], [0, 1]),
        (F.hardshrink, [-0.5, 0.5], [0, 0]),
        (F.softshrink, [-0.5, 0.5], [0, 0]),
        (lambda x: F.threshold(x, 1.0, 2.0), [1.0], [0]),
    ],
)
def test_derivatives_at_kinks_are_pytorchs(f, at, slope):
    np.testing.assert_allclose(derivatives(f, at)[1], slope, rtol=1e-6)


@pytest.mark.parametrize(
    "f", [F.relu, F.relu6, F.hardtanh, F.hardshrink, F.softshrink, F.softplus, F.softsign, F.elu]
)
def test_nan_stays_nan(f):
    assert math.isnan(f(lucid.tensor([math.nan])).item())


# In place

IN_PLACE = [
    (F.relu, F.relu_), (F.leaky_relu, F.leaky_relu_), (F.elu, F.elu_), (F.selu, F.selu_),
    (F.celu, F.celu_), (F.hardtanh, F.hardtanh_), (F.rrelu, F.rrelu_),
    (lambda x: F.threshold(x, 0.5, 2.0), lambda x: F.threshold_(x, 0.5, 2.0)),
    (F.silu, lambda x: F.silu(x, inplace=True)), (F.mish, lambda x: F.mish(x, inplace=True)),
    (F.relu6, lambda x: F.relu6(x, True)), (F.hardswish, lambda x: F.hardswish(x, True)),
    (F.hardsigmoid, lambda x: F.hardsigmoid(x, True)), (F.elu, lambda x: F.elu(x, 1.0, True)),
]  # fmt: skip


@pytest.mark.parametrize(("f", "f_"), IN_PLACE)
def test_in_place_forms_write_into_their_operand(f, f_):
    x = lucid.tensor([-2.0, -0.3, 0.4, 3.5])
    expected = f(x).numpy()
    assert f_(x) is x
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize(("f", "f_"), IN_PLACE)
def test_in_place_forms_have_the_same_derivative(f, f_):
    grads = []
    for g in (f, f_):
        x = lucid.tensor([-2.0, -0.3, 0.4, 3.5], requires_grad=True)
        (g(x * 1.0) * lucid.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
        grads.append(x.grad.numpy())
    np.testing.assert_array_equal(*grads)


def test_a_leaf_cannot_be_changed_in_place():
    with pytest.raises(GraphError, match="elu_.*leaf"):
        F.elu(lucid.ones(3, requires_grad=True), inplace=True)
    with pytest.raises(ArgumentError, match="list cannot be written in place"):
        F.relu([1.0], inplace=True)


# At random


def test_rrelu_draws_a_slope_for_every_element_when_training():
    lucid.manual_seed(0)
    y = F.rrelu(-lucid.ones(10000), 0.2, 0.6, training=True).numpy()
    assert 0.2 <= -y.max() and -y.min() < 0.6 and abs(-y.mean() - 0.4) < 0.01
    assert F.rrelu(lucid.tensor([2.0]), training=True).item() == 2.0


def test_gumbel_softmax_draws_classes_by_their_probabilities():
    lucid.manual_seed(0)
    p = np.array([0.1, 0.2, 0.7])
    logits = lucid.tensor(np.log(p)).expand(20000, 3)
    drawn = F.gumbel_softmax(logits, hard=True).numpy()
    assert set(np.unique(drawn.round(6))) == {0.0, 1.0}
    np.testing.assert_allclose(drawn.mean(0), p, atol=0.015)


def test_hard_gumbel_softmax_has_the_gradient_of_the_soft_one():
    gradients = []
    for hard in (False, True):
        lucid.manual_seed(3)
        x = lucid.tensor([0.3, -0.2, 0.9], requires_grad=True)
        (F.gumbel_softmax(x, hard=hard) * lucid.tensor([1.0, 2.0, 4.0])).sum().backward()
        gradients.append(x.grad.numpy())
    np.testing.assert_allclose(*gradients, rtol=1e-6)
    assert np.abs(gradients[0]).max() > 0


# Compiled


@pytest.mark.parametrize(
    "f", [F.gelu, F.silu, F.mish, F.elu, F.hardswish, F.softplus, F.logsigmoid, F.softsign]
)
def test_an_activation_and_its_gradient_are_one_kernel(f):
    def value_and_gradient(x, ct):
        y, pull = lucid.func.vjp(f, x)
        return y, pull(ct)

    x = lucid.ones(8, 16)
    assert len(lucid.jit(value_and_gradient).kernels(x, x)) == 1
