"""Function: an operation with a backward of the user's own.

In an eager graph `forward` runs once and `backward` is called, with values, when gradients pass.
Inside a transform both are traced and become one `custom_vjp` equation, which has every rule; a
backward that cannot be traced (it reads values) is still called as it is where values are known.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Sequence
from copy import copy
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from lucid.errors import DTypeError, GraphError, ShapeError, TracedValueError
from lucid.ir.primitive import Primitive
from lucid.ir.source import at_line, caller
from lucid.ir.types import Type, is_differentiable
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.higher_order.custom_derivative import CustomFunction, CustomVjp
from lucid.tape.bind import bind, fresh
from lucid.tape.cut import cut
from lucid.tape.modes import local
from lucid.tape.node import GRAD, TRACE, Node, Trace, Traced, is_recording, leaf, next_serial, wrap
from lucid.tape.views import node_of, tensor_of


class FunctionCtx:
    """What `forward` leaves for `backward`: saved tensors, and any attribute that is set on it."""

    needs_input_grad: tuple[bool, ...] = ()

    def __init__(self) -> None:
        self._saved: tuple[Any, ...] = ()
        self._saved_forward: tuple[Any, ...] = ()
        self._unpack: Any = None
        self._not_differentiable: tuple[Any, ...] = ()
        self._materialize = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (inputs, outputs or others; None is allowed) for `backward`."""
        for x in tensors:
            if x is not None and not isinstance(x, Traced):
                raise DTypeError(
                    f"save_for_backward: a {type(x).__name__} is not a tensor; "
                    "set it as an attribute "
                    f"of ctx instead{at_line()}"
                )
        self._saved = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for `jvp`."""
        self._saved_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` was given; an error where it was changed in place since."""
        return self._saved if self._unpack is None else self._unpack()

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """Say that no gradient flows through these outputs."""
        self._not_differentiable = outputs

    def mark_dirty(self, *inputs: Any) -> None:
        """Accepted for PyTorch's sake; tensors that are changed in place are found without it."""

    def set_materialize_grads(self, value: bool) -> None:
        """With False `backward` receives None, not zeros, for an output without a gradient."""
        self._materialize = bool(value)


class Function:
    """Base class of operations with an explicit backward; used through `apply`, never instantiated.

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

    generate_vmap_rule = False  # PyTorch's wish for a batch rule: here there always is one

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError(
            f"{type(self).__name__} is not instantiated; call {type(self).__name__}.apply(...)"
        )

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the result; leave on `ctx` what `backward` needs."""
        raise TypeError("a Function defines forward(ctx, ...) as a staticmethod")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """A gradient for each positional argument of `forward`, None where there is none."""
        raise TypeError("a Function defines backward(ctx, ...) as a staticmethod")

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Optional: the tangents of the outputs; without it they follow from `backward`."""
        raise TypeError("this Function has no jvp")

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
        """Optional: (outputs of a batch, their out_dims); without it the batch is traced."""
        raise TypeError("this Function has no vmap")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Optional: leaves on `ctx` what `backward` needs, and `forward` then takes no ctx."""

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the operation and record it."""
        if cls is Function:
            raise TypeError(
                "Function.apply: define a subclass with forward and backward, and apply that"
            )
        flags = 0
        for x in args:
            if isinstance(x, Traced) and x.node is not None:
                flags |= x.node.flags
        return (
            traced_call(cls, args, kwargs, flags)
            if flags & TRACE or is_recording()
            else eager_call(cls, args, kwargs, flags)
        )


def run_forward(
    cls: Any, ctx: FunctionCtx, args: Sequence[Any], kwargs: Any
) -> tuple[list[Any], bool]:
    """The outputs as a list of tensors, and whether there was a tuple of them."""
    if "setup_context" in vars(cls) or cls.setup_context is not Function.setup_context:
        result = cls.forward(*args, **kwargs)
        cls.setup_context(ctx, tuple(args), result)
    else:
        result = cls.forward(ctx, *args, **kwargs)
    several = isinstance(result, (tuple, list))
    outputs = [as_tensor(y) for y in (result if several else (result,))]
    return outputs, several


def gradients_of(cls: Any, result: Any, n_args: int) -> list[Any]:
    """What `backward` returned, one entry for each positional argument."""
    grads = list(result) if isinstance(result, (tuple, list)) else [result]
    while len(grads) > n_args and grads[-1] is None:
        grads.pop()
    if len(grads) != n_args:
        raise GraphError(
            f"{cls.__name__}.backward returned {len(grads)} gradients for {n_args} arguments "
            "of forward; "
            f"return one for each, None where there is none{at_line()}"
        )
    return grads


def checked_gradient(cls: Any, g: Any, type: Type) -> Any:
    g = cast(as_tensor(g), type.dtype)
    if g.shape != type.shape:
        if g.ndim:
            raise ShapeError(
                f"{cls.__name__}.backward returned a gradient of shape {g.shape} "
                "for an argument of "
                f"shape {type.shape}{at_line()}"
            )
        g = g.expand(type.shape)
    return g


# In an eager graph


class Call:
    """One eager call of a Function: its context, and what its backward has to be told."""

    def __init__(self, cls: Any, ctx: FunctionCtx, args: Sequence[Any]) -> None:
        self.cls = cls
        self.ctx = ctx
        self.n_args = len(args)
        self.positions = [i for i, x in enumerate(args) if isinstance(x, Traced)]
        self.in_types = [args[i].type for i in self.positions]
        self.out_types: list[Type] = []
        self.several = False

    def backward(self, mask: Sequence[bool], cts: Sequence[Any]) -> tuple[Any, ...]:
        """The cotangents of the tensor arguments, from those outputs that have one."""
        given = iter(cts)
        full: list[Any] = []
        for there, type in zip(mask, self.out_types):
            if there:
                full.append(next(given))
            else:
                zeros = (
                    wrap(np.zeros(type.shape, type.dtype))
                    if is_differentiable(type.dtype)
                    else None
                )
                full.append(zeros if self.ctx._materialize else None)
        grads = gradients_of(self.cls, self.cls.backward(self.ctx, *full), self.n_args)
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
    once = True

    def infer(self, *xs: Type) -> Any:
        return tuple(self.call.out_types) if self.call.several else self.call.out_types[0]

    def eval(self, *xs: np.ndarray) -> Any:
        raise self._opaque("evaluated again")

    def _opaque(self, what: str) -> GraphError:
        return GraphError(
            f"{self.call.cls.__name__}: this call cannot be {what}, "
            "because its backward reads values "
            f"and so could not be traced; write it with tensor operations{at_line()}"
        )

    def vjp(self, ct: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        cts = ct if self.call.several else (ct,)
        mask = tuple(c is not None for c in cts)
        return bind(FunctionBackward(self.call, mask), *[c for c in cts if c is not None])

    def jvp(self, ts: Any, y: Any, *xs: Any) -> Any:
        raise self._opaque("differentiated forwards")

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> Any:
        raise self._opaque("batched")


class FunctionBackward(Primitive):
    """The backward of an eager call, run in Python when gradients pass."""

    call: Any
    mask: tuple[bool, ...]
    saves = ""
    once = True

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


def eager_call(cls: Any, args: Sequence[Any], kwargs: Any, flags: int) -> Any:
    """Run `forward` on plain values and record the call as one equation."""
    ctx = FunctionCtx()
    record = bool(flags) and (local.grad or bool(flags & TRACE))
    ctx.needs_input_grad = tuple(isinstance(x, Traced) and record and x.requires_grad for x in args)  # type: ignore[attr-defined]
    inside = [x.detach() if isinstance(x, Traced) else x for x in args]  # type: ignore[attr-defined]
    before = local.grad
    local.grad = False
    try:
        outputs, several = run_forward(cls, ctx, inside, kwargs)
    finally:
        local.grad = before
    results = [wrap(y.value) for y in outputs]
    if not record:
        return tuple(results) if several else results[0]
    call = Call(cls, ctx, args)
    call.out_types, call.several = [y.type for y in outputs], several
    inputs = []
    for position in call.positions:
        node = node_of(args[position])
        node.saved = args[position].value
        inputs.append(node)
    serial, source = next_serial(), caller()
    constant = {id(y) for y in ctx._not_differentiable}
    for i, (inner, y) in enumerate(zip(outputs, results)):
        wanted = id(inner) not in constant and is_differentiable(y.dtype)
        out_flags = flags if wanted else flags & ~GRAD
        if out_flags:
            y.node = Node(
                FunctionCall(call), tuple(inputs), out_flags, None, y.type, source, serial, i
            )
    ctx._unpack = unpacker(ctx._saved, inside, args, outputs, results)
    ctx._saved = ()
    return tuple(results) if several else results[0]


def unpacker(
    saved: Sequence[Any],
    inside: Sequence[Any],
    args: Sequence[Any],
    outputs: Sequence[Any],
    results: Sequence[Any],
) -> Any:
    """A function that gives the saved tensors as the caller knows them, with their history."""
    argument_of = {id(x): node_of(args[i]) for i, x in enumerate(inside) if isinstance(x, Traced)}
    output_of = {id(y): i for i, y in enumerate(outputs)}
    nodes = [weakref.ref(y.node) if y.node is not None else (lambda: None) for y in results]
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
                out.append(wrap(values[what], nodes[what]()))
            else:
                out.append(what)
        return tuple(out)

    return unpack


# Inside a transform


_depth = count(1000)


def traced_call(cls: Any, args: Sequence[Any], kwargs: Any, flags: int) -> Any:
    """Trace `forward` and `backward` and bind them as one `custom_vjp` equation."""
    ctx = FunctionCtx()
    positions = [i for i, x in enumerate(args) if isinstance(x, Traced)]
    ctx.needs_input_grad = tuple(i in positions and bool(flags & GRAD) for i in range(len(args)))
    inside = list(args)
    inputs = []
    for i in positions:
        inside[i] = fresh(args[i], TRACE | (GRAD if is_differentiable(args[i].dtype) else 0))
        inputs.append(inside[i])
    outputs, several = run_forward(cls, ctx, inside, kwargs)
    saved = [x for x in ctx._saved if x is not None]
    kept = [x for x in ctx._saved_forward if x is not None]
    forward = cut(inputs, [*outputs, *saved, *kept])
    try:
        backward, returns = trace_backward(cls, ctx, [*saved, *kept], outputs, len(args), positions)
    except TracedValueError:
        if any(args[i].value is None for i in positions):
            raise
        return eager_call(cls, args, kwargs, flags)
    captured = [tensor_of(c.slots[s]) for c in (forward, backward) for s in c.captured]
    graphs = forward.graph("forward"), backward.graph("backward")
    rules = Rules(cls, ctx, args, positions)
    op: Primitive
    if rules.has_jvp or rules.has_vmap:
        op = CustomFunction(*graphs, len(positions), len(outputs), returns, rules)
    else:
        op = CustomVjp(*graphs, len(positions), len(outputs), returns)
    results = bind(op, *[args[i] for i in positions], *captured)[: len(outputs)]
    constant = {id(y) for y in ctx._not_differentiable}
    results = [r.detach() if id(y) in constant else r for r, y in zip(results, outputs)]
    return tuple(results) if several else results[0]


class BatchInfo(NamedTuple):
    """What a Function's `vmap` is told beside the arguments."""

    batch_size: int
    randomness: str


class Rules:
    """The jvp and vmap of a Function's own, for one call."""

    def __init__(
        self, cls: Any, ctx: FunctionCtx, args: Sequence[Any], positions: Sequence[int]
    ) -> None:
        self.cls, self.ctx = cls, ctx
        self.positions = list(positions)
        self.args = [None if i in positions else x for i, x in enumerate(args)]
        self.has_jvp = cls.jvp is not Function.jvp
        self.has_vmap = cls.vmap is not Function.vmap

    def tangents(self, ts: Sequence[Any], saved: Sequence[Any]) -> tuple[Any, ...]:
        """The tangents of the outputs; `saved` are those for backward, then those for jvp."""
        ctx = copy(self.ctx)
        for_jvp = self.ctx._saved_forward or self.ctx._saved
        n = sum(x is not None for x in for_jvp)
        rest = iter(saved[len(saved) - n :] if self.ctx._saved_forward else saved[:n])
        ctx._saved = tuple(None if x is None else next(rest) for x in for_jvp)
        ctx._unpack = None
        full: list[Any] = [None] * len(self.args)
        for i, t in zip(self.positions, ts):
            full[i] = t
        result = self.cls.jvp(ctx, *full)
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)

    def mapped(self, n: int, flags: Sequence[bool], xs: Sequence[Any]) -> list[Any]:
        """The outputs of a batch, with the examples in axis 0."""
        args = list(self.args)
        dims: list[int | None] = [None] * len(args)
        for i, x, flag in zip(self.positions, xs, flags):
            args[i], dims[i] = x, 0 if flag else None
        result, out_dims = self.cls.vmap(BatchInfo(n, "error"), tuple(dims), *args)
        outputs = result if isinstance(result, (tuple, list)) else (result,)
        places = out_dims if isinstance(out_dims, (tuple, list)) else [out_dims] * len(outputs)
        return [in_front(as_tensor(y), place, n) for y, place in zip(outputs, places)]


def in_front(y: Any, place: int | None, n: int) -> Any:
    return y.expand((n, *y.shape)) if place is None else y.movedim(place, 0)


def trace_backward(
    cls: Any,
    ctx: FunctionCtx,
    saved: Sequence[Any],
    outputs: Sequence[Any],
    n_args: int,
    positions: Sequence[int],
) -> tuple[Any, tuple[int, ...]]:
    """The Cut of `backward` from (saved, cotangents), and the arguments it gives gradients for."""
    trace = Trace(f"{cls.__name__}.backward", next(_depth))
    stand_ins = [leaf(x.type, trace) for x in saved]
    remaining = iter(stand_ins)
    ctx._saved = tuple(None if x is None else next(remaining) for x in ctx._saved)
    cts = [leaf(y.type, trace) for y in outputs]
    try:
        grads = gradients_of(cls, cls.backward(ctx, *cts), n_args)
        kept, returns = [], []
        for number, position in enumerate(positions):
            if grads[position] is not None:
                kept.append(as_tensor(grads[position]))
                returns.append(number)
        return cut([*stand_ins, *cts], kept), tuple(returns)
    finally:
        trace.active = False


def once_differentiable(backward: Any) -> Any:
    """Mark a backward that is not itself to be differentiated: its results are constants."""

    def wrapped(ctx: Any, *grads: Any) -> Any:
        result = backward(ctx, *grads)
        results = result if isinstance(result, (tuple, list)) else (result,)
        detached = tuple(g.detach() if isinstance(g, Traced) else g for g in results)  # type: ignore[attr-defined]
        return detached if isinstance(result, (tuple, list)) else detached[0]

    wrapped.__name__ = getattr(backward, "__name__", "backward")
    wrapped.__signature__ = inspect.signature(backward)  # type: ignore[attr-defined]
    return wrapped
