"""Methods of Tensor whose functions are in modules that are imported on demand."""

from __future__ import annotations

import importlib
from typing import Any

from lucid.tape.node import Traced


def lazy_method(module: str, name: str) -> Any:
    """Return the method `lucid.<module>.<name>`, imported when it is first called."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module(f"lucid.{module}"), name)(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, f"Apply `{name}` to this tensor."
    return method


class LazyMethods(Traced):
    """Linear algebra, spectrograms and activations, imported when they are called."""

    __slots__ = ()

    cholesky = lazy_method("linalg.torch_names", "cholesky")
    cholesky_inverse = lazy_method("linalg.torch_names", "cholesky_inverse")
    cholesky_solve = lazy_method("linalg", "cholesky_solve")
    det = lazy_method("linalg.torch_names", "det")
    geqrf = lazy_method("linalg.reflections", "geqrf")
    inverse = lazy_method("linalg.torch_names", "inverse")
    logdet = lazy_method("linalg", "logdet")
    lu = lazy_method("linalg.torch_names", "lu")
    lu_solve = lazy_method("linalg.torch_names", "lu_solve")
    matrix_exp = lazy_method("linalg", "matrix_exp")
    matrix_power = lazy_method("linalg", "matrix_power")
    orgqr = lazy_method("linalg.torch_names", "orgqr")
    ormqr = lazy_method("linalg.reflections", "ormqr")
    pinverse = lazy_method("linalg.torch_names", "pinverse")
    qr = lazy_method("linalg.torch_names", "qr")
    slogdet = lazy_method("linalg.torch_names", "slogdet")
    svd = lazy_method("linalg.torch_names", "svd")
    triangular_solve = lazy_method("linalg.torch_names", "triangular_solve")

    as_strided = lazy_method("ops.shape.striding", "as_strided")
    as_strided_scatter = lazy_method("ops.shape.striding", "as_strided_scatter")

    istft = lazy_method("fft.spectrograms", "istft")
    stft = lazy_method("fft.spectrograms", "stft")

    hardshrink = lazy_method("nn.functional", "hardshrink")
    prelu = lazy_method("nn.functional", "prelu")
