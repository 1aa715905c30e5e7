"""Calls of a Function inside a transform: forward and backward are traced as one equation."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

from lucid.autograd.functions.calls import (
    ForwardResult,
    checked_gradient,
    dirty_arguments,
    gradients_of,
    tangents_of,
)
from lucid.autograd.functions.eager import eager_call
from lucid.errors import GraphError, TracedValueError
from lucid.ir.graph import Graph
from lucid.ir.primitive import Primitive
from lucid.ir.types import is_differentiable
from lucid.ops.core.promote import as_tensor
from lucid.ops.higher_order.custom_derivative import CustomFunction, CustomVjp
from lucid.ops.shape.copying import COPY
from lucid.tape.bind import bind, fresh
from lucid.tape.cut import cut_nodes
from lucid.tape.node import GRAD, TRACE, Traced, as_source
from lucid.tape.recording.body import BodyRecorder, trace_state
from lucid.tape.views import node_of, tensor_of
from lucid.tape.writes import write


def traced_call(
    cls: Any, ctx: Any, args: Sequence[Any], kwargs: Any, flags: int, n_given: int
) -> Any:
    """Trace `forward` and `backward` and bind them as one `custom_vjp` equation."""
    positions = [i for i, x in enumerate(args) if isinstance(x, Traced)]
    ctx.needs_input_grad = tuple(i in positions and bool(flags & GRAD) for i in range(len(args)))
    inside = list(args)
    inputs = []
    for i in positions:
        inside[i] = own_input(args[i])
        inputs.append(inside[i].node)
    result = cls._run_forward(ctx, inside, kwargs)
    outputs = result.tensors
    starts = dict(zip(positions, inputs))
    changed = [i in starts and x.node is not starts[i] for i, x in enumerate(inside)]
    dirty = dirty_arguments(cls, ctx, inside, outputs, changed)
    saved = [x for x in ctx._saved if x is not None]
    kept = [x for x in ctx._saved_forward if x is not None]
    forward = cut_nodes(inputs, [node_of(y) for y in (*outputs, *saved, *kept)])
    try:
        backward = trace_backward(cls, ctx, [*saved, *kept], result, args, n_given)
    except TracedValueError:
        if any(args[i].raw is None for i in positions):
            raise
        return eager_call(cls, type(ctx)(), args, kwargs, flags, n_given)
    captured = [*[tensor_of(forward.slots[s]) for s in forward.captured], *backward.captured]
    graphs = forward.graph(cls._label(args)), backward.graph
    rules = Rules(cls, ctx, args, positions)
    op: Primitive
    if rules.has_jvp or rules.has_vmap:
        op = CustomFunction(*graphs, len(positions), len(outputs), backward.returns, rules)
    else:
        op = CustomVjp(*graphs, len(positions), len(outputs), backward.returns)
    results = bind(op, *[args[i] for i in positions], *captured)[: len(outputs)]
    constant = {id(y) for y in ctx._not_differentiable}
    results = [r.detach() if id(y) in constant else r for r, y in zip(results, outputs)]
    for k, i in dirty.items():
        write(args[i], results[k], cls.__name__)
        results[k] = args[i]
    return result.rebuild(results)


def own_input(x: Any) -> Any:
    """Return a new input of a transform that `forward` may write: in memory of its own."""
    inside = fresh(x, TRACE | (GRAD if is_differentiable(x.dtype) else 0))
    if x.raw is not None:
        inside.value = inside.node.saved = x.value.copy()
        inside.storage = inside.node.stamp = None
    inside.node.is_state = True
    return inside


class BatchInfo(NamedTuple):
    """The first argument of a Function's `vmap`."""

    batch_size: int
    randomness: str


class Rules:
    """The user-defined jvp and vmap of a Function, for one call."""

    def __init__(self, cls: Any, ctx: Any, args: Sequence[Any], positions: Sequence[int]) -> None:
        self.cls, self.ctx = cls, ctx
        self.positions = list(positions)
        self.args = [None if i in positions else x for i, x in enumerate(args)]
        self.has_jvp = cls._defines("jvp")
        self.has_vmap = cls._defines("vmap")

    def tangents(
        self, ts: Sequence[Any], saved: Sequence[Any], outputs: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Return the tangents of the outputs; `saved` holds tensors for backward, then for jvp."""
        ctx = copy(self.ctx)
        for_jvp = self.ctx._saved_forward or self.ctx._saved
        n = sum(x is not None for x in for_jvp)
        rest = iter(saved[len(saved) - n :] if self.ctx._saved_forward else saved[:n])
        ctx._saved = tuple(None if x is None else next(rest) for x in for_jvp)
        ctx._unpack = None
        full: list[Any] = [None] * len(self.args)
        for i, t in zip(self.positions, ts):
            full[i] = t
        found = self.cls.jvp(ctx, *full)
        found = found if isinstance(found, (tuple, list)) else (found,)
        return tuple(tangents_of(self.cls, found, outputs))

    def batch(self, n: int, flags: Sequence[bool], xs: Sequence[Any]) -> list[Any]:
        """Return the outputs of a batch, with the batch axis in front."""
        args = list(self.args)
        dims: list[int | None] = [None] * len(args)
        for i, x, flag in zip(self.positions, xs, flags):
            args[i], dims[i] = x, 0 if flag else None
        result, out_dims = self.cls.vmap(BatchInfo(n, "error"), tuple(dims), *args)
        outputs = result if isinstance(result, (tuple, list)) else (result,)
        dims_out = out_dims if isinstance(out_dims, (tuple, list)) else [out_dims] * len(outputs)
        return [to_front(as_tensor(y), dim, n) for y, dim in zip(outputs, dims_out)]


def to_front(y: Any, dim: int | None, n: int) -> Any:
    return y.expand((n, *y.shape)) if dim is None else y.movedim(dim, 0)


class TracedBackward(NamedTuple):
    """The Graph of a `backward`, the tensors it captures, and the arguments with gradients."""

    graph: Graph
    captured: list[Any]
    returns: tuple[int, ...]


def trace_backward(
    cls: Any,
    ctx: Any,
    saved: Sequence[Any],
    result: ForwardResult,
    args: Sequence[Any],
    n_given: int,
) -> TracedBackward:
    """Trace `backward` from (saved, cotangents); what it draws and writes happens once, now."""
    what = f"{cls.__name__}.backward"
    mask = ctx._saved

    def run(recorder: BodyRecorder) -> tuple[Graph, list[Any], list[int]]:
        stand_ins = [recorder.input(x.type) for x in saved]
        remaining = iter(stand_ins)
        ctx._saved = tuple(None if x is None else next(remaining) for x in mask)
        cts = [recorder.input(y.type) for y in result.tensors]
        found = cls.backward(ctx, *result.cotangents(cts))
        grads = gradients_of(cls, found, len(args), n_given)
        kept, returns = [], []
        tensors = [(g, x.type) for g, x in zip(grads, args) if isinstance(x, Traced)]
        for number, (g, type) in enumerate(tensors):
            if g is not None and is_differentiable(type.dtype):
                kept.append(checked_gradient(cls, g, type))
                returns.append(number)
        return *recorder.cut([*stand_ins, *cts], kept, "backward"), returns

    (graph, captured, returns), recorder = trace_state(what, run)
    n = len(saved) + len(result.tensors)
    graph, captured = write_final_state(what, graph, n, captured, recorder)
    return TracedBackward(graph, captured, tuple(returns))


def write_final_state(
    what: str, graph: Graph, n: int, captured: Sequence[Any], recorder: BodyRecorder
) -> tuple[Graph, list[Any]]:
    """Write the state that a `backward` leaves, and return its Graph and what that captures."""
    from lucid.func.control_flow import hoist_invariant
    from lucid.func.state import locks_of, write_back

    state = recorder.found_state()
    n_out = len(graph.outputs) - len(state)

    def write() -> tuple[Graph, list[Any]]:
        before = [bind(COPY, s.tensor) for s in state]
        rest, found = hoist_invariant(graph, n, [*before, *captured])
        known: dict[Any, Any] = dict(zip(rest.inputs[n:], found))
        after = rest.outputs[n_out:]
        for s, y in zip(state, after):
            if y not in known:
                raise GraphError(
                    f"{what}: a value that depends on a gradient is written to a tensor from "
                    f"outside, {s.tensor.type}; return it instead"
                    f"   [{as_source(recorder.write_sources.get(id(s.tensor)))}]"
                )
        write_back(state, [known[y] for y in after], what)
        return rest, found

    graph, hoisted = locks_of(state).run(write)
    return Graph(graph.name, graph.inputs, graph.equations, graph.outputs[:n_out]), hoisted
