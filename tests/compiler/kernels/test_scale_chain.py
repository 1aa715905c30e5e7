"""Chains of `scale`: a step is zero if the step before is, whatever it is multiplied by."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.compiler.kernels.scalar_code import CHAIN
from lucid.extend import times

VALUES = [0.0, -0.0, 1.0, -1.5, 1e200, 1e-200, 5e-324, np.inf, -np.inf, np.nan]


def steps(x, factors):
    out = [x]
    for y in factors:
        out.append(times(out[-1], y))
    return out[1:]


def steps_by_numpy(x, factors):
    out = [x]
    with np.errstate(all="ignore"):
        for y in factors:
            out.append(np.where(out[-1] == 0, 0, out[-1] * y))
    return out[1:]


@pytest.mark.parametrize("length", [1, 2, CHAIN, CHAIN + 1, CHAIN + 2, 9, 30])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_chain_has_the_values_of_its_single_steps(length, dtype):
    rng = np.random.default_rng(0)
    every = lucid.jit(steps)
    last = lucid.jit(lambda x, factors: steps(x, factors)[-1])
    for n in (1, 7, 100, 1000):
        for odds in (0.5, 0.02):
            with np.errstate(over="ignore"):
                drawn = rng.choice(VALUES, size=(length + 1, n)).astype(dtype)
            drawn = np.where(rng.random(drawn.shape) < odds, drawn, rng.normal(size=drawn.shape))
            x, *factors = drawn.astype(dtype)
            want = steps_by_numpy(x, factors)
            given = lucid.tensor(x), [lucid.tensor(y) for y in factors]
            for got, expected in zip(every(*given), want, strict=True):
                np.testing.assert_array_equal(got.numpy(), expected)
            np.testing.assert_array_equal(last(*given).numpy(), want[-1])


def test_a_step_of_a_long_chain_waits_for_a_multiplication():
    """After the first few, the zeros of all steps are collected beside the products."""
    (kernel,) = lucid.jit(steps).kernels(lucid.ones(50), [lucid.ones(50)] * 9)
    assert kernel.llvm.count(" or i1 ") == 9 - CHAIN
