"""What a tensor is, other tensors like it, and casts: methods of Tensor that are no functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid.ops.core import predicates
from lucid.ops.core.arguments import placed
from lucid.ops.core.axes import axis_of
from lucid.ops.core.promote import array_of, cast
from lucid.ops.shape import copying, creation
from lucid.tape.node import Traced, wrap


class Attributes(Traced):
    """What a tensor is, other tensors like it, and casts."""

    __slots__ = ()

    @property
    def nbytes(self) -> int:
        """Bytes that the elements take."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes that one element takes."""
        return self.dtype.itemsize

    @property
    def device(self) -> str:
        """Where the tensor is: always "cpu"."""
        return "cpu"

    @property
    def is_cpu(self) -> bool:
        """True: every tensor is in the memory of the processor."""
        return True

    @property
    def is_cuda(self) -> bool:
        """False: there are no tensors on other devices."""
        return False

    @property
    def is_sparse(self) -> bool:
        """False: tensors hold all of their elements."""
        return False

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, along each axis."""
        return self.array("strides").strides  # type: ignore[attr-defined]

    def stride(self, dim: Any = None) -> Any:
        """Elements from one to the next, along each axis or along one."""
        steps = tuple([n // self.dtype.itemsize for n in self.strides])
        return steps if dim is None else steps[axis_of("stride", dim, len(steps))]

    def element_size(self) -> int:
        """Bytes that one element takes."""
        return self.dtype.itemsize

    numel = predicates.numel
    nelement = numel

    def size(self, dim: Any = None) -> Any:
        """The shape, or the size of one axis."""
        return self.shape if dim is None else self.shape[axis_of("size", dim, len(self.shape))]

    def dim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    ndimension = dim

    def is_contiguous(self) -> bool:
        """True where the elements stand in row-major order in memory."""
        return self.value is None or self.value.flags.c_contiguous

    is_floating_point = predicates.is_floating_point
    is_complex = predicates.is_complex
    is_signed = predicates.is_signed
    is_same_size = predicates.is_same_size
    is_nonzero = predicates.is_nonzero
    is_conj = predicates.is_conj
    is_neg = predicates.is_neg
    is_inference = predicates.is_inference
    resolve_conj = predicates.resolve_conj
    resolve_neg = predicates.resolve_neg

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self.array("data_ptr()").ctypes.data  # type: ignore[attr-defined]

    @placed
    def new_tensor(self, data: Any, *, dtype: Any = None, requires_grad: bool = False) -> Any:
        """A tensor with a copy of `data`, of this tensor's dtype."""
        made = wrap(np.array(array_of(data, dtype or self.dtype)))
        return made.requires_grad_(True) if requires_grad else made

    @placed
    def new_zeros(
        self, *sizes: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False
    ) -> Any:
        """Zeros of this tensor's dtype."""
        return creation.zeros(
            *sizes, size=size, dtype=dtype or self.dtype, requires_grad=requires_grad
        )

    @placed
    def new_ones(
        self, *sizes: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False
    ) -> Any:
        """Ones of this tensor's dtype."""
        return creation.ones(
            *sizes, size=size, dtype=dtype or self.dtype, requires_grad=requires_grad
        )

    @placed
    def new_empty(
        self, *sizes: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False
    ) -> Any:
        """A tensor of this one's dtype whose elements are whatever the memory held."""
        return creation.empty(
            *sizes, size=size, dtype=dtype or self.dtype, requires_grad=requires_grad
        )

    @placed
    def new_full(
        self, size: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False
    ) -> Any:
        """One number, at this tensor's dtype."""
        dtype = dtype or self.dtype
        return creation.full(size, fill_value, dtype=dtype, requires_grad=requires_grad)

    def astype(self, dtype: Any, copy: Any = True) -> Any:
        """This tensor with another dtype; a copy, unless told that none is needed."""
        out = cast(self, dtype)
        return copying.clone(self) if copy and out is self else out


class Casts(Traced):
    """Casts by a type's name; apart, because these names hide the built-in types in a class."""

    __slots__ = ()

    def cpu(self) -> Any:
        """This tensor: it is in the memory of the processor already."""
        return self

    def half(self) -> Any:
        """This tensor as float16."""
        return cast(self, "float16")

    def double(self) -> Any:
        """This tensor as float64."""
        return cast(self, "float64")

    def cfloat(self) -> Any:
        """This tensor as complex64."""
        return cast(self, "complex64")

    def cdouble(self) -> Any:
        """This tensor as complex128."""
        return cast(self, "complex128")

    def char(self) -> Any:
        """This tensor as int8."""
        return cast(self, "int8")

    def short(self) -> Any:
        """This tensor as int16."""
        return cast(self, "int16")

    def long(self) -> Any:
        """This tensor as int64."""
        return cast(self, "int64")

    def byte(self) -> Any:
        """This tensor as uint8."""
        return cast(self, "uint8")

    def float(self) -> Any:
        """This tensor as float32."""
        return cast(self, "float32")

    def int(self) -> Any:
        """This tensor as int32."""
        return cast(self, "int32")

    def bool(self) -> Any:
        """This tensor as bool: True where it is not zero."""
        return cast(self, "bool")
