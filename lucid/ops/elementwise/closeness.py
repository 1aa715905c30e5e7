"""Equality of tensors, exact or within tolerances, and replacement of nan and inf."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ArgumentError
from lucid.ops.core.arguments import flag, public_function
from lucid.ops.core.promote import as_tensor, cast, promote_tensors
from lucid.ops.elementwise.conditional import where
from lucid.ops.elementwise.logic import isnan
from lucid.public.declare import public


@public_function("lucid", "Tensor", numpy="isclose")
def isclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    """True where `|input - other| <= atol + rtol |other|`, elementwise; equal infinities are close.

    >>> import lucid
    >>> lucid.isclose(lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 2.1]))
    Tensor([ True, False])
    """
    if rtol < 0 or atol < 0:
        raise ArgumentError(f"isclose: rtol={rtol} and atol={atol} must not be negative")
    x, other = promote_tensors(input, other)
    same = x == other
    if x.dtype.kind in "biu" and other.dtype.kind in "biu":
        x, other = cast(x, "float64"), cast(other, "float64")
    x, other = x.detach(), other.detach()
    near = ((x - other).abs() <= atol + rtol * other.abs()) & other.isfinite() & x.isfinite()
    both_nan = x.isnan() & other.isnan() if equal_nan and x.dtype.kind in "fc" else False
    return same | near | both_nan


@public_function("lucid", "Tensor", numpy="allclose")
def allclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """True if all elements are close; see `isclose`."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@public(name="array_equal")
@public("lucid", "Tensor")
def equal(input: Any, other: Any, equal_nan: bool = False) -> bool:
    """True if two tensors have the same shape and the same elements."""
    x, other = as_tensor(input), as_tensor(other)
    equal_nan = flag("equal", "equal_nan", equal_nan)
    if x.shape != other.shape:
        return False
    same = x == other
    if equal_nan and x.dtype.kind in "fc" and other.dtype.kind in "fc":
        same = same | (isnan(x) & isnan(other))
    return bool(same.all())


@public_function("lucid", "Tensor", inplace_function=True)
def nan_to_num(input: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    """Replace nan and infinities, by default with 0 and the largest finite number of their sign.

    The gradient of replaced elements is zero; that of all others passes through.

    >>> import lucid
    >>> lucid.nan_to_num(lucid.tensor([1.0, lucid.nan]))
    Tensor([1., 0.])
    """
    x = as_tensor(input)
    if x.dtype.kind == "c":
        from lucid.ops.elementwise.complexes import complex

        return complex(
            nan_to_num(x.real, nan, posinf, neginf), nan_to_num(x.imag, nan, posinf, neginf)
        )
    if x.dtype.kind != "f":
        return x
    limits = np.finfo(x.dtype)
    x = where(x != x, 0.0 if nan is None else nan, x)
    x = where(x == np.inf, float(limits.max) if posinf is None else posinf, x)
    return where(x == -np.inf, float(limits.min) if neginf is None else neginf, x)
