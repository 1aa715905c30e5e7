"""Object code on disk: `get(key)` returns the bytes that `put(key, code)` stored, or None.

One file per key: magic, format version, key, digest and the raw object code; never a pickle. A
file is created by rename, so a reader sees all of it or nothing, however many processes write and
whenever one of them is killed. The directory (`LUCID_CACHE_DIR`, by default `lucid` in the XDG
cache directory) is used only if it is private: mode 0700, a real directory, owned by this user.
Every problem (a relative path, read-only, full, damaged, owned by another user, a FIFO) is a miss,
never an exception; if nothing can be stored, one warning says why.
`LUCID_CACHE_BYTES` limits the size (256 MB by default): least recently used files go first.

    code = cache.get(key := cache.key(b"structure of the kernel"))
    if code is None:
        cache.put(key, code := codegen.compile_object(text))
"""

from __future__ import annotations

import math
import os
import stat
import struct
import sys
import time
import warnings
from typing import NamedTuple

from lucid.compiler.runtime import codegen
from lucid.support.caches import once
from lucid.support.digest import digest
from lucid.support.settings import setting

MAGIC = b"LUCIDOBJ"
FORMAT = 2
SUFFIX = ".obj"
MAX_ENTRY = 1 << 28  # bytes of code that one kernel or program may have
DAY = 86_400.0

_HEADER = struct.Struct("<8sI32sQ32s")  # magic, format, key, length, digest of the code
_LENGTH = struct.Struct("<Q")


class Info(NamedTuple):
    """State of the cache: `problem` says why the directory is not used, or is None."""

    path: str
    entries: int
    bytes: int
    hits: int
    misses: int
    problem: str | None


class _Counters:
    hits = 0
    misses = 0
    unswept: float = math.inf  # bytes written since the last sweep: the first write sweeps
    has_warned = False


def key(*parts: bytes) -> bytes:
    """The key of a piece of code: its structure, and everything else that determines its bytes."""
    return digest(fingerprint(), *[x for part in parts for x in (_LENGTH.pack(len(part)), part)])


def get(key: bytes) -> bytes | None:
    """Return the code stored under the key, or None."""
    code = _read(_path(key), key) if problem() is None else None
    if code is None:
        _Counters.misses += 1
    else:
        _Counters.hits += 1
    return code


def put(key: bytes, code: bytes) -> bool:
    """Store code under the key; return False if that is not possible."""
    if (reason := problem()) is not None:
        _warn(reason)
        return False
    data = _HEADER.pack(MAGIC, FORMAT, key, len(code), digest(code)) + code
    temporary = _path(key) + f".{os.urandom(8).hex()}.tmp"
    try:
        _write(temporary, data)
        os.replace(temporary, _path(key))
    except OSError as error:
        _remove(temporary)
        _warn(str(error))
        return False
    _Counters.unswept += len(data)
    if _Counters.unswept > limit() // 16:
        sweep()
    return True


def _warn(reason: str) -> None:
    """Warn, once in a process, that what it compiles is lost for the next one."""
    if not _Counters.has_warned:
        _Counters.has_warned = True
        facts = f"the cache of compiled code is not used: {reason}"
        remedy = "every process compiles anew; LUCID_CACHE_DIR chooses another directory"
        warnings.warn(f"{facts}; {remedy}", RuntimeWarning, stacklevel=3)


def info() -> Info:
    """Return the path and size of the cache, and the hits and misses of this process.

    >>> info().hits >= 0
    True
    """
    files = _files()
    size = sum(status.st_size for _, status in files)
    reason = problem()
    return Info(directory(), len(files), size, _Counters.hits, _Counters.misses, reason)


def damaged() -> list[str]:
    """Return the paths of entries whose bytes are not those that were stored; they are misses."""
    found = []
    for path, _ in _files():
        name = os.path.basename(path).removesuffix(SUFFIX)
        try:
            key = bytes.fromhex(name)
        except ValueError:
            continue  # a temporary file
        if _read(path, key) is None and os.path.lexists(path):  # else another process removed it
            found.append(path)
    return found


def clear() -> None:
    """Remove every entry."""
    for path, _ in _files():
        _remove(path)


def directory() -> str:
    """Return the path of the cache, whether or not it can be used."""
    if chosen := setting("LUCID_CACHE_DIR"):
        return chosen
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "lucid")


def limit() -> int:
    """Return the maximum size of the cache in bytes."""
    return setting("LUCID_CACHE_BYTES", strict=False)


def problem() -> str | None:
    """Return why the directory cannot be used, or None. A missing directory is created."""
    path = directory()
    if not os.path.isabs(path):
        return f"{path} is a relative path, which changes with the working directory"
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return _create(path)
    except OSError as error:
        return str(error)
    if not stat.S_ISDIR(status.st_mode):
        return f"{path} is not a directory"
    if status.st_uid != os.geteuid():
        return f"{path} belongs to another user"
    if status.st_mode & 0o077:
        return f"{path} is accessible to other users; run chmod 700 on it"
    return None


def sweep() -> None:
    """Remove files of killed processes, and least recently used ones while over the limit."""
    _Counters.unswept = 0
    files = sorted(_files(), key=lambda file: file[1].st_mtime)
    total = sum(status.st_size for _, status in files)
    for path, status in files:
        is_draft = path.endswith(".tmp")  # which somebody writes now, unless it is old
        if status.st_mtime < time.time() - DAY if is_draft else total > limit():
            _remove(path)
            total -= status.st_size


@once
def fingerprint() -> bytes:
    """Everything but its structure that determines a kernel's code: versions, flags and CPU."""
    import llvmlite

    parts = (FORMAT, codegen.VERSION, codegen.FLAGS, llvmlite.__version__, sys.platform, _cpu())
    return repr(parts).encode()


def _cpu() -> str:
    """Name and features of this CPU; from the OS if possible, since asking LLVM would load it."""
    wanted = ("model name", "cpu family", "model", "stepping", "flags", "Features", "CPU part")
    try:
        with open("/proc/cpuinfo") as file:
            first = file.read(16_384).split("\n\n")[0]
        lines = [line for line in first.splitlines() if line.split("\t")[0].strip() in wanted]
        if len(lines) >= 2:
            return "\n".join(lines)
    except OSError:
        pass
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name() + llvm.get_host_cpu_features().flatten()


def _path(key: bytes) -> str:
    return os.path.join(directory(), key.hex() + SUFFIX)


def _create(path: str) -> str | None:
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        os.mkdir(path, 0o700)
    except FileExistsError:
        return problem() if os.path.lexists(path) else f"{path} cannot be created"
    except OSError as error:
        return str(error)
    return None


def _read(path: str, key: bytes) -> bytes | None:
    try:
        # O_NONBLOCK: opening a FIFO would wait for somebody to write to it
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return None
        if not _HEADER.size <= status.st_size <= MAX_ENTRY:
            return None
        data = _read_all(file, _HEADER.size)
        if _is_header(data, key, status.st_size):  # else nothing more of it is read
            data += _read_all(file, status.st_size - _HEADER.size)
        if status.st_mtime < time.time() - DAY:
            os.utime(file)  # mark it used, once a day
    except OSError:
        return None
    finally:
        os.close(file)
    return _code(data, key)


def _read_all(file: int, size: int) -> bytes:
    data = os.read(file, size)
    while len(data) < size and (more := os.read(file, size - len(data))):
        data += more
    return data


def _is_header(data: bytes, key: bytes, size: int) -> bool:
    """True if a file of this size that begins with these bytes may hold the code of the key."""
    if len(data) < _HEADER.size:
        return False
    wanted = (MAGIC, FORMAT, key, size - _HEADER.size)
    return _HEADER.unpack_from(data)[:4] == wanted


def _code(data: bytes, key: bytes) -> bytes | None:
    """The code in a file's contents, if every byte is intact."""
    if not _is_header(data, key, len(data)):
        return None
    code, expected = data[_HEADER.size :], _HEADER.unpack_from(data)[4]
    return code if digest(code) == expected else None


def _write(path: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(path, flags, 0o600)
    try:
        while data:
            data = data[os.write(file, data) :]
        os.fsync(file)
    finally:
        os.close(file)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _files() -> list[tuple[str, os.stat_result]]:
    """The files of the cache: entries and temporary ones."""
    found = []
    try:
        with os.scandir(directory()) as listing:
            for entry in listing:
                if entry.name.endswith((SUFFIX, ".tmp")) and SUFFIX in entry.name:
                    found.append((entry.path, entry.stat(follow_symlinks=False)))
    except OSError:
        pass
    return found
