"""FromScipy: elementwise functions that a ufunc of SciPy computes, for tensors and in programs.

Compiled programs call the ufunc's own loop by its address (`lucid.compiler.steps.foreign`), so a
function needs no more than its name here to run there without Python.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import numpy as np

from lucid.ops.kinds import Elementwise
from lucid.ops.quiet import quiet


@cache
def ufunc(name: str) -> Any:
    """A ufunc of SciPy's, imported when it is first needed."""
    import scipy.special

    found = getattr(scipy.special, name, None)
    return found if isinstance(found, np.ufunc) else getattr(scipy.special._ufuncs, name)


class FromScipy(Elementwise, abstract=True):
    """A function of real numbers.

    function     the name of the ufunc
    output       which of its results
    leading      numbers that stand before the operands
    """

    function: ClassVar[str]
    output: ClassVar[int] = 0
    accepts = "f"

    def leading(self) -> tuple[float, ...]:
        return ()

    def eval(self, *xs: np.ndarray) -> Any:
        dtype = np.result_type(*xs)
        function = ufunc(self.function)
        y = _run(function, *[dtype.type(number) for number in self.leading()], *xs)
        y = y[self.output] if function.nout > 1 else y
        return y if y.dtype == dtype else y.astype(dtype)


@quiet
def _run(function: Any, *xs: Any) -> Any:
    return function(*xs)
