"""Modes: gradient recording, inference, anomaly checks, tracing and replay, in one object.

`current()` returns the Modes of the running context (`contextvars`): of a thread, and of a task in
asyncio. A Modes object never changes once it is set: `local.grad = False` sets a copy, so a task
that changes a mode does not affect others. Hot code reads `current().grad`; the rest reads and
writes `local.grad`, which is the same.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from lucid.support.caches import new_cache
from lucid.support.source import Replay, Scope

MAX_INNER = 1024  # modules that are made anew for every call are not kept
_new = object.__new__


class Modes:
    """The modes of a context.

    grad            equations are recorded for `backward`
    inference       inference_mode: results can never be tracked
    anomaly         values are checked for nan, and the line is named
    source          the Source that replayed equations inherit
    staging         the Trace of a transform whose rules run: constants are equations too
    recorder        the active Recorder, while a jitted function is recorded
    maps            the active vmaps, innermost last
    interpret       evals run no compiled program: the result of one is being verified
    dual_level      the open level of forward_ad
    transforms      how many derivatives of functions (grad, jvp, vjp, ...) are being computed
    budget          the bytes that the temporaries of a jitted program may have, or None
    fast_record     grad without recorder, replay or saved_hooks: operations record on the fast path
    no_observers    no transform, recorder, replay, hook or anomaly check needs every equation
    other_grad      the same modes with `grad` the other way, kept while they hold no tape
    scope           the Scope that equations are made in, None outside modules and named scopes
    saved_hooks     what packs the values that derivatives need, see autograd.saved_tensors
    refused_hooks   the error for those who want to set saved_hooks, or None
    inner           id of a module -> the same modes in the scope of that module
    """

    __slots__ = (
        "anomaly",
        "budget",
        "dual_level",
        "fast_record",
        "grad",
        "inference",
        "inner",
        "interpret",
        "maps",
        "no_observers",
        "other_grad",
        "recorder",
        "refused_hooks",
        "saved_hooks",
        "scope",
        "source",
        "staging",
        "transforms",
    )

    def __init__(self) -> None:
        self.grad = True
        self.inference = False
        self.anomaly = False
        self.interpret = False
        self.source: Any = None
        self.staging: Any = None
        self.recorder: Any = None
        self.maps: tuple[Any, ...] = ()
        self.dual_level: Any = None
        self.transforms = 0
        self.budget: int | None = None
        self.fast_record = True
        self.no_observers = True
        self.other_grad: Modes | None = None
        self.scope: Scope | None = None
        self.saved_hooks: Any = None
        self.refused_hooks: str | None = None
        self.inner: dict[int, Modes] = {}

    def with_mode(self, name: str, value: Any) -> Modes:
        """Return a copy in which one mode has another value."""
        new = _new(Modes)
        new.grad = self.grad
        new.inference = self.inference
        new.anomaly = self.anomaly
        new.interpret = self.interpret
        new.source = self.source
        new.staging = self.staging
        new.recorder = self.recorder
        new.maps = self.maps
        new.dual_level = self.dual_level
        new.transforms = self.transforms
        new.budget = self.budget
        new.scope = self.scope
        new.saved_hooks = self.saved_hooks
        new.refused_hooks = self.refused_hooks
        new.inner = {}
        setattr(new, name, value)
        new.other_grad = None
        direct = new.source is None and new.recorder is None and new.saved_hooks is None
        new.fast_record = direct and new.grad
        new.no_observers = direct and new.staging is None and not new.anomaly and not new.maps
        return new

    def with_grad(self, grad: bool) -> Modes:
        """Return the same modes with `grad` on or off, which is kept: every step changes it."""
        if self.grad is grad:
            return self
        found = self.other_grad
        if found is None:
            found = self.with_mode("grad", grad)
            if self.no_observers and self.dual_level is None:  # the two hold only each other
                self.other_grad, found.other_grad = found, self
        return found

    def inside(self, owner: Any) -> Modes:
        """Return the same modes in the scope of a module or an optimizer."""
        found = self.inner.get(id(owner))
        if found is None or found.scope.owner() is not owner:  # type: ignore[union-attr]
            if len(self.inner) >= MAX_INNER:
                self.inner.clear()
            found = self.inner[id(owner)] = self.with_mode("scope", Scope.of(owner, self.scope))
        return found


_DEFAULT = Modes()
_current: ContextVar[Modes] = ContextVar("lucid_modes", default=_DEFAULT)
current = _current.get
set_modes = _current.set
new_cache(f"{__name__}._DEFAULT", _DEFAULT.inner)


def leave(inner: Modes, outer: Modes) -> None:
    """Leave the scope of `inner` for that of `outer`; a mode that was set meanwhile stays set."""
    now = current()
    _current.set(outer if now is inner else now.with_mode("scope", outer.scope))


class _Local:
    """The modes of the running context as attributes, to read and to set."""

    __slots__ = ()

    fast_record: bool
    no_observers: bool
    grad: bool
    inference: bool
    anomaly: bool
    interpret: bool
    source: Any
    staging: Any
    recorder: Any
    maps: tuple[Any, ...]
    dual_level: Any
    transforms: int
    budget: int | None
    scope: Scope | None
    saved_hooks: Any
    refused_hooks: str | None

    def __getattr__(self, name: str) -> Any:
        return getattr(current(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        modes = current()
        _current.set(modes.with_grad(value) if name == "grad" else modes.with_mode(name, value))


local = _Local()
Replay.source = staticmethod(lambda: current().source)
Replay.scope = staticmethod(lambda: current().scope)
