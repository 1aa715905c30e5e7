import os

import numpy as np
import pytest

from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime import blas, openblas

SIZES = [
    (1, 1, 1),
    (1, 1, 300),
    (1, 40, 30),
    (40, 1, 30),
    (3, 2, 5),
    (16, 16, 16),
    (7, 300, 40),
    (300, 7, 40),
    (33, 65, 1200),
    (130, 70, 90),
    (5, 3, 70_000),
    (200, 210, 220),
]


def matrices(rng, dtype, shapes):
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def gemm_plan(product, shape_a, shape_b, shape_c, into=False):
    builder = Builder()
    a = builder.input(product.dtype, shape_a)
    b = builder.input(product.dtype, shape_b)
    if into:
        c = builder.output(product.dtype, shape_c, into=builder.input(product.dtype, shape_c))
    else:
        c = builder.output(product.dtype, shape_c)
    blas.gemm(builder, product, a, b, c)
    return builder.build()


def check(result, wanted, k, dtype):
    size = np.sqrt(max(k, 1)) * 4
    np.testing.assert_allclose(result, wanted, rtol=0, atol=32 * np.finfo(dtype).eps * size)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("transpose", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_products_agree_with_numpy(sizes, transpose, dtype):
    m, n, k = sizes
    turned_a, turned_b = transpose
    shape_a, shape_b = (k, m) if turned_a else (m, k), (n, k) if turned_b else (k, n)
    a, b = matrices(np.random.default_rng(0), dtype, [shape_a, shape_b])
    product = blas.Product(np.dtype(dtype), m, n, k, transpose)
    (c,) = gemm_plan(product, shape_a, shape_b, (m, n))(a, b)
    a64, b64 = a.astype(float), b.astype(float)
    check(c, (a64.T if turned_a else a64) @ (b64.T if turned_b else b64), k, dtype)


@pytest.mark.parametrize("sizes", [(1, 8, 9), (8, 1, 9), (6, 7, 8), (70, 60, 300)], ids=str)
def test_alpha_and_beta(sizes):
    m, n, k = sizes
    a, b, c = matrices(np.random.default_rng(0), np.float64, [(m, k), (k, n), (m, n)])
    wanted = 2.5 * a @ b - 0.5 * c
    product = blas.Product(np.dtype(np.float64), m, n, k, scale=(2.5, -0.5))
    (result,) = gemm_plan(product, a.shape, b.shape, c.shape, into=True)(a, b, c)
    assert result is c
    np.testing.assert_allclose(c, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("m, n", [(3, 4), (1, 4), (3, 1)])
def test_an_empty_inner_dimension_gives_zeros(m, n):
    product = blas.Product(np.dtype(np.float32), m, n, 0)
    plan = gemm_plan(product, (m, 0), (0, n), (m, n))
    (c,) = plan(np.ones((m, 0), np.float32), np.ones((0, n), np.float32))
    np.testing.assert_array_equal(c, np.zeros((m, n)))


@pytest.mark.parametrize("sizes", [(4, 5, 6), (1, 5, 6), (4, 1, 6), (1, 1, 6)], ids=str)
def test_parts_of_larger_matrices(sizes):
    m, n, k = sizes
    a, b, c = matrices(np.random.default_rng(0), np.float64, [(m, 9), (k, 10), (m, 11)])
    wanted = c.copy()
    wanted[:, :n] = a[:, :k] @ b[:, :n]
    product = blas.Product(np.dtype(np.float64), m, n, k, leading=(9, 10, 11))
    gemm_plan(product, a.shape, b.shape, c.shape, into=True)(a, b, c)
    np.testing.assert_allclose(c, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sizes", [(4, 5, 6), (1, 5, 6), (4, 1, 6), (60, 61, 620)], ids=str)
@pytest.mark.parametrize("shared", [False, True])
def test_batches(sizes, shared):
    m, n, k = sizes
    a, b = matrices(np.random.default_rng(0), np.float64, [(7, m, k), (1 if shared else 7, k, n)])
    strides = (8 * m * k, 0 if shared else 8 * k * n, 8 * m * n)
    product = blas.Product(np.dtype(np.float64), m, n, k, batch=7, strides=strides)
    (c,) = gemm_plan(product, a.shape, b.shape, (7, m, n))(a, b)
    np.testing.assert_allclose(c, a @ b, rtol=1e-10, atol=1e-10)


@pytest.fixture(params=["ours", "OpenBLAS"])
def multiplier(request, monkeypatch):
    """What multiplies matrices."""
    if request.param == "OpenBLAS":
        monkeypatch.setattr(blas, "panel_columns", lambda code: 0)
    elif not blas.panel_columns("f4"):
        pytest.skip("this CPU has no vectors for our products")
    return request.param


@pytest.mark.parametrize("sizes", [(130, 140, 150), (1000, 1, 1000), (1, 1500, 700)], ids=str)
def test_products_are_bitwise_equal_for_any_number_of_threads(sizes, multiplier, threads):
    m, n, k = sizes
    a, b = matrices(np.random.default_rng(0), np.float32, [(m, k), (k, n)])
    product = blas.Product(np.dtype(np.float32), m, n, k)
    plan = gemm_plan(product, a.shape, b.shape, (m, n))
    results = set()
    for count in (1, 2, 4):
        threads(count)
        results |= {plan(a, b)[0].tobytes() for _ in range(5)}
    assert len(results) == 1


@pytest.mark.parametrize("transpose", [(False, False), (False, True), (True, False)])
def test_a_number_does_not_depend_on_other_rows_and_columns(transpose):
    if not blas.panel_columns("f4"):
        pytest.skip("OpenBLAS multiplies on this CPU")
    m, n, k = 300, 70, 1100
    turned_a, turned_b = transpose
    a, b = matrices(np.random.default_rng(0), np.float32, [(m, k), (k, n)])

    def product(rows, columns):
        x, y = a[rows], b[:, columns]
        size = (len(x), y.shape[1], k)
        x, y = (np.ascontiguousarray(v.T if t else v) for v, t in zip((x, y), transpose))
        job = blas.Product(np.dtype(np.float32), *size, (turned_a, turned_b))
        return gemm_plan(job, x.shape, y.shape, size[:2])(x, y)[0]

    whole = product(slice(None), slice(None))
    parts = [(slice(5), slice(None)), (slice(None), slice(3)), (slice(290, 299), slice(40, 60))]
    for rows, columns in parts:
        np.testing.assert_array_equal(product(rows, columns), whole[rows, columns])


def test_nan_and_inf_stay_in_their_rows_and_columns():
    a, b = matrices(np.random.default_rng(0), np.float32, [(50, 40), (40, 37)])
    a[3, 5], b[7, 36] = np.nan, np.inf
    (c,) = gemm_plan(blas.Product(np.dtype(np.float32), 50, 37, 40), a.shape, b.shape, (50, 37))(
        a, b
    )
    expected = a.astype(float) @ b.astype(float)
    np.testing.assert_array_equal(np.isnan(c), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(c), np.isinf(expected))


@pytest.mark.parametrize("code", ["f4", "f8"])
def test_tiles_cover_any_product(code, multiplier):
    for sizes in [(1, 10**6, 10), (10**6, 2, 3), (3, 5, 10**7), (2000, 2000, 2000), (0, 0, 0)]:
        tile = blas.tiling(code, *sizes)
        assert min(tile.piece, *tile[:2]) >= min(1, *sizes[:2])


def test_lapack_routines_are_instructions():
    n = 6
    x = np.random.default_rng(0).standard_normal((n, n))
    a = x @ x.T + n * np.eye(n)
    b = Builder()
    matrix = b.output(np.float64, (n, n), into=b.input(np.float64, (n, n)))
    info = b.output(np.int32, ())
    size = blas.scalar(b, n)
    blas.fortran(b, "dpotrf", [blas.character(b, "U"), size, matrix, size, info])
    plan = b.build()
    factor, status = plan(a.copy())
    assert status == 0
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(a), rtol=1e-12)
    assert plan(-a)[1] == 1


def test_lapack_routines_run_over_a_batch(threads):
    batch, n = 20, 5
    rng = np.random.default_rng(0)
    a, y = rng.standard_normal((batch, n, n)), rng.standard_normal((batch, n))
    b = Builder()
    matrix = b.output(np.float64, a.shape, into=b.input(np.float64, a.shape))
    right = b.output(np.float64, y.shape, into=b.input(np.float64, y.shape))
    info = b.output(np.int32, (batch,))
    size, one, pivots = blas.scalar(b, n), blas.scalar(b, 1), b.arena(0)
    args = [size, one, matrix, size, pivots, right, size, info]
    strides = [0, 0, 8 * n * n, 0, 4 * n, 8 * n, 0, 4]
    blas.fortran(b, "dgesv", args, strides, batch, cost=20_000)
    plan = b.build(arena_bytes=4 * n * batch)
    turned = np.ascontiguousarray(a.transpose(0, 2, 1))  # LAPACK reads columns
    threads(2)
    _, x, status = plan(turned, y.copy())
    np.testing.assert_array_equal(status, 0)
    np.testing.assert_allclose(x, np.linalg.solve(a, y[..., None])[..., 0], rtol=1e-9)


def test_scipy_capsules_serve_where_the_library_is_not_found(monkeypatch):
    monkeypatch.setattr(openblas, "library", lambda: None)
    openblas.address.cache_clear()
    try:
        product = blas.Product(np.dtype(np.float64), 3, 4, 5)
        plan = gemm_plan(product, (3, 5), (5, 4), (3, 4))
    finally:
        openblas.address.cache_clear()
    a, b = matrices(np.random.default_rng(0), np.float64, [(3, 5), (5, 4)])
    np.testing.assert_allclose(plan(a, b)[0], a @ b, rtol=1e-13)


def test_the_environment_is_left_as_it_was():
    before = dict(os.environ)
    with openblas._one_thread_in_environment():
        pass
    assert dict(os.environ) == before
