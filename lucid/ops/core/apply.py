"""From the operands of a public function to `bind`, with fast paths for tensors and Python numbers.

Dtypes are checked here too, because NumPy's functions accept some that a primitive does not.
"""

from __future__ import annotations

from threading import get_ident
from typing import Any

import numpy as np

from lucid.errors import DTypeError
from lucid.ir.graph import Literal
from lucid.ir.infer import infer
from lucid.ops.core.kinds import Elementwise
from lucid.ops.core.promote import as_tensor, cast, get_default_dtype, literal, promote
from lucid.support.caches import new_cache
from lucid.tape.bind import bind
from lucid.tape.fast_bind import bind_one, bind_pair, bind_scalar
from lucid.tape.node import ONE, Traced, followers

Scalar = tuple[Literal, np.ndarray]

_scalars: dict[np.dtype, dict[Any, Scalar]] = new_cache(f"{__name__}._scalars", {})
_LIMIT = 1024


def cached_scalar(value: int | float, dtype: np.dtype) -> Scalar | None:
    """Return a Python number as a cached Literal and 0-d array, or None if it does not fit."""
    try:
        cache = _scalars[dtype]
    except KeyError:
        cache = _scalars[dtype] = {}
    key = value if value else str(value)  # -0.0 is not 0.0
    found = cache.get(key)
    if found is None:
        try:
            lit = literal(value, dtype)
        except (DTypeError, OverflowError):
            return None
        array = lit.array
        array.flags.writeable = False
        if len(cache) >= _LIMIT:
            cache.clear()
        found = cache[key] = (lit, array)
    return found


def unary(op: Elementwise, x: Any) -> Any:
    """Apply `op` to one operand in its own dtype."""
    if not isinstance(x, Traced):
        x = as_tensor(x)
    value = x.raw
    if value is None:
        return bind(op, x)
    if value.dtype.kind not in op.accepts:
        infer(op, (x.type,))
    return bind_one(op, x, 3)


def floating(op: Elementwise, x: Any) -> Any:
    """Apply `op` to one operand; integers and booleans become the default float dtype."""
    if isinstance(x, Traced):
        if followers and (follower := followers.get(get_ident())) is not None:
            found = follower.quick(op, ONE, x)
            if found is not None:
                return found
        value = x.raw
        if value is not None and value.dtype.kind == "f" and "f" in op.accepts:
            return bind_one(op, x, 3)
    if not isinstance(x, Traced):
        x = as_tensor(x)
    if x.dtype.kind not in "fc":
        x = cast(x, get_default_dtype())
    return unary(op, x)


def binary(op: Elementwise, x: Any, y: Any) -> Any:
    """Apply `op` to two operands of one promoted dtype; booleans become int64 if not accepted."""
    if isinstance(x, Traced) and x.raw is not None:
        dtype = x.raw.dtype
        if isinstance(y, Traced):
            if y.raw is not None and y.raw.dtype is dtype and dtype.kind in op.accepts:
                return bind_pair(op, x, y, 3)
        elif (y.__class__ is float or y.__class__ is int) and dtype.kind == "f" in op.accepts:
            found = cached_scalar(y, dtype)
            if found is not None:
                return bind_scalar(op, x, *found, False)
    return _bind_checked(op, operands(x, y))


def floating_binary(op: Elementwise, x: Any, y: Any) -> Any:
    """Apply `op` to two operands promoted to one floating dtype."""
    if isinstance(x, Traced) and x.dtype.kind == "f":
        return binary(op, x, y)
    return _bind_checked(op, operands(x, y, floating=True))


def operands(*xs: Any, floating: bool = False) -> list[Any]:
    """`promote`, with a fast path for floating tensors of one dtype and Python numbers."""
    dtype = None
    for x in xs:
        if isinstance(x, Traced):
            dtype = x.dtype if x.raw is None else x.raw.dtype
            break
    if dtype is None or dtype.kind != "f":
        return promote(*xs, floating=floating)
    out: list[Any] = []
    for x in xs:
        if x.__class__ is float or x.__class__ is int:
            found = cached_scalar(x, dtype)
            if found is not None:
                out.append(found[0])
        elif isinstance(x, Traced) and (x.dtype if x.raw is None else x.raw.dtype) is dtype:
            out.append(x)
    return out if len(out) == len(xs) else promote(*xs, floating=floating)


def _bind_checked(op: Elementwise, xs: list[Any]) -> Any:
    kind = xs[0].dtype.kind
    if kind not in op.accepts:
        if kind == "b" and "i" in op.accepts:
            xs = promote(*[cast(x, "int64") if isinstance(x, Traced) else int(x.value) for x in xs])
        else:
            infer(op, tuple([x.type for x in xs]))
    return bind(op, *xs)


def dtype_error(name: str, dtype: np.dtype, why: str) -> DTypeError:
    """Return the error for a dtype that a function does not accept."""
    return DTypeError(f"{name}: operand of dtype {dtype}; {why}")
