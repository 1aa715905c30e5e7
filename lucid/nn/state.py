"""state_dict and load_state_dict of a Module, with their hooks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from lucid.autograd import no_grad
from lucid.errors import ModuleError
from lucid.nn.parameter import Parameter
from lucid.nn.uninitialized import Uninitialized
from lucid.ops.core.promote import as_tensor
from lucid.tensors.hook_handles import HookHandle

EXTRA_STATE = "_extra_state"


class Incompatible(NamedTuple):
    """The names that differ between a state_dict and a Module."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class State:
    """The state_dict methods of Module."""

    def state_dict(
        self: Any, *, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Return all parameters and persistent buffers by name, detached, in the same memory.

        destination    a dictionary to add them to
        prefix         prepended to every name; include the trailing dot
        """
        state: dict[str, Any] = OrderedDict() if destination is None else destination
        collect_state(self, state, prefix, keep_vars)
        return state

    def load_state_dict(
        self: Any, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Incompatible:
        """Load the values of a `state_dict`: all of them, or none if an error is raised.

        strict    raise if a name is missing or unexpected
        assign    keep the given tensors instead of copying their values
        """
        state = OrderedDict(state_dict)
        differing = Incompatible([], [])
        wrong: list[str] = []
        for path, module in self.named_modules(remove_duplicate=False):
            for hook, _ in module._hooks.callbacks("load_before"):
                hook(module, state, f"{path}." if path else "", {}, strict, *differing, wrong)
        mine = self.state_dict(keep_vars=True)
        differing.missing_keys.extend([name for name in mine if name not in state])
        differing.unexpected_keys.extend([name for name in state if name not in mine])
        wrong += [
            text for name, x in mine.items() if (text := shape_error(name, x, state)) is not None
        ]
        watched = [m for m in self.modules() if m._hooks.callbacks("load_after")]
        raise_if_incompatible(self, wrong, differing, strict and not watched)
        with no_grad():
            for name, x in mine.items():
                if name in state:
                    self._load(name, x, state[name], assign)
        for module in watched:
            for hook, _ in module._hooks.callbacks("load_after"):
                hook(module, differing)
        raise_if_incompatible(self, [], differing, strict)
        return differing

    def _load(self: Any, target: str, x: Any, value: Any, assign: bool) -> None:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name == EXTRA_STATE:
            return module.set_extra_state(value)
        value = as_tensor(value)
        if isinstance(x, Uninitialized):
            if isinstance(value, Uninitialized):
                return None
            x.materialize(value.shape)
        if not assign:
            x.copy_(value)
            return None
        if name in module._parameters:
            value = Parameter(value, x.requires_grad)
        return setattr(module, name, value)

    def get_extra_state(self) -> Any:
        """Return extra state to save with this module; subclasses may define it."""
        raise ModuleError(f"{type(self).__name__} has no extra state")

    def set_extra_state(self, state: Any) -> None:
        """Restore what `get_extra_state` returned."""
        raise ModuleError(f"{type(self).__name__} has no set_extra_state() for its extra state")

    # Hooks

    def register_state_dict_pre_hook(self: Any, hook: Any) -> HookHandle:
        """Call `hook(module, prefix, keep_vars)` before the state is collected."""
        return self._hooks.add("state_before", hook)

    def register_state_dict_post_hook(self: Any, hook: Any) -> HookHandle:
        """Call `hook(module, state_dict, prefix, {})` afterward; it may change the state."""
        return self._hooks.add("state_after", hook)

    def register_load_state_dict_pre_hook(self: Any, hook: Any) -> HookHandle:
        """Call `hook(module, state_dict, prefix, {}, strict, missing, unexpected, errors)` first.

        The dictionary is a copy that the hook may change, for example to rename old keys.
        """
        return self._hooks.add("load_before", hook)

    def register_load_state_dict_post_hook(self: Any, hook: Any) -> HookHandle:
        """Call `hook(module, incompatible)` after loading; keys it removes are not errors."""
        return self._hooks.add("load_after", hook)


def collect_state(module: Any, state: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """Add the state of a module and its submodules to a dictionary."""
    for hook, _ in module._hooks.callbacks("state_before"):
        hook(module, prefix, keep_vars)
    for name, x in [*module._parameters.items(), *module._buffers.items()]:
        if x is not None and name not in module._non_persistent:
            state[prefix + name] = x if keep_vars else x.detach()
    if type(module).get_extra_state is not State.get_extra_state:
        state[prefix + EXTRA_STATE] = module.get_extra_state()
    for name, child in module._modules.items():
        if child is not None:
            collect_state(child, state, f"{prefix}{name}.", keep_vars)
    for hook, _ in module._hooks.callbacks("state_after"):
        hook(module, state, prefix, {})


def shape_error(name: str, x: Any, state: dict[str, Any]) -> str | None:
    """Return the error text if the value in `state` does not fit `x`, else None."""
    if name not in state or name.rpartition(".")[2] == EXTRA_STATE or isinstance(x, Uninitialized):
        return None
    value = as_tensor(state[name])
    if isinstance(value, Uninitialized):
        return (
            f"{name} has no shape in this state, which was saved from an uninitialized lazy layer"
        )
    return None if value.shape == x.shape else f"{name} has shape {value.shape}, not {x.shape}"


def raise_if_incompatible(
    module: Any, wrong: list[str], differing: Incompatible, strict: bool
) -> None:
    """Raise ModuleError that lists what does not fit."""
    wrong = list(wrong)
    if strict:
        for what, names in zip(("missing", "unexpected"), differing):
            wrong += [f"{what}: {', '.join(names)}"] if names else []
    if wrong:
        raise ModuleError(f"load_state_dict: {type(module).__name__}: {'; '.join(wrong)}")
