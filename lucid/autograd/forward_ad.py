"""Forward mode in PyTorch's manner: tensors with tangents, for as long as a level is open.

`make_dual` gives a fresh input with a tangent; what is computed from it stands on the tape, and
`unpack_dual` pushes the tangents along the part of it in between, as `lucid.func.jvp` does.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from lucid.errors import DTypeError, GraphError, ShapeError
from lucid.ir.source import at_line
from lucid.ir.types import is_differentiable
from lucid.ops.core.arguments import explained
from lucid.ops.core.promote import as_tensor
from lucid.tape.bind import fresh
from lucid.tape.modes import local
from lucid.tape.node import TRACE, Traced, is_recording, wrap
from lucid.tape.template import find_cut
from lucid.tape.views import node_of, storage_of
from lucid.transforms.prepare import pushforward

__all__ = [
    "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
    "unpack_dual",
]  # fmt: skip


class UnpackedDualTensor(NamedTuple):
    """A value, and its tangent: None where it depends on no dual tensor."""

    primal: Any
    tangent: Any


class Level:
    """The dual tensors of an open level."""

    def __init__(self) -> None:
        self.duals: list[Any] = []
        self.tangents: list[Any] = []
        self.outer = 0  # the flags of whatever else watches the primals and the tangents
        self.grad = local.grad


class _Open(threading.local):
    level: Level | None = None


_open = _Open()


def enter_dual_level() -> int:
    """Open a level, in which tensors can have tangents; `dual_level` closes it by itself."""
    if _open.level is not None:
        raise GraphError(f"dual_level: levels are not nested; jvp of jvp can be{at_line()}")
    _open.level = Level()
    local.grad = True
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level: tensors have no tangents any more."""
    if _open.level is None or level not in (None, 0):
        facts = "no level is open" if _open.level is None else f"level {level} is not open"
        raise GraphError(f"exit_dual_level: {facts}{at_line()}")
    local.grad = _open.level.grad
    _open.level = None


class dual_level:
    """A block in which tensors can have tangents.

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


@explained
def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """`tensor` with a tangent, for derivatives in its direction."""
    opened = _open.level
    if opened is None or level not in (None, 0):
        raise GraphError(f"make_dual: no level is open; use dual_level(){at_line()}")
    x, t = as_tensor(tensor), as_tensor(tangent)
    if not is_differentiable(x.dtype) or t.dtype != x.dtype:
        facts = f"a tensor of dtype {x.dtype} with a tangent of {t.dtype}"
        raise DTypeError(f"make_dual: {facts}; both are of one floating dtype{at_line()}")
    if x.shape != t.shape:
        facts = f"a tensor of shape {x.shape} with a tangent of {t.shape}"
        raise ShapeError(f"make_dual: {facts}{at_line()}")
    for given in (x, t):
        opened.outer |= 0 if given.node is None else given.node.flags
    dual = fresh(x)
    opened.duals.append(dual)
    opened.tangents.append(t)
    return dual


@explained
def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor that was computed from dual ones."""
    x, opened = as_tensor(tensor), _open.level
    if opened is None or x.node is None or not opened.duals or not is_differentiable(x.dtype):
        return UnpackedDualTensor(x, None)
    cut = find_cut([node_of(x)], [node_of(dual) for dual in opened.duals])
    outer = opened.outer
    for slot in cut.captured:
        outer |= cut.slots[slot].flags
    record = (bool(outer) and opened.grad) or bool(outer & TRACE) or is_recording()
    (tangent,) = pushforward(cut, opened.tangents, record)
    primal, tangent = (released(y, record, outer) for y in (x, tangent))
    return UnpackedDualTensor(primal, tangent)


def released(x: Any, record: bool, outer: int) -> Any:
    """A value without the marks of the level; on the tape only where something else watches."""
    if not isinstance(x, Traced) or x.node is None or x.value is None:
        return x
    if record:
        if not outer & TRACE:
            x.node.flags &= ~TRACE
        return x
    out = wrap(x.value)
    out.storage = storage_of(x)
    return out
