"""refuse: the identity, with an error at run time if a condition holds for any element.

Derivative rules see no values. Where a derivative does not exist for some values, such as that of
eigenvectors at a repeated eigenvalue, the rule passes its result through `refuse`, which raises
LinAlgError if any element of its condition is true, eagerly and in compiled programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import DTypeError, LinAlgError, ShapeError
from lucid.ir.types import Type
from lucid.ops.core.kinds import Linear
from lucid.ops.linalg.matrices import broadcast_batch, matrix_label
from lucid.tape.bind import bind


class Refuse(Linear):
    """Return `x`, or raise an error with the message `why` if an element of `bad` is true."""

    why: str
    saves = "x"
    lowering = "lucid.compiler.lowering.lapack.factorize:RefuseLowering"
    fails = True
    check_error = (LinAlgError, "no result for this matrix")

    def infer(self, x: Type, bad: Type) -> Type:
        if bad.dtype != np.bool_:
            raise DTypeError(f"refuse: the condition has dtype {bad.dtype}; it must be bool")
        if bad.shape != x.shape:
            raise ShapeError(f"refuse: the condition has shape {bad.shape}, the operand {x.shape}")
        return x

    def eval(self, x: np.ndarray, bad: np.ndarray) -> np.ndarray:
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0][:-2])
            raise LinAlgError(f"{self.why} ({matrix_label(index)})")
        return x.copy()

    def adjoint(self, ct: Any, x: Any, bad: Any) -> Any:
        return ct

    def batch(self, n: int, batched: tuple[bool, ...], x: Any, bad: Any) -> Any:
        return bind(self, *broadcast_batch(n, batched, (x, bad)))


def refuse(x: Any, bad: Any, why: str) -> Any:
    """Return `x`; raise LinAlgError if `bad` (broadcast to its shape) is true anywhere."""
    return bind(Refuse(why), x, bad if bad.shape == x.shape else bad.expand(x.shape))
