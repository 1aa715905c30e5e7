"""record: one run of a jitted function under a Recorder, and the path that it took."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lucid.compiler.jit.donation import invalidate
from lucid.compiler.jit.fast_call import is_tracked
from lucid.compiler.jit.guards.closure_guards import closure_guards, guard_unchanged
from lucid.compiler.jit.path import Path
from lucid.compiler.runtime import threads
from lucid.errors import LucidError, MiscompiledError, OutOfMemoryError
from lucid.ir.pytree import flatten
from lucid.tape.bind import bind_precomputed
from lucid.tape.node import GRAD, TRACE, Node, Storage, Traced, note_read, wrap
from lucid.tape.recording.guards import Guard
from lucid.tape.recording.pending import CannotWait, is_pending
from lucid.tape.recording.recorder import Recorder
from lucid.tape.recording.trace import input_names
from lucid.tape.tiering import Tiering
from lucid.tape.views import layout, node_of
from lucid.tape.writes import mark_written

MAX_PATHS = 16  # paths of one signature
MAX_SIGNATURES = 1024  # the least recently recorded are forgotten
RUN_PYTHON = object()


class RecompileWarning(UserWarning):
    """A jitted function was recompiled so often that it runs uncompiled from now on."""


class GuardFailure(NamedTuple):
    """A path that does not hold: the number of the guard, and all values of guards it computed."""

    path: Path
    number: int
    values: Sequence[np.ndarray]

    def computed(self) -> list[tuple[Guard, np.ndarray]]:
        """Return the guards up to the failed one, with the values of compiled code."""
        return list(zip(self.path.guards[: self.number + 1], self.values))


def first_run(
    jitted: Any, path: Path, recorder: Recorder, args: Any, kwargs: Any, tensors: Any, tracked: bool
) -> Any:
    """Return the result of the run that was just recorded, by the compiled program.

    Python has taken this path, so guards are not compared but learn what was computed.
    """
    if not (tracked or path.needs_grad()):
        path.compile()

    def run() -> Any:
        values, extra = [x.value for x in tensors], path.current_arrays()
        found = None if extra is None else jitted.compute(path, tensors, values, extra, tracked)
        if found is None or found is RUN_PYTHON:
            return RUN_PYTHON
        outs, outputs, on_tape = found
        for guard, value in zip(path.guards, outputs[path.n_outputs + path.n_state :]):
            guard.accept(value)
        for pending, value in zip(path.ends, outputs):
            if is_pending(pending):
                pending.array = value
        return jitted.commit(path, tensors, outs, outputs, on_tape)

    try:
        found = path.locks.run(run)
    except LucidError as error:
        if not (may_be_caught(path, error) and returns(jitted, args, kwargs, tensors)):
            raise
        found = RUN_PYTHON
    return jitted.run_python(args, kwargs, tensors) if found is RUN_PYTHON else found


def may_be_caught(path: Path, error: LucidError) -> bool:
    """True if an error of compiled code is one that Python would have seen and may handle."""
    return not (path.is_ordered or isinstance(error, (MiscompiledError, OutOfMemoryError)))


def returns(jitted: Any, args: Any, kwargs: Any, tensors: Sequence[Any]) -> bool:
    """True if the function handles the error with which compiled code ended on these arguments.

    It is run at once, operation by operation, and whatever it writes is undone.
    """
    tree = flatten((jitted.dynamic(args), kwargs))[1]
    recorder = Recorder(reversible=True)
    recorder.pending.defers = False
    try:
        recorder.begin()
        inputs = [recorded_argument(recorder, i, x) for i, x in enumerate(tensors)]
        jitted.call_function(args, tree, inputs)
    except Exception:
        return False
    finally:
        recorder.end()
        recorder.roll_back()
    return True


def record(
    jitted: Any,
    key: Any,
    args: Any,
    kwargs: Any,
    tensors: Sequence[Any],
    tree: Any,
    tracked: bool,
    failures: Sequence[GuardFailure] = (),
) -> Any:
    """Run the function under a Recorder and keep the path it took.

    A path that repeats a known one is not kept: rounding alone made a guard of that one fail,
    which from now on accepts what compiled code has computed. Neither is one on which an operation
    failed: compiled code ends where one fails, and Python takes over.
    """
    known = paths_of(jitted, key)
    known[:] = [path for path in known if not path.expired()]
    if len(known) >= MAX_PATHS:
        jitted.is_uncompiled = True
        warnings.warn(
            f"{jitted.name} was recompiled {MAX_PATHS} times for one signature; it runs "
            f"uncompiled from now on; last reason: {jitted.why_recompiled()}",
            RecompileWarning,
            stacklevel=4,
        )
        return jitted.run_python(args, kwargs, tensors)
    if jitted.paths and not known and len(jitted.paths) > 1:
        jitted.reasons.append(
            f"{jitted.name}: called with {', '.join(str(x.type) for x in tensors)}"
        )
    if known and known[0].mismatch:
        jitted.reasons.append(f"{jitted.name}: {known[0].mismatch}")
    if Tiering.compile is not None:
        threads.prepare()  # on the other core, while this one records and lowers
    farthest = max(failures, key=lambda failure: failure.number, default=None)
    computed = farthest.computed() if farthest is not None else ()
    try:
        path, recorder, first = trace_path(jitted, args, kwargs, tensors, tree, tracked, computed)
    except CannotWait:
        give_up(jitted, "a value that depends on theirs is needed while it runs")
        return jitted.run_python(args, kwargs, tensors)
    if recorder.pending.failed:  # and Python caught the error: no guard says when it occurs
        jitted.reasons.append(f"{jitted.name}: it caught the error of an operation")
        if recorder.defers or tracked:
            recorder.pending.end()
            return jitted.run_python(args, kwargs, tensors)
        invalidate(tensors, path.spent(tensors), jitted.name)
        return first
    if path.is_ordered and path.guards:
        guard = path.guards[0]
        give_up(jitted, f"Python reads a value in it ({guard.what} at {guard.source})")
        if recorder.defers:
            recorder.pending.end()
            return jitted.run_python(args, kwargs, tensors)
    repeated = next((f for f in failures if f.path.is_repeated_by(path)), None)
    if repeated is None:
        jitted.paths.setdefault(key, known).insert(0, path)
    else:
        path = repeated.path
        for guard, value in zip(path.guards, repeated.values):
            guard.accept(value)
    if recorder.defers:
        try:
            return first_run(jitted, path, recorder, args, kwargs, tensors, tracked)
        finally:
            recorder.pending.end()
            path.ends = []
    if tracked:  # the recorded run was rolled back; this run goes on the tape
        found = jitted.run(path, args, kwargs, tensors, tracked)
        return found[0] if type(found) is tuple else jitted.run_python(args, kwargs, tensors)
    invalidate(tensors, path.spent(tensors), jitted.name)
    return first


def give_up(jitted: Any, reason: str) -> None:
    """Stop compiling a function that communicates, because its path depends on a value.

    Compiled code learns that a guard fails only after it has communicated, perhaps on one rank
    alone.
    """
    jitted.is_uncompiled = True
    warnings.warn(
        f"{jitted.name} communicates with other ranks and {reason}; it runs uncompiled; "
        "move that part outside",
        RecompileWarning,
        stacklevel=5,
    )


def paths_of(jitted: Any, key: Any) -> list[Path]:
    """Return the paths of a signature, of which the latest MAX_SIGNATURES are kept."""
    found = jitted.paths.pop(key, None)
    while len(jitted.paths) >= MAX_SIGNATURES:
        jitted.paths.pop(next(iter(jitted.paths)))
    jitted.paths[key] = found = [] if found is None else found
    return found


def trace_path(
    jitted: Any,
    args: Any,
    kwargs: Any,
    tensors: Sequence[Any],
    tree: Any,
    reversible: bool,
    computed: Sequence[tuple[Guard, np.ndarray]] = (),
) -> tuple[Path, Recorder, Any]:
    """Record the path that the function takes on these arguments.

    The recorder and the result are returned too; there is none if the run is pending.
    """
    jitted.names = input_names(jitted.function, jitted.dynamic(args), kwargs)
    recorder = Recorder(reversible, computed)
    try:
        with recorder:
            inputs = [recorded_argument(recorder, i, x) for i, x in enumerate(tensors)]
            starts, recorder.given = [x.node for x in inputs], tensors
            static = [args[i] for i in jitted.static_indices(args) if 0 <= i < len(args)]
            variables = closure_guards(jitted.function, static)
            result = jitted.call_function(args, tree, inputs)
            guard_unchanged(recorder, variables)
            y = None
            grads = [cell.grad for cell, _ in recorder.cells.values()]
            moved = [y for y in grads if y is not None and id(y) not in recorder.grads]
            left = {id(y) for y, (_, before) in zip(grads, recorder.cells.values()) if y is before}
            for y in (*flatten(result)[0], *moved):
                if isinstance(y, Traced) and id(y) not in left:
                    note_read(node_of(y), y)
            del grads, moved
            path = Path(jitted, recorder, starts, result, tree)
            if recorder.defers:
                del result, inputs, y
                recorder.finish(path.ends)
    finally:
        recorder.end()
    if recorder.defers:
        return path, recorder, None
    path.compile()
    if reversible:
        recorder.roll_back()
        return path, recorder, None
    for i in path.written_arguments:
        mark_written(tensors[i])
    leaves = path.recorded_outputs(result, recorder)
    if path.needs_grad():
        outs = tracked_outputs(path, recorder, tensors, leaves)
        return path, recorder, path.result(outs, tensors)
    return path, recorder, path.result([wrap(y) for y in leaves], tensors)


def recorded_argument(recorder: Recorder, index: int, x: Any) -> Any:
    """Return the tensor that stands for an argument in a recorded run, in the same memory."""
    array = layout(x)
    node = Node(None, (), TRACE | (GRAD if is_tracked(x) else 0), array)
    node.is_state = True  # a write to it is a write to the argument
    node.is_number = x.node is not None and x.node.is_number
    recorder.inputs.add(node)
    inside = wrap(array, node)
    if not array.flags.c_contiguous:
        inside.storage = Storage()
        node.stamp = (inside.storage, 0)
    recorder.arguments[id(inside)] = index
    recorder.on_result(node, array)
    recorder.add_owner(inside)
    return inside


def tracked_outputs(
    path: Path, recorder: Recorder, tensors: Sequence[Any], outputs: Sequence[np.ndarray]
) -> list[Any]:
    """Return the outputs of the recorded run, on the tape as those of later runs are."""
    from lucid.ops.higher_order.call import Call

    before = recorder.before
    captured = [wrap(before[id(x)]) if id(x) in before else x for x in path.sources]
    operands = (*tensors, *captured, *[wrap(c) for c in path.constants])
    values = [
        *outputs,
        *[x.value.copy() for x in path.written_tensors()],
        *[g.recorded for g in path.guards],
    ]
    outs = bind_precomputed(Call(path.graph), operands, tuple(values))
    return path.detach_constants(operands, outs[: path.n_outputs])
