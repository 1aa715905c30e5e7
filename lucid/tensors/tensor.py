"""Tensor: an array that knows how it was computed. The eager face of the IR."""

from __future__ import annotations

import weakref
from copy import deepcopy
from itertools import count
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, GraphError, ShapeError
from lucid.func.batching import read
from lucid.ir.graph import Graph
from lucid.ir.rewrite import opened
from lucid.ir.source import at_line, caller
from lucid.ir.types import is_differentiable
from lucid.ops.core.arguments import check_device, is_device, placed
from lucid.ops.core.promote import array_of, as_tensor, cast, get_default_dtype
from lucid.tape.bind import bind, set_class
from lucid.tape.cut import ancestors, cut_nodes
from lucid.tape.markers import STOP_GRADIENT
from lucid.tape.modes import local
from lucid.tape.node import GRAD, TRACE, Node, is_recording, tracking, wrap
from lucid.tape.recorder import changes
from lucid.tape.views import link, node_of, renewed
from lucid.tensors import numpy_protocols as numpy_interop
from lucid.tensors.methods import Methods
from lucid.tensors.operators import Operators


class GradCell:
    """What `backward` leaves behind for one value: its gradient and the hooks that watch it."""

    __slots__ = ("after", "earlier", "grad", "hooks", "retain")

    def __init__(self) -> None:
        self.grad: Any = None
        self.hooks: dict[int, Any] = {}
        self.after: dict[int, Any] = {}
        self.retain = False
        self.earlier: list[Any] = []

    def remember(self, node: Node) -> None:
        """Note a Node that this leaf had before it was changed in place: old graphs end there."""
        self.earlier = [old for old in self.earlier if old() is not None]
        self.earlier.append(weakref.ref(node))

    def nodes(self) -> list[Node]:
        """The earlier Nodes of this leaf that a graph still holds."""
        return [node for old in self.earlier if (node := old()) is not None]


_handles = count()


class HookHandle:
    """Takes a hook away again: `remove()`, a `with` block, or a call."""

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self.hooks = hooks
        self.number = next(_handles)
        hooks[self.number] = hook
        changes[0] += 1

    def remove(self) -> None:
        changes[0] += 1
        self.hooks.pop(self.number, None)

    __call__ = remove

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()


def adapt_hook(x: Tensor, hook: Any) -> Any:
    """`hook(grad)` or `hook(tensor, grad)` as a function of (grad, node)."""
    from lucid.autograd.watch import takes_tensor

    if not takes_tensor(hook):
        return lambda g, node: hook(g)
    itself = weakref.ref(x)

    def call(g: Any, node: Node) -> Any:
        tensor = itself()
        return hook(wrap(node.saved, node) if tensor is None else tensor, g)

    return call


class Tensor(Methods, Operators):
    """An n-dimensional array that can be differentiated.

    >>> import lucid
    >>> x = lucid.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    Tensor([2., 4., 6.])
    """

    __slots__ = ()
    __array_priority__ = 1000

    def __init__(
        self, data: Any, requires_grad: bool = False, keep_grad: bool = False, dtype: Any = None
    ) -> None:
        if not isinstance(requires_grad, (bool, np.bool_)):
            facts = f"Tensor: requires_grad={requires_grad!r} is neither True nor False"
            raise ArgumentError(f"{facts}; lucid.empty(3, 4) makes a tensor of a shape{at_line()}")
        array = np.array(array_of(data, dtype))
        if requires_grad and dtype is None and not is_differentiable(array.dtype):
            array = array.astype(get_default_dtype())
        self.value = array
        self.storage = self.origin = None
        self.node = wrap(array).node  # None, unless a run is recorded
        if requires_grad:
            self.requires_grad_(True)
        if keep_grad:
            self.retain_grad()

    # What it is

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def is_leaf(self) -> bool:
        """True for a tensor that was not computed from tensors that require a gradient."""
        return self.node is None or self.node.op is None or not self.node.flags & GRAD

    @property
    def requires_grad(self) -> bool:
        """True where `backward` computes the gradient of this tensor, or goes through it."""
        return self.node is not None and bool(self.node.flags & GRAD)

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.requires_grad_(wanted)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Ask (or stop asking) for the gradient of this leaf, in place."""
        node = self.node
        if requires_grad and is_recording() and not local.recorder.is_outside(node):
            raise GraphError(
                "requires_grad_: a tensor made inside a jitted function cannot become a leaf; "
                f"use lucid.func.grad, or make it outside{at_line()}"
            )
        if node is not None and node.op is not None:
            if requires_grad == self.requires_grad:
                return self
            raise GraphError(
                "requires_grad_: only a leaf can change it; "
                f"this tensor is the result of {node.op.name}, so detach() it first{at_line()}"
            )
        if requires_grad and not is_differentiable(self.dtype):
            raise DTypeError(
                f"requires_grad_: a tensor of dtype {self.dtype} has no gradient; "
                f"only floating and complex ones do{at_line()}"
            )
        if node is None and not requires_grad:
            return self
        cell, flags = (None, 0) if node is None else (node.cell, node.flags)
        if requires_grad != bool(flags & GRAD):
            tracking[0] += 1
        self.node = Node(None, (), flags | GRAD if requires_grad else flags & ~GRAD, self.value)
        if self.storage is not None:
            self.node.stamp = (self.storage, self.storage.version)
        self.node.cell = cell or (GradCell() if requires_grad else None)
        return self

    @property
    def grad(self) -> Any:
        """The gradient that `backward` has accumulated, or None."""
        cell = None if self.node is None else self.node.cell
        if cell is not None and is_recording():
            local.recorder.touched(cell)
        return None if cell is None else cell.grad

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            value = as_tensor(value)
            if value.shape != self.shape:
                raise ShapeError(
                    f"grad: shape {value.shape} for a tensor of shape {self.shape}{at_line()}"
                )
        elif self.node is None or self.node.cell is None:
            return
        cell = self.cell()
        if is_recording():
            local.recorder.touched(cell)
        cell.grad = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def cell(self) -> GradCell:
        """The GradCell of this value, made now where it has none."""
        node = node_of(self)
        if node.cell is None:
            node.cell = GradCell()
        return node.cell

    # Its value

    def array(self, what: str = "this") -> np.ndarray:
        """The ndarray, or an error that says why there is none. Every read by Python passes."""
        if self.value is None:
            return read(self, what)
        if is_recording():
            local.recorder.looked(self, what, caller())
        return self.value

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The value as an ndarray without a copy; read-only while a graph may still need it.

        `force` asks of PyTorch's tensors what is always done here.
        """
        value = self.array("numpy()")
        if self.node is not None and self.node.flags:
            value = value.view()
            value.flags.writeable = False
        return value

    def item(self) -> Any:
        """The value of a tensor with one element as a Python number."""
        value = self.array("item()")
        if value.size != 1:
            facts = f"item: a tensor of shape {value.shape} is not one number"
            raise ShapeError(f"{facts}; index it, or take tolist(){at_line()}")
        return value.item()

    def tolist(self) -> Any:
        """The value as nested lists of Python numbers."""
        return self.array("tolist()").tolist()

    def __bool__(self) -> bool:
        value = self.array("bool()")
        if value.size != 1:
            raise ShapeError(
                f"bool: a tensor of shape {value.shape} is neither true nor false; use any() or "
                f"all(){at_line()}"
            )
        return bool(value.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        value = self.array("an index")
        if value.size != 1 or value.dtype.kind not in "biu":
            raise DTypeError(f"index: a tensor of type {self.type} is not an integer{at_line()}")
        return int(value.item())

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError(f"len: a 0-d tensor has no length{at_line()}")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __contains__(self, x: Any) -> bool:
        return bool((self == x).any())

    __hash__ = object.__hash__

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.ndim == 0 and spec else format(str(self), spec)

    def __repr__(self) -> str:
        from lucid.tensors.printing import tensor_repr

        return tensor_repr(self)

    # NumPy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return numpy_interop.to_array(self, dtype, copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return numpy_interop.apply_ufunc(self, ufunc, method, *inputs, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return numpy_interop.apply_function(function, types, args, kwargs)

    def __dlpack__(self, **options: Any) -> Any:
        return numpy_interop.to_dlpack(self, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array("__dlpack_device__").__dlpack_device__()

    # Copies

    def __copy__(self) -> Tensor:
        """Another tensor with the same memory and history; a leaf's copy is a leaf."""
        if self.requires_grad and self.is_leaf:
            return self.detach().requires_grad_(True)
        return self[...] if self.ndim else self.reshape(())

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """A leaf with memory of its own, and a copy of its gradient."""
        if not self.is_leaf:
            raise GraphError(
                "deepcopy: this tensor is the result of an operation, whose graph is not copied; "
                f"deepcopy its detach(){at_line()}"
            )
        made = memo[id(self)] = wrap(self.array("deepcopy").copy(order="K"))
        if self.requires_grad:
            made.requires_grad_(True)
        if self.grad is not None:
            made.grad = deepcopy(self.grad, memo)
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a Tensor is not pickled, because reading a pickle runs whatever it holds; "
            f"save t.numpy() with np.save, and load it with lucid.tensor(np.load(...)){at_line()}"
        )

    # Differentiation

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
        *,
        keep_grad: bool = False,
    ) -> None:
        """Accumulate the gradient of this tensor into `.grad` of every leaf it was computed from.

        A tensor with more than one element is summed: its cotangent `gradient` is ones by default.
        """
        from lucid.autograd.engine import backward

        seeds = None if gradient is None else [gradient]
        backward([self], seeds, retain_graph, create_graph, inputs, keep_grad=keep_grad)

    def retain_grad(self) -> None:
        """Keep the gradient of this intermediate result in `.grad` too."""
        if self.requires_grad and not self.is_leaf:
            self.cell().retain = True

    @property
    def retains_grad(self) -> bool:
        """True after `retain_grad()`: the gradient of this result is kept in `.grad`."""
        return self.node is not None and self.node.cell is not None and self.node.cell.retain

    @property
    def keep_grad(self) -> bool:
        """The same as `retains_grad`."""
        return self.retains_grad

    def register_hook(self, hook: Any) -> HookHandle:
        """Call `hook(grad)` or `hook(tensor, grad)` when backward reaches this tensor.

        A tensor that the hook returns replaces the gradient. The handle's `remove()` ends it.
        """
        if not self.requires_grad:
            raise GraphError(f"register_hook: this tensor does not require a gradient{at_line()}")
        return HookHandle(self.cell().hooks, adapt_hook(self, hook))

    def register_post_accumulate_grad_hook(self, hook: Any) -> HookHandle:
        """Call `hook(tensor)` after backward has added to `.grad` of this leaf."""
        if not (self.requires_grad and self.is_leaf):
            raise GraphError(
                f"register_post_accumulate_grad_hook: only for leaves that require grad{at_line()}"
            )
        itself = weakref.ref(self)
        return HookHandle(self.cell().after, lambda _: hook(itself()))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradient (or fill it with zeros)."""
        if set_to_none or self.grad is None:
            self.grad = None
        else:
            self.grad = wrap(np.zeros(self.shape, self.dtype))

    @property
    def grad_fn(self) -> Any:
        """The operation that made this tensor, or None for a leaf."""
        return None if self.is_leaf else self.node.op

    # Its place on the tape

    def detach(self) -> Tensor:
        """The same value, in the same memory, without its history: a constant for `backward`."""
        traced = is_recording() or (self.node is not None and self.node.flags & TRACE)
        out = bind(STOP_GRADIENT, self) if traced else wrap(self.value)
        link(out, STOP_GRADIENT, self)
        return out

    @property
    def data(self) -> Tensor:
        """The value without history, in the same memory; assigning gives other memory."""
        return self.detach()

    @data.setter
    def data(self, new: Any) -> None:
        new = as_tensor(new).detach()
        if new.type != self.type:
            raise ShapeError(
                f"data: a tensor of type {new.type} for one of type {self.type}{at_line()}"
            )
        if new.value is self.value:
            return
        node = self.node
        self.value, self.storage, self.origin = new.value, new.storage, None
        if node is not None:
            self.node = renewed(node, self.value)
            if self.storage is not None:
                self.node.stamp = (self.storage, self.storage.version)

    @property
    def _version(self) -> int:
        """How often the memory of this tensor was written in place."""
        return getattr(self, "writes", 0) if self.storage is None else self.storage.version

    def graph(self) -> Graph:
        """The Graph that computed this tensor, from its leaves.

        >>> import lucid
        >>> x = lucid.tensor([1.0, 2.0], requires_grad=True)
        >>> print((x * 3.0).sum().graph().stripped())
        graph tensor(x0: f32[2]):
            %0: f32[2] = mul x0 3.0
            %1: f32[] = sum[axes=(0,)] %0
            return %1
        """
        end = node_of(self)
        found = ancestors([end])
        leaves = {x for node in found for x in node.inputs if isinstance(x, Node) and x.op is None}
        ordered = sorted(leaves, key=lambda node: node.serial) or [end]
        return opened(cut_nodes(ordered, [end]).graph("tensor"))

    @placed
    def to(
        self,
        *args: Any,
        dtype: Any = None,
        other: Any = None,
        non_blocking: bool = False,
        copy: bool = False,
    ) -> Tensor:
        """This tensor with another dtype (or that of another tensor)."""
        args = args if other is None else (*args, other)
        flags = [arg for arg in args if isinstance(arg, bool)]  # non_blocking, copy
        copy = copy or (len(flags) > 1 and flags[1])
        for arg in args:
            if is_device(arg):
                check_device("to", arg)
            elif not isinstance(arg, bool):
                dtype = arg.dtype if isinstance(arg, Tensor) else arg
        out = self if dtype is None else cast(self, dtype)
        return out.clone() if copy and out is self else out

    def type_as(self, other: Tensor) -> Tensor:
        """This tensor with the dtype of `other`."""
        return cast(self, as_tensor(other).dtype)


set_class(Tensor)


@placed
def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor with a copy of `data`; Python floats become the default float.

    >>> import lucid
    >>> lucid.tensor([[1, 2], [3, 4]])
    Tensor([[1, 2],
            [3, 4]])
    """
    return Tensor(data, requires_grad, dtype=dtype)
