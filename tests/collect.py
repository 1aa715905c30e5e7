"""What modules of tests/cases and tests/table declare: CASES, ROWS, SCALAR_EXACT, SCALAR_SPECIAL.

A file may hold all that is known of one operation, in either folder.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import tests.cases
import tests.table


def collected(name: str) -> list[Any]:
    """Return the variable `name` of every module that has it."""
    found = []
    for package in (tests.cases, tests.table):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if not module.name.endswith((".test_table", ".parity")):
                found.append(getattr(importlib.import_module(module.name), name, None))
    return [value for value in found if value is not None]
