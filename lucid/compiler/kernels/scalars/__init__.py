"""The scalar functions of compiled kernels: a name and a dtype in, LLVM IR that vectorizes out.

A scalar is a Python function written in `language`; it is compiled by running it once on symbolic
values (a tenth of a millisecond, without Numba or llvmlite). `bitcode("exp", "f4")` is a module
that defines

    float @lucid_exp_f4(float)    ; linkonce_odr hidden alwaysinline nounwind memory(none)

with no reference to any runtime library (on a CPU without FMA, LLVM turns `llvm.fma` into a call
to libm: correct, but slow). To use it: declare the symbol and call it in a loop, link the text into
that module (in this order: the linker drops a linkonce function that nothing has declared) and run
the O2 pipeline with loop vectorization. Running an always-inliner once more afterward saves sin,
cos and tan a call per vector. `native` does all of this in a small example.

`table[name].ulps` bounds the error over the whole range, subnormals included; `lookup` gives the
function to code under `@njit`; `table[name].reference` is the same function from NumPy or SciPy.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lucid.errors import ArgumentError
from lucid.public.declare import public
from lucid.support.caches import memoize

from . import (  # noqa: F401  their functions are declared when they are imported
    bessel,
    exponential,
    hyperbolic,
    logarithm,
    normal,
    power,
    special,
    trigonometric,
)
from . import (
    code as scalar_code,
)
from .declare import ScalarFunction, table
from .language import FORMATS, Value, assemble

__all__ = ["VERSION", "ScalarFunction", "bitcode", "lookup", "register", "symbol", "table"]
code = public("extend")(scalar_code)


def _version() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


VERSION = _version()
"""A hash of the source of the scalars: part of the key of everything compiled from them."""


def symbol(name: str, dtype: str) -> str:
    """The name of a scalar in LLVM: `symbol("exp", "f4") == "lucid_exp_f4"`."""
    return f"lucid_{name}_{dtype}"


@memoize()
def bitcode(name: str, dtype: str) -> str:
    """The LLVM module that defines one scalar at 'f4' or 'f8', as text."""
    if name not in table or dtype not in FORMATS:
        raise KeyError(f"no scalar {name!r} for {dtype}; known for f4 and f8: {', '.join(table)}")
    return assemble(symbol(name, dtype), table[name].body, dtype, table[name].arity)


@public("extend", name="scalar")
def register(body: Callable[..., Value]) -> str:
    """Return the `scalar` of an Elementwise primitive whose element `body` computes.

    `body` is run once on symbolic numbers. It is written in arithmetic, comparisons and the
    functions of `lucid.extend.code`; `code.select(condition, a, b)` stands for `if`.

    >>> from lucid.extend import Elementwise, bind, code, scalar
    >>> class Softsign(Elementwise):
    ...     accepts, saves = "f", "x"
    ...     scalar = scalar(lambda x: x / (1 + abs(x)))
    ...     def eval(self, x): return x / (1 + abs(x))
    ...     def partials(self, y, x): return (1 / (1 + x.abs()) ** 2,)
    >>> import lucid
    >>> bind(Softsign(), lucid.tensor([-1.0, 3.0]))
    Tensor([-0.5 ,  0.75])

    The name contains a hash of the code, so that kernels on disk belong to this very function.
    """
    given = getattr(body, "__name__", "scalar")
    arity = len(inspect.signature(body).parameters)
    try:
        texts = [assemble("code", body, dtype, arity) for dtype in FORMATS]
    except (TypeError, AttributeError, ValueError, AssertionError) as error:
        raise ArgumentError(
            f"scalar: {given}: {error}; write it in arithmetic, comparisons and the functions of "
            "lucid.extend.code"
        ) from error
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
    name = f"{re.sub(r'[^a-z0-9_]', '', given.lower())}_{digest}"
    table.setdefault(name, ScalarFunction(body, arity, 0))
    return name


def lookup(name: str, dtype: str) -> Callable[..., Any]:
    """The Numba dispatcher of a scalar, to call from other `@njit` functions."""
    from .dispatch import dispatcher

    return dispatcher(name, dtype)
