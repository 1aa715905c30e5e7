"""precision: how the float32 results of a program differ from float64, equation by equation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.debugging.recording import line, recorded
from lucid.debugging.widening import WIDE, wide_array, wide_op_of
from lucid.ir.graph import Literal
from lucid.ops.core.arguments import public_function


@dataclass(frozen=True)
class Row:
    """An equation: the error that it adds itself, and the error of its result, in ulps."""

    op: str
    where: str
    own: float
    total: float


@dataclass(frozen=True)
class Precision:
    """The errors of a program's equations, each at its worst element, in ulps."""

    rows: tuple[Row, ...]

    @property
    def worst(self) -> tuple[Row, ...]:
        """The equations with the largest errors of their results, at most ten."""
        return tuple(sorted(self.rows, key=lambda row: -row.total)[:10])

    def __repr__(self) -> str:
        if not self.rows:
            return "no equation has a float32 result"
        lines = ["ulps of its result  that it adds  equation"]
        for row in self.worst:
            lines.append(f"{row.total:18.1f}  {row.own:12.1f}  {row.op}{row.where}")
        return "\n".join(lines)


@public_function()
def precision(f: Callable[..., Any], *args: Any) -> Precision:
    """Compare every equation of a program in float32 with the same in float64.

    >>> import lucid
    >>> x = lucid.tensor([1.0, 1e-4])
    >>> found = lucid.precision(lambda x: (1.0 + x) - 1.0, x)
    >>> found.worst[0].op, found.worst[0].own < 1 < found.worst[0].total
    ('sub', True)
    """
    graph, inputs = recorded(f, args)
    narrow: dict[Any, Any] = dict(zip(graph.inputs, inputs))
    wide: dict[Any, Any] = {var: wide_array(x) for var, x in narrow.items()}
    rows = []
    for eqn in graph.equations:
        xs = [x.array if isinstance(x, Literal) else narrow[x] for x in eqn.inputs]
        ws = [wide_array(x.array) if isinstance(x, Literal) else wide[x] for x in eqn.inputs]
        with np.errstate(all="ignore"):
            ys = as_list(eqn.op.eval(*xs))
            exact = as_list(evaluate_wide(eqn, ws))
            local = as_list(evaluate_wide(eqn, [wide_array(x) for x in xs]))
        narrow.update(zip(eqn.outputs, ys))
        wide.update(zip(eqn.outputs, exact))
        if ys and np.asarray(ys[0]).dtype.name in WIDE:
            own, total = ulps(ys[0], local[0]), ulps(ys[0], exact[0])
            rows.append(Row(eqn.op.name, line(eqn), own, total))
    return Precision(tuple(rows))


def evaluate_wide(eqn: Any, xs: list[Any]) -> Any:
    """The result of an equation in float64; a cast to float32 stays in float64."""
    found = wide_op_of(eqn).eval(*xs)
    return tuple(map(wide_array, found)) if isinstance(found, tuple) else wide_array(found)


def as_list(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [np.asarray(found)]


def ulps(y: Any, exact: Any) -> float:
    """The largest difference of an element, in units of its last place."""
    y, exact = np.asarray(y), np.asarray(exact)
    if y.shape != exact.shape:
        return float("nan")
    size = np.abs(exact)
    known = np.isfinite(size) & np.isfinite(y)
    if not known.any():
        return 0.0
    size = np.where(size == 0, size[known].max(), size)  # a zero has no last place
    with np.errstate(all="ignore"):
        gap = np.abs(y.astype(exact.dtype) - exact) / (size * np.finfo(y.dtype).eps)
    return float(np.nan_to_num(gap[known], nan=0.0).max())
