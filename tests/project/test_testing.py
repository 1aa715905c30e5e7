"""lucid.testing.assert_close: what passes, what does not, and what is said."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError
from lucid.testing import assert_close


def told(*parts, actual, expected, **options):
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected, **options)
    for part in parts:
        assert part in str(caught.value), str(caught.value)


def t(*values, dtype="float32"):
    return lucid.tensor(values, dtype=dtype)


def test_what_is_close_passes():
    assert_close(t(1.0, 2.0), t(1.0 + 1e-6, 2.0))
    assert_close(t(0.0), t(9e-6))
    assert_close(1.0, 1.0 + 1e-8)
    assert_close(np.ones(2), np.ones(2))
    assert_close(t(1.0), t(1.5), rtol=0.5, atol=0.0)
    assert_close({"a": [t(1.0), (2, 3)]}, {"a": [t(1.0), (2, 3)]})
    assert_close(t(math.nan, math.inf), t(math.nan, math.inf), equal_nan=True)
    assert_close(lucid.ones(2, requires_grad=True), lucid.ones(2))


def test_differences_are_told_with_their_place():
    told("1 of 2 elements", "0.5 at (1,)", "1e-05 is allowed", "0.2 at", "1.3e-06 is allowed",
         actual=t(1.0, 2.0), expected=t(1.0, 2.5))  # fmt: skip
    told("1.1 is expected, not 1.0", actual=1.0, expected=1.1)
    told("(item [1]['b'])", actual=[1, {"b": t(1.0)}], expected=[1, {"b": t(2.0)}])
    told("nan at (0,)", actual=t(math.nan), expected=t(math.nan))
    told("inf", actual=t(math.inf), expected=t(-math.inf))
    told("2 of 3", actual=lucid.arange(3), expected=lucid.tensor([0, 3, 3]))
    told("1 of 2", actual=t(True, False, dtype="bool"), expected=t(True, True, dtype="bool"))


def test_forms_that_differ():
    told("shapes differ: (2,) and (3,)", actual=lucid.ones(2), expected=lucid.ones(3))
    told("dtypes differ: float32 and float64", actual=t(1.0), expected=t(1.0, dtype="float64"))
    assert_close(t(1.0), t(1.0 + 1e-6, dtype="float64"), check_dtype=False)
    told("lengths differ: 1 and 2", actual=[1], expected=[1, 2])
    told("['b'] are missing, ['a'] extra", actual={"a": 1}, expected={"b": 1})


def test_the_message_may_be_ones_own():
    told("no", actual=1, expected=2, msg="no")
    told("Loss: 2 is expected", actual=1, expected=2, msg=lambda text: f"Loss: {text}")


def test_misuse_is_no_failed_assertion():
    with pytest.raises(ArgumentError, match="both rtol and atol"):
        assert_close(1, 1, rtol=1e-3)
    with pytest.raises(ArgumentError, match="a str is not a number"):
        assert_close("a", "a")


def test_fork_rng_leaves_the_stream_as_it_was():
    lucid.manual_seed(1)
    expected = lucid.rand(3).tolist()
    lucid.manual_seed(1)
    with pytest.raises(ZeroDivisionError), lucid.random.fork_rng():
        lucid.rand(5)
        _ = 1 / 0
    assert lucid.rand(3).tolist() == expected
    lucid.manual_seed(1)
    with lucid.random.fork_rng(enabled=False):
        lucid.rand(5)
    assert lucid.rand(3).tolist() != expected
