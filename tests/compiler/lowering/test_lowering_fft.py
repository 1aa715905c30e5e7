"""Compiled Fourier transforms: every kind of length, layout and direction, and their errors."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import lucid
from lucid.compiler.compile import compile_graph
from lucid.compiler.lowering.fft.stockham import convolution_length, radices, roots_of_unity
from lucid.compiler.lowering.lower import GraphLowering
from lucid.compiler.passes.pipeline import stages
from lucid.ir.graph import Equation
from tests.compiler import agreement

LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 24, 34, 64, 77, 97]
LONG = [1000, 1021, 1024, 2310, 4096]


def exact(x: np.ndarray, sign: int) -> np.ndarray:
    """The sum that defines a transform along the last axis, in extended precision."""
    n = x.shape[-1]
    k = np.arange(n)
    angles = np.longdouble(2) * np.pi * (np.outer(k, k) % n).astype(np.longdouble) / n
    return x.astype(np.clongdouble) @ np.exp(sign * 1j * angles)


def compiled(function, x: np.ndarray) -> np.ndarray:
    graph = lucid.ir.trace(function)(lucid.tensor(x)).stripped()
    return compile_graph(graph)([x])[0]


def numbers(rng, shape, dtype):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def error(got: np.ndarray, want: np.ndarray) -> float:
    """The largest difference, in roundings of the root of the mean square."""
    size = np.sqrt(np.mean(np.abs(want) ** 2))
    return float(np.abs(got - want).max() / size / np.finfo(got.dtype).eps)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", LENGTHS + LONG[:3])
def test_the_error_grows_with_the_logarithm_of_the_length(n, dtype, rng):
    x = numbers(rng, (3, n), dtype)
    bound = 2 + 2 * np.log2(n)
    assert error(compiled(lucid.fft.fft, x), exact(x, -1)) <= bound
    assert error(compiled(lucid.fft.ifft, x), exact(x, 1) / n) <= bound
    y = compiled(lucid.fft.rfft, x.real.copy())
    assert error(y, exact(x.real, -1)[:, : n // 2 + 1]) <= bound
    back = compiled(lambda z: lucid.fft.irfft(z, n), y)
    assert back.dtype == x.real.dtype
    assert error(back, x.real) <= bound


@pytest.mark.parametrize("n", LONG)
def test_long_transforms_agree_with_numpy(n, rng):
    x = numbers(rng, (2, n), "complex128")
    assert error(compiled(lucid.fft.fft, x), np.fft.fft(x)) <= 4 * np.log2(n)


@pytest.mark.parametrize(
    "shape", [(4, 8), (8, 9), (12, 17), (3, 5, 16), (17, 9), (64, 70), (16, 1)]
)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_axes_in_any_place(shape, dtype, rng):
    x = numbers(rng, shape, dtype)
    for axes in ((0,), (0, 1), tuple(range(len(shape))), (len(shape) - 1,)):
        got = compiled(lambda z: lucid.fft.fftn(z, dim=axes), x)  # noqa: B023
        assert error(got, np.fft.fftn(x, axes=axes)) <= 4 * np.log2(x.size), axes
        back = compiled(lambda z: lucid.fft.ifftn(z, dim=axes), got)  # noqa: B023
        assert error(back, x) <= 4 * np.log2(x.size), axes


def test_views_are_read_where_they_lie(rng):
    x = numbers(rng, (6, 10, 4), "complex64")
    for view in (lambda z: z.transpose(0, 2), lambda z: z[::2, 1:9], lambda z: z.flip(1)):
        want = np.asarray(lucid.fft.fft(view(lucid.tensor(x)), dim=1))
        got = compiled(lambda z: lucid.fft.fft(view(z), dim=1), x)  # noqa: B023
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)


def test_many_rows_are_split_among_threads_with_the_same_bits(rng):
    x = numbers(rng, (300, 96), "complex64")
    before = lucid.get_num_threads()
    results = []
    for threads in (1, 2, 4):
        lucid.set_num_threads(threads)
        results.append(compiled(lucid.fft.fft2, x))
    lucid.set_num_threads(before)
    np.testing.assert_allclose(results[0], np.fft.fft2(x), rtol=0, atol=2e-3)
    assert all(np.array_equal(results[0], other) for other in results[1:])


def test_nothing_of_a_transform_or_a_special_function_is_left_to_python():
    families = agreement.families()
    for family in ("fourier", "special"):
        for job in agreement.jobs(families[family], "float32"):
            lowering = GraphLowering(stages(job.graph)["copies_inserted"])
            lowering.lay_out()
            left = [part.op.name for part in lowering.parts if isinstance(part, Equation)]
            assert not left, f"{job.label}: {left}"


def test_roots_of_unity_are_exact_to_the_last_bit():
    for n in (1, 3, 8, 12, 100, 307):
        for k, root in enumerate(roots_of_unity(np.arange(2 * n), n)):
            with mpmath.workdps(30):
                turn = mpmath.mpf(2 * k) / n
                assert abs(mpmath.cospi(turn) - root.real) <= 2.0**-53
                assert abs(mpmath.sinpi(turn) + root.imag) <= 2.0**-53


def test_factors_multiply_to_the_length_and_convolutions_are_long_enough():
    for n in range(1, 3000):
        found = radices(n)
        assert found is None or np.prod(found or [1]) == n
        m = convolution_length(n)
        assert m >= 2 * n - 1 and radices(m) is not None
