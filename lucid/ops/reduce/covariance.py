"""Covariances and correlations of variables, the rows of a matrix."""

from __future__ import annotations

from typing import Any

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ops.core.arguments import concrete_array, public_function
from lucid.ops.core.promote import as_tensor, cast, promote, to_floating
from lucid.ops.elementwise.complexes import conj
from lucid.ops.elementwise.conditional import clamp
from lucid.ops.reduce.reduction import sum
from lucid.ops.reduce.statistics import mean
from lucid.ops.shape.diagonals import strided_diagonal


@public_function("lucid", "Tensor")
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariance matrix of variables (rows) over observations (columns).

    Observations are repeated `fweights` times and weighted by `aweights`.

    >>> import lucid
    >>> lucid.cov(lucid.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = to_floating(input)
    if x.ndim > 2:
        raise ShapeError(f"cov: {x.shape}; it takes a matrix whose rows are variables")
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    if aweights is not None:
        rows, aweights = promote(rows, as_tensor(aweights))
    weights, divisor = observation_weights(rows, correction, fweights, aweights)
    if weights is None:
        off = rows - mean(rows, 1, True)
        total = off @ conj(off).t()
    else:
        middle = sum(rows * weights, 1, True) / sum(weights)
        off = rows - middle
        total = (off * weights) @ conj(off).t()
    y = total / divisor
    return y if rows.shape[0] != 1 else y.reshape(())


def observation_weights(
    rows: Any, correction: Any, fweights: Any, aweights: Any
) -> tuple[Any, Any]:
    """Return the weights of observations (None if all are 1) and the divisor of the sum."""
    n = rows.shape[1]
    given = [None if w is None else as_tensor(w) for w in (fweights, aweights)]
    for w in given:
        if w is not None and w.shape != (n,):
            raise ShapeError(f"cov: weights of shape {w.shape} for {n} observations")
    counts, importance = given
    for what, w in (("fweights", counts), ("aweights", importance)):
        known = None if w is None else concrete_array(w)
        if known is not None and (known < 0).any():
            raise ArgumentError(f"cov: {what} must not be negative")
    if counts is not None and counts.dtype.kind not in "iu":
        raise DTypeError(f"cov: fweights must be integers, not {counts.dtype}")
    if counts is None and importance is None:
        return None, float(max(n - correction, 0))
    real = rows.real.dtype
    parts = [cast(w, real) for w in given if w is not None]
    weights = parts[0] if len(parts) == 1 else parts[0] * parts[1]
    total = sum(weights)
    if importance is None:
        divisor = total - float(correction)
    else:
        divisor = total - float(correction) * sum(weights * parts[-1]) / total
    return weights, clamp(divisor, min=0.0)


@public_function("lucid", "Tensor")
def corrcoef(input: Any) -> Any:
    """The correlation matrix of variables (rows): covariances over standard deviations.

    >>> import lucid
    >>> lucid.corrcoef(lucid.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    c = cov(input)
    if not c.ndim:
        return c / c
    spread = strided_diagonal(c, 0, 0, 1).real.sqrt()
    first, second = promote(spread.reshape(-1, 1), spread.reshape(1, -1))
    return c / first / second
