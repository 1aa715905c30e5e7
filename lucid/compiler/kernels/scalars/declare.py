"""`@scalar`: the one declaration of a scalar function of kernels, beside its formula."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .language import Value

Formula = Callable[..., Value]


@dataclass(frozen=True)
class ScalarFunction:
    """A scalar function: its formula, its arity, its largest error in ulps, and its source."""

    body: Formula
    arity: int
    ulps: int
    source: str | Callable[..., Any] = ""

    @property
    def name(self) -> str:
        return self.body.__name__

    @property
    def reference(self) -> Callable[..., Any]:
        """The same function from NumPy or SciPy, used where nothing is compiled."""
        if not isinstance(self.source, str):
            return self.source
        module, _, name = self.source.rpartition(".")
        return getattr(import_module(module), name)


table: dict[str, ScalarFunction] = {}


def scalar(reference: str | Callable[..., Any], ulps: int = 2) -> Callable[[Formula], Formula]:
    """Add a function to the table.

    reference    the same function of arrays: "numpy.sinh", or a function
    ulps         a bound of the error over the whole range, subnormals included
    """

    def declare(body: Formula) -> Formula:
        arity = len(inspect.signature(body).parameters)
        table[body.__name__] = ScalarFunction(body, arity, ulps, reference)
        return body

    return declare
