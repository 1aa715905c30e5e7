"""Function: an operation with a user-defined backward.

In an eager graph `forward` runs once and `backward` is called, with values, during the backward
pass. Inside a transform both are traced and become one `custom_vjp` equation, which has every rule;
a backward that cannot be traced (it reads values) is still called directly if values are known.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from lucid.autograd.functions.calls import (
    ForwardResult,
    apply_by_jvp,
    is_tracked,
    with_defaults,
)
from lucid.autograd.functions.eager import eager_call
from lucid.autograd.functions.traced import traced_call
from lucid.autograd.modes import Grad
from lucid.errors import ArgumentError, DTypeError
from lucid.ops.core.arguments import check_callable
from lucid.ops.core.promote import as_tensor
from lucid.public.declare import public
from lucid.tape.bind import bind, without_gradient
from lucid.tape.markers import OnceDifferentiable
from lucid.tape.modes import local
from lucid.tape.node import TRACE, Traced, is_recording


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
                    "set it as an attribute of ctx instead"
                )
        self._saved = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Save tensors for `jvp`."""
        self._saved_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors passed to `save_for_backward`; raises if one was modified in place since."""
        return self._saved if self._unpack is None else self._unpack()

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """Mark outputs as not differentiable."""
        self._not_differentiable = outputs

    def mark_dirty(self, *inputs: Any) -> None:
        """Declare that `forward` modifies these inputs in place; it must return all of them."""
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
        if cls._defines("setup_context"):
            args, kwargs = with_defaults(cls, args, kwargs)
        if cls._defines("jvp") and not cls._defines("backward"):
            return apply_by_jvp(cls, args, kwargs)
        flags = 0
        for x in args:
            if isinstance(x, Traced) and x.node is not None:
                flags |= x.node.flags
        call = traced_call if flags & TRACE or is_recording() else eager_call
        return call(cls, FunctionCtx(), args, kwargs, flags, n_given)

    @classmethod
    def _label(cls, args: Sequence[Any]) -> str:
        """The name of a call with these arguments."""
        return cls.__name__

    @classmethod
    def _again(cls, args: Sequence[Any], kwargs: Any) -> Any:
        """Call the operation once more, with other tensors."""
        return cls.apply(*args, **kwargs)

    @classmethod
    def _defines(cls, method: str) -> bool:
        """True if the subclass has a method of its own."""
        return getattr(cls, method) is not getattr(Function, method)

    @classmethod
    def _run_forward(cls, ctx: FunctionCtx, args: Sequence[Any], kwargs: Any) -> ForwardResult:
        """Run `forward`, and `setup_context` if there is one."""
        if cls._defines("setup_context"):
            result = cls.forward(*args, **kwargs)
            cls.setup_context(ctx, tuple(args), result)
        else:
            result = cls.forward(ctx, *args, **kwargs)
        return ForwardResult(result)


def missing_method(remedy: str) -> ArgumentError:
    return ArgumentError(f"autograd.Function: {remedy}")


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
