"""einops on tensors: `import lucid.compat.einops` once, before the first use, registers them.

>>> import einops, lucid, lucid.compat.einops
>>> einops.rearrange(lucid.zeros(2, 3, 4), "a b c -> b (a c)").shape
(3, 8)
"""

from __future__ import annotations

from typing import Any

from einops._backends import NumpyBackend

import lucid.numpy
from lucid.tape.node import Traced


class LucidBackend(NumpyBackend):
    """The backend for tensors; einops finds subclasses of its backends by itself."""

    framework_name = "lucid"

    def __init__(self) -> None:
        super().__init__()
        self.np = lucid.numpy

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, Traced)

    def from_numpy(self, x: Any) -> Any:
        return self.np.asarray(x)

    def to_numpy(self, x: Any) -> Any:
        return x.detach().numpy()

    def transpose(self, x: Any, axes: Any) -> Any:
        return x.permute(tuple(axes))
