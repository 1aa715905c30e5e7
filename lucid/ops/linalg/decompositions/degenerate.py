"""Division by differences of eigenvalues or singular values, some of which are equal.

The derivative of an eigenvector divides by the differences of its value from all others. Values
that differ only by rounding count as equal: their difference cannot be a divisor. The numerator
must then vanish, and the quotient is zero; otherwise the derivative does not exist and `refuse`
raises. Equal values share the derivative of the values themselves equally.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.ops.core.promote import cast
from lucid.ops.core.runtime_check import refuse
from lucid.ops.elementwise.conditional import where
from lucid.ops.linalg.contraction import product
from lucid.ops.linalg.matrices import constant_like
from lucid.ops.reduce.cumulative import cumsum
from lucid.ops.reduce.extrema import amax
from lucid.ops.shape.joining import cat
from lucid.ops.shape.movement import Reshape
from lucid.tape.bind import bind

EQUAL_TOLERANCE = 10  # values closer than this many rounding errors of the largest are equal
ZERO_TOLERANCE = 1000  # smaller than this many rounding errors of its operand counts as zero


class DegenerateGroups:
    """Sorted real values along the last axis, and which of them are equal."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self.n = values.shape[-1]
        self.eps = float(np.finfo(values.dtype).eps)
        self.largest = amax(values.abs(), dim=-1, keepdim=True)
        steps = (
            values[..., 1:] - values[..., :-1]
        ).abs() > EQUAL_TOLERANCE * self.eps * self.largest
        first = constant_like(np.zeros((*values.shape[:-1], 1)), values)
        number = cumsum(cat([first, cast(steps, values.dtype)], -1), -1)
        self.same = column(number) == row(number)

    def group_mean(self, x: Any) -> Any:
        """Return the mean of x over each group of equal values, for each of its members."""
        weights = cast(self.same, x.dtype)
        weights = weights / weights.sum(-1, keepdim=True)
        return bind(Reshape(x.shape), product(weights, column(x)))

    def divide_by_gaps(self, x: Any, size: Any, message: str) -> Any:
        """Return x[i, j] / (values[j] - values[i]), and 0 for equal values, where x must vanish.

        `size` is the largest element of the operand that x was computed from.
        """
        other = constant_like(1 - np.eye(self.n), self.values) != 0
        bad = (self.same & other) & (x.abs() > ZERO_TOLERANCE * self.eps * size)
        gaps = where(self.same, 1.0, row(self.values) - column(self.values))
        return refuse(x, bad, message) * cast(where(self.same, 0.0, 1.0 / gaps), x.dtype)

    def require_uniform(self, x: Any, message: str) -> Any:
        """Return the group mean of x; raise at run time if x differs within a group."""
        mean = self.group_mean(x)
        bad = (x - mean).abs() > ZERO_TOLERANCE * self.eps * amax(x.abs(), dim=-1, keepdim=True)
        return bind(Reshape(x.shape), refuse(row(mean), row(bad), message))

    def divide_by_sums(self, x: Any, size: Any, message: str) -> Any:
        """Return x[i, j] / (values[i] + values[j]) for nonnegative values; 0 where both are 0."""
        return self.safe_divide(x, row(self.values) + column(self.values), size, message)

    def divide_by_values(self, x: Any, size: Any, message: str) -> Any:
        """Return the columns of x divided by the nonnegative values."""
        return self.safe_divide(x, row(self.values), size, message)

    def safe_divide(self, x: Any, divisor: Any, size: Any, message: str) -> Any:
        is_zero = divisor <= EQUAL_TOLERANCE * self.eps * column(self.largest)
        bad = is_zero & (x.abs() > ZERO_TOLERANCE * self.eps * size)
        return refuse(x, bad, message) * cast(
            where(is_zero, 0.0, 1.0 / where(is_zero, 1.0, divisor)), x.dtype
        )


def max_abs(x: Any) -> Any:
    """Return the largest absolute value in each matrix, as a 1×1 matrix."""
    if 0 in x.shape[-2:]:
        return constant_like(np.zeros((*x.shape[:-2], 1, 1)), x.abs())
    return amax(x.abs(), dim=(-2, -1), keepdim=True)


def column(x: Any) -> Any:
    return bind(Reshape((*x.shape, 1)), x)


def row(x: Any) -> Any:
    return bind(Reshape((*x.shape[:-1], 1, x.shape[-1])), x)
