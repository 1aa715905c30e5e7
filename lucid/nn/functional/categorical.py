"""softmax and its kin: weights along an axis that sum to 1."""

from __future__ import annotations

from typing import Any

from lucid.errors import ArgumentError
from lucid.ir.source import at_line
from lucid.nn.functional.arguments import number, real
from lucid.ops.core.arguments import also, explained
from lucid.ops.core.axes import axis_of
from lucid.ops.core.promote import cast
from lucid.ops.elementwise.exponential import log, log1p
from lucid.ops.nn.softmax import log_softmax as log_softmax
from lucid.ops.nn.softmax import softmax as softmax
from lucid.ops.reduce.extrema import argmax
from lucid.ops.shape.creation import arange
from lucid.random import rand_like


@explained
def softmin(input: Any, dim: Any = None, dtype: Any = None, *, axis: Any = None) -> Any:
    """`softmax(-x)` along `dim`."""
    return softmax(-real("softmin", input), dim, axis=axis, dtype=dtype)


@explained
@also(dim="axis")
def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """A draw from the relaxed categorical distribution: softmax((logits + noise) / tau).

    `hard` gives the nearest one-hot vectors, with the gradient of the relaxed ones. `eps` does
    nothing, as in PyTorch.
    """
    x, tau = real("gumbel_softmax", logits), number("gumbel_softmax", tau, "tau")
    if tau == 0:
        raise ArgumentError(f"gumbel_softmax: tau is 0; it divides{at_line()}")
    axis = axis_of("gumbel_softmax", dim, x.ndim)
    uniform = rand_like(x).clamp(2.0**-26)
    noise = -log(-log1p(-uniform))
    soft = softmax((x + noise) / tau, axis)
    if not hard or not x.ndim:
        return soft
    sizes = [-1 if i == axis else 1 for i in range(x.ndim)]
    places = arange(x.shape[axis]).reshape(sizes)
    chosen = cast(places == argmax(soft, axis, True), x.dtype)
    return chosen - soft.detach() + soft
