"""Recorder: records one real run of a function, so that it can be repeated without Python.

While it is active every operation goes on the tape, and its result is pending: nothing is computed
until Python looks at a value. The recorder notes which external tensors were read (they become
inputs), which were written (they become outputs that are written back), which gradients changed,
and which values Python read (they become guards).

No memory is written meanwhile: a write gives a tensor another Node and a pending value. At the end
external tensors have their arrays back, and running the recorded program writes the new values.
If a tensor that is written shares memory with another one in a way that no view describes, all
that is pending is computed and written, and the rest of the run computes at once (`settle`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import get_ident
from typing import Any

import numpy as np

from lucid.support.locks import MAX_RECORDING_WAIT, new_lock, release, state_lock
from lucid.tape.markers import OVERWRITTEN, STOP_GRADIENT
from lucid.tape.modes import current, local, set_modes
from lucid.tape.node import GRAD, Node, active_recorders, next_serial, wrap
from lucid.tape.recording.guards import Guard
from lucid.tape.recording.pending import CannotWait, Pending, PendingRun
from lucid.tape.views import base_of, node_of, owner_of

_getters: dict[type, Any] = {}  # watched classes -> __getattribute__ while a Recorder is active
attribute_changes = [0]  # how often an attribute of an object of these classes was set
_lock = new_lock()


def watch_attributes(cls: type, getter: Any) -> None:
    """Make `getter` the __getattribute__ of a class while any Recorder is active."""
    _getters[cls] = getter
    update_getters()


def update_getters() -> None:
    """Install the getters while a Recorder is active, and remove them afterward."""
    with _lock:
        active = any([recorder.watches_attributes for recorder in active_recorders])
        for cls, getter in _getters.items():
            if active:
                cls.__getattribute__ = getter  # type: ignore[method-assign]
            elif "__getattribute__" in cls.__dict__:
                del cls.__getattribute__


def _end_recordings() -> None:
    """End, in a forked child, the recordings of the threads that do not exist there."""
    mine, recorder = [], local.recorder
    while recorder is not None:
        mine.append(recorder)
        recorder = recorder.outer
    for other in [recorder for recorder in active_recorders if recorder not in mine]:
        active_recorders.remove(other)
        other.detach_state()
    update_getters()


os.register_at_fork(after_in_child=_end_recordings)


def refuse_shared_elements(x: Any) -> None:
    """Raise an error for an argument with several elements in the same memory, which is written.

    In a recorded run each element has its own value.
    """
    from lucid.tape.writes import has_shared_elements, read_only_error, shared_elements_error

    view = x
    while view.origin is not None:
        view, op, _ = view.origin
        if op.name == "broadcast":
            raise read_only_error("jit")
    if has_shared_elements(x):
        raise shared_elements_error("jit")


class Recorder:
    """What one recorded run reads and writes.

    captured     Node -> external tensor that was read
    constants    Node -> array that was made during the run
    arguments    id -> index of a tensor that stands for an argument
    given        the arguments themselves, if it is the run of a jitted function
    lent         id -> argument of a body, which may write it as it may its state
    written      id -> (external tensor that was written, its Node before)
    views        id -> (tensor that shares the memory of one that was written, its Node before)
    overwritten  index -> tensor that stands for an argument, which was written
    writes_results    whether a tensor of the run itself was written: perhaps a copy of an argument
    states       ids of the external tensors whose write is ordinary state
    before       id -> its value before, of those if the run has settled
    originals    id -> (tensor, array, Node before) of those that are pending since a write
    cells        id -> (cell, its gradient before)
    assigned_grads, cleared_grads    ids of the cells that were first assigned, first set to None
    guards       values that Python read
    computed     (guard, value) of what compiled code has computed on the way to a failed guard
    values       id -> (Node, array or Pending) of every value seen
    pending      what is not computed yet; a recording inside another one has that of the outer one
    owners       id of the owner of memory -> the first tensor that uses it
    shared       owners that tensors use which are not views of each other
    effects      Nodes of ordered equations, in order
    entries      (id, name) -> (dictionary, name, value) of Python state the run depends on
    counters     the entries that never take an earlier value again
    attributes   (id, name) -> (object, name, expected key, key function) of attributes read
    locks        locks to hold while the run is repeated, of state shared between threads
    """

    def __init__(
        self, reversible: bool = False, computed: Sequence[tuple[Guard, np.ndarray]] = ()
    ) -> None:
        self.start = next_serial()
        self.reversible = reversible
        self.before: dict[int, np.ndarray] = {}
        self.inputs: set[Node] = set()
        self.arguments: dict[int, int] = {}
        self.given: Sequence[Any] = ()
        self.lent: dict[int, Any] = {}
        self.overwritten: dict[int, Any] = {}
        self.writes_results = False
        self.views: dict[int, tuple[Any, Node | None]] = {}
        self.captured: dict[Node, Any] = {}
        self.constants: dict[Node, np.ndarray] = {}
        self.written: dict[int, tuple[Any, Node | None]] = {}
        self.cells: dict[int, tuple[Any, Any]] = {}
        self.grads: dict[int, Any] = {}
        self.assigned_grads: set[int] = set()
        self.cleared_grads: set[int] = set()
        self.guards: list[Guard] = []
        self.computed = computed
        self.values: dict[int, tuple[Node, Any]] = {}
        self.pending = PendingRun()
        self.states: set[int] = set()
        self.originals: dict[int, tuple[Any, np.ndarray, Node | None]] = {}
        self.owners: dict[int, Any] = {}
        self.shared: set[int] = set()
        self.effects: list[Node] = []
        self.entries: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = {}
        self.counters: list[tuple[dict[str, Any], str, Any]] = []
        self.attributes: dict[tuple[int, str], tuple[Any, str, Any, Callable[[Any], Any]]] = {}
        self.locks: dict[int, Any] = {}
        self._held: list[Any] = []

    watches_attributes = True

    def __enter__(self) -> Recorder:
        self.begin()
        return self

    def __exit__(self, error: Any = None, *_: Any) -> None:
        if error is not None and error is not CannotWait:
            with suppress(CannotWait):
                self.settle(tape=False)  # what an eager program has done before an error stays done
        self.end()

    @property
    def defers(self) -> bool:
        """True while results are left pending."""
        return self.pending.defers

    def begin(self) -> None:
        self.hold_lock(state_lock(), MAX_RECORDING_WAIT)
        self.pending.recorded_by = get_ident()
        self.outer, self.modes = local.recorder, current()
        active_recorders.append(self)
        update_getters()
        local.recorder = self

    def end(self) -> None:
        """End the recording: detach what it has written from its tape, and restore the modes.

        An interrupt may keep a `with` statement from it or cut it short, so callers repeat it.
        """
        if self in active_recorders:
            set_modes(self.modes)
            self.detach_state()
            active_recorders.remove(self)
        if self.watches_attributes:
            update_getters()
        self.release_locks()

    def detach_state(self) -> None:
        """Detach the tensors that a recorded run has written from its tape.

        Those whose writes are pending have the values that they had before the run.
        """
        self.restore_arrays()
        for view, before in self.views.values():
            view.node = before
        for x, before in self.written.values():
            if before is None or not (before.flags or before.cell):
                x.node = None
            else:
                node = Node(None, (), before.flags, x.value)
                node.cell = before.cell
                x.node = node
            if x.storage is not None and x.node is not None:
                x.node.stamp = (x.storage, x.storage.version)
        for cell, grad in self.cells.values():
            if self.defers:
                cell.grad = grad
            elif cell.grad is not None and self.is_made(cell.grad):
                cell.grad = wrap(cell.grad.value)

    def is_made(self, x: Any) -> bool:
        """True for a tensor that was made during the run, False for one that it has read."""
        return id(x) not in self.grads and self.captured.get(x.node) is not x

    def is_external(self, node: Node | None) -> bool:
        """True if the tensor with this Node existed before the run."""
        if node is None or node in self.captured:
            return True
        if node in self.inputs or node in self.constants:
            return False
        if node.serial < self.start or node.op is None:
            return True
        # an unrecorded write before the run, which the tape learns of only now
        return node.op is OVERWRITTEN and node.inputs[1].op is None and not self.has(node.inputs[1])

    def has(self, node: Node) -> bool:
        """True if the run has read or made the value of this Node."""
        return node in self.captured or node in self.inputs or node in self.constants

    def on_read(self, node: Node, x: Any) -> None:
        """Record that an operation reads the tensor `x`."""
        if x.raw is not None:
            self.on_result(node, x.raw)
        if node not in self.captured and self.is_external(node):
            self.captured[node] = x
            self.add_owner(x)

    def on_result(self, node: Node, value: Any) -> None:
        """Record that an operation computed `value`."""
        self.values[id(value)] = (node, value)
        if self.defers:
            self.pending.add(node, value)

    def on_create(self, value: Any) -> Node:
        """Return the Node of a tensor made from an array during the run, a constant of the run.

        If the array is the value of a recorded tensor, the new tensor is that one, detached.
        """
        known = self.values.get(id(value))
        if known is not None or value.__class__ is Pending:
            node = value.node if known is None else known[0]
            if node in self.constants:
                return node
            if node.saved is None:
                node.saved = value  # a body may capture it
            return Node(STOP_GRADIENT, (node,), node.flags & ~GRAD, value)
        node = Node(None, (), 0, value)
        self.constants[node] = value.copy()
        self.on_result(node, value)
        return node

    def on_write(self, x: Any) -> None:
        """Record that the tensor `x` is about to be written."""
        index = self.arguments.get(id(x))
        if index is not None:
            if index not in self.overwritten:
                if self.given:
                    refuse_shared_elements(self.given[index])
                self.overwritten[index] = x
                self.states.add(id(x))
                self.keep_array(x)
        elif id(x) not in self.written and self.is_external(x.node):
            self.written[id(x)] = (x, x.node)
            for view in () if x.storage is None else x.storage.live():
                self.views.setdefault(id(view), (view, view.node))
            if x.raw is not None:
                if self.reversible or self.is_state(x):
                    self.states.add(id(x))
                self.add_owner(x)
                self.keep_array(x)
        elif id(x) not in self.written:
            self.writes_results = True

    def keep_array(self, x: Any) -> None:
        """Keep the array of an external tensor that is written for the first time.

        Its memory is written at the end, unless something else sees that memory.
        """
        if self.defers and id(owner_of(x.raw)) in self.shared:
            self.settle()
        if not self.defers:
            if id(x) in self.states:
                self.before[id(x)] = x.value.copy()
            return
        for view in (x, *(() if x.storage is None else x.storage.live())):
            if id(view) not in self.originals and view.raw.__class__ is not Pending:
                self.originals[id(view)] = (view, view.raw, view.node)

    def array_before(self, x: Any) -> np.ndarray:
        """Return the array of a tensor that the run has written."""
        return self.originals[id(x)][1] if id(x) in self.originals else x.value

    def add_owner(self, x: Any) -> None:
        """Note who uses the memory of an external tensor."""
        if not self.defers or not isinstance(x.raw, np.ndarray):
            return
        owner = id(owner_of(x.raw))
        other = self.owners.setdefault(owner, x)
        if other is not x and base_of(other) is not base_of(x):
            self.shared.add(owner)
            written = [array for _, array, _ in self.originals.values()]
            if any([id(owner_of(array)) == owner for array in written]):
                self.settle()

    def restore_arrays(self) -> None:
        """Give tensors whose writes are pending the arrays and the history from before."""
        while self.originals:
            _, (x, array, node) = self.originals.popitem()
            x.raw, x.node = array, node

    def settle(self, tape: bool = True) -> None:
        """Compute and write everything that is pending, and compute at once from now on.

        tape    whether what is only on the tape is computed too, because the run goes on
        """
        if not self.defers:
            return
        live = self.pending.live_tensors()
        self.pending.compute_all(tape)
        self.pending.defers = False
        written = [x for x, _ in self.written.values()] + list(self.overwritten.values())
        written = [x for x in written if id(x) in self.originals]
        for x in written:
            if id(x) in self.states:
                self.before[id(x)] = self.originals[id(x)][1].copy()
        for x in written:
            self.originals[id(x)][1][...] = x.value
        for x, array, _ in self.originals.values():
            x.raw = array
        self.originals.clear()
        for x in live:
            if x.origin is not None:
                x.raw = x.origin[1].eval(x.origin[0].value)

    def finish(self, outputs: Sequence[Any]) -> None:
        """Undo the writes, which are to be done by a program, and compute what else is held.

        Tensors of the run that are still alive are those that something outside it holds. The
        values in `outputs` are computed by the program.
        """
        self.detach_state()
        later = set(map(id, outputs))
        for x in self.pending.live_tensors():
            if id(x.raw) not in later:
                x.raw = x.value

    def is_state(self, x: Any) -> bool:
        """True if a write to `x` is ordinary state, not an optimizer update."""
        if x.dtype.kind in "biu":
            return True
        return not self.cells and not (x.node is not None and x.node.flags & GRAD)

    def on_grad_access(self, cell: Any, assigns: bool = False, clears: bool = False) -> None:
        """Record that the gradient in `cell` is read or about to change.

        One that is assigned first may be anything when a call begins, and one that is cleared
        first, as `zero_grad` does, need not be kept for it.
        """
        if id(cell) not in self.cells:
            self.cells[id(cell)] = (cell, cell.grad)
            if assigns:
                self.assigned_grads.add(id(cell))
            if clears:
                self.cleared_grads.add(id(cell))
            x = cell.grad
            if x is not None and not assigns and (id(x) in self.views or self.is_external(x.node)):
                self.grads[id(x)] = cell

    def keeps_gradient(self, cell: Any) -> bool:
        """True if backward adds to the gradient in `cell` in place, as one that is not recorded."""
        x = view = cell.grad
        while view.origin is not None:
            view, op, _ = view.origin
            if op.name == "broadcast" or op.may_overlap:
                return False
        return x.raw is not None and not (x.node is not None and x.node.flags & GRAD)

    def roll_back(self) -> None:
        """Restore the values of everything the run has written, if it has settled."""
        assert self.reversible
        for x in (*[x for x, _ in self.written.values()], *self.overwritten.values()):
            if id(x) in self.before:
                x.value[...] = self.before[id(x)]
        for cell, grad in self.cells.values():
            cell.grad = grad

    def add_lock(self, lock: Any) -> None:
        """Hold `lock`, which the caller must not hold yet, until the end and in repeated runs."""
        if id(lock) not in self.locks:
            self.hold_lock(state_lock())
            self.hold_lock(lock)
            self.locks[id(lock)] = lock

    def hold_lock(self, lock: Any, timeout: float = -1) -> None:
        self._held.append(lock)  # first: an interrupt may come between the two
        lock.acquire(timeout=timeout)

    def release_locks(self) -> None:
        while self._held:
            release(self._held[-1])
            self._held.pop()

    def guard_entry(self, state: dict[str, Any], name: str, can_recur: bool = True) -> None:
        """Guard on an entry of a dictionary, such as an attribute of a Python object.

        can_recur    whether the entry can take this value again after another; False for a counter
        """
        key = (id(state), name)
        if key not in self.entries:
            self.entries[key] = (state, name, state.get(name))
            if not can_recur:
                self.counters.append(self.entries[key])

    def guard_attribute(self, x: Any, name: str, key: Callable[[Any], Any]) -> None:
        """Guard on an attribute of `x`, compared by `key(value)`."""
        entry = (id(x), name)
        if entry not in self.attributes:
            self.attributes[entry] = (x, name, key(x.__dict__[name]), key)

    def unchanged_attributes(self) -> list[tuple[Any, str, Any, Callable[[Any], Any]]]:
        """Return the attributes that the run has read and not itself changed."""
        return [read for read in self.attributes.values() if is_unchanged(*read)]

    def on_value_read(self, x: Any, what: str, source: Any) -> np.ndarray:
        """Guard on the value of `x`, which Python reads, and return what Python is to see."""
        node = node_of(x)
        if node in self.constants:
            return x.value
        self.on_read(node, x)
        value = self.as_computed(x.value, what, source)
        self.guards.append(Guard(node, np.array(value), what, source))
        return value

    def as_computed(self, value: np.ndarray, what: str, source: Any) -> np.ndarray:
        """Return a value to decide by as compiled code has computed it, where that is known.

        Where rounding decides, the run must take the path that compiled code will look for.
        """
        number = len(self.guards)
        if number >= len(self.computed):
            return value
        guard, found = self.computed[number]
        if not guard.is_same_read(what, source, value):
            self.computed = ()  # Python has taken another path
            return value
        same = not guard.is_discrete or np.array_equal(guard.read(found), guard.read(value))
        return value if same else found.copy()


def is_unchanged(x: Any, name: str, expected: Any, key: Callable[[Any], Any]) -> bool:
    """True if an attribute still has the value that a recorded run has read."""
    return name in x.__dict__ and key(x.__dict__[name]) == expected


class CollectEffects:
    """A block whose ordered equations are those of one operation that the caller makes of it."""

    def __enter__(self) -> list[Node]:
        self.recorder = local.recorder
        self.nodes: list[Node] = []
        self.start = 0 if self.recorder is None else len(self.recorder.effects)
        return self.nodes

    def __exit__(self, *_: Any) -> None:
        if self.recorder is not None:
            self.nodes += self.recorder.effects[self.start :]
            del self.recorder.effects[self.start :]


class Unrecorded:
    """A block whose operations are not recorded: its results are external to the run."""

    def __enter__(self) -> None:
        self.recorder = local.recorder
        if self.recorder is not None:
            local.recorder = None

    def __exit__(self, *_: Any) -> None:
        if self.recorder is not None:
            local.recorder = self.recorder
