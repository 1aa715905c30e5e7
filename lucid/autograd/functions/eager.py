"""Eager calls of a Function: `forward` runs once, `backward` in Python during the backward pass."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.autograd.functions.calls import (
    ForwardResult,
    checked_gradient,
    dirty_arguments,
    gradients_of,
    is_tracked,
)
from lucid.errors import GraphError
from lucid.ir.primitive import Primitive
from lucid.ir.pytree import flatten
from lucid.ir.types import Type, is_differentiable
from lucid.support.source import caller
from lucid.tape.bind import bind
from lucid.tape.modes import local
from lucid.tape.node import GRAD, TRACE, Node, Packed, Traced, next_serial, node_type, wrap
from lucid.tape.views import node_of, storage_of, tensor_of
from lucid.tape.writes import write


class Call:
    """One eager call of a Function: its context, argument positions and types."""

    def __init__(
        self,
        cls: Any,
        ctx: Any,
        args: Sequence[Any],
        kwargs: Any,
        n_given: int,
        result: ForwardResult,
    ) -> None:
        self.cls = cls
        self.ctx = ctx
        self.constants = [None if isinstance(x, Traced) else x for x in args]
        self.kwargs = kwargs
        self.n_args, self.n_given = len(args), n_given
        self.positions = [i for i, x in enumerate(args) if isinstance(x, Traced)]
        self.in_types = [args[i].type for i in self.positions]
        self.out_types: list[Type] = [y.type for y in result.tensors]
        self.several = result.several
        self.cotangents = result.cotangents

    @property
    def name(self) -> str:
        return self.cls._label(self.constants)

    def again(self, tensors: Sequence[Any]) -> list[Any]:
        """Call the Function with other tensors; return the leaves of its result."""
        args = list(self.constants)
        for i, x in zip(self.positions, tensors):
            args[i] = x
        return flatten(self.cls._again(args, self.kwargs))[0]

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
            "values and could not be traced; write it with tensor operations"
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


def eager_call(
    cls: Any, ctx: Any, args: Sequence[Any], kwargs: Any, flags: int, n_given: int
) -> Any:
    """Run `forward` on detached tensors and record the call as one equation."""
    record = bool(flags) and (local.grad or bool(flags & TRACE))
    ctx.needs_input_grad = tuple(isinstance(x, Traced) and record and x.requires_grad for x in args)  # type: ignore[attr-defined]
    inside = [x.detach() if isinstance(x, Traced) else x for x in args]  # type: ignore[attr-defined]
    inputs, versions, kept = [], [], []
    for x in args:
        if isinstance(x, Traced):
            node = node_of(x)
            kept.append(node.saved)
            node.saved = x.value
            inputs.append(node)
        versions.append(x.storage.version if isinstance(x, Traced) else 0)
    before = local.grad
    local.grad = False
    try:
        result = cls._run_forward(ctx, inside, kwargs)
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
    call = Call(cls, ctx, args, kwargs, n_given, result)
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
    hooks = None if flags & TRACE else local.saved_hooks
    ctx._unpack = unpacker(ctx._saved, argument_of, outputs, nodes, results, hooks)
    ctx._saved = ()
    if hooks is not None:  # nothing but what is packed stays
        for node, saved in zip((*inputs, *nodes), (*kept, *[None] * len(nodes))):
            if node is not None:
                node.type, node.saved, node.stamp = node_type(node), saved, None
    return result.rebuild(results)


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
    hooks: Any,
) -> Any:
    """Return a function that returns the saved tensors with the caller's history.

    hooks    what packs them, see `saved_tensors`, or None
    """
    output_of = {id(y): i for i, y in enumerate(outputs)}
    nodes = [weakref.ref(node) if node is not None else (lambda: None) for node in output_nodes]
    values: list[Any] = [y.value for y in results]
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

    if hooks is not None:
        used = {what for kind, what in plan if kind == "output"}
        values = [hooks.packed(y) if i in used else None for i, y in enumerate(results)]
        plan = [packed_entry(hooks, kind, what) for kind, what in plan]

    def unpack() -> tuple[Any, ...]:
        out = []
        for kind, what in plan:
            if kind == "argument":
                out.append(tensor_of(what))
            elif kind == "output":
                node, value = nodes[what](), values[what]
                if value.__class__ is Packed:
                    out.append(wrap(value.unpack(), node))
                else:
                    out.append(wrap(value) if node is None else tensor_of(node))
            elif what.__class__ is Packed:
                out.append(wrap(what.unpack()))
            else:
                out.append(what)
        return tuple(out)

    return unpack


def packed_entry(hooks: Any, kind: str, what: Any) -> tuple[str, Any]:
    """Return an entry of the plan of `unpacker` with its tensor packed."""
    if kind == "argument":
        return kind, hooks.saved_node(what, tensor_of(what))
    return kind, what if kind == "output" or what is None else hooks.packed(what)
