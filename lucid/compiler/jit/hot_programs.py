"""Hot graphs: a derivative whose structure recurs is compiled once and then runs natively.

`LUCID_JIT=0` leaves eager code to NumPy; `LUCID_JIT_THRESHOLD` (16) is the number of runs that
makes a graph hot.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lucid.ir.graph import Graph
from lucid.ir.interpret import Hot, Program
from lucid.ops.random.keyed import NativeCipher


class CompileWarning(RuntimeWarning):
    """A hot graph could not be compiled and stays interpreted."""


def compile_hot(
    graph: Graph, into: Mapping[int, int] | None = None
) -> Callable[[Sequence[Any]], list[Any]]:
    """Compile a Graph to a native program; if that fails, warn and return its interpreter."""
    from lucid.compiler.passes.pipeline import compile_graph

    try:
        return compile_graph(graph, into)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        warnings.warn(
            f"a hot graph could not be compiled and stays interpreted: {reason}",
            CompileWarning,
            stacklevel=2,
        )
        return Program(graph)


def load_cipher() -> Any:
    """Return the native cipher for random numbers, None if it is not available."""
    try:
        from lucid.compiler.lowering.random.eager_words import Words

        return Words()
    except Exception:
        return None


def install() -> None:
    """Enable the compilation of hot graphs, unless LUCID_JIT=0."""
    if os.environ.get("LUCID_JIT", "1").strip() == "0":
        return
    Hot.threshold = int(os.environ.get("LUCID_JIT_THRESHOLD", "16"))
    Hot.compile = compile_hot
    NativeCipher.load = load_cipher
