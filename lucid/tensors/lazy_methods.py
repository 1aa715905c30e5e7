"""The methods of Tensor whose functions lie in parts of the package that are imported on demand."""

from __future__ import annotations

import importlib
from typing import Any

from lucid.tape.node import Traced


def function_of(module: str, name: str) -> Any:
    """A method that is `lucid.<module>.<name>`, which is imported when it is first called."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module(f"lucid.{module}"), name)(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, f"`{name}` of this tensor."
    return method


class Later(Traced):
    """Linear algebra, spectrograms and activations, looked up when they are called."""

    __slots__ = ()

    cholesky = function_of("linalg.torch_names", "cholesky")
    cholesky_inverse = function_of("linalg.torch_names", "cholesky_inverse")
    cholesky_solve = function_of("linalg", "cholesky_solve")
    det = function_of("linalg.torch_names", "det")
    geqrf = function_of("linalg.reflections", "geqrf")
    inverse = function_of("linalg.torch_names", "inverse")
    logdet = function_of("linalg", "logdet")
    lu = function_of("linalg.torch_names", "lu")
    lu_solve = function_of("linalg.torch_names", "lu_solve")
    matrix_exp = function_of("linalg", "matrix_exp")
    matrix_power = function_of("linalg", "matrix_power")
    orgqr = function_of("linalg.torch_names", "orgqr")
    ormqr = function_of("linalg.reflections", "ormqr")
    pinverse = function_of("linalg.torch_names", "pinverse")
    qr = function_of("linalg.torch_names", "qr")
    slogdet = function_of("linalg.torch_names", "slogdet")
    svd = function_of("linalg.torch_names", "svd")
    triangular_solve = function_of("linalg.torch_names", "triangular_solve")

    as_strided = function_of("ops.shape.striding", "as_strided")
    as_strided_scatter = function_of("ops.shape.striding", "as_strided_scatter")

    istft = function_of("fft.spectrograms", "istft")
    stft = function_of("fft.spectrograms", "stft")

    hardshrink = function_of("nn.functional", "hardshrink")
    prelu = function_of("nn.functional", "prelu")
