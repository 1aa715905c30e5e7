"""apply: from the operands of a public function or an operator to `bind`, the short way where they are plain.

Dtypes are checked here as well as in `infer`, because NumPy's functions take some that a primitive does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import DTypeError
from lucid.ir.graph import Literal
from lucid.ir.source import at_line
from lucid.ir.tape import Traced, bind, bind_one, bind_pair, infer
from lucid.ops.kinds import Elementwise
from lucid.ops.promote import as_tensor, cast, get_default_dtype, literal, promote

Scalar = tuple[Literal, np.ndarray]

_scalars: dict[np.dtype, dict[Any, Scalar]] = {}
_LIMIT = 1024


def scalar(value: int | float, dtype: np.dtype) -> Scalar | None:
    """A Python number at a dtype as a Literal and as a 0-d array, kept; None where it does not fit."""
    try:
        known = _scalars[dtype]
    except KeyError:
        known = _scalars[dtype] = {}
    key = value if value else str(value)  # -0.0 is not 0.0
    found = known.get(key)
    if found is None:
        try:
            lit = literal(value, dtype)
        except (DTypeError, OverflowError):
            return None
        array = lit.array
        array.flags.writeable = False
        if len(known) >= _LIMIT:
            known.clear()
        found = known[key] = (lit, array)
    return found


def unary(op: Elementwise, x: Any) -> Any:
    """`op` of a tensor, or of what becomes one, in its own dtype."""
    if not isinstance(x, Traced):
        x = as_tensor(x)
    value = x.value
    if value is None:
        return bind(op, x)
    if value.dtype.kind not in op.accepts:
        infer(op, (x.type,))
    return bind_one(op, x)


def floating(op: Elementwise, x: Any) -> Any:
    """`op` of a tensor; integers and booleans become the default float."""
    if not isinstance(x, Traced):
        x = as_tensor(x)
    if x.dtype.kind not in "fc":
        x = cast(x, get_default_dtype())
    return unary(op, x)


def binary(op: Elementwise, x: Any, y: Any) -> Any:
    """`op` of two operands promoted to one dtype; booleans count as integers where it takes none."""
    if isinstance(x, Traced) and isinstance(y, Traced):
        a, b = x.value, y.value
        if a is not None and b is not None and a.dtype is b.dtype and a.dtype.kind in op.accepts:
            return bind_pair(op, x, y)
    return _bind_checked(op, promote(x, y))


def floating_binary(op: Elementwise, x: Any, y: Any) -> Any:
    """`op` of two operands promoted to one floating dtype."""
    return _bind_checked(op, promote(x, y, floating=True))


def _bind_checked(op: Elementwise, xs: list[Any]) -> Any:
    kind = xs[0].dtype.kind
    if kind not in op.accepts:
        if kind == "b" and "i" in op.accepts:
            xs = promote(*[cast(x, "int64") if isinstance(x, Traced) else int(x.value) for x in xs])
        else:
            infer(op, tuple([x.type for x in xs]))
    return bind(op, *xs)


def refuse(name: str, dtype: np.dtype, why: str) -> DTypeError:
    """The error for a dtype that a function does not take."""
    return DTypeError(f"{name}: operand of dtype {dtype}; {why}{at_line()}")
