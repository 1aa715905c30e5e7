"""The arguments and results of a user's Function: defaults, outputs of any kind, checks."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, DTypeError, GraphError, ShapeError
from lucid.ir.types import Type
from lucid.ops.core.constant_key import constant_key, value_key
from lucid.ops.core.promote import as_tensor, cast
from lucid.tape.node import Traced


def with_defaults(cls: Any, args: Sequence[Any], kwargs: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the arguments of `forward` with its defaults, as `setup_context` takes them."""
    try:
        bound = inspect.signature(cls.forward).bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(f"{cls.__name__}.forward: {error}") from None
    bound.apply_defaults()
    return bound.args, bound.kwargs


class ForwardResult:
    """What `forward` returned: its tensors, and outputs that are not tensors.

    several      whether it was a tuple
    is_tensor    for each output, whether it is a tensor
    """

    def __init__(self, result: Any) -> None:
        self.several = isinstance(result, (tuple, list))
        outputs = list(result) if self.several else [result]
        tensors = (Traced, np.ndarray, np.generic)
        if not self.several:
            tensors += (int, float, complex)  # type: ignore[assignment]
        self.is_tensor = [isinstance(y, tensors) for y in outputs]
        self.others = [None if there else y for y, there in zip(outputs, self.is_tensor)]
        self.tensors = [as_tensor(y) for y, there in zip(outputs, self.is_tensor) if there]

    def rebuild(self, tensors: Sequence[Any]) -> Any:
        """Return the result with other tensors in the place of its own."""
        rest = iter(tensors)
        full = [next(rest) if there else y for y, there in zip(self.others, self.is_tensor)]
        return tuple(full) if self.several else full[0]

    def cotangents(self, given: Sequence[Any]) -> list[Any]:
        """Return an entry for each output, None for those that are not tensors."""
        rest = iter(given)
        return [next(rest) if there else None for there in self.is_tensor]


def gradients_of(cls: Any, result: Any, n_args: int, n_given: int | None = None) -> list[Any]:
    """Return what `backward` returned as one entry for each positional argument.

    n_given    how many of them the caller passed; the rest are defaults, which may be left out
    """
    grads = list(result) if isinstance(result, (tuple, list)) else [result]
    while len(grads) > n_args and grads[-1] is None:
        grads.pop()
    if n_given is not None and n_given <= len(grads) < n_args:
        grads += [None] * (n_args - len(grads))
    if len(grads) != n_args:
        raise GraphError(
            f"{cls.__name__}.backward returned {len(grads)} gradients for {n_args} arguments "
            "of forward; return one for each, or None"
        )
    return grads


def checked_gradient(cls: Any, g: Any, type: Type) -> Any:
    return derivative_like(f"{cls.__name__}.backward returned a gradient", "an argument", g, type)


def derivative_like(said: str, like: str, x: Any, type: Type) -> Any:
    """Return a derivative that a user's rule gave, checked and of the type it must have.

    said    the start of the error, such as "f: the rule returned a tangent"
    like    what it belongs to, such as "an output"
    """
    try:
        x = as_tensor(x)
    except (DTypeError, ShapeError):
        raise DTypeError(f"{said} that is not an array: {x!r:.40}") from None
    if x.dtype.kind == "c" and type.dtype.kind != "c":
        facts = f"{said} of dtype {x.dtype} for {like} of dtype {type.dtype}"
        raise DTypeError(f"{facts}; take its .real")
    x = cast(x, type.dtype)
    if x.shape == type.shape:
        return x
    if x.ndim:
        raise ShapeError(f"{said} of shape {x.shape} for {like} of shape {type.shape}")
    return x.expand(type.shape)


def apply_by_jvp(cls: Any, args: Sequence[Any], kwargs: Any) -> Any:
    """Call a Function that has a jvp and no backward: reverse mode is the transpose of its jvp."""
    positions = tuple([i for i, x in enumerate(args) if isinstance(x, Traced)])
    others = [None if i in positions else x for i, x in enumerate(args)]
    call = JvpCall(cls, positions, others, kwargs)
    key = constant_key([positions, others, kwargs], value_key)
    calls = cls.__dict__.get("_jvp_calls")
    if calls is None:
        cls._jvp_calls = calls = {}
    try:
        call = calls.setdefault(key, call)  # equal calls are one rule, differentiated once
    except TypeError:
        pass
    tensors = call.function(*[args[i] for i in positions])
    return call.result.rebuild(tensors)


class JvpCall:
    """Calls of a Function by its jvp that differ in their tensors alone.

    result    what the last `forward` returned, without the tensors
    """

    def __init__(
        self, cls: Any, positions: tuple[int, ...], others: list[Any], kwargs: Any
    ) -> None:
        from lucid.func.custom_rules.forward import custom_jvp

        self.cls, self.positions, self.others, self.kwargs = cls, positions, others, kwargs
        self.result: Any = None

        def forward(*tensors: Any) -> Any:
            return tuple(self.forward(tensors)[1].tensors)

        forward.__name__ = cls.__name__
        self.function = custom_jvp(forward)
        self.function.defjvp(self.rule)

    def filled(self, tensors: Sequence[Any]) -> list[Any]:
        args = list(self.others)
        for i, x in zip(self.positions, tensors):
            args[i] = x
        return args

    def forward(self, tensors: Sequence[Any]) -> tuple[Any, ForwardResult]:
        from lucid.autograd.functions.function import FunctionCtx

        ctx = FunctionCtx()
        result = self.cls._run_forward(ctx, self.filled(tensors), self.kwargs)
        self.result = copy(result)
        self.result.tensors = []
        return ctx, result

    def rule(self, primals: Any, tangents: Any) -> Any:
        ctx, result = self.forward(primals)
        ctx._saved = ctx._saved_forward or ctx._saved
        given: list[Any] = [None] * len(self.others)
        for i, t in zip(self.positions, tangents):
            given[i] = t
        found = self.cls.jvp(ctx, *given)
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        return tuple(result.tensors), tuple(tangents_of(self.cls, found, result.tensors))


def tangents_of(cls: Any, found: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    """Return the tangents that a Function's `jvp` gave, checked against the outputs."""
    if len(found) != len(outputs):
        facts = f"{cls.__name__}.jvp returned {len(found)} tangents for {len(outputs)} outputs"
        raise GraphError(f"{facts}; return one for each, or None")
    said = f"{cls.__name__}.jvp returned a tangent"
    return [
        None if t is None else derivative_like(said, "an output", t, y.type)
        for t, y in zip(found, outputs)
    ]


def dirty_arguments(
    cls: Any,
    ctx: Any,
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


def is_tracked(x: Any) -> bool:
    return isinstance(x, Traced) and x.node is not None and bool(x.node.flags)
