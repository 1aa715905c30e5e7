"""Rows of lucid.fft, against NumPy's or the sum that defines the transform."""

import numpy as np
import scipy.fft

from lucid.errors import ArgumentError, AxisError, DTypeError, ShapeError
from tests.cases.case import complex_, integer, real
from tests.table.row import Row, bad, call


def dft(x, n=None, dim=-1, norm=None, sign=-1):
    """The sum that defines a transform along one axis."""
    x = np.moveaxis(np.asarray(x, complex), dim, -1)
    n = n or x.shape[-1]
    x = np.concatenate([x, np.zeros((*x.shape[:-1], max(0, n - x.shape[-1])))], -1)[..., :n]
    scale = {"ortho": n**-0.5, "forward": 1 / n if sign < 0 else 1}.get(norm)
    if scale is None:
        scale = 1 if sign < 0 or norm == "forward" else 1 / n
    k = np.arange(n)
    y = x @ np.exp(sign * 2j * np.pi * np.outer(k, k) / n) * scale
    return np.moveaxis(y, -1, dim)


def one_axis(name, expected, kind):
    """Lengths of all kinds, cut and padded, axes, norms."""
    return Row(
        f"fft.{name}",
        expected,
        [
            call(kind(4)),
            call(kind(2, 5)),
            call(kind(2, 6), norm="ortho"),
            call(kind(2, 6), norm="forward"),
            call(kind(2, 6), norm="backward"),
            call(kind(5, 2), dim=0),
            call(kind(6), n=4),
            call(kind(3, 2, 2), 7, 0),
            call(kind(19)),
        ],
        refused=[
            bad(ShapeError, (name, "length 0"), kind(4), 0),
            bad(ArgumentError, ("norm", "'ortho'"), kind(4), norm="both"),
            bad(AxisError, "axis 2", kind(4, 4), dim=2),
            bad(AxisError, "0-d", kind()),
            bad(ArgumentError, "not an integer", kind(4), n=2.5),
            bad(ArgumentError, "not both", kind(4, 4), dim=0, axis=1),
        ],
    )


def several_axes(name, expected, kind):
    two = name.endswith("2")
    more = [] if two else [call(kind(2, 3, 4), s=(4, 3)), call(kind(3), label="one")]
    return Row(
        f"fft.{name}",
        expected,
        [
            call(kind(3, 4)),
            call(kind(2, 3, 4), dim=(0, 2)),
            call(kind(2, 4, 3), s=(3, 6), dim=(0, 1)),
            call(kind(3, 4), norm="ortho"),
            call(kind(3, 4), norm="forward"),
            *more,
        ],
        refused=[
            bad(AxisError, "twice", kind(3, 4), dim=(1, -1)),
            bad(ShapeError, "lengths for", kind(3, 4), s=(1, 2, 3)),
            bad(ShapeError, "length 0", kind(3, 4), s=(0, 2)),
            bad(ArgumentError, "norm", kind(3, 4), norm=1),
            bad(AxisError, "axis 5", kind(3, 4), dim=(0, 5)),
        ],
    )


def along(function):
    """A transform of NumPy, which says `axis`."""
    return lambda x, n=None, dim=-1, norm=None: function(x, n, dim, norm)


def through(function):
    """A transform of SciPy, which says `axes`."""
    return lambda x, s=None, dim=None, norm=None: function(x, s, dim, norm)


def in_two(function):
    return lambda x, s=None, dim=(-2, -1), norm=None: function(x, s, dim, norm=norm)


def refuses_complex(row):
    message = bad(DTypeError, ("complex128", "real"), complex_(3, 4))
    return Row(row.name, row.expected, row.calls, [*row.refused, message])


fft, np_fft = scipy.fft, np.fft
ROWS = [
    one_axis("fft", dft, complex_),
    one_axis("ifft", lambda *a, **k: dft(*a, sign=1, **k), complex_),
    refuses_complex(one_axis("rfft", along(np_fft.rfft), real)),
    one_axis("irfft", along(np_fft.irfft), complex_),
    one_axis("hfft", along(np_fft.hfft), complex_),
    refuses_complex(one_axis("ihfft", along(np_fft.ihfft), real)),
    several_axes("fftn", through(fft.fftn), complex_),
    several_axes("ifftn", through(fft.ifftn), complex_),
    refuses_complex(several_axes("rfftn", through(fft.rfftn), real)),
    several_axes("irfftn", through(fft.irfftn), complex_),
    several_axes("hfftn", through(fft.hfftn), complex_),
    refuses_complex(several_axes("ihfftn", through(fft.ihfftn), real)),
    several_axes("fft2", in_two(fft.fft2), complex_),
    several_axes("ifft2", in_two(fft.ifft2), complex_),
    refuses_complex(several_axes("rfft2", in_two(fft.rfft2), real)),
    several_axes("irfft2", in_two(fft.irfft2), complex_),
    several_axes("hfft2", in_two(fft.hfft2), complex_),
    refuses_complex(several_axes("ihfft2", in_two(fft.ihfft2), real)),
    *[
        Row(
            f"fft.{name}",
            lambda n, d=1.0, dtype=None, function=function: np.float32(function(n, d)),
            [call(1), call(6), call(8, 0.5), call(4, d=2.0)],
            refused=[
                bad(ShapeError, "length 0", 0),
                bad(ArgumentError, "not an integer", "ten"),
            ],
            smooth=False,
        )
        for name, function in (("fftfreq", np_fft.fftfreq), ("rfftfreq", np_fft.rfftfreq))
    ],
    *[
        Row(
            f"fft.{name}",
            lambda x, dim=None, function=function: function(x, dim),
            [
                call(real(5)),
                call(real(4, 3)),
                call(real(4, 3), dim=0),
                call(real(2, 3, 4), (0, 2)),
                call(complex_(3, 2), -1),
                call(integer(4)).but(smooth=False),
                call(real(0, 3)),
            ],
            refused=[
                bad(AxisError, "axis 1", real(3), 1),
                bad(AxisError, "twice", real(3, 3), (0, 0)),
            ],
        )
        for name, function in (("fftshift", np_fft.fftshift), ("ifftshift", np_fft.ifftshift))
    ],
]
