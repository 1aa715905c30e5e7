"""The methods of Tensor that are functions of `lucid` under the same name."""

from __future__ import annotations

from typing import Any

from lucid.ir.tape import Traced
from lucid.ops import movement, reduction


class Methods(Traced):
    """Named methods of Tensor."""

    __slots__ = ()

    sum = reduction.sum
    reshape = movement.reshape
    permute = movement.permute

    def expand(self, *shape: Any) -> Any:
        return movement.broadcast_to(self, shape[0] if len(shape) == 1 else shape)
