"""Optimizer: an update rule, written as pure functions of one parameter, applied to all of them.

A rule is a subclass with `init` (the state of a parameter) and `update` (its new value and
state). `optim.functional` exposes the same two as pure functions; `step()` runs them for all
parameters in one compiled call that writes in place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import SimpleNamespace
from typing import Any

import numpy as np

from lucid.autograd import enable_grad, no_grad
from lucid.autograd.following.step_run import run_update
from lucid.compiler.jit.jit import jit
from lucid.errors import ArgumentError
from lucid.ops.core.arguments import clear_errors
from lucid.ops.core.constructors import ClearConstructor
from lucid.ops.core.promote import as_tensor
from lucid.ops.shape.arranging import view_as_complex, view_as_real
from lucid.optim.group import Group
from lucid.optim.observed import ObservedList, States
from lucid.optim.settings import check_ignored, check_settings
from lucid.public.declare import public
from lucid.tape.modes import local
from lucid.tape.node import followers, is_recording, wrap
from lucid.tape.recording.recorder import Unrecorded
from lucid.tape.scopes import in_own_scope
from lucid.tensors.hook_handles import HookHandle
from lucid.tensors.mutation import assign
from lucid.tensors.tensor import Tensor

State = dict[str, Any]
HOOKS = ("before", "after", "state_before", "state_after", "load_before", "load_after")


def with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the `step` of an optimizer with its hooks."""

    @functools.wraps(step)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        for hook in list(self._hooks["before"].values()):
            given = hook(self, (self, *args), kwargs)
            if given is not None:
                (_, *args), kwargs = given  # type: ignore[assignment]
        loss = step(self, *args, **kwargs)
        for hook in list(self._hooks["after"].values()):
            hook(self, (self, *args), kwargs)
        return loss

    return call


def counter() -> Any:
    """Return a step count of 0, as state."""
    return wrap(np.zeros((), np.float64))


def constructor_arguments(given: dict[str, Any]) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return the parameters, settings and ignored keywords in `locals()` of a constructor."""
    others = ("self", "__class__", "params", "ignored")
    settings = {name: x for name, x in given.items() if name not in others}
    return given["params"], settings, given["ignored"]


@public("optim")
class Optimizer(ClearConstructor):
    """The base of all optimizers; a subclass is an update rule.

    optional    settings that `update` receives as None if they are 0
    signed      settings that may be negative
    kinds       the allowed kinds of parameter dtypes ("f" real, "c" complex)
    """

    optional: tuple[str, ...] = ("weight_decay",)
    signed: tuple[str, ...] = ("ns_coefficients",)
    kinds: str = "fc"

    def __init__(
        self, params: Any, defaults: dict[str, Any], ignored: dict[str, Any] | None = None
    ) -> None:
        check_ignored(type(self).__name__, ignored or {}, defaults)
        self.defaults = check_settings(type(self), defaults)
        self._version = 0
        self.state = {}
        self.param_groups: list[Group] = ObservedList((), self._on_change)
        self._hooks: dict[str, dict[int, Any]] = {name: {} for name in HOOKS}
        self._update_all = jit(self._update)
        for group in make_groups(type(self).__name__, params):
            self.add_param_group(group)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in cls.__dict__:
            cls.step = with_hooks(cls.step)  # type: ignore[method-assign]

    def _on_change(self) -> None:
        """Invalidate compiled steps: the groups or states have changed."""
        self._version += 1

    @property
    def state(self) -> dict[Any, State]:
        """The state of every parameter."""
        return self._state

    @state.setter
    def state(self, states: dict[Any, State]) -> None:
        self._state = States((), self._on_change)
        for p, state in states.items():
            self._state[p] = state
        self._on_change()

    def __getstate__(self) -> dict[str, Any]:
        """Return what copies and pickles hold: everything but compiled steps and callbacks."""
        apart = ("_update_all", "_version", "_state", "param_groups")
        rest = {name: x for name, x in self.__dict__.items() if name not in apart}
        groups = [{**group, "params": list(group["params"])} for group in self.param_groups]
        states = [(p, dict(state)) for p, state in self.state.items()]
        return {"rest": rest, "groups": groups, "states": states}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__dict__.update(saved["rest"], _version=0, _update_all=jit(self._update))
        groups = [Group(group, self.optional) for group in saved["groups"]]
        self.param_groups = ObservedList(groups, self._on_change)
        self.state = dict(saved["states"])

    # The update rule

    @staticmethod
    def init(p: Any, h: SimpleNamespace) -> State:
        """Return the state of a parameter before its first update."""
        return {}

    @staticmethod
    def update(p: Any, g: Any, s: State, h: SimpleNamespace) -> tuple[Any, State]:
        """Return the new value and state of a parameter `p` with gradient `g` and state `s`."""
        raise NotImplementedError

    @classmethod
    def init_state(cls, p: Any, h: SimpleNamespace) -> State:
        """Call `init`, with a complex parameter viewed as real."""
        return cls.init(view_as_real(p) if p.dtype.kind == "c" else p, h)

    @classmethod
    def apply_update(cls, p: Any, g: Any, s: State, h: SimpleNamespace) -> tuple[Any, State]:
        """Call `update`, negating `g` if `maximize` and viewing complex parameters as real."""
        g = -g if getattr(h, "maximize", False) else g
        if p.dtype.kind != "c":
            return cls.update(p, g, s, h)
        new, changed = cls.update(view_as_real(p), view_as_real(g), s, h)
        return view_as_complex(new), changed

    # Groups and steps

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, with settings that override the defaults."""
        name = type(self).__name__
        if not isinstance(param_group, (dict, Group)) or "params" not in param_group:
            raise ArgumentError(f"{name}: a parameter group must be a dictionary with 'params'")
        params = param_group["params"]
        params = [params] if isinstance(params, Tensor) else as_list(name, params)
        names = [key for key, _ in params] if params and isinstance(params[0], tuple) else None
        params = [p[1] for p in params] if names is not None else params
        held = {id(p) for group in self.param_groups for p in group["params"]}
        for p in params:
            check_parameter(name, p, held, self.kinds)
            held.add(id(p))
        others = {key: x for key, x in param_group.items() if key not in self.defaults}
        for key in others:
            meant = get_close_matches(str(key), self.defaults, 1, 0.8)
            if meant:
                raise ArgumentError(f"{name}: unknown setting {key}; did you mean {meant[0]}?")
        mine = {key: x for key, x in param_group.items() if key in self.defaults}
        settings = check_settings(type(self), {**self.defaults, **mine})
        settings = {**settings, **others, "params": params}
        if names is not None:
            settings["param_names"] = names
        self.param_groups.append(Group(settings, self.optional))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                p.zero_grad(set_to_none)

    @with_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient; `closure` recomputes the loss."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        self._init_states()
        if is_recording():
            self._update()
        elif not (followers and run_update(self._update_all)):
            self._update_all()
        return loss

    def _init_states(self) -> None:
        """Create missing states of parameters that have a gradient, and missing entries of states.

        Entries are missing after a setting has changed, such as a momentum that was 0 before.
        """
        for group in self.param_groups:
            whole = group.prepared_for is group.signature and not self._state.was_read
            states = self._state
            new = [
                p for p in group["params"]
                if (p.grad is not None if p not in states else not whole)
            ]  # fmt: skip
            if new:
                with Unrecorded(), no_grad():
                    h = group.hyper()
                    for p in new:
                        self._fill_state(p, self.init_state(wrap(p.value), h))
            group.prepared_for = group.signature
        self._state.was_read = False

    def _fill_state(self, p: Any, begun: State) -> None:
        """Add missing entries to the state of a parameter."""
        state = self.state.get(p)
        if state is None or begun.keys() - state.keys():
            self.state[p] = {**begun, **(state or {})}

    @in_own_scope
    def _update(self) -> None:
        if is_recording():
            local.recorder.guard_entry(self.__dict__, "_version", can_recur=False)
        with no_grad():
            for group in self.param_groups:
                h = group.hyper()
                for p in group["params"]:
                    if p.grad is not None:
                        self._update_one(p, h)

    def _update_one(self, p: Any, h: SimpleNamespace) -> None:
        state = self.state[p]
        new, changed = self.apply_update(p.detach(), p.grad.detach(), state, h)
        assign(p, new, "step")
        for name, value in changed.items():
            assign(state[name], value, "step")

    def named_tensors(self, known: Mapping[int, str] | None = None) -> Iterator[tuple[str, Any]]:
        """Iterate over settings and states with names such as `Adam.exp_avg[layers.0.weight]`.

        known    the names of parameters by their ids; the others have their own, or a number
        """
        kind, number = type(self).__name__, 0
        for i, group in enumerate(self.param_groups):
            prefix = kind if len(self.param_groups) == 1 else f"{kind}.param_groups[{i}]"
            yield from group.named_tensors(prefix)
            own = group["param_names"] if "param_names" in group else ()
            for k, p in enumerate(group["params"]):
                name = (known or {}).get(id(p)) or (own[k] if k < len(own) else "")
                if not name:
                    yield f"{kind}.params[{number}]", p
                elif id(p) not in (known or {}):
                    yield name, p
                for key, x in self._state.get(p, {}).items():
                    yield f"{kind}.{key}[{name or number}]", x
                number += 1

    # Saving

    def state_dict(self) -> dict[str, Any]:
        """Return settings and states, with parameters numbered in order."""
        for hook in list(self._hooks["state_before"].values()):
            hook(self)
        numbers = {id(p): i for i, p in enumerate(self._all_params())}
        groups = []
        for group in self.param_groups:
            settings = {name: value for name, value in group.items() if name != "params"}
            groups.append({**settings, "params": [numbers[id(p)] for p in group["params"]]})
        state = {numbers[id(p)]: dict(state) for p, state in self.state.items()}
        found: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in list(self._hooks["state_after"].values()):
            given = hook(self, found)
            found = found if given is None else given
        return found

    @clear_errors
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the `state_dict` of an optimizer with the same number of parameters per group."""
        for hook in list(self._hooks["load_before"].values()):
            given = hook(self, state_dict)
            state_dict = state_dict if given is None else given
        groups = state_dict["param_groups"]
        mine = [len(group["params"]) for group in self.param_groups]
        theirs = [len(group["params"]) for group in groups]
        if mine != theirs:
            raise ArgumentError(
                f"load_state_dict: the state has groups of {theirs} parameters, this optimizer has "
                f"{mine}"
            )
        numbers = [i for group in groups for i in group["params"]]
        params = dict(zip(numbers, self._all_params()))
        states = {
            params[int(number)]: {name: self._restore_value(x) for name, x in state.items()}
            for number, state in state_dict["state"].items()
        }
        for group, given in zip(self.param_groups, groups):
            for name, value in given.items():
                if name != "params":
                    group[name] = value
            self._check_states(group, states)
            group.prepared_for = None
        kept = {p: load_in_place(self.state.get(p, {}), s) for p, s in states.items()}
        if any(kept[p] is not self.state.get(p) for p in {**kept, **self.state}):
            self.state = kept
        for hook in list(self._hooks["load_after"].values()):
            hook(self)

    def _restore_value(self, value: Any) -> Any:
        """Return an entry of a loaded state as a new tensor.

        Only an optimizer with its own `step` may keep other objects.
        """
        if isinstance(value, Tensor):
            return value.detach().clone()
        return as_tensor(value).clone() if type(self).step is Optimizer.step else value

    def _check_states(self, group: Group, states: dict[Any, State]) -> None:
        """Raise ArgumentError for states of parameters with other shapes."""
        h = group.hyper()
        for p in group["params"]:
            for name, x in self.init_state(wrap(p.value), h).items() if p in states else ():
                found = states[p].get(name)
                if found is not None and found.shape != x.shape:
                    raise ArgumentError(
                        f"load_state_dict: {name} of shape {found.shape} for a parameter of shape "
                        f"{p.shape}"
                    )

    def _all_params(self) -> Iterable[Any]:
        return [p for group in self.param_groups for p in group["params"]]

    # Hooks

    def register_step_pre_hook(self, hook: Any) -> HookHandle:
        """Call `hook(optimizer, args, kwargs)` before every step; it may return replacements."""
        return HookHandle(self._hooks["before"], hook)

    def register_step_post_hook(self, hook: Any) -> HookHandle:
        """Call `hook(optimizer, args, kwargs)` after every step."""
        return HookHandle(self._hooks["after"], hook)

    def register_state_dict_pre_hook(self, hook: Any) -> HookHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        return HookHandle(self._hooks["state_before"], hook)

    def register_state_dict_post_hook(self, hook: Any) -> HookHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; it may return a replacement."""
        return HookHandle(self._hooks["state_after"], hook)

    def register_load_state_dict_pre_hook(self, hook: Any) -> HookHandle:
        """Call `hook(optimizer, state_dict)` before loading; it may return a replacement."""
        return HookHandle(self._hooks["load_before"], hook)

    def register_load_state_dict_post_hook(self, hook: Any) -> HookHandle:
        """Call `hook(optimizer)` after loading."""
        return HookHandle(self._hooks["load_after"], hook)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join([*lines, ")"])


def load_in_place(old: State, new: State) -> State:
    """Copy a loaded state into the existing tensors, so that compiled steps stay valid."""
    if old.keys() != new.keys() or not all(same_type(x, new[name]) for name, x in old.items()):
        return new
    for name, x in old.items():
        assign(x, new[name], "load_state_dict")
    return old


def same_type(x: Any, y: Any) -> bool:
    """True if both are tensors of one shape and dtype."""
    tensors = isinstance(x, Tensor) and isinstance(y, Tensor)
    return tensors and x.shape == y.shape and x.dtype == y.dtype


def as_list(name: str, params: Any) -> list[Any]:
    """Return parameters, or groups of them, as a list."""
    if isinstance(params, (set, str)) or not isinstance(params, Iterable):
        remedy = "; pass its parameters()" if hasattr(params, "parameters") else ""
        raise ArgumentError(
            f"{name}: parameters must be a list or an iterator with a fixed order, not "
            f"{type(params).__name__}{remedy}"
        )
    return list(params)


def make_groups(name: str, params: Any) -> list[Any]:
    """Return the parameter groups that `params` describes."""
    given = [params] if isinstance(params, (Tensor, dict)) else as_list(name, params)
    if not given:
        raise ArgumentError(f"{name}: no parameters were given")
    return given if isinstance(given[0], dict) else [{"params": given}]


def check_parameter(name: str, p: Any, held: set[int], kinds: str) -> None:
    """Raise ArgumentError unless `p` can be optimized."""
    if not isinstance(p, Tensor):
        raise ArgumentError(f"{name}: parameters must be tensors, not {type(p).__name__}")
    if p.dtype.kind not in kinds:
        raise ArgumentError(
            f"{name}: a parameter of shape {p.shape} has dtype {p.dtype}; parameters must be "
            f"{'real or complex' if 'c' in kinds else 'real'}"
        )
    if not p.is_leaf:
        raise ArgumentError(
            f"{name}: a parameter of shape {p.shape} is the result of {p.node.op.name}; only "
            "leaves can be optimized"
        )
    if id(p) in held:
        raise ArgumentError(f"{name}: a parameter of shape {p.shape} is given twice")
