"""Copy: the same values in new memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.ir.types import Type
from lucid.ops.core.kinds import Linear
from lucid.ops.core.promote import as_tensor
from lucid.public.declare import public
from lucid.tape.bind import bind
from lucid.tape.views import layout


class Copy(Linear):
    """The identity in new memory: writes to the copy do not change the original."""

    scalar = "copy"
    moves, forwards = True, "last"
    lowering = "lucid.compiler.lowering.index.concatenate_pad:CopyLowering"

    def infer(self, x: Type) -> Type:
        return x

    def eval(self, x: np.ndarray) -> np.ndarray:
        return np.array(x, order="K")

    def adjoint(self, ct: Any, x: Any) -> Any:
        return ct

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)


COPY = Copy()


@public("lucid", "Tensor")
def clone(input: Any, *, memory_format: Any = None) -> Any:
    """A copy of `input` through which gradients flow, in row-major order for any memory format."""
    return bind(COPY, as_tensor(input))


def unshared(x: Any) -> Any:
    """Return a copy of `x` if it is a view; the result of a function that is not one."""
    return x if x.origin is None else bind(COPY, x)


@public("Tensor")
def contiguous(x: Any, *, memory_format: Any = None) -> Any:
    """Return `x` in row-major memory order, for any memory format; `x` itself if it already is."""
    return x if layout(x).flags.c_contiguous else bind(COPY, x)
