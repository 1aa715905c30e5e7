"""Types: the dtype and shape of a value, known before the value is: `f32[32,10]`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from lucid.errors import DTypeError, ParseError, ShapeError
from lucid.public.declare import public
from lucid.support.caches import memoize, new_cache

Shape = tuple[int, ...]
LARGEST = np.iinfo(np.intp).max  # bytes of an array

SHORT_NAMES: dict[np.dtype, str] = {
    np.dtype(long): short
    for long, short in {
        "bool": "bool",
        **{f"int{n}": f"i{n}" for n in (8, 16, 32, 64)},
        **{f"uint{n}": f"u{n}" for n in (8, 16, 32, 64)},
        **{f"float{n}": f"f{n}" for n in (16, 32, 64)},
        **{f"complex{n}": f"c{n}" for n in (64, 128)},
    }.items()
}
DTYPES: dict[str, np.dtype] = {short: dtype for dtype, short in SHORT_NAMES.items()}


_interned: dict[tuple[np.dtype, Shape], Type] = new_cache(f"{__name__}._interned", {})


class _Interning(type):
    """Interns Types, so that comparing and hashing them is fast."""

    def __call__(cls, dtype: np.dtype, shape: Shape) -> Any:
        found = _interned.get((dtype, shape))
        if found is None:
            found = super().__call__(dtype, shape)
            if len(_interned) >= 50_000:
                _interned.clear()
            _interned[dtype, shape] = found
        return found


@public("ir", "extend")
class Type(metaclass=_Interning):
    """The type of an array: `Type(np.dtype("float32"), (32, 10))` prints as `f32[32,10]`."""

    __slots__ = ("_hash", "dtype", "shape")
    __lucid_leaf__: ClassVar[bool] = True  # in a pytree of arguments it stands for a tensor
    dtype: np.dtype
    shape: Shape
    _hash: int

    def __init__(self, dtype: np.dtype, shape: Shape) -> None:
        size = math.prod([max(int(n), 1) for n in shape]) * dtype.itemsize
        if size > LARGEST or min(shape, default=0) < 0:
            raise ShapeError(f"shape {shape} of {dtype} has a negative size or exceeds any memory")
        write = object.__setattr__
        write(self, "dtype", dtype)
        write(self, "shape", shape)
        write(self, "_hash", hash((dtype, shape)))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Type is immutable: {name} cannot be set")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other.__class__ is not Type:
            return NotImplemented
        return self.dtype == other.dtype and self.shape == other.shape  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return (Type, (self.dtype, self.shape))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return f"{SHORT_NAMES[self.dtype]}[{','.join(map(str, self.shape))}]"

    @staticmethod
    def parse(text: str) -> Type:
        """The inverse of `repr`: `Type.parse("f32[32,10]")`."""
        name, bracket, rest = text.strip().partition("[")
        try:
            if not bracket or not rest.endswith("]"):
                raise ValueError
            shape = tuple(int(n) for n in rest[:-1].split(",")) if rest != "]" else ()
            return Type(DTYPES[name], shape)
        except (KeyError, ValueError):
            raise ParseError(f"{text!r} is not a type; a type looks like f32[32,10]") from None


def type_of(array: np.ndarray) -> Type:
    return Type(array.dtype, array.shape)


def is_differentiable(dtype: np.dtype) -> bool:
    """True for dtypes that have derivatives: floating and complex ones."""
    return dtype.kind in "fc"


@memoize(maxsize=1024)
def dtype_of(spec: Any) -> np.dtype:
    """Return the supported dtype for `spec`: a name, a NumPy type or a Python type."""
    if isinstance(spec, str) and spec in DTYPES:
        return DTYPES[spec]
    remedy = f"use one of {', '.join(map(str, SHORT_NAMES))}"
    try:
        dtype = np.dtype(spec)
    except TypeError:
        raise DTypeError(f"{spec!r} is not a dtype; {remedy}") from None
    if dtype not in SHORT_NAMES:
        raise DTypeError(f"dtype {dtype} is not supported; {remedy}")
    return dtype


@memoize(maxsize=4096)
def broadcast_shapes(*shapes: Shape) -> Shape:
    """Broadcast shapes by NumPy's rules; raise ShapeError if they do not broadcast."""
    ndim = max(map(len, shapes), default=0)
    out = [1] * ndim
    for shape in shapes:
        for axis, n in enumerate(shape, ndim - len(shape)):
            if n == 1 or n == out[axis]:
                continue
            if out[axis] != 1:
                raise ShapeError(
                    f"shapes {' and '.join(map(str, shapes))} do not broadcast: "
                    f"sizes {out[axis]} and {n} in axis {axis - ndim} differ and neither is 1"
                )
            out[axis] = n
    return tuple(out)
