"""Rows of whole families: functions of one element, of two, and reductions over axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lucid.errors import AxisError, DTypeError, ShapeError
from tests.cases.case import Arg, complex_, integer, real
from tests.table.row import Call, Refused, Row, bad, call


def unary(
    name: str,
    expected: Callable[..., Any],
    *more: Call,
    takes: str = "f",
    refused: Sequence[Refused] = (),
    differs: str = "",
    smooth: bool = True,
    torch: Any = "",
    rtol: dict[str, float] | None = None,
    **domain: Any,
) -> Row:
    """A function of one element on `domain`; `takes` has "c" for complex and "i" for integers,
    whose results are exact on zeros ("0"), ones ("1") or all ("i")."""
    calls = [
        call(real(2, 3, **domain)),
        call(real(**domain)),
        call(real(2, 1, 3, **domain)),
        call(real(0, 2, **domain), label="empty"),
    ]
    if "c" in takes:
        calls += [call(complex_(2, 2, **domain)), call(complex_(0), label="empty-complex")]
    for letter, low, high in (("0", 0, 1), ("1", 1, 2), ("i", -5, 6)):
        if letter in takes:
            calls.append(call(integer(4, low=low, high=high)))
    wrong = [bad(DTypeError, "not numeric", "text")]
    if "c" not in takes:
        wrong.append(bad(DTypeError, "complex", complex_(2)))
    return Row(
        name, expected, [*calls, *more], [*wrong, *refused], smooth, torch=torch, differs=differs,
        rtol=rtol or {},
    )  # fmt: skip


def binary(
    name: str,
    expected: Callable[..., Any],
    *more: Call,
    make: Callable[..., Arg] = real,
    number: Any = 1.5,
    refused: Sequence[Refused] = (),
    differs: str = "",
    smooth: bool = True,
    torch: Any = "",
    numbers_in_torch: bool = True,
    **domain: Any,
) -> Row:
    """A function of two elements that broadcast; `number` is tried as a Python operand, which
    PyTorch takes only where `numbers_in_torch`."""
    calls = [
        call(make(3, **domain), make(2, 3, **domain)),
        call(make(2, 1, **domain), make(1, 4, **domain)),
        call(make(**domain), make(2, **domain)),
        call(make(**domain), make(**domain)),
        call(make(0, 1, **domain), make(2, **domain), label="empty"),
    ]
    if number is not None:
        calls.append(call(make(2, 2, **domain), number))
    wrong = [
        bad(ShapeError, "do not broadcast", make(3, **domain), make(2, **domain)),
        bad(DTypeError, "not numeric", make(3, **domain), "text"),
    ]
    if not numbers_in_torch:
        torch = of_tensors(name)
    return Row(
        name, expected, [*calls, *more], [*wrong, *refused], smooth, torch=torch, differs=differs
    )


def of_tensors(name: str) -> Callable[..., Any]:
    """PyTorch's function with a Python number as a tensor of the other operand's dtype."""
    return lambda t, x, y: getattr(t, name)(x, y if t.is_tensor(y) else t.tensor(y, dtype=x.dtype))


def reduction(
    name: str,
    expected: Callable[..., Any],
    *more: Call,
    empty: bool = True,
    make: Callable[..., Arg] = real,
    refused: Sequence[Refused] = (),
    differs: str = "",
    smooth: bool = True,
    torch: Any = "",
    **domain: Any,
) -> Row:
    """Over all axes, one, several, kept or not. `expected(x, axis, keepdims)`."""

    def words(x: np.ndarray, dim: Any = None, keepdim: bool = False, **rest: Any) -> Any:
        dim, keepdim = rest.pop("axis", dim), rest.pop("keepdims", keepdim)
        axes = tuple(dim) if isinstance(dim, list) else dim
        return expected(x, None if axes == () else axes, keepdim, **rest)

    calls = [
        call(make(2, 3, **domain)),
        call(make(**domain)),
        call(make(2, 3, 4, **domain), 1),
        call(make(2, 3, 4, **domain), (0, -1)),
        call(make(2, 3, **domain), dim=-1, keepdim=True),
        call(make(2, 3, 2, **domain), axis=(0, 1), keepdims=True),
        call(make(3, 0, **domain), 0, label="empty-result"),
    ]
    if empty:
        calls += [
            call(make(0, **domain), label="empty"),
            call(make(2, 0, **domain), 1, label="empty-rows"),
        ]
    wrong = [
        bad(AxisError, ("axis 2", "2 axes"), make(2, 3, **domain), 2),
        bad(AxisError, "appears twice", make(2, 3, **domain), (0, 0)),
        bad(AxisError, "not an integer", make(2, 3, **domain), "rows"),
    ]
    if not empty:
        wrong.append(bad(ShapeError, "empty", make(2, 0, **domain), 1))
    return Row(
        name, words, [*calls, *more], [*wrong, *refused], smooth, torch=torch, differs=differs
    )
