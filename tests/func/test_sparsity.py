"""Sparse Jacobians: the pattern covers the derivative, and colors give the same numbers."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import lucid
import lucid.func as F
from lucid.errors import ArgumentError, DTypeError, LucidError, SettingError, ShapeError
from lucid.func.sparse.sparsity import color_columns
from lucid.ops.linalg.contraction import Einsum
from lucid.tape.bind import bind
from tests.campaign.programs import make, new_scope

W = lucid.tensor(np.random.default_rng(3).normal(size=(6, 3)))
X = lucid.tensor(np.random.default_rng(0).normal(size=12))


def neighbors(x):
    left, right = lucid.pad(x[:-1], (1, 0)), lucid.pad(x[1:], (0, 1))
    return lucid.sin(left) * x + right**2 - 2 * x


FUNCTIONS = {  # name -> (function, entries of its pattern, or None where that is not the point)
    "elementwise": (lambda x: lucid.exp(x) * 2 + 1, 12),
    "neighbors": (neighbors, 34),
    "sum of rows": (lambda x: x.reshape(4, 3).sum(1), 12),
    "maximum of columns": (lambda x: x.reshape(4, 3).amax(0), 12),
    "softmax of rows": (lambda x: lucid.softmax(x.reshape(4, 3), 1), 36),
    "running sums of columns": (lambda x: lucid.cumsum(x.reshape(4, 3), 0), 48),
    "gather": (lambda x: x[lucid.tensor([3, 1, 1, 0])] * 2, 4),
    "scatter": (lambda x: lucid.zeros(5, dtype=x.dtype).index_add(
        0, lucid.tensor([0, 1, 1, 4]), x[:4]), 4),
    "join and shared element": (lambda x: lucid.cat([x[:2], x[5:7] * x[1]]), 6),
    "product with a matrix": (lambda x: x.reshape(4, 3) @ W.T, 72),
    "batched product": (lambda x: x.reshape(2, 2, 3) @ W[:3], 36),
    "product with a vector": (lambda x: x.reshape(4, 3) @ W[0], 12),
    "einsum": (lambda x: lucid.einsum("ij,kj->ki", x.reshape(4, 3), W), 72),
    "sorted": (lambda x: x.sort().values, 144),
    "detached": (lambda x: x * x.detach()[0], 12),
    "where": (lambda x: lucid.where(x > 0, x, 0 * x).roll(1), 12),
    "write": (lambda x: lucid.slice_scatter(x * 1.0, x[:3] ** 2, 0, 4, 7), None),
    "nothing": (lambda x: lucid.ones(3, dtype=x.dtype) + 0 * x.detach()[:3], 0),
    "jitted": (lucid.jit(neighbors), 34),
    "checkpointed": (F.checkpoint(neighbors), 34),
    "loop": (lambda x: F.fori_loop(0, 3, lambda i, y: lucid.sin(y), x), None),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sparse_is_dense(name):
    f, entries = FUNCTIONS[name]
    found = F.jacobian(f, sparsity="auto")(X)
    assert isinstance(found, sparse.csr_array)
    expected = np.asarray(F.jacobian(lambda x: f(x).reshape(-1))(X))
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-9, atol=1e-12)
    assert entries is None or found.nnz == entries


def test_several_arguments_and_outputs_stand_side_by_side():
    def f(x, y):
        return x * y, {"sum": x[:2] + y[:2]}

    found = F.jacobian(f, argnums=(0, 1), sparsity="auto")(X[:3], X[3:6]).toarray()
    x, y = np.asarray(X[:3]), np.asarray(X[3:6])
    top = np.hstack([np.diag(y), np.diag(x)])
    np.testing.assert_allclose(found, np.vstack([top, np.eye(6)[:2] + np.eye(6)[3:5]]))


def test_rows_are_colored_where_they_need_fewer_colors():
    found = F.jacobian(lambda x: (x * x).sum().reshape(1), sparsity="auto")(X)
    np.testing.assert_allclose(found.toarray(), 2 * np.asarray(X)[None])


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jitted"])
@pytest.mark.parametrize("name, mode", [("jacfwd", "jvp"), ("jacrev", "vjp")])
def test_jacfwd_and_jacrev_keep_their_mode(name, mode, compiled, monkeypatch):
    from lucid.func.sparse import sparse_jacobians

    modes, run = set(), sparse_jacobians.batched_derivative
    monkeypatch.setattr(
        sparse_jacobians, "batched_derivative", lambda m, *rest: modes.add(m) or run(m, *rest)
    )
    for f, columns in ((lambda x: (x * x).reshape(4, 3).sum(1), 3), (neighbors, 1)):
        found = getattr(F, name)(f, sparsity="auto")
        found = lucid.jit(found) if compiled else found
        for seed in range(3):
            x = lucid.tensor(np.random.default_rng(seed).normal(size=12))
            expected = np.asarray(F.jacobian(f)(x))
            assert expected.shape == (12 // columns, 12)
            np.testing.assert_allclose(found(x).toarray(), expected, rtol=1e-9, atol=1e-12)
    assert modes == {mode}
    with pytest.raises(DTypeError, match="leave out sparsity"):
        getattr(F, name)(neighbors, sparsity="auto", holomorphic=True)(X)


def test_columns_of_one_color_share_no_row():
    pattern = sparse.random(60, 50, 0.05, "csr", rng=np.random.default_rng(0))
    colors = color_columns(pattern)
    for color in range(colors.max() + 1):
        assert (pattern[:, colors == color] != 0).sum(1).max() <= 1


def test_a_pattern_of_ones_own():
    pattern = sparse.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(12, 12))
    found = F.jacobian(neighbors, sparsity=pattern)(X)
    np.testing.assert_allclose(found.toarray(), np.asarray(F.jacobian(neighbors)(X)))
    with pytest.raises(ShapeError, match=r"the pattern has shape \(3, 3\)"):
        F.jacobian(neighbors, sparsity=sparse.eye_array(3))(X)
    with pytest.raises(LucidError, match="'auto' or a SciPy"):
        F.jacobian(neighbors, sparsity="some")(X)


def test_sparse_hessian_of_a_chain():
    def energy(x):
        return ((x[1:] - x[:-1] ** 2) ** 2).sum() + (x**4).sum()

    found = F.hessian(energy, sparsity="auto")(X)
    assert found.nnz == 34
    np.testing.assert_allclose(found.toarray(), np.asarray(F.hessian(energy)(X)), rtol=1e-9)


def test_a_banded_jacobian_of_a_hundred_thousand_variables():
    n = 100_000
    x = lucid.tensor(np.linspace(0.0, 1.0, n))
    found = F.jacobian(neighbors, sparsity="auto")(x)
    assert found.nnz == 3 * n - 2
    diagonal = np.sin(np.r_[0.0, np.asarray(x)[:-1]]) - 2
    np.testing.assert_allclose(found.diagonal(), diagonal)


HESSIAN = """
import resource, numpy as np, lucid
x = lucid.tensor(np.linspace(-1.0, 1.0, 2000))
w = lucid.tensor(np.linspace(0.0, 3.0, 8))
def f(x):
    return (lucid.sin(x[:, None] * w).sum(1) ** 2).sum()
lucid.func.grad(f)(x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
h = lucid.func.hessian(f)(x)
print(h.shape, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def test_a_dense_hessian_stays_within_the_memory_bound(monkeypatch):
    """Its intermediate values are 2000 x 8 for each of 2000 rows: 256 MB at once for each."""
    bound = 16 << 20
    monkeypatch.setenv("LUCID_JACOBIAN_BYTES", str(bound))
    run = subprocess.run(
        [sys.executable, "-c", HESSIAN], capture_output=True, text=True, check=True
    )
    shape, used = run.stdout.strip().rsplit(" ", 1)
    result = 2000 * 2000 * 8
    assert shape == "(2000, 2000)"
    assert int(used) < 2 * bound + 3 * result


def test_the_pattern_follows_indices_that_change_between_calls():
    """The colors of the last structure are kept; indices from outside are part of it."""
    jacobian = F.jacobian(lambda x, i: x[i] * x[0], sparsity="auto")
    for places in ([1, 2, 3], [1, 2, 3], [5, 4, 0]):
        found = jacobian(X, lucid.tensor(places)).toarray()
        x, expected = np.asarray(X), np.zeros((3, 12))
        expected[range(3), places] = x[0]
        expected[:, 0] += x[places]
        np.testing.assert_allclose(found, expected)


def test_a_product_too_large_for_its_pattern_is_taken_for_dense(monkeypatch):
    """Of two operands only one was too large, and the other's pattern was taken for both."""
    monkeypatch.setattr("lucid.func.sparse.sparsity.MAX_ENTRIES", 10)
    op = Einsum("ij,jk->i")

    def f(x):
        return bind(op, x[:6].reshape(2, 3), x[6:].reshape(3, 2))

    found = F.jacobian(f, sparsity="auto")
    with pytest.raises(ShapeError, match="mixes all its elements, which gives 24 entries"):
        found(X)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"chunk_size": 0}, ArgumentError, "chunk_size=0 must be a positive integer"),
        ({"chunk_size": "all"}, ArgumentError, "chunk_size='all'"),
        ({"sparsity": True}, ArgumentError, "'auto' or a SciPy"),
        ({"sparsity": np.eye(3)}, ShapeError, r"shape \(3, 3\), the Jacobian \(12, 12\)"),
    ],
)
def test_options_that_make_no_sense_are_explained(options, error, words):
    with pytest.raises(error, match=words):
        F.jacobian(neighbors, **options)(X)


def test_an_output_of_booleans_has_no_sparse_jacobian_either():
    with pytest.raises(DTypeError, match="bool has no derivative"):
        F.jacobian(lambda x: x > 0, sparsity="auto")(X)


def test_a_bound_that_is_no_number_is_explained(monkeypatch):
    monkeypatch.setenv("LUCID_JACOBIAN_BYTES", "2 GB")
    with pytest.raises(SettingError, match="LUCID_JACOBIAN_BYTES='2 GB'"):
        F.jacrev(neighbors)(X)


@pytest.mark.parametrize("transform", [F.jacrev, F.jacfwd, F.hessian])
def test_a_jacobian_that_comes_again_is_compiled_and_stays_the_same(transform):
    f = neighbors if transform is not F.hessian else lambda x: neighbors(x).prod()
    whole = transform(f)
    first = np.asarray(whole(X))
    for _ in range(20):
        found = whole(X)
    np.testing.assert_allclose(np.asarray(found), first, rtol=1e-12, atol=1e-12)
    expected = transform(f, chunk_size=5)(2 * X)
    np.testing.assert_allclose(np.asarray(whole(2 * X)), np.asarray(expected), rtol=1e-9)


def vector_function(program):
    """A random program without its last sum."""
    scope = new_scope()
    exec(program.text().removesuffix(".sum()"), scope)
    return lambda *xs: scope["f"](*xs).reshape(-1)


def side_by_side(blocks, rows):
    columns = [math.prod(block.shape[1:]) for block in blocks]
    return np.concatenate([np.asarray(b).reshape(rows, n) for b, n in zip(blocks, columns)], 1)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_have_sparse_jacobians_that_are_dense_ones(seed):
    program = make(seed)
    f, xs = vector_function(program), [lucid.tensor(x) for x in program.arrays()]
    every = tuple(range(len(xs)))
    expected = F.jacobian(f, argnums=every)(*xs)
    found = F.jacobian(f, argnums=every, sparsity="auto")(*xs)
    dense = side_by_side(expected, found.shape[0])
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_have_sparse_hessians_that_are_dense_ones(seed):
    program = make(seed)
    f, xs = program.function(), [lucid.tensor(x) for x in program.arrays()]
    found = F.hessian(f, sparsity="auto")(*xs).toarray()
    expected = np.asarray(F.hessian(f)(*xs)).reshape(found.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_a_jitted_sparse_jacobian_is_the_same_matrix_for_other_values_and_sizes():
    f = lambda x: x[1:] * x[:-1] ** 2  # noqa: E731
    jitted = lucid.jit(F.jacobian(f, sparsity="auto"))
    for seed, n in enumerate([9, 9, 9, 12, 9, 12]):
        x = np.random.default_rng(seed).normal(size=n)
        expected = np.zeros((n - 1, n))
        i = np.arange(n - 1)
        expected[i, i], expected[i, i + 1] = 2 * x[1:] * x[:-1], x[:-1] ** 2
        found = jitted(x)
        np.testing.assert_allclose(found.toarray(), expected, rtol=1e-12)
        assert found.nnz == 2 * (n - 1)


def test_a_jitted_sparse_jacobian_of_few_rows_is_colored_by_rows():
    jitted = lucid.jit(F.jacobian(lambda x: (x * x).reshape(4, 3).sum(1), sparsity="auto"))
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=12)
        expected = np.kron(np.eye(4), np.ones(3)) * 2 * x
        np.testing.assert_allclose(jitted(x).toarray(), expected, rtol=1e-12)


def test_other_indices_are_another_pattern_under_jit():
    jitted = lucid.jit(F.jacobian(lambda x, i: x[i] * 2.0, sparsity="auto"))
    x = np.arange(5.0)
    for i in ([0, 2], [0, 2], [3, 1], [0, 2], [4, 4]):
        expected = 2.0 * (np.arange(5) == np.array(i)[:, None])
        np.testing.assert_array_equal(jitted(x, np.array(i)).toarray(), expected)


def test_a_jitted_sparse_hessian_with_an_auxiliary_result():
    h = lambda x: ((x[1:] - x[:-1] ** 2) ** 2).sum()  # noqa: E731
    jitted = lucid.jit(lambda x: {"hessian": F.hessian(h, sparsity="auto")(x), "value": h(x)})
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=6)
        found = jitted(x)
        np.testing.assert_allclose(found["hessian"].toarray(), F.hessian(h)(x), rtol=1e-12)
        np.testing.assert_allclose(found["value"], ((x[1:] - x[:-1] ** 2) ** 2).sum())


def test_a_sparse_jacobian_cannot_be_used_inside_a_jitted_function_or_differentiated():
    sparse_jacobian = F.jacobian(lambda x: x * x, sparsity="auto")
    with pytest.raises(LucidError, match="return it, and use it outside"):
        lucid.jit(lambda x: sparse_jacobian(x).toarray())(np.ones(3))
    with pytest.raises(LucidError, match="cannot be differentiated"):
        F.grad(lambda x: sparse_jacobian(x).data.sum())(lucid.ones(3))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jitted"])
def test_changing_a_matrix_in_place_does_not_change_the_next_one(compiled):
    f = F.jacobian(lambda x: x * x, sparsity="auto")
    f = lucid.jit(f) if compiled else f
    f(np.array([0.0, 1.0, 2.0])).eliminate_zeros()
    assert f(np.array([1.0, 1.0, 2.0])).diagonal().tolist() == [2.0, 2.0, 4.0]
