"""Whether compiled code can run in this process, and why not if it cannot.

Compiled code needs LLVM (llvmlite), a processor that LLVM knows, POSIX threads, and memory that may
be executed. Without one of them everything is interpreted.
"""

from __future__ import annotations

from lucid.compiler.runtime import codegen, threads
from lucid.support.threads import on_threads


def problem() -> str:
    """Return why compiled code cannot run here, "" if it can."""
    try:
        threads.native()
        on_threads(codegen.with_target_machine, [bool])
    except ImportError as error:
        return f"{(error.name or str(error)).partition('.')[0]} is not installed"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
