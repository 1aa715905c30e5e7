"""Kernels: LLVM IR text in, native functions `void kernel(void **args, int64 lo, int64 hi)` out.

A kernel runs the part [lo, hi) of its extent. `args` is a table of 64-bit words: addresses of
buffers, and integers (sizes, strides) in the word itself. It never raises and allocates nothing.

    kernels = load(["add"], text)                            # compiled now, not cached
    kernels = load(["add"], lambda: emit(...), key=b"...")   # from the disk cache, else emitted
    plan_builder.call(kernels["add"], ...)

The code of all kernels loaded together lives as long as any one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lucid.compiler import cache, codegen
from lucid.compiler.loader import Library, LoadError


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A native function and the library that keeps its code in memory."""

    name: str
    address: int
    library: Library


def load(
    names: Iterable[str],
    source: object,
    key: bytes | None = None,
    imports: Mapping[str, int] | None = None,
) -> dict[str, Kernel]:
    """The named kernels of LLVM IR text (or a tuple of texts to link, or a function giving either).

    With a key, which must determine the text, the object code is looked up in the disk cache, and
    a function `source` is called only on a miss. `imports` gives addresses for names that the text
    declares and that are not functions of libc.
    """
    names = tuple(names)
    library = load_library(names, source, key, imports)
    return {name: Kernel(name, library[name], library) for name in names}


def load_library(
    names: tuple[str, ...],
    source: object,
    key: bytes | None = None,
    imports: Mapping[str, int] | None = None,
) -> Library:
    """Compile (or find in the cache) and load; as in `load`."""
    if key is None:
        return Library(_compile(source), names, imports)
    full_key = cache.key(key)
    code = cache.get(full_key)
    if code is not None:
        try:
            return Library(code, names, imports)
        except LoadError:
            pass  # stored by something else under our key: compile again
    code = _compile(source)
    library = Library(code, names, imports)
    cache.put(full_key, code)
    return library


def _compile(source: object) -> bytes:
    if isinstance(source, Callable):
        source = source()
    return codegen.compile_object(*source if isinstance(source, tuple) else (source,))
