"""Tensor: an array that records how it was computed, the eager interface to the IR."""

from __future__ import annotations

import math
import sys
import weakref
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, GraphError, ShapeError
from lucid.ir.graph import Graph
from lucid.ir.rewrite import inline_regions
from lucid.ir.types import Type, is_differentiable
from lucid.ops.core.arguments import accepts_device, check_device, flag, is_device
from lucid.ops.core.promote import (
    as_ndarray,
    as_tensor,
    cast,
    contains_tensors,
    get_default_dtype,
)
from lucid.ops.shape.copying import clone
from lucid.public.declare import public
from lucid.public.lazy import LazyModule
from lucid.support.source import is_internal
from lucid.tape.bind import bind
from lucid.tape.conversion import needs_grad
from lucid.tape.cut import ancestors, cut_nodes
from lucid.tape.fast_bind import set_class
from lucid.tape.markers import STOP_GRADIENT
from lucid.tape.modes import local
from lucid.tape.node import (
    GRAD,
    TRACE,
    GradCell,
    Node,
    Traced,
    active_recorders,
    is_recording,
    requires_grad_changes,
    wrap,
)
from lucid.tape.views import link, node_after_write, node_of
from lucid.tensors.methods import Methods
from lucid.tensors.operators import Operators
from lucid.tensors.properties import callable_type
from lucid.tensors.values import Values

if TYPE_CHECKING:
    from lucid.tensors.hook_handles import HookHandle

hook_handles: Any = LazyModule("lucid.tensors.hook_handles")
transport: Any = LazyModule("lucid.tensors.transport")

_backward: Any = None  # backward_from, which is imported when it is first used


def _load_backward() -> Any:
    global _backward
    from lucid.autograd.engine import backward_from

    _backward = backward_from
    return backward_from


@public()
class Tensor(Values, Methods, Operators):
    """An n-dimensional array that records how it was computed, so that it can be differentiated.

    >>> import lucid
    >>> x = lucid.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    Tensor([2., 4., 6.])

    data             a number, a list, an array or a tensor; it is copied
    requires_grad    accumulate the gradient into `.grad` when `backward()` is called
    keep_grad        also keep the gradients of everything computed from this tensor
    dtype            that of an array by default; float32 for Python floats

    `lucid.tensor(data)` is the usual way to create one; `lucid.zeros`, `ones`, `randn`, `arange`
    and others create them from sizes. Most attributes and methods are those of PyTorch tensors and
    NumPy arrays: `shape`, `dtype`, `ndim`, `T`; `sum`, `mean`, `reshape`, `transpose`, `@`, slices,
    masks. A method that ends in an underscore writes into the tensor: `x.add_(1.0)`.

    For gradients: `grad`, `backward`, `requires_grad_`, `detach`, `retain_grad`, `register_hook`.
    To leave Lucid: `numpy()` (the same memory), `item()`, `tolist()`. To look inside: `graph()`.
    """

    __slots__ = ()
    __array_priority__ = 1000

    def __init__(
        self, data: Any, requires_grad: bool = False, keep_grad: bool = False, dtype: Any = None
    ) -> None:
        if not isinstance(requires_grad, (bool, np.bool_)):
            facts = f"Tensor: requires_grad={requires_grad!r} is not a bool"
            raise ArgumentError(f"{facts}; to create a tensor of a shape use lucid.empty(3, 4)")
        if isinstance(data, Traced) or contains_tensors(data):
            made = clone(as_tensor(data, dtype))  # recorded, so that gradients flow
            if requires_grad and needs_grad(made):
                raise GraphError(
                    "Tensor: the data require a gradient, so the result is not a leaf; detach() "
                    "them for a new leaf, or omit requires_grad"
                )
        else:
            made = wrap(np.array(as_ndarray(data, dtype)))
        if requires_grad and dtype is None and not is_differentiable(made.dtype):
            made = cast(made, get_default_dtype())
        self.raw, self.node, self.storage, self.origin = made.raw, made.node, None, None
        if requires_grad:
            self.requires_grad_(True)
        if keep_grad and requires_grad:
            self.cell().keep = GradCell.any_keep = True

    # Attributes

    @property
    def type(self) -> Type:
        """Dtype and shape, `f32[32,10]`; called with a dtype it casts, as in PyTorch."""
        found = Traced.type.fget(self)  # type: ignore[attr-defined]
        if is_internal(sys._getframe(1).f_code.co_filename):
            return found
        return callable_type(self, found)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def is_leaf(self) -> bool:
        """True if this tensor was not computed from tensors that require a gradient."""
        return self.node is None or self.node.op is None or not self.node.flags & GRAD

    @property
    def requires_grad(self) -> bool:
        """True if `backward` computes the gradient of this tensor or propagates through it."""
        return self.node is not None and bool(self.node.flags & GRAD)

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.requires_grad_(wanted)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set whether this leaf requires a gradient, in place."""
        node, requires_grad = self.node, flag("requires_grad_", "requires_grad", requires_grad)
        if requires_grad and is_recording() and not local.recorder.is_external(node):
            raise GraphError(
                "requires_grad_: a tensor made inside a jitted function cannot become a leaf; "
                "use lucid.func.grad, or create it outside"
            )
        if node is not None and node.op is not None:
            if requires_grad == self.requires_grad:
                return self
            raise GraphError(
                "requires_grad_: only leaves can change requires_grad; "
                f"this tensor is the result of {node.op.name}, so detach() it first"
            )
        if requires_grad and not is_differentiable(self.dtype):
            raise DTypeError(
                f"requires_grad_: a tensor of dtype {self.dtype} has no gradient; "
                "only floating and complex tensors do"
            )
        if node is None and not requires_grad:
            return self
        cell, flags = (None, 0) if node is None else (node.cell, node.flags)
        if requires_grad != bool(flags & GRAD):
            requires_grad_changes[0] += 1
        self.node = Node(None, (), flags | GRAD if requires_grad else flags & ~GRAD, self.raw)
        if self.storage is not None:
            self.node.stamp = (self.storage, self.storage.version)
        self.node.cell = cell or (GradCell() if requires_grad else None)
        if self.node.cell is not None:
            self.node.cell.frozen = not requires_grad
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` has accumulated, or None."""
        cell = None if self.node is None else self.node.cell
        if active_recorders and cell is not None and is_recording():
            local.recorder.on_grad_access(cell)
        if cell is None or (cell.grad is None and not cell.retain):
            torch = sys.modules.get("lucid.compat.torch")  # files that import it have its warning
            if torch is not None and not self.is_leaf:
                torch.warn_grad_of_result()
        return None if cell is None else cell.grad

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is None and not active_recorders:  # as every step does
            node = self.node
            if node is not None and node.op is None and node.cell is not None:
                node.cell.grad = None
                return
        if value is not None:
            value = as_tensor(value)
            if value.shape != self.shape:
                raise ShapeError(f"grad: shape {value.shape} for a tensor of shape {self.shape}")
        elif self.node is None or self.node.cell is None:
            if not (is_recording() and self.requires_grad):
                return
        cell = self.cell()
        if is_recording():
            local.recorder.on_grad_access(cell, assigns=True, clears=value is None)
        cell.grad = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def cell(self) -> GradCell:
        """Return the GradCell of this value, created if it has none."""
        node = node_of(self)
        if node.cell is None:
            node.cell = GradCell()
        return node.cell

    # Copies

    def __copy__(self) -> Tensor:
        """Return a tensor with the same memory and history; the copy of a leaf is a leaf."""
        if self.requires_grad and self.is_leaf:
            return self.detach().requires_grad_(True)
        return self[...] if self.ndim else self.reshape(())

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """Return a leaf with its own memory and a copy of the gradient."""
        if not self.is_leaf:
            raise GraphError(
                "deepcopy: this tensor is the result of an operation, and graphs cannot be copied; "
                "detach() it first"
            )
        copied = memo[id(self)] = wrap(self.array("deepcopy").copy(order="K"))
        if self.requires_grad:
            copied.requires_grad_(True)
        if self.grad is not None:
            copied.grad = deepcopy(self.grad, memo)
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        return transport.reduce_tensor(self)

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

        `gradient` is the cotangent of this tensor, ones by default, which differentiates its sum.
        """
        torch = sys.modules.get("lucid.compat.torch")  # files that import it have PyTorch's rule
        if torch is not None and gradient is None and math.prod(self.shape) != 1:
            torch.check_backward(self)
        seeds = None if gradient is None else [gradient]
        run = _backward or _load_backward()
        run(self, seeds, retain_graph, create_graph, inputs, keep_grad)

    def retain_grad(self) -> None:
        """Keep the gradient of this intermediate result in `.grad`."""
        if self.requires_grad and not self.is_leaf:
            self.cell().retain = True

    @property
    def retains_grad(self) -> bool:
        """True after `retain_grad()`: the gradient of this result is kept in `.grad`."""
        return self.node is not None and self.node.cell is not None and self.node.cell.retain

    @property
    def keep_grad(self) -> bool:
        """True if the gradient is kept: for a leaf made with keep_grad=True, and its results."""
        if self.retains_grad or not GradCell.any_keep or not self.requires_grad:
            return self.retains_grad
        leaves = [x for node in ancestors([node_of(self)]) for x in node.inputs]
        return any(x.cell is not None and x.cell.keep for x in [node_of(self), *leaves]
                   if isinstance(x, Node))  # fmt: skip

    def register_hook(self, hook: Any) -> HookHandle:
        """Call `hook(grad)` or `hook(tensor, grad)` when backward reaches this tensor.

        A tensor returned by the hook replaces the gradient. Call `remove()` of the handle to stop.
        """
        if not self.requires_grad:
            raise GraphError("register_hook: this tensor does not require a gradient")
        return hook_handles.HookHandle(self.cell().hooks, hook_handles.adapt_hook(self, hook))

    def register_post_accumulate_grad_hook(self, hook: Any) -> HookHandle:
        """Call `hook(tensor)` after backward has added to `.grad` of this leaf."""
        if not (self.requires_grad and self.is_leaf):
            raise GraphError(
                "register_post_accumulate_grad_hook: only for leaves that require grad"
            )
        tensor_ref = weakref.ref(self)
        handle = hook_handles.HookHandle
        return handle(self.cell().post_accumulate_hooks, lambda _: hook(tensor_ref()))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradient to None, or to zeros in its own memory."""
        if flag("zero_grad", "set_to_none", set_to_none) or (grad := self.grad) is None:
            self.grad = None
        elif grad.requires_grad:
            self.grad = wrap(np.zeros(self.shape, self.dtype))
        else:
            grad.zero_()

    @property
    def grad_fn(self) -> Any:
        """The operation that computed this tensor, an `autograd.graph.Node`; None for a leaf."""
        if self.is_leaf:
            return None
        from lucid.autograd.graph import Node as GraphNode

        return GraphNode.of(self.node)

    # History

    def detach(self) -> Tensor:
        """Return a tensor with the same memory and no history: a constant for `backward`."""
        traced = active_recorders or (self.node is not None and self.node.flags & TRACE)
        if traced or self.raw is None:
            return bind(STOP_GRADIENT, self)
        out = wrap(self.raw)  # the same, with less Python
        link(out, STOP_GRADIENT, self)
        return out

    @property
    def data(self) -> Tensor:
        """The value without history, in the same memory; assigning replaces the memory."""
        return self.detach()

    @data.setter
    def data(self, new: Any) -> None:
        new = as_tensor(new).detach()
        if new.type != self.type:
            raise ShapeError(f"data: a tensor of type {new.type} for one of type {self.type}")
        if new.value is self.value:
            return
        node = self.node
        self.value, self.storage, self.origin = new.value, new.storage, None
        if node is not None:
            self.node = node_after_write(node, self.value)
            if self.storage is not None:
                self.node.stamp = (self.storage, self.storage.version)

    @property
    def _version(self) -> int:
        """The number of in-place writes to the memory of this tensor."""
        return getattr(self, "writes", 0) if self.storage is None else self.storage.version

    def graph(self) -> Graph:
        """Return the Graph that computed this tensor from its leaves.

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
        return inline_regions(cut_nodes(ordered, [end]).graph("tensor"))

    @accepts_device
    def to(
        self,
        *args: Any,
        dtype: Any = None,
        other: Any = None,
        non_blocking: bool = False,
        copy: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        """Return this tensor with another dtype, or with the dtype of another tensor."""
        args = args if other is None else (*args, other)
        flags = [arg for arg in args if isinstance(arg, bool)]  # non_blocking, copy
        copy = flag("to", "copy", copy) or (len(flags) > 1 and flags[1])
        for arg in args:
            if is_device(arg):
                check_device("to", arg)
            elif not isinstance(arg, bool):
                dtype = arg.dtype if isinstance(arg, Tensor) else arg
        out = self if dtype is None else cast(self, dtype)
        return out.clone() if copy and out is self else out

    def type_as(self, other: Tensor) -> Tensor:
        """Return this tensor with the dtype of `other`."""
        return cast(self, as_tensor(other).dtype)


set_class(Tensor)


@public()
@accepts_device
def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a new tensor with a copy of `data`; Python floats get the default dtype.

    Gradients flow to tensors in `data`.

    >>> import lucid
    >>> lucid.tensor([[1, 2], [3, 4]])
    Tensor([[1, 2],
            [3, 4]])
    >>> lucid.func.grad(lambda x: (lucid.tensor([x, 2 * x]) ** 2).sum())(lucid.tensor(3.0))
    Tensor(30.)
    """
    return Tensor(data, requires_grad, dtype=dtype)
