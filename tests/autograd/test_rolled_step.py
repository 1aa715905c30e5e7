"""A repeated step whose tape is a long Python loop runs as the program of that loop."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
from lucid.autograd.following import rolled_step
from lucid.compiler.passes.loops import MIN_EQUATIONS

STEPS, H = 200, 0.02


def loss_of(a, y, steps=STEPS, shift=0.0):
    """Runge and Kutta through y' = tanh(a y) + sin(t), with numbers that differ at every step."""
    states = []
    for i in range(steps):
        t = i * H + shift
        k1 = lucid.tanh(a @ y) + math.sin(t)
        k2 = lucid.tanh(a @ (y + H / 2 * k1)) + math.sin(t + H / 2)
        y = y + H * k2 + H / 6 * (k1 - 2 * k2)
        states.append(y)
    return (y * y).sum(), states


def expected(a, y, **options):
    """The loss and the gradients by finite differences of a NumPy program."""

    def value(a, y):
        for i in range(STEPS):
            t = i * H + options.get("shift", 0.0)
            k1 = np.tanh(a @ y) + math.sin(t)
            k2 = np.tanh(a @ (y + H / 2 * k1)) + math.sin(t + H / 2)
            y = y + H * k2 + H / 6 * (k1 - 2 * k2)
        return (y * y).sum(), y

    found, last = value(a, y)
    gradient = np.zeros_like(y)
    for i in range(len(y)):
        d = np.zeros_like(y)
        d[i] = 1e-6
        gradient[i] = (value(a, y + d)[0] - value(a, y - d)[0]) / 2e-6
    return found, last, gradient


@pytest.fixture
def built(monkeypatch):
    """The rolled programs that were built."""
    found = []
    build = rolled_step.rolled_program

    def counted(*args):
        found.append(build(*args))
        return found[-1]

    monkeypatch.setattr("lucid.autograd.following.step_sequence.rolled_program", counted)
    monkeypatch.setattr("lucid.tape.tiering.Tiering.threshold", 4)
    return found


def test_a_long_loop_that_repeats_is_rolled_and_gives_the_same(built):
    rng = np.random.default_rng(0)
    for _ in range(8):
        a, y = rng.normal(size=(4, 4)) / 2, rng.normal(size=4)
        u, v = (lucid.tensor(x, requires_grad=True) for x in (a, y))
        loss, states = loss_of(u, v)
        last = states[-1]
        del states
        loss.backward()
        value, state, gradient = expected(a, y)
        np.testing.assert_allclose(loss.item(), value, rtol=1e-10)
        np.testing.assert_allclose(v.grad.numpy(), gradient, rtol=1e-5)
        np.testing.assert_allclose(last.detach().numpy(), state, rtol=1e-10)
    assert len(built) == 1
    assert len(built[0].program.graph.equations) < MIN_EQUATIONS / 4


def test_other_numbers_are_another_program(built):
    rng = np.random.default_rng(1)
    a, y = rng.normal(size=(4, 4)) / 2, rng.normal(size=4)
    for number in range(10):
        shift = 0.0 if number < 7 else number
        u, v = (lucid.tensor(x, requires_grad=True) for x in (a, y))
        loss, _ = loss_of(u, v, shift=shift)
        loss.backward()
        value, _, gradient = expected(a, y, shift=shift)
        np.testing.assert_allclose(loss.item(), value, rtol=1e-10)
        np.testing.assert_allclose(v.grad.numpy(), gradient, rtol=1e-5)


def test_a_look_inside_the_loop_gives_the_value(built):
    rng = np.random.default_rng(2)
    a, y = rng.normal(size=(4, 4)) / 2, rng.normal(size=4)
    for number in range(8):
        u, v = (lucid.tensor(x, requires_grad=True) for x in (a, y))
        loss, states = loss_of(u, v)
        if number >= 6:
            state = expected(a, y)[1]
            np.testing.assert_allclose(states[-1].detach().numpy(), state, rtol=1e-10)
        loss.backward()
        np.testing.assert_allclose(v.grad.numpy(), expected(a, y)[2], rtol=1e-5)
        if number >= 4:
            np.testing.assert_allclose(states[-1].detach().numpy(), expected(a, y)[1], rtol=1e-10)
