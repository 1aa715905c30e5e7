"""scipy.special: its ufuncs accept tensors, and so do the functions below."""

from __future__ import annotations

from typing import Any

import numpy as _np
import scipy.special as _special

from lucid import special as _lucid
from lucid.compat.autograd.core import getval as _getval
from lucid.compat.autograd.extend import isbox as _isbox


def __getattr__(name: str) -> Any:
    return getattr(_special, name)


def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma."""
    return _lucid.polygamma(int(n), x) if _isbox(x) else _special.polygamma(n, x)


def multigammaln(a: Any, d: int) -> Any:
    """The logarithm of the multivariate gamma function."""
    return _lucid.multigammaln(a, d) if _isbox(a) else _special.multigammaln(a, d)


def yn(n: Any, x: Any) -> Any:
    """The Bessel function of the second kind of order n."""
    return _lucid.yv(n, x) if _isbox(x) else _special.yn(n, x)


def jn(n: Any, x: Any) -> Any:
    """The Bessel function of the first kind of order n."""
    return _lucid.jv(n, x) if _isbox(x) else _special.jv(n, x)


def logsumexp(
    x: Any, axis: Any = None, b: Any = 1.0, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """log(sum(b * exp(x))), without overflow."""
    if return_sign or not (_isbox(x) or _isbox(b)):
        return _special.logsumexp(x, axis, b, keepdims, return_sign)
    largest: Any = _np.max(_getval(x), axis=axis, keepdims=True)
    largest = _np.where(_np.isfinite(largest), largest, 0.0)
    total = _np.log(_np.sum(b * _np.exp(x - largest), axis=axis, keepdims=True)) + largest
    return total if keepdims else total.reshape(_np.sum(x, axis=axis).shape)
