"""saved_tensors_hooks: what the tape keeps for derivatives is packed by Python code, and unpacked.

An operation that is recorded under such hooks has its own copies of the values that its derivative
reads: operands `saved x` whose Nodes hold a Packed instead of an array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lucid.autograd.modes import Grad, Mode
from lucid.errors import ArgumentError, DTypeError, GraphError, LucidError, ShapeError
from lucid.ir.graph import Equation, Literal, Var
from lucid.ir.types import Type, is_differentiable
from lucid.ops.core.promote import get_default_dtype
from lucid.public.declare import public
from lucid.support.source import caller
from lucid.tape.markers import SAVED
from lucid.tape.modes import local
from lucid.tape.node import (
    GRAD,
    Node,
    Packed,
    Results,
    Storage,
    Traced,
    is_recording,
    next_serial,
    wrap,
)
from lucid.tape.views import node_of, owner_of, storage_of
from lucid.transforms.rule import rule_for


@public("autograd.graph")
class saved_tensors_hooks(Mode):
    """Pack the values that operations in this block save for `backward`, and unpack them there.

    pack      `pack(tensor)` is called when a value is saved; what it returns is kept instead
    unpack    `unpack(packed)` is called when a derivative reads it, and returns the tensor

    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0], requires_grad=True)
    >>> pack, unpack = lambda t: t.half(), lambda t: t.float()
    >>> with lucid.autograd.graph.saved_tensors_hooks(pack, unpack):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    Tensor([2., 4.])

    The innermost hooks are used. What `lucid.jit` compiles and what runs inside a transform of
    `func` saves nothing on this tape, so hooks do not see it.
    """

    def __init__(self, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]) -> None:
        super().__init__(saved_hooks=SavedHooks(pack_hook, unpack_hook))

    def __enter__(self) -> Mode:
        if local.refused_hooks is not None:
            raise GraphError(local.refused_hooks)
        if is_recording():
            raise GraphError(
                "saved_tensors_hooks: a function that lucid.jit records saves nothing that a hook "
                "could pack; enter the block outside of it"
            )
        return super().__enter__()


@public("autograd.graph")
class save_on_cpu:
    """Do nothing, in a `with` block: saved tensors are in the memory of the CPU as it is."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        pass

    def __enter__(self) -> save_on_cpu:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


@public("autograd.graph")
class disable_saved_tensors_hooks(Mode):
    """Make `saved_tensors_hooks` raise a GraphError with this message, in a `with` block."""

    def __init__(self, error_message: str) -> None:
        super().__init__(refused_hooks=error_message)

    def __enter__(self) -> Mode:
        if local.saved_hooks is not None:
            raise GraphError(self.modes["refused_hooks"])
        return super().__enter__()


class SavedHooks:
    """Records operations for `bind`, with packed values."""

    def __init__(self, pack: Callable[..., Any], unpack: Callable[..., Any]) -> None:
        if not (callable(pack) and callable(unpack)):
            raise ArgumentError("saved_tensors_hooks: expected two functions, pack and unpack")
        self.pack, self.unpack = pack, unpack

    def record(self, op: Any, xs: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        """Return the Nodes of the results of `op`, None for those that have no derivative."""
        reads_x, reads_y = read_by_derivative(op, xs, values)
        inputs = tuple([
            x if x.__class__ is Literal else self.operand(x, read) for x, read in zip(xs, reads_x)
        ])  # fmt: skip
        serial, source = next_serial(), caller()
        saved = [self.packed(wrap(y)) if read else None for y, read in zip(values, reads_y)]
        types = [Type(y.dtype, y.shape) for y in values]
        outs = Results([(y, Storage()) for y in saved]) if len(values) > 1 else None
        nodes: list[Any] = [None] * len(values)
        for i, (type, packed) in enumerate(zip(types, saved)):
            if is_differentiable(type.dtype):
                node = Node(op, inputs, GRAD, packed, type, source, serial, i)
                if outs is not None:
                    node.outs = outs
                if packed is not None:  # what saves this result again does so in a Node of its own
                    node = Node(SAVED, (node,), GRAD, None, type, source)
                nodes[i] = node
        return nodes

    def operand(self, x: Any, read: bool) -> Node:
        """Return the Node of an operand, with a packed value if the derivative reads it."""
        before = x.node
        if before is None:
            return Node(None, (), 0, self.packed(x) if read else None, x.type)
        saved = before.saved
        node = node_of(x)
        node.saved = saved if node is before else None
        node.type = x.type
        return self.saved_node(node, x) if read else node

    def saved_node(self, node: Node, x: Any) -> Node:
        """Return a Node whose value is that of `x`, packed, and whose history is that of `node`."""
        packed = self.packed(x)
        out = Node(SAVED if node.flags else None, (node,) if node.flags else (), node.flags, packed)
        out.type = node.type
        mine = packed.packed
        if isinstance(mine, Traced) and owner_of(mine.value) is owner_of(x.value):
            out.stamp = (storage_of(x), storage_of(x).version)
        return out

    def packed(self, x: Any) -> Packed:
        """Return the value of a tensor after `pack`."""
        with Grad(False), Mode(saved_hooks=None):
            return Packed(x.value, self, self.pack(wrap(x.value)))

    def unpack_array(self, packed: Packed) -> np.ndarray:
        """Return the array that `unpack` makes of what `pack` has returned."""
        with Grad(False), Mode(saved_hooks=None):
            found = self.unpack(packed.packed)
        if not isinstance(found, Traced):
            facts = f"unpack returned a {type(found).__name__}"
            raise ArgumentError(f"saved_tensors_hooks: {facts}, not a tensor")
        if found.shape != packed.shape:
            facts = f"unpack returned shape {found.shape}, {packed.shape} was packed"
            raise ShapeError(f"saved_tensors_hooks: {facts}")
        if found.dtype != packed.dtype:
            facts = f"unpack returned dtype {found.dtype}, {packed.dtype} was packed"
            raise DTypeError(f"saved_tensors_hooks: {facts}")
        return found.value


def read_by_derivative(
    op: Any, xs: Sequence[Any], values: Sequence[Any]
) -> tuple[list[bool], list[bool]]:
    """Return which operands and which results the derivative of `op` reads."""
    wanted = [x.__class__ is not Literal and bool(x.node and x.node.flags & GRAD) for x in xs]
    if op.single_use:
        return [op.saves_x] * len(xs), [op.saves_y] * len(values)
    inputs = [x if x.__class__ is Literal else Var(x.type) for x in xs]
    outputs = [Var(Type(y.dtype, y.shape)) for y in values]
    seeded = [is_differentiable(y.dtype) for y in values]
    eqn = Equation(op, tuple(inputs), tuple(outputs), None)
    try:
        rule = rule_for("vjp", eqn, tuple(seeded), tuple(wanted), get_default_dtype())
    except LucidError:  # `backward` raises it, if that gets here
        return [op.saves_x] * len(xs), [op.saves_y] * len(values)
    read = {ref for _, refs, _ in rule.steps for ref in refs if ref.__class__ is int}
    read.update([ref for ref in rule.results if ref is not None])
    n = len(xs)
    return [i in read for i in range(n)], [n + i in read for i in range(len(values))]
