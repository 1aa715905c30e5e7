"""lucid.autograd.graph: the tape as PyTorch shows it, one Node for each operation."""

from __future__ import annotations

from typing import Any

from lucid.errors import GraphError
from lucid.public.declare import public
from lucid.public.lazy import attach
from lucid.tape import node as tape
from lucid.tape.node import GRAD, GradCell
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
        return tuple([
            (Node(x), x.index) if isinstance(x, tape.Node) and x.flags & GRAD else (None, 0)
            for x in self.node.inputs
        ])  # fmt: skip

    def register_prehook(self, fn: Any) -> HookHandle:
        """Call `fn((grad_output,))` before the operation is differentiated.

        A tuple that it returns replaces the gradient.
        """
        if self.node.outs is not None:
            facts = f"{self.name()} has several results"
            raise GraphError(f"register_prehook: {facts}; register a hook on each of them")
        if self.node.cell is None:
            self.node.cell = GradCell()

        def hook(grad: Any, _: Any) -> Any:
            found = fn((grad,))
            return found[0] if isinstance(found, tuple) else found

        return HookHandle(self.node.cell.hooks, hook)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Node) and self.node.serial == other.node.serial

    def __hash__(self) -> int:
        return hash(self.node.serial)

    def __repr__(self) -> str:
        return f"<Node {self.name()}>"


_, __dir__, __all__ = attach(__name__)
