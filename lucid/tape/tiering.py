"""Tiering: what recurs in eager code is interpreted at first and compiled once it is hot.

One bounded table has an Entry for everything that may become hot: the work counted so far, and the
program once it is compiled. A Policy says how much work makes an entry of its kind hot:

    operation      an operation on given types and layouts; counts elements
    composition    a function of several operations on given types; counts calls
    derivative     the Graph of a pullback or pushforward; counts runs
    vmap           a function that vmap has batched; counts calls
    loop           a scan or while loop; counts equations of its body
    call           a Graph that is one operation (a checkpoint, a jitted function on the tape)
    cipher, draw   native random words, and a number of them; count words, and draws

Work is counted, never timed, so that the same program switches at the same point in every run and
its results are reproducible. An entry that the table drops is interpreted again and may become hot
again. A native program uses the threads and the BLAS of all compiled programs; NumPy has one
thread, and those of its BLAS wait by spinning, which takes a core from whatever runs next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import Any

import numpy as np

from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.primitive import NEVER, Primitive
from lucid.ir.types import Type
from lucid.public.lazy import LazyModule
from lucid.support.caches import new_cache

interpret: Any = LazyModule("lucid.ir.interpret")

ELEMENTS = 200  # elements that NumPy computes in the time Python takes for an equation
MAX_WORK = (1 << 16) // ELEMENTS  # the most that one run of an operation counts
MAX_CALLS = 256  # shapes of operands for which an operation counts its work
LAST = None  # the key in `op.calls` of the native program that ran last
MAX_ENTRIES = 2048
MAX_WEIGHT = 300_000  # equations in all entries together, at about a kilobyte each


class Tiering:
    """The settings: LUCID_TIERING, LUCID_TIERING_THRESHOLD and LUCID_DISABLE_JIT.

    enabled      whether eager code is counted and compiled
    threshold    the number of typical runs that make an entry hot
    compile      Graph -> native program, or None if everything is interpreted
    load_cipher  () -> (keys' shape, words) -> (key, counter) -> random words, natively; or None
    """

    enabled = False
    threshold = 16
    compile: Callable[[Graph], Any] | None = None
    load_cipher: Callable[[], Any] | None = None


class Policy:
    """How much work makes an entry hot: `threshold` typical runs, or fewer.

    name        the kind of the entries
    run         the work of a typical run
    max_runs    the runs after which an entry is hot whatever the threshold
    """

    __slots__ = ("max_runs", "name", "run")

    def __init__(self, name: str, run: int = 1, max_runs: float = math.inf) -> None:
        self.name = name
        self.run = run
        self.max_runs = max_runs

    def __repr__(self) -> str:
        return f"Policy({self.name})"

    def limit(self) -> float:
        """Return the work that makes an entry hot."""
        return max(min(Tiering.threshold, self.max_runs) * self.run, 1)


OPERATION = Policy("operation", MAX_WORK)
COMPOSITION = Policy("composition", max_runs=4)
DERIVATIVE = Policy("derivative")
VMAP = Policy("vmap")
LOOP = Policy("loop", 6250)  # at 16 runs: as much as takes about the time of compiling it
CALL = Policy("call", max_runs=1)


class Entry:
    """What was counted for one key, and its program once it is hot.

    work       the work counted so far
    limit      the work that makes it hot
    program    what runs instead, or None; None too once the table has dropped the entry
    weight     its share of MAX_WEIGHT
    used       orders the entries by their last use
    """

    __slots__ = ("limit", "program", "used", "weight", "work")

    def __init__(self, limit: float, weight: int = 1) -> None:
        self.work: float = 0
        self.limit = limit
        self.program: Any = None
        self.weight = weight
        self.used = 0

    def count(self, work: float, build: Callable[[], Any]) -> Any:
        """Count work that was interpreted; return the program, built at the limit, or None."""
        before, self.work = self.work, self.work + work
        if before < self.limit <= self.work:
            try:
                self.program = build()
            except BaseException:  # an interrupt: the next run tries again
                self.work = before
                raise
        return self.program


class Table:
    """The entries by policy and key; the least recently used ones are dropped from a full table.

    Each step on the dictionary is atomic, so there is no lock that a fork could find held.
    """

    def __init__(self) -> None:
        self.entries: dict[Any, Entry] = {}
        self.weight = 0
        self.next_use = count(1).__next__
        self.with_calls: list[Primitive] = []  # operations that have `calls`
        self.shortcuts: list[dict[Any, Any]] = []

    def __len__(self) -> int:
        return len(self.entries)

    def entry(self, policy: Policy, key: Hashable, weight: int = 1) -> Entry:
        """Return the entry of a key, a new one if there is none."""
        found = self.entries.get((policy, key))
        if found is None:
            found = self.add((policy, key), policy.limit(), weight)
        found.used = self.next_use()
        return found

    def add(self, key: Hashable, limit: float, weight: int = 1) -> Entry:
        """Add an entry under (policy, ...), dropping others if the table is full."""
        found = self.entries.setdefault(key, Entry(limit, weight))
        found.used = self.next_use()
        self.weight += weight
        if len(self.entries) > MAX_ENTRIES or self.weight > MAX_WEIGHT:
            self._evict()
        return found

    def calls_of(self, op: Primitive) -> dict[Any, Any]:
        """Return the `calls` of an operation: shapes -> work counted, or its native call.

        They go when entries are dropped, and what is used again finds its entry again.
        """
        if op.calls is None:
            self.with_calls.append(op)
        return op.__dict__.setdefault("calls", {})

    def shortcut(self) -> dict[Any, Any]:
        """Return a new dictionary for programs of the table, which is emptied like `calls`."""
        self.shortcuts.append({})
        return self.shortcuts[-1]

    def _drop_calls(self) -> None:
        for shortcut in self.shortcuts:
            shortcut.clear()
        while self.with_calls:
            self.with_calls.pop().__dict__.pop("calls", None)

    def _evict(self) -> None:
        """Drop the least recently used entries, an eighth of what fits at once."""
        self._drop_calls()
        oldest_first = sorted(self.entries.items(), key=lambda item: item[1].used)
        n, weight = len(oldest_first), sum([entry.weight for _, entry in oldest_first])
        for key, entry in oldest_first[:-1]:
            if n <= MAX_ENTRIES * 7 // 8 and weight <= MAX_WEIGHT * 7 // 8:
                break
            self.entries.pop(key, None)
            entry.program = None
            n, weight = n - 1, weight - entry.weight
        self.weight = weight

    def clear(self) -> None:
        """Drop every entry."""
        self._drop_calls()
        for entry in list(self.entries.values()):
            entry.program = None
        self.entries.clear()
        self.weight = 0

    def of(self, policy: Policy) -> dict[Any, Entry]:
        """Return the entries of a policy."""
        return {key: entry for key, entry in list(self.entries.items()) if key[0] is policy}


table = new_cache(f"{__name__}.table", Table())


def compile_native(graph: Graph) -> Any:
    """Return the program of a Graph if all of it is native, None otherwise."""
    assert Tiering.compile is not None
    found = Tiering.compile(graph)
    return found if getattr(found, "plan", None) is not None else None


# Graphs


class TieredProgram:
    """Runs a Graph: interpreted at first, natively once it is hot."""

    __slots__ = ("_entry", "_interpreter", "_recurs", "graph")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._entry: Entry | None = None  # of the table, which empties it when it drops it
        self._interpreter: Any = None
        self._recurs = len(graph.equations) <= MAX_WEIGHT // 2 and not any(
            [eqn.op.single_use for eqn in graph.equations]
        )

    @property
    def program(self) -> Any:
        """What runs now: the native program if the Graph is hot, else its interpreter."""
        found = table.entries.get((DERIVATIVE, self.graph))
        return self.interpreter() if found is None or found.program is None else found.program

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        if not Tiering.enabled or not self._recurs:
            return self.interpreter()(inputs)
        entry = self._entry
        if entry is not None and (program := entry.program) is not None:
            entry.used = table.next_use()
            return program(inputs)
        entry = self._entry = table.entry(DERIVATIVE, self.graph, len(self.graph.equations))
        program = entry.program
        if program is None:
            program = entry.count(1, self._compile) or self.interpreter()
        return program(inputs)

    def interpreter(self) -> Any:
        if self._interpreter is None:
            self._interpreter = interpret.Program(self.graph)
        return self._interpreter

    def _compile(self) -> Any:
        assert Tiering.compile is not None
        self._interpreter = None
        return Tiering.compile(self.graph)


# Operations


def work_on(xs: Sequence[Any]) -> int:
    """Return the work of one operation on these arrays."""
    return min(1 + sum([x.size for x in xs]) // ELEMENTS, MAX_WORK)


def single_op_graph(op: Primitive, operands: Sequence[Any]) -> Graph:
    """Return the Graph of one operation on arrays like these and on these Literals."""
    atoms = [x if x.__class__ is Literal else Var(Type(x.dtype, x.shape)) for x in operands]
    result = op.infer(*[x.type for x in atoms])
    types = result if isinstance(result, tuple) else (result,)
    outputs = tuple([Var(t) for t in types])
    inputs = tuple([x for x in atoms if x.__class__ is Var])
    return Graph(op.name, inputs, (Equation(op, tuple(atoms), outputs),), outputs)


def fits_layout(op: Primitive, arrays: Sequence[np.ndarray]) -> bool:
    """True if a native program is of use for such arrays.

    A native program reads row-major memory. Only a heavy operation is worth copying other layouts
    for; NumPy computes the others in the order of the memory.
    """
    if arrays and not any([x.size for x in arrays]):
        return False
    return op.is_heavy or all([x.flags.c_contiguous for x in arrays])


class NativeOperation:
    """The native program of one operation on operands of given types and layouts."""

    __slots__ = ("program", "several", "swapped")

    def __init__(self, program: Any, several: bool, swapped: Sequence[bool]) -> None:
        self.program = program
        self.several = several
        self.swapped = [i for i, s in enumerate(swapped) if s] or None

    def __call__(self, given: Sequence[np.ndarray]) -> Any:
        """Return what `op.eval` returns: an array, or a tuple of them."""
        outs = self.program(given if self.swapped is None else self._as_they_lie(given))
        return tuple(outs) if self.several else outs[0]

    def direct(self) -> Callable[..., Any] | None:
        """Return what takes arrays and returns results, the first the array that is wanted.

        It returns None for arrays of other types and for values that the program refuses. None if
        the program does more than run a plan.
        """
        program = self.program
        if self.several or program.overwritten or not program.is_verified:
            return None
        if program.input_indices is not None:
            return None
        if program.checks:
            return self._run_checked
        return program.plan.run if self.swapped is None else self._run_swapped

    def _as_they_lie(self, given: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Return the arrays, swapped ones swapped back; None if one has fewer than two axes."""
        out = list(given)
        for i in self.swapped:  # type: ignore[union-attr]
            x = out[i]
            ndim = x.ndim
            if ndim < 2:
                return None
            out[i] = x.T if ndim == 2 else x.swapaxes(-1, -2)
        return out

    def _run_swapped(self, *given: np.ndarray) -> Any:
        arrays = self._as_they_lie(given)
        return None if arrays is None else self.program.plan.run(*arrays)

    def _run_checked(self, *given: np.ndarray) -> Any:
        outs = (self.program.plan.run if self.swapped is None else self._run_swapped)(*given)
        return None if outs is None or outs[-1] else outs


def compile_operation(op: Primitive, xs: Sequence[Any]) -> NativeOperation | None:
    """Return the program of `op` on operands with these layouts, None if it is not native.

    Operands whose last two axes are swapped in memory are given as they lie; the program swaps
    them back.
    """
    from lucid.ops.shape.movement import Transpose

    inner = op.graph if op.is_region else single_op_graph(op, xs)  # type: ignore[attr-defined]
    eqn = inner.equations[0]
    several = not op.is_region and isinstance(op.infer(*[x.type for x in eqn.inputs]), tuple)
    arrays = [x for x in xs if x.__class__ is not Literal]
    swapped = [not x.flags.c_contiguous and is_transposed(x) for x in arrays]
    inputs, equations = list(inner.inputs), []
    for i, var in enumerate(inner.inputs):
        if swapped[i]:
            *outer, rows, columns = var.type.shape
            inputs[i] = Var(Type(var.type.dtype, (*outer, columns, rows)))
            n = len(outer)
            equations.append(Equation(Transpose((*range(n), n + 1, n)), (inputs[i],), (var,)))
    equations += inner.equations
    program = compile_native(Graph(inner.name, tuple(inputs), tuple(equations), inner.outputs))
    return None if program is None else NativeOperation(program, several, swapped)


def is_transposed(x: np.ndarray) -> bool:
    return x.ndim > 1 and x.swapaxes(-1, -2).flags.c_contiguous


def run(op: Primitive, *xs: Any) -> Any:
    """Return `op.eval` of arrays, or the result of its native program if it is hot.

    `op.calls` is what makes this quick for few elements: for the shapes of operands, the work that
    was counted, or the native program itself, which looks at types and layouts and refuses others,
    so the one that ran last is tried first.
    """
    if not Tiering.enabled:
        return op.eval(*xs)
    calls = op.calls
    if calls is None:
        calls = table.calls_of(op)
    elif (last := calls.get(LAST)) is not None:
        outs = last(*xs)
        if outs is not None:
            return outs[0]
    shapes: Any = xs[0].shape if len(xs) == 1 else tuple([x.shape for x in xs])
    found = calls.get(shapes, 0)
    if found.__class__ is not int:
        outs = found(*xs)
        if outs is None:
            return run_counted(op, xs, shapes)
        calls[LAST] = found
        return outs[0]
    if op.numpy_calls and found < Tiering.threshold * MAX_WORK:
        if len(calls) >= MAX_CALLS:
            calls.clear()
        calls[shapes] = found + op.numpy_calls + sum([x.size for x in xs]) // ELEMENTS
        return op.eval(*xs)
    return run_counted(op, xs, shapes, found)


def run_counted(op: Primitive, xs: Sequence[Any], shapes: Any = None, work: int = 0) -> Any:
    """`run` for operands whose program is not in `op.calls`, or which are Literals.

    shapes    the key of `op.calls` under which the program can be found from now on
    work      what was counted there
    """
    values = [x.operand if x.__class__ is Literal else x for x in xs]
    if not op.literals_are_static:
        xs = values
    if not Tiering.enabled:
        return op.eval(*values)
    arrays = [x for x in xs if x.__class__ is not Literal]
    parts = [x.key if x.__class__ is Literal else (x.shape, x.strides, x.dtype.char) for x in xs]
    key = (OPERATION, op, *parts)
    entry = table.entries.get(key)
    if entry is None:
        limit = OPERATION.limit() if fits_layout(op, arrays) else math.inf
        entry = table.add(key, limit, len(op.graph.equations) if op.is_region else 1)  # type: ignore[attr-defined]
    else:
        entry.used = table.next_use()
    if entry.program is None:
        entry.count(work_on(arrays) + work, lambda: compile_operation(op, xs))
        if entry.program is None:
            if work:  # count again, or never if it is not native
                table.calls_of(op)[shapes] = 0 if entry.work < entry.limit else -NEVER
            return op.eval(*values)
    if shapes is not None and (direct := entry.program.direct()) is not None:
        table.calls_of(op)[shapes] = direct
    return entry.program(arrays)
