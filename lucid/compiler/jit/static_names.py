"""jit with `static_argnames`: a program for each value of some keyword arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from lucid.compiler.jit.call_signature import argument_indices
from lucid.compiler.jit.jitted import Jitted, P, R
from lucid.compiler.jit.recording import MAX_SIGNATURES
from lucid.errors import ArgumentError
from lucid.ops.core.constant_key import constant_key, value_key
from lucid.tape.recording.trace import function_name


class JittedByName(Jitted[P, R]):
    """A jitted function with `static_argnames`: keyword arguments that are compiled separately."""

    def __init__(
        self,
        f: Callable[P, R],
        static_argnums: Any,
        donate_argnums: Any,
        backend: Any,
        static_argnames: Any,
        memory_budget: Any = None,
    ) -> None:
        names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
        self.static_names = names
        given = (*argument_indices("static_argnums", static_argnums), *named_positions(f, names))
        super().__init__(f, tuple(dict.fromkeys(given)), donate_argnums, backend, memory_budget)
        self.by_keywords: dict[Any, Jitted] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if not any(name in kwargs for name in self.static_names):
            return super().__call__(*args, **kwargs)
        static = {name: kwargs.pop(name) for name in self.static_names if name in kwargs}
        return self.with_keywords(static)(*args, **kwargs)

    def with_keywords(self, static: dict[str, Any]) -> Jitted:
        """Return the function jitted with these keyword arguments."""
        key = constant_key(static, value_key)
        try:
            found = self.by_keywords.get(key)
        except TypeError:
            facts = f"jit of {self.name}: a static argument has no hash: {static!r:.80}"
            raise ArgumentError(f"{facts}; static arguments are constants") from None
        if found is None:
            given = functools.update_wrapper(
                functools.partial(self.function, **static), self.function
            )
            found = Jitted(given, self.static, self.donated, self.backend, self.budget)
            self.by_keywords[key] = found
            while len(self.by_keywords) > MAX_SIGNATURES:
                self.by_keywords.pop(next(iter(self.by_keywords)))
        return found

    def forget(self) -> None:
        super().forget()
        self.by_keywords.clear()

    def options(self) -> dict[str, Any]:
        return {**super().options(), "static_argnames": self.static_names}


def named_positions(f: Any, names: Sequence[str]) -> list[int]:
    """Return the positions of the parameters of `f` with these names."""
    try:
        parameters = inspect.signature(f).parameters
    except (TypeError, ValueError):
        return []
    positional = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for name in names:
        if name not in parameters and not takes_any:
            facts = f"jit: static_argnames has {name!r}, which is not an argument"
            raise ArgumentError(f"{facts} of {function_name(f)}")
    return [positional.index(name) for name in names if name in positional]
