"""refuse: a value that may not be used where a condition holds, which only running can tell.

Derivative rules see no values. Where a derivative does not exist for some of them, such as that of
eigenvectors at a repeated eigenvalue, the rule passes its result through `refuse`: the identity,
which raises LinAlgError if any element of its condition is true, eagerly and in compiled programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import DTypeError, LinAlgError, ShapeError
from lucid.ir.source import at_line
from lucid.ir.types import Type
from lucid.ops.core.kinds import Linear
from lucid.ops.linalg.matrices import place, repeated
from lucid.tape.bind import bind


class Refuse(Linear):
    """`x`, or an error that says `why` where an element of `bad` is true."""

    why: str
    saves = "x"

    def infer(self, x: Type, bad: Type) -> Type:
        if bad.dtype != np.bool_:
            raise DTypeError(f"refuse: a condition of dtype {bad.dtype}; it is bool")
        if bad.shape != x.shape:
            raise ShapeError(f"refuse: a condition of shape {bad.shape} for {x.shape}")
        return x

    def eval(self, x: np.ndarray, bad: np.ndarray) -> np.ndarray:
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0][:-2])
            raise LinAlgError(f"{self.why} ({place(index)}){at_line()}")
        return x.copy()

    def adjoint(self, ct: Any, x: Any, bad: Any) -> Any:
        return ct

    def batch(self, n: int, batched: tuple[bool, ...], x: Any, bad: Any) -> Any:
        return bind(self, *repeated(n, batched, (x, bad)))


def refuse(x: Any, bad: Any, why: str) -> Any:
    """`x`, unless `bad` (which broadcasts to its shape) holds anywhere."""
    return bind(Refuse(why), x, bad if bad.shape == x.shape else bad.expand(x.shape))
