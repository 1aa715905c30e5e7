"""Dropout as layers: active while training, the identity in evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import lucid.nn.functional as F
from lucid.errors import ArgumentError
from lucid.ir.source import at_line
from lucid.nn.module import Module


class Dropping(Module):
    """`function` with probability `p`, while training."""

    function: ClassVar[Callable[..., Any]]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ArgumentError(f"{type(self).__name__}: p is a probability, not {p}{at_line()}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Any) -> Any:
        return type(self).function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(Dropping):
    """Elements become 0 with probability p, the others are scaled by 1 / (1 - p)."""

    function = F.dropout


class Dropout1d(Dropping):
    """Whole channels of sequences become 0."""

    function = F.dropout1d


class Dropout2d(Dropping):
    """Whole channels of images become 0."""

    function = F.dropout2d


class Dropout3d(Dropping):
    """Whole channels of volumes become 0."""

    function = F.dropout3d


class AlphaDropout(Dropping):
    """Dropout that keeps mean and variance, for SELU."""

    function = F.alpha_dropout


class FeatureAlphaDropout(Dropping):
    """Alpha dropout of whole channels."""

    function = F.feature_alpha_dropout
