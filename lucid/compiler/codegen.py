"""LLVM IR text in, optimised object code for this machine out.

Types are known when a kernel is emitted, so nothing of Numba is needed here: the text goes through
LLVM's O3 pipeline (loop and SLP vectorisation) for the host CPU. Object code is plain bytes: it is
what `cache` keeps on disk and what `loader` maps into the process.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

VERSION = 1  # of this module: part of every cache key
FLAGS = "O3 loop-vectorize slp-vectorize pic small"

_lock = threading.Lock()  # a target machine serves one thread at a time


def compile_object(*sources: object) -> bytes:
    """Compile LLVM IR (text, or anything whose `str` is text), linked together, to object code."""
    with _lock:
        machine = _target_machine()
        return machine.emit_object(_optimised(machine, sources))


def assembly(*sources: object) -> str:
    """The machine code of `compile_object` as assembler text, for people."""
    with _lock:
        machine = _target_machine()
        return machine.emit_assembly(_optimised(machine, sources))


def optimised_ir(*sources: object) -> str:
    """The LLVM IR after the passes, for people."""
    with _lock:
        return str(_optimised(_target_machine(), sources))


def _optimised(machine: Any, sources: tuple[object, ...]) -> Any:
    import llvmlite.binding as llvm

    context = llvm.create_context()  # dropped with the module: nothing is kept of what was compiled
    first, *rest = (llvm.parse_assembly(str(text), context) for text in sources)
    for module in rest:
        first.link_in(module)
    first.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    passes.run(first, builder)
    _dispose(passes)
    return first


def _dispose(passes: Any) -> None:
    """Free a pass manager. llvmlite's own class inherits the empty method first: 74 KB a module."""
    from llvmlite.binding import ffi, newpassmanagers

    if type(passes)._dispose is ffi.ObjectRef._dispose:
        newpassmanagers.NewPassManager._dispose(passes)
        passes.detach()


@functools.cache
def _target_machine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="pic",
        codemodel="small",
    )
