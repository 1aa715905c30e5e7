"""The settings of an optimizer: of the declared types, and within their bounds."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

from lucid.errors import ArgumentError
from lucid.ir.source import at_line

ELSEWHERE = ("foreach", "fused", "capturable", "differentiable")


def check_elsewhere(name: str, settings: dict[str, Any], known: Iterable[str]) -> None:
    """Take what PyTorch asks about the manner of an update, which is one compiled call here."""
    unknown = [key for key in settings if key not in ELSEWHERE]
    if unknown:
        facts = f"{name}: no setting is named {', '.join(unknown)}"
        raise ArgumentError(f"{facts}; there are {', '.join(known)}{at_line()}")
    if settings.get("differentiable"):
        raise ArgumentError(
            f"{name}: its steps are not differentiated; optim.functional has the rule as a "
            f"function that is{at_line()}"
        )


def checked_settings(rule: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings in the types that the rule declares; numbers are not negative, and rates of decay
    are below 1."""
    kinds = declared(rule)
    checked = {}
    for key, value in settings.items():
        try:
            checked[key] = converted(kinds.get(key, ""), value)
        except (TypeError, ValueError):
            raise ArgumentError(f"{rule.__name__}: {key} cannot be {value!r}{at_line()}") from None
        parts = checked[key] if key in ("betas", "etas") else [checked[key]]
        for part in parts if key not in rule.signed else ():
            number = isinstance(part, (int, float)) and not isinstance(part, bool)
            if number and not (0 <= part < (1 if key in ("betas", "rho") else math.inf)):
                raise ArgumentError(f"{rule.__name__}: {key} cannot be {value}{at_line()}")
    return checked


def declared(rule: Any) -> dict[str, str]:
    """The types of a rule's settings, as its `__init__` annotates them."""
    found: dict[str, str] = {}
    for cls in reversed(rule.__mro__):
        found.update(getattr(cls.__dict__.get("__init__"), "__annotations__", {}))
    return found


def converted(kind: str, value: Any) -> Any:
    """A value as a setting of a declared type."""
    if kind == "float":
        return float(value)
    if kind.startswith("tuple"):
        parts = tuple(None if x is None else float(x) for x in value)
        if len(parts) != kind.count(",") + 1:
            raise ValueError
        return parts
    return operator.index(value) if kind == "int" else value
