"""scipy.signal's convolve, over given axes."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np


def convolve(A: Any, B: Any, axes: Any = None, dot_axes: Any = ((), ()), mode: str = "full") -> Any:
    """Convolve over pairs of axes, contract over `dot_axes`, and leave other axes unchanged."""
    a_axes, b_axes = ((), ()) if axes is None else axes
    if axes is None:
        a_axes = b_axes = tuple(range(np.ndim(A)))
    a_rest = [i for i in range(np.ndim(A)) if i not in (*a_axes, *dot_axes[0])]
    b_rest = [i for i in range(np.ndim(B)) if i not in (*b_axes, *dot_axes[1])]
    A = np.transpose(A, (*a_rest, *a_axes, *dot_axes[0]))
    B = np.transpose(B, (*b_rest, *b_axes, *dot_axes[1]))
    n, (na, nb) = len(a_axes), (len(a_rest), len(b_rest))
    sizes = list(zip(A.shape[na : na + n], B.shape[nb : nb + n]))
    total: Any = 0.0
    for place in product(*[range(min(pair)) for pair in sizes]):
        total = total + _shifted_product(A, B, place, sizes, na, nb, len(dot_axes[0]))
    if mode == "full":
        return total
    cuts = [slice(min(pair) - 1, max(pair)) for pair in sizes]
    return total[(slice(None),) * na + (slice(None),) * nb + tuple(cuts)]


def _shifted_product(A: Any, B: Any, place: Any, sizes: Any, na: int, nb: int, n_dot: int) -> Any:
    """Return the part of the convolution of one element of the smaller operand along each axis."""
    pads = []
    index_a: list[Any] = [slice(None)] * na
    index_b: list[Any] = [slice(None)] * nb
    for i, (m, n) in zip(place, sizes):
        small_b = n <= m
        index_a.append(slice(None) if small_b else slice(i, i + 1))
        index_b.append(slice(i, i + 1) if small_b else slice(None))
        size = max(m, n)
        pads.append((i, m + n - 1 - size - i))
    a, b = A[tuple(index_a)], B[tuple(index_b)]
    k = len(place)
    a = np.reshape(a, (*a.shape[:na], *[1] * nb, *a.shape[na:]))
    y = a * b
    y = np.sum(y, axis=tuple(range(y.ndim - n_dot, y.ndim))) if n_dot else y
    return np.pad(y, [(0, 0)] * (y.ndim - k) + pads)
