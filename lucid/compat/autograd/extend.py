"""primitive, defvjp, defjvp: NumPy code with hand-written derivatives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import count
from typing import Any

from lucid.autograd import Function
from lucid.compat.autograd.core import VSpace, conjugate, getval, isbox, vspace
from lucid.ops.core.promote import as_tensor
from lucid.tape.conversion import needs_grad

__all__ = [
    "Primitive", "VSpace", "defjvp", "defvjp", "defvjp_argnum", "defvjp_argnums", "getval", "isbox",
    "notrace_primitive", "primitive", "vspace",
]  # fmt: skip


class Primitive:
    """A function of NumPy arrays that becomes one operation when called on tensors."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.vjps: dict[int, Any] = {}
        self.jvps: dict[int, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not any(isbox(x) for x in args):
            return self.function(*args, **kwargs)
        if self.vjps or not self.jvps:
            return ByVjp.apply(self, kwargs, *args)
        return ByJvp.apply(self, kwargs, *args)

    def defvjp(self, vjpmaker: Any, argnum: int = 0) -> None:
        """Define the rule of one argument, as older programs do: maker(g, ans, vs, gvs, *args)."""
        self.vjps[argnum] = lambda ans, *args, **kwargs: (
            lambda g: vjpmaker(g, ans, vspace(args[argnum]), vspace(ans), *args, **kwargs)
        )

    def defgrad(self, gradmaker: Any, argnum: int = 0) -> None:
        """Define the rule of one argument, as the oldest programs do: maker(ans, *args)(g)."""
        self.vjps[argnum] = gradmaker

    def defvjp_is_zero(self, argnums: Any = (0,)) -> None:
        """Declare that arguments have no derivative."""
        self.vjps.update(dict.fromkeys(argnums))

    def run(self, ctx: Any, kwargs: Any, args: Any) -> Any:
        """Compute the value from arrays, and save what the rules need."""
        value = as_tensor(self.function(*[getval(x) for x in args], **kwargs))
        ctx.primitive, ctx.kwargs, ctx.args = self, kwargs, args
        ctx.save_for_backward(*[x for x in args if isbox(x)], value)
        return value

    def saved(self, ctx: Any) -> tuple[list[Any], Any]:
        """Return the arguments and the value, as tensors where they were."""
        *tensors, value = ctx.saved_tensors
        rest = iter(tensors)
        args = [next(rest) if isbox(x) else x for x in ctx.args]
        if any(needs_grad(x) for x in tensors):  # to be differentiated again
            value = self(*args, **ctx.kwargs)
        return args, value

    def rule(self, rules: dict[int, Any], kind: str, i: int) -> Any:
        if i not in rules:
            raise NotImplementedError(f"{kind} of {self.__name__} wrt argnums ({i},) not defined")  # type: ignore[attr-defined]
        return rules[i]


class PrimitiveCall(Function):
    """A call of a primitive."""

    @staticmethod
    def forward(ctx: Any, primitive: Primitive, kwargs: Any, *args: Any) -> Any:
        return primitive.run(ctx, kwargs, args)


class ByVjp(PrimitiveCall):
    """A call of a primitive with vjp rules."""

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        (g,) = cotangents
        (args, value), rules = ctx.primitive.saved(ctx), ctx.primitive.vjps
        found: list[Any] = [None, None]
        for i, x in enumerate(args):
            maker = ctx.primitive.rule(rules, "VJP", i) if isbox(x) else None
            found.append(
                None
                if maker is None
                else as_tensor(conjugate(maker(value, *args, **ctx.kwargs)(conjugate(g))))
            )
        return tuple(found)


class ByJvp(PrimitiveCall):
    """A call of a primitive that has only jvp rules."""

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        (args, value), rules = ctx.primitive.saved(ctx), ctx.primitive.jvps
        total: Any = None
        for i, t in enumerate(tangents[2:]):
            if t is None or (rule := ctx.primitive.rule(rules, "JVP", i)) is None:
                continue
            part = (
                ctx.primitive(*args[:i], t, *args[i + 1 :], **ctx.kwargs)
                if rule == "same"
                else rule(t, value, *args, **ctx.kwargs)
            )
            total = part if total is None else total + part
        return value * 0.0 if total is None else as_tensor(total)


def primitive(function: Callable[..., Any]) -> Primitive:
    """Turn a function of NumPy arrays into an operation; defvjp and defjvp give it rules."""
    return Primitive(function)


def notrace_primitive(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of NumPy arrays so that its value is a constant for derivatives."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*[getval(x) for x in args], **kwargs)

    return call


def defvjp(fun: Primitive, *vjpmakers: Any, **options: Any) -> None:
    """Define vjp rules by argument: `maker(value, *args, **kwargs)` returns g -> cotangent."""
    fun.vjps.update(zip(options.get("argnums", count()), vjpmakers))


def defvjp_argnum(fun: Primitive, vjpmaker: Any) -> None:
    """Define the vjp rule of all arguments: `maker(argnum, value, args, kwargs)`."""
    for i in range(16):
        fun.vjps[i] = lambda ans, *args, i=i, **kwargs: vjpmaker(i, ans, args, kwargs)


def defvjp_argnums(fun: Primitive, vjpmaker: Any) -> None:
    """Define the vjp rules of sets of arguments: `maker(argnums, value, args, kwargs)`."""
    for i in range(16):
        fun.vjps[i] = lambda ans, *args, i=i, **kwargs: (
            lambda g: vjpmaker((i,), ans, args, kwargs)(g)[0]
        )


def defjvp(fun: Primitive, *jvpfuns: Any, **options: Any) -> None:
    """Define jvp rules by argument: `rule(g, value, *args, **kwargs)`; "same" if it is linear."""
    fun.jvps.update(zip(options.get("argnums", count()), jvpfuns))
