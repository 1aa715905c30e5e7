"""np.linalg, for programs that import it from autograd.

Eigenvectors and singular vectors have the same signs for arrays as for tensors.
"""

from __future__ import annotations

from typing import Any

import numpy as _np

import lucid.numpy as _lnp
from lucid.compat.autograd.core import isbox as _isbox
from lucid.ops.core.promote import contains_tensors as _contains_tensors


def __getattr__(name: str) -> Any:
    return getattr(_np.linalg, name)


def _same_signs(name: str, x: Any, args: Any, kwargs: Any) -> Any:
    function = getattr(_lnp.linalg, name)
    if _isbox(x):
        return function(x, *args, **kwargs)
    found = function(_np.asarray(x), *args, **kwargs)
    return found.numpy() if _isbox(found) else type(found)(*[y.numpy() for y in found])


def eigh(a: Any, UPLO: str = "L") -> Any:
    """np.linalg.eigh, whose derivative is that of the triangle it reads."""
    if not _isbox(a):
        return _same_signs("eigh", a, (UPLO,), {})
    half, strict = (_np.tril(a), _np.tril(a, -1)) if UPLO == "L" else (_np.triu(a), _np.triu(a, 1))
    return _lnp.linalg.eigh(half + _np.conj(_np.swapaxes(strict, -1, -2)), UPLO)


def svd(a: Any, *args: Any, **kwargs: Any) -> Any:
    """np.linalg.svd."""
    return _same_signs("svd", a, args, kwargs)


def norm(x: Any, *args: Any, **kwargs: Any) -> Any:
    """np.linalg.norm, also of lists with tensors."""
    return _np.linalg.norm(_lnp.array(x) if _contains_tensors(x) else x, *args, **kwargs)
