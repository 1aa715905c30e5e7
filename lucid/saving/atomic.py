"""Atomic file replacement: write a temporary file beside the target, sync it, and rename it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOUR = 3600.0


def write_atomically(path: Any, write: Callable[[Any], None]) -> None:
    """Let `write` fill a new file, which then replaces `path`."""
    target = Path(os.path.realpath(path))
    if is_special(target):
        with open(target, "wb") as file:
            return write(file)
    remove_leftovers(target)
    draft = target.with_name(f".{target.name}.{os.getpid()}.{os.urandom(8).hex()}.draft")
    try:
        with open(draft, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            draft.chmod(target.stat().st_mode & 0o777)
        os.replace(draft, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    sync_directory(target.parent)


def is_special(target: Path) -> bool:
    """True for a pipe or a device, which must be written to directly and not replaced."""
    return target.exists() and not target.is_file() and not target.is_dir()


def sync_directory(directory: Path) -> None:
    """Sync the directory so that the rename survives a power loss, if the system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_leftovers(target: Path) -> None:
    """Remove temporary files left by killed processes."""
    for draft in target.parent.glob(f".{glob_escaped(target.name)}.*.*.draft"):
        owner = draft.name.split(".")[-3]
        if owner.isdigit():
            with contextlib.suppress(OSError):
                if not is_running(int(owner)) or is_outdated(draft):
                    draft.unlink()


def is_outdated(draft: Path) -> bool:
    """True if no process still writes this temporary file.

    Its process id may come from another container, so here it may belong to another process, or to
    this one."""
    return draft.stat().st_mtime < time.time() - HOUR


def glob_escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
