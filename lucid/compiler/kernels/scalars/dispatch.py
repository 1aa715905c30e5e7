"""Scalars as Numba dispatchers: the LLVM IR of a scalar becomes a library that Numba links.

The only module here that imports Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from lucid.caches import once

from . import bitcode, symbol, table

_TYPES: dict[str, Any] = {"f4": types.float32, "f8": types.float64}


@once
def dispatcher(name: str, dtype: str) -> Callable[..., Any]:
    """The `@njit` function of one scalar at one precision; arguments are cast to it."""
    type = _TYPES[dtype]
    arity = table[name].arity

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        library = context.codegen().create_library(symbol(name, dtype))
        # External, or linking into an empty library would drop it as unused.
        text = bitcode(name, dtype).replace("define linkonce_odr hidden", "define", 1)
        library.add_llvm_module(llvm.parse_assembly(text))
        library.finalize()
        context.active_code_library.add_linking_library(library)
        llvm_type = context.get_value_type(type)
        function_type = ir.FunctionType(llvm_type, [llvm_type] * arity)
        function = cgutils.get_or_insert_function(
            builder.module, function_type, symbol(name, dtype)
        )
        return builder.call(function, arguments)

    scalar = _unary(type, generate) if arity == 1 else _binary(type, generate)
    scalar.__name__ = scalar.__qualname__ = symbol(name, dtype)
    return njit(error_model="numpy", forceinline=True)(scalar)


def _unary(type: Any, generate: Callable[..., Any]) -> Callable[..., Any]:
    def typed(context: Any, x: Any) -> Any:
        return type(type), generate

    call: Any = intrinsic(typed)

    def scalar(x: Any) -> Any:
        return call(x)

    return scalar


def _binary(type: Any, generate: Callable[..., Any]) -> Callable[..., Any]:
    def typed(context: Any, x: Any, y: Any) -> Any:
        return type(type, type), generate

    call: Any = intrinsic(typed)

    def scalar(x: Any, y: Any) -> Any:
        return call(x, y)

    return scalar
