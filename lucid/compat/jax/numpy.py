"""jax.numpy: lucid.numpy, with `vectorize` and the names that JAX adds to NumPy's."""

from typing import Any

import lucid.numpy as _ours
from lucid.func import vectorize
from lucid.tensors.tensor import Tensor as ndarray

__all__ = ["ndarray", "vectorize"]


def __getattr__(name: str) -> Any:
    return getattr(_ours, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(_ours)})
