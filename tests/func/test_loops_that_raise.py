"""An operation that fails inside a loop fails with its own error, in every mode."""

from __future__ import annotations

import pytest

import lucid
import lucid.func as F
from lucid.errors import IndexingError, LucidError

X = lucid.tensor([0.0, 1.0, 2.0, 3.0])


def scan_out_of_range(x):
    return F.scan(lambda c, i: (c + x[i], c), lucid.tensor(0.0), lucid.tensor([0, 1, 7]))[0]


def while_out_of_range(x):
    start = (lucid.tensor(0), lucid.tensor(0.0))
    return F.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + 1, s[1] + x[s[0]]), start)[1]


def cholesky_that_fails(x):
    a = lucid.eye(2) * (x.sum() / 1.5)
    return F.fori_loop(0, 3, lambda i, a: lucid.linalg.cholesky(a) - 2 * lucid.eye(2), a)


def is_run(f):
    return f


def is_differentiated(f):
    return F.grad(lambda x: f(x).sum())


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jitted"])
@pytest.mark.parametrize("transform", [is_run, is_differentiated])
@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (scan_out_of_range, IndexingError, "index 7 is out of range"),
        # a compiled derivative computes nothing but its reverse pass, which meets index 8 first
        (while_out_of_range, IndexingError, "index [48] is out of range"),
        (cholesky_that_fails, LucidError, "not positive definite"),
    ],
)
def test_the_error_is_that_of_the_operation(f, error, words, transform, compiled):
    function = lucid.jit(transform(f)) if compiled else transform(f)
    for _ in range(2):
        with pytest.raises(error, match=words):
            function(X)
