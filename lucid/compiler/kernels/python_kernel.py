"""Listings as plain Python: the functions that a listing calls, on NumPy scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.compiler.kernels.listing import function_name, listing
from lucid.compiler.kernels.nest import Nest
from lucid.ir.types import DTYPES


def python_kernel(nest: Nest) -> Callable[..., None]:
    """The function that `listing` writes, on arrays as `buffer_views` describes them."""
    namespace = listing_namespace()
    exec(listing(nest), namespace)
    return namespace["kernel"]


def listing_namespace() -> dict[str, Any]:
    """The names that a listing may call: dtypes, primitives on scalars, and `wrap_index`."""
    from lucid.ir.primitive import all_primitives

    def on_numbers(eval: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: np.asarray(eval(*[np.asarray(x) for x in xs]))[()]

    found: dict[str, Any] = {"inf": np.inf, "nan": np.nan, "wrap_index": wrap_index}
    found |= {"max_key": max_key, "min_key": min_key, "from_key": from_key}
    for cls in all_primitives().values():
        if cls.scalar and not cls.__match_args__:  # type: ignore[attr-defined]
            op: Any = cls()
            found[function_name(op.scalar)] = on_numbers(op.eval)
    found["round"] = on_numbers(np.rint)
    for short, dtype in DTYPES.items():
        found[short] = lambda x, dtype=dtype: np.asarray(x).astype(dtype)[()]
    return found


def wrap_index(index: Any, size: int) -> int:
    """A nonnegative index; negative ones count from the end."""
    index = int(index)
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for an axis of size {size}")
    return index + size if index < 0 else index


def max_key(x: Any) -> Any:
    """An integer with the order of a float, and nan above all."""
    bits = bits_of(x)
    return bits.dtype.type(np.iinfo(bits.dtype).max) if np.isnan(x) else flip_negatives(bits)


def min_key(x: Any) -> Any:
    """An integer with the order of a float, and nan below all."""
    bits = bits_of(x)
    return bits.dtype.type(np.iinfo(bits.dtype).min) if np.isnan(x) else flip_negatives(bits)


def from_key(key: Any) -> Any:
    """The float of a key."""
    key = np.asarray(key)
    return flip_negatives(key).view({4: np.float32, 8: np.float64}[key.dtype.itemsize])[()]


def bits_of(x: Any) -> Any:
    x = np.asarray(x)
    return x.view({4: np.int32, 8: np.int64}[x.dtype.itemsize])[()]


def flip_negatives(bits: Any) -> Any:
    """Flip all bits but the sign of negative numbers; its own inverse."""
    bits = np.asarray(bits)
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits).astype(bits.dtype)[()]
