"""Group: parameters and the settings of their updates.

A floating setting is stored in a 0-d tensor, so a compiled update reads its current value: a new
learning rate compiles nothing. Reading `group["lr"]` gives a number, writing it writes that tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from lucid.errors import ArgumentError
from lucid.optim.observed import ObservedList
from lucid.tape.conversion import TensorForNumberError, needs_grad
from lucid.tape.modes import local
from lucid.tape.node import is_recording, wrap
from lucid.tensors.tensor import Tensor


class Group(MutableMapping[str, Any]):
    """One of the `param_groups` of an optimizer, used as a dictionary.

    _optional      settings that an update omits while they are 0: momentum, weight decay
    signature      what determines, apart from numbers, how the parameters are updated
    prepared_for   the signature for which the states of the parameters were created
    _computed      settings that a jitted step writes, whose values are known only when it runs
    """

    def __init__(self, settings: dict[str, Any], optional: tuple[str, ...]) -> None:
        self._settings: dict[str, Any] = {}
        self._optional = optional
        self._computed: set[str] = set()
        self._signatures: dict[Any, tuple[Any, ...]] = {}
        self.signature: tuple[Any, ...] = ()
        self.prepared_for: tuple[Any, ...] | None = None
        for name, value in settings.items():
            self[name] = value

    def __getitem__(self, name: str) -> Any:
        return as_python(self._settings[name])

    def __setitem__(self, name: str, value: Any) -> None:
        if is_recording() and isinstance(value, Tensor):
            self._computed.add(name)
        if name == "params":
            value = ObservedList(value, self._update_signature)
        self._settings[name] = updated_setting(self._settings.get(name), value)
        self._update_signature()

    def _update_signature(self) -> None:
        signature = tuple((key, self._signature_of(key)) for key in self._settings)
        # equal signatures are one object, so that they compare by identity
        self.signature = self._signatures.setdefault(signature, signature)

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

    def _signature_of(self, name: str) -> Any:
        """Return what a setting contributes to the signature."""
        value = self._settings[name]
        if name == "params":
            return tuple(map(id, value))
        if isinstance(value, Tensor):
            return "number" if self._is_used(name) else "zero"
        if isinstance(value, tuple):
            return tuple(type(x) for x in value)
        return value if isinstance(value, (int, float, str, type(None))) else id(value)

    def _is_used(self, name: str) -> bool:
        """False for an optional setting that is 0."""
        value = self._settings[name]
        if name not in self._optional or not isinstance(value, Tensor):
            return True
        return name in self._computed or bool(value.value)

    def tensor(self, name: str) -> Any:
        """Return a floating setting as the tensor that stores it."""
        return self._settings[name]

    def named_tensors(self, prefix: str) -> Iterator[tuple[str, Any]]:
        """Iterate over the tensors that store settings: `Adam.lr`, `Adam.betas[0]`."""
        for name, value in self._settings.items():
            if isinstance(value, Tensor):
                yield f"{prefix}.{name}", value
            elif isinstance(value, tuple):
                for i, x in enumerate(value):
                    if isinstance(x, Tensor):
                        yield f"{prefix}.{name}[{i}]", x

    def hyper(self) -> SimpleNamespace:
        """Return the settings as an update reads them: tensors, flags, None for an optional 0."""
        if is_recording():
            local.recorder.guard_entry(self.__dict__, "signature")
        return SimpleNamespace(
            **{
                name: value if self._is_used(name) else None
                for name, value in self._settings.items()
                if name != "params"
            }
        )


def as_python(value: Any) -> Any:
    """Return a setting as a Python value."""
    if isinstance(value, Tensor):
        return value.item()
    return tuple(map(as_python, value)) if isinstance(value, tuple) else value


def updated_setting(old: Any, value: Any) -> Any:
    """Return a setting after an assignment; a floating one stays in its tensor."""
    if isinstance(value, list) and value and all(isinstance(x, float) for x in value):
        value = tuple(value)
    if isinstance(value, tuple):
        olds = old if isinstance(old, tuple) and len(old) == len(value) else [None] * len(value)
        return tuple(updated_setting(o, v) for o, v in zip(olds, value))
    if needs_grad(value):
        raise TensorForNumberError(value, "param_groups", "a setting")
    if isinstance(old, Tensor) and isinstance(value, (int, float, np.number, Tensor)):
        write_setting(old, value)
        return old
    if isinstance(value, (float, np.floating)):
        return wrap(np.array(value, np.float64))
    if isinstance(value, Tensor):
        if value.shape != ():
            raise ArgumentError(
                f"a setting must be one number, not a tensor of shape {value.shape}"
            )
        return wrap(np.array(value.item(), np.float64))
    return value


def write_setting(setting: Tensor, value: Any) -> None:
    """Write a number into the tensor of a setting."""
    if isinstance(value, Tensor):
        setting.copy_(value.detach())
    elif is_recording():
        setting.fill_(float(value))
    else:
        setting.value[...] = value
