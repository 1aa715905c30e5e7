"""Dropout as layers: active in training, the identity in evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import lucid.nn.functional as F
from lucid.errors import ArgumentError
from lucid.nn.layers.function_layer import LayerFamily
from lucid.public.declare import public


class DropoutBase(LayerFamily):
    """Apply `function` with probability `p` in training."""

    function: ClassVar[Callable[..., Any]]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ArgumentError(f"{type(self).__name__}: p must be a probability, not {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Any) -> Any:
        return type(self).function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


@public("nn")
class Dropout(DropoutBase, function=F.dropout):
    """Set elements to 0 with probability p and scale the others by 1 / (1 - p)."""


@public("nn")
class Dropout1d(DropoutBase, function=F.dropout1d):
    """Set entire channels of sequences to 0."""


@public("nn")
class Dropout2d(DropoutBase, function=F.dropout2d):
    """Set entire channels of images to 0."""


@public("nn")
class Dropout3d(DropoutBase, function=F.dropout3d):
    """Set entire channels of volumes to 0."""


@public("nn")
class AlphaDropout(DropoutBase, function=F.alpha_dropout):
    """Dropout that preserves mean and variance, for SELU."""


@public("nn")
class FeatureAlphaDropout(DropoutBase, function=F.feature_alpha_dropout):
    """Alpha dropout of entire channels."""
