"""Gradient clipping, and parameters as one vector.

No value is read, so a jitted step stays one program.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from lucid.autograd import no_grad
from lucid.errors import ArgumentError
from lucid.linalg import vector_norm
from lucid.ops.core.arguments import public_function
from lucid.ops.elementwise.conditional import clamp
from lucid.ops.shape.joining import cat, stack
from lucid.tensors.tensor import Tensor, tensor


def with_gradients(parameters: Any) -> list[Any]:
    """Return the parameters that have a gradient."""
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p for p in given if p.grad is not None]


@public_function("nn.utils")
def get_total_norm(
    tensors: Any,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Return the norm of all elements of all tensors together."""
    given = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not given:
        return tensor(0.0)
    parts = stack([vector_norm(x, norm_type) for x in given])
    total = vector_norm(parts, norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise ArgumentError(f"get_total_norm: the norm of order {norm_type} is {total.item()}")
    return total


@public_function("nn.utils")
def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None
) -> None:
    """Scale all gradients so that `total_norm`, their current norm, is at most `max_norm`."""
    with no_grad():
        factor = clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
        for p in with_gradients(parameters):
            p.grad.mul_(factor)


@public_function("nn.utils")
def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Scale all gradients so that their norm is at most `max_norm`; return the norm before.

    `foreach` is accepted for compatibility with PyTorch and ignored.

    >>> import lucid
    >>> w = lucid.tensor([0.0, 0.0], requires_grad=True)
    >>> w.grad = lucid.tensor([3.0, 4.0])
    >>> lucid.nn.utils.clip_grad_norm_([w], 1.0)
    Tensor(5.)
    >>> round(w.grad.norm().item(), 5)
    1.0
    """
    given = with_gradients(parameters)
    with no_grad():
        total = get_total_norm([p.grad for p in given], norm_type, error_if_nonfinite)
    clip_grads_with_norm_(given, max_norm, total)
    return total


@public_function("nn.utils")
def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every element of every gradient to [-clip_value, clip_value]."""
    bound = float(clip_value)
    with no_grad():
        for p in with_gradients(parameters):
            p.grad.clamp_(-bound, bound)


@public_function("nn.utils")
def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """Concatenate all parameters into one vector."""
    return cat([p.reshape(-1) for p in parameters])


@public_function("nn.utils")
def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Copy the slices of a vector into the parameters."""
    given = list(parameters)
    size = sum(p.numel() for p in given)
    if not isinstance(vec, Tensor) or vec.shape != (size,):
        shape = vec.shape if isinstance(vec, Tensor) else type(vec).__name__
        raise ArgumentError(f"vector_to_parameters: {size} elements are needed, not {shape}")
    start = 0
    with no_grad():
        for p in given:
            p.copy_(vec[start : start + p.numel()].reshape(p.shape))
            start += p.numel()
