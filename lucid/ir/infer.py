"""infer: the types of an operation's results, cached by operation and operand types."""

from __future__ import annotations

from typing import Any

from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.support.caches import new_cache

_inferred: dict[Any, Any] = new_cache(f"{__name__}._inferred", {})


def infer(op: Primitive, types: tuple[Type, ...]) -> Any:
    """Return `op.infer(*types)`, cached."""
    key = (op, types)
    result = _inferred.get(key)
    if result is not None:
        return result
    result = op.infer(*types)
    if not op.single_use:
        if len(_inferred) > 50_000:
            _inferred.clear()
        _inferred[key] = result
    return result
