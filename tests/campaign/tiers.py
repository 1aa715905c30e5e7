"""Which tier eager code runs in: `cold` interprets everything, `hot` compiles at first sight.

`without_optimization` makes LLVM skip its passes, which halves the time of a campaign.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from lucid.compiler.runtime import codegen
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
    """Kernels as they are emitted: LLVM inlines what must be inlined and selects instructions."""
    before = codegen.LEVEL, codegen.FLAGS
    codegen.LEVEL, codegen.FLAGS = 0, "O0 pic small"
    try:
        yield
    finally:
        codegen.LEVEL, codegen.FLAGS = before
