"""Optimizer: an update rule, written as pure functions of one parameter, applied to all of them.

A rule is a subclass with `init` (the state of a parameter) and `update` (its new value and state).
The same two are the pure functions of `optim.functional`; `step()` runs them for all parameters in
one compiled call that writes in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from lucid.autograd import enable_grad, no_grad
from lucid.compiler.jit import jit
from lucid.errors import ArgumentError
from lucid.ir.recording import Unrecorded
from lucid.ir.source import at_line
from lucid.ir.tape import is_recording, wrap
from lucid.mutation import assign
from lucid.ops.promote import as_tensor
from lucid.optim.group import Group
from lucid.tensor import HookHandle, Tensor

State = dict[str, Any]


class Optimizer:
    """The base of all optimizers; a subclass is a rule.

    optional    settings that `update` gets as None where they are 0
    signed      settings that may be negative
    """

    optional: tuple[str, ...] = ("weight_decay",)
    signed: tuple[str, ...] = ("ns_coefficients",)

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        check_settings(type(self), defaults)
        self.defaults = dict(defaults)
        self.state: dict[Any, State] = {}
        self.param_groups: list[Group] = []
        self._before: dict[int, Any] = {}
        self._after: dict[int, Any] = {}
        self._update_all = jit(self._update)
        given = list(params) if not isinstance(params, Tensor) else [params]
        if not given:
            raise ArgumentError(f"{type(self).__name__}: no parameters were given{at_line()}")
        groups: Any = given if isinstance(given[0], dict) else [{"params": given}]
        for group in groups:
            self.add_param_group(group)

    # The rule

    @staticmethod
    def init(p: Any, h: SimpleNamespace) -> State:
        """The state of a parameter before its first update."""
        return {}

    @staticmethod
    def update(p: Any, g: Any, s: State, h: SimpleNamespace) -> tuple[Any, State]:
        """The new value and state of a parameter `p` with gradient `g` and state `s`."""
        raise NotImplementedError

    # Its use

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with settings of their own where they differ from the defaults."""
        params = param_group["params"]
        params = [params] if isinstance(params, Tensor) else list(params)
        names = [name for name, _ in params] if params and isinstance(params[0], tuple) else None
        params = [p[1] for p in params] if names is not None else params
        held = {id(p) for group in self.param_groups for p in group["params"]}
        for p in params:
            check_parameter(type(self).__name__, p, held)
            held.add(id(p))
        unknown = set(param_group) - set(self.defaults) - {"params", "param_names", "initial_lr"}
        if unknown:
            raise ArgumentError(
                f"{type(self).__name__}: no setting is named {', '.join(sorted(unknown))}; "
                f"there are {', '.join(self.defaults)}{at_line()}"
            )
        settings = {**self.defaults, **param_group, "params": params}
        check_settings(type(self), settings)
        if names is not None:
            settings["param_names"] = names
        self.param_groups.append(Group(settings, self.optional))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters (or fill them with zeros)."""
        for group in self.param_groups:
            for p in group["params"]:
                p.zero_grad(set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient; `closure` computes the loss anew."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for hook in list(self._before.values()):
            hook(self)
        self._prepare()
        if is_recording():
            self._update()
        else:
            self._update_all()
        for hook in list(self._after.values()):
            hook(self)
        return loss

    def _prepare(self) -> None:
        """Give a state to every parameter that has a gradient and none yet."""
        for group in self.param_groups:
            new = [p for p in group["params"] if p not in self.state and p.grad is not None]
            if not new:
                continue
            with Unrecorded(), no_grad():
                h = group.hyper()
                for p in new:
                    self.state[p] = type(self).init(wrap(p.value), h)

    def _update(self) -> None:
        with no_grad():
            for group in self.param_groups:
                h = group.hyper()
                for p in group["params"]:
                    if p.grad is not None:
                        self._update_one(p, h)

    def _update_one(self, p: Any, h: SimpleNamespace) -> None:
        state = self.state[p]
        g = p.grad if not getattr(h, "maximize", False) else -p.grad
        new, changed = type(self).update(p.detach(), g.detach(), state, h)
        assign(p, new, "step")
        for name, value in changed.items():
            assign(state[name], value, "step")

    # Saving

    def state_dict(self) -> dict[str, Any]:
        """Settings and states, with the parameters as numbers in their order."""
        numbers = {id(p): i for i, p in enumerate(self._all())}
        groups = []
        for group in self.param_groups:
            settings = {name: value for name, value in group.items() if name != "params"}
            groups.append({**settings, "params": [numbers[id(p)] for p in group["params"]]})
        return {
            "state": {numbers[id(p)]: dict(state) for p, state in self.state.items()},
            "param_groups": groups,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a `state_dict` of an optimizer with as many parameters in as many groups."""
        groups = state_dict["param_groups"]
        mine = [len(group["params"]) for group in self.param_groups]
        theirs = [len(group["params"]) for group in groups]
        if mine != theirs:
            raise ArgumentError(
                f"load_state_dict: the state has groups of {theirs} parameters, this optimizer "
                f"of {mine}{at_line()}"
            )
        numbers = [i for group in groups for i in group["params"]]
        params = dict(zip(numbers, self._all()))
        states = {}
        for number, state in state_dict["state"].items():
            p = params[int(number)]
            states[p] = {name: restored(value) for name, value in state.items()}
        for group, given in zip(self.param_groups, groups):
            for name, value in given.items():
                if name != "params":
                    group[name] = value
        self.state = states
        self._update_all = jit(self._update)

    def _all(self) -> Iterable[Any]:
        return [p for group in self.param_groups for p in group["params"]]

    # Hooks

    def register_step_pre_hook(self, hook: Any) -> HookHandle:
        """Call `hook(optimizer)` before every step."""
        return HookHandle(self._before, hook)

    def register_step_post_hook(self, hook: Any) -> HookHandle:
        """Call `hook(optimizer)` after every step."""
        return HookHandle(self._after, hook)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join([*lines, ")"])


def restored(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else as_tensor(value).clone()


def check_parameter(name: str, p: Any, held: set[int]) -> None:
    if not isinstance(p, Tensor):
        raise ArgumentError(
            f"{name}: parameters are tensors, not {type(p).__name__}{at_line()}"
        )
    if not p.is_leaf:
        raise ArgumentError(
            f"{name}: a parameter of shape {p.shape} is the result of {p.node.op.name}; only "
            f"leaves are optimized{at_line()}"
        )
    if id(p) in held:
        raise ArgumentError(f"{name}: a parameter of shape {p.shape} comes twice{at_line()}")


def check_settings(rule: type[Optimizer], settings: dict[str, Any]) -> None:
    """Numbers are not negative, and rates of decay are below 1."""
    for key, value in settings.items():
        if key in rule.signed:
            continue
        parts = value if isinstance(value, (tuple, list)) and key == "betas" else [value]
        for part in parts:
            if isinstance(part, bool) or not isinstance(part, (int, float)):
                continue
            if part < 0 or part != part or (key in ("betas", "rho") and part >= 1):
                raise ArgumentError(f"{rule.__name__}: {key} cannot be {value}{at_line()}")
