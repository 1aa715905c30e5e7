"""Cases of resample: matrices from np.interp, from indices and from Keys' kernel as he wrote it."""

from __future__ import annotations

import numpy as np

from lucid.ops.nn.resample import Resample
from tests.cases.case import Case, complex_, real


def along(matrix, axis):
    return lambda x: np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)


def nearest(n, m, scale, shift=0.0):
    places = [min(int((i + shift) * scale), n - 1) for i in range(m)]
    return np.eye(n)[places]


def linear(n, at):
    return np.stack([np.interp(at, np.arange(n), row) for row in np.eye(n)], 1)


def cubic(n, at, a=-0.75):
    """Keys, 1981: every element's kernel at its distance; those outside are the border's."""

    def kernel(s):
        s = abs(s)
        if s < 1:
            return (a + 2) * s**3 - (a + 3) * s**2 + 1
        return a * s**3 - 5 * a * s**2 + 8 * a * s - 4 * a if s < 2 else 0.0

    matrix = np.zeros((len(at), n))
    for i, place in enumerate(at):
        for k in range(-4, n + 4):
            matrix[i, min(max(k, 0), n - 1)] += kernel(place - k)
    return matrix


def centres(m, scale):
    return (np.arange(m) + 0.5) * scale - 0.5


def tent(n, m):
    """The mean of elements under a tent as wide as two new ones, at their distances from it."""
    scale = n / m
    distance = np.abs(np.arange(n) - centres(m, scale)[:, None]) / scale
    weights = np.maximum(1 - distance, 0)
    return weights / weights.sum(1, keepdims=True)


TWICE = linear(5, centres(10, 0.5))
LINEAR = Resample(1, 5, 10, "linear", 0.5)
TURNED = Resample(1, 5, 10, "linear", 0.5, transpose=True)
SPARSE = Resample(0, 7, 3, "nearest", 7 / 3, transpose=True)

CASES = [
    Case(LINEAR, (real(2, 5, 9),), along(TWICE, 1)),
    Case(LINEAR, (real(2, 5, 3),), along(TWICE, 1), label="few columns"),
    Case(LINEAR, (real(6, 5),), along(TWICE, 1), label="last axis"),
    Case(LINEAR, (real(0, 5),), along(TWICE, 1), label="empty"),
    Case(LINEAR, (complex_(3, 5),), along(TWICE, 1), label="complex"),
    Case(TURNED, (real(2, 10, 17),), along(TWICE.T, 1)),
    Case(TURNED, (real(5, 10),), along(TWICE.T, 1), label="last axis"),
    Case(
        Resample(0, 4, 7, "linear", 4 / 7, align_corners=True),
        (real(4, 8),),
        along(linear(4, np.linspace(0, 3, 7)), 0),
    ),
    Case(
        Resample(2, 6, 4, "cubic", 1.5),
        (real(1, 2, 6),),
        along(cubic(6, centres(4, 1.5)), 2),
    ),
    Case(
        Resample(0, 3, 8, "cubic", 3 / 8, transpose=True),
        (real(8, 2, 5),),
        along(cubic(3, centres(8, 3 / 8)).T, 0),
    ),
    Case(Resample(0, 7, 3, "nearest", 7 / 3), (real(7, 9),), along(nearest(7, 3, 7 / 3), 0)),
    Case(
        Resample(0, 3, 8, "nearest-exact", 3 / 8),
        (real(3),),
        along(nearest(3, 8, 3 / 8, 0.5), 0),
    ),
    Case(SPARSE, (real(3, 10),), along(nearest(7, 3, 7 / 3).T, 0), label="some have no terms"),
    Case(Resample(1, 9, 4, "linear", 9 / 4, antialias=True), (real(5, 9),), along(tent(9, 4), 1)),
    Case(Resample(0, 1, 6, "linear", 1 / 6), (real(1, 9),), lambda x: np.repeat(x, 6, 0)),
]
