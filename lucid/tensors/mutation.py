"""assign: the in-place write (`tape.writes`) of a result that is cast and expanded to fit."""

from __future__ import annotations

from typing import Any

from lucid.errors import DTypeError, LucidError, ShapeError
from lucid.ops.core.promote import cast
from lucid.tape.writes import check_writable, write

RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def assign(x: Any, new: Any, what: str) -> Any:
    """Give `x` the value and the history of `new`, whose memory no other tensor shares."""
    check_writable(x, what)
    return write(x, cast_and_expand(x, new, what), what)


def cast_and_expand(x: Any, new: Any, what: str) -> Any:
    """Return `new` cast to the dtype and expanded to the shape of `x`, or raise an error."""
    a, b = x.raw, new.raw
    if a is not None and b is not None and a.dtype is b.dtype and a.shape == b.shape:
        return new
    if RANK[new.dtype.kind] > RANK[x.dtype.kind]:
        raise DTypeError(
            f"{what}: a result of dtype {new.dtype} cannot be stored in a tensor of dtype "
            f"{x.dtype}; use the out-of-place operation"
        )
    if new.shape != x.shape:
        try:
            new = new.expand(x.shape)
        except LucidError:
            raise ShapeError(
                f"{what}: a result of shape {new.shape} does not fit into a tensor of shape "
                f"{x.shape}"
            ) from None
    return cast(new, x.dtype)
