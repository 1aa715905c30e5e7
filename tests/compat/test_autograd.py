"""lucid.compat.autograd: programs written for HIPS autograd."""

import lucid.compat.autograd.scipy.stats.norm as norm
import numpy as onp
import pytest

import lucid
import lucid.compat.autograd.numpy as np
from lucid.compat.autograd import (
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    value_and_grad,
)
from lucid.compat.autograd.extend import defjvp, defvjp, primitive
from lucid.compat.autograd.misc import flatten
from lucid.compat.autograd.scipy import linalg, special

X = onp.array([0.3, 0.7])


def cubes(x):
    return np.sum(x**3)


def test_numbers_are_float64_and_derivatives_nest():
    assert grad(np.tanh)(0.5) == pytest.approx(1 - onp.tanh(0.5) ** 2, abs=1e-15)
    assert grad(grad(grad(np.sin)))(0.3) == pytest.approx(-onp.cos(0.3), abs=1e-15)
    assert deriv(deriv(np.exp))(1.0) == pytest.approx(onp.e, abs=1e-14)
    with pytest.raises(TypeError, match="int"):
        grad(lambda x: x * 2.0)(3)
    with pytest.raises(TypeError, match="elementwise_grad"):
        grad(np.sin)(X)


def test_operators_take_argnum_and_return_arrays():
    f = lambda x, y: np.sum(x * x * y)  # noqa: E731
    onp.testing.assert_allclose(grad(f, 1)(X, X), X**2)
    both = grad(f, argnum=(0, 1))(X, X)
    assert type(both) is tuple and type(both[0]) is onp.ndarray
    onp.testing.assert_allclose(grad_named(f, "y")(X, X), X**2)
    value, slope = value_and_grad(cubes)(X)
    assert value == pytest.approx((X**3).sum()) and type(slope) is onp.ndarray
    onp.testing.assert_allclose(elementwise_grad(np.sin)(X), onp.cos(X))
    onp.testing.assert_allclose(jacobian(lambda x: np.outer(x, x)[0])(X), [[0.6, 0.0], [0.7, 0.3]])
    onp.testing.assert_allclose(hessian(cubes)(X), onp.diag(6 * X))
    onp.testing.assert_allclose(hessian_vector_product(cubes)(X, onp.ones(2)), 6 * X)
    slope, aux = grad_and_aux(lambda x: (cubes(x), x * 2.0))(X)
    onp.testing.assert_allclose(slope, 3 * X**2)
    onp.testing.assert_allclose(aux, 2 * X)


def test_products_with_jacobians():
    vjp, value = make_vjp(np.sin)(X)
    onp.testing.assert_allclose(vjp(onp.ones(2)), onp.cos(X))
    onp.testing.assert_allclose(value, onp.sin(X))
    value, tangent = make_jvp(np.sin)(X)(onp.ones(2))
    onp.testing.assert_allclose(tangent, onp.cos(X))
    product, _ = make_hvp(cubes)(X)
    onp.testing.assert_allclose(product(onp.ones(2)), 6 * X)
    onp.testing.assert_allclose(make_ggnvp(np.sin)(X)(onp.ones(2)), onp.cos(X) ** 2)


def test_containers_are_arguments():
    params = {"w": [X, 2.0], "b": 1.0}
    slope = grad(lambda p: np.sum(p["w"][0] * p["w"][1]) + p["b"] ** 2)(params)
    onp.testing.assert_allclose(slope["w"][0], [2.0, 2.0])
    assert slope["w"][1] == pytest.approx(1.0) and slope["b"] == 2.0
    vector, unflatten = flatten(params)
    onp.testing.assert_allclose(unflatten(vector)["w"][0], X)
    onp.testing.assert_allclose(grad(lambda v: unflatten(v)["b"] ** 2)(vector), [2.0, 0, 0, 0])


def test_complex_gradients_are_autograds():
    f = lambda z: z * z * (1 + 2j)  # noqa: E731
    z = 0.3 + 0.4j
    assert holomorphic_grad(f)(z) == pytest.approx(2 * z * (1 + 2j))
    assert grad(lambda z: np.real(z * 1j))(z) == pytest.approx(1j)


def test_arrays_and_joins_of_tensors():
    f = lambda x: np.sum(np.array([x[0], 2.0 * x[1]]) * np.r_[x, x][1:3])  # noqa: E731
    onp.testing.assert_allclose(grad(f)(X), [2 * X[1] + X[1], 3 * X[0]])
    g = lambda x: np.mean([x[0], x[1] ** 2]) + np.sum(np.full(3, x[0]))  # noqa: E731
    onp.testing.assert_allclose(grad(g)(X), [3.5, X[1]])


def test_a_primitive_has_the_rules_that_are_defined():
    @primitive
    def logsumexp(x):
        largest = onp.max(x)
        return largest + onp.log(onp.sum(onp.exp(x - largest)))

    assert type(logsumexp(X)) is onp.float64
    with pytest.raises(NotImplementedError, match="logsumexp"):
        grad(logsumexp)(X)
    defvjp(logsumexp, lambda ans, x: lambda g: g * np.exp(x - ans))
    weights = onp.exp(X) / onp.exp(X).sum()
    onp.testing.assert_allclose(grad(logsumexp)(X), weights)
    expected = onp.diag(weights) - onp.outer(weights, weights)
    onp.testing.assert_allclose(jacobian(grad(logsumexp))(X), expected)


def test_a_primitive_with_jvp_rules_alone():
    square = primitive(lambda x: onp.square(x))
    defjvp(square, lambda g, ans, x: 2.0 * x * g)
    onp.testing.assert_allclose(make_jvp(square)(X)(onp.ones(2))[1], 2 * X)


def test_distributions_and_special_functions():
    assert norm.logpdf(0.5) == pytest.approx(-0.5 * 0.25 - 0.5 * onp.log(2 * onp.pi))
    assert grad(norm.logpdf)(2.0) == pytest.approx(-2.0)
    assert grad(lambda s: norm.logpdf(1.0, 0.0, s))(2.0) == pytest.approx(-0.5 + 1 / 8)
    slope = grad(lambda x: special.logsumexp(x))(X)
    onp.testing.assert_allclose(slope, onp.exp(X) / onp.exp(X).sum())
    a = onp.array([[2.0, 0.0], [1.0, 3.0]])
    f = lambda b: np.sum(linalg.solve_triangular(a, b, lower=True))  # noqa: E731
    onp.testing.assert_allclose(grad(f)(X), onp.linalg.solve(a.T, onp.ones(2)))


def test_functions_of_lucid_take_part():
    assert grad(lambda x: lucid.jit(lucid.sin)(x) * 2.0)(0.3) == pytest.approx(2 * onp.cos(0.3))


def test_vectors_of_eigh_and_svd_have_the_same_signs_with_and_without_a_derivative():
    matrix = onp.random.RandomState(0).randn(4, 4)
    for function in (np.linalg.eigh, np.linalg.svd):
        plain = function(matrix)
        _, traced = make_vjp(lambda x, f=function: tuple(f(x)))(matrix)
        for a, b in zip(plain, traced):
            assert type(a) is type(b) is onp.ndarray
            onp.testing.assert_allclose(a, b, atol=1e-12)


def test_eigh_has_the_derivative_of_the_triangle_it_reads():
    matrix = onp.random.RandomState(0).randn(3, 3)
    f = lambda x: np.sum(np.linalg.eigh(x)[0] ** 3)  # noqa: E731
    numeric = onp.zeros((3, 3))
    for i in onp.ndindex(3, 3):
        step = onp.zeros((3, 3))
        step[i] = 1e-6
        numeric[i] = (f(matrix + step) - f(matrix - step)) / 2e-6
    onp.testing.assert_allclose(grad(f)(matrix), numeric, atol=1e-7)


def test_older_ways_to_give_rules():
    product = primitive(lambda x, y: x * y)
    product.defgrad(lambda ans, x, y: lambda g: g * y)
    product.defvjp_is_zero(argnums=(1,))
    assert grad(product)(2.0, 3.0) == 3.0 and grad(product, 1)(2.0, 3.0) == 0.0
