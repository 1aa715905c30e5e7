"""infer: the types of an operation's results, remembered for each operation and operand types."""

from __future__ import annotations

from typing import Any

from lucid.errors import LucidError
from lucid.ir.primitive import Primitive
from lucid.ir.source import at_line
from lucid.ir.types import Type

_inferred: dict[Any, Any] = {}


def infer(op: Primitive, types: tuple[Type, ...]) -> Any:
    """`op.infer(*types)`, remembered; errors name the user's line."""
    key = (op, types)
    try:
        return _inferred[key]
    except KeyError:
        pass
    try:
        result = op.infer(*types)
    except LucidError as error:
        raise located(error) from None
    if not op.once:
        if len(_inferred) > 50_000:
            _inferred.clear()
        _inferred[key] = result
    return result


def located(error: LucidError) -> LucidError:
    """The error with the user's line at its end."""
    text = str(error)
    if text.endswith("]") and "   [" in text:
        return error
    return type(error)(text + at_line())
