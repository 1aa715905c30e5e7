"""torch.Tensor as a constructor, FloatTensor, LongTensor and the others, and Size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import lucid


class TensorType(type):
    """A class of tensors of one dtype; calling it creates a tensor from sizes or from data."""

    dtype: Any

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        if not args or all(isinstance(x, (int, np.integer)) for x in args):
            return lucid.empty(*(args or (0,)), dtype=cls.dtype, device=device)
        if isinstance(args[0], Size):
            return lucid.empty(args[0], dtype=cls.dtype, device=device)
        return lucid.tensor(args[0], dtype=cls.dtype, device=device)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, lucid.Tensor) and (cls.dtype is None or x.dtype == cls.dtype)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, lucid.Tensor)

    def __getattr__(cls, name: str) -> Any:
        return getattr(lucid.Tensor, name)


class AnyTensorType(TensorType):
    """The metaclass of Tensor, which tensors of every dtype are instances of."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, lucid.Tensor)


class Tensor(metaclass=AnyTensorType):
    """torch.Tensor: for `isinstance`, and as a constructor of float32 tensors."""

    dtype = np.dtype("float32")


def tensor_type(name: str, dtype: str) -> Any:
    return TensorType(name, (), {"dtype": np.dtype(dtype), "__doc__": f"Tensors of {dtype}."})


FloatTensor = tensor_type("FloatTensor", "float32")
DoubleTensor = tensor_type("DoubleTensor", "float64")
HalfTensor = tensor_type("HalfTensor", "float16")
LongTensor = tensor_type("LongTensor", "int64")
IntTensor = tensor_type("IntTensor", "int32")
ShortTensor = tensor_type("ShortTensor", "int16")
CharTensor = tensor_type("CharTensor", "int8")
ByteTensor = tensor_type("ByteTensor", "uint8")
BoolTensor = tensor_type("BoolTensor", "bool")


class Size(tuple[int, ...]):
    """A shape, with its number of elements."""

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return math.prod(self)
