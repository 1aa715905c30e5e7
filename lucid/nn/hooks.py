"""Hooks of a Module: what is called before and after its forward, and in its backward."""

from __future__ import annotations

from typing import Any

from lucid.autograd.function import Function
from lucid.ir.pytree import flatten, unflatten
from lucid.tensors.tensor import HookHandle, Tensor

KINDS = ("before", "after", "backward_before", "backward_after")
OF_STATE = ("state_before", "state_after", "load_before", "load_after")


class Hooks:
    """The hooks of one Module by kind, in the order in which they are called."""

    def __init__(self) -> None:
        self.by_kind: dict[str, dict[int, Any]] = {kind: {} for kind in (*KINDS, *OF_STATE)}
        self.always: set[int] = set()

    @property
    def any(self) -> bool:
        """Is there a hook that a call of the module has to mind?"""
        return any([self.by_kind[kind] for kind in KINDS])

    def add(
        self,
        kind: str,
        hook: Any,
        prepend: bool = False,
        with_kwargs: bool = False,
        always: bool = False,
    ) -> HookHandle:
        hooks = self.by_kind[kind]
        handle = HookHandle(hooks, (hook, with_kwargs))
        if always:
            self.always.add(handle.number)
        if prepend:
            rest = {number: hooks.pop(number) for number in [*hooks][:-1]}
            hooks.update(rest)
        return handle

    def of(self, kind: str) -> list[tuple[Any, bool]]:
        return list(self.by_kind[kind].values())

    def structural_key(self) -> tuple[Any, ...]:
        """What tells the hooks of two modules apart, for `nn.structure`."""
        return tuple((kind, *self.by_kind[kind].items()) for kind in KINDS if self.by_kind[kind])

    def __deepcopy__(self, memo: Any) -> Hooks:
        made = Hooks()
        made.by_kind = {kind: dict(hooks) for kind, hooks in self.by_kind.items()}
        made.always = set(self.always)
        return made


def call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The forward of a module that has hooks."""
    if not module._hooks.always:
        return called(module, args, kwargs, set())
    seen: set[int] = set()
    try:
        return called(module, args, kwargs, seen)
    except Exception:
        for number, (hook, with_kwargs) in list(module._hooks.by_kind["after"].items()):
            if number in module._hooks.always and number not in seen:
                hook(module, args, kwargs, None) if with_kwargs else hook(module, args, None)
        raise


def called(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], seen: set[int]) -> Any:
    for hook, with_kwargs in module._hooks.of("before"):
        if with_kwargs:
            given = hook(module, args, kwargs)
            args, kwargs = (args, kwargs) if given is None else given
        else:
            given = hook(module, args)
            if given is not None:
                args = given if isinstance(given, tuple) else (given,)
    watch = Watch(module) if Watch.wanted(module) else None
    if watch is not None:
        args = watch.arguments(args)
    output = module.forward(*args, **kwargs)
    for number, (hook, with_kwargs) in list(module._hooks.by_kind["after"].items()):
        seen.add(number)
        given = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        output = output if given is None else given
    return output if watch is None else watch.output(output)


class Watch:
    """Backward hooks around one call: identities at its border whose backward calls them."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.grad_output: tuple[Any, ...] = ()
        self.watches_arguments = False

    @staticmethod
    def wanted(module: Any) -> bool:
        return bool(module._hooks.of("backward_before") or module._hooks.of("backward_after"))

    def arguments(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        chosen = [i for i, x in enumerate(args) if isinstance(x, Tensor) and x.requires_grad]
        if not chosen:
            return args
        self.watches_arguments = True
        kept = list(args)
        for i, x in zip(chosen, at_border(self.after, [args[i] for i in chosen])):
            kept[i] = x
        return tuple(kept)

    def output(self, output: Any) -> Any:
        leaves, tree = flatten(output)
        chosen = [i for i, y in enumerate(leaves) if isinstance(y, Tensor) and y.requires_grad]
        if chosen:
            for i, y in zip(chosen, at_border(self.before, [leaves[i] for i in chosen])):
                leaves[i] = y
        return unflatten(tree, leaves)

    def before(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the output arrive."""
        for hook, _ in self.module._hooks.of("backward_before"):
            grads = replaced(hook(self.module, grads), grads)
        self.grad_output = grads
        if not self.watches_arguments:
            for hook, _ in self.module._hooks.of("backward_after"):
                hook(self.module, (None,), grads)
        return grads

    def after(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the arguments leave."""
        for hook, _ in self.module._hooks.of("backward_after"):
            grads = replaced(hook(self.module, grads, self.grad_output), grads)
        return grads


def replaced(given: Any, grads: tuple[Any, ...]) -> tuple[Any, ...]:
    if given is None:
        return grads
    return given if isinstance(given, tuple) else (given,)


class Border(Function):
    """The identity, whose backward calls `act` on all gradients at once."""

    @staticmethod
    def forward(ctx: Any, act: Any, *xs: Any) -> Any:
        ctx.act = act
        return tuple([x.view_as(x) for x in xs])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ctx.act(grads))


def at_border(act: Any, xs: list[Any]) -> tuple[Any, ...]:
    out = Border.apply(act, *xs)
    return out if isinstance(out, tuple) else (out,)
