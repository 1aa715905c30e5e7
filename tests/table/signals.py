"""Rows of short-time Fourier transforms, frame by frame."""

from __future__ import annotations

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from tests.cases.case import complex_, integer, real
from tests.table.row import Row, bad, call


def whole_window(n_fft, win_length, window):
    width = n_fft if win_length is None else win_length
    window = np.ones(width) if window is None else window
    out = np.zeros(n_fft, window.dtype)
    out[(n_fft - width) // 2 :][:width] = window
    return out


def spectra(
    x,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
):
    hop = n_fft // 4 if hop_length is None else hop_length
    window = whole_window(n_fft, win_length, window)
    if center:
        half = n_fft // 2
        widths = [(0, 0)] * (x.ndim - 1) + [(half, half)]
        x = np.pad(x, widths, {"replicate": "edge", "circular": "wrap"}.get(pad_mode, pad_mode))
    starts = range(0, x.shape[-1] - n_fft + 1, hop)
    frames = np.stack([x[..., a : a + n_fft] * window for a in starts], -2)
    y = np.fft.fft(frames, norm="ortho" if normalized else None).swapaxes(-1, -2)
    if onesided or (onesided is None and frames.dtype.kind != "c"):
        y = y[..., : n_fft // 2 + 1, :]
    return y if return_complex else np.stack([y.real, y.imag], -1)


def signal(
    x,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=None,
    length=None,
    return_complex=False,
):
    hop = n_fft // 4 if hop_length is None else hop_length
    window = whole_window(n_fft, win_length, window)
    norm = "ortho" if normalized else None
    turned = x.swapaxes(-1, -2)
    if return_complex:
        frames = np.fft.ifft(turned, norm=norm)
    else:
        frames = np.fft.irfft(turned[..., : n_fft // 2 + 1], n_fft, norm=norm)
    total = (x.shape[-1] - 1) * hop + n_fft
    y = np.zeros((*x.shape[:-2], total), frames.dtype)
    weight = np.zeros(total)
    for t in range(x.shape[-1]):
        y[..., t * hop : t * hop + n_fft] += frames[..., t, :] * window
        weight[t * hop : t * hop + n_fft] += window**2
    first = n_fft // 2 if center else 0
    last = total - first if length is None else min(first + length, total)
    y = y[..., first:last] / weight[first:last]
    missing = 0 if length is None else max(length - y.shape[-1], 0)
    return np.pad(y, [(0, 0)] * (y.ndim - 1) + [(0, missing)])


def window(n):
    return real(n, low=0.5, high=1.5)


PAIRS = {"return_complex": True}

ROWS = [
    Row(
        "stft",
        spectra,
        [
            call(real(20), 8, **PAIRS),
            call(real(2, 20), 8, 3, 6, window(6), **PAIRS),
            call(real(15), 6, 2, window=window(6), center=False, normalized=True, **PAIRS),
            call(real(12), 5, 2, pad_mode="constant", onesided=False, **PAIRS),
            call(real(12), 4, 3, pad_mode="replicate", return_complex=False),
            call(complex_(12), 4, 2, center=False, return_complex=True),
            call(complex_(12), 4, 2, center=False, return_complex=False),
            call(complex_(12), 4, 2).but(
                expected=lambda x, *sizes: spectra(x, *sizes, return_complex=True)
            ),
        ],
        refused=[
            bad(ShapeError, "1 axis", real(2, 3, 4), 2),
            bad(DTypeError, "i64[9]", integer(9), 4),
            bad(ArgumentError, "hop_length=0", real(9), 4, 0),
            bad(ArgumentError, "win_length=5", real(9), 4, 1, 5),
            bad(ShapeError, "window of shape (3,)", real(9), 4, window=real(3)),
            bad(ShapeError, "does not fit", real(3), 4, center=False, **PAIRS),
            bad(ArgumentError, "onesided", complex_(9), 4, onesided=True),
            bad(ArgumentError, "return_complex", real(9), 4),
        ],
    ),
    Row(
        "istft",
        signal,
        [
            call(complex_(5, 4), 8),
            call(complex_(2, 5, 4), 8, 3, 6, window(6)),
            call(complex_(4, 6), 6, 2, window=window(6), center=False, normalized=True),
            call(complex_(5, 3), 5, 2, onesided=False, return_complex=True),
            call(complex_(5, 3), 5, 2, onesided=False),
            call(complex_(2, 8, 4), 8),
            call(complex_(3, 4), 4, 2, length=5),
            call(complex_(3, 4), 4, 2, length=12),
        ],
        refused=[
            bad(DTypeError, "complex", real(5, 4), 8),
            bad(ShapeError, "n_fft=8", complex_(4, 4), 8),
            bad(ArgumentError, "real signal", complex_(5, 4), 8, return_complex=True),
            bad(ArgumentError, "sum to 0", complex_(5, 4), 8, 8, 2),
        ],
    ),
]
