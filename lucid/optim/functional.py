"""The update rules as pure functions over pytrees: `init(params)`, `update(grads, state, params)`.

>>> import lucid
>>> from lucid.optim import functional
>>> rule = functional.sgd(lr=0.1)
>>> params = {"w": lucid.tensor([1.0, 2.0])}
>>> state = rule.init(params)
>>> grads = lucid.func.grad(lambda p: (p["w"] ** 2).sum())(params)
>>> params, state = rule.update(grads, state, params)
>>> params["w"]
Tensor([0.8, 1.6])
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from lucid.errors import ArgumentError
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.types import is_differentiable
from lucid.ops.core.promote import as_tensor, cast
from lucid.optim import adam as _adam
from lucid.optim import adaptive as _adaptive
from lucid.optim import sgd as _sgd
from lucid.optim import signs as _signs
from lucid.optim.group import Group
from lucid.optim.optimizer import Optimizer
from lucid.public.declare import public
from lucid.public.lazy import attach


class Rule:
    """An update rule with its settings."""

    def __init__(self, rule: type[Optimizer], settings: dict[str, Any]) -> None:
        self.rule = rule
        self.settings = settings

    def hyper(self, changed: dict[str, Any]) -> SimpleNamespace:
        """Return the settings as the rule reads them, with those changed for this update."""
        unknown = set(changed) - set(self.settings)
        if unknown:
            raise ArgumentError(
                f"{self.rule.__name__}: unknown setting {', '.join(sorted(unknown))}"
            )
        zero = [
            name for name in self.rule.optional
            if isinstance(self.settings.get(name), float) and not self.settings[name]
        ]  # fmt: skip
        return SimpleNamespace(**{**self.settings, **dict.fromkeys(zero), **changed})

    def init(self, params: Any) -> Any:
        """Return the initial state of all parameters: a dictionary per leaf."""
        h = self.hyper({})
        return [
            self.rule.init_state(x, h) if is_differentiable(x.dtype) else {}
            for x in map(as_tensor, flatten(params)[0])
        ]

    def update(self, grads: Any, state: Any, params: Any, **changed: Any) -> tuple[Any, Any]:
        """Return (new params, new state); settings such as `lr=...` override those of the rule."""
        h = self.hyper(changed)
        leaves, tree = flatten(params)
        slopes = flatten(grads)[0]
        if not len(leaves) == len(slopes) == len(state):
            raise ArgumentError(
                f"{self.rule.__name__}: {len(slopes)} gradients and {len(state)} states for "
                f"{len(leaves)} parameters"
            )
        pairs = [
            self.update_one(as_tensor(p), as_tensor(g), s, h)
            for p, g, s in zip(leaves, slopes, state)
        ]
        return unflatten(tree, [p for p, _ in pairs]), [s for _, s in pairs]

    def update_one(self, p: Any, g: Any, s: Any, h: SimpleNamespace) -> tuple[Any, Any]:
        if not is_differentiable(p.dtype):
            return p, s
        new, changed = self.rule.apply_update(p, g, s, h)
        kept = {name: cast(changed.get(name, old), old.dtype) for name, old in s.items()}
        return cast(new, p.dtype), kept


def pure_form(rule: type[Optimizer]) -> Callable[..., Rule]:
    """Return the function that makes the pure form of a rule from its settings."""

    def make(*args: Any, **settings: Any) -> Rule:
        one = as_tensor(0.0).expand(1, 1).clone()
        group: Group = rule([one], *args, **settings).param_groups[0]  # type: ignore[call-arg]
        return Rule(rule, {name: value for name, value in group.items() if name != "params"})

    make.__name__ = rule.__name__.lower()
    make.__doc__ = f"The pure form of `{rule.__name__}`, with the same settings."
    return make


sgd = public("optim.functional")(pure_form(_sgd.SGD))
asgd = public("optim.functional")(pure_form(_sgd.ASGD))
adam = public("optim.functional")(pure_form(_adam.Adam))
adamw = public("optim.functional")(pure_form(_adam.AdamW))
nadam = public("optim.functional")(pure_form(_adam.NAdam))
radam = public("optim.functional")(pure_form(_adam.RAdam))
adamax = public("optim.functional")(pure_form(_adam.Adamax))
rmsprop = public("optim.functional")(pure_form(_adaptive.RMSprop))
adagrad = public("optim.functional")(pure_form(_adaptive.Adagrad))
adadelta = public("optim.functional")(pure_form(_adaptive.Adadelta))
adafactor = public("optim.functional")(pure_form(_adaptive.Adafactor))
lion = public("optim.functional")(pure_form(_signs.Lion))
rprop = public("optim.functional")(pure_form(_signs.Rprop))
muon = public("optim.functional")(pure_form(_signs.Muon))

_, __dir__, __all__ = attach(__name__)
