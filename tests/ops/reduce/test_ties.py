"""Which of equal elements is chosen is the same on every path: derivatives follow it."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import func

ROWS = {
    "floats": np.array([0.0, 1.0, 2.0]),
    "special": np.array([np.nan, 0.0, -0.0, np.inf, -np.inf]),
    "integers": np.arange(-2, 3),
}
SIZES = {"small": (3, 60), "large": (2, 9000)}  # large rows are sorted by another algorithm


def order(x, descending: bool) -> np.ndarray:
    """The stable order, by NumPy."""
    if not descending:
        return np.argsort(x, -1, kind="stable")
    return x.shape[-1] - 1 - np.flip(np.argsort(np.flip(x, -1), -1, kind="stable"), -1)


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("size", SIZES)
def test_the_first_of_equal_elements_comes_first(kind, size):
    rng, shape = np.random.default_rng(0), SIZES[size]
    k = shape[1] // 3
    calls = {
        "sort": (lambda x: lucid.sort(x)[1], lambda x: order(x, False)),
        "argsort": (lambda x: lucid.argsort(x, descending=True), lambda x: order(x, True)),
        "topk": (lambda x: lucid.topk(x, k)[1], lambda x: order(x, True)[..., :k]),
        "least": (
            lambda x: lucid.topk(x, k, largest=False)[1], lambda x: order(x, False)[..., :k]
        ),
        "kthvalue": (lambda x: lucid.kthvalue(x, k)[1], lambda x: order(x, False)[..., k - 1]),
    }  # fmt: skip
    compiled = {name: lucid.jit(f) for name, (f, _) in calls.items()}
    for _ in range(3):
        x = rng.choice(ROWS[kind], shape)
        for name, (f, expected) in calls.items():
            np.testing.assert_array_equal(f(lucid.tensor(x)), expected(x), name)
            np.testing.assert_array_equal(compiled[name](lucid.tensor(x)), expected(x), name)


def test_eager_and_jitted_derivatives_agree_where_elements_tie():
    weights = lucid.tensor(np.arange(20.0))
    f = lambda x: (lucid.sort(x)[0] * weights).sum() + lucid.topk(x, 3)[0].sum()  # noqa: E731
    x = np.array([2.0] * 10 + [1.0] * 10)
    expected = np.array([*range(10, 20), *range(10)], float)
    expected[:3] += 1
    jitted = lucid.jit(func.grad(f))
    for _ in range(3):
        np.testing.assert_array_equal(func.grad(f)(lucid.tensor(x)), expected)
        np.testing.assert_array_equal(jitted(lucid.tensor(x)), expected)
