"""The OpenBLAS of SciPy's wheels: addresses of the routines of BLAS and LAPACK.

The library's file is opened directly: importing `scipy.linalg` costs 200 ms, this 3 ms. It is set
to one thread, since our own threads run its calls; NumPy's own BLAS is left alone. A program from
the disk cache needs this module alone, not `blas`, which writes instructions.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from importlib.machinery import PathFinder
from typing import Any

from lucid.compiler.plan.instructions import Address
from lucid.support.caches import once
from lucid.support.locks import new_lock

_opening = new_lock()


@once
def address(name: str) -> Address:
    """Return the address of a Fortran routine of BLAS or LAPACK (32-bit integers)."""
    blas = library()
    if blas is None:
        return _capsule_address(name)
    for symbol in (f"scipy_{name}_", f"{name}_"):
        with contextlib.suppress(AttributeError):
            found = ctypes.cast(getattr(blas, symbol), ctypes.c_void_p).value or 0
            return Address(found, "routine", name)
    return _capsule_address(name)


@once
def library() -> ctypes.CDLL | None:
    """The OpenBLAS in SciPy's wheels, set to one thread; None if SciPy uses another BLAS."""
    spec = PathFinder.find_spec("scipy")
    origin = spec.origin if spec and spec.origin else ""
    folder = os.path.join(os.path.dirname(os.path.dirname(origin)), "scipy.libs")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    found = [x for x in names if x.startswith("libscipy_openblas-") and x.endswith(".so")]
    if not found:
        return None
    with _one_thread_in_environment():
        blas = ctypes.CDLL(os.path.join(folder, min(found)))
    blas.scipy_openblas_set_num_threads(1)
    return blas


@contextlib.contextmanager
def _one_thread_in_environment() -> Iterator[None]:
    """Set while the library is opened, so that it never starts threads of its own."""
    with _opening:  # threads that open it together would restore each other's value
        before = os.environ.get("OPENBLAS_NUM_THREADS")
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        try:
            yield
        finally:
            del os.environ["OPENBLAS_NUM_THREADS"]
            if before is not None:
                os.environ["OPENBLAS_NUM_THREADS"] = before


def _capsule_address(name: str) -> Address:
    from scipy.linalg import cython_blas, cython_lapack

    table: dict[str, Any] = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}
    capsule = table[name]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return Address(get_pointer(capsule, get_name(capsule)), "routine", name)
