"""Loops over the scalars, compiled with llvmlite alone: `Loops(keys)[name, dtype](out, x)`.

This is what a kernel does with a scalar (link the text, inline, vectorize), for the tests and the
benchmark.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable

import llvmlite.binding as llvm
import numpy as np

from lucid.compiler.kernels.scalars import bitcode, symbol, table

_LOOP = """
define void @loop_{symbol}(ptr noalias %out, {pointers}, i64 %n) {{
entry:
  %empty = icmp slt i64 %n, 1
  br i1 %empty, label %exit, label %body
body:
  %i = phi i64 [0, %entry], [%next, %body]
{loads}
  %y = call {type} @{symbol}({arguments})
  %q = getelementptr {type}, ptr %out, i64 %i
  store {type} %y, ptr %q
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %body, label %exit
exit:
  ret void
}}
declare {type} @{symbol}({types})
"""


def loop_text(name: str, dtype: str) -> str:
    """The LLVM text of a loop that applies one scalar to whole arrays."""
    arity = table[name].arity
    type = "float" if dtype == "f4" else "double"
    loads = "\n".join(
        f"  %p{i} = getelementptr {type}, ptr %a{i}, i64 %i\n  %x{i} = load {type}, ptr %p{i}"
        for i in range(arity)
    )
    return _LOOP.format(
        symbol=symbol(name, dtype),
        type=type,
        types=", ".join([type] * arity),
        pointers=", ".join(f"ptr noalias %a{i}" for i in range(arity)),
        arguments=", ".join(f"{type} %x{i}" for i in range(arity)),
        loads=loads,
    )


class Loops:
    """Compiled loops over scalars; owns the machine code of its functions."""

    def __init__(self, keys: Iterable[tuple[str, str]], cpu: str | None = None) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        keys = list(keys)
        features = llvm.get_host_cpu_features().flatten() if cpu is None else ""
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=cpu or llvm.get_host_cpu_name(), features=features, opt=3
        )
        module = llvm.parse_assembly("")
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        for key in keys:
            # The loop first: the linker drops a linkonce function that nothing declares yet.
            module.link_in(llvm.parse_assembly(loop_text(*key)))
            module.link_in(llvm.parse_assembly(bitcode(*key)))
        options = llvm.create_pipeline_tuning_options(3)
        options.loop_vectorization = True
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        # The vector variants that the vectorizer calls.
        inliner = llvm.create_new_module_pass_manager()
        inliner.add_always_inliner_pass()
        inliner.run(module, builder)
        self.llvm = str(module)
        self._machine = machine
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        self._functions = {key: self._function(*key) for key in keys}

    def raw(
        self, name: str, dtype: str, out: np.ndarray, *arrays: np.ndarray
    ) -> tuple[Callable, tuple[int, ...]]:
        """The native function of a loop, and its arguments for these arrays."""
        assert all(a.flags.c_contiguous and a.dtype == dtype for a in (out, *arrays))
        pointers = (out.ctypes.data, *(a.ctypes.data for a in arrays), out.size)
        return self._functions[name, dtype], pointers

    def _function(self, name: str, dtype: str) -> Callable:
        address = self._engine.get_function_address(f"loop_{symbol(name, dtype)}")
        types = [ctypes.c_void_p] * (table[name].arity + 1) + [ctypes.c_int64]
        return ctypes.CFUNCTYPE(None, *types)(address)

    def assembly(self) -> str:
        """The machine code of every loop, as text."""
        return self._machine.emit_assembly(llvm.parse_assembly(self.llvm))

    def __getitem__(self, key: tuple[str, str]) -> Callable:
        """`loops["exp", "f4"](out, x)` fills `out` and returns it."""

        def function(out: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
            native, pointers = self.raw(*key, out, *arrays)
            native(*pointers)
            return out

        return function
