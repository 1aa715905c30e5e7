"""Pickles of decorated functions: after `@jit def f` the name `f` refers to a wrapper.

A function is pickled by its qualified name, and the function inside a wrapper is no longer there.
While a wrapper is pickled, its function is therefore named `f.function`, where it can be found. The
receiving process uses its own wrapper `f`, and with it the programs that it has compiled.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any


def found_at(module: str, qualname: str) -> Any:
    """Return what a qualified name stands for, or None."""
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def wrapper_of(function: Any) -> Any:
    """Return the wrapper that has the name of a decorated function, or None."""
    if not isinstance(function, FunctionType):
        return None
    found = found_at(function.__module__, function.__qualname__.removesuffix(".function"))
    return found if getattr(found, "function", None) is function else None


def portable_function(function: Any) -> Any:
    """Return the function of a wrapper; a pickle finds it although a decorator took its name."""
    if wrapper_of(function) is not None and not function.__qualname__.endswith(".function"):
        function.__qualname__ += ".function"
    return function
