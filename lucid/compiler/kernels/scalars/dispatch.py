"""Scalars as Numba dispatchers: the LLVM IR of a scalar becomes a library that Numba links.

The only module here that imports Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from lucid.errors import ArgumentError
from lucid.public.declare import public
from lucid.support.caches import once

from . import bitcode, symbol, table

_TYPES: dict[str, Any] = {"f4": types.float32, "f8": types.float64}


@once
def dispatcher(name: str, dtype: str = "") -> Callable[..., Any]:
    """The `@njit` function of one scalar; arguments are cast to the dtype.

    Without one it is float32 if every argument is, else float64.
    """

    def typed(*xs: Any) -> Any:
        single = dtype == "f4" or (not dtype and all(x == types.float32 for x in xs))
        code = "f4" if single else "f8"
        return _TYPES[code](*[_TYPES[code]] * len(xs)), _generator(name, code)

    scalar = _unary(typed) if table[name].arity == 1 else _binary(typed)
    scalar.__name__ = scalar.__qualname__ = symbol(name, dtype) if dtype else name
    return njit(error_model="numpy", forceinline=True)(scalar)


@public("extend")
def numba_scalar(name: str) -> Callable[..., Any]:
    """Return a scalar function of Lucid's kernels, to call from your own `@njit` code.

    Loops over it vectorize; float32 stays float32, other numbers become float64. With
    NUMBA_DISABLE_JIT=1 it is the function of NumPy or SciPy with the same meaning.

    >>> import numba, numpy as np
    >>> from lucid.extend import numba_scalar
    >>> tanh = numba_scalar("tanh")
    >>> @numba.njit
    ... def total(x):
    ...     s = np.float32(0)
    ...     for i in range(x.size):
    ...         s += tanh(x[i])
    ...     return s
    >>> round(float(total(np.ones(4, np.float32))), 4)
    3.0464
    """
    if name not in table:
        raise ArgumentError(
            f"numba_scalar: no scalar {name!r}; there are {', '.join(sorted(table))}"
        )
    disabled = getattr(config, "DISABLE_JIT")  # noqa: B009  Numba sets it when it is imported
    return table[name].reference if disabled else dispatcher(name)


def _generator(name: str, dtype: str) -> Callable[..., Any]:
    """The code generator of a call of one scalar at one precision."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        library = context.codegen().create_library(symbol(name, dtype))
        # External, or linking into an empty library would drop it as unused.
        text = bitcode(name, dtype).replace("define linkonce_odr hidden", "define", 1)
        library.add_llvm_module(llvm.parse_assembly(text))
        library.finalize()
        context.active_code_library.add_linking_library(library)
        types = [argument.type for argument in arguments]
        function_type = ir.FunctionType(types[0], types)
        function = cgutils.get_or_insert_function(
            builder.module, function_type, symbol(name, dtype)
        )
        return builder.call(function, arguments)

    return generate


def _unary(typed: Callable[..., Any]) -> Callable[..., Any]:
    def choose(context: Any, x: Any) -> Any:
        return typed(x)

    call: Any = intrinsic(choose)

    def scalar(x: Any) -> Any:
        return call(x)

    return scalar


def _binary(typed: Callable[..., Any]) -> Callable[..., Any]:
    def choose(context: Any, x: Any, y: Any) -> Any:
        return typed(x, y)

    call: Any = intrinsic(choose)

    def scalar(x: Any, y: Any) -> Any:
        return call(x, y)

    return scalar
