"""A repeated step whose tape is a long Python loop runs as the program of that loop."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
from lucid.autograd.following import rolled_step
from lucid.autograd.following.step_run import StepRun
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
    """The rolled Graphs that were built."""
    found = []
    build = rolled_step.rolled_graph

    def counted(*args):
        found.append(build(*args)[0])
        return build(*args)

    monkeypatch.setattr("lucid.autograd.following.step_sequence.rolled_graph", counted)
    monkeypatch.setattr("lucid.tape.tiering.Tiering.threshold", 4)
    return found


@pytest.fixture
def joins(monkeypatch):
    """Whether each update ran in one program with its step."""
    found = []
    join = StepRun.join

    def counted(run, path):
        found.append(join(run, path))
        return found[-1]

    monkeypatch.setattr(StepRun, "join", counted)
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
    assert len(built[0].equations) < MIN_EQUATIONS / 4


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


CELLS, BATCH, WIDTH = 120, 3, 4


def cell_state(xs, weights):
    """The last state of an LSTM, by NumPy."""
    ih, hh, bias_ih, bias_hh = weights
    h = c = np.zeros((BATCH, WIDTH))
    for x in xs:
        i, f, g, o = np.split(x @ ih.T + bias_ih + h @ hh.T + bias_hh, 4, 1)
        i, f, o = (1 / (1 + np.exp(-z)) for z in (i, f, o))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
    return h


def slope(xs, weights, number, at):
    """The derivative of the sum of squares of the last state, by finite differences."""
    ends = []
    for h in (1e-6, -1e-6):
        moved = [w.copy() for w in weights]
        moved[number][at] += h
        ends.append((cell_state(xs, moved) ** 2).sum())
    return (ends[0] - ends[1]) / 2e-6


@pytest.mark.parametrize("metric", [False, True])
def test_cells_in_a_loop_are_rolled_with_the_optimizers_update(built, joins, metric):
    """Their inputs are arrays of their own, and a metric of a state is computed beside the loss."""
    rng = np.random.default_rng(3)
    cell = lucid.nn.LSTMCell(WIDTH, WIDTH, dtype="float64")
    optimizer = lucid.optim.SGD(cell.parameters(), lr=0.1)
    for _ in range(12):
        rows = [rng.normal(size=(BATCH, WIDTH)) for _ in range(CELLS)]
        before = [p.detach().numpy().copy() for p in cell.parameters()]
        state = None
        for x in [lucid.tensor(row) for row in rows]:
            state = cell(x, state)
        if metric:
            with lucid.no_grad():
                largest = state[0].abs().max()
        loss = (state[0] ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        expected_state = cell_state(rows, before)
        np.testing.assert_allclose(loss.item(), (expected_state**2).sum(), rtol=1e-10)
        np.testing.assert_allclose(state[0].detach().numpy(), expected_state, rtol=1e-10)
        if metric:
            np.testing.assert_allclose(largest.item(), abs(expected_state).max(), rtol=1e-10)
        for number, at in ((0, (1, 2)), (1, (5, 1)), (2, (3,)), (3, (9,))):
            moved = before[number][at] - 0.1 * slope(rows, before, number, at)
            found = list(cell.parameters())[number].detach().numpy()[at]
            np.testing.assert_allclose(found, moved, rtol=1e-6)
    assert len(built) == 1
    assert len(built[0].equations) < MIN_EQUATIONS / 4
    assert sum(joins) >= 6


@pytest.mark.parametrize("order", ["forward", "backward", "shuffled"])
def test_arrays_that_a_loop_reads_one_by_one(built, order):
    steps = 420
    rng = np.random.default_rng(4)
    second = np.arange(steps)[:: -1 if order == "backward" else 1]
    if order == "shuffled":
        second = rng.permutation(steps)
    for _ in range(8):
        a, rows = rng.normal(size=4), rng.uniform(-1, 1, size=(steps, 4))
        u, xs = lucid.tensor(a, requires_grad=True), [lucid.tensor(row) for row in rows]
        y, z = u * 0.5, a * 0.5
        slope = np.full(4, 0.5)
        for i in range(steps):
            y = lucid.tanh(u * y + u * xs[i]) + y * xs[second[i]]
            inner = np.tanh(a * z + a * rows[i])
            slope = (1 - inner**2) * (z + a * slope + rows[i]) + slope * rows[second[i]]
            z = inner + z * rows[second[i]]
        y.sum().backward()
        np.testing.assert_allclose(y.detach().numpy(), z, rtol=1e-10)
        np.testing.assert_allclose(u.grad.numpy(), slope, rtol=1e-8)
    assert len(built) == (order == "forward")
