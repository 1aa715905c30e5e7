"""jit: compile a function on its first call. The class of what it returns is in jitted.py."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

from lucid.compiler.jit.jitted import Jitted, P, R
from lucid.errors import ArgumentError
from lucid.public.declare import public
from lucid.support.source import at_line


class JittedTransform(Jitted[P, R]):
    """A jitted transform of `lucid.func`: NumPy arrays in give NumPy arrays out, as without jit."""

    @property
    def returns_numpy(self) -> Any:  # type: ignore[override]
        return self.function.returns_numpy  # type: ignore[attr-defined]

    def call_general(self, args: Any, kwargs: Any) -> Any:
        result = super().call_general(args, kwargs)
        f: Any = self.function
        return f.to_numpy(result) if args and f.returns_numpy(args) else result


@overload
def jit(
    f: Callable[P, R],
    *,
    static_argnums: Any = (),
    donate_argnums: Any = (),
    backend: str | None = None,
    static_argnames: Any = (),
    memory_budget: int | str | None = None,
) -> Jitted[P, R]: ...
@overload
def jit(
    f: None = None,
    *,
    static_argnums: Any = (),
    donate_argnums: Any = (),
    backend: str | None = None,
    static_argnames: Any = (),
    memory_budget: int | str | None = None,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
@public(aliases=("compile",))
def jit(
    f: Any = None,
    *,
    static_argnums: Any = (),
    donate_argnums: Any = (),
    backend: str | None = None,
    static_argnames: Any = (),
    memory_budget: int | str | None = None,
) -> Any:
    """Compile a function: it is recorded on its first call and is one native call afterward.

    static_argnums    arguments that are not arrays; each of their values is compiled separately
    static_argnames   the same by name, for arguments given by position or by keyword
    donate_argnums    arguments whose memory the results may reuse; they cannot be used afterward
    backend           "llvm", or "numba", which compiles the listings; by default LUCID_BACKEND
    memory_budget     the bytes that temporaries may have, as in `lucid.memory_budget`

    Variables that the function closes over are read again at every call, and in-place changes are
    written back. A value that Python reads inside becomes a guard, checked at every call; if it
    differs, another path is recorded. Inspect the result with `graph(*args, stage=...)`,
    `kernels(*args)` and `why_recompiled()`.

    >>> import lucid
    >>> @lucid.jit
    ... def f(x):
    ...     return lucid.sin(x) * 2.0
    >>> f(lucid.zeros(3))
    Tensor([0., 0., 0.])
    """
    if f is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            donate_argnums=donate_argnums,
            backend=backend,
            static_argnames=static_argnames,
            memory_budget=memory_budget,
        )
    if not callable(f):
        raise ArgumentError(f"jit: {type(f).__name__} is not a function{at_line()}")
    if static_argnames:
        from lucid.compiler.jit.static_names import JittedByName

        return JittedByName(
            f, static_argnums, donate_argnums, backend, static_argnames, memory_budget
        )
    cls = JittedTransform if hasattr(f, "returns_numpy") else Jitted
    return cls(f, static_argnums, donate_argnums, backend, memory_budget)
