"""Functions of Hermitian matrices read one triangle; what the other one holds does not matter."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import linalg

DTYPES = ["float32", "float64", "complex64", "complex128"]


def unsymmetric(dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(3, 4, 4)) + (1j * rng.normal(size=(3, 4, 4)) if "c" in dtype else 0)
    return (a + 12 * np.eye(4)).astype(dtype)


def mirrored(a: np.ndarray, upper: bool) -> np.ndarray:
    part = np.triu(a, 1) if upper else np.tril(a, -1)
    diagonal = np.einsum("...ii->...i", a).real[..., None] * np.eye(a.shape[-1])
    return part + part.swapaxes(-1, -2).conj() + diagonal


def restored(w, v):
    return (v * w.unsqueeze(-2).to(v.dtype)) @ v.mH


FUNCTIONS = {
    "cholesky": (lambda x, upper: linalg.cholesky(x, upper=upper), np.linalg.cholesky),
    "cholesky_ex": (lambda x, upper: linalg.cholesky_ex(x, upper=upper).L, np.linalg.cholesky),
    "eigvalsh": (lambda x, upper: linalg.eigvalsh(x, "LU"[upper]), np.linalg.eigvalsh),
    "eigh": (lambda x, upper: restored(*linalg.eigh(x, "LU"[upper])), lambda a: a),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_triangle_is_read(name, upper, dtype):
    f, reference = FUNCTIONS[name]
    jitted = lucid.jit(lambda x: f(x, upper))
    for seed in range(3):
        a = unsymmetric(dtype, seed)
        expected = reference(mirrored(a, upper))
        if upper and name.startswith("cholesky"):
            expected = expected.swapaxes(-1, -2).conj()
        x = lucid.tensor(a)
        tolerance = 1e-4 if a.real.dtype == np.float32 else 1e-11
        for found in (f(x, upper), jitted(x), lucid.func.vmap(lambda x: f(x, upper))(x)):
            np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance, atol=tolerance)


def test_what_the_other_triangle_holds_does_not_matter():
    x = lucid.tensor([[4.0, np.nan], [2.0, 5.0]])
    np.testing.assert_array_equal(linalg.cholesky(x).numpy(), [[2, 0], [1, 2]])
    np.testing.assert_allclose(
        linalg.eigvalsh(x).numpy(), [4.5 - 4.25**0.5, 4.5 + 4.25**0.5], rtol=1e-6
    )


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_hermitian_and_those_of_the_matrix_that_was_read(name, upper):
    f, a = FUNCTIONS[name][0], unsymmetric("complex128", 5)[0]

    def loss(x):
        y = f(x, upper)
        return ((y.real if y.is_complex() else y) ** 3).sum()

    read = lucid.tensor(mirrored(a, upper))
    gradient = lucid.func.grad(loss)(lucid.tensor(a)).numpy()
    np.testing.assert_allclose(gradient, gradient.conj().T, atol=1e-10)
    np.testing.assert_allclose(gradient, lucid.func.grad(loss)(read).numpy(), rtol=1e-10)
    t = mirrored(unsymmetric("complex128", 6)[0], upper)
    h = 1e-5
    slope = (loss(read + h * t) - loss(read - h * t)).item() / (2 * h)
    np.testing.assert_allclose(np.vdot(gradient, t).real, slope, rtol=1e-6)


def test_numpys_functions_read_the_triangle_that_numpy_reads():
    a = unsymmetric("float64", 7)[0]
    x = lucid.tensor(a)
    np.testing.assert_allclose(np.linalg.eigvalsh(x), np.linalg.eigvalsh(a))
    np.testing.assert_allclose(np.linalg.cholesky(x), np.linalg.cholesky(a))
    s = np.linalg.svd(a, hermitian=True, compute_uv=False)
    np.testing.assert_allclose(np.linalg.svd(x, hermitian=True, compute_uv=False), s)
    expected = np.linalg.pinv(mirrored(a, False))
    np.testing.assert_allclose(linalg.pinv(x, hermitian=True).numpy(), expected, rtol=1e-9)
