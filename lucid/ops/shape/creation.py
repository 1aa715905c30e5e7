"""Creation: tensors from shapes and numbers, recorded only where the number itself is traced."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.errors import AxisError, DTypeError, ShapeError
from lucid.ir.source import at_line
from lucid.ir.types import DTYPES, SHORT_NAMES, Type, dtype_of
from lucid.ops.core.arguments import explained, placed
from lucid.ops.core.axes import shape_of
from lucid.ops.core.kinds import Constant, Linear
from lucid.ops.core.promote import (
    array_of,
    as_tensor,
    cast,
    default_dtype,
    get_default_dtype,
    wanted_dtype,
)
from lucid.ops.shape.movement import Broadcast, repeat_in_front
from lucid.tape.bind import bind
from lucid.tape.node import Traced, wrap


class Full(Linear):
    """An array of one shape in which every element is the 0-d operand."""

    shape: tuple[int, ...]
    dtype: str

    def infer(self, value: Type) -> Type:
        if value.shape:
            raise ShapeError(f"full: a value of shape {value.shape}; it is one number")
        if value.dtype != DTYPES[self.dtype]:
            raise DTypeError(f"full: a value of dtype {value.dtype} for an array of {self.dtype}")
        return Type(value.dtype, self.shape)

    def eval(self, value: Any) -> np.ndarray:
        return np.full(self.shape, value, DTYPES[self.dtype])

    def adjoint(self, ct: Any, value: Any) -> Any:
        return ct.sum()

    def batch(self, n: int, batched: tuple[bool, ...], value: Any) -> Any:
        return bind(Broadcast((n, *self.shape), (0,)), value)


class Iota(Constant):
    """0, 1, 2, ... along `axis`, the same along all others."""

    shape: tuple[int, ...]
    axis: int
    dtype: str

    def infer(self) -> Type:
        if not 0 <= self.axis < len(self.shape):
            raise AxisError(f"iota: {self.shape} has no axis {self.axis}")
        return Type(DTYPES[self.dtype], self.shape)

    def eval(self) -> np.ndarray:
        numbers = np.arange(self.shape[self.axis], dtype=DTYPES[self.dtype])
        sizes = [n if i == self.axis else 1 for i, n in enumerate(self.shape)]
        return np.broadcast_to(numbers.reshape(sizes), self.shape).copy()

    def batch(self, n: int, batched: tuple[bool, ...]) -> Any:
        return repeat_in_front(n, bind(self))


def new(array: np.ndarray, requires_grad: bool) -> Any:
    """A tensor around a fresh array."""
    out = wrap(array)
    return out.requires_grad_(True) if requires_grad else out


def size_of(name: str, size: Any) -> tuple[int, ...]:
    shape = shape_of(name, size)
    if min(shape, default=0) < 0:
        raise ShapeError(f"{name}: {shape} is not a shape: sizes are not negative{at_line()}")
    return shape


def given(sizes: tuple[Any, ...], size: Any) -> Any:
    """Sizes given one by one, as one sequence, or by name."""
    return sizes if size is None else (size,) if not sizes else (*sizes, size)


def floating_or(dtype: Any) -> np.dtype:
    return get_default_dtype() if dtype is None else dtype_of(dtype)


@placed
@explained
def zeros(*sizes: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False) -> Any:
    """A tensor of zeros: `zeros(2, 3)` or `zeros((2, 3))`.

    >>> import lucid
    >>> lucid.zeros(2, 3)
    Tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return new(np.zeros(size_of("zeros", given(sizes, size)), floating_or(dtype)), requires_grad)


@placed
@explained
def ones(*sizes: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False) -> Any:
    """A tensor of ones: `ones(2, 3)` or `ones((2, 3))`."""
    return new(np.ones(size_of("ones", given(sizes, size)), floating_or(dtype)), requires_grad)


@placed
@explained
def empty(*sizes: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False) -> Any:
    """A tensor whose elements are whatever the memory held."""
    return new(np.empty(size_of("empty", given(sizes, size)), floating_or(dtype)), requires_grad)


@placed
@explained
def full(size: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False) -> Any:
    """A tensor of one number; it has the number's dtype unless told otherwise.

    >>> import lucid
    >>> lucid.full((2,), 7)
    Tensor([7, 7])
    """
    shape = size_of("full", (size,))
    if isinstance(fill_value, Traced):
        return _full_of_tensor("full", shape, fill_value, dtype or fill_value.dtype)
    if dtype is None and isinstance(fill_value, (bool, int, float, complex)):
        dtype = default_dtype(fill_value)
    value = array_of(fill_value, dtype)
    return new(np.full(shape, _one_number("full", value), value.dtype), requires_grad)


def _full_of_tensor(name: str, shape: tuple[int, ...], value: Any, dtype: Any) -> Any:
    """Stays on the tape: the derivative with respect to the number is the sum over the elements."""
    value = cast(_one_number(name, value), dtype)
    return bind(Full(shape, SHORT_NAMES[value.dtype]), value)


def _one_number(name: str, value: Any) -> Any:
    if math.prod(value.shape) != 1:
        raise ShapeError(f"{name}: a value of shape {value.shape}; it is one number{at_line()}")
    return value.reshape(()) if value.shape else value


@placed
@explained
def zeros_like(input: Any, *, dtype: Any = None, requires_grad: bool = False) -> Any:
    """Zeros of the shape and dtype of `input`."""
    x = as_tensor(input)
    return new(np.zeros(x.shape, dtype_of(dtype or x.dtype)), requires_grad)


@placed
@explained
def ones_like(input: Any, *, dtype: Any = None, requires_grad: bool = False) -> Any:
    """Ones of the shape and dtype of `input`."""
    x = as_tensor(input)
    return new(np.ones(x.shape, dtype_of(dtype or x.dtype)), requires_grad)


@placed
@explained
def empty_like(input: Any, *, dtype: Any = None, requires_grad: bool = False) -> Any:
    """A tensor of the shape and dtype of `input` whose elements are whatever the memory held."""
    x = as_tensor(input)
    return new(np.empty(x.shape, dtype_of(dtype or x.dtype)), requires_grad)


@placed
@explained
def full_like(
    input: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False
) -> Any:
    """One number in the shape and dtype of `input`."""
    x = as_tensor(input)
    dtype = dtype_of(dtype or x.dtype)
    if isinstance(fill_value, Traced):
        return _full_of_tensor("full_like", x.shape, fill_value, dtype)
    return new(np.full(x.shape, fill_value, dtype), requires_grad)


@placed
@explained
def eye(n: int, m: int | None = None, *, dtype: Any = None, requires_grad: bool = False) -> Any:
    """The identity matrix, or n rows and m columns of it.

    >>> import lucid
    >>> lucid.eye(2)
    Tensor([[1., 0.],
            [0., 1.]])
    """
    rows, columns = size_of("eye", (n, n if m is None else m))
    return new(np.eye(rows, columns, dtype=floating_or(dtype)), requires_grad)


@placed
@explained
def arange(
    start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, requires_grad: bool = False
) -> Any:
    """Numbers from `start` (0 where only the end is given) in steps up to but without `end`.

    >>> import lucid
    >>> lucid.arange(1, 8, 2)
    Tensor([1, 3, 5, 7])
    """
    start, end, step = (
        _number(x) for x in ((0, start, step) if end is None else (start, end, step))
    )
    whole = all(isinstance(x, int) for x in (start, end, step))
    wanted = (
        (np.dtype("int64") if whole else get_default_dtype()) if dtype is None else dtype_of(dtype)
    )
    if wanted == np.dtype("int64"):  # of other integers the ends still count as they are
        whole, (start, end, step) = True, as_stored((start, end, step), wanted)
    if step == 0:
        raise ShapeError(f"arange: the step is 0{at_line()}")
    n = max(0, -((start - end) // step) if whole else math.ceil((end - start) / step))
    start, step = as_stored((start, step), wanted)
    return new((start + step * np.arange(n)).astype(wanted), requires_grad)


@placed
@explained
def linspace(
    start: Any,
    end: Any,
    steps: int = 100,
    *,
    endpoint: bool = True,
    dtype: Any = None,
    requires_grad: bool = False,
) -> Any:
    """`steps` numbers at equal distances from `start` to `end`.

    >>> import lucid
    >>> lucid.linspace(0, 1, 5)
    Tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    (n,) = size_of("linspace", (steps,))
    start, end = as_stored((_number(start), _number(end)), dtype)
    values = np.linspace(start, end, n, endpoint=endpoint)
    return new(values.astype(floating_or(dtype)), requires_grad)


@placed
@explained
def logspace(
    start: Any,
    end: Any,
    steps: int = 100,
    base: float = 10.0,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
) -> Any:
    """`base ** linspace(start, end, steps)`."""
    (n,) = size_of("logspace", (steps,))
    start, end = as_stored((_number(start), _number(end)), dtype)
    values = np.logspace(start, end, n, base=base)
    return new(values.astype(floating_or(dtype)), requires_grad)


def as_stored(numbers: Any, dtype: Any) -> tuple[Any, ...]:
    """Ends and steps at an integer dtype are integers too, as in PyTorch: 4.3 counts as 4."""
    if dtype is None or wanted_dtype(dtype).kind not in "iu":
        return tuple(numbers)
    return tuple(int(x) for x in numbers)


def _number(x: Any) -> Any:
    return x.item() if hasattr(x, "item") else x


@placed
@explained
def asarray(obj: Any, *, dtype: Any = None, copy: Any = None, requires_grad: bool = False) -> Any:
    """`obj` as a tensor: tensors and arrays without a copy, unless `copy` asks for one.

    >>> import lucid
    >>> lucid.asarray([1.0, 2.0])
    Tensor([1., 2.])
    """
    x = as_tensor(obj, dtype)
    if copy:
        from lucid.ops.shape.copying import clone

        x = clone(x)
    return x.requires_grad_(True) if requires_grad else x


@placed
@explained
def scalar_tensor(s: Any, *, dtype: Any = None, requires_grad: bool = False) -> Any:
    """A number as a 0-d tensor of the default floating dtype, or of another."""
    value = array_of(s, floating_or(dtype))
    return new(np.array(_one_number("scalar_tensor", value)), requires_grad)


@explained
def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Any:
    """A vector in the memory of a bytes-like object.

    >>> import lucid
    >>> lucid.frombuffer(bytearray([1, 2, 3]), dtype=lucid.uint8, offset=1)
    Tensor([2, 3], dtype=uint8)
    """
    return new(np.frombuffer(buffer, dtype_of(dtype), count, offset), requires_grad)
