"""Kernels: LLVM IR text in, native functions `void kernel(void **args, int64 lo, int64 hi)` out.

A kernel runs the part [lo, hi) of its extent. `args` is a table of 64-bit words: addresses of
buffers, and integers (sizes, strides) in the word itself. It never raises and allocates nothing.

    kernels = load(["add"], text)                            # compiled now, not cached
    kernels = load(["add"], lambda: emit(...), key=b"...")   # from the disk cache, else emitted
    plan_builder.call(kernels["add"], ...)

`load_all` loads many at once, compiling on several threads. The code of kernels loaded together
lives as long as any one of them: keep the Kernel, not just its address.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lucid.compiler.plan.instructions import UNKNOWN, Address
from lucid.compiler.runtime import cache, codegen
from lucid.compiler.runtime.loader import Library, LoadError
from lucid.support.locks import fork_waits
from lucid.support.threads import on_threads


class Kernel(NamedTuple):
    """A native function and the library that keeps its code in memory."""

    name: str
    address: int
    library: Library
    is_python: bool = False  # it calls back into Python, on the thread that calls the plan


def load(
    names: Iterable[str],
    source: object,
    key: bytes | None = None,
    imports: Mapping[str, int] | None = None,
    optimize: bool = True,
) -> dict[str, Kernel]:
    """Load the named kernels of LLVM IR text, a tuple of texts to link, or a function of either.

    With a key, which must determine the text, the object code is looked up in the disk cache, and
    a function `source` is called only on a miss. `imports` gives addresses for names that the text
    declares and that are not functions of libc. `optimize` is that of `codegen.compile_object`.
    """
    request = Request(tuple(names), source, key, imports, optimize)
    library = load_library(request)
    return kernels_in(library, request)


class Request(NamedTuple):
    """Kernels to be loaded together: the arguments of `load`."""

    names: tuple[str, ...]
    source: object
    key: bytes | None = None
    imports: Mapping[str, int] | None = None
    optimize: bool = True


def load_all(requests: Sequence[Request]) -> list[dict[str, Kernel]]:
    """Load the kernels of each request, compiling cache misses in parallel."""
    with fork_waits():
        return _load_all(requests)


def _load_all(requests: Sequence[Request]) -> list[dict[str, Kernel]]:
    libraries = {i: library for i, request in enumerate(requests) if (library := find(request))}
    missing = {i: request for i, request in enumerate(requests) if i not in libraries}
    texts = [texts_of(request.source) for request in missing.values()]  # emitted by this thread
    compiled = _compile_all(list(missing.values()), texts)
    libraries |= zip(missing, compiled, strict=True)
    return [kernels_in(libraries[i], request) for i, request in enumerate(requests)]


def kernels_in(library: Library, request: Request) -> dict[str, Kernel]:
    """Return the kernels of a request by name; a program on disk finds them by the cache's key."""
    home = "" if request.key is None else cache.key(request.key).hex()
    origin = ("kernel", home) if home else (UNKNOWN,)
    return {
        name: Kernel(name, Address(library[name], *origin, name), library) for name in request.names
    }


def load_library(request: Request) -> Library:
    """Return the library of one request, from the cache or newly compiled."""
    with fork_waits():
        library = find(request)
        if library is not None:
            return library
        return _compile_all([request], [texts_of(request.source)])[0]


def find(request: Request) -> Library | None:
    """Return the library of a request if it is in the disk cache."""
    code = cache.get(cache.key(request.key)) if request.key is not None else None
    if code is None:
        return None
    try:
        return Library(code, request.names, request.imports)
    except LoadError:
        return None  # not the code of this key: compile again


def _compile(request: Request, texts: tuple[object, ...]) -> Library:
    code = codegen.compile_object(*texts, optimize=request.optimize)
    library = Library(code, request.names, request.imports)
    if request.key is not None:
        cache.put(cache.key(request.key), code)
    return library


def native_text(*files: str, **values: object) -> str:
    """The text of files in `native/`, where `$NAME` stands for the value of that name."""
    folder, parts = os.path.join(os.path.dirname(__file__), "native"), []
    for name in files:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            parts.append(file.read())
    return re.sub(r"\$(\w+)", lambda found: str(values[found[1]]), "\n".join(parts))


def texts_of(source: object) -> tuple[object, ...]:
    source = source() if callable(source) else source
    return source if isinstance(source, tuple) else (source,)


def _compile_all(requests: list[Request], texts: list[tuple[object, ...]]) -> list[Library]:
    sizes = [sum(len(str(text)) for text in each) for each in texts]
    longest = sorted(range(len(texts)), key=sizes.__getitem__, reverse=True)
    compiled = on_threads(lambda i: _compile(requests[i], texts[i]), longest)
    libraries = dict(zip(longest, compiled, strict=True))
    return [libraries[i] for i in range(len(texts))]
