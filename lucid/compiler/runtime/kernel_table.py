"""Kernels by structure: loaded ones are reused, others come from disk or are compiled together."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from lucid.caches import new_cache
from lucid.compiler.kernels import emit as emitter
from lucid.compiler.kernels import scalars
from lucid.compiler.kernels.nest import Structure
from lucid.compiler.runtime.native_kernel import Kernel, Request, load_all
from lucid.locks import fork_waits, new_lock

MAX_KERNELS = 4096
MIN_KERNELS_PER_MODULE = 3  # the fewest kernels that are worth a separate module
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


def name_of(structure: Structure) -> str:
    """Return a name for a kernel that is the same in every process."""
    return "k" + hashlib.sha256(repr(structure.key).encode()).hexdigest()[:20]


def kernels_of(sources: Iterable[Structure | Source]) -> dict[Any, Kernel]:
    """Return the Kernel of each source, by its key."""
    with fork_waits, _lock:
        wanted = {source.key: source for source in sources}
        missing = [source for key, source in wanted.items() if key not in _loaded]
        nests = {name_of(s): s for s in missing if isinstance(s, Structure)}
        others = {s.name: s for s in missing if not isinstance(s, Structure)}
        requests = [source.request() for source in others.values()]
        if nests:
            requests += nest_requests(nests)
        for loaded in load_all(requests):
            for name, kernel in loaded.items():
                _loaded[(nests.get(name) or others[name]).key] = kernel
        found = {key: _loaded[key] for key in wanted}
        for key in wanted:
            _loaded[key] = _loaded.pop(key)
        while len(_loaded) > MAX_KERNELS:
            del _loaded[next(iter(_loaded))]
        return found


def nest_requests(nests: dict[str, Structure]) -> list[Request]:
    """Group the kernels of nests into as many modules as can be compiled in parallel."""
    parts = max(1, min(os.cpu_count() or 1, len(nests) // MIN_KERNELS_PER_MODULE))
    modules: list[list[str]] = [[] for _ in range(parts)]
    work = [0] * parts
    for name in sorted(nests, key=lambda name: (-len(nests[name].values), name)):
        least = work.index(min(work))
        modules[least].append(name)
        work[least] += KERNEL_OVERHEAD + len(nests[name].values)
    return [nest_request({name: nests[name] for name in sorted(module)}) for module in modules]


def nest_request(nests: dict[str, Structure]) -> Request:
    """Request the kernels of nests as one module."""
    names = tuple(nests)
    text = f"{emitter.VERSION} {scalars.VERSION} {' '.join(names)}"
    return Request(names, lambda: emitter.emit(nests), text.encode())
