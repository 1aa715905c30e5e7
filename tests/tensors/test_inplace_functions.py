"""`lucid.relu_(x)` and its kin: the methods of the same name, as functions."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, LucidError
from lucid.public import index
from lucid.tensors import inplace_functions

NAMES = index.NAMES["lucid"]["tensors.inplace_functions"].split()
MORE = {
    "addmv_": (np.eye(3), np.ones(3)),
    "clamp_": (0.3, 0.6), "clip_": (0.3, 0.6), "clamp_max_": (0.5,), "clamp_min_": (0.5,),
    "fill_": (2.0,), "gcd_": (4,), "lcm_": (4,), "ldexp_": (2,), "xlogy_": (3.0,),
    "index_put_": ((np.array([0, 2]),), np.array([7.0, 8.0])),
}  # fmt: skip


def operands(name):
    values = [1.25, 1.5, 1.75] if "acosh" in name or name == "arccosh_" else [0.25, 0.5, 0.75]
    x = np.array([6, 4, 3]) if name in ("gcd_", "lcm_") else np.array(values)
    rest = [tuple(map(lucid.tensor, a)) if isinstance(a, tuple) else a for a in MORE.get(name, ())]
    return x, [lucid.tensor(a) if isinstance(a, (np.ndarray, int)) else a for a in rest]


@pytest.mark.parametrize("name", NAMES)
def test_the_function_writes_what_the_function_without_the_line_gives(name):
    values, rest = operands(name)
    x = lucid.tensor(values)
    assert getattr(lucid, name)(x, *rest) is x
    plain = {"zero_": lucid.zeros_like}.get(name) or getattr(lucid, name[:-1])
    assert np.array_equal(x, plain(lucid.tensor(values), *rest))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_tensor_is_refused(name):
    with pytest.raises(ArgumentError, match=f"{name}: list cannot be written to"):
        getattr(lucid, name)([1.0])


def test_wrong_arguments_are_explained():
    with pytest.raises(LucidError, match="relu_"):
        lucid.relu_(lucid.ones(2), 1, 2, 3)


def test_other_names_with_a_line_are_none():
    assert not hasattr(inplace_functions, "nothing_") and not hasattr(lucid, "nothing_")
