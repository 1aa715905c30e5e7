"""Cumulative operations lowered to native kernels."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.ops.reduce.cumulative import Cummax, Cummin, Cumprod, Cumsum, LogCumSumExp, Recurrence
from tests.compiler.lowering.lowering_checks import DTYPES, check, compiled, numbers, same

SHAPES = [(7,), (1,), (5, 4), (3, 5, 4), (4, 1), (1, 4, 1), (0, 3)]


def shapes_with_axes():
    return [(shape, axis) for shape in SHAPES for axis in range(len(shape))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_sums_and_products_run_along_an_axis(dtype, axis):
    x = numbers(dtype, 3, 5, 4)
    check(Cumsum(axis), x)
    check(Cumprod(axis), x)


@pytest.mark.parametrize(("shape", "axis"), shapes_with_axes())
def test_scans_run_in_arrays_of_any_shape(shape, axis):
    x = numbers("float32", *shape)
    check(Cumsum(axis, True), x)
    check(Cumprod(axis, True, True), x)
    check(Cummax(axis), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", [Cummax, Cummin])
@pytest.mark.parametrize("axis", [0, 1])
def test_running_extrema_name_the_last_of_a_tie(dtype, op, axis):
    check(op(axis), numbers(dtype, 9, 7))


@pytest.mark.parametrize("op", [Cummax, Cummin])
def test_running_extrema_are_nan_from_the_first_nan_on(op):
    x = np.array([[1.0, np.nan, 3.0, np.nan], [np.inf, -np.inf, np.inf, 0.0]])
    check(op(1), x)
    check(op(0), x)


def test_the_first_of_a_sum_keeps_its_sign():
    check(Cumsum(0), np.array([-0.0, -0.0, 1.0]))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_recurrence_has_states_that_are_driven(axis, reverse):
    check(Recurrence(axis, reverse), numbers("float64", 6, 40), numbers("float64", 6, 40, seed=1))


def test_a_state_of_zero_stays_zero():
    a, b = np.full((4, 40), np.inf), np.zeros((4, 40))
    same(compiled(Recurrence(0), a, b)([a, b]), [b])


def test_logarithms_of_sums_run_without_overflow():
    x = np.array([-np.inf, 1000.0, 1000.0, 3.0])
    (y,) = compiled(LogCumSumExp(0), x)([x])
    np.testing.assert_allclose(y, np.logaddexp.accumulate(x), rtol=1e-15)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_scans_have_the_same_bits_for_any_number_of_threads(n, threads):
    threads(n)
    x = np.random.default_rng(0).standard_normal((300, 700)).astype("float32")
    check(Cumsum(0), x)
    check(Cumsum(1), x)
    check(Cumsum(0), x.reshape(-1))
