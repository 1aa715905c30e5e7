"""Scalars as Numba dispatchers: the text of a scalar becomes a library that Numba links.

The only module here that imports Numba.
"""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from . import bitcode, symbol, table

_TYPES = {"f4": types.float32, "f8": types.float64}


@cache
def dispatcher(name: str, dtype: str):
    """The `@njit` function of one scalar at one precision; arguments are cast to it."""
    type = _TYPES[dtype]
    arity = table[name].arity

    def generate(context, builder, signature, arguments):
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

    if arity == 1:

        @intrinsic
        def call(context, x):
            return type(type), generate

        def scalar(x):
            return call(x)
    else:

        @intrinsic
        def call(context, x, y):
            return type(type, type), generate

        def scalar(x, y):
            return call(x, y)

    scalar.__name__ = scalar.__qualname__ = symbol(name, dtype)
    return njit(error_model="numpy", forceinline=True)(scalar)
