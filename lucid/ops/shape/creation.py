"""Creation of tensors from shapes and numbers, recorded only if the number is a tensor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import DTypeError, ShapeError
from lucid.ir.types import SHORT_NAMES, dtype_of
from lucid.ops.core.arguments import (
    creation_function,
    number,
    public_function,
)
from lucid.ops.core.axes import canonicalize_shape, exclusive_keyword
from lucid.ops.core.promote import (
    as_ndarray,
    as_tensor,
    cast,
    default_dtype,
    get_default_dtype,
    is_number,
    parse_dtype,
)
from lucid.ops.shape.full_and_iota import Full
from lucid.public.declare import public
from lucid.tape.bind import bind
from lucid.tape.node import Traced, wrap


def checked_size(name: str, size: Any) -> tuple[int, ...]:
    """Return a canonical shape without negative sizes."""
    shape = canonicalize_shape(name, size)
    if min(shape, default=0) < 0:
        raise ShapeError(f"{name}: {shape} is not a shape: sizes must not be negative")
    return shape


def merge_sizes(name: str, sizes: tuple[Any, ...], size: Any) -> Any:
    """Return sizes given as varargs, as one sequence, or by the keyword `size`."""
    return sizes if size is None else exclusive_keyword(name, "size", sizes, size)


def dtype_or_default(dtype: Any) -> np.dtype:
    """Return `dtype`, or the default floating dtype for None."""
    return get_default_dtype() if dtype is None else dtype_of(dtype)


@creation_function()
def zeros(*sizes: Any, size: Any = None, dtype: Any = None) -> Any:
    """A tensor of zeros: `zeros(2, 3)` or `zeros((2, 3))`.

    >>> import lucid
    >>> lucid.zeros(2, 3)
    Tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    shape = checked_size("zeros", merge_sizes("zeros", sizes, size))
    return wrap(np.zeros(shape, dtype_or_default(dtype)))


@creation_function()
def ones(*sizes: Any, size: Any = None, dtype: Any = None) -> Any:
    """A tensor of ones: `ones(2, 3)` or `ones((2, 3))`."""
    shape = checked_size("ones", merge_sizes("ones", sizes, size))
    return wrap(np.ones(shape, dtype_or_default(dtype)))


@creation_function()
def empty(*sizes: Any, size: Any = None, dtype: Any = None) -> Any:
    """An uninitialized tensor."""
    shape = checked_size("empty", merge_sizes("empty", sizes, size))
    return wrap(np.empty(shape, dtype_or_default(dtype)))


@creation_function()
def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Any:
    """A tensor filled with one number, of the number's dtype unless `dtype` is given.

    >>> import lucid
    >>> lucid.full((2,), 7)
    Tensor([7, 7])
    """
    shape = checked_size("full", (size,))
    if isinstance(fill_value, Traced):
        return _full_of_tensor("full", shape, fill_value, dtype or fill_value.dtype)
    if dtype is None and isinstance(fill_value, (bool, int, float, complex)):
        dtype = default_dtype(fill_value)
    check_fits("full", fill_value, dtype)
    value = as_ndarray(fill_value, dtype)
    return wrap(np.full(shape, _as_scalar("full", value), value.dtype))


def check_fits(name: str, value: Any, dtype: Any) -> None:
    """Raise DTypeError if a Python number is out of the range of an integer dtype."""
    if dtype is None or not isinstance(value, (int, float)) or dtype_of(dtype).kind not in "iu":
        return
    bounds = np.iinfo(dtype_of(dtype))
    if not bounds.min <= value <= bounds.max:
        raise DTypeError(f"{name}: {value} does not fit into {bounds.dtype}")


def _full_of_tensor(name: str, shape: tuple[int, ...], value: Any, dtype: Any) -> Any:
    """Fill with a tensor, recorded; the derivative in the value is the sum over the elements."""
    value = cast(_as_scalar(name, value), dtype)
    return bind(Full(shape, SHORT_NAMES[value.dtype]), value)


def _as_scalar(name: str, value: Any) -> Any:
    if math.prod(value.shape) != 1:
        raise ShapeError(f"{name}: the value has shape {value.shape}; give one number")
    return value.reshape(()) if value.shape else value


@creation_function()
def zeros_like(input: Any, *, dtype: Any = None) -> Any:
    """Zeros of the shape and dtype of `input`."""
    x = as_tensor(input)
    return wrap(np.zeros(x.shape, dtype_of(dtype or x.dtype)))


@creation_function()
def ones_like(input: Any, *, dtype: Any = None) -> Any:
    """Ones of the shape and dtype of `input`."""
    x = as_tensor(input)
    return wrap(np.ones(x.shape, dtype_of(dtype or x.dtype)))


@creation_function()
def empty_like(input: Any, *, dtype: Any = None) -> Any:
    """An uninitialized tensor of the shape and dtype of `input`."""
    x = as_tensor(input)
    return wrap(np.empty(x.shape, dtype_of(dtype or x.dtype)))


@creation_function()
def full_like(input: Any, fill_value: Any, *, dtype: Any = None) -> Any:
    """A tensor of the shape and dtype of `input` filled with one number."""
    x = as_tensor(input)
    dtype = dtype_of(dtype or x.dtype)
    if isinstance(fill_value, Traced):
        return _full_of_tensor("full_like", x.shape, fill_value, dtype)
    check_fits("full_like", fill_value, dtype)
    return wrap(np.full(x.shape, fill_value, dtype))


@creation_function()
def eye(n: int, m: int | None = None, *, dtype: Any = None) -> Any:
    """The identity matrix of n rows and m columns.

    >>> import lucid
    >>> lucid.eye(2)
    Tensor([[1., 0.],
            [0., 1.]])
    """
    rows, columns = checked_size("eye", (n, n if m is None else m))
    return wrap(np.eye(rows, columns, dtype=dtype_or_default(dtype)))


@creation_function()
def arange(start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Any:
    """Numbers from `start` (0 if only the end is given) to `end`, exclusive, in steps of `step`.

    >>> import lucid
    >>> lucid.arange(1, 8, 2)
    Tensor([1, 3, 5, 7])
    """
    start, end = (0, start) if end is None else (start, end)
    start, end, step = (
        number("arange", name, x) for name, x in {"start": start, "end": end, "step": step}.items()
    )
    whole = all(isinstance(x, int) for x in (start, end, step))
    wanted = (
        (np.dtype("int64") if whole else get_default_dtype()) if dtype is None else dtype_of(dtype)
    )
    if wanted == np.dtype("int64"):  # for other integer dtypes the ends are not truncated
        whole, (start, end, step) = True, truncate_for_integers((start, end, step), wanted)
    if step == 0:
        raise ShapeError("arange: the step must not be 0")
    n = max(0, -((start - end) // step) if whole else math.ceil((end - start) / step))
    start, step = truncate_for_integers((start, step), wanted)
    return wrap((start + step * np.arange(n)).astype(wanted))


@creation_function()
def linspace(
    start: Any, end: Any, steps: int = 100, *, endpoint: bool = True, dtype: Any = None
) -> Any:
    """`steps` evenly spaced numbers from `start` to `end`; gradients flow to both.

    >>> import lucid
    >>> lucid.linspace(0, 1, 5)
    Tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    (n,) = checked_size("linspace", (steps,))
    wanted = dtype_or_default(dtype)
    if wanted.kind != "f" or not (isinstance(start, Traced) or isinstance(end, Traced)):
        start, end = _constant_ends("linspace", start, end, dtype)
        values = np.linspace(start, end, n, endpoint=endpoint)
        return wrap(values.astype(wanted))
    return cast(_spaced("linspace", start, end, n, endpoint), wanted)


def _constant_ends(name: str, start: Any, end: Any, dtype: Any) -> tuple[Any, ...]:
    numbers = number(name, "start", start), number(name, "end", end)
    return truncate_for_integers(numbers, dtype)


def _spaced(name: str, start: Any, end: Any, n: int, endpoint: bool = True) -> Any:
    """Return `linspace` as a recorded function of its ends, in float64."""
    start, end = (_as_scalar(name, as_tensor(x, "float64")) for x in (start, end))
    weights = wrap(np.linspace(0.0, 1.0, n, endpoint=endpoint))
    return start * (1.0 - weights) + end * weights


@creation_function()
def logspace(
    start: Any, end: Any, steps: int = 100, base: float = 10.0, *, dtype: Any = None
) -> Any:
    """`base ** linspace(start, end, steps)`; gradients flow to `start`, `end` and `base`."""
    (n,) = checked_size("logspace", (steps,))
    wanted = dtype_or_default(dtype)
    if wanted.kind != "f" or not any(isinstance(x, Traced) for x in (start, end, base)):
        start, end = _constant_ends("logspace", start, end, dtype)
        values = np.logspace(start, end, n, base=number("logspace", "base", base))
        return wrap(values.astype(wanted))
    base = _as_scalar("logspace", as_tensor(base, "float64"))
    return cast(base ** _spaced("logspace", start, end, n), wanted)


def truncate_for_integers(numbers: Any, dtype: Any) -> tuple[Any, ...]:
    """Truncate ends and steps to integers for an integer dtype, as in PyTorch: 4.3 becomes 4."""
    if dtype is None or parse_dtype(dtype).kind not in "iu":
        return tuple(numbers)
    return tuple(int(x) for x in numbers)


@public("lucid", name="as_tensor")
def convert(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """Convert `data` to a tensor: tensors are returned as they are, arrays share memory.

    >>> import lucid
    >>> lucid.as_tensor([1.0, 2.0])
    Tensor([1., 2.])
    """
    x = as_tensor(data, dtype, device)
    if x.node is not None and is_number(x.node):  # an argument of a jitted function
        from lucid.ops.shape.copying import clone

        return clone(x)  # of a Python number too it is a tensor, which is rounded
    return x


@creation_function()
def asarray(obj: Any, *, dtype: Any = None, copy: Any = None) -> Any:
    """Convert `obj` to a tensor; tensors and arrays are copied only if `copy` is true.

    >>> import lucid
    >>> lucid.asarray([1.0, 2.0])
    Tensor([1., 2.])
    """
    x = convert(obj, dtype)
    if copy:
        from lucid.ops.shape.copying import clone

        x = clone(x)
    return x


@creation_function()
def scalar_tensor(s: Any, *, dtype: Any = None) -> Any:
    """A number as a 0-d tensor of `dtype`, by default the default floating dtype."""
    if isinstance(s, Traced):
        return cast(_as_scalar("scalar_tensor", s), dtype_or_default(dtype))
    value = as_ndarray(s, dtype_or_default(dtype))
    return wrap(np.array(_as_scalar("scalar_tensor", value)))


@public_function()
def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Any:
    """A vector that shares the memory of a bytes-like object.

    >>> import lucid
    >>> lucid.frombuffer(bytearray([1, 2, 3]), dtype=lucid.uint8, offset=1)
    Tensor([2, 3], dtype=uint8)
    """
    x = wrap(np.frombuffer(buffer, dtype_of(dtype), count, offset))
    return x.requires_grad_() if requires_grad else x
