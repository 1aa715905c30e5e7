"""lucid.autograd.graph: the tape as PyTorch shows it, one Node for each operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from threading import get_ident
from typing import Any, ClassVar, NamedTuple

from lucid.autograd.watch import state_owner
from lucid.errors import ArgumentError, GraphError
from lucid.public.declare import public
from lucid.public.lazy import attach
from lucid.tape import node as tape
from lucid.tape.bind import sibling
from lucid.tape.markers import SAVED
from lucid.tape.node import GRAD, GradCell, NodeState, node_type, wrap
from lucid.tape.views import node_of
from lucid.tensors.hook_handles import HookHandle


@public("autograd.graph")
class Node:
    """The operation that computed a tensor: `tensor.grad_fn`, and `next_functions` from there.

    Two Nodes are equal if they are the same operation.

    >>> import lucid
    >>> x = lucid.tensor(3.0, requires_grad=True)
    >>> y = (x * x).exp()
    >>> y.grad_fn.name(), [fn.name() for fn, _ in y.grad_fn.next_functions]
    ('exp', ['mul'])
    """

    __slots__ = ("node",)

    def __init__(self, node: tape.Node) -> None:
        self.node = node

    @classmethod
    def of(cls, node: tape.Node) -> Node:
        """Return the operation that made a value, not the one that packed it."""
        while node.op is SAVED:
            node = node.inputs[0]
        return cls(node)

    @property
    def op(self) -> Any:
        """The primitive, None for a leaf."""
        return self.node.op

    def name(self) -> str:
        """Return the name of the primitive, "AccumulateGrad" for a leaf."""
        return "AccumulateGrad" if self.op is None else self.op.name

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """For each operand, its Node and which of the results it is; None if it is constant."""
        found = [
            Node.of(x) if isinstance(x, tape.Node) and x.flags & GRAD else None
            for x in self.node.inputs
        ]
        return tuple([(fn, 0 if fn is None else fn.node.index) for fn in found])

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for whatever you want to attach to this operation."""
        return self._state().metadata

    def register_hook(self, fn: Callable[..., Any]) -> HookHandle:
        """Call `fn(grad_inputs, grad_outputs)` after the operation is differentiated.

        Both are tuples, with None where there is no gradient; a tuple that `fn` returns replaces
        the first. A leaf calls `fn((), (grad,))` once `grad` was added to its `.grad`.

        >>> import lucid
        >>> x = lucid.tensor(3.0, requires_grad=True)
        >>> y = x.exp()
        >>> handle = y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 0.0,))
        >>> y.backward()
        >>> x.grad
        Tensor(0.)
        """
        NodeState.any_hooks = True
        return HookHandle(self._state().hooks, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> HookHandle:
        """Call `fn(grad_outputs)` before the operation is differentiated.

        A tuple that it returns replaces the gradients.
        """
        NodeState.any_hooks = True
        return HookHandle(self._state().prehooks, fn)

    def _state(self) -> NodeState:
        if self.op is None and self.node.cell is None:
            self.node.cell = GradCell()
        owner = state_owner(self.node)
        state = getattr(owner, "state", None)
        if state is None:
            state = owner.state = NodeState()
        return state

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Node) and self.node.serial == other.node.serial

    def __hash__(self) -> int:
        return hash(self.node.serial)

    def __repr__(self) -> str:
        return f"<Node {self.name()}>"


@public("autograd.graph")
class GradientEdge(NamedTuple):
    """A value on the tape: result `output_nr` of `node`. `grad` and `backward` take it as a tensor.

    It keeps the tape alive and not the value.
    """

    node: Node
    output_nr: int

    def tensor(self) -> Any:
        """Return the value as a tensor that has a type and a history."""
        node = self.node.node
        if node.index != self.output_nr:
            node = sibling(node, self.output_nr)
        node.type = node_type(node)
        return wrap(None, node)


@public("autograd.graph")
def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Return the place of a tensor on the tape.

    >>> import lucid
    >>> x = lucid.tensor(3.0, requires_grad=True)
    >>> y = x * x
    >>> edge, z = lucid.autograd.graph.get_gradient_edge(y), y.exp()
    >>> lucid.autograd.grad(z.log(), edge)
    Tensor(1.)
    """
    if not tensor.requires_grad:
        raise GraphError("get_gradient_edge: this tensor does not require a gradient")
    fn = Node.of(node_of(tensor))
    return GradientEdge(fn, fn.node.index)


def without_edges(tensors: Iterable[Any]) -> list[Any]:
    """Return tensors, those that are given as a GradientEdge without their values."""
    return [x.tensor() if x.__class__ is GradientEdge else x for x in tensors]


class GradientPass:
    """What hooks of several tensors have seen in one backward pass.

    seen    hook -> the gradients of its tensors
    """

    registered = 0  # how many hooks of several tensors there are
    active: ClassVar[dict[int, list[GradientPass]]] = {}  # by thread, innermost last

    def __init__(self) -> None:
        self.seen: dict[MultiGradHook, list[Any]] = {}

    def __enter__(self) -> GradientPass:
        self.active.setdefault(get_ident(), []).append(self)
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        stack = self.active[get_ident()]
        stack.pop()
        if not stack:
            del self.active[get_ident()]
        if kind is None:
            for hook, grads in self.seen.items():
                if hook.mode == "all":
                    hook.fn(grads)


def gradient_pass() -> Any:
    """Return a context for one backward pass, in which hooks of several tensors are called."""
    return GradientPass() if GradientPass.registered else nullcontext()


class MultiGradHook:
    """One function for the gradients of several tensors, whose hooks alone hold it."""

    def __init__(self, n: int, fn: Callable[..., Any], mode: str) -> None:
        self.n, self.fn, self.mode = n, fn, mode
        GradientPass.registered += 1

    def __del__(self) -> None:
        GradientPass.registered -= 1

    def receive(self, number: int, g: Any) -> None:
        """Take the gradient of a tensor; none is changed."""
        seen = GradientPass.active[get_ident()][-1].seen
        if self not in seen:
            seen[self] = [None] * self.n
            if self.mode == "any":
                self.fn(g)
        seen[self][number] = g


class MultiHookHandle:
    """Removes the hooks of several tensors with `remove()`, or at the end of a `with` block."""

    def __init__(self, handles: Sequence[HookHandle]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    __call__ = remove

    def __enter__(self) -> MultiHookHandle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()


@public("autograd.graph")
def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[..., Any], *, mode: str = "all"
) -> MultiHookHandle:
    """Call `fn` once in each backward pass that reaches some of the tensors.

    mode    "all": `fn(grads)` at the end of the pass, with None for tensors it did not reach;
            "any": `fn(grad)` with the first gradient that is computed

    >>> import lucid
    >>> x, y = (lucid.tensor(v, requires_grad=True) for v in (2.0, 3.0))
    >>> handle = lucid.autograd.graph.register_multi_grad_hook([x, y], print)
    >>> (x * y).backward()
    [Tensor(3.), Tensor(2.)]
    """
    if mode not in ("all", "any"):
        raise ArgumentError(f"register_multi_grad_hook: mode is {mode!r}, not 'all' or 'any'")
    xs = list(tensors)
    shared = MultiGradHook(len(xs), fn, mode)
    return MultiHookHandle([x.register_hook(partial(shared.receive, i)) for i, x in enumerate(xs)])


__getattr__, __dir__, __all__ = attach(__name__)
