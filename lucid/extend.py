"""extend: what a primitive defined outside of Lucid is written with.

    Primitive, Elementwise, Linear, Bilinear, Constant    the base class and its kinds
    Type, bind                                            types, and how a function applies it
    as_tensor, promote, to_floating                       operands of public functions
    times, quiet                                          helpers for rules and for `eval`
    scalar, code                                          scalar code, which fuses in kernels
    NumbaCall, NativeCall                                 lowerings: native code without fusion

docs/adding-a-primitive.md has an example of each.
"""

from __future__ import annotations

from typing import Any

from lucid.compiler.kernels.scalars import code, register
from lucid.compiler.lowering.external.native_calls import NativeCall
from lucid.compiler.lowering.external.numba_calls import NumbaCall
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import Bilinear, Constant, Elementwise, Linear, times
from lucid.ops.core.promote import as_tensor, promote, to_floating
from lucid.tape.bind import bind

__all__ = [
    "Bilinear",
    "Constant",
    "Elementwise",
    "Linear",
    "NativeCall",
    "NumbaCall",
    "Primitive",
    "Type",
    "as_tensor",
    "bind",
    "code",
    "promote",
    "quiet",
    "scalar",
    "times",
    "to_floating",
]


def scalar(function: Any) -> str:
    """Return the `scalar` of an Elementwise primitive whose element `function` computes.

    The function is run once on symbolic numbers. It is written in arithmetic, comparisons and the
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
    """
    return register(function)
