"""Cases of Fourier transforms: every kind of factor, odd and even, one axis and several."""

import numpy as np

from lucid.ops.linalg.fourier import Fft, Irfft, Rfft
from tests.cases.case import Case, complex_, real

LENGTHS = (1, 2, 3, 4, 5, 8, 12, 17, 30, 46)


def transformed(axes, inverse=False, norm="backward"):
    function = np.fft.ifftn if inverse else np.fft.fftn
    return Fft(axes, inverse, norm), lambda x: function(x, axes=axes, norm=norm).astype(x.dtype)


def fft(arg, *parameters, label=""):
    op, expected = transformed(*parameters)
    return Case(op, (arg,), expected, label=label)


def rfft(arg, axis, norm="backward", label=""):
    return Case(Rfft(axis, norm), (arg,), lambda x: np.fft.rfft(x, axis=axis, norm=norm), label)


def irfft(arg, axis, n, norm="backward", label=""):
    def expected(x):
        return np.fft.irfft(x, n, axis, norm)

    return Case(Irfft(axis, n, norm), (arg,), expected, label)


CASES = [
    *[fft(complex_(2, n), (1,), n % 2 == 0) for n in LENGTHS],
    fft(complex_(6), (0,), False, "ortho"),
    fft(complex_(6), (0,), True, "forward"),
    fft(complex_(3, 4), (0,)),
    fft(complex_(3, 4), (0, 1), True),
    fft(complex_(2, 3, 5), (0, 2), False, "forward"),
    fft(complex_(2, 3, 5), (1,), True, "ortho"),
    Case(Fft((1,)), (complex_(0, 4),), lambda x: x, label="empty"),
    *[rfft(real(2, n), 1) for n in LENGTHS],
    rfft(real(6), 0, "ortho"),
    rfft(real(5, 3), 0, "forward"),
    rfft(real(2, 4, 3), 1),
    Case(Rfft(1), (real(0, 4),), lambda x: np.zeros((0, 3), complex), label="empty"),
    *[irfft(complex_(2, n // 2 + 1), 1, n) for n in LENGTHS],
    irfft(complex_(4), 0, 6, "ortho"),
    irfft(complex_(3, 2), 0, 5, "forward"),
    irfft(complex_(2, 3, 3), 1, 4),
    Case(Irfft(1, 4), (complex_(0, 3),), lambda x: np.zeros((0, 4)), label="empty"),
]
