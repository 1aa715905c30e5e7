"""Which backend compiles the kernels of Nests: `LUCID_BACKEND`, or what `jit` was given.

with using(Backend("numba")):
    program = compile_graph(graph)
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from lucid.errors import ArgumentError
from lucid.support.settings import BACKENDS, setting

_local = threading.local()


class Backend(NamedTuple):
    """A backend, and the texts that replace the listings of some kernels, by structure key."""

    name: str = "llvm"
    replaced: Mapping[Hashable, str] = {}


def named(name: Backend | str | None) -> Backend | None:
    """The backend of this name; None, which stands for `LUCID_BACKEND`, if it is None."""
    if name is None or isinstance(name, Backend):
        return name
    if name in BACKENDS:
        return Backend(name)
    facts = f"backend={name!r} is not a backend; choose one of {', '.join(BACKENDS)}"
    raise ArgumentError(f"jit: {facts}")


def current() -> Backend:
    """The backend of the programs that this thread compiles now."""
    chosen = getattr(_local, "chosen", None)
    return chosen if chosen is not None else Backend(setting("LUCID_BACKEND"))


@contextmanager
def using(backend: Backend | None) -> Iterator[None]:
    """Context in which this backend compiles programs; None keeps the current one."""
    before = getattr(_local, "chosen", None)
    _local.chosen = backend if backend is not None else before
    try:
        yield
    finally:
        _local.chosen = before


def program_key() -> str | None:
    """What the programs of the current backend depend on; None if they are not to be stored."""
    backend = current()
    if backend.name == "llvm":
        return "llvm"
    from lucid.compiler.backends.numba.compile import versions
    from lucid.compiler.backends.numba.steppable import is_steppable

    return None if backend.replaced or is_steppable() else f"numba {versions()}"
