"""concatenate, pad and slice_set lowered to native kernels."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.ops.index.writing import SliceSet
from lucid.ops.shape.concatenate import Concatenate
from lucid.ops.shape.movement import Pad
from tests.compiler.lowering.lowering_checks import DTYPES, check, numbers


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_operands_of_a_join_lie_behind_each_other(dtype, axis):
    sizes = [2, 0, 5]
    xs = [numbers(dtype, *[n if i == axis else 3 for i in range(3)], seed=n) for n in sizes]
    check(Concatenate(axis), *xs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("low", "high", "interior"),
    [
        ((1, 2), (0, 3), (0, 0)),
        ((0, 0), (0, 0), (0, 0)),
        ((-1, 1), (2, -2), (0, 0)),
        ((1, 0), (1, 2), (2, 1)),
        ((-2, 0), (0, 0), (1, 0)),
        ((-4, 0), (1, 0), (0, 0)),
    ],
)
def test_padding_is_zero_outside_and_exact_inside(dtype, low, high, interior):
    check(Pad(low, high, interior), numbers(dtype, 4, 5))


def test_padding_keeps_the_sign_of_zero():
    check(Pad((1,), (1,), (0,)), np.array([-0.0, np.nan, np.inf]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_box_is_overwritten(dtype):
    x, updates = numbers(dtype, 6, 5), numbers(dtype, 2, 4, seed=1)
    check(SliceSet((1, 0), (5, 4), (3, 1)), x, updates)
    check(SliceSet((1, 0), (5, 4), (3, 1)), x, updates[0, 0])
