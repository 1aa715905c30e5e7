"""L-BFGS: minima that are known, the steps of the two loops, the line search, and saving."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

import lucid
from lucid.optim import LBFGS
from lucid.optim.line_search import CURVATURE, DECREASE, strong_wolfe


def descend(optimizer, loss_of, steps=1):
    def closure():
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        return loss

    return [optimizer.step(closure).item() for _ in range(steps)]


def rosenbrock(w):
    return ((1 - w[:-1]) ** 2 + 100 * (w[1:] - w[:-1] ** 2) ** 2).sum()


def test_rosenbrock_is_solved_as_scipy_solves_it():
    start = np.array([-1.2, 1.0])
    w = lucid.tensor(start, requires_grad=True)
    optimizer = LBFGS([w], max_iter=200, line_search_fn="strong_wolfe", tolerance_change=1e-14)
    losses = descend(optimizer, lambda: rosenbrock(w), 3)
    assert losses[0] == pytest.approx(optimize.rosen(start)) and losses[-1] < 1e-15
    expected = optimize.minimize(optimize.rosen, start, jac=optimize.rosen_der, tol=1e-12).x
    np.testing.assert_allclose(w.detach().numpy(), expected, atol=1e-6)


def test_a_quadratic_in_n_dimensions_takes_n_exact_steps(rng):
    """With exact line searches L-BFGS is the method of conjugate gradients."""
    a = rng.normal(size=(5, 5))
    a, b = a @ a.T + np.eye(5), rng.normal(size=5)
    w = lucid.zeros(5, dtype="float64", requires_grad=True)
    matrix, right = lucid.tensor(a), lucid.tensor(b)
    optimizer = LBFGS([w], max_iter=60, line_search_fn="strong_wolfe", tolerance_change=1e-15)
    descend(optimizer, lambda: w @ (matrix @ w) / 2 - right @ w)
    np.testing.assert_allclose(w.detach().numpy(), np.linalg.solve(a, b), rtol=1e-5)


def test_steps_without_a_search_are_those_of_the_inverse_hessian_written_out(rng):
    """The two loops equal the matrix recursion H = (I - r s yᵀ) H (I - r y sᵀ) + r s sᵀ."""
    d = np.array([1.0, 2.0, 5.0])
    x = rng.normal(size=3)
    w, scale = lucid.tensor(x.copy(), requires_grad=True), lucid.tensor(d)
    optimizer = LBFGS([w], lr=0.5, max_iter=6, max_eval=100)
    descend(optimizer, lambda: (scale * w * w).sum() / 2)
    pairs, g = [], d * x
    step = -min(1.0, 1.0 / np.abs(g).sum()) * 0.5 * g
    for _ in range(5):
        x = x + step
        pairs.append((step, d * x - g))
        g = d * x
        s, y = pairs[-1]
        h = np.eye(3) * (s @ y) / (y @ y)
        for s, y in pairs:
            r = 1 / (s @ y)
            left = np.eye(3) - r * np.outer(s, y)
            h = left @ h @ left.T + r * np.outer(s, s)
        step = -0.5 * h @ g
    np.testing.assert_allclose(w.detach().numpy(), x + step, rtol=1e-9)


def test_several_parameters_are_one_vector_and_complex_ones_are_pairs():
    p = lucid.tensor([[3.0, 1.0]], dtype="float64", requires_grad=True)
    z = lucid.tensor([1.0 + 2.0j], dtype="complex128", requires_grad=True)
    unused = lucid.ones(2, dtype="float64", requires_grad=True)
    optimizer = LBFGS([p, z, unused], max_iter=60, line_search_fn="strong_wolfe",
                      tolerance_change=1e-14)  # fmt: skip
    descend(optimizer, lambda: ((p - 1) ** 4).sum() + ((z - 1j) * (z - 1j).conj()).real.sum())
    np.testing.assert_allclose(z.detach().numpy(), [1j], atol=1e-6)
    np.testing.assert_allclose(p.detach().numpy(), [[1.0, 1.0]], atol=0.02)
    assert unused.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("length", [1e-3, 0.1, 1.0, 30.0])
def test_line_search_meets_the_strong_wolfe_conditions(length):
    def at(t):
        return (t - 2.0) ** 4 + np.sin(t), np.array([4 * (t - 2.0) ** 3 + np.cos(t)])

    loss, gradient = at(0.0)
    slope = float(gradient[0])
    found = strong_wolfe(at, length, np.ones(1), loss, gradient, slope)
    assert found.loss <= loss + DECREASE * found.length * slope
    assert abs(found.slope) <= CURVATURE * abs(slope)


def test_training_goes_on_bitwise_from_a_saved_state(tmp_path):
    start = np.array([-1.2, 1.0])

    def fresh():
        w = lucid.tensor(start.copy(), requires_grad=True)
        return w, LBFGS([w], max_iter=3, history_size=4, line_search_fn="strong_wolfe")

    w, optimizer = fresh()
    descend(optimizer, lambda: rosenbrock(w), 3)
    lucid.save({"w": w, "optimizer": optimizer.state_dict()}, tmp_path / "s.safetensors")
    state = lucid.load(tmp_path / "s.safetensors")
    v, other = fresh()
    with lucid.no_grad():
        v.copy_(state["w"])
    other.load_state_dict(state["optimizer"])
    assert descend(optimizer, lambda: rosenbrock(w), 4) == descend(other, lambda: rosenbrock(v), 4)
    np.testing.assert_array_equal(v.detach().numpy(), w.detach().numpy())


def test_it_stops_at_once_where_the_gradient_is_zero():
    w = lucid.zeros(3, requires_grad=True)
    calls = []

    def loss_of():
        calls.append(1)
        return (w * w).sum()

    assert descend(LBFGS([w]), loss_of) == [0.0]
    assert len(calls) == 1 and w.tolist() == [0.0, 0.0, 0.0]


def test_a_step_inside_jit_is_refused_and_a_jitted_closure_is_not():
    w = lucid.ones(2, requires_grad=True)
    optimizer = LBFGS([w], line_search_fn="strong_wolfe")
    with pytest.raises(lucid.errors.ArgumentError, match="jit the closure"):
        lucid.jit(lambda: optimizer.step(lambda: (w * w).sum()))()

    @lucid.jit
    def closure():
        optimizer.zero_grad()
        loss = ((w - 3) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    np.testing.assert_allclose(w.detach().numpy(), [3.0, 3.0], rtol=1e-5)
