"""lucid.fft: discrete Fourier transforms, with the names and arguments of torch.fft.

    fft, ifft, rfft, irfft, hfft, ihfft             along one axis `dim`, of length `n`
    fft2, ..., ihfft2                               along two axes, of lengths `s`
    fftn, ..., ihfftn                               along any axes
    fftfreq, rfftfreq, fftshift, ifftshift

A longer length pads with zeros, a shorter one truncates. `norm` is "backward" (1 / n in the
inverse), "ortho" (1 / sqrt(n) in both directions) or "forward". float32 gives complex64.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, AxisError, DTypeError, ShapeError
from lucid.ops.core.arguments import (
    aliases,
    creation_function,
    public_function,
)
from lucid.ops.core.axes import canonicalize_axis, resolve_alias
from lucid.ops.core.promote import as_tensor, cast, complex_dtype, get_default_dtype, parse_dtype
from lucid.ops.elementwise.complexes import conj
from lucid.ops.linalg.fourier import ADJOINT_NORM, Fft, Irfft, Rfft
from lucid.ops.shape.joining import roll
from lucid.ops.shape.movement import Pad
from lucid.tape.bind import bind
from lucid.tape.node import wrap

LAST_TWO = (-2, -1)


# Arguments


def _as_real(name: str, x: Any) -> Any:
    x = as_tensor(x)
    if x.dtype.kind == "c":
        facts = f"operand of dtype {x.dtype}; it takes real numbers"
        raise DTypeError(f"{name}: {facts} (fft takes complex ones)")
    return x if x.dtype.kind == "f" else cast(x, get_default_dtype())


def _as_complex(x: Any) -> Any:
    x = as_tensor(x)
    if x.dtype.kind == "c":
        return x
    return cast(x, complex_dtype(x.dtype if x.dtype.kind == "f" else get_default_dtype()))


def _check_norm(name: str, norm: Any) -> str:
    if norm is None:
        return "backward"
    if not isinstance(norm, str) or norm not in ADJOINT_NORM:
        raise ArgumentError(f"{name}: norm {norm!r} is not 'backward', 'ortho' or 'forward'")
    return norm


def _check_length(name: str, n: Any) -> int:
    try:
        n = operator.index(n)
    except TypeError:
        raise ArgumentError(f"{name}: the length {n!r} is not an integer") from None
    if n < 1:
        raise ShapeError(f"{name}: length {n}; it must be at least 1")
    return n


def _axis(name: str, x: Any, dim: Any, axis: Any) -> int:
    dim = resolve_alias(name, ("dim", dim), ("axis", axis), -1)
    if x.ndim == 0:
        raise AxisError(f"{name}: a 0-d tensor has no axis to transform")
    return canonicalize_axis(name, dim, x.ndim)


def _axes(name: str, x: Any, s: Any, dim: Any, axis: Any) -> tuple[tuple[int, ...], list[Any]]:
    """Return the axes in the given order, and a length or None for each."""
    dim = resolve_alias(name, ("dim", dim), ("axes", axis))
    lengths = None if s is None else list(s) if isinstance(s, Sequence) else [s]
    if dim is None:
        count = x.ndim if lengths is None else len(lengths)
        if count > x.ndim:
            raise ShapeError(f"{name}: {count} lengths for {x.ndim} axes")
        dim = range(x.ndim - count, x.ndim)
    dims = dim if isinstance(dim, Sequence) else (dim,)
    axes = tuple(_axis(name, x, a, None) for a in dims)
    if len(set(axes)) != len(axes):
        raise AxisError(f"{name}: an axis appears twice in {tuple(dims)}")
    if lengths is None:
        lengths = [None] * len(axes)
    if len(lengths) != len(axes):
        raise ShapeError(f"{name}: {len(lengths)} lengths for {len(axes)} axes")
    return axes, [None if n is None or n == -1 else _check_length(name, n) for n in lengths]


def _resize(x: Any, axes: Sequence[int], lengths: Sequence[Any]) -> Any:
    """Truncate or zero-pad `x` to these lengths."""
    missing = [0] * x.ndim
    for a, n in zip(axes, lengths):
        if n is not None:
            missing[a] = n - x.shape[a]
    return bind(Pad((0,) * x.ndim, tuple(missing), (0,) * x.ndim), x) if any(missing) else x


def _check_nonempty(name: str, x: Any, axes: Sequence[int]) -> None:
    if any(x.shape[a] == 0 for a in axes):
        facts = f"an axis of length 0 in shape {x.shape}"
        raise ShapeError(f"{name}: {facts}; give a length of at least 1")


def _c2c(name: str, x: Any, axes: Any, lengths: Any, inverse: bool, norm: Any) -> Any:
    norm = _check_norm(name, norm)
    x = _resize(_as_complex(x), axes, lengths)
    _check_nonempty(name, x, axes)
    return bind(Fft(tuple(sorted(axes)), inverse, norm), x) if axes else x


def _r2c(name: str, x: Any, axis: int, n: Any, norm: Any) -> Any:
    norm = _check_norm(name, norm)
    x = _resize(_as_real(name, x), [axis], [n])
    _check_nonempty(name, x, [axis])
    return bind(Rfft(axis, norm), x)


def _c2r(name: str, x: Any, axis: int, n: Any, norm: Any) -> Any:
    norm = _check_norm(name, norm)
    x = _as_complex(x)
    n = 2 * (x.shape[axis] - 1) if n is None else n
    if n < 1:
        facts = f"axis {axis} of length {x.shape[axis]} gives a result of length {n}"
        raise ShapeError(f"{name}: {facts}; give the length of the result")
    return bind(Irfft(axis, n, norm), _resize(x, [axis], [n // 2 + 1]))


# One axis


@public_function("fft")
def fft(input: Any, n: Any = None, dim: Any = -1, norm: Any = None, *, axis: Any = None) -> Any:
    """The discrete Fourier transform along `dim`.

    >>> import lucid
    >>> lucid.fft.fft(lucid.tensor([1.0, 0.0, 0.0]))
    Tensor([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    x = as_tensor(input)
    a = _axis("fft", x, dim, axis)
    return _c2c("fft", x, [a], [None if n is None else _check_length("fft", n)], False, norm)


@public_function("fft")
def ifft(input: Any, n: Any = None, dim: Any = -1, norm: Any = None, *, axis: Any = None) -> Any:
    """The inverse of `fft` along `dim`."""
    x = as_tensor(input)
    a = _axis("ifft", x, dim, axis)
    return _c2c("ifft", x, [a], [None if n is None else _check_length("ifft", n)], True, norm)


@public_function("fft")
def rfft(input: Any, n: Any = None, dim: Any = -1, norm: Any = None, *, axis: Any = None) -> Any:
    """The transform of real numbers along `dim`, up to frequency n // 2.

    >>> import lucid
    >>> lucid.fft.rfft(lucid.ones(4))
    Tensor([4.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    x = as_tensor(input)
    a = _axis("rfft", x, dim, axis)
    return _r2c("rfft", x, a, None if n is None else _check_length("rfft", n), norm)


@public_function("fft")
def irfft(input: Any, n: Any = None, dim: Any = -1, norm: Any = None, *, axis: Any = None) -> Any:
    """The inverse of `rfft` along `dim`: `n` real numbers; the default n is even."""
    x = as_tensor(input)
    a = _axis("irfft", x, dim, axis)
    return _c2r("irfft", x, a, None if n is None else _check_length("irfft", n), norm)


@public_function("fft")
def hfft(input: Any, n: Any = None, dim: Any = -1, norm: Any = None, *, axis: Any = None) -> Any:
    """The real transform along `dim` of a Hermitian signal of length `n`, given by its half."""
    x = as_tensor(input)
    a = _axis("hfft", x, dim, axis)
    n = None if n is None else _check_length("hfft", n)
    return _c2r("hfft", conj(x), a, n, ADJOINT_NORM[_check_norm("hfft", norm)])


@public_function("fft")
def ihfft(input: Any, n: Any = None, dim: Any = -1, norm: Any = None, *, axis: Any = None) -> Any:
    """The inverse of `hfft` along `dim`."""
    x = as_tensor(input)
    a = _axis("ihfft", x, dim, axis)
    n = None if n is None else _check_length("ihfft", n)
    return conj(_r2c("ihfft", x, a, n, ADJOINT_NORM[_check_norm("ihfft", norm)]))


# Several axes


@public_function("fft")
def fftn(input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, axes: Any = None) -> Any:
    """The discrete Fourier transform along the axes `dim`, all by default."""
    x = as_tensor(input)
    return _c2c("fftn", x, *_axes("fftn", x, s, dim, axes), False, norm)


@public_function("fft")
def ifftn(input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, axes: Any = None) -> Any:
    """The inverse of `fftn`."""
    x = as_tensor(input)
    return _c2c("ifftn", x, *_axes("ifftn", x, s, dim, axes), True, norm)


@public_function("fft")
def rfftn(input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, axes: Any = None) -> Any:
    """The transform of real numbers along the axes `dim`; only half of the last axis is kept."""
    x = as_tensor(input)
    dims, lengths = _nonempty_axes("rfftn", x, s, dim, axes)
    y = _r2c("rfftn", _resize(x, dims, lengths), dims[-1], None, norm)
    return _c2c("rfftn", y, dims[:-1], [None] * len(dims), False, norm)


@public_function("fft")
def irfftn(
    input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, axes: Any = None
) -> Any:
    """The inverse of `rfftn`: real numbers; the default length of the last axis is even."""
    x = as_tensor(input)
    dims, lengths = _nonempty_axes("irfftn", x, s, dim, axes)
    y = _c2c("irfftn", x, dims[:-1], lengths[:-1], True, norm)
    return _c2r("irfftn", y, dims[-1], lengths[-1], norm)


@public_function("fft")
def hfftn(input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, axes: Any = None) -> Any:
    """The real transform along the axes `dim` of a Hermitian signal, half of which is given."""
    x = as_tensor(input)
    dims, lengths = _nonempty_axes("hfftn", x, s, dim, axes)
    y = _c2c("hfftn", x, dims[:-1], lengths[:-1], False, norm)
    return _c2r("hfftn", conj(y), dims[-1], lengths[-1], ADJOINT_NORM[_check_norm("hfftn", norm)])


@public_function("fft")
def ihfftn(
    input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, axes: Any = None
) -> Any:
    """The inverse of `hfftn`."""
    x = as_tensor(input)
    dims, lengths = _nonempty_axes("ihfftn", x, s, dim, axes)
    x = _resize(x, dims, lengths)
    y = conj(_r2c("ihfftn", x, dims[-1], None, ADJOINT_NORM[_check_norm("ihfftn", norm)]))
    return _c2c("ihfftn", y, dims[:-1], [None] * len(dims), True, norm)


def _nonempty_axes(name: str, x: Any, s: Any, dim: Any, axes: Any) -> tuple[list[int], list[Any]]:
    """Return the axes, at least one, and lengths of a transform that treats the last apart."""
    dims, lengths = _axes(name, x, s, dim, axes)
    if not dims:
        raise AxisError(f"{name}: no axis to transform; give at least one")
    return list(dims), lengths


@public_function("fft")
@aliases(dim="axes")
def fft2(input: Any, s: Any = None, dim: Any = LAST_TWO, norm: Any = None) -> Any:
    """The discrete Fourier transform along two axes, by default the last two."""
    return fftn(input, s, dim, norm)


@public_function("fft")
@aliases(dim="axes")
def ifft2(input: Any, s: Any = None, dim: Any = LAST_TWO, norm: Any = None) -> Any:
    """The inverse of `fft2`."""
    return ifftn(input, s, dim, norm)


@public_function("fft")
@aliases(dim="axes")
def rfft2(input: Any, s: Any = None, dim: Any = LAST_TWO, norm: Any = None) -> Any:
    """The transform of real numbers along two axes; only half of the last axis is kept."""
    return rfftn(input, s, dim, norm)


@public_function("fft")
@aliases(dim="axes")
def irfft2(input: Any, s: Any = None, dim: Any = LAST_TWO, norm: Any = None) -> Any:
    """The inverse of `rfft2`."""
    return irfftn(input, s, dim, norm)


@public_function("fft")
@aliases(dim="axes")
def hfft2(input: Any, s: Any = None, dim: Any = LAST_TWO, norm: Any = None) -> Any:
    """The real transform along two axes of a Hermitian signal, half of which is given."""
    return hfftn(input, s, dim, norm)


@public_function("fft")
@aliases(dim="axes")
def ihfft2(input: Any, s: Any = None, dim: Any = LAST_TWO, norm: Any = None) -> Any:
    """The inverse of `hfft2`."""
    return ihfftn(input, s, dim, norm)


# Frequencies


@creation_function("fft")
def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None) -> Any:
    """The sample frequencies of `fft`, for sample spacing `d`.

    >>> import lucid
    >>> lucid.fft.fftfreq(4)
    Tensor([ 0.  ,  0.25, -0.5 , -0.25])
    """
    return _frequencies(np.fft.fftfreq(_check_length("fftfreq", n), d), dtype)


@creation_function("fft")
def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None) -> Any:
    """The sample frequencies of `rfft`, for sample spacing `d`."""
    return _frequencies(np.fft.rfftfreq(_check_length("rfftfreq", n), d), dtype)


def _frequencies(values: np.ndarray, dtype: Any) -> Any:
    return wrap(values.astype(get_default_dtype() if dtype is None else parse_dtype(dtype)))


@public_function("fft")
def fftshift(input: Any, dim: Any = None, *, axes: Any = None) -> Any:
    """`input` with frequency 0 moved from the front to the middle of the axes `dim` (default all).

    >>> import lucid
    >>> lucid.fft.fftshift(lucid.fft.fftfreq(4))
    Tensor([-0.5 , -0.25,  0.  ,  0.25])
    """
    return _roll_half("fftshift", input, dim, axes, 0)


@public_function("fft")
def ifftshift(input: Any, dim: Any = None, *, axes: Any = None) -> Any:
    """The inverse of `fftshift`."""
    return _roll_half("ifftshift", input, dim, axes, 1)


def _roll_half(name: str, x: Any, dim: Any, axes: Any, more: int) -> Any:
    x = as_tensor(x)
    if x.ndim == 0:
        return x
    dims, _ = _axes(name, x, None, dim, axes)
    return roll(x, [(x.shape[a] + more) // 2 for a in dims], list(dims))
