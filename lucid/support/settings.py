"""The LUCID_* environment variables, each with its meaning: one table, read by one function."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from lucid.errors import SettingError, SettingWarning


class Setting(NamedTuple):
    """An environment variable.

    default    its value where it is not set
    parse      text -> value; raises ValueError for a bad one
    expects    what a valid value is, for the error
    meaning    what it does, for the documentation
    """

    default: Any
    parse: Callable[[str], Any]
    expects: str
    meaning: str


def _switch(text: str) -> bool:
    if text.lower() in ("1", "true", "on", "yes"):
        return True
    if text.lower() in ("0", "false", "off", "no"):
        return False
    raise ValueError(text)


def _at_least(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise ValueError(text)
        return value

    return parse


BACKENDS = ("llvm", "numba")


def _one_of(*names: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in names:
            raise ValueError(text)
        return text

    return parse


SETTINGS = {
    "LUCID_DISABLE_JIT": Setting(
        False, _switch, "0 or 1", "1: everything is interpreted; `lucid.jit` calls the function"
    ),
    "LUCID_TIERING": Setting(
        True, _switch, "0 or 1", "0: eager code stays with NumPy; `lucid.jit` still compiles"
    ),
    "LUCID_TIERING_THRESHOLD": Setting(
        16, _at_least(0), "an integer from 0", "the runs after which eager code that recurs is hot"
    ),
    "LUCID_BACKEND": Setting(
        "llvm", _one_of(*BACKENDS), "llvm or numba",
        "what compiles kernels: LLVM text, or Numba from their Python listings",
    ),
    "LUCID_NUM_THREADS": Setting(
        None, _at_least(1), "a positive integer", "the threads of compiled programs; all cores"
    ),
    "LUCID_CACHE_DIR": Setting(
        None, str, "a folder", "the cache of compiled kernels; `~/.cache/lucid`"
    ),
    "LUCID_CACHE_BYTES": Setting(
        256 << 20, _at_least(0), "a number of bytes", "the size of that cache; 256 MB"
    ),
    "LUCID_CACHE_PROGRAMS": Setting(
        True, _switch, "0 or 1", "0: that cache holds kernels alone, not whole programs"
    ),
    "LUCID_RESULT_POOL_BYTES": Setting(
        256 << 20, _at_least(0), "a number of bytes",
        "the freed memory of results of 32 MB and more that is kept for later ones; 256 MB",
    ),
    "LUCID_VERIFY": Setting(
        False, _switch, "0 or 1",
        "1: the first result of every compiled program is compared with the interpreter's",
    ),
    "LUCID_DUMP": Setting(
        None, str, "a folder", "where the stages and kernels of every compiled Graph are written"
    ),
    "LUCID_JACOBIAN_BYTES": Setting(
        1 << 30, _at_least(0), "a number of bytes",
        "the memory for intermediate values of a Jacobian; 1 GiB",
    ),
    "LUCID_DISTRIBUTED_TIMEOUT": Setting(
        1800, _at_least(1), "a number of seconds",
        "how long a collective may wait for other ranks; 1800",
    ),
    "LUCID_DISTRIBUTED_DEBUG": Setting(
        False, _switch, "0 or 1",
        "1: ranks compare every collective before it runs; a mismatch is an error",
    ),
    "LUCID_DISTRIBUTED_BOARD": Setting(
        None, str, "a file", "where ranks say what they do; set by lucid.distributed.run"
    ),
}  # fmt: skip


def setting(name: str, strict: bool = True) -> Any:
    """Return the value of a LUCID_* variable, its default if it is unset or empty.

    strict    whether a bad value is an error; otherwise it is a warning and the default is used

    >>> from lucid.support.settings import setting
    >>> setting("LUCID_JACOBIAN_BYTES")
    1073741824
    """
    entry = SETTINGS[name]
    text = os.environ.get(name, "").strip()
    if not text:
        return entry.default
    try:
        return entry.parse(text)
    except ValueError:
        message = f"{name}={text!r}: expected {entry.expects} ({entry.meaning})"
    if strict:
        raise SettingError(message)
    warnings.warn(f"{message}; the default, {entry.default}, is used", SettingWarning, stacklevel=2)
    return entry.default
