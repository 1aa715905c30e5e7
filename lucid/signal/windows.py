"""lucid.signal.windows: window functions with the arguments of torch.signal.windows.

`sym=False` makes a window periodic, for spectral analysis. The formulas are SciPy's.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, ShapeError
from lucid.ops.core.arguments import creation_function
from lucid.ops.shape.creation import dtype_or_default
from lucid.public.lazy import attach
from lucid.tape.node import wrap


def _window(name: str, M: Any, dtype: Any, **settings: Any) -> Any:
    from scipy.signal import windows

    n, wanted = operator.index(M), dtype_or_default(dtype)
    if n < 0 or wanted.kind != "f":
        facts = f"M={n}, dtype {wanted}; M must be >= 0 and the dtype floating"
        raise ShapeError(f"{name}: {facts}")
    return wrap(np.asarray(getattr(windows, name)(n, **settings), wanted))


@creation_function("signal.windows")
def bartlett(M: int, *, sym: bool = True, dtype: Any = None) -> Any:
    """The Bartlett window: a triangle that is zero at both ends."""
    return _window("bartlett", M, dtype, sym=sym)


@creation_function("signal.windows")
def blackman(M: int, *, sym: bool = True, dtype: Any = None) -> Any:
    """The Blackman window, 0.42 - 0.5 cos + 0.08 cos 2."""
    return _window("blackman", M, dtype, sym=sym)


@creation_function("signal.windows")
def cosine(M: int, *, sym: bool = True, dtype: Any = None) -> Any:
    """Half a period of the sine."""
    return _window("cosine", M, dtype, sym=sym)


@creation_function("signal.windows")
def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None
) -> Any:
    """The window exp(-|n - center| / tau)."""
    if center is not None and sym:
        raise ArgumentError("exponential: center is for windows with sym=False")
    return _window("exponential", M, dtype, center=center, tau=tau, sym=sym)


@creation_function("signal.windows")
def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None) -> Any:
    """The window exp(-((n - center) / std)² / 2)."""
    return _window("gaussian", M, dtype, std=std, sym=sym)


@creation_function("signal.windows")
def general_cosine(M: int, *, a: Sequence[float], sym: bool = True, dtype: Any = None) -> Any:
    """The sum of cosines with weights `a`, with alternating signs."""
    return _window("general_cosine", M, dtype, a=list(a), sym=sym)


@creation_function("signal.windows")
def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None) -> Any:
    """The window alpha - (1 - alpha) cos."""
    return _window("general_hamming", M, dtype, alpha=alpha, sym=sym)


@creation_function("signal.windows")
def hamming(M: int, *, sym: bool = True, dtype: Any = None) -> Any:
    """The Hamming window, 0.54 - 0.46 cos."""
    return _window("hamming", M, dtype, sym=sym)


@creation_function("signal.windows")
def hann(M: int, *, sym: bool = True, dtype: Any = None) -> Any:
    """The Hann window, (1 - cos) / 2."""
    return _window("hann", M, dtype, sym=sym)


@creation_function("signal.windows")
def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None) -> Any:
    """The Kaiser window, a ratio of Bessel functions."""
    return _window("kaiser", M, dtype, beta=beta, sym=sym)


@creation_function("signal.windows")
def nuttall(M: int, *, sym: bool = True, dtype: Any = None) -> Any:
    """The Nuttall window, a sum of four cosines."""
    return _window("nuttall", M, dtype, sym=sym)


_, __dir__, __all__ = attach(__name__)
