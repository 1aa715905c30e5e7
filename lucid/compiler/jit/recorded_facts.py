"""recorded_facts: what a Path asks of a recorded run: its state, hooks, derivatives, memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lucid.errors import TracedValueError
from lucid.ir.graph import Graph, Var
from lucid.ir.types import is_differentiable
from lucid.support.source import at_line
from lucid.tape.node import GRAD, Node, Traced
from lucid.tape.recording.recorder import Recorder


def differentiable_inputs(graph: Graph, n_outputs: int) -> list[frozenset[int]]:
    """Return, for each of the first outputs, the inputs it has a derivative with respect to."""
    none: frozenset[int] = frozenset()
    reads: dict[Any, frozenset[int]] = {x: frozenset([i]) for i, x in enumerate(graph.inputs)}
    for eqn in graph.equations:
        if eqn.op.differentiable:
            joined = none.union(*[reads.get(x, none) for x in eqn.inputs if isinstance(x, Var)])
            for y in eqn.outputs:
                reads[y] = joined if is_differentiable(y.type.dtype) else none
    return [reads.get(y, none) for y in graph.outputs[:n_outputs]]


def refuse_traced(name: str, captured: Iterable[Node]) -> None:
    """Raise an error if a recorded run reads a value that an outer trace does not know."""
    for node in captured:
        if node.trace is not None and node.saved is None:
            raise TracedValueError(
                f"jit of {name}: it closes over a value of {node.trace.what}, which is unknown "
                f"while it is traced; pass it as an argument{at_line()}"
            )


def requires_grad(x: Any) -> bool:
    return isinstance(x, Traced) and x.node is not None and bool(x.node.flags & GRAD)


def same_objects(xs: Sequence[Any], ys: Sequence[Any]) -> bool:
    return len(xs) == len(ys) and all(x is y for x, y in zip(xs, ys))


def same_bits(x: np.ndarray, y: np.ndarray) -> bool:
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def hooks_of(cell: Any) -> tuple[int, ...]:
    state = cell.state
    on_node = () if state is None else (*state.prehooks, *state.hooks)
    return (int(cell.frozen), *cell.hooks, *cell.post_accumulate_hooks, *on_node)


def one_per_memory(written: list[Any], recorder: Recorder) -> tuple[list[Any], list[Any]]:
    """Return the written tensors, one for each memory, and the others, whose values are theirs.

    A Parameter is a view of the tensor it was made from, so a write to it is one to both.
    """
    read = {id(x) for x in recorder.captured.values()}
    kept: dict[Any, Any] = {}
    for x in written:
        array = recorder.array_before(x)
        place = (id(x.storage), array.ctypes.data, array.shape, array.strides, array.dtype)
        key = id(x) if x.storage is None else place
        if key not in kept or (id(x) in read and id(kept[key]) not in read):
            kept[key] = x
    chosen = {id(x) for x in kept.values()}
    return [x for x in written if id(x) in chosen], [x for x in written if id(x) not in chosen]
