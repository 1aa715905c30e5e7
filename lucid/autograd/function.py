"""Function: an operation with a user-defined backward.

In an eager graph `forward` runs once and `backward` is called, with values, during the backward
pass. Inside a transform both are traced and become one `custom_vjp` equation, which has every rule;
a backward that cannot be traced (it reads values) is still called directly if values are known.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from lucid.autograd.function_calls import (
    ForwardResult,
    apply_by_jvp,
    checked_gradient,
    gradients_of,
    tangents_of,
    with_defaults,
)
from lucid.autograd.modes import Grad
from lucid.errors import ArgumentError, DTypeError, GraphError, TracedValueError
from lucid.ir.graph import Graph
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type, is_differentiable
from lucid.ops.core.arguments import check_callable
from lucid.ops.core.promote import as_tensor
from lucid.ops.higher_order.custom_derivative import CustomFunction, CustomVjp
from lucid.ops.shape.copying import COPY
from lucid.public.declare import public
from lucid.source import caller
from lucid.tape.bind import bind, fresh, without_gradient
from lucid.tape.body import BodyRecorder, trace_state
from lucid.tape.cut import cut_nodes
from lucid.tape.markers import OnceDifferentiable
from lucid.tape.modes import local
from lucid.tape.node import GRAD, TRACE, Node, Traced, as_source, is_recording, next_serial, wrap
from lucid.tape.views import node_of, storage_of, tensor_of
from lucid.tape.writes import write


@public("autograd")
class FunctionCtx:
    """What `forward` passes to `backward`: saved tensors and any attributes set on it."""

    needs_input_grad: tuple[bool, ...] = ()

    def __init__(self) -> None:
        self._saved: tuple[Any, ...] = ()
        self._saved_forward: tuple[Any, ...] = ()
        self._unpack: Any = None
        self._not_differentiable: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._materialize = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Save tensors (inputs, outputs or others; None is allowed) for `backward`."""
        for x in tensors:
            if x is not None and not isinstance(x, Traced):
                raise DTypeError(
                    f"save_for_backward: a {type(x).__name__} is not a tensor; "
                    f"set it as an attribute of ctx instead"
                )
        self._saved = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Save tensors for `jvp`."""
        self._saved_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors of `save_for_backward`; an error if one was changed in place since."""
        return self._saved if self._unpack is None else self._unpack()

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """Mark outputs as not differentiable."""
        self._not_differentiable = outputs

    def mark_dirty(self, *inputs: Any) -> None:
        """Say that `forward` changes these inputs in place; it must return all of them."""
        self._dirty = inputs

    def set_materialize_grads(self, value: bool) -> None:
        """If False, `backward` receives None, not zeros, for an output without a gradient."""
        self._materialize = bool(value)


@public("autograd")
class Function:
    """Base class for operations with a custom backward; call `apply`, never instantiate it.

    >>> import lucid
    >>> class Double(lucid.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> x = lucid.ones(2, requires_grad=True)
    >>> Double.apply(x).sum().backward()
    >>> x.grad
    Tensor([2., 2.])
    """

    generate_vmap_rule = False  # for PyTorch compatibility: there always is a batch rule

    def __init__(self, *_: Any, **__: Any) -> None:
        name = type(self).__name__
        raise ArgumentError(f"{name} cannot be instantiated; call {name}.apply(...)")

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the result; store on `ctx` what `backward` needs."""
        raise missing_method("define forward(ctx, ...) as a staticmethod")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return a gradient for each positional argument of `forward`, None if it has none."""
        raise missing_method("define backward(ctx, ...) as a staticmethod")

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Optional: return the tangents of the outputs; by default derived from `backward`."""
        raise missing_method("it has no jvp")

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
        """Optional: return (outputs of a batch, their out_dims); by default traced."""
        raise missing_method("it has no vmap")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Optional: store on `ctx` what `backward` needs; `forward` then takes no ctx."""

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the operation and record it."""
        if cls is Function:
            raise missing_method("define a subclass with forward and backward, and apply that")
        n_given = len(args)
        if has_setup_context(cls):
            args, kwargs = with_defaults(cls, args, kwargs)
        if cls.backward is Function.backward and cls.jvp is not Function.jvp:
            return apply_by_jvp(cls, args, kwargs)
        flags = 0
        for x in args:
            if isinstance(x, Traced) and x.node is not None:
                flags |= x.node.flags
        call = traced_call if flags & TRACE or is_recording() else eager_call
        return call(cls, args, kwargs, flags, n_given)


def missing_method(remedy: str) -> ArgumentError:
    return ArgumentError(f"autograd.Function: {remedy}")


def has_setup_context(cls: Any) -> bool:
    return cls.setup_context is not Function.setup_context


def run_forward(cls: Any, ctx: FunctionCtx, args: Sequence[Any], kwargs: Any) -> ForwardResult:
    """Run `forward`, and `setup_context` if there is one."""
    if has_setup_context(cls):
        result = cls.forward(*args, **kwargs)
        cls.setup_context(ctx, tuple(args), result)
    else:
        result = cls.forward(ctx, *args, **kwargs)
    return ForwardResult(result)


# In an eager graph


class Call:
    """One eager call of a Function: its context, argument positions and types."""

    def __init__(
        self, cls: Any, ctx: FunctionCtx, args: Sequence[Any], n_given: int, result: ForwardResult
    ) -> None:
        self.cls = cls
        self.ctx = ctx
        self.n_args, self.n_given = len(args), n_given
        self.positions = [i for i, x in enumerate(args) if isinstance(x, Traced)]
        self.in_types = [args[i].type for i in self.positions]
        self.out_types: list[Type] = [y.type for y in result.tensors]
        self.several = result.several
        self.cotangents = result.cotangents

    def backward(self, mask: Sequence[bool], cts: Sequence[Any]) -> tuple[Any, ...]:
        """Return cotangents of the tensor arguments from those of the outputs in `mask`."""
        given = iter(cts)
        full: list[Any] = []
        for has_ct, type in zip(mask, self.out_types):
            if has_ct:
                full.append(next(given))
            else:
                zeros = (
                    wrap(np.zeros(type.shape, type.dtype))
                    if is_differentiable(type.dtype)
                    else None
                )
                full.append(zeros if self.ctx._materialize else None)
        found = self.cls.backward(self.ctx, *self.cotangents(full))
        grads = gradients_of(self.cls, found, self.n_args, self.n_given)
        out = []
        for position, type in zip(self.positions, self.in_types):
            g = grads[position]
            if g is None or not is_differentiable(type.dtype):
                out.append(wrap(np.zeros(type.shape, type.dtype)))
            else:
                out.append(checked_gradient(self.cls, g, type))
        return tuple(out)


class FunctionCall(Primitive):
    """An eager call of a Function."""

    call: Any
    saves = "x"
    single_use = True

    def infer(self, *xs: Type) -> Any:
        return tuple(self.call.out_types) if self.call.several else self.call.out_types[0]

    def eval(self, *xs: np.ndarray) -> Any:
        raise self._opaque("evaluated again")

    def _opaque(self, what: str) -> GraphError:
        return GraphError(
            f"{self.call.cls.__name__}: this call cannot be {what}, because its backward reads "
            f"values and could not be traced; write it with tensor operations"
        )

    def vjp(self, ct: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        cts = ct if self.call.several else (ct,)
        mask = tuple(c is not None for c in cts)
        return bind(FunctionBackward(self.call, mask), *[c for c in cts if c is not None])

    def jvp(self, ts: Any, y: Any, *xs: Any) -> Any:
        raise self._opaque("differentiated in forward mode")

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> Any:
        raise self._opaque("batched")


class FunctionBackward(Primitive):
    """The backward of an eager call, run in Python during the backward pass."""

    call: Any
    mask: tuple[bool, ...]
    saves = ""
    single_use = True

    def infer(self, *cts: Type) -> Any:
        return tuple(self.call.in_types)

    def eval(self, *cts: np.ndarray) -> Any:
        before = local.grad
        local.grad = False
        try:
            return tuple(g.array() for g in self.inline(*[wrap(ct) for ct in cts]))
        finally:
            local.grad = before

    def inline(self, *cts: Any) -> Any:  # type: ignore[override]
        return self.call.backward(self.mask, cts)

    def jvp(self, ts: Any, y: Any, *xs: Any) -> Any:
        raise GraphError("the backward of a Function is differentiated by running it again")

    def vjp(self, ct: Any, y: Any, *xs: Any) -> Any:
        raise GraphError("the backward of a Function is differentiated by running it again")

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> Any:
        raise GraphError(
            "the backward of a Function is batched by tracing the Function inside vmap"
        )


def eager_call(cls: Any, args: Sequence[Any], kwargs: Any, flags: int, n_given: int) -> Any:
    """Run `forward` on detached tensors and record the call as one equation."""
    ctx = FunctionCtx()
    record = bool(flags) and (local.grad or bool(flags & TRACE))
    ctx.needs_input_grad = tuple(isinstance(x, Traced) and record and x.requires_grad for x in args)  # type: ignore[attr-defined]
    inside = [x.detach() if isinstance(x, Traced) else x for x in args]  # type: ignore[attr-defined]
    inputs, versions = [], []
    for x in args:
        if isinstance(x, Traced):
            node = node_of(x)
            node.saved = x.value
            inputs.append(node)
        versions.append(x.storage.version if isinstance(x, Traced) else 0)
    before = local.grad
    local.grad = False
    try:
        result = run_forward(cls, ctx, inside, kwargs)
    finally:
        local.grad = before
    outputs = result.tensors
    changed = [
        isinstance(x, Traced) and x.storage.version != version for x, version in zip(args, versions)
    ]
    dirty = dirty_arguments(cls, ctx, inside, outputs, changed)
    shared = {x.storage for x in inside if isinstance(x, Traced)}
    results = [
        wrap(y.value.copy() if y.storage in shared and i not in dirty else y.value)
        for i, y in enumerate(outputs)
    ]
    if not record:
        return result.rebuild(return_arguments(cls, args, results, dirty))
    call = Call(cls, ctx, args, n_given, result)
    serial, source = next_serial(), caller()
    constant = {id(y) for y in ctx._not_differentiable}
    for i, (inner, y) in enumerate(zip(outputs, results)):
        wanted = id(inner) not in constant and is_differentiable(y.dtype)
        out_flags = flags if wanted else flags & ~GRAD
        if out_flags:
            y.node = Node(
                FunctionCall(call), tuple(inputs), out_flags, None, y.type, source, serial, i
            )
    nodes = [y.node for y in results]
    results = return_arguments(cls, args, results, dirty)
    for node, y in zip(nodes, results):
        if node is not None:
            node.saved, node.stamp = y.value, (storage_of(y), storage_of(y).version)
    arguments = dict(zip(call.positions, inputs))
    argument_of = {id(inside[i]): node for i, node in arguments.items() if i not in dirty.values()}
    ctx._unpack = unpacker(ctx._saved, argument_of, outputs, nodes, results)
    ctx._saved = ()
    return result.rebuild(results)


def dirty_arguments(
    cls: Any,
    ctx: FunctionCtx,
    inside: Sequence[Any],
    outputs: Sequence[Any],
    changed: Sequence[bool],
) -> dict[int, int]:
    """Return {output: argument} of the arguments that `forward` has changed and returns."""
    marked = {id(x) for x in ctx._dirty}
    dirty = {}
    for i, x in enumerate(inside):
        if not isinstance(x, Traced) or not (changed[i] or id(x) in marked):
            continue
        found = [k for k, y in enumerate(outputs) if y is x]
        dirty.update(dict.fromkeys(found, i))
        if not found and id(x) in marked:
            facts = f"{cls.__name__}: argument {i} is marked dirty and is not returned"
            raise GraphError(f"{facts}; return every tensor that forward changes")
    written = {inside[i].storage for i in dirty.values()}
    for i, x in enumerate(inside):
        if changed[i] and ctx.needs_input_grad[i] and x.storage not in written:
            facts = f"{cls.__name__}: forward changes argument {i}, which requires a gradient"
            raise GraphError(f"{facts}; return it, or clone() it first")
    return dirty


def return_arguments(
    cls: Any, args: Sequence[Any], results: Sequence[Any], dirty: dict[int, int]
) -> list[Any]:
    """Return the results, where an argument that was changed is itself, with its new history."""
    out = list(results)
    for k, i in dirty.items():
        if is_tracked(out[k]):
            new = wrap(out[k].value.copy(), out[k].node)
            write(args[i], new, cls.__name__)
        out[k] = args[i]
    return out


def unpacker(
    saved: Sequence[Any],
    argument_of: dict[int, Node],
    outputs: Sequence[Any],
    output_nodes: Sequence[Any],
    results: Sequence[Any],
) -> Any:
    """Return a function that returns the saved tensors with the caller's history."""
    output_of = {id(y): i for i, y in enumerate(outputs)}
    nodes = [weakref.ref(node) if node is not None else (lambda: None) for node in output_nodes]
    values = [y.value for y in results]
    plan: list[Any] = []
    for x in saved:
        if x is None:
            plan.append(("constant", None))
        elif id(x) in argument_of:
            plan.append(("argument", argument_of[id(x)]))
        elif id(x) in output_of:
            plan.append(("output", output_of[id(x)]))
        else:
            plan.append(("constant", x))

    def unpack() -> tuple[Any, ...]:
        out = []
        for kind, what in plan:
            if kind == "argument":
                out.append(tensor_of(what))
            elif kind == "output":
                node = nodes[what]()
                out.append(wrap(values[what]) if node is None else tensor_of(node))
            else:
                out.append(what)
        return tuple(out)

    return unpack


# Inside a transform


def traced_call(cls: Any, args: Sequence[Any], kwargs: Any, flags: int, n_given: int) -> Any:
    """Trace `forward` and `backward` and bind them as one `custom_vjp` equation."""
    ctx = FunctionCtx()
    positions = [i for i, x in enumerate(args) if isinstance(x, Traced)]
    ctx.needs_input_grad = tuple(i in positions and bool(flags & GRAD) for i in range(len(args)))
    inside = list(args)
    inputs = []
    for i in positions:
        inside[i] = own_input(args[i])
        inputs.append(inside[i].node)
    result = run_forward(cls, ctx, inside, kwargs)
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
        return eager_call(cls, args, kwargs, flags, n_given)
    captured = [*[tensor_of(forward.slots[s]) for s in forward.captured], *backward.captured]
    graphs = forward.graph("forward"), backward.graph
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

    def __init__(
        self, cls: Any, ctx: FunctionCtx, args: Sequence[Any], positions: Sequence[int]
    ) -> None:
        self.cls, self.ctx = cls, ctx
        self.positions = list(positions)
        self.args = [None if i in positions else x for i, x in enumerate(args)]
        self.has_jvp = cls.jvp is not Function.jvp
        self.has_vmap = cls.vmap is not Function.vmap

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
    ctx: FunctionCtx,
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
    graph, captured = settle_state(what, graph, n, captured, recorder)
    return TracedBackward(graph, captured, tuple(returns))


def settle_state(
    what: str, graph: Graph, n: int, captured: Sequence[Any], recorder: BodyRecorder
) -> tuple[Graph, list[Any]]:
    """Write the state that a `backward` leaves, and return its Graph and what that captures."""
    from lucid.func.control_flow import hoist_invariant
    from lucid.func.state import locks_of, write_back

    state = recorder.found_state()
    n_out = len(graph.outputs) - len(state)
    with locks_of(state):
        before = [bind(COPY, s.tensor) for s in state]
        graph, captured = hoist_invariant(graph, n, [*before, *captured])
        known: dict[Any, Any] = dict(zip(graph.inputs[n:], captured))
        after = graph.outputs[n_out:]
        for s, y in zip(state, after):
            if y not in known:
                raise GraphError(
                    f"{what}: a value that depends on a gradient is written to a tensor from "
                    f"outside, {s.tensor.type}; return it instead"
                    f"   [{as_source(recorder.write_sources.get(id(s.tensor)))}]"
                )
        write_back(state, [known[y] for y in after], what)
    return Graph(graph.name, graph.inputs, graph.equations, graph.outputs[:n_out]), captured


def is_tracked(x: Any) -> bool:
    return isinstance(x, Traced) and x.node is not None and bool(x.node.flags)


@public("autograd")
def once_differentiable(backward: Any) -> Any:
    """Mark a backward as not differentiable itself: it runs under `no_grad`.

    Its results can be used, but differentiating them again raises an error.
    """
    check_callable("once_differentiable", backward)
    name = getattr(backward, "__qualname__", "backward").rpartition("<locals>.")[2]

    def wrapped(ctx: Any, *grads: Any) -> Any:
        recorded = local.grad
        with Grad(False):
            result = backward(ctx, *grads)
        origins = [x for x in grads if is_tracked(x)]
        if recorded:
            origins += [x for x in ctx.saved_tensors if is_tracked(x)]
        if not origins:
            return result
        mark = OnceDifferentiable(name)
        several = isinstance(result, (tuple, list))
        results = [
            None if g is None else bind(mark, without_gradient(as_tensor(g)), *origins)
            for g in (result if several else (result,))
        ]
        return tuple(results) if several else results[0]

    wrapped.__name__ = getattr(backward, "__name__", "backward")
    wrapped.__signature__ = inspect.signature(backward)  # type: ignore[attr-defined]
    return wrapped
