"""scipy.linalg: triangular systems of tensors; other functions are SciPy's, for arrays."""

from __future__ import annotations

from typing import Any

import scipy.linalg as _linalg

from lucid import linalg
from lucid.compat.autograd.extend import isbox
from lucid.ops.core.promote import as_tensor
from lucid.ops.elementwise.complexes import conj


def __getattr__(name: str) -> Any:
    return getattr(_linalg, name)


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, **options: Any
) -> Any:
    """scipy.linalg.solve_triangular, also of tensors."""
    if not isbox(a) and not isbox(b):
        return _linalg.solve_triangular(a, b, trans, lower, unit_diagonal, **options)
    a, b = as_tensor(a), as_tensor(b)
    if trans in (1, "T", 2, "C"):
        a, lower = a.mT, not lower
        a = conj(a) if trans in (2, "C") else a
    columns = b if b.ndim > 1 else b.reshape(-1, 1)
    x = linalg.solve_triangular(a, columns, upper=not lower, unitriangular=unit_diagonal)
    return x.reshape(b.shape)
