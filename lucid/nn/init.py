"""Initialization of parameters, in place, as in `torch.nn.init`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lucid import random
from lucid.autograd import no_grad
from lucid.errors import ArgumentError, ShapeError
from lucid.linalg import qr
from lucid.ops.core.arguments import clear_errors, public_function
from lucid.ops.shape.creation import zeros
from lucid.ops.special.error_and_gamma import erfinv
from lucid.public.lazy import attach
from lucid.support.source import at_line

GAINS = {
    "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0, "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0), "selu": 0.75,
}  # fmt: skip


@public_function("nn.init")
def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """Return the recommended scale of the weights before a nonlinearity.

    >>> import lucid
    >>> lucid.nn.init.calculate_gain("relu") ** 2
    2.0000000000000004
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in GAINS:
        raise ArgumentError(
            f"calculate_gain: no gain is known for {nonlinearity!r}; "
            f"choose one of leaky_relu, {', '.join(GAINS)}"
        )
    return GAINS[nonlinearity]


@clear_errors
def fans(tensor: Any) -> tuple[int, int]:
    """Return the fan-in and fan-out of a weight."""
    if tensor.ndim < 2:
        raise ShapeError(
            f"init: a tensor of shape {tensor.shape} has no fan-in and fan-out; it needs two axes"
        )
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


@public_function("nn.init")
def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Fill with samples from the uniform distribution on [a, b)."""
    with no_grad():
        drawn = random.rand(*tensor.shape, dtype=tensor.dtype, generator=generator)
        return tensor.copy_(drawn * (b - a) + a)


@public_function("nn.init")
def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Fill with samples from a normal distribution."""
    with no_grad():
        drawn = random.randn(*tensor.shape, dtype=tensor.dtype, generator=generator)
        return tensor.copy_(drawn * std + mean)


@public_function("nn.init")
def trunc_normal_(
    tensor: Any,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Any:
    """Fill with samples from a normal distribution truncated to [a, b]."""
    if not std > 0:
        raise ArgumentError(f"trunc_normal_: std={std!r} is not positive{at_line()}")

    def below(x: float) -> float:
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    low, high = 2 * below(a) - 1, 2 * below(b) - 1
    with no_grad():
        unit = random.rand(*tensor.shape, dtype="float64", generator=generator)
        drawn = erfinv(unit * (high - low) + low) * (std * math.sqrt(2.0)) + mean
        return tensor.copy_(drawn.clamp(a, b))


@public_function("nn.init")
def constant_(tensor: Any, val: float) -> Any:
    """Fill with one number."""
    with no_grad():
        return tensor.fill_(val)


@public_function("nn.init")
def ones_(tensor: Any) -> Any:
    """Fill with ones."""
    return constant_(tensor, 1.0)


@public_function("nn.init")
def zeros_(tensor: Any) -> Any:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


@public_function("nn.init")
def eye_(tensor: Any) -> Any:
    """Set a matrix to the identity."""
    if tensor.ndim != 2:
        raise ShapeError(f"eye_: a tensor of shape {tensor.shape} is not a matrix")
    with no_grad():
        return tensor.copy_(np.eye(*tensor.shape, dtype=tensor.dtype))


@public_function("nn.init")
def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Set the weight of a convolution to preserve as many channels as possible."""
    if tensor.ndim not in (3, 4, 5) or tensor.shape[0] % groups:
        raise ShapeError(
            f"dirac_: a tensor of shape {tensor.shape} is not a convolution weight with {groups} "
            "groups"
        )
    value = np.zeros(tensor.shape, tensor.dtype)
    per_group = tensor.shape[0] // groups
    middle = tuple(n // 2 for n in tensor.shape[2:])
    for group in range(groups):
        for i in range(min(per_group, tensor.shape[1])):
            value[(group * per_group + i, i, *middle)] = 1
    with no_grad():
        return tensor.copy_(value)


@public_function("nn.init")
def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Fill uniformly, with variances preserved forward and backward (Glorot)."""
    bound = gain * math.sqrt(6.0 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


@public_function("nn.init")
def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Fill normally, with variances preserved forward and backward (Glorot)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor))), generator)


@clear_errors
def kaiming_scale(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    """Return the standard deviation that preserves variances through rectifiers."""
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError(f"kaiming: mode must be fan_in or fan_out, not {mode!r}")
    fan = fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(max(fan, 1))


@public_function("nn.init")
def kaiming_uniform_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    """Fill uniformly, with variances preserved through rectifiers (He)."""
    bound = math.sqrt(3.0) * kaiming_scale(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


@public_function("nn.init")
def kaiming_normal_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    """Fill normally, with variances preserved through rectifiers (He)."""
    return normal_(tensor, 0.0, kaiming_scale(tensor, a, mode, nonlinearity), generator)


@public_function("nn.init")
def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """Fill with a random orthogonal matrix; trailing axes count as columns."""
    fans(tensor)
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    with no_grad():
        flat = random.randn(rows, columns, generator=generator, dtype=tensor.dtype)
        q, r = qr(flat.T if rows < columns else flat)
        q = q * r.diagonal().sign()
        q = q.T if rows < columns else q
        return tensor.copy_(gain * q.reshape(tensor.shape))


@public_function("nn.init")
def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Fill normally, with a fraction of zeros in every column."""
    if tensor.ndim != 2:
        raise ShapeError(f"sparse_: a tensor of shape {tensor.shape} is not a matrix")
    rows, columns = tensor.shape
    normal_(tensor, 0.0, std, generator)
    n = math.ceil(sparsity * rows)
    with no_grad():
        for column in range(columns):
            chosen = random.randperm(rows, generator=generator)[:n]
            tensor[chosen, column] = zeros(n, dtype=tensor.dtype)
    return tensor


_, __dir__, __all__ = attach(__name__)
