"""Which parameters of which public names the table passes, in one form or another."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from typing import Any

import lucid
from tests.matrix.forms import forms_of, look_up, parameters, plain_form
from tests.table.row import Call, Row, arrays_for, rows
from tests.table.test_table import exported


def parameters_passed(row: Row, c: Call) -> set[str]:
    """The parameters that a call gives another value than their default."""
    function = look_up(row.name)
    known = parameters(function)
    try:
        bound = inspect.signature(function).bind(*c.args, **c.kwargs).arguments
    except TypeError:
        return set(c.kwargs)
    passed = {key for key, value in bound.items() if is_another(value, known[key].default)}
    return passed | {key for key in c.kwargs if key not in known}


def is_another(value: object, default: object) -> bool:
    return not (value is default or (type(value) is type(default) and value == default))


@cache
def covered() -> tuple[dict[Any, set[str]], set[str]]:
    """Parameters by function (without its wrappers), and the names of all forms of all calls."""
    by_function: dict[Any, set[str]] = {}
    names = set()
    for row in rows():
        function = look_up(row.name)
        passed = by_function.setdefault(inspect.unwrap(function), set())
        for c in row.calls:
            passed |= parameters_passed(row, c)
            lucid.manual_seed(0)
            example = plain_form(row.name, function, c).run([*map(lucid.tensor, arrays_for(c))])
            for form in forms_of(row, c, example):
                names.add(form.name.removesuffix("(...)"))
                passed |= form.keywords
    return by_function, names


def parameters_left() -> Iterator[tuple[str, str]]:
    """Every parameter of every public function, and of methods with rows, that no form passes."""
    by_function, _ = covered()
    for name in [*exported(), *(row.name for row in rows() if row.name.startswith("Tensor."))]:
        function = look_up(name)
        for key in parameters(function):
            if key not in by_function[inspect.unwrap(function)]:
                yield name, key


def methods_left() -> list[str]:
    """The public methods of Tensor that are in no form."""
    _, names = covered()
    public = [n for n in dir(lucid.Tensor) if not n.startswith("_")]
    return [n for n in public if callable(getattr(lucid.Tensor, n)) and f"Tensor.{n}" not in names]
