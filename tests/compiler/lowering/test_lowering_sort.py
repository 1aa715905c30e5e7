"""sort, argsort and topk lowered to native kernels."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.ops.reduce.sorting import Argsort, Sort, TopK
from tests.compiler.lowering.lowering_checks import DTYPES, check, numbers

LENGTHS = [1, 2, 24, 25, 300, 5000]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("descending", [False, True])
def test_equal_elements_keep_their_order(dtype, descending):
    for n in (7, 300):
        check(Sort(0, descending, True), numbers(dtype, n))
        check(Argsort(1, descending, True), numbers(dtype, 3, n))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("n", LENGTHS)
def test_nan_is_larger_than_every_number_and_zeros_are_equal(dtype, descending, n):
    rng = np.random.default_rng(n)
    special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-45, -1e-45, 1.0, -1.0])
    check(Sort(0, descending, True), rng.choice(special, n).astype(dtype))


@pytest.mark.parametrize("dtype", [f"{k}{n}" for k in ("int", "uint") for n in (8, 16, 32, 64)])
def test_integers_are_in_order_over_their_whole_range(dtype):
    info = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(info.min, info.max, 1000, dtype, endpoint=True)
    check(Sort(0, False, True), np.append(x, np.array([info.min, info.max], dtype)))


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_of_all_sizes(n, dtype):
    x = np.random.default_rng(n).standard_normal(n) * 10.0 ** np.arange(n).clip(0, 30)
    check(Sort(0, False, True), x.astype(dtype))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rows_lie_along_any_axis(axis):
    check(Sort(axis, False, True), numbers("float32", 4, 30, 5))
    check(Sort(axis, True, True), numbers("float64", 4, 1, 5))


def test_there_may_be_nothing_to_sort():
    check(Sort(0, False, True), np.zeros((0, 3), "float32"))
    check(Sort(1, False, True), np.zeros((0, 3), "float32"))


@pytest.mark.parametrize("k", [0, 1, 3, 40])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("in_order", [False, True])
def test_the_first_k(k, largest, in_order):
    x = np.random.default_rng(0).permutation(200).reshape(5, 40).astype("float32")
    check(TopK(1, k, largest, in_order), x)
    check(TopK(0, min(k, 5), largest, in_order), x)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_many_rows_on_many_threads(n, threads):
    threads(n)
    check(Sort(1, False, True), numbers("int32", 501, 90))
    check(Sort(0, False, True), np.random.default_rng(0).standard_normal(100_000))
