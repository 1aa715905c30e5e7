"""Kernels by structure: those seen before come from memory or disk, new ones are compiled together."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from threading import RLock
from typing import Any

from lucid.compiler import emit as emitter
from lucid.compiler import kernel, scalars
from lucid.compiler.kernel import Kernel
from lucid.compiler.nest import Structure

KEPT = 4096

_known: OrderedDict[Any, Kernel] = OrderedDict()
_lock = RLock()


def name_of(structure: Structure) -> str:
    """A name that is the same in every process."""
    return "k" + hashlib.sha256(repr(structure.key).encode()).hexdigest()[:20]


def kernels_of(structures: Iterable[Structure]) -> dict[Any, Kernel]:
    """A Kernel for the key of each Structure."""
    with _lock:
        wanted = {structure.key: structure for structure in structures}
        missing = {name_of(s): s for key, s in wanted.items() if key not in _known}
        if missing:
            names = sorted(missing)
            text = f"{emitter.VERSION} {scalars.VERSION} {' '.join(names)}"
            loaded = kernel.load(
                names, lambda: emitter.emit({n: missing[n] for n in names}), text.encode()
            )
            for name in names:
                _known[missing[name].key] = loaded[name]
        found = {key: _known[key] for key in wanted}
        for key in wanted:
            _known.move_to_end(key)
        while len(_known) > KEPT:
            _known.popitem(last=False)
        return found
