"""Linear algebra at its edges: repeated values, singular matrices, errors of compiled programs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import lucid
from lucid import func, linalg
from lucid.compiler.plan.executable import LIVE, Segment
from lucid.errors import LinAlgError
from tests.compiled import compiled


def gradient(f, x):
    """The gradient of a scalar function, eagerly; it is the same when compiled and in reverse."""
    t = lucid.tensor(x, requires_grad=True)
    f(t).backward()
    np.testing.assert_allclose(compiled(func.grad(f))(lucid.tensor(x)), t.grad, atol=1e-10)
    return t.grad.numpy()


def rotated(rng, values):
    """A symmetric matrix with these eigenvalues, and its eigenvectors."""
    n = len(values)
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return q @ np.diag(values) @ q.T, q


# Repeated eigenvalues and singular values


@pytest.mark.parametrize("values", [[1.0, 1.0, 1.0], [2.0, 2.0, 5.0], [0.0, 3.0, 3.0, 3.0]])
def test_gradient_of_a_trace_function_at_repeated_eigenvalues(values, rng):
    """The gradient of tr f(A) is f'(A)."""
    a, q = rotated(rng, values)
    found = gradient(lambda x: lucid.exp(linalg.eigvalsh(x)).sum(), a)
    np.testing.assert_allclose(found, q @ np.diag(np.exp(values)) @ q.T, rtol=1e-12, atol=1e-12)


def test_a_tied_eigenvalue_shares_its_cotangent():
    found = gradient(lambda x: linalg.eigvalsh(x)[-1], np.diag([1.0, 4.0, 4.0]))
    np.testing.assert_allclose(found, np.diag([0.0, 0.5, 0.5]), atol=1e-15)


def test_jvp_of_eigenvalues_is_the_adjoint_at_ties(rng):
    a, _ = rotated(rng, [1.0, 1.0, 3.0])
    x, t = lucid.tensor(a), lucid.tensor(rng.standard_normal((3, 3)))
    u = lucid.tensor(rng.standard_normal(3))
    _, pushed = func.jvp(linalg.eigvalsh, (x,), (t,))
    pulled = func.vjp(linalg.eigvalsh, x)[1](u)[0]
    np.testing.assert_allclose((u * pushed).sum(), (pulled * t).sum(), rtol=1e-12)


def test_gradient_of_the_nuclear_norm_of_an_orthogonal_matrix(rng):
    q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    found = gradient(lambda x: linalg.matrix_norm(x, "nuc"), q)
    np.testing.assert_allclose(found, q, atol=1e-12)


def test_gradient_of_log_det_by_singular_values_at_repeated_ones(rng):
    a = 3 * np.linalg.qr(rng.standard_normal((3, 3)))[0]
    found = gradient(lambda x: lucid.log(linalg.svdvals(x)).sum(), a)
    np.testing.assert_allclose(found, np.linalg.inv(a).T, atol=1e-12)


def test_projector_on_another_space_has_its_gradient_beside_a_repeated_eigenvalue(rng):
    """P for the single eigenvalue 5: dP/dA in a direction has the resolvent's formula."""
    a, q = rotated(rng, [2.0, 2.0, 5.0])
    w = rng.standard_normal((3, 3))

    def loss(x):
        v = linalg.eigh(x).eigenvectors[:, 2:]
        return (v @ v.T * w).sum()

    found = gradient(loss, a)
    p, others = np.outer(q[:, 2], q[:, 2]), (np.eye(3) - np.outer(q[:, 2], q[:, 2])) / 3
    pulled = p @ w @ others + others @ w @ p
    np.testing.assert_allclose(found, (pulled + pulled.T) / 2, atol=1e-12)


def test_eigenvectors_of_a_repeated_eigenvalue_have_no_derivative(rng):
    weights = lucid.tensor(rng.standard_normal((3, 3)))

    def loss(x):
        return (linalg.eigh(x).eigenvectors * weights).sum()

    x = lucid.eye(3, dtype="float64").requires_grad_()
    with pytest.raises(LinAlgError, match="repeated eigenvalue have no derivative"):
        loss(x).backward()
    jitted = lucid.jit(func.grad(loss))
    distinct = lucid.tensor(np.diag([1.0, 2.0, 3.0]))
    for _ in range(3):
        jitted(distinct)
    with pytest.raises(LinAlgError, match="repeated eigenvalue have no derivative"):
        jitted(lucid.eye(3, dtype="float64"))
    with pytest.raises(LinAlgError, match=r"matrix \[1\] of the batch"):
        func.vmap(func.grad(loss))(lucid.stack([distinct, lucid.eye(3, dtype="float64")]))


def test_a_function_of_a_matrix_by_its_eigenvectors_is_refused_where_they_do_not_tell(rng):
    """f(A) = V f(w) Vᵀ has a derivative at equal eigenvalues, which w and V do not determine."""
    a, _ = rotated(rng, [2.0, 2.0, 5.0])
    w = lucid.tensor(rng.standard_normal((3, 3)))

    def root(x):
        values, vectors = linalg.eigh(x)
        return ((vectors * lucid.sqrt(values)) @ vectors.T * w).sum()

    with pytest.raises(LinAlgError, match="treats equal eigenvalues differently"):
        root(lucid.tensor(a, requires_grad=True)).backward()


def test_singular_vectors_of_a_zero_singular_value_have_no_derivative(rng):
    a = rng.standard_normal((4, 1)) @ rng.standard_normal((1, 3))
    w = lucid.tensor(rng.standard_normal((4, 3)))
    x = lucid.tensor(a, requires_grad=True)
    with pytest.raises(LinAlgError, match="svd: singular vectors"):
        (linalg.svd(x, full_matrices=False).U * w).sum().backward()


def test_eigenvectors_of_a_defective_matrix_have_no_derivative():
    x = lucid.tensor([[1.0, 1.0], [0.0, 1.0]], requires_grad=True, dtype="float64")
    with pytest.raises(LinAlgError):
        linalg.eig(x).eigenvectors.real.sum().backward()


def test_second_derivative_of_an_eigenvalue(rng):
    """Perturbation theory: d²λ₀ = 2 Σ (v₀ᵀ E vⱼ)² / (λ₀ - λⱼ)."""
    a, q = rotated(rng, [1.0, 2.0, 4.0])
    e = rng.standard_normal((3, 3))
    e = e + e.T
    x, direction = lucid.tensor(a), lucid.tensor(e)
    along = func.grad(func.grad(lambda t: linalg.eigvalsh(x + t * direction)[0]))
    m = q.T @ e @ q
    expected = 2 * sum(m[0, j] ** 2 / (1.0 - v) for j, v in ((1, 2.0), (2, 4.0)))
    np.testing.assert_allclose(along(lucid.tensor(0.0, dtype="float64")), expected, rtol=1e-9)


# Singular and indefinite matrices


@pytest.mark.parametrize(
    "a",
    [
        [[1.0, 2.0], [2.0, 4.0]],
        [[0.0, 1.0, 3.0], [0.0, 2.0, 5.0], [0.0, 1.0, 1.0]],
        [[1.0, 1.0, 0.0], [1.0, 1.0, 2.0], [0.0, 0.0, 3.0]],
        [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]],
        [[0.0, 0.0], [0.0, 0.0]],
        [[0.0]],
    ],
)
def test_gradient_of_det_is_the_matrix_of_cofactors_for_singular_matrices(a):
    a = np.array(a)
    n = len(a)
    minors = [
        [np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) * (-1) ** (i + j) for j in range(n)]
        for i in range(n)
    ]
    np.testing.assert_allclose(gradient(linalg.det, a), minors, atol=1e-12)


def test_slogdet_of_a_singular_matrix_is_zero_and_minus_infinity():
    sign, log = linalg.slogdet(lucid.zeros(2, 2))
    assert (sign.item(), log.item()) == (0.0, -np.inf)
    assert linalg.logdet(lucid.tensor([[0.0, 1.0], [1.0, 0.0]])).isnan().item()


def test_cholesky_names_the_matrix_and_the_minor():
    a = np.stack([np.eye(3), np.diag([1.0, -1.0, 1.0])])
    with pytest.raises(LinAlgError, match=r"matrix \[1\] of the batch .* minor of order 2"):
        linalg.cholesky(lucid.tensor(a))
    factor, info = linalg.cholesky_ex(lucid.tensor(a))
    assert info.tolist() == [0, 2]
    np.testing.assert_array_equal(factor[0], np.eye(3))


def test_errors_of_compiled_programs_are_those_of_eager_ones():
    good, bad = np.diag([1.0, 2.0]), np.diag([1.0, 0.0])
    for f, words in [
        (linalg.cholesky, "leading minor of order 2"),
        (linalg.inv, "singular: diagonal element 1 of U"),
        (lambda x: linalg.solve(x, lucid.ones(2, dtype="float64")), "singular"),
    ]:
        jitted = lucid.jit(f)
        for _ in range(3):
            jitted(lucid.tensor(good))
        with pytest.raises(LinAlgError, match=words) as caught:
            jitted(lucid.tensor(bad))
        assert isinstance(caught.value, np.linalg.LinAlgError)
        np.testing.assert_allclose(jitted(lucid.tensor(good)), f(lucid.tensor(good)))


def test_unchecked_functions_do_not_raise_when_compiled():
    singular = lucid.zeros(2, 3, 3)
    for f in (linalg.cholesky_ex, linalg.inv_ex, linalg.lu_factor_ex):
        jitted = lucid.jit(f)
        for _ in range(3):
            info = jitted(singular).info
        assert info.tolist() == [1, 1]


def test_pinv_has_its_derivative_at_deficient_rank(rng):
    """Along a path of constant rank, the derivative is the difference quotient."""
    u, v = rng.standard_normal((4, 2)), rng.standard_normal((2, 3))
    du = rng.standard_normal((4, 2))
    x, t = lucid.tensor(u @ v), lucid.tensor(du @ v)
    _, pushed = func.jvp(lambda a: linalg.pinv(a, rtol=1e-9), (x,), (t,))
    h = 1e-6
    after, before = (np.linalg.pinv((u + step * du) @ v, 1e-9) for step in (h, -h))
    np.testing.assert_allclose(pushed, (after - before) / (2 * h), rtol=1e-6, atol=1e-6)


# Results and compiled programs


def test_results_have_pytorchs_names():
    x = lucid.tensor([[2.0, 1.0], [1.0, 3.0]])
    assert linalg.qr(x)._fields == ("Q", "R")
    assert linalg.svd(x)._fields == ("U", "S", "Vh")
    assert linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.eig(x)._fields == ("eigenvalues", "eigenvectors")
    assert lucid.slogdet(x)._fields == ("sign", "logabsdet")
    assert linalg.lu(x)._fields == ("P", "L", "U")
    assert linalg.lu_factor(x)._fields == ("LU", "pivots")
    names = ("solution", "residuals", "rank", "singular_values")
    assert linalg.lstsq(x, x)._fields == names


def test_tensors_have_the_methods():
    x = lucid.tensor([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(x.det(), 5.0, rtol=1e-6)
    np.testing.assert_allclose(x.inverse() @ x, np.eye(2), atol=1e-6)
    np.testing.assert_allclose(x.logdet(), np.log(5.0), rtol=1e-6)
    np.testing.assert_allclose(x.slogdet().sign, 1.0)
    np.testing.assert_allclose(x.matrix_power(2), x @ x)
    np.testing.assert_allclose(x.matrix_exp(), scipy.linalg.expm(x.numpy()), rtol=1e-5)
    np.testing.assert_allclose(x.pinverse(), x.inverse(), rtol=1e-5)
    solved = lucid.ones(2, 1).cholesky_solve(x.cholesky())
    np.testing.assert_allclose(solved, np.linalg.solve(x.numpy(), np.ones((2, 1))), rtol=1e-5)


LOSSES = {
    "cholesky": lambda a: (linalg.cholesky(a) ** 3).sum(),
    "cholesky_solve": lambda a: linalg.cholesky_solve(a, linalg.cholesky(a)).sum(),
    "solve": lambda a: (linalg.solve(a, lucid.ones(4, 2)) ** 2).sum(),
    "inv": lambda a: (linalg.inv(a) ** 2).sum(),
    "det": lambda a: linalg.det(a).sum(),
    "slogdet": lambda a: linalg.slogdet(a).logabsdet.sum(),
    "lu": lambda a: (linalg.lu(a).L ** 2).sum(),
    "qr": lambda a: (linalg.qr(a).Q ** 3).sum(),
    "svd": lambda a: (linalg.svd(a, full_matrices=False).U ** 3).sum(),
    "svdvals": lambda a: (linalg.svdvals(a) ** 2).sum(),
    "eigh": lambda a: (linalg.eigh(a).eigenvectors ** 3).sum(),
    "eigvalsh": lambda a: (linalg.eigvalsh(a) ** 2).sum(),
    "eigvals": lambda a: linalg.eigvals(a).abs().sum(),
    "pinv": lambda a: (linalg.pinv(a) ** 2).sum(),
    "lstsq": lambda a: (linalg.lstsq(a, lucid.ones(4, 2)).solution ** 2).sum(),
    "matrix_norm": lambda a: linalg.matrix_norm(a, 2).sum(),
    "matrix_power": lambda a: linalg.matrix_power(a, -3).sum(),
    "matrix_exp": lambda a: linalg.matrix_exp(a / 10).sum(),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_a_jitted_gradient_is_one_native_program(name, dtype, rng):
    x = rng.standard_normal((3, 4, 4))
    if dtype == "complex128":
        x = x + 1j * rng.standard_normal(x.shape)
    a = x @ x.swapaxes(-1, -2).conj() + np.diag([1.0, 3.0, 6.0, 10.0])
    t = lucid.tensor(a.astype(dtype))
    loss = LOSSES[name]

    def real_loss(a):
        y = loss(a)
        return y.real if y.dtype.kind == "c" else y

    before = set(LIVE)
    step = lucid.jit(func.grad(real_loss))
    for _ in range(3):
        found = step(t)
    programs = set(LIVE) - before
    assert programs
    parts = [part for program in programs for part in program.parts]
    left = {part.op.name for part in parts if not isinstance(part, Segment)}
    assert not left, f"{left} run outside of plans"
    expected = func.grad(real_loss)(t).numpy()
    tolerance = 1e-3 if dtype == "float32" else 1e-9
    size = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * size)


def test_a_packed_factorisation_gives_back_its_matrix():
    A = lucid.tensor(np.random.default_rng(0).normal(size=(2, 5, 3)))
    packed, tau = lucid.geqrf(A)
    Q, R = lucid.linalg.householder_product(packed, tau), lucid.triu(packed[..., :3, :])
    np.testing.assert_allclose(Q @ R, A, rtol=1e-12, atol=1e-12)
    turned = lucid.ormqr(packed, tau, A, transpose=True)
    np.testing.assert_allclose(turned[..., :3, :], R, atol=1e-12)
    with pytest.raises(LinAlgError, match="not differentiable; use linalg.qr"):
        lucid.func.grad(lambda A: lucid.geqrf(A).a.sum())(A)
