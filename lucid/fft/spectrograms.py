"""The short-time Fourier transform of a signal, and its inverse."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from lucid import fft
from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ops.core.arguments import concrete_array, public_function
from lucid.ops.core.promote import as_tensor, promote
from lucid.ops.index.lookup import index_add
from lucid.ops.shape.arranging import unfold, view_as_real
from lucid.ops.shape.creation import ones, zeros
from lucid.ops.shape.joining import pad
from lucid.ops.shape.movement import pad_axis
from lucid.ops.shape.shaping import swapaxes
from lucid.tape.node import wrap

MIN_ENVELOPE = 1e-11


def frame_sizes(name: str, n_fft: Any, hop: Any, width: Any) -> tuple[int, int, int]:
    """Return the frame length, the hop between frames and the window length."""
    n = operator.index(n_fft)
    hop = n // 4 if hop is None else operator.index(hop)
    width = n if width is None else operator.index(width)
    if not (n > 0 and hop > 0 and 0 < width <= n):
        facts = f"n_fft={n}, hop_length={hop}, win_length={width}; all must be positive"
        raise ArgumentError(f"{name}: {facts} and win_length at most n_fft")
    return n, hop, width


def padded_window(name: str, window: Any, width: int, n: int, like: Any) -> Any:
    """Return the window (ones by default) zero-padded on both sides to the frame length."""
    dtype = np.zeros(0, like.dtype).real.dtype
    found = ones(width, dtype=dtype) if window is None else as_tensor(window)
    if found.shape != (width,):
        facts = f"window of shape {found.shape}; win_length={width} needs ({width},)"
        raise ShapeError(f"{name}: {facts}")
    before = (n - width) // 2
    return pad_axis(found, 0, before, n - width - before)


@public_function("lucid", "Tensor")
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

    center          frame t is centered at t · hop_length; the ends are padded by `pad_mode`
    onesided        only nonnegative frequencies; the default for real signals
    return_complex  False gives real and imaginary parts in a last axis; required for real signals

    >>> import lucid
    >>> lucid.stft(lucid.ones(8), 4, 4, center=False, return_complex=True).abs()
    Tensor([[4., 4.],
            [0., 0.],
            [0., 0.]])
    """
    x = as_tensor(input)
    if x.dtype.kind not in "fc" or x.ndim not in (1, 2):
        facts = f"signal of {x.type}; it must be floating or complex, with 1 axis or a batch axis"
        raise (DTypeError if x.ndim in (1, 2) else ShapeError)(f"stft: {facts}")
    n, hop, width = frame_sizes("stft", n_fft, hop_length, win_length)
    x, framed = promote(x, padded_window("stft", window, width, n, x))
    if return_complex is None and x.dtype.kind != "c":
        facts = "give return_complex for a real signal"
        raise ArgumentError(f"stft: {facts}; True returns complex numbers")
    whole = return_complex is None
    if onesided is None:
        onesided = x.dtype.kind != "c"
    if onesided and x.dtype.kind == "c":
        raise ArgumentError("stft: onesided=True needs a real signal and window")
    if center:
        x = pad(x, (n // 2, n // 2), pad_mode)
    if x.shape[-1] < n:
        facts = f"a frame of length {n} does not fit into a signal of length {x.shape[-1]}"
        raise ShapeError(f"stft: {facts}")
    transform = fft.rfft if onesided else fft.fft
    spectra = transform(unfold(x, -1, n, hop) * framed, norm="ortho" if normalized else None)
    y = swapaxes(spectra, -1, -2)
    return view_as_real(y) if not whole and not return_complex else y


@public_function("lucid", "Tensor")
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
    """The inverse of `stft` by least squares: overlap-added frames over the squared windows.

    A real signal uses only the nonnegative frequencies, even if all are given.

    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> lucid.istft(lucid.stft(x, 4, return_complex=True), 4).round(decimals=4)
    Tensor([1., 2., 3., 4., 5., 6.])
    """
    x = as_tensor(input)
    if x.dtype.kind != "c":
        facts = f"spectrum of dtype {x.dtype}; it must be complex (see view_as_complex)"
        raise DTypeError(f"istft: {facts}")
    n, hop, width = frame_sizes("istft", n_fft, hop_length, win_length)
    check_spectrum(x, n, onesided)
    half = (x.shape[-2] != n) if onesided is None else bool(onesided)
    framed = padded_window("istft", window, width, n, x)
    norm = "ortho" if normalized else None
    spectra = swapaxes(x, -1, -2)
    if half and return_complex:
        raise ArgumentError(
            "istft: a onesided spectrum gives a real signal; drop return_complex=True"
        )
    if return_complex:
        frames = fft.ifft(spectra, norm=norm)
    else:
        frames = fft.irfft(spectra[..., : n // 2 + 1], n, norm=norm)
    frames, framed = promote(frames, framed)
    y, envelope = (
        overlap_add(frames * framed, hop),
        overlap_add((framed * framed).expand(frames.shape), hop),
    )
    first, last = signal_bounds(y.shape[-1], n, bool(center), length)
    y, envelope = y[..., first:last], envelope[..., first:last]
    check_envelope(envelope)
    y = y / envelope
    missing = 0 if length is None else length - y.shape[-1]
    return pad_axis(y, y.ndim - 1, 0, missing) if missing > 0 else y


def check_spectrum(x: Any, n: int, onesided: bool | None) -> None:
    rows = {True: (n // 2 + 1,), False: (n,), None: (n // 2 + 1, n)}[onesided]
    if x.ndim not in (2, 3) or x.shape[-2] not in rows or not x.shape[-1]:
        wanted = " or ".join(map(str, rows))
        facts = f"spectrum of shape {x.shape}; n_fft={n} needs (..., {wanted}, frames)"
        raise ShapeError(f"istft: {facts}")


def signal_bounds(total: int, n: int, center: bool, length: int | None) -> tuple[int, int]:
    """Return the range of the overlap-added frames that is the signal."""
    first = n // 2 if center else 0
    if length is not None:
        return first, min(first + operator.index(length), total)
    return first, total - n // 2 if center else total


def overlap_add(frames: Any, hop: int) -> Any:
    """Overlap-add frames (..., t, n) that start `hop` apart to signals (..., length)."""
    *outer, t, n = frames.shape
    positions = (np.arange(t)[:, None] * hop + np.arange(n)).reshape(-1)
    empty = zeros(*outer, (t - 1) * hop + n, dtype=frames.dtype)
    return index_add(empty, -1, wrap(positions), frames.reshape(*outer, t * n))


def check_envelope(envelope: Any) -> None:
    known = concrete_array(envelope)
    if known is not None and known.size and np.abs(known).min() <= MIN_ENVELOPE:
        facts = "the squared windows sum to 0 somewhere, so the signal is undefined there"
        raise ArgumentError(f"istft: {facts}; use overlapping windows")
