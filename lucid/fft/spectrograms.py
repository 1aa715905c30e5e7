"""Short-time Fourier transforms: the spectrum of a signal around every moment, and back again."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from lucid import fft
from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ir.source import at_line
from lucid.ops.core.arguments import explained, known_array
from lucid.ops.core.promote import as_tensor, promote
from lucid.ops.index.lookup import index_add
from lucid.ops.shape.arranging import unfold, view_as_real
from lucid.ops.shape.creation import ones, zeros
from lucid.ops.shape.joining import pad
from lucid.ops.shape.movement import pad_axis
from lucid.ops.shape.shaping import swapaxes
from lucid.tape.node import wrap

LEAST_ENVELOPE = 1e-11


def steps(name: str, n_fft: Any, hop: Any, width: Any) -> tuple[int, int, int]:
    """The length of a frame, the distance between frames, the length of the window."""
    n = operator.index(n_fft)
    hop = n // 4 if hop is None else operator.index(hop)
    width = n if width is None else operator.index(width)
    if not (n > 0 and hop > 0 and 0 < width <= n):
        facts = f"n_fft={n}, hop_length={hop}, win_length={width}; all are positive"
        raise ArgumentError(f"{name}: {facts} and win_length is at most n_fft{at_line()}")
    return n, hop, width


def window_of(name: str, window: Any, width: int, n: int, like: Any) -> Any:
    """The window (ones by default) with zeros around it up to the length of a frame."""
    dtype = np.zeros(0, like.dtype).real.dtype
    found = ones(width, dtype=dtype) if window is None else as_tensor(window)
    if found.shape != (width,):
        facts = f"a window of shape {found.shape}; win_length says ({width},)"
        raise ShapeError(f"{name}: {facts}{at_line()}")
    before = (n - width) // 2
    return pad_axis(found, 0, before, n - width - before)


@explained
def stft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Any:
    """The spectra of frames of a signal, `hop_length` apart: (..., frequency, frame).

    center          frame t has its middle at t · hop_length, with `pad_mode` beyond the ends
    onesided        only frequencies up to half; by default for real signals
    return_complex  False gives pairs of real and imaginary parts in a last axis; it is to be said
                    for real signals

    >>> import lucid
    >>> lucid.stft(lucid.ones(8), 4, 4, center=False, return_complex=True).abs()
    Tensor([[4., 4.],
            [0., 0.],
            [0., 0.]])
    """
    x = as_tensor(input)
    if x.dtype.kind not in "fc" or x.ndim not in (1, 2):
        facts = f"a signal of {x.type}; it is floating or complex, of 1 axis or a batch of them"
        raise (DTypeError if x.ndim in (1, 2) else ShapeError)(f"stft: {facts}{at_line()}")
    n, hop, width = steps("stft", n_fft, hop_length, win_length)
    x, framed = promote(x, window_of("stft", window, width, n, x))
    if return_complex is None and x.dtype.kind != "c":
        facts = "return_complex is to be given for real signals"
        raise ArgumentError(f"stft: {facts}; True gives complex numbers{at_line()}")
    whole = return_complex is None
    if onesided is None:
        onesided = x.dtype.kind != "c"
    if onesided and x.dtype.kind == "c":
        raise ArgumentError(f"stft: a complex signal or window is not onesided{at_line()}")
    if center:
        x = pad(x, (n // 2, n // 2), pad_mode)
    if x.shape[-1] < n:
        facts = f"frames of {n} do not fit into a signal of {x.shape[-1]}"
        raise ShapeError(f"stft: {facts}{at_line()}")
    transform = fft.rfft if onesided else fft.fft
    spectra = transform(unfold(x, -1, n, hop) * framed, norm="ortho" if normalized else None)
    y = swapaxes(spectra, -1, -2)
    return view_as_real(y) if not whole and not return_complex else y


@explained
def istft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Any:
    """The signal whose `stft` is nearest to this one: frames added up, over the squared windows.

    A real signal is made of the frequencies up to half alone, also where all are given.

    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> lucid.istft(lucid.stft(x, 4, return_complex=True), 4).round(decimals=4)
    Tensor([1., 2., 3., 4., 5., 6.])
    """
    x = as_tensor(input)
    if x.dtype.kind != "c":
        facts = f"a spectrum of dtype {x.dtype}; it is complex (view_as_complex makes it so)"
        raise DTypeError(f"istft: {facts}{at_line()}")
    n, hop, width = steps("istft", n_fft, hop_length, win_length)
    check_spectrum(x, n, onesided)
    half = (x.shape[-2] != n) if onesided is None else bool(onesided)
    framed = window_of("istft", window, width, n, x)
    norm = "ortho" if normalized else None
    spectra = swapaxes(x, -1, -2)
    if half and return_complex:
        raise ArgumentError(f"istft: a onesided spectrum has a real signal{at_line()}")
    if return_complex:
        frames = fft.ifft(spectra, norm=norm)
    else:
        frames = fft.irfft(spectra[..., : n // 2 + 1], n, norm=norm)
    frames, framed = promote(frames, framed)
    y, envelope = added(frames * framed, hop), added((framed * framed).expand(frames.shape), hop)
    first, last = ends(y.shape[-1], n, bool(center), length)
    y, envelope = y[..., first:last], envelope[..., first:last]
    check_envelope(envelope)
    y = y / envelope
    missing = 0 if length is None else length - y.shape[-1]
    return pad_axis(y, y.ndim - 1, 0, missing) if missing > 0 else y


def check_spectrum(x: Any, n: int, onesided: bool | None) -> None:
    rows = {True: (n // 2 + 1,), False: (n,), None: (n // 2 + 1, n)}[onesided]
    if x.ndim not in (2, 3) or x.shape[-2] not in rows or not x.shape[-1]:
        wanted = " or ".join(map(str, rows))
        facts = f"a spectrum of shape {x.shape}; for n_fft={n} it is (..., {wanted}, frames)"
        raise ShapeError(f"istft: {facts}{at_line()}")


def ends(total: int, n: int, center: bool, length: int | None) -> tuple[int, int]:
    """Which part of the frames added up is the signal."""
    first = n // 2 if center else 0
    if length is not None:
        return first, min(first + operator.index(length), total)
    return first, total - n // 2 if center else total


def added(frames: Any, hop: int) -> Any:
    """(..., t, n) -> (...,): frames that begin `hop` apart, added where they overlap."""
    *outer, t, n = frames.shape
    places = (np.arange(t)[:, None] * hop + np.arange(n)).reshape(-1)
    empty = zeros(*outer, (t - 1) * hop + n, dtype=frames.dtype)
    return index_add(empty, -1, wrap(places), frames.reshape(*outer, t * n))


def check_envelope(envelope: Any) -> None:
    known = known_array(envelope)
    if known is not None and known.size and np.abs(known).min() <= LEAST_ENVELOPE:
        facts = "the squared windows add up to 0 somewhere, so the signal is not known there"
        raise ArgumentError(f"istft: {facts}; let them overlap{at_line()}")
