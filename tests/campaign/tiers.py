"""Which tier eager code runs in: `cold` interprets everything, `hot` compiles at first sight.

`without_optimization` makes LLVM skip its passes, which halves the time of a campaign, and
`sharing_programs` compiles equal Graphs once, which takes another third off it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from lucid.compiler import compile as compiling
from lucid.compiler.plan.executable import Executable
from lucid.compiler.plan.program_cache import program_key
from lucid.compiler.runtime import codegen
from lucid.ir.graph import Graph
from lucid.tape.tiering import Tiering, table


@contextmanager
def settings(enabled: bool, threshold: int) -> Iterator[None]:
    before = Tiering.enabled, Tiering.threshold
    Tiering.enabled, Tiering.threshold = enabled, threshold
    table.clear()  # entries keep the limit that they were made with
    try:
        yield
    finally:
        Tiering.enabled, Tiering.threshold = before
        table.clear()


def cold() -> AbstractContextManager[None]:
    """Eager code that is never compiled."""
    return settings(enabled=False, threshold=16)


def hot() -> AbstractContextManager[None]:
    """Eager code that is compiled as soon as it runs."""
    return settings(enabled=True, threshold=0)


@contextmanager
def without_optimization() -> Iterator[None]:
    """Kernels as they are emitted: no pass of LLVM but those that hand-written code needs."""
    before = codegen.LEVEL, codegen.FLAGS
    codegen.LEVEL, codegen.FLAGS = 0, "O0 pic small"
    try:
        yield
    finally:
        codegen.LEVEL, codegen.FLAGS = before


@contextmanager
def sharing_programs() -> Iterator[None]:
    """Give every path whose Graph is equal to one that was compiled before that one's program."""
    compile_one, programs = compiling.load_or_compile, dict[str, Executable]()

    def shared(graph: Graph, into: Mapping[int, int] | None, budget: int | None) -> Executable:
        key = program_key(graph, into, budget)
        if key is None:
            return compile_one(graph, into, budget)
        if key not in programs:
            programs[key] = compile_one(graph, into, budget)
        return programs[key]

    compiling.load_or_compile = shared
    try:
        yield
    finally:
        compiling.load_or_compile = compile_one
