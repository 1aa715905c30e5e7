"""lucid.signal.windows, against PyTorch's formulas."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import LucidError
from lucid.signal import windows

PHASE = 2 * np.pi * np.arange(9)

# name -> settings, and the window of n points with a last phase of `p` points
FORMULAS = {
    "bartlett": ({}, lambda n, p: 1 - np.abs(2 * np.arange(n) / (p - 1) - 1)),
    "cosine": ({}, lambda n, p: np.sin(np.pi * (np.arange(n) + 0.5) / p)),
    "hann": ({}, lambda n, p: 0.5 - 0.5 * np.cos(PHASE[:n] / (p - 1))),
    "hamming": ({}, lambda n, p: 0.54 - 0.46 * np.cos(PHASE[:n] / (p - 1))),
    "general_hamming": ({"alpha": 0.6}, lambda n, p: 0.6 - 0.4 * np.cos(PHASE[:n] / (p - 1))),
    "general_cosine": (
        {"a": [0.5, 0.3, 0.2]},
        lambda n, p: (
            0.5 - 0.3 * np.cos(PHASE[:n] / (p - 1)) + 0.2 * np.cos(2 * PHASE[:n] / (p - 1))
        ),
    ),
    "gaussian": ({"std": 2.0}, lambda n, p: np.exp(-(((np.arange(n) - (p - 1) / 2) / 2) ** 2) / 2)),
    "exponential": ({"tau": 3.0}, lambda n, p: np.exp(-np.abs(np.arange(n) - (p - 1) / 2) / 3)),
    "blackman": (
        {},
        lambda n, p: (
            0.42 - 0.5 * np.cos(PHASE[:n] / (p - 1)) + 0.08 * np.cos(2 * PHASE[:n] / (p - 1))
        ),
    ),
    "kaiser": (
        {"beta": 5.0},
        lambda n, p: np.i0(5 * np.sqrt(1 - (2 * np.arange(n) / (p - 1) - 1) ** 2)) / np.i0(5.0),
    ),
    "nuttall": (
        {},
        lambda n, p: sum(
            c * np.cos(k * PHASE[:n] / (p - 1))
            for k, c in enumerate([0.3635819, -0.4891775, 0.1365995, -0.0106411])
        ),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_window_is_its_formula_symmetric_and_periodic(name):
    settings, formula = FORMULAS[name]
    function = getattr(windows, name)
    for sym, points in ((True, 7), (False, 8)):
        found = function(7, sym=sym, dtype=lucid.float64, **settings)
        np.testing.assert_allclose(found.numpy(), formula(7, points), rtol=1e-6, atol=1e-7)
    assert function(7, **settings).dtype == lucid.float32
    assert function(7, requires_grad=True, device="cpu", **settings).requires_grad


def test_wrong_arguments_raise():
    with pytest.raises(LucidError, match="hann: M=-1"):
        windows.hann(-1)
    with pytest.raises(LucidError, match="floating"):
        windows.hann(4, dtype=lucid.int64)
