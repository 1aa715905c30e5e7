"""How many Python functions an eager operation calls: each costs as much as a small addition."""

import sys

import pytest

import lucid
from lucid.tape.node import followers


def python_calls(f):
    """Return the names of the Python functions that `f()` calls."""
    found = []

    def watch(frame, event, _):
        if event == "call":
            found.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        f()
    finally:
        sys.setprofile(before)
    return found[1:]  # the first is `f` itself


@pytest.mark.parametrize("requires_grad", [False, True])
def test_an_addition_is_three_python_calls(requires_grad):
    followers.clear()  # no earlier training loop is followed
    x, y = lucid.ones(10, requires_grad=requires_grad), lucid.ones(10)
    for _ in range(3):
        x + y
    assert len(python_calls(lambda: x + y)) == 3
