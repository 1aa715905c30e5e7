"""FunctionLayer: a layer without parameters, a function with fixed settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from lucid.errors import ArgumentError
from lucid.nn.module import Module
from lucid.ops.core.constructors import check_range


class FunctionLayer(Module):
    """Call `function(*inputs, **settings)`; a subclass gives the function and default settings.

    settings          name -> default, in the order of the constructor's arguments
    hidden_in_repr    settings that the repr omits while they have their default
    """

    function: ClassVar[Callable[..., Any]]
    settings: ClassVar[dict[str, Any]] = {}
    hidden_in_repr: ClassVar[tuple[str, ...]] = ("inplace", "reduction")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.__dict__.update(self.bind_settings(args, kwargs))

    def bind_settings(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the settings, with the constructor's arguments filled in."""
        names = list(self.settings)
        unknown = [name for name in kwargs if name not in names]
        given = {**dict(zip(names, args)), **kwargs}
        missing = [n for n in names if self.settings[n] is REQUIRED and n not in given]
        if len(args) > len(names) or unknown or missing:
            facts = f"takes {', '.join(names) or 'no settings'}"
            if missing:
                facts = f"needs {', '.join(missing)}"
            raise ArgumentError(f"{type(self).__name__}: {facts}")
        for name, x in given.items():
            check_range(type(self).__name__, name, x)
        return {**self.settings, **given}

    def forward(self, *inputs: Any, **named: Any) -> Any:
        if "input" in named:
            inputs = (named.pop("input"), *inputs)
        chosen = {name: getattr(self, name) for name in self.settings}
        return type(self).function(*inputs, **named, **chosen)

    def extra_repr(self) -> str:
        shown = [
            f"{name}={self.__dict__[name]!r}"
            for name, default in self.settings.items()
            if name not in self.hidden_in_repr or self.__dict__[name] != default
        ]
        return ", ".join(shown)


REQUIRED = inspect.Parameter.empty
