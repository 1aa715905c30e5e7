"""Differences of eigenvalues and of singular values, some of which are equal.

The derivative of a vector divides by the differences of its value from all others. Values that
differ by rounding alone are taken as equal (`groups`): nothing can be divided by their difference.
What stands over it must then vanish, in which case the quotient counts as zero, or the derivative
does not exist and `refuse` says so. The derivative of equal values themselves is shared among them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.ops.core.promote import cast
from lucid.ops.core.runtime_check import refuse
from lucid.ops.elementwise.conditional import where
from lucid.ops.linalg.contraction import product
from lucid.ops.linalg.matrices import constant
from lucid.ops.reduce.cumulative import cumsum
from lucid.ops.reduce.extrema import amax
from lucid.ops.shape.joining import cat
from lucid.ops.shape.movement import Reshape
from lucid.tape.bind import bind

EQUAL = 10  # values closer than this many rounding errors of the largest are equal
VANISHING = 1000  # what is smaller than this many rounding errors of what it came from is zero


class Groups:
    """Real values in order along the last axis, and which of them are equal."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self.n = values.shape[-1]
        self.eps = float(np.finfo(values.dtype).eps)
        self.largest = amax(values.abs(), dim=-1, keepdim=True)
        steps = (values[..., 1:] - values[..., :-1]).abs() > EQUAL * self.eps * self.largest
        first = constant(np.zeros((*values.shape[:-1], 1)), values)
        number = cumsum(cat([first, cast(steps, values.dtype)], -1), -1)
        self.same = column(number) == row(number)

    def shared(self, x: Any) -> Any:
        """The mean of x over the values that are equal, for each of them."""
        weights = cast(self.same, x.dtype)
        weights = weights / weights.sum(-1, keepdim=True)
        return bind(Reshape(x.shape), product(weights, column(x)))

    def over_gaps(self, x: Any, size: Any, why: str) -> Any:
        """x[i, j] / (values[j] - values[i]), and 0 between equal values, where x must vanish.

        `size` is the largest element of what x was computed from.
        """
        other = constant(1 - np.eye(self.n), self.values) != 0
        bad = (self.same & other) & (x.abs() > VANISHING * self.eps * size)
        gaps = where(self.same, 1.0, row(self.values) - column(self.values))
        return refuse(x, bad, why) * cast(where(self.same, 0.0, 1.0 / gaps), x.dtype)

    def uniform(self, x: Any, why: str) -> Any:
        """`shared`, refusing what is not the same for all equal values."""
        mean = self.shared(x)
        bad = (x - mean).abs() > VANISHING * self.eps * amax(x.abs(), dim=-1, keepdim=True)
        return bind(Reshape(x.shape), refuse(row(mean), row(bad), why))

    def over_sums(self, x: Any, size: Any, why: str) -> Any:
        """x[i, j] / (values[i] + values[j]) of values not negative; 0 where both are zero."""
        return self.over(x, row(self.values) + column(self.values), size, why)

    def over_values(self, x: Any, size: Any, why: str) -> Any:
        """The columns of x divided by the values, which are not negative."""
        return self.over(x, row(self.values), size, why)

    def over(self, x: Any, below: Any, size: Any, why: str) -> Any:
        none = below <= EQUAL * self.eps * column(self.largest)
        bad = none & (x.abs() > VANISHING * self.eps * size)
        return refuse(x, bad, why) * cast(where(none, 0.0, 1.0 / where(none, 1.0, below)), x.dtype)


def largest(x: Any) -> Any:
    """The greatest absolute value in a matrix, as a matrix of one element."""
    if 0 in x.shape[-2:]:
        return constant(np.zeros((*x.shape[:-2], 1, 1)), x.abs())
    return amax(x.abs(), dim=(-2, -1), keepdim=True)


def column(x: Any) -> Any:
    return bind(Reshape((*x.shape, 1)), x)


def row(x: Any) -> Any:
    return bind(Reshape((*x.shape[:-1], 1, x.shape[-1])), x)
