"""Linear maps of features: linear and bilinear."""

from __future__ import annotations

from typing import Any

from lucid.errors import ShapeError
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor
from lucid.ops.higher_order.region import compile_when_hot
from lucid.ops.linalg.contraction import einsum
from lucid.ops.shape.shaping import t


@public_function("nn.functional")
@compile_when_hot
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """`input @ weight.T + bias`, with a weight of shape (out, in), or (in,) for one output.

    >>> import lucid
    >>> x, w = lucid.tensor([[1.0, 2.0]]), lucid.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 3.0]])
    >>> lucid.nn.functional.linear(x, w)
    Tensor([[1., 3., 6.]])
    """
    x, weight = as_tensor(input), as_tensor(weight)
    if weight.ndim not in (1, 2) or not x.ndim or x.shape[-1] != weight.shape[-1]:
        facts = f"input of shape {x.shape} and weight of shape {weight.shape}"
        raise ShapeError(f"linear: {facts}: they must agree in the last axis")
    y = x @ (t(weight) if weight.ndim == 2 else weight)
    if bias is None:
        return y
    bias = as_tensor(bias)
    if bias.shape not in (weight.shape[:-1], ()):
        facts = f"bias of shape {bias.shape} for weight of shape {weight.shape}"
        raise ShapeError(f"linear: {facts}; it must be {weight.shape[:-1]}")
    return y + bias


@public_function("lucid", "nn.functional")
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """`y[..., o] = x1[..., i] weight[o, i, j] x2[..., j] + bias[o]`, summed over i and j."""
    x, y, weight = as_tensor(input1), as_tensor(input2), as_tensor(weight)
    fits = x.ndim and y.ndim and weight.ndim == 3 and x.shape[:-1] == y.shape[:-1]
    if not fits or (x.shape[-1], y.shape[-1]) != weight.shape[1:]:
        facts = f"inputs of shapes {x.shape} and {y.shape} and weight of shape {weight.shape}"
        raise ShapeError(f"bilinear: {facts}; they must be (..., i), (..., j), (o, i, j)")
    z = einsum("...i,oij,...j->...o", x, weight, y)
    if bias is None:
        return z
    bias = as_tensor(bias)
    if bias.shape != weight.shape[:1]:
        raise ShapeError(f"bilinear: bias of shape {bias.shape}; it must be {weight.shape[:1]}")
    return z + bias
