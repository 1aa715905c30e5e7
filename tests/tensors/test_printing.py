"""Limits of dtypes, and how tensors are shown."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, DTypeError


@pytest.fixture(autouse=True)
def as_before():
    yield
    lucid.set_printoptions(profile="default")


def test_limits_are_numpys_as_python_numbers():
    for dtype in ("float16", "float32", "float64", "complex64"):
        mine, theirs = lucid.finfo(getattr(lucid, dtype)), np.finfo(dtype)
        for name in ("eps", "max", "min", "tiny", "smallest_normal", "resolution", "bits"):
            value = getattr(mine, name)
            assert type(value) in (float, int) and value == getattr(theirs, name)
    assert lucid.finfo() == lucid.finfo(lucid.float32) != lucid.finfo(lucid.float64)
    for dtype in ("int8", "uint8", "int64"):
        mine, theirs = lucid.iinfo(dtype), np.iinfo(dtype)
        assert (mine.min, mine.max, mine.bits) == (theirs.min, theirs.max, theirs.bits)
    assert repr(lucid.iinfo(lucid.uint8)) == "iinfo(min=0, max=255, dtype=uint8)"
    assert "eps=1.19209e-07" in repr(lucid.finfo(lucid.float32))


def test_limits_of_the_wrong_kind_are_refused():
    with pytest.raises(DTypeError, match="use iinfo"):
        lucid.finfo(lucid.int32)
    with pytest.raises(DTypeError, match="use finfo"):
        lucid.iinfo(lucid.float32)


def test_digits_and_left_out_elements():
    x = lucid.tensor([1 / 3, 2 / 3])
    lucid.set_printoptions(precision=2)
    assert repr(x) == "Tensor([0.33, 0.67])" and repr(x.numpy()).startswith("array([0.333")
    lucid.set_printoptions(threshold=3, edgeitems=1)
    assert repr(lucid.arange(9)) == "Tensor([0, ..., 8], shape=(9,))"
    lucid.set_printoptions(profile="full")
    assert "..." not in repr(lucid.arange(2000))
    lucid.set_printoptions(precision=1, sci_mode=True)
    assert repr(x) == "Tensor([3.3e-01, 6.7e-01])"
    lucid.set_printoptions(sci_mode=False)
    assert repr(lucid.tensor([1e-9, 1.0])) == "Tensor([0., 1.])"


def test_bad_options_are_refused_and_change_nothing():
    before = repr(lucid.tensor([1 / 3]))
    with pytest.raises(ArgumentError, match="default, short, full"):
        lucid.set_printoptions(profile="wide")
    for bad in (-1, 2.5, True, "all"):
        with pytest.raises(ArgumentError, match="non-negative integers"):
            lucid.set_printoptions(precision=bad)
    assert repr(lucid.tensor([1 / 3])) == before


def test_vmap_is_the_transform():
    assert lucid.vmap is lucid.func.vmap
