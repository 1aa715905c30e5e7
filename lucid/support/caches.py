"""Caches: every table that the package keeps at module level is registered here.

`memoize` is `functools.lru_cache` for a function whose results can be computed again, `new_cache`
registers a table of another kind, and `clear_caches` empties them all. `once` is for values that
exist once per process (a loaded library, a fact about the CPU): running programs refer to them, so
they are never dropped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from lucid.public.declare import public

T = TypeVar("T")
_CLEAR: dict[str, Callable[[], object]] = {}
_ONCE: list[str] = []


def memoize(
    maxsize: int | None = None, typed: bool = False
) -> Callable[[Callable[..., T]], functools._lru_cache_wrapper[T]]:
    """Return a decorator that caches the results of a function; None means no bound."""

    def decorate(function: Callable[..., T]) -> functools._lru_cache_wrapper[T]:
        cached = functools.lru_cache(maxsize, typed)(function)
        _CLEAR[f"{function.__module__}.{function.__qualname__}"] = cached.cache_clear
        return cached

    return decorate


def once(function: Callable[..., T]) -> functools._lru_cache_wrapper[T]:
    """Cache the results of a function for the life of the process."""
    _ONCE.append(f"{function.__module__}.{function.__qualname__}")
    return functools.cache(function)


if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:
        """functools.cached_property without the lock that Python 3.11 takes.

        All instances of a class share that lock, and a forked child inherits it locked or not.
        """

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self.function = function
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, x: Any, owner: Any = None) -> Any:
            if x is None:
                return self
            value = x.__dict__[self.name] = self.function(x)
            return value


def new_cache(name: str, table: T, clear: Callable[[], object] | None = None) -> T:
    """Register a table under `module.variable` and return it.

    clear    a function that empties it, if its `clear` method alone is not enough
    """
    _CLEAR[name] = clear or table.clear  # type: ignore[attr-defined]
    return table


def registered() -> tuple[list[str], list[str]]:
    """Return the names of the caches that `clear_caches` empties, and of those that it keeps."""
    return sorted(_CLEAR), sorted(_ONCE)


@public()
def clear_caches() -> None:
    """Empty every cache: recorded and compiled programs, derivatives, rules, types, plans.

    Results do not change, but the next calls take longer. Programs in use keep their memory until
    they are dropped; the disk cache of kernels is kept.

    >>> import lucid
    >>> double = lucid.jit(lambda x: x * 2.0)
    >>> double(lucid.ones(2))
    Tensor([2., 2.])
    >>> lucid.clear_caches()
    >>> double(lucid.ones(2))
    Tensor([2., 2.])
    """
    for clear in list(_CLEAR.values()):
        clear()


__all__ = ["cached_property", "clear_caches", "memoize", "new_cache", "once", "registered"]
