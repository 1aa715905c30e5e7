"""PyTorch-style forward mode: dual tensors, which have a tangent while a level is open.

`make_dual` returns a fresh input with a tangent; what is computed from it is on the tape, and
`unpack_dual` pushes the tangents forward through that part of it, as `lucid.func.jvp` does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lucid.errors import DTypeError, GraphError, ShapeError
from lucid.ir.types import is_differentiable
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor
from lucid.public.declare import public
from lucid.public.lazy import attach
from lucid.tape.bind import fresh, without_gradient
from lucid.tape.modes import local
from lucid.tape.node import TRACE, Traced, is_recording, wrap
from lucid.tape.template import find_cut
from lucid.tape.views import node_of, storage_of
from lucid.transforms.prepare import pushforward


@public("autograd.forward_ad")
class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, None if it does not depend on a dual tensor."""

    primal: Any
    tangent: Any


class Level:
    """The dual tensors of an open level."""

    def __init__(self) -> None:
        self.duals: list[Any] = []
        self.tangents: list[Any] = []
        self.outer = 0  # flags of outer transforms that track the primals and the tangents
        self.grad = local.grad


@public("autograd.forward_ad")
def enter_dual_level() -> int:
    """Open a level, in which tensors can have tangents; prefer `with dual_level()`."""
    if local.dual_level is not None:
        raise GraphError("dual_level: levels cannot be nested; nest func.jvp instead")
    local.dual_level = Level()
    local.grad = True
    return 0


@public("autograd.forward_ad")
def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level: its tensors lose their tangents."""
    if local.dual_level is None or level not in (None, 0):
        facts = "no level is open" if local.dual_level is None else f"level {level} is not open"
        raise GraphError(f"exit_dual_level: {facts}")
    local.grad = local.dual_level.grad
    local.dual_level = None


@public("autograd.forward_ad")
class dual_level:
    """A context manager in which tensors can have tangents.

    >>> import lucid
    >>> from lucid.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(lucid.tensor(3.0), lucid.tensor(1.0))
    ...     print(forward_ad.unpack_dual(x * x).tangent)
    Tensor(6.)
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *_: Any) -> None:
        exit_dual_level()


@public_function("autograd.forward_ad")
def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Return `tensor` with a tangent, for derivatives in its direction."""
    current = local.dual_level
    if current is None or level not in (None, 0):
        raise GraphError("make_dual: no level is open; use dual_level()")
    x, t = as_tensor(tensor), as_tensor(tangent)
    if not is_differentiable(x.dtype) or t.dtype != x.dtype:
        facts = f"a tensor of dtype {x.dtype} with a tangent of {t.dtype}"
        raise DTypeError(f"make_dual: {facts}; both need the same floating dtype")
    if x.shape != t.shape:
        raise ShapeError(f"make_dual: a tensor of shape {x.shape} with a tangent of {t.shape}")
    for given in (x, t):
        current.outer |= 0 if given.node is None else given.node.flags
    dual = fresh(x)
    current.duals.append(dual)
    current.tangents.append(t)
    return dual


@public_function("autograd.forward_ad")
def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the value and the tangent of a tensor computed from dual tensors."""
    x, current = as_tensor(tensor), local.dual_level
    if current is None or x.node is None or not current.duals or not is_differentiable(x.dtype):
        return UnpackedDualTensor(x, None)
    cut = find_cut([node_of(x)], [node_of(dual) for dual in current.duals])
    outer = current.outer
    for slot in cut.captured:
        outer |= cut.slots[slot].flags
    record = (bool(outer) and current.grad) or bool(outer & TRACE) or is_recording()
    constant = not current.grad
    (tangent,) = pushforward(cut, current.tangents, record, constant)
    primal, tangent = (without_level(y, record, outer, constant) for y in (x, tangent))
    return UnpackedDualTensor(primal, tangent)


def without_level(x: Any, record: bool, outer: int, constant: bool) -> Any:
    """Return a value without the flags of the level, on the tape only if `record`."""
    if not isinstance(x, Traced) or x.node is None or x.raw is None:
        return x
    if record:
        if constant:
            return without_gradient(x)
        if not outer & TRACE:
            x.node.flags &= ~TRACE
        return x
    out = wrap(x.value)
    out.storage = storage_of(x)
    return out


_, __dir__, __all__ = attach(__name__)
