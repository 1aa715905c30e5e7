"""The public functions of the compiler, which is imported on their first call."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from lucid.public.declare import public


@public()
def profile() -> AbstractContextManager[Any]:
    """Time every instruction of the compiled programs that run inside the block.

    Printing the result gives a table: time, calls, bytes moved, GB/s, GFLOP/s, and the source line.

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


@public()
def set_num_threads(num: int) -> None:
    """Set the number of threads of compiled programs; results are bitwise equal for any number."""
    from lucid.compiler.runtime.threads import set_num_threads

    set_num_threads(num)


@public()
def get_num_threads() -> int:
    """Return the number of threads that compiled programs may use."""
    from lucid.compiler.runtime.threads import get_num_threads

    return get_num_threads()
