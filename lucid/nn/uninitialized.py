"""Parameters and buffers of lazy layers, whose shape is known only after the first input."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import ModuleError
from lucid.ir.types import dtype_of
from lucid.nn.parameter import Buffer, Parameter
from lucid.ops.core.constructors import checked_constructor
from lucid.ops.core.promote import get_default_dtype
from lucid.public.declare import public
from lucid.tape.node import GRAD, Node, Traced

ARRAY: Any = Traced.__dict__["raw"]  # the slot, which `raw` hides until there is a shape


class Uninitialized:
    """A dtype and a requires_grad flag; everything else raises until `materialize`."""

    __slots__ = ()
    cls_to_become: type = object

    def prepare(self: Any, dtype: Any, requires_grad: bool) -> None:
        chosen = get_default_dtype() if dtype is None else dtype_of(dtype)
        ARRAY.__set__(self, np.empty(0, chosen))
        self.node = self.storage = self.origin = None
        self.requires_grad_(requires_grad)

    @property
    def raw(self) -> Any:
        raise ModuleError(
            f"{type(self).__name__}: it has no shape yet; call its lazy layer once, with an input"
        )

    @property
    def dtype(self) -> np.dtype:
        """The dtype that the elements will have."""
        return ARRAY.__get__(self).dtype

    def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
        """Set whether the materialized tensor requires grad."""
        self.node = Node(None, (), GRAD) if requires_grad else None
        return self

    def detach(self) -> Any:
        """Return itself: no gradient can flow through it yet."""
        return self

    def to(
        self: Any,
        *args: Any,
        dtype: Any = None,
        other: Any = None,
        non_blocking: bool = False,
        copy: bool = False,
        memory_format: Any = None,
    ) -> Any:
        """Return itself, with another dtype for the elements to come."""
        wanted = dtype if other is None else other.dtype
        ARRAY.__set__(self, np.empty(0, dtype_of(args[0] if args else wanted)))
        return self

    def materialize(self: Any, shape: Any, dtype: Any = None) -> None:
        """Become an ordinary tensor of this shape: the same object, with zeros."""
        chosen = self.dtype if dtype is None else dtype_of(dtype)
        wanted = self.requires_grad
        self.node, self.__class__ = None, self.cls_to_become
        self.raw = np.zeros(tuple(shape), chosen)
        if wanted:
            self.requires_grad_(True)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        make, arguments = self.__reduce_ex__(2)
        made = memo[id(self)] = make(*arguments)
        return made

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        persistent = (self.persistent,) if isinstance(self, Buffer) else ()
        return type(self), (self.requires_grad, self.dtype, *persistent)


@public("nn")
class UninitializedParameter(Uninitialized, Parameter):
    """A Parameter without a shape.

    >>> import lucid
    >>> layer = lucid.nn.LazyLinear(3)
    >>> layer.weight
    <UninitializedParameter>
    >>> layer(lucid.ones(2, 5)).shape, layer.weight.shape
    ((2, 3), (3, 5))
    """

    __slots__ = ()
    cls_to_become = Parameter

    @checked_constructor
    def __init__(self, requires_grad: bool = True, dtype: Any = None) -> None:
        self.prepare(dtype, requires_grad)


@public("nn")
class UninitializedBuffer(Uninitialized, Buffer):
    """A Buffer without a shape."""

    __slots__ = ()
    cls_to_become = Buffer

    @checked_constructor
    def __init__(
        self, requires_grad: bool = False, dtype: Any = None, persistent: bool = True
    ) -> None:
        self.prepare(dtype, requires_grad)
        self.persistent = persistent
