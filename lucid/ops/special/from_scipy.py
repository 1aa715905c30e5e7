"""FromScipy: elementwise functions computed by SciPy ufuncs, eagerly and in compiled programs.

Compiled programs call the ufunc's inner loop by its address (`compiler.lowering.external`), so a
function needs only its name to run without Python.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from typing import Any, ClassVar

import numpy as np

from lucid.ops.core.errstate import quiet
from lucid.ops.core.kinds import Elementwise
from lucid.support.caches import once

MODULE = "_special_ufuncs"


@once
def ufunc(name: str) -> Any:
    """Return a SciPy ufunc by name, importing it on first use."""
    found = getattr(ufunc_module(), name, None)
    if isinstance(found, np.ufunc):
        return found
    import scipy.special

    found = getattr(scipy.special, name, None)
    return found if isinstance(found, np.ufunc) else getattr(scipy.special._ufuncs, name)


@once
def ufunc_module() -> Any:
    """Return the extension module with most ufuncs: 2 ms, where `import scipy.special` takes 270.

    None if it is not found or does not load by itself; then all of `scipy.special` is imported.
    """
    if "scipy.special" in sys.modules:
        return None
    try:
        (root,) = find_spec("scipy").submodule_search_locations  # type: ignore[union-attr,misc]
        suffix = next(s for s in EXTENSION_SUFFIXES if os.path.exists(_path(root, s)))
        name = f"lucid.{MODULE}"  # a private name, so other importers get their own copy
        spec = spec_from_file_location(name, _path(root, suffix))
        module = module_from_spec(spec)  # type: ignore[arg-type]
        spec.loader.exec_module(module)  # type: ignore[union-attr]
        return module
    except Exception:
        return None


def _path(root: str, suffix: str) -> str:
    return os.path.join(root, "special", MODULE + suffix)


class FromScipy(Elementwise, abstract=True):
    """A function of real numbers computed by a SciPy ufunc.

    function     the name of the ufunc
    """

    function: ClassVar[str]
    accepts = "f"

    @property
    def ufunc(self) -> Any:  # type: ignore[override]
        return ufunc(self.function)

    def eval(self, *xs: np.ndarray) -> Any:
        dtype = np.result_type(*xs)
        function = ufunc(self.function)
        args = [dtype.type(x) if isinstance(x, float) else x for x in self.arguments(*xs)]
        return _run(function, self.output, dtype, *args)


@quiet
def _run(function: Any, output: int, dtype: np.dtype, *xs: Any) -> Any:
    y = function(*xs)
    y = y[output] if function.nout > 1 else y
    return y if y.dtype == dtype else y.astype(dtype)
