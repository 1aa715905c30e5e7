"""Locks that survive a fork, and blocks that a fork waits for.

A forked child has one thread. A lock that another thread held at that moment would stay locked
forever in the child, so every lock of the package comes from `new_lock`, and those that the forking
thread does not hold are free in the child. The locks of LLVM cannot be freed that way: code that
may hold them (compilation) holds `fork_waits()`, a lock of its thread, and a fork takes those of
all other threads. llvmlite's own lock is also taken when something of LLVM is freed, which happens
anywhere, and in the child before any code of ours runs: what belonged to the threads that are gone.
So the forking thread holds it. A module that another thread imports could never be imported by the
child: a fork waits until no other thread imports anything.
"""

from __future__ import annotations

import _imp
import contextlib
import importlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakSet

from lucid.support.garbage import gc_paused

MAX_WAIT = 60.0  # the longest that a fork waits, in seconds
MAX_IMPORT_WAIT = 10.0  # seconds of them for modules, which may run anything when imported
MAX_UNOWNED_WAIT = 0.05
WAIT = 1.0  # seconds after which threads that wait for a fork, and that it waits for, come first
MAX_RECORDING_WAIT = 30.0  # seconds to wait for a thread that records

_locks: WeakSet[Any] = WeakSet()
_of_threads: WeakSet[Any] = WeakSet()  # the locks that `fork_waits` returns


def new_lock() -> Any:
    """Return a reentrant lock that is free in a forked child unless the forking thread held it."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


_entrance = new_lock()  # held during a fork, and to add a thread
_state_lock = new_lock()


class _Own(threading.local):
    """A lock of each thread."""

    def __init__(self) -> None:
        with _entrance:
            self.lock = new_lock()
            _of_threads.add(self.lock)


_own = _Own()


def fork_waits() -> Any:
    """Return a lock of this thread; a fork in another one waits until it is free."""
    lock = _own.lock
    if not lock._is_owned():
        with _entrance:  # a fork that waits comes first, however often this thread asks
            pass
    return lock


def import_module(name: str) -> Any:
    """Import a module."""
    if name in sys.modules:  # perhaps not to its end, in another thread: then this waits
        return importlib.import_module(name)
    with gc_paused(imports=True):
        return importlib.import_module(name)


def _before_fork() -> None:
    """Take the locks that other threads hold while a fork must wait, until the fork is done."""
    start = time.monotonic()
    while not _take_all(waited := time.monotonic() - start) and waited < MAX_WAIT:
        _after_fork()  # one of those threads may wait for a lock of one that waits at the entrance
        time.sleep(0.001)


def _take_all(waited: float) -> bool:
    """Take the entrance and the locks of other threads; False if one was not to be had."""
    _entrance.acquire()
    end = time.monotonic() + WAIT
    locks = _of_other_threads()
    if lock := _lock_of_llvmlite():
        locks.append(lock)
    taken = [lock.acquire(timeout=max(0.0, end - time.monotonic())) for lock in locks]
    _imp.acquire_lock()  # no further import begins
    return all(taken) and not _others_import(waited)


def _after_fork() -> None:
    with contextlib.suppress(RuntimeError):  # an interrupt may have kept it from being taken
        _imp.release_lock()
    if lock := _lock_of_llvmlite():
        release(lock)
    for lock in _of_other_threads():
        release(lock)
    release(_entrance)


def _others_import(waited: float) -> bool:
    """Return whether to wait for another thread that imports a module.

    A lock of a module that nobody owns has just been made or left, or an old traceback keeps it.
    """
    locks = getattr(importlib._bootstrap, "_module_locks", {})
    owners = [getattr(reference(), "owner", None) for reference in list(locks.values())]
    if waited < MAX_UNOWNED_WAIT and None in owners:
        return True
    return waited < MAX_IMPORT_WAIT and any(
        owner not in (None, threading.get_ident()) for owner in owners
    )


def _of_other_threads() -> list[Any]:
    own = _own.lock  # made now if it is not there, which must not happen in the loop
    return [lock for lock in _of_threads if lock is not own]


def _lock_of_llvmlite() -> Any:
    """Return the lock around all calls of LLVM, if llvmlite is imported."""
    ffi = sys.modules.get("llvmlite.binding.ffi")
    return getattr(getattr(getattr(ffi, "lib", None), "_lock", None), "_lock", None)


def _after_fork_in_child() -> None:
    _after_fork()
    for lock in list(_locks):
        if not lock._is_owned():
            lock._at_fork_reinit()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
)


def state_lock() -> Any:
    """Return the lock to hold while a recording or a trace uses state that threads share.

    It is acquired before any other lock of shared state, so that threads never wait for each other.
    """
    return _state_lock


def after_recording(function: Callable[..., Any], *args: Any) -> Any:
    """Return `function(*args)`, called with the lock of shared state, which a recording holds.

    User code in a recording may itself wait for this thread, so after a while the function is
    called without the lock.
    """
    acquired: list[bool] = []
    try:
        # One call in C, which an interrupt cannot part, takes the lock and notes that it did; a
        # `with` statement cannot give up.
        acquired.extend(map(_state_lock.acquire, (True,), (MAX_RECORDING_WAIT,)))
        return function(*args)
    finally:
        if acquired and acquired[0]:
            _state_lock.release()


def release(lock: Any) -> None:
    """Release a lock that an interrupt may have kept from being acquired."""
    if lock._is_owned():
        lock.release()


class Locks:
    """Locks that are acquired together, or not at all if that is interrupted; usually none.

    This is not a context manager: an interrupt that comes when a `with` statement calls an
    `__exit__` written in Python keeps it from running. Those of Python's own locks always run.

    traces    whether something is traced, or shared state written, while they are held
    """

    __slots__ = ("locks",)

    def __init__(self, locks: Iterable[Any], traces: bool = False) -> None:
        self.locks = list({id(lock): lock for lock in locks}.values())
        if len(self.locks) > 1 or (self.locks and traces):
            self.locks.insert(0, state_lock())

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return `function(*args)`, called while the locks are held."""
        return _run_holding(self.locks, function, args)

    def acquire(self) -> None:
        """Acquire the locks; the caller calls `release` whatever happens."""
        for lock in self.locks:
            lock.acquire()

    def release(self) -> None:
        for lock in reversed(self.locks):
            release(lock)


def _run_holding(locks: Sequence[Any], function: Callable[..., Any], args: Any) -> Any:
    if not locks:
        return function(*args)
    with locks[0]:
        return _run_holding(locks[1:], function, args)
