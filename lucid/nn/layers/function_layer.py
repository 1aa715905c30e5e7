"""Families of layers: classes that differ only in keywords of their class statement."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from lucid.errors import ArgumentError
from lucid.nn.module import Module
from lucid.ops.core.constructors import check_range
from lucid.tensors.tensor import Tensor

REQUIRED = inspect.Parameter.empty


class LayerFamily(Module):
    """Layers that differ in class attributes: `class Conv1d(Convolution, axes=1): ...`."""

    def __init_subclass__(cls, **attributes: Any) -> None:
        super().__init_subclass__()
        for name, value in attributes.items():
            setattr(cls, name, value)


class FunctionLayer(Module):
    """A layer without parameters, which calls `function(*inputs, **settings)`.

    Settings that are tensors are registered as buffers.

    A subclass gives the function and the settings, with their defaults, as keywords in the order of
    the constructor's arguments: `class ELU(FunctionLayer, function=F.elu, alpha=1.0): ...`.

    hidden_in_repr    settings that the repr omits while they have their default
    """

    function: ClassVar[Callable[..., Any]]
    settings: ClassVar[dict[str, Any]] = {}
    hidden_in_repr: ClassVar[tuple[str, ...]] = ("inplace", "reduction")
    __signature__: ClassVar[inspect.Signature | None] = None

    def __init_subclass__(
        cls,
        function: Callable[..., Any] | None = None,
        hidden_in_repr: tuple[str, ...] | None = None,
        **settings: Any,
    ) -> None:
        super().__init_subclass__()
        cls.hidden_in_repr = hidden_in_repr or cls.hidden_in_repr
        cls.settings = settings or cls.settings
        if function is not None:
            cls.function = function
            cls.__signature__ = cls.constructor_signature()
        elif "__init__" in cls.__dict__:
            cls.__signature__ = None  # that of `__init__`

    @classmethod
    def constructor_signature(cls) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        arguments = cls.constructor_arguments().items()
        return inspect.Signature([inspect.Parameter(n, kind, default=x) for n, x in arguments])

    @classmethod
    def constructor_arguments(cls) -> dict[str, Any]:
        """Return the arguments of the constructor and their defaults, in order."""
        return cls.settings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        for name, value in self.bind_settings(args, kwargs).items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value)
            else:
                self.__dict__[name] = value

    def bind_settings(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the settings, with the constructor's arguments filled in."""
        defaults = self.constructor_arguments()
        unknown = [name for name in kwargs if name not in defaults]
        given = {**dict(zip(defaults, args)), **kwargs}
        missing = [n for n, x in defaults.items() if x is REQUIRED and n not in given]
        if len(args) > len(defaults) or unknown or missing:
            facts = f"takes {', '.join(self.settings) or 'no settings'}"
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
            if name in self.__dict__
            and (name not in self.hidden_in_repr or self.__dict__[name] != default)
        ]
        return ", ".join(shown)
