"""The native runtime: plan interpreter, thread pool and Python entry point, written in LLVM IR.

The text in `native/*.ll` is compiled once per machine and then loaded from the disk cache in a
fraction of a millisecond, so that a warm process needs neither Numba nor LLVM. The number of
threads never changes a result: chunks depend on sizes alone.

    set_num_threads(4); get_num_threads()      # LUCID_NUM_THREADS sets the initial value
    release_memory()                           # return idle arenas to the system
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` makes enumerations: 0.4 ms
import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Callable

from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

from lucid.compiler.runtime import native_kernel as kernel
from lucid.compiler.runtime import results
from lucid.compiler.runtime.loader import Library
from lucid.support.locks import fork_waits, new_lock
from lucid.support.settings import setting

CLOCK_CHECK_NS = 100_000  # estimated ns of work between two reads of the clock
SIGNAL_CHECK_NS = 50_000_000  # ns between two checks for signals
SPINS = 4_000  # pauses (about 80 µs) before an idle worker sleeps
WAKE_NS = 50_000  # estimated ns of work for which sleeping workers are woken (10 µs)
MMAP_THRESHOLD = 32 << 20  # bytes: smaller results reuse freed memory
TRIM_THRESHOLD = 256 << 20  # bytes of freed memory at the end of the heap to keep
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of <malloc.h>

_SOURCES = ("pool.ll", "plan.ll", "results.ll", "call.ll")
_FUNCTIONS = (
    "lucid_call",
    "lucid_free_frames",
    "lucid_release_memory",
    "lucid_reset_pool",
    "lucid_set_num_threads",
    "lucid_set_spins",
    *results.FUNCTIONS,
)
_lock = new_lock()


class _Process:
    """State of this process: the loaded runtime and the number of threads, once known."""

    runtime: Runtime | None = None
    is_prepared = False
    threads = 0


class Runtime:
    """The loaded native functions, as ctypes callables that hold the GIL."""

    def __init__(self, library: Library) -> None:
        library.keep()
        self.call_address = library["lucid_call"]
        self.free_frames = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(library["lucid_free_frames"])
        self.release_memory = ctypes.PYFUNCTYPE(None)(library["lucid_release_memory"])
        self.reset_pool = ctypes.PYFUNCTYPE(None)(library["lucid_reset_pool"])
        self.set_num_threads = _setter(library["lucid_set_num_threads"])
        self.set_spins = _setter(library["lucid_set_spins"])


def _setter(address: int) -> Callable[[int], None]:
    return ctypes.PYFUNCTYPE(None, ctypes.c_int64)(address)


def native() -> Runtime:
    """Return the runtime of this process, loaded on first use."""
    if _Process.runtime is None:
        with fork_waits(), _lock:
            _Process.runtime = _Process.runtime or _start(kernel.load_library(_request()))
    return _Process.runtime


def prepare() -> None:
    """Load the runtime if it is in the disk cache, else compile it on a thread: it takes 70 ms.

    What needs it calls `native`, which waits for the thread, and tries again if it failed.
    """
    if _Process.is_prepared or _Process.runtime is not None:
        return
    _Process.is_prepared = True
    with contextlib.suppress(Exception):
        with fork_waits(), _lock:
            if library := kernel.find(_request()):
                _Process.runtime = _start(library)
                return
        threading.Thread(target=_try_to_load, name="lucid-compile-runtime").start()


def _try_to_load() -> None:
    with contextlib.suppress(Exception):
        native()


def _request() -> kernel.Request:
    text = _text()
    return kernel.Request(_FUNCTIONS, text, text.encode(), _numpy_addresses(), optimize=False)


def _start(library: Library) -> Runtime:
    runtime = Runtime(library)
    results.pool.load(library, _numpy_addresses()["lucid_set_memory_handler"])
    runtime.reset_pool()
    runtime.set_num_threads(get_num_threads())
    os.register_at_fork(before=results.pool.clear, after_in_child=runtime.reset_pool)
    keep_freed_memory()
    return runtime


def keep_freed_memory() -> None:
    """Make the C library keep some freed memory for the next results.

    If it returned the memory to the system after every step, each page of the next step would
    fault: 1.8 of 3.2 ms of an eager LSTM. The user's own allocator variables take precedence.
    """
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return  # not the GNU C library
    mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD)
    mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD)


def get_num_threads() -> int:
    """Return the number of threads that a kernel may use, including the calling one."""
    if not _Process.threads:
        _Process.threads = _initial_threads()
    return _Process.threads


def set_num_threads(n: int) -> None:
    """Let kernels use up to n threads. Results are bitwise the same for any n."""
    if n < 1:
        raise ValueError(f"set_num_threads: got {n}, expected at least 1")
    _Process.threads = int(n)
    if _Process.runtime is not None:  # else `_start` sets it
        _Process.runtime.set_num_threads(_Process.threads)


def release_memory() -> None:
    """Return the arenas that no running plan uses, and freed memory, to the system."""
    native().release_memory()
    results.pool.clear()
    c_library = ctypes.CDLL(None)
    if hasattr(c_library, "malloc_trim"):
        c_library.malloc_trim(0)


def _initial_threads() -> int:
    chosen = setting("LUCID_NUM_THREADS")
    if chosen is not None:
        return chosen
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _text() -> str:
    return kernel.native_text(
        *_SOURCES,
        CLOCK_MONOTONIC=time.CLOCK_MONOTONIC,
        CLOCK_CHECK_NS=CLOCK_CHECK_NS,
        SIGNAL_CHECK_NS=SIGNAL_CHECK_NS,
        PAUSE="pause" if os.uname().machine in ("x86_64", "AMD64") else "yield",
        SIG_SETMASK=_signal.SIG_SETMASK,
        SPINS=SPINS,
        WAKE_NS=WAKE_NS,
        **results.constants(),
    )


def _numpy_addresses() -> dict[str, int]:
    """The addresses in three entries of NumPy's C API table, which its ABI fixes."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    table = get_pointer(_multiarray_umath._ARRAY_API, None)
    entries = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))
    numbers = {"lucid_array_type": 2, "lucid_new_array": 94, "lucid_set_memory_handler": 304}
    return {name: entries[number] or 0 for name, number in numbers.items()}
