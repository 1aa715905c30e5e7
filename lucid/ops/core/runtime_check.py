"""refuse: the identity, with an error at run time if a condition holds for any element.

Neither derivative rules nor functions of traced tensors see values. Where there is no result for
some values, such as the derivative of eigenvectors at a repeated eigenvalue or a polynomial of a
degree beyond the limit, a value passes through `refuse`, which raises an error if any element of
its condition is true, eagerly and in compiled programs. A compiled program reports the error when
it has run, so what follows must end for every value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, LinAlgError, ShapeError
from lucid.ir.types import Type
from lucid.ops.core.kinds import Linear
from lucid.ops.linalg.matrices import broadcast_batch, matrix_label
from lucid.tape.bind import bind


class Refuse(Linear):
    """Return `x`, or raise an error with the message `why` if an element of `bad` is true.

    The error is LinAlgError, which names the matrix, or ArgumentError, which names the element.
    """

    why: str
    is_matrix: bool = True
    saves = "x"
    lowering = "lucid.compiler.lowering.lapack.factorize:RefuseLowering"
    fails = True

    @property
    def check_error(self) -> tuple[Any, str]:  # type: ignore[override]
        return (LinAlgError if self.is_matrix else ArgumentError), self.why

    def infer(self, x: Type, bad: Type) -> Type:
        if bad.dtype != np.bool_:
            raise DTypeError(f"refuse: the condition has dtype {bad.dtype}; it must be bool")
        if bad.shape != x.shape:
            raise ShapeError(f"refuse: the condition has shape {bad.shape}, the operand {x.shape}")
        return x

    def eval(self, x: np.ndarray, bad: np.ndarray) -> np.ndarray:
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            if self.is_matrix:
                raise LinAlgError(f"{self.why} ({matrix_label(index[:-2])})")
            raise ArgumentError(f"{self.why} (got {x[index]})")
        return x.copy()

    def adjoint(self, ct: Any, x: Any, bad: Any) -> Any:
        return ct

    def batch(self, n: int, batched: tuple[bool, ...], x: Any, bad: Any) -> Any:
        return bind(self, *broadcast_batch(n, batched, (x, bad)))


def refuse(x: Any, bad: Any, why: str) -> Any:
    """Return `x`; raise LinAlgError if `bad` (broadcast to its shape) is true anywhere."""
    return bind(Refuse(why), x, bad if bad.shape == x.shape else bad.expand(x.shape))


def refuse_elements(x: Any, bad: Any, why: str) -> Any:
    """Return `x`; raise ArgumentError if `bad`, which has its shape, is true anywhere."""
    return bind(Refuse(why, is_matrix=False), x, bad)
