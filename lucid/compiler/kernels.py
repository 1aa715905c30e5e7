"""Kernels by structure: known ones come from memory or disk, new ones are compiled together."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from threading import RLock
from typing import Any

from lucid.compiler import emit as emitter
from lucid.compiler import scalars
from lucid.compiler.kernel import Kernel, Request, load_all
from lucid.compiler.nest import Structure

KEPT = 4096

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
            requests.append(nest_request(nests))
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


def nest_request(nests: dict[str, Structure]) -> Request:
    """New kernels of nests, to be compiled together."""
    names = tuple(sorted(nests))
    text = f"{emitter.VERSION} {scalars.VERSION} {' '.join(names)}"
    return Request(names, lambda: emitter.emit({n: nests[n] for n in names}), text.encode())
