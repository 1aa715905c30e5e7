"""What `lucid` offers of the compiler without importing it: imports happen in the first call."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any


def profile() -> AbstractContextManager[Any]:
    """Time every instruction of the compiled programs that run inside the block.

    Its text is a table: time, calls, bytes moved, GB/s, GFLOP/s, and the line that asked for it.

    >>> import lucid
    >>> f = lucid.jit(lambda x: lucid.sin(x) * 2.0)
    >>> x = lucid.zeros(3)
    >>> with lucid.profile() as p:
    ...     y = f(f(x))
    >>> len(p.rows)
    1
    """
    from lucid.compiler.inspect.profiling import profile

    return profile()


def set_num_threads(num: int) -> None:
    """Let compiled programs use up to `num` threads; results are bitwise the same for any."""
    from lucid.compiler.runtime.threads import set_num_threads

    set_num_threads(num)


def get_num_threads() -> int:
    """How many threads compiled programs may use."""
    from lucid.compiler.runtime.threads import get_num_threads

    return get_num_threads()
