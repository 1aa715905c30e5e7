"""Parameters that are True or False: what is neither raises an error of ours."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, LucidError

NEITHER = np.array([True, False])
SPACES = (lucid, lucid.linalg, lucid.special, lucid.fft, lucid.nn.functional, lucid.Tensor)


def flags(f):
    try:
        given = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in given if isinstance(p.default, bool)]


FLAGS = [
    (space.__name__, name, parameter)
    for space in SPACES
    for name in dir(space)
    if not name.startswith("_") and inspect.isroutine(getattr(space, name))
    for parameter in flags(getattr(space, name))
]


def test_most_functions_with_flags_are_here():
    assert len(FLAGS) > 150


@pytest.mark.parametrize(("space", "name", "parameter"), FLAGS)
def test_an_array_for_a_flag_is_an_error_of_ours(space, name, parameter):
    (f,) = [getattr(s, name) for s in SPACES if s.__name__ == space]
    for rest in ((), (0,), ("x",), (1, 0)):
        x = lucid.ones(3, 3, dtype="float64")
        args = [x, *[x if arg == "x" else arg for arg in rest]]
        try:
            inspect.signature(f).bind(*args, **{parameter: NEITHER})
        except TypeError:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                f(*args, **{parameter: NEITHER})
            except LucidError:
                pass


def test_the_error_names_the_parameter():
    with pytest.raises(ArgumentError, match="sum: keepdim=array of bool .2,. is neither True nor"):
        lucid.ones(3).sum(0, keepdim=NEITHER)
    assert lucid.ones(3, 2).sum(0, keepdim=np.True_).shape == (1, 2)
    assert lucid.ones(3, 2).max(0, keepdim=1)[0].shape == (1, 2)
