"""The array API's inspection functions: capabilities, devices, and the properties of dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ArgumentError
from lucid.ops.core.arguments import check_device
from lucid.ops.core.promote import get_default_dtype
from lucid.tape.node import Traced

KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]


class NamespaceInfo:
    """The result of `lucid.numpy.__array_namespace_info__()`."""

    def capabilities(self) -> dict[str, Any]:
        """Return which optional features of the standard the library supports."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the device of new tensors."""
        return "cpu"

    def devices(self) -> list[str]:
        """Return all devices."""
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """Return the default dtypes of new tensors."""
        _check_device("default_dtypes", device)
        real = np.dtype(get_default_dtype())
        return {
            "real floating": real,
            "complex floating": np.result_type(real, np.complex64),
            "integral": np.dtype("int64"),
            "indexing": np.dtype("int64"),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        """Return the dtypes of one or several kinds; of all kinds by default."""
        _check_device("dtypes", device)
        kinds = (
            ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        )
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown:
            facts = f"kind {unknown[0]!r} is not one of {', '.join(KINDS)}"
            raise ArgumentError(f"dtypes: {facts}")
        return {name: np.dtype(name) for kind in kinds for name in KINDS[kind]}


def _check_device(name: str, device: Any) -> None:
    if device is not None:
        check_device(name, device)


def isdtype(dtype: Any, kind: Any) -> bool:
    """True if a dtype is of one of the kinds of the standard, or equal to one of the dtypes."""
    dtype = np.dtype(dtype)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return any([dtype.name in KINDS[k] if k in KINDS else dtype == k for k in kinds])


class FloatLimits:
    """The limits of a floating dtype as Python numbers; further attributes are np.finfo's."""

    def __init__(self, dtype: Any) -> None:
        self._found = found = np.finfo(dtype)
        self.bits, self.dtype = found.bits, found.dtype
        self.eps, self.max, self.min = float(found.eps), float(found.max), float(found.min)
        self.smallest_normal = float(found.smallest_normal)

    def __getattr__(self, name: str) -> Any:
        return getattr(np.finfo(self.__dict__["dtype"]), name)

    def __repr__(self) -> str:
        return repr(self._found)


def finfo(type: Any, /) -> FloatLimits:
    """Return the limits of a floating dtype, or of the dtype of an array."""
    return FloatLimits(type.dtype if isinstance(type, Traced) else np.dtype(type))


def iinfo(type: Any, /) -> Any:
    """Return the limits of an integer dtype, or of the dtype of an array."""
    return np.iinfo(type.dtype if isinstance(type, Traced) else np.dtype(type))


NAMES: dict[str, Any] = {
    "__array_api_version__": "2024.12",
    "__array_namespace_info__": NamespaceInfo,
    "finfo": finfo,
    "iinfo": iinfo,
    "isdtype": isdtype,
}
