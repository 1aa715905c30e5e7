"""Parameter and Buffer: tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

from sys import getrefcount
from typing import Any

from lucid.ops.core.constructors import check_argument
from lucid.ops.core.promote import as_tensor
from lucid.public.declare import public
from lucid.tape.markers import STOP_GRADIENT
from lucid.tape.node import Node
from lucid.tape.views import link
from lucid.tensors.tensor import Tensor


class ArgumentRefcount:
    """The reference count of an argument that only its call holds."""

    def __init__(self, data: Any) -> None:
        self.count = getrefcount(data)


UNSHARED_REFCOUNT = ArgumentRefcount(object()).count


@public("nn")
class Parameter(Tensor):
    """A tensor, in the memory of `data`, that the Module it is assigned to registers.

    >>> import lucid
    >>> lucid.nn.Parameter(lucid.ones(2))
    Parameter([1., 1.], requires_grad=True)
    """

    __slots__ = ()

    def __init__(self, data: Any = (), requires_grad: bool = True) -> None:
        check_argument("Parameter", "requires_grad", "bool", requires_grad)
        share_memory(self, data, getrefcount(data) > UNSHARED_REFCOUNT)
        if requires_grad:
            self.requires_grad_(True)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        made = memo[id(self)] = Parameter(self.detach().clone(), self.requires_grad)
        return made


@public("nn")
class Buffer(Tensor):
    """A tensor registered as state, not as a parameter, of the Module it is assigned to."""

    __slots__ = ("persistent",)

    def __init__(self, data: Any = (), *, persistent: bool = True) -> None:
        share_memory(self, data, getrefcount(data) > UNSHARED_REFCOUNT)
        self.persistent = persistent

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        made = memo[id(self)] = Buffer(self.detach().clone(), persistent=self.persistent)
        return made


def recast(p: Tensor, dtype: Any) -> Tensor:
    """Return `p` with another dtype; a leaf stays the object that an optimizer may hold."""
    if p.raw is None or not p.is_leaf:
        return p.to(dtype)
    node = p.node
    p.value, p.node, p.storage, p.origin = p.value.astype(dtype), None, None, None
    if node is not None:
        p.node = Node(None, (), node.flags, p.value)
        p.node.cell = node.cell
        if node.cell is not None and node.cell.grad is not None:
            node.cell.grad = node.cell.grad.detach().to(dtype)
    return p


def share_memory(x: Tensor, data: Any, is_shared: bool) -> None:
    """Give a new tensor the memory of `data`; writes are visible to its other holders."""
    source = as_tensor(data)
    x.value, x.node, x.storage, x.origin = source.value, None, None, None
    if source.node is not None and source.node.flags:
        x.node = source.detach().node
    if is_shared or source.storage is not None:
        link(x, STOP_GRADIENT, source)
