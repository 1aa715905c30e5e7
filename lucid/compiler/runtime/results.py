"""Memory of large results: freed blocks are kept for the next results of the same size.

glibc returns blocks of 32 MB and more to the system when they are freed, so each page of the next
result would have to be mapped and cleared again, which takes as long as computing it. Results of
compiled programs that are this large come from a memory handler of NumPy (NEP 49) whose functions
are in `native/results.ll`. The array owns its memory, and frees it when nothing refers to it.

Collectives take theirs from there from 1 MB on (`empty` with `large=MAPPED_FROM`): MPI copies huge
pages between processes faster than small ones.

At most LUCID_RESULT_POOL_BYTES are kept, of the 16 latest allocations; `lucid.clear_caches` and a
fork return them to the system.

    empty(shape, dtype)        # np.empty, in kept memory if there is some
"""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

from lucid.support.caches import new_cache
from lucid.support.settings import setting

if TYPE_CHECKING:
    from lucid.compiler.runtime.loader import Library

LARGE = 32 << 20  # bytes of a large result: the highest threshold that glibc accepts
MAPPED_FROM = 1 << 20  # bytes from which a block consists of huge pages and is kept
KEPT_ALLOCATIONS = 16  # a block that as many allocations have not used is freed
HUGE_PAGE = 2 << 20  # bytes
PAGE = 1 << 16  # bytes: at least one page before the data, for the header of its block
FUNCTIONS = (
    "lucid_release_results",
    "lucid_result_calloc",
    "lucid_result_free",
    "lucid_result_malloc",
    "lucid_result_realloc",
    "lucid_set_result_handler",
)


class _Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    ]


class _Pool:
    """The handler of this process, once the native runtime is loaded."""

    capsule: Any = None
    handler: _Handler
    release: Any
    set_handler: Any

    def load(self, library: Library, set_handler: int) -> None:
        """Take the functions of the library; `set_handler` is NumPy's PyDataMem_SetHandler."""
        names = ("malloc", "calloc", "realloc", "free")
        addresses = [library[f"lucid_result_{name}"] for name in names]
        self.handler = _Handler(b"lucid", 1, None, *addresses)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
        name = ctypes.create_string_buffer(b"mem_handler")
        self.name = name  # the capsule refers to it
        self.release = ctypes.PYFUNCTYPE(None)(library["lucid_release_results"])
        prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)
        self.set_handler = prototype(set_handler)
        install = ctypes.PYFUNCTYPE(None, ctypes.py_object, ctypes.c_int64)
        capsule = new(ctypes.addressof(self.handler), ctypes.addressof(name), None)
        install(library["lucid_set_result_handler"])(capsule, setting("LUCID_RESULT_POOL_BYTES"))
        self.capsule = capsule

    def clear(self) -> None:
        """Return all kept memory to the system."""
        if self.capsule is not None:
            self.release()


pool = new_cache(f"{__name__}.pool", _Pool())


def empty(shape: Sequence[int], dtype: Any, large: int = LARGE) -> np.ndarray:
    """Return a new array; one of `large` bytes in memory that an earlier result has freed."""
    if pool.capsule is None or math.prod(shape) * np.dtype(dtype).itemsize < large:
        return np.empty(shape, dtype)
    before = pool.set_handler(pool.capsule)
    try:
        return np.empty(shape, dtype)
    finally:
        pool.set_handler(before)


def constants() -> dict[str, int]:
    """Return what the text of the native functions leaves open."""
    huge = getattr(mmap, "MADV_HUGEPAGE", -1)  # -1: advice that the system does not know
    wanted = _multiarray_umath._get_madvise_hugepage()  # NumPy's own switch
    return {
        "MAPPED_FROM": MAPPED_FROM,
        "MAPPING_MORE": HUGE_PAGE + PAGE,
        "MAP_PRIVATE_ANON": mmap.MAP_PRIVATE | mmap.MAP_ANON,
        "KEPT_ALLOCATIONS": KEPT_ALLOCATIONS,
        "ADVISED_FROM": 2 * HUGE_PAGE,  # it contains a whole one wherever it begins
        "HUGE_PAGE": HUGE_PAGE,
        "HUGE_PAGE_LAST": HUGE_PAGE - 1,
        "MADV_HUGEPAGE": huge if wanted else -1,
    }
