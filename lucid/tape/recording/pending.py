"""Pending: the array of a tensor whose value has not been needed yet.

A Pending has a dtype and a shape and takes the place of the array in `Traced.raw` and `Node.saved`.
Something that needs the array calls `compute`, which runs the equations that lead to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from threading import get_ident
from typing import Any
from weakref import ref

import numpy as np

from lucid.errors import LeakError, LucidError, OutOfMemoryError
from lucid.ir.graph import Graph, Literal
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.support.source import Source
from lucid.tape.modes import local
from lucid.tape.tiering import run_counted

_by_serial = attrgetter("serial")


class Pending:
    """An array that is not computed yet.

    array    the array once it is computed, None before
    node     the Node whose value it is, until its run has ended
    run      the run that it belongs to, until that has ended
    place    what says where the run has its value, if the run needs that
    """

    __slots__ = ("array", "dtype", "node", "place", "run", "shape")

    def __init__(self, type: Type, run: PendingRun) -> None:
        self.dtype = type.dtype
        self.shape = type.shape
        self.array: np.ndarray | None = None
        self.node: Any = None
        self.run: PendingRun | None = run
        self.place: Any = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def compute(self) -> np.ndarray:
        """Return the array, running what leads to it if nothing has yet."""
        if self.array is None:
            if self.run is None:
                raise LeakError(
                    "this value was never computed, because the jitted function that left it "
                    "behind was interrupted"
                )
            self.run.compute(self)
        assert self.array is not None
        return self.array


class PendingRun:
    """The pending values of a recorded run.

    defers     whether results are left pending
    recorded_by    the thread that records it, or None
    failed     whether an operation has raised an error because of its values
    known      Node -> array or Pending, of every value that the run has read or made
    tensors    weak references to the tensors whose values were pending
    """

    recorded_by: int | None = None

    def __init__(self, defers: bool = True) -> None:
        self.defers = defers
        self.failed = False
        self.known: dict[Any, Any] = {}
        self.tensors: list[Any] = []

    def add(self, node: Any, value: Any) -> None:
        """Note that a Node has this value."""
        self.known[node] = value
        if value.__class__ is Pending and value.node is None:
            value.node = node

    def watch(self, x: Any) -> None:
        """Note that the value of the tensor `x` is pending: it is kept while `x` is alive."""
        self.tensors.append(ref(x))

    def live_tensors(self) -> list[Any]:
        """Return the tensors whose values are still pending, oldest first."""
        found = [(r, x) for r in self.tensors if (x := r()) is not None and is_pending(x.raw)]
        self.tensors = [r for r, _ in found]
        return [x for _, x in found]

    def compute(self, pending: Pending) -> None:
        """Compute a value, and on the way those of all tensors that are still alive."""
        wanted = [pending, *[x.raw for x in self.live_tensors()]]
        try:
            evaluate([pending.node], self.known, wanted)
        except Exception:
            self.failed = True
            raise

    def compute_all(self, tape: bool) -> None:
        """Compute the values of all tensors, and if `tape` all others that are pending."""
        values = self.known.values() if tape else [x.raw for x in self.live_tensors()]
        wanted = [value for value in values if is_pending(value)]
        evaluate([pending.node for pending in wanted], self.known, wanted)

    def end(self) -> None:
        """Forget the tape; what was not computed by now never will be."""
        self.defers = False
        for value in self.known.values():
            if value.__class__ is Pending:
                value.node = value.run = None
        self.known.clear()
        self.tensors.clear()


def is_foreign(pending: Pending) -> bool:
    """True if another thread records this value: the tensor that has it will have its own again."""
    run = pending.run
    return run is not None and run.recorded_by is not None and run.recorded_by != get_ident()


class CannotWait(BaseException):
    """A value is needed while a function is recorded, and a collective must run to compute it.

    What is recorded runs later, once, and in order, so nothing of it can run now.
    """


def is_pending(value: Any) -> bool:
    """True for a value that is not computed yet."""
    return value.__class__ is Pending and value.array is None


def array_of(value: Any) -> Any:
    """Return the array of a value that may be pending; None if it is abstract."""
    return value.compute() if value.__class__ is Pending else value


def pending_result(types: Any, run: PendingRun) -> Any:
    """Return what stands for results of these types until something looks at them."""
    if isinstance(types, tuple):
        return tuple([Pending(t, run) for t in types])
    return Pending(types, run)


def can_wait(op: Primitive, xs: tuple[Any, ...]) -> bool:
    """True if `op` need not be computed now: no value makes it fail, or those here do not.

    Indices are checked now if they are known; those that are pending are checked when they are
    computed, with an error for the same line.
    """
    if may_fail(op):
        return False
    if op.checks_values:
        op.check_values(*[x.array if x.__class__ is Literal else x.raw for x in xs])
    return True


def may_fail(op: Primitive) -> bool:
    """True if `op`, or an equation in a Graph that it holds, fails for some values."""
    return op.fails or (op.holds_graphs and graphs_fail(op))


def graphs_fail(op: Primitive) -> bool:
    """True if an equation in a Graph that `op` holds may fail for some values."""
    found = op.__dict__.get("_graphs_fail")
    if found is None:
        fields = [x if isinstance(x, tuple) else (x,) for x in op.params().values()]
        graphs = [x for field in fields for x in field if isinstance(x, Graph)]
        found = any([
            eqn.op.fails or (eqn.op.holds_graphs and graphs_fail(eqn.op))
            for graph in graphs for eqn in graph.equations
        ])  # fmt: skip
        op.__dict__["_graphs_fail"] = found
    return found


def evaluate(ends: Iterable[Any], known: dict[Any, Any], wanted: Iterable[Pending]) -> None:
    """Compute the values of the Nodes `ends` with NumPy, and set the arrays of `wanted`.

    known     Node -> array or Pending; a Pending that has its array is not computed again
    wanted    values to keep, if they are computed on the way; all others are dropped after use
    """
    env: dict[Any, Any] = {}
    order, uses = unknown_nodes(ends, known, env)
    if any([node.op.ordered for node in order]):
        raise CannotWait
    keep = {pending.node: pending for pending in wanted}
    results: dict[int, tuple[Any, ...]] = {}  # serial -> results of an equation with several
    with np.errstate(all="ignore"):
        for node in order:
            found = results.get(node.serial)
            if found is None:
                value = evaluate_node(node, env)
                if value.__class__ is tuple:
                    results[node.serial] = value
                    value = value[node.index]
            else:
                value = found[node.index]
            if value.__class__ is not np.ndarray:
                value = np.asarray(value)
            pending = keep.get(node)
            if pending is not None:
                if not (node.op.is_view or value.flags.c_contiguous):
                    value = np.ascontiguousarray(value)  # views of it may exist
                pending.array = value
            env[node] = value
            for x in node.inputs:
                if x.__class__ is not Literal:
                    uses[x] -= 1
                    if not uses[x]:
                        del env[x]


def unknown_nodes(
    ends: Iterable[Any], known: dict[Any, Any], env: dict[Any, Any]
) -> tuple[list[Any], dict[Any, int]]:
    """Return the Nodes to compute, oldest first, and how often each Node is read.

    The arrays that are known go to `env`.
    """
    stack, seen, order = list(ends), set(), []
    uses: dict[Any, int] = dict.fromkeys(stack, 1)  # the ends are never dropped
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        value = known.get(node)
        if value is None and node.op is None:
            value = node.saved
        if value.__class__ is Pending:
            value = value.array
        if value is not None:
            env[node] = value
            continue
        order.append(node)
        for x in node.inputs:
            if x.__class__ is not Literal:
                uses[x] = uses.get(x, 0) + 1
                stack.append(x)
    order.sort(key=_by_serial)
    return order, uses


def evaluate_node(node: Any, env: dict[Any, Any]) -> Any:
    """Return what the equation of a Node computes; an error names its line."""
    op = node.op
    operands = [x if x.__class__ is Literal else env[x] for x in node.inputs]
    size = sum([x.size for x in operands if x.__class__ is np.ndarray])
    try:
        if size >= op.native_from:
            return run_counted(op, operands)
        return op.eval(*[x.array if x.__class__ is Literal else x for x in operands])
    except Exception as error:
        before = local.source
        local.source = Source(*node.source) if isinstance(node.source, tuple) else node.source
        try:
            if isinstance(error, LucidError):
                op.eval(*[x.array if x.__class__ is Literal else x for x in operands])
                raise
            kind = OutOfMemoryError if isinstance(error, MemoryError) else LucidError
            types = ", ".join([str(Type(x.dtype, x.shape)) for x in operands])
            raise kind(f"{op!r} of {types}: {error}") from error
        finally:
            local.source = before


def has_array(value: Any) -> bool:
    """True for a value that was pending and is computed."""
    return value.__class__ is Pending and value.array is not None
