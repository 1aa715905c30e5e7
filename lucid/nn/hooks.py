"""Hooks of a Module: functions called before and after forward, and during backward."""

from __future__ import annotations

from typing import Any

from lucid.autograd.functions.function import Function
from lucid.ir.pytree import flatten, unflatten
from lucid.tensors.hook_handles import HookHandle
from lucid.tensors.tensor import Tensor

KINDS = ("before", "after", "backward_before", "backward_after")
STATE_KINDS = ("state_before", "state_after", "load_before", "load_after")


class Hooks:
    """The hooks of one Module by kind, in call order.

    before, after, backward_before, backward_after    those of KINDS, which every call looks at
    """

    def __init__(self) -> None:
        self.by_kind: dict[str, dict[int, Any]] = {kind: {} for kind in (*KINDS, *STATE_KINDS)}
        self.before, self.after, self.backward_before, self.backward_after = [
            self.by_kind[kind] for kind in KINDS
        ]
        self.always: set[int] = set()

    def add(
        self,
        kind: str,
        hook: Any,
        prepend: bool = False,
        with_kwargs: bool = False,
        always: bool = False,
    ) -> HookHandle:
        """Add a hook of a kind and return its handle."""
        hooks = self.by_kind[kind]
        handle = HookHandle(hooks, (hook, with_kwargs))
        if always:
            self.always.add(handle.number)
        if prepend:
            rest = {number: hooks.pop(number) for number in [*hooks][:-1]}
            hooks.update(rest)
        return handle

    def callbacks(self, kind: str) -> list[tuple[Any, bool]]:
        """Return the hooks of a kind, with whether each takes keyword arguments."""
        return list(self.by_kind[kind].values())

    def structural_key(self) -> tuple[Any, ...]:
        """Return a key that is equal for modules with equal hooks, for `nn.structure`."""
        return tuple((kind, *self.by_kind[kind].items()) for kind in KINDS if self.by_kind[kind])

    def __deepcopy__(self, memo: Any) -> Hooks:
        made = Hooks()
        for kind, hooks in self.by_kind.items():
            made.by_kind[kind].update(hooks)
        made.always = set(self.always)
        return made


class HookMethods:
    """The methods of Module that register hooks."""

    _hooks: Hooks

    def register_forward_pre_hook(
        self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call `hook(module, args)` before forward; its result replaces the arguments."""
        return self._hooks.add("before", hook, prepend, with_kwargs)

    def register_forward_hook(
        self,
        hook: Any,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> HookHandle:
        """Call `hook(module, args, output)` after forward; its result replaces the output.

        always_call    also call it after a forward that raised, with None as output
        """
        return self._hooks.add("after", hook, prepend, with_kwargs, always_call)

    def register_full_backward_pre_hook(self, hook: Any, prepend: bool = False) -> HookHandle:
        """Call `hook(module, grad_output)` in backward; its result replaces the gradients."""
        return self._hooks.add("backward_before", hook, prepend)

    def register_full_backward_hook(self, hook: Any, prepend: bool = False) -> HookHandle:
        """Call `hook(module, grad_input, grad_output)` in backward; it may replace grad_input."""
        return self._hooks.add("backward_after", hook, prepend)


def call_with_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the forward of a module that has hooks."""
    if not module._hooks.always:
        return run_hooks(module, args, kwargs, set())
    seen: set[int] = set()
    try:
        return run_hooks(module, args, kwargs, seen)
    except Exception:
        for number, (hook, with_kwargs) in list(module._hooks.by_kind["after"].items()):
            if number in module._hooks.always and number not in seen:
                hook(module, args, kwargs, None) if with_kwargs else hook(module, args, None)
        raise


def run_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], seen: set[int]) -> Any:
    """Run the hooks around one forward; `seen` collects the forward hooks that were called."""
    for hook, with_kwargs in module._hooks.callbacks("before"):
        if with_kwargs:
            given = hook(module, args, kwargs)
            args, kwargs = (args, kwargs) if given is None else given
        else:
            given = hook(module, args)
            if given is not None:
                args = given if isinstance(given, tuple) else (given,)
    backward = BackwardHooks(module) if BackwardHooks.needed(module) else None
    if backward is not None:
        args = backward.wrap_inputs(args)
    output = module.forward(*args, **kwargs)
    for number, (hook, with_kwargs) in list(module._hooks.by_kind["after"].items()):
        seen.add(number)
        given = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        output = output if given is None else given
    return output if backward is None else backward.wrap_output(output)


class BackwardHooks:
    """Backward hooks around one call, attached to its inputs and outputs as identities."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.grad_output: tuple[Any, ...] = ()
        self.wraps_inputs = False

    @staticmethod
    def needed(module: Any) -> bool:
        """True if the module has a backward hook."""
        return bool(
            module._hooks.callbacks("backward_before") or module._hooks.callbacks("backward_after")
        )

    def wrap_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Attach the backward hooks to the arguments that require grad."""
        chosen = [i for i, x in enumerate(args) if isinstance(x, Tensor) and x.requires_grad]
        if not chosen:
            return args
        self.wraps_inputs = True
        kept = list(args)
        for i, x in zip(chosen, attach_hook(self.on_grad_input, [args[i] for i in chosen])):
            kept[i] = x
        return tuple(kept)

    def wrap_output(self, output: Any) -> Any:
        """Attach the backward pre-hooks to the outputs that require grad."""
        leaves, tree = flatten(output)
        chosen = [i for i, y in enumerate(leaves) if isinstance(y, Tensor) and y.requires_grad]
        if chosen:
            for i, y in zip(chosen, attach_hook(self.on_grad_output, [leaves[i] for i in chosen])):
                leaves[i] = y
        return unflatten(tree, leaves)

    def on_grad_output(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """Call the pre-hooks with the gradients of the outputs."""
        for hook, _ in self.module._hooks.callbacks("backward_before"):
            grads = replace_grads(hook(self.module, grads), grads)
        self.grad_output = grads
        if not self.wraps_inputs:
            for hook, _ in self.module._hooks.callbacks("backward_after"):
                hook(self.module, (None,), grads)
        return grads

    def on_grad_input(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """Call the hooks with the gradients of the arguments."""
        for hook, _ in self.module._hooks.callbacks("backward_after"):
            grads = replace_grads(hook(self.module, grads, self.grad_output), grads)
        return grads


def replace_grads(given: Any, grads: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the gradients a hook returned, or the old ones if it returned None."""
    if given is None:
        return grads
    return given if isinstance(given, tuple) else (given,)


class GradHook(Function):
    """The identity, whose backward passes all gradients through `act`."""

    @staticmethod
    def forward(ctx: Any, act: Any, *xs: Any) -> Any:
        ctx.act = act
        return tuple([x.view_as(x) for x in xs])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ctx.act(grads))


def attach_hook(act: Any, xs: list[Any]) -> tuple[Any, ...]:
    """Pass tensors through an identity whose backward calls `act`."""
    out = GradHook.apply(act, *xs)
    return out if isinstance(out, tuple) else (out,)
