"""Constraints on parameters and draws, each with a `check` of values."""

from __future__ import annotations

import math
from typing import Any

from lucid import linalg
from lucid.ops.core.constructors import ClearConstructor
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.shape.diagonals import diagonal, tril
from lucid.public.lazy import defined_in


class Constraint(ClearConstructor):
    """A set of numbers, or of vectors or matrices where `event_dim` is 1 or 2."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Any) -> Any:
        """Return True for every event that satisfies the constraint."""
        raise NotImplementedError

    def format_fields(self) -> str:
        return ", ".join(f"{name}={x}" for name, x in self.__dict__.items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.format_fields()})"

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class Real(Constraint):
    """All numbers except nan."""

    def check(self, value: Any) -> Any:
        value = as_tensor(value)
        return value == value


class Interval(Constraint):
    """Numbers from `lower_bound` to `upper_bound`, with or without the bounds."""

    def __init__(
        self, lower_bound: Any = -math.inf, upper_bound: Any = math.inf,
        has_lower: bool = True, has_upper: bool = True,
    ) -> None:  # fmt: skip
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        self.has_lower, self.has_upper = has_lower, has_upper

    def check(self, value: Any) -> Any:
        value = as_tensor(value)
        over = value >= self.lower_bound if self.has_lower else value > self.lower_bound
        under = value <= self.upper_bound if self.has_upper else value < self.upper_bound
        return over & under

    def format_fields(self) -> str:
        left, right = "["[: self.has_lower] or "(", "]"[: self.has_upper] or ")"
        return f"{left}{self.lower_bound}, {self.upper_bound}{right}"


class Integers(Interval):
    """Integers in an interval."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        value = as_tensor(value)
        return super().check(value) & (value % 1 == 0)


class Simplex(Constraint):
    """Non-negative vectors that sum to 1."""

    event_dim = 1

    def check(self, value: Any) -> Any:
        value = as_tensor(value)
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class OneHot(Constraint):
    """One-hot vectors."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        value = as_tensor(value)
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class LowerTriangular(Constraint):
    """Matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        value = as_tensor(value)
        return (tril(value) == value).all((-2, -1))


class LowerCholesky(LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value: Any) -> Any:
        return super().check(value) & (diagonal(as_tensor(value), dim1=-2, dim2=-1) > 0).all(-1)


class CorrCholesky(LowerCholesky):
    """Lower triangular matrices with a positive diagonal and rows of norm 1."""

    def check(self, value: Any) -> Any:
        value = as_tensor(value)
        return super().check(value) & (((value**2).sum(-1) - 1).abs() < 1e-4).all(-1)


class Symmetric(Constraint):
    """Symmetric matrices."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        value = as_tensor(value)
        return ((value - value.mT).abs() < 1e-6).all((-2, -1))


class PositiveSemidefinite(Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Any) -> Any:
        return super().check(value) & (linalg.eigvalsh(value) >= -1e-6).all(-1)


class PositiveDefinite(Symmetric):
    """Symmetric positive definite matrices."""

    def check(self, value: Any) -> Any:
        return super().check(value) & (linalg.cholesky_ex(value).info == 0)


class Independent(Constraint):
    """Arrays whose elements (or events) all satisfy another constraint."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        found = self.base_constraint.check(value)
        axes = tuple(range(-self.reinterpreted_batch_ndims, 0))
        return found.all(axes) if axes else cast(found, "bool")


independent = Independent
real = Real()
real_vector = Independent(real, 1)
boolean = Integers(0, 1)
nonnegative_integer = Integers(0)
positive_integer = Integers(1)
positive = Interval(0.0, has_lower=False)
nonnegative = Interval(0.0)
unit_interval = Interval(0.0, 1.0)
simplex, one_hot = Simplex(), OneHot()
lower_triangular, lower_cholesky, corr_cholesky = LowerTriangular(), LowerCholesky(), CorrCholesky()
symmetric = Symmetric()
positive_semidefinite, positive_definite = PositiveSemidefinite(), PositiveDefinite()


def interval(lower_bound: Any, upper_bound: Any) -> Interval:
    """Return the interval [lower_bound, upper_bound]."""
    return Interval(lower_bound, upper_bound)


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Interval:
    """Return the interval [lower_bound, upper_bound)."""
    return Interval(lower_bound, upper_bound, has_upper=False)


def greater_than(lower_bound: Any) -> Interval:
    """Return the interval (lower_bound, inf)."""
    return Interval(lower_bound, has_lower=False)


def greater_than_eq(lower_bound: Any) -> Interval:
    """Return the interval [lower_bound, inf)."""
    return Interval(lower_bound)


def less_than(upper_bound: Any) -> Interval:
    """Return the interval (-inf, upper_bound)."""
    return Interval(-math.inf, upper_bound, has_upper=False)


def integer_interval(lower_bound: Any, upper_bound: Any) -> Integers:
    """Return the integers from `lower_bound` to `upper_bound`, inclusive."""
    return Integers(lower_bound, upper_bound)


__dir__, __all__ = defined_in(__name__)
