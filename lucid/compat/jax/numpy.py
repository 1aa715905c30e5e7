"""jax.numpy: lucid.numpy, with `vectorize` and the names that JAX adds to NumPy's."""

from typing import Any

from numpy import dtype

import lucid.numpy as _ours
from lucid.func import vectorize
from lucid.tensors.tensor import Tensor as ndarray

__all__ = ["ndarray", "vectorize"]


def __getattr__(name: str) -> Any:
    found = getattr(_ours, name)
    return found.type if isinstance(found, dtype) else found  # jnp.float32(2.0) is a number


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(_ours)})
