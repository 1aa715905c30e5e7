"""Recorder: watches one real run of a function, so that the run can be repeated without Python.

While it is active every operation is put on the tape. The recorder notes which tensors from outside
were read (they become inputs), which were written (they become outputs that are written back),
which gradients changed, and which values Python looked at (they become guards).
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

from lucid.tape.markers import STOP_GRADIENT
from lucid.tape.modes import local
from lucid.tape.node import GRAD, Node, next_serial, recording

watched: dict[type, Any] = {}  # classes, and their __getattribute__ while a Recorder is active
changes = [0]  # how often an attribute of an object of these classes was set
_active, _switch = [0], Lock()


def watch(cls: type, look: Any) -> None:
    """Let `look` be the __getattribute__ of a class while a Recorder is active, now if one is."""
    with _switch:
        watched[cls] = look
        if _active[0]:
            cls.__getattribute__ = look  # type: ignore[method-assign]


def look_at_attributes(change: int) -> None:
    """Let the watched classes tell what is read of them, from the first Recorder to the last."""
    with _switch:
        _active[0] += change
        for cls, look in watched.items():
            if change > 0 and _active[0] == 1:
                cls.__getattribute__ = look  # type: ignore[method-assign]
            elif not _active[0]:
                del cls.__getattribute__


class Guard:
    """A value that Python looked at: the run is only good for later ones where it is the same."""

    __slots__ = ("expected", "node", "source", "what")

    def __init__(self, node: Node, expected: np.ndarray, what: str, source: Any) -> None:
        self.node = node
        self.expected = expected
        self.what = what
        self.source = source


class Recorder:
    """What one recorded run touched.

    captured     Node -> tensor from outside that was read
    constants    Node -> array that was made during the run
    written      id -> (tensor from outside that was written, its Node before)
    before       id -> its value before: of integers, and of all if the run is to be taken back
    cells        id -> (cell, its gradient before)
    guards       values that Python looked at
    values       id -> (Node, array) of every value seen
    entries      (id, name) -> (dictionary, name, value) of Python state that decided what was run
    counts       those of the entries that never have an earlier value again
    attributes   (id, name) -> (object, name, key, how a value gives it) of what was read of objects
    locks        held while a run is repeated: of state that several threads may change at once
    """

    def __init__(self, reversible: bool = False) -> None:
        self.start = next_serial()
        self.reversible = reversible
        self.before: dict[int, np.ndarray] = {}
        self.inputs: set[Node] = set()
        self.captured: dict[Node, Any] = {}
        self.constants: dict[Node, np.ndarray] = {}
        self.written: dict[int, tuple[Any, Node | None]] = {}
        self.cells: dict[int, tuple[Any, Any]] = {}
        self.grads: dict[int, Any] = {}
        self.guards: list[Guard] = []
        self.values: dict[int, tuple[Node, np.ndarray]] = {}
        self.entries: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = {}
        self.counts: list[tuple[dict[str, Any], str, Any]] = []
        self.attributes: dict[tuple[int, str], tuple[Any, str, Any, Callable[[Any], Any]]] = {}
        self.locks: dict[int, Any] = {}

    def __enter__(self) -> Recorder:
        self.outer = local.recorder
        local.recorder = self
        recording[0] += 1
        look_at_attributes(+1)
        return self

    def __exit__(self, *_: Any) -> None:
        look_at_attributes(-1)
        recording[0] -= 1
        local.recorder = self.outer

    def is_outside(self, node: Node | None) -> bool:
        """Was the tensor with this Node there before the run?"""
        if node is None or node in self.captured:
            return True
        if node in self.inputs or node in self.constants:
            return False
        return node.serial < self.start or node.op is None

    def read(self, node: Node, x: Any) -> None:
        """An operation reads the tensor `x`."""
        if x.value is not None:
            self.made(node, x.value)
        if node not in self.captured and self.is_outside(node):
            self.captured[node] = x

    def made(self, node: Node, value: np.ndarray) -> None:
        """An operation gave `value`."""
        self.values[id(value)] = (node, value)

    def born(self, value: np.ndarray) -> Node:
        """The Node of a tensor made from an array during the run: a constant of it.

        An array that is the value of a recorded tensor is no constant: the new tensor is that one,
        detached.
        """
        known = self.values.get(id(value))
        if known is not None:
            return Node(STOP_GRADIENT, (known[0],), known[0].flags & ~GRAD, value)
        node = Node(None, (), 0, value)
        self.constants[node] = value.copy()
        self.made(node, value)
        return node

    def wrote(self, x: Any) -> None:
        """The tensor `x` is about to be written."""
        if id(x) not in self.written and self.is_outside(x.node):
            self.written[id(x)] = (x, x.node)
            if x.value is not None and (self.reversible or self.is_state(x)):
                self.before[id(x)] = x.value.copy()

    def is_state(self, x: Any) -> bool:
        """Is a write to `x` no step of an optimizer, so that outputs may have a derivative?"""
        if x.value.dtype.kind in "biu":
            return True
        return not self.cells and not (x.node is not None and x.node.flags & GRAD)

    def touched(self, cell: Any) -> None:
        """The gradient in `cell` is read or about to change."""
        if id(cell) not in self.cells:
            self.cells[id(cell)] = (cell, cell.grad)
            if cell.grad is not None:
                self.grads[id(cell.grad)] = cell

    def take_back(self) -> None:
        """Give all that the run has written the value it had before."""
        assert self.reversible
        for x, _ in self.written.values():
            if id(x) in self.before:
                x.value[...] = self.before[id(x)]
        for cell, grad in self.cells.values():
            cell.grad = grad

    def hold(self, lock: Any) -> None:
        """Whoever repeats this run must hold `lock`."""
        self.locks[id(lock)] = lock

    def depends(self, state: dict[str, Any], name: str, comes_again: bool = True) -> None:
        """What is run depends on an entry of a dictionary: an attribute of a Python object, say.

        comes_again    may it have this value again after it had another? A count has not
        """
        key = (id(state), name)
        if key not in self.entries:
            self.entries[key] = (state, name, state.get(name))
            if not comes_again:
                self.counts.append(self.entries[key])

    def depends_on_attribute(self, x: Any, name: str, key: Callable[[Any], Any]) -> None:
        """What is run depends on an attribute of `x`: on what `key` makes of it."""
        place = (id(x), name)
        if place not in self.attributes:
            self.attributes[place] = (x, name, key(x.__dict__[name]), key)

    def kept_attributes(self) -> list[tuple[Any, str, Any, Callable[[Any], Any]]]:
        """The attributes that the run has read and has not itself changed."""
        return [read for read in self.attributes.values() if is_as_read(*read)]

    def looked(self, x: Any, what: str, source: Any) -> None:
        """Python looks at the value of `x`."""
        node = x.node
        if node is None or node in self.constants:
            return
        self.guards.append(Guard(node, np.array(x.value), what, source))


def is_as_read(x: Any, name: str, expected: Any, key: Callable[[Any], Any]) -> bool:
    """Has an attribute the value that a recorded run has read?"""
    return name in x.__dict__ and key(x.__dict__[name]) == expected


class Unrecorded:
    """A block whose operations belong to no recorded run: what it makes was there before."""

    def __enter__(self) -> None:
        self.recorder = local.recorder
        if self.recorder is not None:
            local.recorder = None
            recording[0] -= 1

    def __exit__(self, *_: Any) -> None:
        if self.recorder is not None:
            local.recorder = self.recorder
            recording[0] += 1
