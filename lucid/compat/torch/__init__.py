"""lucid.compat.torch: PyTorch's namespace, for programs that change only their imports.

    import lucid.compat.torch as torch
    import lucid.compat.torch.nn as nn
    from lucid.compat.torch.utils.data import DataLoader

It is `lucid` with PyTorch's exact behavior where the two differ on purpose (`autograd.grad` returns
a tuple; `backward()` of a tensor with several elements raises in files that import it), and with
stand-ins for what CPU programs only mention: devices, cuda, cudnn, tensor types.
"""

import sys
import warnings
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

import lucid
from lucid.compat.torch import accelerator, amp, autograd, backends, cuda, serialization
from lucid.compat.torch.amp import autocast
from lucid.compat.torch.names import ALIASES, STAND_INS
from lucid.compat.torch.serialization import load, save
from lucid.compat.torch.tensor_types import (
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
    Size,
    Tensor,
)
from lucid.support.source import user_frame
from lucid.tensors.properties import Device as device

__all__ = [
    "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor", "Size", "Tensor", "accelerator", "amp", "autocast",
    "autograd", "backends", "cuda", "device", "dtype", "load", "save", "serialization",
]  # fmt: skip

__version__ = "2.0.0+lucid"
dtype = np.dtype
long, int, short, double, half = np.dtype("int64"), np.dtype("int32"), np.dtype("int16"), np.dtype(
    "float64"), np.dtype("float16")  # fmt: skip
float, bool = np.dtype("float32"), np.dtype("bool")
strided, contiguous_format, preserve_format, channels_last = (
    "torch.strided", "torch.contiguous_format", "torch.preserve_format", "torch.channels_last",
)  # fmt: skip

_OURS = {__name__, autograd.__name__}

for _name, _module in {**ALIASES, **STAND_INS}.items():
    sys.modules.setdefault(f"{__name__}.{_name}", import_module(_module))


def __getattr__(name: str) -> Any:
    """Return the object with PyTorch's name: a module of this package, or a name of `lucid`."""
    module = sys.modules.get(f"{__name__}.{name}")
    found = getattr(lucid, name) if module is None else module
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(lucid), *(name for name in ALIASES if "." not in name)})


def is_imported(frame: Any) -> Any:
    """True if the file of a frame imports this module, so that PyTorch's manners apply there."""
    names = () if frame is None else frame.f_globals.values()
    return any([getattr(v, "__name__", None) in _OURS for v in names if isinstance(v, ModuleType)])


def check_backward(x: Any) -> None:
    """Raise, in a file that imports this module, for `backward()` of several elements."""
    if is_imported(user_frame()):
        autograd.check_scalars("backward", [x], [])


def warn_grad_of_result() -> None:
    """Warn, in a file that imports this module, that `.grad` of a result is not kept."""
    frame = user_frame()
    if frame is not None and is_imported(frame):
        warnings.warn_explicit(
            "grad: the .grad of a tensor that is not a leaf is read, and backward() does not set "
            "it; call retain_grad() on it first",
            UserWarning,
            frame.f_code.co_filename,
            frame.f_lineno,
        )


def is_tensor(obj: Any) -> Any:
    """True for a tensor."""
    return isinstance(obj, lucid.Tensor)


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype to that of a tensor type."""
    lucid.set_default_dtype(t.dtype)


def set_default_device(device: Any) -> None:
    """Accept the CPU, which is the only device."""
    lucid.empty(0, device=device)


def use_deterministic_algorithms(mode: Any, *, warn_only: Any = False) -> None:
    """Accept either: results are the same on every run, and for any number of threads."""


def set_float32_matmul_precision(precision: str) -> None:
    """Accept any: products of float32 are computed in float32."""
