"""Sizes and axes that are given by position and by name at once."""

from __future__ import annotations

import pytest

import lucid
from lucid.errors import ArgumentError


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "rand", "randn"])
def test_sizes_are_given_by_position_or_by_name(name):
    with pytest.raises(ArgumentError, match="size"):
        getattr(lucid, name)(2, size=(2,))


@pytest.mark.parametrize(
    ("name", "keyword", "value"),
    [("broadcast_to", "size", (2,)), ("expand", "size", (2,)), ("permute", "dims", (0,)),
     ("flip", "dims", (0,)), ("tile", "dims", (2,)),
     ("reshape", "shape", (2,)), ("repeat", "repeats", (2,)),
     ("view", "size", (2,)), ("new_zeros", "size", (2,))],
)  # fmt: skip
def test_arguments_are_given_by_position_or_by_name(name, keyword, value):
    with pytest.raises(ArgumentError, match=r"once|both|position"):
        getattr(lucid.ones(2), name)(*value, **{keyword: value})


def test_two_names_of_an_argument_agree():
    for call in (lucid.flip, lucid.squeeze):
        with pytest.raises(ArgumentError, match="axis"):
            call(lucid.ones(2, 3), 0, axis=1)
