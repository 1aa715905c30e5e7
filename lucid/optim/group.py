"""Group: parameters with the settings of their updates.

A floating setting lives in a 0-d tensor, so that a compiled update reads the value of today: a new
learning rate compiles nothing. Reading `group["lr"]` gives a number, writing it writes that tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from lucid.errors import ArgumentError
from lucid.ir.source import at_line
from lucid.optim.counted import CountedList
from lucid.tape.modes import local
from lucid.tape.node import is_recording, wrap
from lucid.tensors.tensor import Tensor


class Group(MutableMapping[str, Any]):
    """One of the `param_groups` of an optimizer, used as a dictionary.

    optional    the settings that an update leaves out where they are 0: momentum, weight decay
    shape       what decides, apart from numbers, how the parameters are updated
    prepared    the shape for which the states of the parameters were made
    _computed   settings that a jitted step writes: what they are is known only when it runs
    """

    def __init__(self, settings: dict[str, Any], optional: tuple[str, ...]) -> None:
        self._settings: dict[str, Any] = {}
        self._optional = optional
        self._computed: set[str] = set()
        self._shapes: dict[Any, tuple[Any, ...]] = {}
        self.shape: tuple[Any, ...] = ()
        self.prepared: tuple[Any, ...] | None = None
        for name, value in settings.items():
            self[name] = value

    def __getitem__(self, name: str) -> Any:
        return plain(self._settings[name])

    def __setitem__(self, name: str, value: Any) -> None:
        if is_recording() and isinstance(value, Tensor):
            self._computed.add(name)
        if name == "params":
            value = CountedList(value, self._reshape)
        self._settings[name] = renewed(self._settings.get(name), value)
        self._reshape()

    def _reshape(self) -> None:
        shape = tuple((key, self._kind(key)) for key in self._settings)
        self.shape = self._shapes.setdefault(shape, shape)  # one object for each, to be compared

    def __delitem__(self, name: str) -> None:
        del self._settings[name]

    def __contains__(self, name: object) -> bool:
        return name in self._settings

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __len__(self) -> int:
        return len(self._settings)

    def __repr__(self) -> str:
        shown = {name: value for name, value in self.items() if name != "params"}
        return f"Group({len(self['params'])} parameters, {shown})"

    def _kind(self, name: str) -> Any:
        """What decides, apart from numbers, how the parameters are updated."""
        value = self._settings[name]
        if name == "params":
            return tuple(map(id, value))
        if isinstance(value, Tensor):
            return "number" if self._counts(name) else "zero"
        if isinstance(value, tuple):
            return tuple(type(x) for x in value)
        return value if isinstance(value, (int, float, str, type(None))) else id(value)

    def _counts(self, name: str) -> bool:
        """False for an optional setting that is 0."""
        value = self._settings[name]
        if name not in self._optional or not isinstance(value, Tensor):
            return True
        return name in self._computed or bool(value.value)

    def tensor(self, name: str) -> Any:
        """A floating setting as the tensor it lives in."""
        return self._settings[name]

    def hyper(self) -> SimpleNamespace:
        """The settings as an update reads them: tensors, flags, and None for an optional 0."""
        if is_recording():
            local.recorder.depends(self.__dict__, "shape")
        return SimpleNamespace(
            **{
                name: value if self._counts(name) else None
                for name, value in self._settings.items()
                if name != "params"
            }
        )


def plain(value: Any) -> Any:
    """A setting as Python reads it."""
    if isinstance(value, Tensor):
        return value.item()
    return tuple(map(plain, value)) if isinstance(value, tuple) else value


def renewed(old: Any, value: Any) -> Any:
    """A setting after an assignment: a floating one stays in its tensor."""
    if isinstance(value, list) and value and all(isinstance(x, float) for x in value):
        value = tuple(value)
    if isinstance(value, tuple):
        olds = old if isinstance(old, tuple) and len(old) == len(value) else [None] * len(value)
        return tuple(renewed(o, v) for o, v in zip(olds, value))
    if isinstance(old, Tensor) and isinstance(value, (int, float, np.number, Tensor)):
        write(old, value)
        return old
    if isinstance(value, (float, np.floating)):
        return wrap(np.array(value, np.float64))
    if isinstance(value, Tensor):
        if value.shape != ():
            raise ArgumentError(
                f"a setting is one number, not a tensor of shape {value.shape}{at_line()}"
            )
        return wrap(np.array(value.item(), np.float64))
    return value


def write(setting: Tensor, value: Any) -> None:
    if isinstance(value, Tensor):
        setting.copy_(value.detach())
    elif is_recording():
        setting.fill_(float(value))
    else:
        setting.value[...] = value
