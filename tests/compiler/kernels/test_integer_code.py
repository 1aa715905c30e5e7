"""Operations on integers in kernels equal NumPy's for every pair of operands."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.ops.elementwise.logic import LeftShift, RightShift
from lucid.ops.elementwise.power import Pow
from lucid.ops.elementwise.rounding import FloorDivide, Fmod, Remainder
from tests.compiler.lowering.lowering_checks import check

OPS = [FloorDivide, Remainder, Fmod, LeftShift, RightShift, Pow]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_all_pairs_of_bytes(op, dtype):
    info = np.iinfo(dtype)
    every = np.arange(info.min, info.max + 1).astype(dtype)
    a, b = np.meshgrid(every, every)
    check(op(), a.copy(), b.copy())


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_pairs_of_remarkable_numbers(op, dtype):
    info = np.iinfo(dtype)
    near = [0, 1, 2, 7, info.bits - 1, info.bits, info.bits + 1, info.max, info.max - 1, info.min]
    near += [-1, -2, -7, info.min + 1] if info.min else [info.max // 2 + 1]
    a, b = np.meshgrid(np.array(near, dtype), np.array(near, dtype))
    check(op(), a.copy(), b.copy())
