"""Locks that survive a fork, and blocks that a fork waits for.

A forked child has one thread. A lock that another thread held at that moment would stay locked
forever in the child, so every lock of the package comes from `new_lock`, and those that the forking
thread does not hold are free in the child. The locks of LLVM, and of modules that are
being imported, cannot be freed that way: code that may hold them (compilation) runs under
`fork_waits`, and a fork waits until no thread is inside. llvmlite's own lock is also taken when
something of LLVM is freed, which happens anywhere, and in the child before any code of ours runs:
what belonged to the threads that are gone. So the forking thread holds it.
"""

from __future__ import annotations

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
MAX_RECORDING_WAIT = 30.0  # seconds to wait for a thread that records
POLL = 0.001  # polling interval in seconds

_locks: WeakSet[Any] = WeakSet()
_threads: list[int] = []  # threads inside `fork_waits`


def new_lock() -> Any:
    """Return a reentrant lock that is free in a forked child unless the forking thread held it."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


_entrance = new_lock()  # held during a fork
_state_lock = new_lock()


class _ForkWaits:
    """The context manager `fork_waits`."""

    def __enter__(self) -> None:
        thread = threading.get_ident()
        if thread in _threads:
            _threads.append(thread)  # a fork that waits for this thread must not stop it
            return
        with _entrance:
            _threads.append(thread)

    def __exit__(self, *_: Any) -> None:
        _threads.remove(threading.get_ident())


fork_waits = _ForkWaits()


def import_module(name: str) -> Any:
    """Import a module; a fork waits until it is done, since the child could not finish it."""
    with fork_waits, gc_paused():
        return importlib.import_module(name)


def _before_fork() -> None:
    """Wait until no other thread is in `fork_waits`, and let none enter until the fork is done."""
    _entrance.acquire()
    end = time.monotonic() + MAX_WAIT
    while set(_threads) - {threading.get_ident()} and time.monotonic() < end:
        time.sleep(POLL)
    if lock := _lock_of_llvmlite():
        lock.acquire(timeout=MAX_WAIT)


def _after_fork() -> None:
    if lock := _lock_of_llvmlite():
        release(lock)
    release(_entrance)


def _lock_of_llvmlite() -> Any:
    """Return the lock around all calls of LLVM, if llvmlite is imported."""
    ffi = sys.modules.get("llvmlite.binding.ffi")
    return getattr(getattr(getattr(ffi, "lib", None), "_lock", None), "_lock", None)


def _after_fork_in_child() -> None:
    _after_fork()
    _threads[:] = [thread for thread in _threads if thread == threading.get_ident()]
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


def wait_for_recording() -> bool:
    """Acquire the lock of shared state, which a recording holds, and return whether that worked.

    User code in a recording may itself wait for this thread, so this gives up after a while.
    """
    return bool(_state_lock.acquire(False) or _state_lock.acquire(timeout=MAX_RECORDING_WAIT))


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
