"""Window functions for signal processing, by NumPy's formulas."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from lucid.errors import ShapeError
from lucid.ops.core.arguments import creation_function
from lucid.ops.shape.creation import dtype_or_default
from lucid.tape.node import wrap


def window(name: str, length: Any, periodic: Any, make: Any, dtype: Any) -> Any:
    """Return `make(m)` for a window of m points; a periodic window drops its last point."""
    n = operator.index(length)
    wanted = dtype_or_default(dtype)
    if n < 0 or wanted.kind != "f":
        facts = f"length {n}, dtype {wanted}; the length must be >= 0 and the dtype floating"
        raise ShapeError(f"{name}: {facts}")
    points = make(n + 1)[:-1] if periodic and n > 1 else make(n)
    return wrap(np.asarray(points, wanted))


@creation_function()
def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None) -> Any:
    """The Hann window, (1 - cos(2 pi n / N)) / 2."""
    return window("hann_window", window_length, periodic, np.hanning, dtype)


@creation_function()
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Any = None,
) -> Any:
    """The Hamming window, alpha - beta cos(2 pi n / N)."""

    def make(m: int) -> np.ndarray:
        if m == 1:
            return np.ones(1)
        return alpha - beta * np.cos(2 * math.pi * np.arange(m) / max(m - 1, 1))

    return window("hamming_window", window_length, periodic, make, dtype)


@creation_function()
def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None) -> Any:
    """The Blackman window, 0.42 - cos(2 pi n / N) / 2 + 0.08 cos(4 pi n / N)."""
    return window("blackman_window", window_length, periodic, np.blackman, dtype)


@creation_function()
def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None) -> Any:
    """The triangular window."""
    return window("bartlett_window", window_length, periodic, np.bartlett, dtype)


@creation_function()
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None
) -> Any:
    """The Kaiser window with shape parameter `beta`."""

    def make(m: int) -> np.ndarray:
        return np.kaiser(m, beta)

    return window("kaiser_window", window_length, periodic, make, dtype)
