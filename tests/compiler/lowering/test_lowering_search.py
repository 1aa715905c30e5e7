"""Searching in sorted rows, combining at indices and the digits of numbers, compiled."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.errors import IndexingError
from lucid.ops.elementwise.digits import Frexp, Gcd, Nextafter
from lucid.ops.index.scatter_reduce import CombineAlong
from lucid.ops.index.searching import Searchsorted
from tests.compiler.lowering.lowering_checks import DTYPES, check, compiled, numbers


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 1000])
def test_a_value_is_placed_in_a_sorted_row(dtype, right, n):
    check(Searchsorted(right), np.sort(numbers(dtype, n)), numbers(dtype, 3, 5, seed=1))


@pytest.mark.parametrize("right", [False, True])
def test_every_row_has_values_of_its_own(right):
    rows = np.sort(numbers("float32", 2, 3, 9), axis=-1)
    check(Searchsorted(right), rows, numbers("float32", 2, 3, 4, seed=1))


@pytest.mark.parametrize("right", [False, True])
def test_nan_comes_after_all_numbers(right):
    row = np.array([-np.inf, 0.0, 1.0, np.inf, np.nan, np.nan], "float32")
    check(Searchsorted(right), row, np.array([np.nan, np.inf, -np.inf, 0.5], "float32"))


def test_of_no_values_none_are_placed():
    check(Searchsorted(), numbers("float32", 4), numbers("float32", 0, 2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("how", ["max", "min", "prod"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_values_are_combined_with_what_is_at_their_places(dtype, how, axis):
    x = numbers(dtype, 4, 5, 6)
    shape = [7 if i == axis else n for i, n in enumerate(x.shape)]
    places = np.random.default_rng(0).integers(-x.shape[axis], x.shape[axis], shape)
    check(CombineAlong(axis, how), x, numbers(dtype, *shape, seed=1), places)


@pytest.mark.parametrize("how", ["max", "min"])
def test_nan_wins_wherever_it_comes_from(how):
    x = np.array([1.0, np.nan, 3.0], "float32")
    values = np.array([np.nan, 0.0, 9.0, -9.0], "float32")
    check(CombineAlong(0, how), x, values, np.array([0, 1, 2, 2]))


def test_a_place_out_of_range_is_an_error():
    x, values = numbers("float32", 3), numbers("float32", 2)
    executable = compiled(CombineAlong(0, "max"), x, values, np.array([0, 1]))
    with pytest.raises(IndexingError, match="combine_along: index 3 is out of range for axis 0"):
        executable([x, values, np.array([0, 3])])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_common_divisors(dtype):
    check(Gcd(), numbers(dtype, 3, 50), numbers(dtype, 50, seed=1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_neighbors_of_numbers(dtype):
    check(Nextafter(), numbers(dtype, 3, 50), numbers(dtype, 50, seed=1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_mantissas_and_exponents(dtype):
    edges = np.array([0.0, -0.0, 6e-8, 1.0, -3.0, np.inf, np.nan], dtype)
    check(Frexp(), edges)
    check(Frexp(), numbers(dtype, 3, 50)[:, ::2].T)
    check(Frexp(), numbers(dtype, 0, 2))
    check(Frexp(), numbers(dtype))
