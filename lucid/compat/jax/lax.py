"""jax.lax: control flow, collectives over named axes, slicing and elementwise functions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import lucid
from lucid.compat.jax import lax_linalg as linalg
from lucid.compat.jax.lax_arrays import (
    ConvDimensionNumbers,
    GatherDimensionNumbers,
    batch_matmul,
    broadcast,
    broadcast_in_dim,
    broadcasted_iota,
    concatenate,
    conv,
    conv_dimension_numbers,
    conv_general_dilated,
    conv_with_general_padding,
    dot,
    dot_general,
    dynamic_update_index_in_dim,
    gather,
    iota,
    pad,
    pargmax,
    pargmin,
    reduce_window,
    reshape,
    rev,
    slice,
    slice_in_dim,
    sort,
    sort_key_val,
    transpose,
)
from lucid.func import (
    all_gather,
    all_to_all,
    associative_scan,
    axis_index,
    axis_size,
    cond,
    fori_loop,
    pmax,
    pmean,
    pmin,
    ppermute,
    psum,
    psum_scatter,
    scan,
    stop_gradient,
    switch,
    while_loop,
)
from lucid.func import map as map_

__all__ = [
    "ConvDimensionNumbers", "GatherDimensionNumbers", "all_gather", "all_to_all",
    "associative_scan", "axis_index", "axis_size", "batch_matmul", "broadcast", "broadcast_in_dim",
    "broadcasted_iota", "concatenate", "cond", "conv", "conv_dimension_numbers",
    "conv_general_dilated", "conv_with_general_padding", "dot", "dot_general",
    "dynamic_update_index_in_dim", "fori_loop", "gather", "iota", "linalg", "map_", "pad",
    "pargmax", "pargmin", "pmax", "pmean", "pmin", "ppermute", "psum", "psum_scatter",
    "reduce_window",
    "reshape", "rev", "scan", "slice", "slice_in_dim", "sort", "sort_key_val", "stop_gradient",
    "switch", "transpose", "while_loop",
]  # fmt: skip

_NAMES = {
    "add": "add", "sub": "sub", "mul": "mul", "neg": "neg", "abs": "abs",
    "exp": "exp", "log": "log", "log1p": "log1p", "expm1": "expm1", "sin": "sin", "cos": "cos",
    "tan": "tan", "tanh": "tanh", "sqrt": "sqrt", "rsqrt": "rsqrt", "max": "maximum",
    "min": "minimum", "pow": "pow", "sign": "sign", "floor": "floor", "ceil": "ceil",
    "erf": "erf", "lgamma": "lgamma", "digamma": "digamma", "logistic": "sigmoid",
    "square": "square", "eq": "eq", "ne": "ne",
    "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "asin": "asin",
    "acos": "acos", "atan": "atan", "atan2": "atan2", "sinh": "sinh",
    "cosh": "cosh", "rem": "fmod", "real": "real",
    "imag": "imag", "conj": "conj", "complex": "complex", "is_finite": "isfinite",
    "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor",
    "erfc": "erfc", "erf_inv": "erfinv",
}  # fmt: skip
_CUMULATIVE = {
    "cumsum": "cumsum", "cumprod": "cumprod", "cummax": "cummax", "cummin": "cummin",
    "cumlogsumexp": "logcumsumexp",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "map":
        return map_
    if name in _NAMES:
        return getattr(lucid, _NAMES[name])
    if name in _CUMULATIVE:
        return partial(_accumulate, getattr(lucid, _CUMULATIVE[name]))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _accumulate(f: Any, operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Return the values of a cumulative function, from the end if `reverse`."""
    x = lucid.as_tensor(operand)
    y = f(x.flip(axis) if reverse else x, axis)
    y = y[0] if isinstance(y, tuple) else y
    return y.flip(axis) if reverse else y


def clamp(min: Any, x: Any, max: Any) -> Any:
    """Return `x` limited to [min, max]: the operand is in the middle, as in JAX."""
    return lucid.clamp(x, min, max)


def div(x: Any, y: Any) -> Any:
    """Return `x / y`, rounded toward zero for integers, as in JAX."""
    x, y = lucid.as_tensor(x), lucid.as_tensor(y)
    is_integer = lucid.result_type(x, y).kind in "iu"
    return lucid.div(x, y, rounding_mode="trunc" if is_integer else None)


def round(x: Any, rounding_method: int = 0) -> Any:
    """Return `x` rounded, halves away from zero, or to even if `rounding_method` is 1."""
    if rounding_method == 1:
        return lucid.round(x)
    whole = lucid.trunc(x)
    return lucid.where(lucid.abs(x - whole) >= 0.5, whole + lucid.sign(x), whole)


def argmax(operand: Any, axis: int, index_dtype: Any = "int64") -> Any:
    """Return the index of the first maximum along an axis, in a dtype."""
    return lucid.argmax(operand, axis).to(index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any = "int64") -> Any:
    """Return the index of the first minimum along an axis, in a dtype."""
    return lucid.argmin(operand, axis).to(index_dtype)


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """Return elements of `on_true` where `pred` is true, of `on_false` elsewhere."""
    return lucid.where(pred, on_true, on_false)


def integer_pow(x: Any, y: int) -> Any:
    """Return the power `y` of `x`."""
    return x**y


def top_k(operand: Any, k: int) -> tuple[Any, Any]:
    """Return the `k` largest elements along the last axis, and their indices."""
    values, indices = lucid.topk(operand, k)
    return values, indices


def dynamic_slice(operand: Any, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> Any:
    """Return a block of given sizes; a negative start counts from the end, as in JAX.

    A start that is too large or too small is clamped.
    """
    return operand[_block(operand, start_indices, slice_sizes)]


def dynamic_update_slice(operand: Any, update: Any, start_indices: Sequence[Any]) -> Any:
    """Return a copy with a block replaced, which begins where that of `dynamic_slice` does."""
    new = lucid.as_tensor(update)
    return operand.at[_block(operand, start_indices, new.shape)].set(new)


def _block(x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> tuple[Any, ...]:
    index = []
    for i, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        first = lucid.as_tensor(start)
        first = lucid.clamp(lucid.where(first < 0, first + x.shape[i], first), 0, x.shape[i] - size)
        places = first + lucid.arange(size)
        index.append(places.reshape([-1 if k == i else 1 for k in range(len(sizes))]))
    return tuple(index)


def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    """Return the elements at an index of one axis."""
    found = lucid.index_select(operand, axis, lucid.as_tensor(index).reshape(1))
    return found if keepdims else found.squeeze(axis)
