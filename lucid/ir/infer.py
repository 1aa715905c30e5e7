"""infer: the types of an operation's results, cached by operation and operand types."""

from __future__ import annotations

from typing import Any

from lucid.caches import new_cache
from lucid.errors import LucidError
from lucid.ir.primitive import Primitive
from lucid.ir.source import at_line
from lucid.ir.types import Type

_inferred: dict[Any, Any] = new_cache(f"{__name__}._inferred", {})


def infer(op: Primitive, types: tuple[Type, ...]) -> Any:
    """Return `op.infer(*types)`, cached; errors name the user's line."""
    key = (op, types)
    try:
        return _inferred[key]
    except KeyError:
        pass
    try:
        result = op.infer(*types)
    except LucidError as error:
        raise with_line(error) from None
    if not op.single_use:
        if len(_inferred) > 50_000:
            _inferred.clear()
        _inferred[key] = result
    return result


def with_line(error: LucidError) -> LucidError:
    """Return the error with the user's line appended."""
    text = str(error)
    if text.endswith("]") and "   [" in text:
        return error
    return type(error)(text + at_line())
