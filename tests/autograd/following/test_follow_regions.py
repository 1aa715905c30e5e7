"""A composition that a followed step expects is recognized without the key of its arguments."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.tape.tiering import Tiering


def train(batches: list[np.ndarray]) -> list[np.ndarray]:
    """Return the gradients of every step of a cell that runs four times a step."""
    lucid.manual_seed(0)
    cell = nn.LSTMCell(3, 4)
    found = []
    for batch in batches:
        state = None
        x = lucid.tensor(batch)
        for _ in range(4):
            state = cell(x, state)
        (state[0] ** 2).sum().backward()
        found += [p.grad.numpy().copy() for p in cell.parameters()]
        cell.zero_grad()
    return found


@pytest.mark.parametrize("late", [2, 24])
def test_a_cell_that_gets_another_batch_size_follows_no_region_of_the_old_one(late, monkeypatch):
    """A layer before it is a Region too: a wrong one would compute with the wrong sizes."""
    monkeypatch.setattr(Tiering, "threshold", 2)
    rng = np.random.default_rng(0)
    sizes = [5] * late + [2, 5, 2, 2, 5, 5]
    batches = [rng.normal(size=(n, 3)).astype("float32") for n in sizes]
    hot = train(batches)
    monkeypatch.setattr(Tiering, "enabled", False)
    for a, b in zip(hot, train(batches), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_a_region_with_another_number_is_not_the_expected_one(monkeypatch):
    """The numbers of a composition (`beta`, `eps`) belong to the Region."""
    monkeypatch.setattr(Tiering, "threshold", 2)
    w = lucid.tensor(np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4), requires_grad=True)
    for step in range(40):
        beta = 1.0 if step < 30 else 3.0
        lucid.nn.functional.softplus(w @ w.T, beta).sum().backward()
        got, w.grad = w.grad.numpy().copy(), None
        v = w.detach().numpy().astype("float64")
        slope = 1 / (1 + np.exp(-beta * (v @ v.T)))
        np.testing.assert_allclose(got, (slope + slope.T) @ v, rtol=1e-4, atol=1e-5)
