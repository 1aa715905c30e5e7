"""What the functions of neural networks share: operands made ready, choices checked, reductions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ir.source import at_line
from lucid.ops.core.arguments import known_array as known_array
from lucid.ops.core.promote import as_tensor, cast, get_default_dtype, result_type
from lucid.tape.node import Traced

REDUCTIONS = ("none", "mean", "sum")


def real(name: str, x: Any) -> Any:
    """`x` as a tensor of a real floating dtype."""
    x = not_complex(name, x)
    return x if x.dtype.kind == "f" else cast(x, get_default_dtype())


def not_complex(name: str, x: Any) -> Any:
    if not isinstance(x, Traced):
        x = as_tensor(x)
    if x.dtype.kind == "c":
        facts = f"operand of dtype {x.dtype}; it takes real numbers"
        raise DTypeError(f"{name}: {facts}{at_line()}")
    return x


def reals(name: str, *xs: Any) -> list[Any]:
    """Tensors of one real floating dtype; Python numbers take that of the tensors."""
    given = [x if isinstance(x, (bool, int, float)) else not_complex(name, x) for x in xs]
    dtype = result_type(*given)
    if dtype.kind != "f":
        dtype = get_default_dtype()
    return [cast(x, dtype) if isinstance(x, Traced) else as_tensor(x, dtype) for x in given]


def integers(name: str, x: Any, what: str = "target") -> Any:
    """`x` as a tensor of integers."""
    x = as_tensor(x)
    if x.dtype.kind not in "iu":
        raise DTypeError(f"{name}: {what} of dtype {x.dtype}; it holds integers{at_line()}")
    return x


def number(name: str, value: Any, what: str) -> float:
    """A plain number from a Python or NumPy one."""
    if isinstance(value, (bool, int, float, np.integer, np.floating)):
        return float(value)
    raise ArgumentError(f"{name}: {what}={value!r} is not a number{at_line()}")


def whole(name: str, value: Any, what: str, least: int = 0) -> int:
    """An integer that is at least `least`."""
    if isinstance(value, (bool, float)) or not hasattr(value, "__index__"):
        raise ArgumentError(f"{name}: {what}={value!r} is not an integer{at_line()}")
    if value.__index__() < least:
        raise ArgumentError(f"{name}: {what}={value!r}; it is at least {least}{at_line()}")
    return value.__index__()


def choice(name: str, value: Any, what: str, allowed: tuple[str, ...]) -> str:
    """A word out of a few."""
    if isinstance(value, str) and value in allowed:
        return value
    words = ", ".join(map(repr, allowed))
    raise ArgumentError(f"{name}: {what}={value!r}; it is one of {words}{at_line()}")


def reduction_of(name: str, reduction: Any, size_average: Any = None, reduce: Any = None) -> str:
    """How a loss is reduced; `size_average` and `reduce` are PyTorch's older words for it."""
    if size_average is not None or reduce is not None:
        if reduce is not None and not reduce:
            return "none"
        return "mean" if size_average is None or size_average else "sum"
    return choice(name, reduction, "reduction", REDUCTIONS)


def reduced(x: Any, reduction: str) -> Any:
    """All elements, their mean or their sum."""
    return x if reduction == "none" else x.mean() if reduction == "mean" else x.sum()


def warn_of_broadcasting(name: str, x: Any, t: Any) -> None:
    """Warn of a target of another shape: (n, 1) and (n,) have n² differences, rarely meant."""
    if x.shape != t.shape:
        facts = f"input of shape {x.shape} and target of shape {t.shape} are broadcast"
        remedy = "reshape one of them, unless that is meant"
        warnings.warn(f"{name}: {facts}; {remedy}{at_line()}", UserWarning, stacklevel=3)


def same_shape(name: str, what: str, x: Any, y: Any) -> None:
    if x.shape != y.shape:
        facts = f"{what} of shapes {x.shape} and {y.shape}; they must be equal"
        raise ShapeError(f"{name}: {facts}{at_line()}")
