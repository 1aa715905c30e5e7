"""LLVM IR text in, optimized object code for this machine out.

Types are known when a kernel is emitted, so Numba is not needed here: the text goes through LLVM's
O2 pipeline (loop and SLP vectorization) for the host CPU. O3 would copy loops for each outcome of
their conditions: kernels of convolutions take half as long again to compile and are no faster, some
gathers are (docs/decisions/first-results.md). Text that is written by hand, such as the runtime's,
needs no passes: inlining what it marks takes 1 ms, all passes 150 ms, for equal code. Object code
is plain bytes, which `cache` stores on disk and `loader` maps into the process.

LLVM is called on threads that no interrupt reaches (`lucid.support.threads`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from lucid.support.locks import fork_waits
from lucid.support.threads import on_threads

VERSION = 5  # version of this module, part of every cache key
FLAGS = "O2 loop-vectorize slp-vectorize pic small"
LEVEL = 2  # of LLVM's optimization; 0 (for tests of many small programs) goes with other FLAGS

R = TypeVar("R")

LONG_FUNCTION = 1 << 15  # characters of a function from which SLP vectorization takes seconds

_idle_machines: dict[int, list[Any]] = {}  # target machines of each level, used by no thread


def compile_object(*sources: object, optimize: bool = True) -> bytes:
    """Compile LLVM IR (text, or anything whose `str` is text), linked together, to object code.

    Without `optimize`, functions that are marked `alwaysinline` are inlined, and variables become
    registers: that is all that code needs which is written as it should run.
    Several threads may compile at once, each or what it works for under `fork_waits()`.
    """
    return on_threads(_compile_object, [(sources, LEVEL if optimize else 0)])[0]


def _compile_object(request: tuple[tuple[object, ...], int]) -> bytes:
    from llvmlite.binding import ffi

    def emit(machine: Any) -> bytes:
        module = _optimized(machine, *request)
        with ffi.OutputString() as error:
            buffer = _without_lock("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, error)
            if not buffer:
                raise RuntimeError(str(error))
        start, size = ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer)
        code = ctypes.string_at(start, size)
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)
        return code

    return with_target_machine(emit)


def assembly(*sources: object) -> str:
    """Return the machine code of `compile_object` as assembly text, to read."""
    return _shown(lambda machine: machine.emit_assembly(_optimized(machine, sources, LEVEL)))


def optimized_ir(*sources: object) -> str:
    """Return the LLVM IR after the passes, to read."""
    return _shown(lambda machine: str(_optimized(machine, sources, LEVEL)))


def _shown(text_of: Callable[[Any], str]) -> str:
    with fork_waits():
        return on_threads(with_target_machine, [text_of])[0]


def _optimized(machine: Any, sources: tuple[object, ...], level: int) -> Any:
    import llvmlite.binding as llvm

    context = llvm.create_context()  # freed with the module, so that compiling leaks nothing
    texts = [str(source) for source in sources]
    first, *rest = (llvm.parse_assembly(text, context) for text in texts)
    for module in rest:
        first.link_in(module)
    first.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = level > 0
    options.slp_vectorization = level > 0 and longest_function(texts) < LONG_FUNCTION
    builder = llvm.create_pass_builder(machine, options)
    _run(builder.getModulePassManager(), first, builder)
    if not level:
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        _run(passes, first, builder)
        return first
    unused = _release_vector_functions(first)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()  # the vector functions that the vectorizer introduced
    if unused:
        passes.add_global_dead_code_eliminate_pass()
    _run(passes, first, builder)
    return first


def longest_function(texts: Iterable[str]) -> int:
    """Return the number of characters of the longest function in LLVM IR text."""
    return max(len(function) for text in texts for function in text.split("\ndefine "))


def _release_vector_functions(module: Any) -> bool:
    """Let functions that were kept for the vectorizer alone be removed; True if there are any.

    The list that keeps them is `@llvm.compiler.used`; under another name it keeps nothing.
    """
    try:
        kept = module.get_global_variable("llvm.compiler.used")
    except NameError:
        return False
    kept.name, kept.linkage = "lucid.vector_functions", "internal"
    return True


def _run(passes: Any, module: Any, builder: Any) -> None:
    _without_lock("LLVMPY_RunNewModulePassManager")(passes, module, builder)
    _dispose(passes)


def _without_lock(name: str) -> Callable[..., Any]:
    """Return a function of llvmlite's library without the lock that it puts around all of them.

    LLVM only requires that no two threads share a context or a target machine, and here none do.
    """
    from llvmlite.binding import ffi

    getattr(ffi.lib, name)  # llvmlite declares the argument types on first access
    return getattr(getattr(ffi.lib, "_lib", ffi.lib), name)


def _dispose(passes: Any) -> None:
    """Free a pass manager: llvmlite's class inherits an empty method and leaks 74 KB a module."""
    from llvmlite.binding import ffi, newpassmanagers

    if type(passes)._dispose is ffi.ObjectRef._dispose:
        newpassmanagers.NewPassManager._dispose(passes)
        passes.detach()


def with_target_machine(function: Callable[[Any], R]) -> R:
    """Return `function(machine)` for a target machine that no other thread uses meanwhile."""
    idle = _idle_machines.setdefault(LEVEL, [])
    try:
        machine = idle.pop()
    except IndexError:
        machine = _new_target_machine()
    try:
        return function(machine)
    finally:
        idle.append(machine)


def _new_target_machine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    if cpu.startswith("znver"):  # its gathers are microcode, slower than loads one by one
        features += ",+prefer-no-gather,+prefer-no-scatter"
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu,
        features=features,
        opt=LEVEL,
        reloc="pic",
        codemodel="small",
    )
