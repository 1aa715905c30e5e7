"""finfo and iinfo: the limits of floating and of integer dtypes, as Python numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import DTypeError
from lucid.ir.types import dtype_of
from lucid.ops.core.promote import get_default_dtype
from lucid.public.declare import public


class Limits:
    """Numeric limits of a dtype, by name."""

    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        fields = [f"{name}={getattr(self, name):.6g}" for name in self.names]
        return f"{type(self).__name__}({', '.join(fields)}, dtype={self.__dict__['dtype']})"

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), self.__dict__["dtype"]))


@public()
class finfo(Limits):
    """The limits of a floating dtype; for a complex dtype, those of its parts.

    >>> import lucid
    >>> lucid.finfo(lucid.float32).eps, lucid.finfo(lucid.float64).bits
    (1.1920928955078125e-07, 64)
    """

    names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")

    def __init__(self, dtype: Any = None) -> None:
        found = get_default_dtype() if dtype is None else dtype_of(dtype)
        if found.kind not in "fc":
            raise DTypeError(f"finfo: {found} is not a floating dtype; use iinfo")
        info = np.finfo(found)
        self.bits, self.dtype = int(info.bits), str(info.dtype)
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.tiny)
        self.resolution = float(info.resolution)


@public()
class iinfo(Limits):
    """The limits of an integer dtype.

    >>> import lucid
    >>> lucid.iinfo(lucid.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    names = ("min", "max")

    def __init__(self, dtype: Any) -> None:
        found = dtype_of(dtype)
        if found.kind not in "iu":
            raise DTypeError(f"iinfo: {found} is not an integer dtype; use finfo")
        info = np.iinfo(found)
        self.bits, self.dtype = int(info.bits), str(found)
        self.min, self.max = int(info.min), int(info.max)
