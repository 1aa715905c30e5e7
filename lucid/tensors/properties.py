"""Attributes, `new_*` constructors and casts of Tensor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.ir.types import Type
from lucid.ops.core.arguments import accepts_device, check_device, clear_errors
from lucid.ops.core.axes import canonicalize_axis
from lucid.ops.core.promote import cast
from lucid.ops.shape import copying
from lucid.public.lazy import LazyModule
from lucid.tape import node as tape
from lucid.tape.node import Traced
from lucid.tape.views import layout

if TYPE_CHECKING:
    from lucid.ops.index.functional_update import IndexUpdate
    from lucid.ops.shape import creation
    from lucid.tensors.tensor import Tensor
else:
    creation = LazyModule("lucid.ops.shape.creation")


class Size(int):
    """The number of elements of a tensor; calling it returns the shape, or the size of an axis.

    >>> import lucid
    >>> x = lucid.zeros(2, 3)
    >>> x.size + 1, x.size(), x.size(-1)
    (7, (2, 3), 3)
    """

    shape: tuple[int, ...]

    def __new__(cls, shape: tuple[int, ...]) -> Size:
        self = super().__new__(cls, math.prod(shape))
        self.shape = shape
        return self

    def __call__(self, dim: Any = None) -> Any:
        """Return the shape, or the size of one axis."""
        if dim is None:
            return self.shape
        return self.shape[canonicalize_axis("size", dim, len(self.shape))]

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.shape,)


class SizeOf:
    """`x.size`, NumPy's number of elements, and `x.size()`, PyTorch's method, in one attribute."""

    def __get__(self, x: Any, cls: Any = None) -> Any:
        return size_of if x is None else Size(x.shape)


def size_of(self: Any, dim: Any = None) -> Any:
    """Return the shape, or the size of one axis; without a call, the number of elements."""
    return Size(self.shape)(dim)


class Device(str):
    """The name of a device, "cpu" or "cuda:0", with its parts; tensors are always on the CPU."""

    __slots__ = ()

    def __new__(cls, name: str = "cpu", index: int | None = None) -> Device:
        return super().__new__(cls, name if index is None else f"{name}:{index}")

    @property
    def type(self) -> str:
        """The kind of device."""
        return str(self.partition(":")[0])

    @property
    def index(self) -> int | None:  # type: ignore[override]
        """The number of the device, or None."""
        number = self.partition(":")[2]
        return int(number) if number else None

    def __repr__(self) -> str:
        rest = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{rest})"


CPU = Device("cpu")
TORCH_NAMES = {"float32": "Float", "float64": "Double", "float16": "Half", "int64": "Long",
               "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte",
               "bool": "Bool"}  # fmt: skip


class CallableType(Type):
    """The Type that users see as `x.type`; called with a dtype it casts, as in PyTorch."""

    __slots__ = ("tensor",)
    tensor: Any

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return Type  # it is equal to the Type without a tensor

    def __call__(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the tensor with another dtype, or PyTorch's name for its class."""
        if dtype is None:
            return f"torch.{TORCH_NAMES.get(self.dtype.name, self.dtype.name)}Tensor"
        if isinstance(dtype, str) and dtype.startswith("torch."):
            names = {f"torch.{short}Tensor": name for name, short in TORCH_NAMES.items()}
            dtype = names.get(dtype, dtype)
        return cast(self.tensor, getattr(dtype, "dtype", dtype))


def callable_type(x: Any, type: Type) -> CallableType:
    """Return the type of a tensor, bound to it."""
    bound = object.__new__(CallableType)
    for name in ("dtype", "shape", "_hash"):
        object.__setattr__(bound, name, getattr(type, name))
    object.__setattr__(bound, "tensor", x)
    return bound


class Attributes(Traced):
    """Attributes, `new_*` constructors and `astype`."""

    __slots__ = ()

    @property
    def nbytes(self) -> int:
        """The number of bytes of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def at(self) -> IndexUpdate:
        """Updated copies: `x.at[i].set(y)`, `add`, `multiply`, `min`, `max`, ..., as in JAX."""
        from lucid.ops.index.functional_update import IndexUpdate

        return IndexUpdate(self)

    @property
    def itemsize(self) -> int:
        """The number of bytes of one element."""
        return self.dtype.itemsize

    @property
    def device(self) -> Device:
        """The device of the tensor: always "cpu", a string with PyTorch's `type` and `index`."""
        return CPU

    @property
    def is_cpu(self) -> bool:
        """Always True: every tensor is on the CPU."""
        return True

    @property
    def is_cuda(self) -> bool:
        """Always False: there are no tensors on other devices."""
        return False

    is_xpu = is_mps = is_meta = is_quantized = is_cuda

    @property
    def is_sparse(self) -> bool:
        """Always False: all tensors are dense."""
        return False

    @property
    def strides(self) -> tuple[int, ...]:
        """The number of bytes between neighboring elements, for each axis."""
        self.array("strides")  # type: ignore[attr-defined]  # there must be a value
        return layout(self).strides

    def stride(self, dim: Any = None) -> Any:
        """Return the number of elements between neighbors, for each axis or for `dim`."""
        steps = tuple([n // self.dtype.itemsize for n in self.strides])
        return steps if dim is None else steps[canonicalize_axis("stride", dim, len(steps))]

    def element_size(self) -> int:
        """Return the number of bytes of one element."""
        return self.dtype.itemsize

    size = SizeOf()

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """Return the tensor itself: all devices are the CPU."""
        check_device("to_device", device)
        return self

    def dim(self) -> int:
        """Return the number of axes."""
        return len(self.shape)

    ndimension = dim

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """True if the elements are in row-major order in memory, the only memory format."""
        return layout(self).flags.c_contiguous

    @property
    def _base(self) -> Any:
        """The tensor that this one is a view of, or None; a detached tensor is not a view."""
        base = self
        while base.origin is not None and not base.origin[2]:
            base = base.origin[0]
        return None if base is self else base

    def _is_view(self) -> bool:
        """True if this tensor is a view of another one."""
        return self._base is not None

    def storage_offset(self) -> int:
        """Return the number of elements in memory before the first one of this tensor."""
        first: Any = self
        while first.origin is not None:
            first = first.origin[0]
        return (self.data_ptr() - first.data_ptr()) // self.itemsize

    def get_device(self) -> int:
        """Return -1, PyTorch's number of the CPU."""
        return -1

    def pin_memory(self, device: Any = None) -> Any:
        """Return the tensor itself: there is no device that pinned memory would be copied to."""
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Always False: there is no device that pinned memory would be copied to."""
        return False

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self.numpy(force=True).ctypes.data  # type: ignore[attr-defined]

    @accepts_device
    def new_tensor(self, data: Any, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
        """Return a tensor with a copy of `data` and, by default, this tensor's dtype."""
        make: Any = tape.tensor_class
        return make(data, requires_grad, dtype=dtype or self.dtype)

    @accepts_device
    def new_zeros(
        self, *sizes: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False
    ) -> Tensor:
        """Return a tensor of zeros with this tensor's dtype."""
        return creation.zeros(
            *sizes, size=size, dtype=dtype or self.dtype, requires_grad=requires_grad
        )

    @accepts_device
    def new_ones(
        self, *sizes: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False
    ) -> Tensor:
        """Return a tensor of ones with this tensor's dtype."""
        return creation.ones(
            *sizes, size=size, dtype=dtype or self.dtype, requires_grad=requires_grad
        )

    @accepts_device
    def new_empty(
        self, *sizes: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False
    ) -> Tensor:
        """Return an uninitialized tensor with this tensor's dtype."""
        return creation.empty(
            *sizes, size=size, dtype=dtype or self.dtype, requires_grad=requires_grad
        )

    @accepts_device
    def new_full(
        self, size: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False
    ) -> Tensor:
        """Return a tensor filled with one number, with this tensor's dtype."""
        dtype = dtype or self.dtype
        return creation.full(size, fill_value, dtype=dtype, requires_grad=requires_grad)

    @clear_errors
    def astype(self, dtype: Any, copy: Any = True) -> Tensor:
        """Return this tensor with another dtype; always a copy unless `copy` is False."""
        out = cast(self, dtype)
        return copying.clone(self) if copy and out is self else out


class Casts(Traced):
    """Casts named after dtypes, in their own class because the names shadow built-in types."""

    __slots__ = ()

    def cpu(self) -> Tensor:
        """Return this tensor, which is already on the CPU."""
        return self  # type: ignore[return-value]

    def half(self) -> Tensor:
        """Return this tensor as float16."""
        return cast(self, "float16")

    def double(self) -> Tensor:
        """Return this tensor as float64."""
        return cast(self, "float64")

    def cfloat(self) -> Tensor:
        """Return this tensor as complex64."""
        return cast(self, "complex64")

    def cdouble(self) -> Tensor:
        """Return this tensor as complex128."""
        return cast(self, "complex128")

    def char(self) -> Tensor:
        """Return this tensor as int8."""
        return cast(self, "int8")

    def short(self) -> Tensor:
        """Return this tensor as int16."""
        return cast(self, "int16")

    def long(self) -> Tensor:
        """Return this tensor as int64."""
        return cast(self, "int64")

    def byte(self) -> Tensor:
        """Return this tensor as uint8."""
        return cast(self, "uint8")

    def float(self) -> Tensor:
        """Return this tensor as float32."""
        return cast(self, "float32")

    def int(self) -> Tensor:
        """Return this tensor as int32."""
        return cast(self, "int32")

    def bool(self) -> Tensor:
        """Return this tensor as bool: True where an element is not zero."""
        return cast(self, "bool")
