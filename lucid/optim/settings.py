"""Checks of optimizer settings: their declared types and bounds."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

from lucid.errors import ArgumentError

IGNORED_SETTINGS = ("foreach", "fused", "capturable", "differentiable")


def check_ignored(name: str, settings: dict[str, Any], known: Iterable[str]) -> None:
    """Accept PyTorch's settings of how an update runs, which have no effect here."""
    unknown = [key for key in settings if key not in IGNORED_SETTINGS]
    if unknown:
        facts = f"{name}: unknown setting {', '.join(unknown)}"
        raise ArgumentError(f"{facts}; settings are {', '.join(known)}")
    if settings.get("differentiable"):
        raise ArgumentError(
            f"{name}: steps are not differentiable; optim.functional has the rule as a "
            "differentiable function"
        )


def check_settings(rule: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings in their declared types; raise ArgumentError if one is out of bounds."""
    kinds = declared_types(rule)
    checked = {}
    for key, value in settings.items():
        try:
            checked[key] = convert_setting(kinds.get(key, ""), value)
        except (TypeError, ValueError):
            raise ArgumentError(f"{rule.__name__}: {key} cannot be {value!r}") from None
        parts = checked[key] if key in ("betas", "etas") else [checked[key]]
        for part in parts if key not in rule.signed else ():
            number = isinstance(part, (int, float)) and not isinstance(part, bool)
            if number and not (0 <= part < (1 if key in ("betas", "rho") else math.inf)):
                raise ArgumentError(f"{rule.__name__}: {key} cannot be {value}")
    return checked


def declared_types(rule: Any) -> dict[str, str]:
    """Return the types of a rule's settings, as annotated in its `__init__`."""
    found: dict[str, str] = {}
    for cls in reversed(rule.__mro__):
        found.update(getattr(cls.__dict__.get("__init__"), "__annotations__", {}))
    return found


def convert_setting(kind: str, value: Any) -> Any:
    """Convert a value to the declared type of a setting."""
    if kind == "float":
        return float(value)
    if kind.startswith("tuple"):
        parts = tuple(None if x is None else float(x) for x in value)
        if len(parts) != kind.count(",") + 1:
            raise ValueError
        return parts
    return operator.index(value) if kind == "int" else value
