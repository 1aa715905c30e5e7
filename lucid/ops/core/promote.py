"""From what users pass to what primitives take: tensors and Literals of one dtype.

The rules are PyTorch's: kinds are ordered bool < integer < floating < complex; a tensor with axes
outranks a 0-d tensor, which outranks a Python scalar, unless the lesser one is of a higher kind.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.graph import Literal
from lucid.ir.source import at_line
from lucid.ir.types import SHORT_NAMES, dtype_of
from lucid.ops.core.arguments import check_device
from lucid.ops.core.errstate import quiet
from lucid.tape.bind import bind
from lucid.tape.node import Traced, wrap

_BOOL, _INT = np.dtype("bool"), np.dtype("int64")
_KIND = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
_SCALARS = (bool, int, float, complex)


class _Default:
    floating = np.dtype("float32")


def get_default_dtype() -> np.dtype:
    """The floating dtype that Python floats become: float32 unless set otherwise."""
    return _Default.floating


def set_default_dtype(d: Any) -> None:
    """Set the floating dtype that Python floats become."""
    dtype = dtype_of(d)
    if dtype.kind != "f":
        raise DTypeError(f"set_default_dtype: {dtype} is not a floating dtype{at_line()}")
    _Default.floating = dtype


def complex_of(dtype: np.dtype) -> np.dtype:
    return np.dtype("complex128" if dtype.itemsize == 8 else "complex64")


def default_dtype(scalar: Any) -> np.dtype:
    """The dtype of a Python scalar that stands alone."""
    if isinstance(scalar, bool):
        return _BOOL
    if isinstance(scalar, int):
        return _INT
    return complex_of(_Default.floating) if isinstance(scalar, complex) else _Default.floating


def wanted_dtype(spec: Any) -> np.dtype:
    """`dtype_of`, for what a user passed: it may not even be hashable."""
    try:
        return dtype_of(spec)
    except TypeError as error:
        if isinstance(error, DTypeError):
            raise
        raise DTypeError(f"{spec!r} is not a dtype{at_line()}") from None


def array_of(data: Any, dtype: Any = None) -> np.ndarray:
    """A native ndarray of a supported dtype from nested lists, scalars, arrays or tensors."""
    if isinstance(data, Traced):
        data = data.numpy()  # type: ignore[attr-defined]
    wanted = None if dtype is None else wanted_dtype(dtype)
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
    else:
        array = _from_python(data, wanted)
    if wanted is not None and array.dtype.kind in "biufc":
        return _converted(array, wanted)
    if array.dtype not in SHORT_NAMES:
        raise DTypeError(
            f"tensor: an array of dtype {array.dtype} cannot be a tensor; convert it to one of "
            f"{', '.join(map(str, SHORT_NAMES))}{at_line()}"
        )
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array


@quiet
def _converted(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`array` at a dtype: inf where that holds none so large."""
    return array.astype(dtype, copy=False)


def _from_python(data: Any, wanted: np.dtype | None) -> np.ndarray:
    if hasattr(data, "__array__"):
        return np.asarray(data)
    try:
        array = np.array(_plain(data))
    except OverflowError:
        raise DTypeError(f"tensor: an integer does not fit into 64 bits{at_line()}") from None
    except ValueError:
        raise ShapeError(
            f"tensor: rows of different lengths do not make an array{at_line()}"
        ) from None
    if array.dtype == object and _element(data) == "int":
        raise DTypeError(f"tensor: an integer does not fit into 64 bits{at_line()}")
    if array.dtype == object or array.dtype.kind not in "biufc":
        raise DTypeError(
            f"tensor: {type(data).__name__} of {_element(data)} is not numeric{at_line()}"
        )
    if wanted is None and array.dtype.kind in "fc" and not _holds_arrays(data):
        wide = _Default.floating if array.dtype.kind == "f" else complex_of(_Default.floating)
        array = _converted(array, wide)
    if wanted is None and array.size == 0 and not _holds_arrays(data):
        array = array.astype(_Default.floating)
    return array


def _plain(data: Any) -> Any:
    """Nested lists with tensors inside as nested lists with arrays inside."""
    if isinstance(data, (list, tuple)):
        return [_plain(item) for item in data]
    return data.numpy() if isinstance(data, Traced) else data  # type: ignore[attr-defined]


def _element(data: Any) -> str:
    while isinstance(data, (list, tuple)) and data:
        data = next((x for x in data if not isinstance(x, (int, float, complex))), data[0])
    return type(data).__name__


def _holds_arrays(data: Any) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (np.ndarray, np.generic, Traced))


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """`data` as a tensor: tensors as they are, arrays without a copy, the rest converted.

    >>> import lucid
    >>> lucid.as_tensor([1.0, 2.0])
    Tensor([1., 2.])
    """
    if device is not None:
        check_device("as_tensor", device)
    if isinstance(data, Traced):
        return data if dtype is None else cast(data, dtype)
    if isinstance(data, (list, tuple)) and any(isinstance(x, Traced) for x in data):
        return _stack(data, dtype)
    return wrap(array_of(data, dtype))


def _stack(rows: Any, dtype: Any) -> Any:
    from lucid.ops.shape.joining import stack

    return (
        cast(stack([as_tensor(row) for row in rows]), dtype)
        if dtype
        else stack([as_tensor(r) for r in rows])
    )


def cast(x: Any, dtype: Any) -> Any:
    """`x` with another dtype, recorded; `x` itself where it has that dtype already."""
    before = x.dtype
    if dtype is before:
        return x
    dtype = wanted_dtype(dtype)
    return x if before == dtype else bind(_cast_to(dtype), x)


@lru_cache
def _cast_to(dtype: np.dtype) -> Any:
    from lucid.ops.elementwise.arithmetic import Cast

    return Cast(SHORT_NAMES[dtype])


@lru_cache(maxsize=4096)
def _promote_dtypes(a: np.dtype, b: np.dtype) -> np.dtype:
    if a == b:
        return a
    ka, kb = _KIND[a.kind], _KIND[b.kind]
    if ka < 2 <= kb:
        return b
    if kb < 2 <= ka:
        return a
    if {ka, kb} == {2, 3}:
        real, cplx = (a, b) if ka == 2 else (b, a)
        return np.dtype("complex128") if real.itemsize == 8 else cplx
    return np.promote_types(a, b)


def result_type(*xs: Any) -> np.dtype:
    """The dtype that arithmetic on these tensors, arrays, dtypes and scalars gives.

    >>> import lucid
    >>> lucid.result_type(lucid.ones(3), 1.5), lucid.result_type(lucid.arange(3), 1.5)
    (dtype('float32'), dtype('float32'))
    """
    ranked: list[np.dtype | None] = [None, None, None]
    for x in xs:
        if isinstance(x, _SCALARS) and not isinstance(x, np.generic):
            rank, dtype = 2, default_dtype(x)
        elif isinstance(x, np.dtype):
            rank, dtype = 0, x
        else:
            x = x if isinstance(x, (Traced, Literal)) else as_tensor(x)
            rank, dtype = (0 if x.shape else 1), x.dtype
        known = ranked[rank]
        ranked[rank] = dtype if known is None else _promote_dtypes(known, dtype)
    result: np.dtype | None = None
    for dtype_or_none in ranked:
        if dtype_or_none is None:
            continue
        if result is None:
            result = dtype_or_none
        elif _KIND[dtype_or_none.kind] > _KIND[result.kind]:
            result = _raise_kind(result, dtype_or_none)
    assert result is not None
    return result


def _raise_kind(dtype: np.dtype, higher: np.dtype) -> np.dtype:
    """What `dtype` becomes beside a lesser operand of a higher kind: its width where it has one."""
    if higher.kind == "c" and dtype.kind == "f":
        return complex_of(dtype)
    return higher


def operand(x: Any) -> Any:
    """A Python scalar as it is, everything else as a tensor."""
    if isinstance(x, Traced):
        return x
    if isinstance(x, _SCALARS):
        return x.item() if isinstance(x, np.generic) else x
    return as_tensor(x)


def promote(*xs: Any, floating: bool = False) -> list[Any]:
    """The operands as tensors and Literals of one dtype.

    `floating` raises integers to the default floating dtype.
    """
    xs = tuple([operand(x) for x in xs])
    dtype = result_type(*xs)
    if floating and dtype.kind not in "fc":
        dtype = _Default.floating
    if not any(isinstance(x, Traced) for x in xs):
        xs = (as_tensor(xs[0]), *xs[1:])
    return [cast(x, dtype) if isinstance(x, Traced) else literal(x, dtype) for x in xs]


def promote_tensors(*xs: Any, floating: bool = False) -> list[Any]:
    """`promote` with tensors alone: a scalar is rounded once, to the dtype that they share."""
    parts = promote(*xs, floating=floating)
    return [as_tensor(x.value, x.dtype) if isinstance(x, Literal) else x for x in parts]


def to_dtype_of(x: Any, name: str, values: Any) -> Any:
    """What is to be written into `x`, at its dtype; only complex values are refused by real ones.

    A Python number is rounded once: into a float64 tensor it does not go by way of float32.
    """
    if x.dtype.kind != "c" and is_complex(values):
        facts = f"complex values for a tensor of dtype {x.dtype}"
        raise DTypeError(f"{name}: {facts}; take .real first{at_line()}")
    return as_tensor(values, x.dtype)


def is_complex(values: Any) -> bool:
    if isinstance(values, (int, float)):
        return False
    return (values if isinstance(values, Traced) else array_of(values)).dtype.kind == "c"


def literal(value: Any, dtype: np.dtype) -> Literal:
    """A Python scalar at a dtype, checked to fit."""
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        if not bounds.min <= value <= bounds.max:
            raise DTypeError(f"the scalar {value} does not fit into {dtype}{at_line()}")
        value = int(value)
    elif dtype.kind == "f" and not isinstance(value, complex):
        value = _rounded(value, dtype)
    elif dtype.kind == "c":
        value = complex(value)
    elif dtype.kind == "b":
        value = bool(value)
    return Literal(value, dtype)


def _rounded(value: Any, dtype: np.dtype) -> float:
    """A real number as a float; inf where the dtype holds none so large, as in PyTorch."""
    try:
        value = float(value)
    except OverflowError:
        size = f"an integer of {value.bit_length()} bits"
        raise DTypeError(f"{size} does not fit into {dtype}{at_line()}") from None
    if -60000.0 < value < 60000.0 or dtype.itemsize == 8:
        return value
    with np.errstate(over="ignore"):
        rounded = dtype.type(value).item()
    return rounded if math.isinf(rounded) else value


def to_floating(x: Any) -> Any:
    """`x` as a tensor of a floating or complex dtype."""
    x = as_tensor(x)
    return x if x.dtype.kind in "fc" else cast(x, _Default.floating)
