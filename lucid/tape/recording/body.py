"""BodyRecorder: records the trace of a body on abstract values, with the state that it writes.

A body (of a loop, a branch, vmap, a custom rule) runs once on abstract values, while the program it
becomes runs any number of times, or never. A write to a tensor from outside is therefore an effect
of that program: the tensor is *state*, an input of the body that stands for its value before, and
an output for its value after. A random draw writes the state of its Generator, so it is the same.

Which tensors are written is known only after a trace. `trace_state` traces again with those found,
until there are no more. Meanwhile outside tensors that are state hold abstract values; they are
restored at the end of each trace, whatever happens in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lucid.errors import GraphError
from lucid.ir.graph import Graph
from lucid.ir.types import is_differentiable
from lucid.support.locks import state_lock
from lucid.support.source import at_line, caller
from lucid.tape.cut import Cut, cut_since
from lucid.tape.modes import current, local
from lucid.tape.node import GRAD, TRACE, Node, Trace, active_recorders, as_source, leaf, wrap
from lucid.tape.recording.pending import PendingRun
from lucid.tape.recording.recorder import Recorder
from lucid.tape.views import node_of, tensor_of
from lucid.tape.writes import rederive_views

T = TypeVar("T")


class State(NamedTuple):
    """An outside tensor that a body writes.

    detached    whether no derivative flows through the writes
    locks       locks to hold from reading the state to writing it back
    """

    tensor: Any
    detached: bool
    locks: tuple[Any, ...] = ()


class BodyRecorder(Recorder):
    """Records a trace of a body on abstract values.

    what        the body, for errors
    trace       the Trace of its abstract values
    state       tensors from outside that it writes
    inside      the inputs that stand for them
    writes      id of a state -> whether no derivative flows through the writes to it
    refused     why this body must not write to outside tensors; "" if it may
    """

    def __init__(self, what: str, state: Sequence[State] = (), refused: str = "") -> None:
        super().__init__()
        self.what = what
        self.refused = refused
        self.given = state
        self.state: list[Any] = []
        self.inside: list[Any] = []
        self.writes: dict[int, bool] = {}
        self.write_sources: dict[int, Any] = {}
        self.trace = Trace(what, depth=trace_depth() + 1)
        self.trace.effects = self.effects
        self._before: list[tuple[Any, Any, Any]] = []
        self._grad_sources: list[Any] = []

    watches_attributes = False

    def __enter__(self) -> BodyRecorder:
        super().__enter__()
        return self

    def __exit__(self, error: Any = None, *_: Any) -> None:
        self.end()
        if self.cells:
            self.restore_gradients(error is None)

    def begin(self) -> None:
        self.outer, self.modes = local.recorder, current()
        self.pending = PendingRun(defers=False) if self.outer is None else self.outer.pending
        active_recorders.append(self)
        local.recorder = self
        for lock in [lock for s in self.given for lock in s.locks]:
            self.add_lock(lock)
        for s in self.given:
            self.make_abstract(s.tensor)

    def end(self) -> None:
        self.trace.active = False
        super().end()

    def detach_state(self) -> None:
        """Give outside tensors the values they had before the trace."""
        while self._before:
            x, value, node = self._before[-1]
            x.raw, x.node = value, node
            if x.storage is not None and x.node is not None and x.node.stamp is None:
                x.node.stamp = (x.storage, x.storage.version)  # a view was made during the trace
            self._before.pop()

    def input(self, type: Any) -> Any:
        """Return an abstract input of the body."""
        flags = TRACE | (GRAD if is_differentiable(type.dtype) else 0)
        x = leaf(type, self.trace, flags)
        self.inputs.add(x.node)
        return x

    def lend(self, x: Any) -> Any:
        """Return an input of the body as a tensor that the body may write."""
        x.node.is_state = True
        tensor = wrap(None, x.node)
        self.lent[id(tensor)] = tensor
        return tensor

    def written_arguments(self, given: Sequence[Any]) -> dict[int, bool]:
        """Return which arguments are written, and whether no derivative flows through that."""
        lent = [(i, id(x)) for i, x in enumerate(given) if id(x) in self.lent]
        return {i: self.writes[key] for i, key in lent if key in self.writes}

    # Reads of what is outside

    def cut(
        self, inputs: Sequence[Any], outputs: Sequence[Any], name: str, names: Sequence[str] = (),
        with_state: bool = True,
    ) -> tuple[Graph, list[Any]]:  # fmt: skip
        """Return the Graph of what was traced so far, and the tensors that it captures.

        The Graph takes the inputs, the state and the captured tensors, and returns the outputs and,
        unless `with_state` is False, the state after it.
        """
        section, captured = self.section(inputs, outputs, with_state)
        return section.graph(name, names), captured

    def section(
        self, inputs: Sequence[Any], outputs: Sequence[Any], with_state: bool = True
    ) -> tuple[Cut, list[Any]]:
        """`cut` without building the Graph."""
        ends = [*outputs, *self.final_state()] if with_state else outputs
        starts = [x.node for x in (*inputs, *self.inside)]
        section = cut_since(starts, [node_of(y) for y in ends], self.start, self.effects)
        return section, [self.tensor_of(section.slots[slot]) for slot in section.captured]

    def tensor_of(self, node: Node) -> Any:
        """Return the tensor that the body has captured with this Node."""
        if node in self.captured:
            return self.captured[node]
        return wrap(self.constants[node], node) if node in self.constants else tensor_of(node)

    def on_read(self, node: Node, x: Any) -> None:
        super().on_read(node, x)
        if self.outer is not None and node in self.captured:
            self.outer.on_read(node, x)

    def add_owner(self, x: Any) -> None:
        """The outer recording, if any, notes who uses memory."""

    def on_create(self, value: np.ndarray) -> Node:
        if self.outer is None:
            return super().on_create(value)
        node = self.outer.on_create(value)
        if node.op is None:
            self.constants[node] = value.copy()
        self.on_result(node, value)
        return node

    def on_value_read(self, x: Any, what: str, source: Any) -> np.ndarray:
        return x.value if self.outer is None else self.outer.on_value_read(x, what, source)

    def guard_entry(self, state: dict[str, Any], name: str, can_recur: bool = True) -> None:
        if self.outer is not None:
            self.outer.guard_entry(state, name, can_recur)

    def guard_attribute(self, x: Any, name: str, key: Callable[[Any], Any]) -> None:
        if self.outer is not None:
            self.outer.guard_attribute(x, name, key)

    def add_lock(self, lock: Any) -> None:
        super().add_lock(lock)
        if self.outer is not None:
            self.outer.add_lock(lock)

    # Writes to what is outside

    def on_write(self, x: Any) -> None:
        """Make the outside tensor that `x` is or views a state of the body."""
        root, detached = x, not local.grad
        while root.origin is not None:
            root, _, severed = root.origin
            detached = detached or severed
        if id(root) not in self.lent and all(root is not s for s in self.state):
            if not self.is_external(root.node):
                return
            if self.refused:
                raise GraphError(
                    f"{self.what}: a tensor from outside, {root.type}, is written; "
                    f"{self.refused}{at_line()}"
                )
            self.make_abstract(root)
        self.writes[id(root)] = detached and self.writes.get(id(root), True)
        self.write_sources.setdefault(id(root), caller())

    def make_abstract(self, root: Any) -> None:
        """Let an outside tensor and its views hold abstract values until the trace ends."""
        self.hold_lock(state_lock())
        views = [] if root.storage is None else root.storage.live()
        for x in (root, *views):
            self._before.append((x, x.raw, x.node))
        inside = self.input(root.type)
        inside.node.is_state = True
        self.state.append(root)
        self.inside.append(inside)
        root.raw, root.node = None, inside.node
        if views:
            rederive_views(root.storage, {id(root)})

    def values_before(self) -> list[Any]:
        """Return the state as it was before the body, while the body is being traced."""
        roots = {id(x): (value, node) for x, value, node in reversed(self._before)}
        return [wrap(*roots[id(x)]) for x in self.state]

    def found_state(self) -> list[State]:
        locks = tuple(self.locks.values())
        return [State(x, self.writes.get(id(x), True), locks) for x in self.state]

    def final_state(self) -> list[Any]:
        """Return the values of the state at the end of the body."""
        return [wrap(None, node_of(x)) for x in self.state]

    def on_grad_access(self, cell: Any, assigns: bool = False, clears: bool = False) -> None:
        if id(cell) not in self.cells:
            super().on_grad_access(cell, assigns, clears)
            self._grad_sources.append(caller())
        if self.outer is not None:
            self.outer.on_grad_access(cell, assigns, clears)

    def keeps_gradient(self, cell: Any) -> bool:
        """A body may not change a gradient from outside, which `restore_gradients` notices."""
        return False

    def restore_gradients(self, complain: bool) -> None:
        """Restore `.grad` of outside tensors; raise an error if the body has changed one."""
        changed = None
        for (cell, before), source in zip(self.cells.values(), self._grad_sources):
            if cell.grad is not before:
                cell.grad, changed = before, source
        if complain and changed is not None:
            raise GraphError(
                f"{self.what}: .grad of a tensor from outside is changed inside it; use func.grad "
                f"there and return the gradient   [{as_source(changed)}]"
            )


def trace_depth() -> int:
    """Return how many bodies are being traced, one inside another."""
    inner = local.recorder
    while inner is not None and not isinstance(inner, BodyRecorder):
        inner = inner.outer
    return 0 if inner is None else inner.trace.depth


def trace_state(
    what: str, run: Callable[[BodyRecorder], T], refused: str = "", state: Sequence[State] = ()
) -> tuple[T, BodyRecorder]:
    """Return what `run` returns with a BodyRecorder that knows all the state the body writes."""
    while True:
        recorder = BodyRecorder(what, state, refused)
        try:
            with recorder:
                result = run(recorder)
        finally:
            recorder.end()
        if len(recorder.state) == len(state):
            return result, recorder
        state = recorder.found_state()
