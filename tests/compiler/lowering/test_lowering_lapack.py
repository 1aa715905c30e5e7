"""LAPACK in plans: large batches in chunks, broadcast operands, columns in blocks, failures."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import linalg
from lucid.compiler.runtime.lapack import caller_kernel, query_workspace
from lucid.errors import LinAlgError
from lucid.ops.linalg.decompositions.eig import Eig, Eigvals
from lucid.ops.linalg.decompositions.eigh_svd import Eigh, Eigvalsh, Svd, Svdvals
from lucid.ops.linalg.decompositions.factorizations import Cholesky, LuFactor, Permutation, Qr
from lucid.ops.linalg.decompositions.triangular import LuSolve, TriangularSolve
from lucid.ops.linalg.matrix_exp import RepeatedSquare
from tests.compiler.lowering.lowering_checks import compiled

BATCH = 3000  # enough to be split into chunks, each with work space of its own
OPS = [
    Cholesky(), LuFactor(), Qr(), Qr(True), Eigh(), Eigvalsh(), Svd(), Svd(True), Svdvals(), Eig(),
    Eigvals(),
]  # fmt: skip


def definite(rng, shape, dtype):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    n = shape[-1]
    return (x @ x.swapaxes(-1, -2).conj() + np.diag(np.arange(1, n + 1) * 3.0)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("op", OPS, ids=repr)
def test_large_batches_are_split_and_give_the_same_bits_with_any_threads(op, dtype, rng, threads):
    a = definite(rng, (BATCH, 5, 5), dtype)
    program = compiled(op, a)
    results = []
    for n in (1, 2, 4):
        threads(n)
        results.append(program([a]))
    want = op.eval(a)
    want = want if isinstance(want, tuple) else (want,)
    for found, again, third, expected in zip(*results, want, strict=True):
        np.testing.assert_array_equal(found, again)
        np.testing.assert_array_equal(found, third)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("shape", [(7, 3), (3, 7)])
@pytest.mark.parametrize("op", [Qr(), Qr(True), Svd(), Svd(True), LuFactor()], ids=repr)
def test_matrices_that_are_not_square(op, shape, rng):
    a = rng.standard_normal((4, *shape))
    for found, expected in zip(compiled(op, a)([a]), op.eval(a), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("columns", [1, 64, 128, 130, 192])
@pytest.mark.parametrize("adjoint", [False, True])
def test_many_columns_of_one_system_are_solved_in_blocks(columns, adjoint, rng, threads):
    a = definite(rng, (40, 40), "float64") + rng.standard_normal((40, 40))
    b = rng.standard_normal((40, columns))
    packed, pivots, _ = LuFactor().eval(a)
    threads(2)
    (found,) = compiled(LuSolve(adjoint), a, packed, pivots, b)([a, packed, pivots, b])
    np.testing.assert_allclose(found, np.linalg.solve(a.T if adjoint else a, b), rtol=1e-9)
    op = TriangularSolve(True, adjoint=adjoint)
    (found,) = compiled(op, a, b)([a, b])
    upper = np.triu(a)
    np.testing.assert_allclose(found, np.linalg.solve(upper.T if adjoint else upper, b), rtol=1e-9)


def test_operands_that_broadcast_or_lie_transposed(rng):
    a = definite(rng, (4, 4), "float64")
    b = rng.standard_normal((3, 2, 4, 5))
    half = rng.standard_normal((3, 1, 4, 4)) + 4 * np.eye(4)

    def run(a, b, half):
        one = linalg.solve_triangular(a, b, upper=True)
        two = linalg.solve_triangular(half, b, upper=False)
        three = linalg.solve(half.mT, b)
        return one, two, three, linalg.cholesky(a.mT), linalg.svdvals(b.mT)

    args = [lucid.tensor(x) for x in (a, b, half)]
    jitted = lucid.jit(run)
    for _ in range(3):
        results = jitted(*args)
    expected = [
        np.linalg.solve(np.triu(a), b),
        np.linalg.solve(np.tril(half), b),
        np.linalg.solve(half.swapaxes(-1, -2), b),
        np.linalg.cholesky(a),
        np.linalg.svd(b, compute_uv=False),
    ]
    for found, want in zip(results, expected, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12)


def test_permutations_of_many_pivots(rng):
    pivots = np.stack([rng.integers(i + 1, 10, 50) for i in range(6)], 1).astype("int32")
    op = Permutation(9)
    np.testing.assert_array_equal(compiled(op, pivots)([pivots])[0], op.eval(pivots))


def test_matrices_are_squared_as_often_as_each_asks(rng):
    a = rng.standard_normal((4, 3, 3)) / 3
    times = np.array([0, 5, 1, 3])
    (found,) = compiled(RepeatedSquare(), a, times)([a, times])
    want = [np.linalg.matrix_power(m, 2**k) for m, k in zip(a, times)]
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-8, 0.5, 30.0, 600.0])
def test_exponentials_of_small_and_large_matrices(scale, rng):
    """Rotations: exp of a skew matrix is orthogonal, whatever its norm."""
    x = rng.standard_normal((5, 4, 4))
    a = scale * (x - x.swapaxes(-1, -2))
    jitted = lucid.jit(linalg.matrix_exp)
    for _ in range(3):
        y = jitted(lucid.tensor(a)).numpy()
    np.testing.assert_allclose(y @ y.swapaxes(-1, -2) - np.eye(4), 0 * y, atol=1e-9)
    w, v = np.linalg.eig(a)
    expected = ((v * np.exp(w)[:, None, :]) @ np.linalg.inv(v)).real
    np.testing.assert_allclose(y, expected, atol=1e-9)


def test_nan_is_an_error_or_a_nan_and_never_a_number():
    bad = lucid.tensor(np.full((2, 3, 3), np.nan))
    for f in (linalg.svdvals, linalg.inv, linalg.det, linalg.matrix_exp, linalg.qr):
        jitted = lucid.jit(f)
        for _ in range(3):
            jitted(lucid.eye(3, dtype="float64").expand(2, 3, 3) * lucid.arange(1.0, 4.0))
        try:
            found = lucid.ir.pytree.flatten(jitted(bad))[0]
        except LinAlgError:
            continue
        assert np.isnan(found[-1]).any(), f.__name__


def test_a_routine_is_asked_for_its_work_space():
    assert query_workspace("dgelqf", "float64", (100, 80, 0, 100, 0)) >= 100
    assert caller_kernel(7) is caller_kernel(7)
