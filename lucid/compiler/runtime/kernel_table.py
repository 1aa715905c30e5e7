"""Kernels by structure: known ones come from memory or disk, new ones are compiled together."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from threading import RLock
from typing import Any

from lucid.compiler.kernels import emit as emitter
from lucid.compiler.kernels import scalars
from lucid.compiler.kernels.nest import Structure
from lucid.compiler.runtime.native_kernel import Kernel, Request, load_all

KEPT = 4096
FEWEST = 3  # kernels that are worth a module of their own
MODULE = 10  # what a kernel costs to compile beside its values, in values

_known: OrderedDict[Any, Kernel] = OrderedDict()
_lock = RLock()


@dataclass(frozen=True)
class TextKernel:
    """A kernel written as LLVM text that defines a function of this name."""

    name: str
    text: str

    @property
    def key(self) -> Hashable:
        return (self.name, self.text)


def name_of(structure: Structure) -> str:
    """A name that is the same in every process."""
    return "k" + hashlib.sha256(repr(structure.key).encode()).hexdigest()[:20]


def kernels_of(sources: Iterable[Structure | TextKernel]) -> dict[Any, Kernel]:
    """A Kernel for the key of each source."""
    with _lock:
        wanted = {source.key: source for source in sources}
        missing = [source for key, source in wanted.items() if key not in _known]
        requests = [
            Request((s.name,), s.text, s.text.encode())
            for s in missing
            if isinstance(s, TextKernel)
        ]
        nests = {name_of(s): s for s in missing if isinstance(s, Structure)}
        if nests:
            requests += nest_requests(nests)
        for loaded in load_all(requests):
            for name, kernel in loaded.items():
                source = nests.get(name) or next(
                    s for s in missing if isinstance(s, TextKernel) and s.name == name
                )
                _known[source.key] = kernel
        found = {key: _known[key] for key in wanted}
        for key in wanted:
            _known.move_to_end(key)
        while len(_known) > KEPT:
            _known.popitem(last=False)
        return found


def nest_requests(nests: dict[str, Structure]) -> list[Request]:
    """New kernels of nests: a few together, in as many parts as can be compiled at once."""
    parts = max(1, min(os.cpu_count() or 1, len(nests) // FEWEST))
    shares: list[list[str]] = [[] for _ in range(parts)]
    work = [0] * parts
    for name in sorted(nests, key=lambda name: (-len(nests[name].values), name)):
        least = work.index(min(work))
        shares[least].append(name)
        work[least] += MODULE + len(nests[name].values)
    return [nest_request({name: nests[name] for name in sorted(share)}) for share in shares]


def nest_request(nests: dict[str, Structure]) -> Request:
    """Kernels of nests that are compiled together."""
    names = tuple(nests)
    text = f"{emitter.VERSION} {scalars.VERSION} {' '.join(names)}"
    return Request(names, lambda: emitter.emit(nests), text.encode())
