"""Kernels as plain Python: with `NUMBA_DISABLE_JIT=1` a plan calls the listing itself.

A kernel is then a callback into Python, which a debugger can step through: its text is known to
`linecache`, its buffers are objects that read and write memory. Chunks run one after another on the
calling thread. An error inside is raised by the call of the program.
"""

from __future__ import annotations

import ctypes
import linecache
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lucid.compiler.backends.numba.compile import buffer_classes
from lucid.compiler.kernels.listing import Lister, structure_listing
from lucid.compiler.kernels.nest import GENERAL, Structure
from lucid.compiler.kernels.python_kernel import listing_namespace
from lucid.compiler.runtime.native_kernel import Kernel
from lucid.ir.types import DTYPES

_errors: list[BaseException] = []  # of the plan that runs
SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def is_steppable() -> bool:
    """True if Numba compiles nothing: NUMBA_DISABLE_JIT=1, which it reads when it is imported."""
    numba = sys.modules.get("numba")
    if numba is not None:
        return bool(numba.config.DISABLE_JIT)
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


class Memory:
    """A buffer of a kernel: `b[i0, i1]` reads and writes the element at an address."""

    def __init__(self, address: int, dtype: str, strides: tuple[int, ...]) -> None:
        self.address, self.dtype, self.strides = address, DTYPES[dtype], strides

    def element(self, index: Any) -> np.ndarray:
        at = index if isinstance(index, tuple) else (index,)
        offset = sum(int(i) * s for i, s in zip(at, self.strides, strict=True))
        size = self.dtype.itemsize
        found = (ctypes.c_char * size).from_address(self.address + size * offset)
        return np.frombuffer(memoryview(found), self.dtype)

    def __getitem__(self, index: Any) -> Any:
        return self.element(index)[0]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.element(index)[0] = value

    def __repr__(self) -> str:
        return f"<buffer of {self.dtype} at {self.address:#x}, strides {self.strides}>"


class Axis:
    """An indexed axis: its size, and where the error of an index out of bounds is written."""

    def __init__(self, size: int, code: int, status: int) -> None:
        self.size, self.code, self.status = size, code, status

    def __repr__(self) -> str:
        return f"<axis of size {self.size}>"


def wrap_index(index: Any, axis: Axis) -> int:
    """A nonnegative index; one out of bounds is noted, and 0 is read or written instead."""
    index = int(index) + (axis.size if index < 0 else 0)
    if 0 <= index < axis.size:
        return index
    ctypes.c_int64.from_address(axis.status).value = axis.code
    return 0


def python_kernels(nests: Mapping[str, Structure], texts: Mapping[str, str]) -> dict[str, Kernel]:
    """Kernels by name that call their listings."""
    return {name: python_kernel(name, s, texts[name]) for name, s in nests.items()}


def python_kernel(name: str, structure: Structure, text: str) -> Kernel:
    """The Kernel of one listing."""
    text = text or structure_listing(structure)
    file = f"<lucid kernel {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace = listing_namespace() | {"wrap_index": wrap_index, "np": np}
    exec(compile(text, file, "exec"), namespace)
    run = Call(structure, namespace["kernel"])
    callback = SIGNATURE(run)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address is not None
    return Kernel(name, address, callback, is_python=True)  # type: ignore[arg-type]


class Call:
    """Calls a listing with the words of a plan, as `entry_text` does in native code."""

    def __init__(self, structure: Structure, function: Any) -> None:
        self.structure, self.function = structure, function
        self.shapes, self.lister = buffer_classes(structure), Lister(structure)

    def __call__(self, args: int, lo: int, hi: int) -> None:
        if _errors:
            return
        try:
            with np.errstate(all="ignore"):
                self.run(args, lo, hi)
        except BaseException as error:  # ctypes would print it and go on
            _errors.append(error)

    def run(self, args: int, lo: int, hi: int) -> None:
        s = self.structure
        position = -1

        def word(dtype: str = "i64") -> Any:
            nonlocal position
            position += 1
            return Memory(args + 8 * position, dtype, ())[()]

        addresses = [int(word("u64")) for _ in s.buffers]
        sizes = [int(word()) for _ in s.reduced]
        strides = [
            [int(word()) if kind == GENERAL else kind for kind in classes]
            for _, classes in s.buffers
        ]
        numbers = sorted((v.param, v.dtype) for v in s.values if v.op == "number")
        given = [word(dtype) for _, dtype in numbers]
        grain = int(word()) if s.partial or all(s.reduced) else 0
        status = int(word("u64")) if s.indexed_axes else 0
        axes = [[int(word()) for _ in range(3)] for _ in range(s.indexed_axes)]
        buffers = []
        for i, (dtype, _) in enumerate(self.shapes):
            found = [stride for stride in strides[i] if stride]
            found += [axes[k][1] for k in self.lister.indexed_axes_of(i)]
            if i in self.lister.chunked:
                found.insert(0, sizes[-1] if s.partial else 1)
            buffers.append(Memory(addresses[i], dtype, tuple(found)))
        indexed = [Axis(size, code, status) for size, _, code in axes]
        for start in range(lo, hi, grain or hi - lo):
            stop = min(start + grain, hi) if grain else hi
            last = [start, stop, *[grain] * bool(grain)]
            self.function(*buffers, *sizes, *given, *indexed, *last)


def raise_errors(run: Callable[..., Any]) -> Callable[..., Any]:
    """The native function of a plan, raising what a kernel raised while it ran."""

    def checked(*arrays: Any) -> Any:
        _errors.clear()
        found = run(*arrays)
        if _errors:
            raise _errors.pop(0)
        return found

    return checked
