"""jax.nn: activations and one-hot rows, with the arguments and defaults of JAX."""

from typing import Any

import lucid
from lucid.nn import functional as _ours


def __getattr__(name: str) -> Any:
    return getattr(_ours, {"swish": "silu", "hard_tanh": "hardtanh"}.get(name, name))


def softmax(x: Any, axis: int = -1) -> Any:
    """Exponentials along an axis, divided by their sum."""
    return _ours.softmax(x, dim=axis)


def log_softmax(x: Any, axis: int = -1) -> Any:
    """The logarithm of `softmax`."""
    return _ours.log_softmax(x, dim=axis)


def logsumexp(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The logarithm of the sum of exponentials."""
    axes = tuple(range(a.ndim)) if axis is None else axis
    return lucid.logsumexp(a, axes, keepdims)


def one_hot(x: Any, num_classes: int, *, dtype: Any = "float32", axis: int = -1) -> Any:
    """Rows of the identity; an index out of range gives zeros, as in JAX."""
    rows = lucid.as_tensor(x)[..., None] == lucid.arange(num_classes)
    return lucid.movedim(rows.to(dtype), -1, axis)


def gelu(x: Any, approximate: bool = True) -> Any:
    """The Gaussian error linear unit, by default with tanh, as in JAX."""
    return _ours.gelu(x, approximate="tanh" if approximate else "none")


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    """`x` where it is positive, `negative_slope * x` elsewhere."""
    return _ours.leaky_relu(x, negative_slope)
