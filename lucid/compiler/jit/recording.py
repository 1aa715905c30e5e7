"""One run of a jitted function under a Recorder, and the path that it took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.compiler.jit.closure_guards import closure_guards, equal_constants
from lucid.compiler.jit.fast_call import is_tracked
from lucid.compiler.jit.path import Path
from lucid.ir.pytree import flatten
from lucid.ops.higher_order.call import Call
from lucid.tape.bind import bind_precomputed
from lucid.tape.node import GRAD, TRACE, Node, Storage, Traced, note_read, wrap
from lucid.tape.recording.guards import Guard
from lucid.tape.recording.recorder import Recorder
from lucid.tape.recording.trace import input_names
from lucid.tape.views import layout, node_of
from lucid.tape.writes import mark_written


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
            starts = [x.node for x in inputs]
            variables = closure_guards(jitted.function)
            result = jitted.call_function(args, tree, inputs)
            for scope, name, value in variables:
                now = scope.get(name)
                if now is value or equal_constants(now, value):
                    recorder.guard_entry(scope, name)
            y = None
            for y in flatten(result)[0]:
                if isinstance(y, Traced):
                    note_read(node_of(y), y)
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
    before = recorder.before
    captured = [wrap(before[id(x)]) if id(x) in before else x for x in path.sources]
    operands = (*tensors, *captured, *[wrap(c) for c in path.constants])
    values = [*outputs, *[x.value.copy() for x in path.written], *[g.recorded for g in path.guards]]
    outs = bind_precomputed(Call(path.graph), operands, tuple(values))
    return path.detach_constants(operands, outs[: path.n_outputs])
