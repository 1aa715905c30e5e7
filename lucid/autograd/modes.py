"""no_grad, enable_grad, inference_mode and detect_anomaly: modes of a thread or task."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from lucid.errors import ArgumentError
from lucid.public.declare import public
from lucid.support.source import at_line
from lucid.tape.modes import current, local, set_modes

F = TypeVar("F", bound=Callable[..., Any])


class Mode:
    """Sets modes of the context in a `with` block or a decorated function, then restores them."""

    def __init__(self, **modes: Any) -> None:
        self.modes = modes
        self.before: list[dict[str, Any]] = []

    def __enter__(self) -> Mode:
        self.before.append({name: getattr(local, name) for name in self.modes})
        self.set(self.modes)
        return self

    def __exit__(self, *_: Any) -> None:
        self.set(self.before.pop())

    @staticmethod
    def set(modes: dict[str, Any]) -> None:
        for name, value in modes.items():
            setattr(local, name, value)

    def __call__(self, function: F) -> F:
        modes = self.modes
        if inspect.isgeneratorfunction(function):
            return _generator(function, modes)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with Mode(**modes):
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


class Grad(Mode):
    """A fast Mode that only turns recording on or off: it is entered at every training step."""

    def __init__(self, grad: bool) -> None:
        self.grad = grad
        self.outer: list[bool] = []

    @property
    def modes(self) -> dict[str, Any]:  # type: ignore[override]
        return {"grad": self.grad}

    def __enter__(self) -> Mode:
        modes = current()
        self.outer.append(modes.grad)
        set_modes(modes.with_grad(self.grad))
        return self

    def __exit__(self, *_: Any) -> None:
        set_modes(current().with_grad(self.outer.pop()))


def _generator(function: Any, modes: dict[str, Any]) -> Any:
    """Return a generator whose own code runs in the modes, unlike the code that consumes it."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        steps = function(*args, **kwargs)
        resume, sent = steps.send, None
        while True:
            with Mode(**modes):
                try:
                    item = resume(sent)
                except StopIteration as stop:
                    return stop.value
            try:
                resume, sent = steps.send, (yield item)
            except GeneratorExit:
                with Mode(**modes):
                    steps.close()
                raise
            except BaseException as error:
                resume, sent = steps.throw, error

    return wrapped


def _maybe_decorator(mode: Mode, function: Any) -> Any:
    return mode if function is None else mode(function)


@public("lucid", "autograd")
def no_grad(function: Any = None) -> Any:
    """Turn recording off: `with lucid.no_grad(): ...`, `@lucid.no_grad()` or `@lucid.no_grad`.

    >>> import lucid
    >>> x = lucid.ones(2, requires_grad=True)
    >>> with lucid.no_grad():
    ...     print((x * 2).requires_grad)
    False
    """
    return Grad(False) if function is None else Grad(False)(function)


@public("lucid", "autograd")
def enable_grad(function: Any = None) -> Any:
    """Turn recording on again inside a `no_grad` block."""
    return Grad(True) if function is None else Grad(True)(function)


@public("lucid", "autograd")
def inference_mode(mode: Any = True) -> Any:
    """Like `no_grad`, for code whose results are never used in autograd."""
    if callable(mode):
        return Mode(grad=False, inference=True)(mode)
    if not isinstance(mode, (bool, int, np.bool_)):
        raise ArgumentError(f"inference_mode: mode={mode!r:.40} is not a bool{at_line()}")
    return Mode(grad=not mode, inference=bool(mode))


@public("lucid", "autograd")
class set_grad_enabled(Mode):
    """Turn recording on or off: immediately when called, or for the duration of a `with` block."""

    def __init__(self, mode: bool) -> None:
        super().__init__(grad=bool(mode))
        self.outer = local.grad
        local.grad = bool(mode)

    def __enter__(self) -> Mode:
        self.before.append({"grad": self.outer})
        local.grad = self.modes["grad"]
        return self

    def __call__(self, function: F) -> F:
        local.grad = self.outer
        return super().__call__(function)


@public("lucid", "autograd")
def is_grad_enabled() -> bool:
    """True if operations are recorded for `backward`."""
    return local.grad


@public("lucid", "autograd")
def is_inference_mode_enabled() -> bool:
    """True inside `inference_mode`."""
    return local.inference


@public("autograd")
def detect_anomaly(mode: bool = True) -> Any:
    """Make `backward` check for nan and raise an error that names the line that produced it."""
    return Mode(anomaly=mode)


@public("autograd")
class set_detect_anomaly(Mode):
    """Turn `detect_anomaly` on or off: immediately, or for the duration of a `with` block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(anomaly=bool(mode) and bool(check_nan))
        self.outer = local.anomaly
        local.anomaly = self.modes["anomaly"]

    def __enter__(self) -> Mode:
        self.before.append({"anomaly": self.outer})
        return self


@public("autograd")
def is_anomaly_enabled() -> bool:
    """True if `backward` checks for nan."""
    return local.anomaly
