"""The LLVM backend, which is the default: the kernels of Structures as LLVM text."""

from __future__ import annotations

from collections.abc import Mapping

from lucid.compiler.kernels import emit as emitter
from lucid.compiler.kernels import scalars
from lucid.compiler.kernels.nest import Structure
from lucid.compiler.runtime.native_kernel import Request


def request(nests: Mapping[str, Structure]) -> Request:
    """Request kernels by name, as one module."""
    names = tuple(nests)
    text = f"{emitter.VERSION} {scalars.VERSION} {' '.join(names)}"
    return Request(names, lambda: emitter.emit(dict(nests)), text.encode())
