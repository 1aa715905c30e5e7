"""Kernels by structure: loaded ones are reused, others come from disk or are compiled together."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from lucid.compiler.backends import llvm, selection
from lucid.compiler.backends.selection import Backend
from lucid.compiler.kernels.nest import Structure
from lucid.compiler.runtime.native_kernel import Kernel, Request, load_all, texts_of
from lucid.support.caches import new_cache
from lucid.support.locks import fork_waits, new_lock

MAX_KERNELS = 4096
MIN_KERNELS_PER_MODULE = 3  # the fewest kernels that are worth a separate module,
MIN_VALUES_PER_MODULE = 150  # unless they are as long as this
KERNEL_OVERHEAD = 10  # fixed cost of compiling a kernel, in values

_loaded: dict[Any, Kernel] = {}  # the latest last; see `prepare._prepared`
_lock = new_lock()


def _clear() -> None:
    with _lock:
        _loaded.clear()


new_cache(f"{__name__}._loaded", _loaded, _clear)


@dataclass(frozen=True)
class TextKernel:
    """A kernel given as LLVM IR text that defines a function of this name."""

    name: str
    text: str

    @property
    def key(self) -> Hashable:
        return (self.name, self.text)

    def request(self) -> Request:
        return Request((self.name,), self.text, self.text.encode())


class Source(Protocol):
    """Where the code of one kernel comes from."""

    @property
    def name(self) -> str: ...

    @property
    def key(self) -> Hashable: ...

    def request(self) -> Request: ...


def name_of(source: Structure | Source) -> str:
    """Return a name for a kernel that is the same in every process."""
    if not isinstance(source, Structure):
        return source.name
    return "k" + hashlib.sha256(repr(source.key).encode()).hexdigest()[:20]


def kernels_of(sources: Iterable[Structure | Source]) -> dict[Any, Kernel]:
    """Return the Kernel of each source, by its key, as the current backend compiles it."""
    backend = selection.current()
    with fork_waits(), _lock:
        wanted = {source.key: source for source in sources}
        slots = {key: slot_of(source, backend) for key, source in wanted.items()}
        missing = [wanted[key] for key in wanted if slots[key] not in _loaded]
        nests = {name_of(s): s for s in missing if isinstance(s, Structure)}
        others = {s.name: s for s in missing if not isinstance(s, Structure)}
        requests = [source.request() for source in others.values()]
        python = python_kernels(nests, backend)
        if nests and not python:
            requests += nest_requests(nests, backend)
        for loaded in [python, *load_all(requests)]:
            for name, kernel in loaded.items():
                _loaded[slots[(nests.get(name) or others[name]).key]] = kernel
        found = {key: _loaded[slot] for key, slot in slots.items()}
        for slot in slots.values():
            _loaded[slot] = _loaded.pop(slot)
        while len(_loaded) > MAX_KERNELS:
            del _loaded[next(iter(_loaded))]
        return found


def slot_of(source: Structure | Source, backend: Backend) -> Hashable:
    """The key under which a kernel is loaded: no two backends or texts share one."""
    if isinstance(source, TextKernel):
        return source.key
    called = getattr(source, "structures", {"": source}).values()
    texts = tuple([backend.replaced.get(structure.key) for structure in called])
    return (backend.name, is_steppable(backend), texts, source.key)


def is_steppable(backend: Backend) -> bool:
    """True if kernels are called as Python: NUMBA_DISABLE_JIT=1 with the Numba backend."""
    if backend.name != "numba":
        return False
    from lucid.compiler.backends.numba.steppable import is_steppable

    return is_steppable()


def python_kernels(nests: dict[str, Structure], backend: Backend) -> dict[str, Kernel]:
    """The kernels of nests as Python functions, if kernels are to be called as such."""
    if not nests or not is_steppable(backend):
        return {}
    from lucid.compiler.backends.numba.steppable import python_kernels

    return python_kernels(nests, {n: backend.replaced.get(s.key, "") for n, s in nests.items()})


def modules_of(source: Structure | Source, backend: Backend) -> tuple[object, ...]:
    """The LLVM modules of a kernel, to read: the first defines it."""
    if isinstance(source, Structure):
        return texts_of(nest_request({name_of(source): source}, backend).source)
    return texts_of(source.request().source)


def nest_requests(nests: dict[str, Structure], backend: Backend) -> list[Request]:
    """Group the kernels of nests into as many modules as can be compiled in parallel."""
    values = sum(len(nest.values) for nest in nests.values())
    worth = max(len(nests) // MIN_KERNELS_PER_MODULE, values // MIN_VALUES_PER_MODULE, 1)
    parts = min(os.cpu_count() or 1, len(nests), worth)
    modules: list[list[str]] = [[] for _ in range(parts)]
    work = [0] * parts
    for name in sorted(nests, key=lambda name: (-len(nests[name].values), name)):
        least = work.index(min(work))
        modules[least].append(name)
        work[least] += KERNEL_OVERHEAD + len(nests[name].values)
    chosen = [{name: nests[name] for name in sorted(module)} for module in modules]
    return [nest_request(module, backend) for module in chosen]


def nest_request(nests: dict[str, Structure], backend: Backend) -> Request:
    """Request the kernels of nests as one module."""
    if backend.name == "llvm":
        return llvm.request(nests)
    from lucid.compiler.backends.numba import compile

    return compile.request(nests, backend.replaced)
