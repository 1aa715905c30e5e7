"""Hot programs: how recurring eager code is compiled (`tape/tiering.py` decides when).

`install` connects the two. LUCID_TIERING=0 leaves eager code to NumPy, LUCID_TIERING_THRESHOLD (16)
is the number of runs that make a program hot, and LUCID_DISABLE_JIT=1 interprets everything.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lucid.compiler.jit.slow_notice import slow_notice
from lucid.errors import OutOfMemoryError
from lucid.ir.graph import Graph
from lucid.public.lazy import LazyModule
from lucid.support.locks import fork_waits
from lucid.support.settings import setting
from lucid.tape.tiering import Tiering

interpret: Any = LazyModule("lucid.ir.interpret")


class CompileWarning(RuntimeWarning):
    """A hot graph could not be compiled and stays interpreted."""


def compile_hot(
    graph: Graph, into: Mapping[int, int] | None = None, budget: int | None = None
) -> Callable[[Sequence[Any]], list[Any]]:
    """Compile a Graph to a native program; if that fails, warn and return its interpreter."""
    try:
        with fork_waits(), slow_notice(graph):
            from lucid.compiler.compile import compile_graph

            return compile_graph(graph, into, budget)
    except OutOfMemoryError:
        raise  # no program fits the budget
    except Exception as error:
        if interpret_everything():
            return interpret.Program(graph)
        reason = f"{type(error).__name__}: {error}"
        warnings.warn(
            f"a hot graph could not be compiled and stays interpreted: {reason}",
            CompileWarning,
            stacklevel=2,
        )
        return interpret.Program(graph)


def interpret_everything() -> bool:
    """Turn compilation off, with one warning, if compiled code cannot run here at all."""
    from lucid.compiler.runtime.available import problem

    reason = problem()
    if not reason:
        return False
    if Tiering.compile is not None:
        Tiering.compile, Tiering.enabled = None, False
        warnings.warn(
            f"Lucid cannot run compiled code here ({reason}); everything is interpreted, which is "
            "slower. LUCID_DISABLE_JIT=1 does the same without this warning",
            CompileWarning,
            stacklevel=3,
        )
    return True


def load_cipher() -> Any:
    """Return what builds native draws of random words, None if it is not available."""
    try:
        with fork_waits():
            from lucid.compiler.lowering.random.eager_words import build_draw

            build_draw((2,), 2)
            return build_draw
    except Exception:
        return None


def install() -> None:
    """Let hot eager code be compiled, as the LUCID_* variables say."""
    disabled = setting("LUCID_DISABLE_JIT", strict=False)
    Tiering.compile = None if disabled else compile_hot
    Tiering.enabled = not disabled and setting("LUCID_TIERING", strict=False)
    Tiering.threshold = setting("LUCID_TIERING_THRESHOLD", strict=False)
    Tiering.load_cipher = load_cipher
