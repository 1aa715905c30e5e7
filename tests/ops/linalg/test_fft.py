"""lucid.fft beyond the table: no rows, dtypes, NumPy's functions, gradients of real programs."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import AxisError, DTypeError, ShapeError

fft = lucid.fft


@pytest.mark.parametrize("name", ["fft", "ifft", "irfft", "hfft"])
def test_no_rows_give_no_rows(name):
    out = getattr(fft, name)(lucid.zeros(0, 4, dtype="complex64"))
    assert out.shape == (0, 6 if name in ("irfft", "hfft") else 4)
    assert fft.rfft(lucid.zeros(0, 4)).shape == (0, 3)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("float16", "complex64"), ("float32", "complex64"), ("float64", "complex128"),
        ("int64", "complex64"), ("bool", "complex64"), ("complex64", "complex64"),
        ("complex128", "complex128"),
    ],
)  # fmt: skip
def test_single_precision_stays_single(given, found):
    x = lucid.ones(4, dtype=given)
    assert fft.fft(x).dtype == found
    if not given.startswith("complex"):
        assert fft.rfft(x).dtype == found
    real = {"complex64": "float32", "complex128": "float64"}[found]
    assert fft.irfft(x).dtype == real


def test_an_axis_without_numbers_is_refused():
    with pytest.raises(ShapeError, match="length 0"):
        fft.fft(lucid.zeros(3, 0))
    with pytest.raises(ShapeError, match="give the length of the result"):
        fft.irfft(lucid.zeros(1))
    with pytest.raises(AxisError, match="at least one"):
        fft.rfftn(lucid.ones(3), dim=())
    with pytest.raises(DTypeError, match="fft takes complex"):
        fft.rfft(lucid.ones(3, dtype="complex64"))


def test_lengths_of_minus_one_are_those_of_the_axis(rng):
    x = rng.standard_normal((3, 4))
    got = fft.fftn(lucid.tensor(x), s=(-1, 6))
    np.testing.assert_allclose(np.asarray(got), np.fft.fftn(x, s=(3, 6), axes=(0, 1)), atol=1e-12)


def test_a_convolution_by_transforms_has_the_gradient_of_the_convolution(rng):
    x, w = rng.standard_normal(7), rng.standard_normal(3)

    def loss(x, w):
        y = fft.irfft(fft.rfft(x, 9) * fft.rfft(w, 9), 9)
        return (y * y).sum()

    y = np.convolve(x, w)
    wanted = 2 * np.correlate(y, w, "valid"), 2 * np.correlate(y, x, "valid")
    both = lucid.func.grad(loss, argnums=(0, 1))
    for program in (both, lucid.jit(both)):
        for _ in range(2):
            found = program(lucid.tensor(x), lucid.tensor(w))
            for got, want in zip(found, wanted):
                np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)


def test_the_gradient_of_the_energy_is_that_of_parseval(rng):
    x = rng.standard_normal(8)
    slope = lucid.func.grad(lambda x: fft.fft(x, norm="ortho").abs().square().sum())
    np.testing.assert_allclose(np.asarray(slope(lucid.tensor(x))), 2 * x, rtol=1e-12)


def test_a_transform_maps_over_examples_like_one_more_axis(rng):
    x = lucid.tensor(rng.standard_normal((5, 4, 6)))
    mapped = lucid.func.vmap(lambda x: fft.rfft2(x))(x)
    np.testing.assert_allclose(np.asarray(mapped), np.fft.rfft2(np.asarray(x)), atol=1e-12)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "ihfft", "fft2", "ifftn", "rfftn"])
def test_numpy_functions_of_a_tensor_give_a_tensor(name, rng):
    x = rng.standard_normal((4, 6))
    got = getattr(np.fft, name)(lucid.tensor(x))
    assert isinstance(got, lucid.Tensor)
    np.testing.assert_allclose(np.asarray(got), getattr(np.fft, name)(x), atol=1e-12)


def test_numpy_functions_take_numpys_arguments(rng):
    x = rng.standard_normal((4, 6))
    t = lucid.tensor(x)
    pairs = [
        (np.fft.fft(t, 8, 0, "ortho"), np.fft.fft(x, 8, 0, "ortho")),
        (np.fft.irfft(t, axis=0, n=5), np.fft.irfft(x, axis=0, n=5)),
        (np.fft.fftn(t, s=(3, 3), axes=(0, 1)), np.fft.fftn(x, s=(3, 3), axes=(0, 1))),
        (np.fft.rfft2(t, norm="forward"), np.fft.rfft2(x, norm="forward")),
        (np.fft.fftshift(t, axes=1), np.fft.fftshift(x, axes=1)),
        (np.fft.ifftshift(t), np.fft.ifftshift(x)),
    ]
    for got, want in pairs:
        assert isinstance(got, lucid.Tensor)
        np.testing.assert_allclose(np.asarray(got), want, atol=1e-12)
