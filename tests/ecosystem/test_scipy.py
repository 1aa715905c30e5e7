"""SciPy's optimizers, integrators and linear operators, with derivatives from lucid.func."""

import numpy as np
import pytest
from scipy import integrate, optimize
from scipy.sparse import linalg as sparse_linalg

import lucid
from lucid.func import grad, hessian, hvp, jacfwd, jacrev, value_and_grad

DERIVATIVES = {
    "CG": 1, "BFGS": 1, "L-BFGS-B": 1, "TNC": 1, "SLSQP": 1, "Newton-CG": 2, "trust-constr": 2,
    "trust-ncg": 2, "trust-exact": 2, "trust-krylov": 2,
}  # fmt: skip
START = np.array([1.3, 0.7, 0.8, 1.9, 1.2])
TIMES = np.linspace(0.0, 1.0, 20)
DATA = 3.0 * np.exp(-2.0 * TIMES)


def rosenbrock(x):
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def residuals(p):
    return p[1] * np.exp(-p[0] * TIMES) - DATA


def system(x):
    return lucid.stack([x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1.0, 0.5 * (x[1] - x[0]) ** 3 + x[1]])


def oscillator(t, y):
    return lucid.stack([y[1], -y[0]])


@pytest.mark.parametrize("method", DERIVATIVES)
@pytest.mark.parametrize("jit", [lambda f: f, lucid.jit], ids=["eager", "jit"])
def test_minimize_takes_gradients_and_hessians(method, jit):
    options = {"hess": jit(hessian(rosenbrock))} if DERIVATIVES[method] == 2 else {}
    result = optimize.minimize(
        jit(rosenbrock), START, method=method, jac=jit(grad(rosenbrock)), **options
    )
    assert type(result.x) is np.ndarray and result.success
    np.testing.assert_allclose(result.x, 1.0, atol=1e-3)


def test_minimize_takes_the_value_with_its_gradient_and_hessian_products():
    result = optimize.minimize(
        value_and_grad(rosenbrock),
        START,
        jac=True,
        hessp=lambda x, v: hvp(rosenbrock, x, v),
        method="trust-ncg",
    )
    assert type(result.x) is np.ndarray
    np.testing.assert_allclose(result.x, 1.0, atol=1e-3)


def test_minimize_with_constraints_and_further_arguments():
    circle = {"type": "ineq", "fun": lambda x: 2.0 - (x * x).sum()}
    circle["jac"] = grad(circle["fun"])
    weights = lucid.tensor([1.0, 2.0], dtype="float64")

    def linear(x, w):
        return (x * w).sum()

    result = optimize.minimize(
        linear, np.zeros(2) + 0.1, args=(weights,), jac=grad(linear), constraints=[circle]
    )
    np.testing.assert_allclose(result.x, -np.sqrt(2 / 5) * np.array([1.0, 2.0]), atol=1e-6)


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
@pytest.mark.parametrize("jit", [lambda f: f, lucid.jit], ids=["eager", "jit"])
def test_least_squares_takes_jacobians(method, jit):
    result = optimize.least_squares(
        jit(residuals), np.ones(2), jac=jit(jacfwd(residuals)), method=method
    )
    assert type(result.x) is np.ndarray
    np.testing.assert_allclose(result.x, [2.0, 3.0], atol=1e-6)


@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_root_takes_jacobians(method):
    result = optimize.root(system, np.zeros(2), jac=jacrev(system), method=method)
    assert type(result.x) is np.ndarray and result.success
    np.testing.assert_allclose(result.x, [0.8411639, 0.1588361], atol=1e-6)


def test_newton_takes_derivatives_of_numbers():
    def f(x):
        return np.cos(x) - x

    found = optimize.newton(f, np.float64(1.0), fprime=grad(f), fprime2=grad(grad(f)))
    assert found == pytest.approx(0.7390851332151607, abs=1e-12)
    found = optimize.root_scalar(
        value_and_grad(f), x0=np.float64(1.0), fprime=True, method="newton"
    )
    assert found.root == pytest.approx(0.7390851332151607, abs=1e-12)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau", "BDF", "LSODA"])
def test_solve_ivp_takes_systems_and_jacobians(method):
    stiff = {"jac": jacfwd(oscillator, 1)} if method in ("Radau", "BDF", "LSODA") else {}
    found = integrate.solve_ivp(
        lucid.jit(oscillator), (0.0, 1.0), np.array([1.0, 0.0]), method=method, rtol=1e-8, **stiff
    )
    assert type(found.y) is np.ndarray
    np.testing.assert_allclose(found.y[:, -1], [np.cos(1.0), -np.sin(1.0)], atol=1e-5)


def test_quad_integrates_gradients():
    slope = grad(lambda x: np.sin(x) * x)
    assert integrate.quad(lambda x: slope(np.float64(x)), 0.0, 1.0)[0] == pytest.approx(np.sin(1.0))


def test_linear_operators_are_products_of_derivatives():
    x = np.array([1.0, 2.0, 3.0])
    cubes = lambda x: (x**3).sum()  # noqa: E731
    product = lambda v: hvp(cubes, x, v)  # noqa: E731
    operator = sparse_linalg.LinearOperator((3, 3), matvec=product, dtype=np.float64)
    solution, status = sparse_linalg.cg(operator, np.ones(3), rtol=1e-12)
    assert status == 0 and type(solution) is np.ndarray
    np.testing.assert_allclose(solution, 1.0 / (6.0 * x))
    values = sparse_linalg.eigsh(operator, k=1, return_eigenvectors=False)
    np.testing.assert_allclose(values, [18.0])
