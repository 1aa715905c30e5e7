"""Argument checks and loss reductions shared by the functions of neural networks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ops.core.arguments import concrete_array as concrete_array
from lucid.ops.core.promote import as_tensor, cast, get_default_dtype, result_type
from lucid.support.source import at_line
from lucid.tape.node import Traced

REDUCTIONS = ("none", "mean", "sum")


def as_real(name: str, x: Any) -> Any:
    """Return `x` as a tensor of a real floating dtype."""
    x = reject_complex(name, x)
    return x if x.dtype.kind == "f" else cast(x, get_default_dtype())


def reject_complex(name: str, x: Any) -> Any:
    """Return `x` as a tensor; raise DTypeError if it is complex."""
    if not isinstance(x, Traced):
        x = as_tensor(x)
    if x.dtype.kind == "c":
        raise DTypeError(f"{name}: operand of dtype {x.dtype}; it must be real")
    return x


def as_reals(name: str, *xs: Any) -> list[Any]:
    """Return tensors of one real floating dtype; Python numbers take the dtype of the tensors."""
    given = [x if isinstance(x, (bool, int, float)) else reject_complex(name, x) for x in xs]
    dtype = result_type(*given)
    if dtype.kind != "f":
        dtype = get_default_dtype()
    return [cast(x, dtype) if isinstance(x, Traced) else as_tensor(x, dtype) for x in given]


def as_integers(name: str, x: Any, what: str = "target") -> Any:
    """Return `x` as a tensor of integers."""
    x = as_tensor(x)
    if x.dtype.kind not in "iu":
        raise DTypeError(f"{name}: {what} of dtype {x.dtype}; it must hold integers")
    return x


def check_number(name: str, value: Any, what: str) -> float:
    """Return a Python or NumPy number as a float; raise ArgumentError for anything else."""
    if isinstance(value, (bool, int, float, np.integer, np.floating)):
        if what == "eps" and not value >= 0:
            raise ArgumentError(f"{name}: eps={value!r}; it must be at least 0")
        return float(value)
    raise ArgumentError(f"{name}: {what}={value!r} is not a number")


def check_integer(name: str, value: Any, what: str, least: int = 0) -> int:
    """Return an integer of at least `least`; raise ArgumentError for anything else."""
    if isinstance(value, (bool, float)) or not hasattr(value, "__index__"):
        raise ArgumentError(f"{name}: {what}={value!r} is not an integer")
    if value.__index__() < least:
        raise ArgumentError(f"{name}: {what}={value!r}; it must be at least {least}")
    return value.__index__()


def check_choice(name: str, value: Any, what: str, allowed: tuple[str, ...]) -> str:
    """Return `value` if it is one of the allowed strings; raise ArgumentError otherwise."""
    if isinstance(value, str) and value in allowed:
        return value
    words = ", ".join(map(repr, allowed))
    raise ArgumentError(f"{name}: {what}={value!r}; it must be one of {words}")


def resolve_reduction(
    name: str, reduction: Any, size_average: Any = None, reduce: Any = None
) -> str:
    """Return the reduction, also from PyTorch's deprecated `size_average` and `reduce`."""
    if size_average is not None or reduce is not None:
        if reduce is not None and not reduce:
            return "none"
        return "mean" if size_average is None or size_average else "sum"
    return check_choice(name, reduction, "reduction", REDUCTIONS)


def reduce_loss(x: Any, reduction: str) -> Any:
    """Return all elements, their mean or their sum."""
    return x if reduction == "none" else x.mean() if reduction == "mean" else x.sum()


def warn_if_broadcast(name: str, x: Any, t: Any) -> None:
    """Warn if target and input differ in shape: (n, 1) and (n,) give n² differences."""
    if x.shape != t.shape:
        facts = f"input of shape {x.shape} and target of shape {t.shape} are broadcast"
        remedy = "reshape one of them unless that is intended"
        warnings.warn(f"{name}: {facts}; {remedy}{at_line()}", UserWarning, stacklevel=3)


def check_same_shape(name: str, what: str, x: Any, y: Any) -> None:
    """Raise ShapeError unless `x` and `y` have the same shape."""
    if x.shape != y.shape:
        raise ShapeError(f"{name}: {what} of shapes {x.shape} and {y.shape}; they must be equal")
