"""A Row: a public name, calls of it to try, what an independent source gives, what it refuses.

    Row(
        "logaddexp",           # below lucid: "linalg.inv", "Tensor.unfold"
        np.logaddexp,          # gets NumPy arrays where the call has an Arg
        [
            call(real(3), real(2, 3)),
            call(real(), real(0), label="empty"),
        ],
        refused=[bad(ShapeError, "sizes 3 and 2", real(3), real(2))],
    )

An `Arg` (`real(2, 3)`, `integer(4)`, `boolean(2)`, `index(3, high=5)`; tests/cases/case.py) stands
wherever the operation takes a tensor, also in lists and keywords; anything else is passed as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tests.cases.case import Arg
from tests.collect import collected


@dataclass(frozen=True)
class Call:
    """Arguments to try a name on.

    expected    what the values are, where the row's own function does not say it
    smooth      whether derivatives are compared with finite differences, where the row differs
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    label: str = ""
    expected: Callable[..., Any] | None = None
    smooth: bool | None = None

    def but(self, **changes: Any) -> Call:
        """The same call with another label, `expected` or `smooth`."""
        return replace(self, **changes)

    def __str__(self) -> str:
        if self.label:
            return self.label
        parts = [describe(a) for a in self.args]
        parts += [f"{name}={describe(value)}" for name, value in self.kwargs.items()]
        return ",".join(parts).replace(" ", "") or "nothing"


def call(*args: Any, label: str = "", **kwargs: Any) -> Call:
    return Call(args, kwargs, label)


@dataclass(frozen=True)
class Refused:
    """A call that raises `error` with all `parts` in its message."""

    error: type[Exception]
    parts: tuple[str, ...]
    call: Call


def bad(error: type[Exception], part: str | tuple[str, ...], *args: Any, **kwargs: Any) -> Refused:
    """`name(*args, **kwargs)` raises this error, whose message has this part (or these parts)."""
    return Refused(error, (part,) if isinstance(part, str) else part, Call(args, kwargs))


@dataclass(frozen=True)
class Row:
    """One public name.

    expected    gets the arguments of a call with arrays for the Args (float64), gives an array or
                a tuple of arrays: NumPy, SciPy or a formula
    smooth      False where there is no derivative to compare with finite differences: integer or
                boolean results, or piecewise constant ones
    result      a function of the result to look at instead, where the result itself is not unique:
                `lambda q, r: (q @ r, abs(r))`; written with operators, so that it also runs on
                NumPy's and PyTorch's
    unmapped    why vmap refuses it ("the shape depends on values"), with its clear error
    unjitted    why jit is not compared
    laid_out    why the layout of the arguments in memory matters
    torch       PyTorch's spelling if it is another name, or a function (torch, *args, **kwargs);
                None where PyTorch has no such operation
    differs     a deliberate difference from PyTorch, in a sentence; parity lists it
    rtol        tolerance by dtype where the usual one is not right, with the reason beside it
    """

    name: str
    expected: Callable[..., Any]
    calls: Sequence[Call]
    refused: Sequence[Refused] = ()
    smooth: bool = True
    result: Callable[..., Any] | None = None
    unmapped: str = ""
    unjitted: str = ""
    laid_out: str = ""
    torch: Any = ""
    differs: str = ""
    rtol: dict[str, float] = field(default_factory=dict)

    def expects(self, c: Call, args: Any, kwargs: Any) -> list[np.ndarray]:
        values = (c.expected or self.expected)(*args, **kwargs)
        return [np.asarray(v) for v in self.seen(values)]

    def seen(self, result: Any) -> tuple[Any, ...]:
        """The parts of a result that are compared."""
        if self.result is not None:
            result = self.result(*result) if isinstance(result, tuple) else self.result(result)
        return tuple(parts_of(result))

    def is_smooth(self, c: Call) -> bool:
        return self.smooth if c.smooth is None else c.smooth


def parts_of(value: Any) -> Iterator[Any]:
    """The tensors or arrays in nested tuples and lists."""
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from parts_of(part)
    else:
        yield value


def fill(value: Any, leaf: Callable[[Arg], Any]) -> Any:
    """The same nested value with something in the place of every Arg."""
    if isinstance(value, Arg):
        return leaf(value)
    if isinstance(value, dict):
        return {key: fill(part, leaf) for key, part in value.items()}
    if type(value) in (tuple, list):
        return type(value)(fill(part, leaf) for part in value)
    return value


def arguments_in(c: Call) -> list[Arg]:
    """The Args of a call, in the order in which `fill` meets them."""
    found: list[Arg] = []
    fill((c.args, c.kwargs), found.append)
    return found


def arrays_for(c: Call, dtype: str = "float64", seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [np.asarray(arg.make(rng, dtype)) for arg in arguments_in(c)]


def filled(c: Call, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call with these values for its Args."""
    rest = iter(values)
    return fill((c.args, c.kwargs), lambda _: next(rest))


def rows() -> list[Row]:
    """The whole table: the ROWS of every module, with their MORE_CALLS."""
    more = {name: calls for found in collected("MORE_CALLS") for name, calls in found.items()}
    found = [row for rows in collected("ROWS") for row in rows]
    return [replace(row, calls=[*row.calls, *more.pop(row.name, ())]) for row in found]


def describe(value: Any) -> str:
    if isinstance(value, Arg):
        kind = "" if value.kind == "real" else value.kind[0] + ":"
        return kind + ("x".join(map(str, value.shape)) or "0d")
    if isinstance(value, (tuple, list)):
        return f"({','.join(map(describe, value))})"
    return str(value)
