"""A tensor that requires a gradient, given for a number: it is differentiated or refused.

Every numeric parameter of every row is tried: those that the row's calls pass and those with a
numeric default, also numbers inside of tuples and lists.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import lucid
from lucid.errors import LucidError
from tests.table import laws
from tests.table.row import Call, Row, arrays_for, filled, parts_of, rows

STEP = 1e-5
SPECIAL = (0.0, 1.0, -1.0, 2.0, 0.5)
OPERANDS = {("max", "dim"), ("min", "dim")}  # a tensor there is the second operand


@dataclass(frozen=True)
class Parameter:
    """A call of a function as a function of one of its numbers, `value` where the row says so."""

    name: str
    value: float
    call: Callable[[Any], Any]

    def __call__(self, x: Any) -> Any:
        """The weighted sum of all floating results, the same random numbers for every call."""
        lucid.manual_seed(0)
        total: Any = 0.0
        for i, part in enumerate(parts_of(self.call(x))):
            if isinstance(part, lucid.Tensor) and part.dtype.kind in "fc" and part.numel():
                part = part.real + 2 * part.imag if part.dtype.kind == "c" else part
                weights = np.cos(np.arange(part.numel()) + i).reshape(part.shape)
                total = total + (part.to("float64") * lucid.tensor(weights)).sum()
        return total


def is_number(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def places(value: Any) -> Iterator[tuple[float, Callable[[Any], Any]]]:
    """The numbers in an argument, each with a function that puts another in its place."""
    if is_number(value):
        yield value, lambda x: x
    elif type(value) in (tuple, list):
        for i, part in enumerate(value):
            for number, put in places(part):
                yield (
                    number,
                    lambda x, i=i, put=put: type(value)([*value[:i], put(x), *value[i + 1 :]]),
                )


def parameters(row: Row) -> dict[str, Parameter]:
    """The numeric parameters of a row, each in the first call that has it."""
    found: dict[str, Parameter] = {}
    for c in row.calls:
        for name, value in bound_arguments(row, c).arguments.items():
            words = value.items() if name == "kwargs" else [(name, value)]
            for key, part in words:
                for number, put in list(places(part))[:2]:
                    call = partial(call_with, row, c, name, key, put)
                    found.setdefault(key, Parameter(key, number, call))
    return found


def bound_arguments(row: Row, c: Call) -> inspect.BoundArguments:
    """The arguments of a call by the names of the parameters, with tensors of their own."""
    args, kwargs = filled(c, [lucid.tensor(x) for x in arrays_for(c)])
    bound = inspect.signature(laws.function_of(row)).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound


def call_with(row: Row, c: Call, name: str, key: str, put: Any, x: Any) -> Any:
    """Call the function of a row with `x` in one place of the parameter `key`."""
    bound = bound_arguments(row, c)
    words = bound.arguments[name]
    bound.arguments[name] = {**words, key: put(x)} if name == "kwargs" else put(x)
    return laws.function_of(row)(*bound.args, **bound.kwargs)


def slopes(p: Parameter) -> list[float]:
    """The finite differences: central, and on both sides, because a function may jump here.

    It is empty if only some numbers are accepted, such as integers.
    """
    try:
        above, here, below = (lucid.as_tensor(p(p.value + h)).item() for h in (STEP, 0, -STEP))
    except (LucidError, TypeError, ValueError):
        return []
    return [(above - below) / (2 * STEP), (above - here) / STEP, (here - below) / STEP]


def check(p: Parameter) -> bool:
    """Return whether a tensor was accepted, with the right derivative."""
    x = lucid.tensor(float(p.value), dtype="float64", requires_grad=True)
    try:
        y = p(x)
    except LucidError as error:
        assert "test_tensor_parameters.py" in str(error), f"no line in: {error}"
        return False
    if not isinstance(y, lucid.Tensor):
        return False  # no floating results
    if y.requires_grad:
        y.backward()
    found = 0.0 if x.grad is None else x.grad.item()
    expected = slopes(p)
    assert expected, f"a tensor is taken for {p.value}, which is not any real number"
    close = [pytest.approx(e, rel=1e-5, abs=1e-6, nan_ok=True) for e in expected]
    assert found in close, f"{found}, not {expected}"
    return True


@pytest.fixture(autouse=True)
def in_double_precision():
    lucid.set_default_dtype("float64")


def check_everywhere(p: Parameter) -> None:
    """Check a parameter that takes tensors also where functions like to take short cuts."""
    if check(p):
        for value in SPECIAL:
            special = replace(p, value=value)
            if np.isfinite(slopes(special) or np.nan).all():
                check(special)


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in rows()])
def test_tensor_for_a_number_is_differentiated_or_refused(row):
    wrong = []
    for p in parameters(row).values():
        if (row.name, p.name) in OPERANDS:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", category=RuntimeWarning)
            try:
                check_everywhere(p)
            except Exception as error:
                reason = str(error).partition("\n")[0]
                wrong.append(f"{p.name}={p.value}: {type(error).__name__}: {reason}")
    assert not wrong, f"{row.name}: " + "; ".join(wrong)


V = np.array([0.5, 2.5, 1.0, 4.0])
M = np.array([[4.0, 1.0], [1.0, 3.0]])
NUMPY = {  # NumPy's functions of tensors, as functions of one number, and its value
    "clip": (lambda v, m, x: np.clip(v, x, 3.0), 1.5),
    "cov": (lambda v, m, x: np.cov(v, ddof=x), 1.0),
    "cond": (lambda v, m, x: np.linalg.cond(m, x), 2.0),
    "diff": (lambda v, m, x: np.diff(v, prepend=x), 1.0),
    "full_like": (lambda v, m, x: np.full_like(v, x), 1.0),
    "gradient": (lambda v, m, x: np.gradient(v, x), 0.5),
    "histogram": (lambda v, m, x: np.histogram(v, 3, range=(0.0, x))[1], 5.0),
    "interp": (lambda v, m, x: np.interp(v, [1.0, 2.0], [3.0, 4.0], left=x), 1.0),
    "interp fp": (lambda v, m, x: np.interp(v, [1.0, x], [3.0, 4.0]), 2.0),
    "matrix_norm": (lambda v, m, x: np.linalg.norm(m, x), 2.0),
    "matrix_power": (lambda v, m, x: np.linalg.matrix_power(m, x), 2.0),
    "nan_to_num": (lambda v, m, x: np.nan_to_num(v * np.array([1, np.nan, 1, 1]), nan=x), 1.0),
    "nanpercentile": (lambda v, m, x: np.nanpercentile(v, x), 40.0),
    "nanquantile": (lambda v, m, x: np.nanquantile(v, x), 0.4),
    "nanvar": (lambda v, m, x: np.nanvar(v, ddof=x), 1.0),
    "norm": (lambda v, m, x: np.linalg.norm(v, x), 3.0),
    "pad": (lambda v, m, x: np.pad(v, 1, constant_values=x), 1.0),
    "percentile": (lambda v, m, x: np.percentile(v, x), 40.0),
    "pinv": (lambda v, m, x: np.linalg.pinv(m, rcond=x), 1e-3),
    "polyval": (lambda v, m, x: np.polyval(v, x), 1.5),
    "quantile": (lambda v, m, x: np.quantile(v, [0.2, x]), 0.4),
    "roll": (lambda v, m, x: np.roll(v, x), 1.0),
    "round": (lambda v, m, x: np.round(v, x), 1.0),
    "select": (lambda v, m, x: np.select([v > 1], [v], x), 1.0),
    "std": (lambda v, m, x: np.std(v, ddof=x), 1.0),
    "sum": (lambda v, m, x: np.sum(m, x), 1.0),
    "tile": (lambda v, m, x: np.tile(v, x), 2.0),
    "trapezoid": (lambda v, m, x: np.trapezoid(v, dx=x), 0.5),
    "vector_norm": (lambda v, m, x: np.linalg.vector_norm(v, ord=x), 3.0),
    "where": (lambda v, m, x: np.where(v > 1, v, x), 1.0),
}


@pytest.mark.parametrize(("call", "value"), NUMPY.values(), ids=NUMPY)
def test_tensor_for_a_number_of_numpy_is_differentiated_or_refused(call, value):
    check(Parameter("x", value, lambda x: call(lucid.tensor(V), lucid.tensor(M), x)))
