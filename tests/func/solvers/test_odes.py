"""odeint: SciPy's solutions, derivatives of both kinds, transforms, errors."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import lucid
from lucid.errors import ArgumentError, ShapeError
from lucid.func import grad, hessian, jacfwd, odeint, vmap

TIMES, START = np.linspace(0.0, 2.0, 5), np.array([1.0, 0.2])
GRAVITY, FRICTION = np.float64(2.0), np.float64(0.1)
TIGHT = {"rtol": 1e-9, "atol": 1e-11}


def pendulum(y, t, gravity, friction):
    slow = -gravity * lucid.sin(y[0]) - friction * y[1] + 0.1 * lucid.cos(t)
    return lucid.stack([y[1], slow])


def reference(times, start, gravity, friction):
    def f(t, y):
        return [y[1], -gravity * np.sin(y[0]) - friction * y[1] + 0.1 * np.cos(t)]

    span = times[0], times[-1]
    return solve_ivp(f, span, start, "DOP853", times, rtol=1e-12, atol=1e-13).y.T


def weighted(states):
    return (states * np.cos(np.arange(states.size)).reshape(states.shape)).sum()


def loss(derivative):
    def f(start, times, gravity, friction):
        ys = odeint(pendulum, start, times, gravity, friction, derivative=derivative, **TIGHT)
        return weighted(ys)

    return f


def test_solutions_are_scipys():
    ys = odeint(pendulum, START, TIMES, GRAVITY, FRICTION, **TIGHT)
    assert type(ys) is np.ndarray
    np.testing.assert_allclose(ys, reference(TIMES, START, 2.0, 0.1), atol=1e-8)
    tensor = odeint(pendulum, lucid.tensor(START), TIMES, GRAVITY, FRICTION)
    assert isinstance(tensor, lucid.Tensor)


def test_errors_follow_the_tolerances():
    exact = np.exp(-TIMES)
    errors = []
    for rtol in (1e-3, 1e-6, 1e-9):
        found = odeint(lambda y, t: -y, np.array(1.0), TIMES, rtol=rtol, atol=rtol / 1e3)
        errors.append(np.abs(found - exact).max())
    assert errors[0] < 1e-2 and errors[1] < 1e-5 and errors[2] < 1e-8
    assert errors[0] > 10 * errors[1] > 100 * errors[2]


def test_time_may_run_backward():
    found = odeint(lambda y, t: -y, np.array(1.0), np.array([1.0, 0.5, 0.0]), **TIGHT)
    np.testing.assert_allclose(found, np.exp([0.0, 0.5, 1.0]), rtol=1e-8)


def test_states_are_pytrees():
    def spin(state, t):
        return {"x": state["v"], "v": -state["x"]}

    found = odeint(spin, {"x": np.array(1.0), "v": np.zeros(())}, TIMES, **TIGHT)
    np.testing.assert_allclose(found["x"], np.cos(TIMES), atol=1e-8)


@pytest.mark.parametrize("derivative", ["direct", "adjoint"])
def test_gradients_in_start_times_and_arguments_agree_with_differences(derivative):
    point = [START, TIMES, GRAVITY, FRICTION]
    slopes = grad(loss(derivative), (0, 1, 2, 3))(*point)

    def value(start, times, *rates):
        return weighted(reference(times, start, *rates))

    def central(i, unit):
        above, below = list(point), list(point)
        above[i], below[i] = point[i] + 1e-5 * unit, point[i] - 1e-5 * unit
        return (value(*above) - value(*below)) / 2e-5

    for i, slope in enumerate(slopes):
        units = np.eye(np.size(point[i])).reshape(-1, *np.shape(point[i]))
        expected = np.array([central(i, unit) for unit in units]).reshape(np.shape(point[i]))
        np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("derivative", ["direct", "adjoint"])
def test_jit_and_vmap_of_gradients_equal_a_loop(derivative):
    def f(gravity):
        return loss(derivative)(START, TIMES[:3], gravity, FRICTION)

    values = np.array([1.0, 2.0, 3.0])
    one_by_one = [grad(f)(g) for g in values]
    np.testing.assert_allclose(vmap(grad(f))(values), one_by_one, rtol=1e-6)
    jitted = lucid.jit(grad(f))
    for g, expected in zip(values, one_by_one):
        np.testing.assert_allclose(jitted(np.array(g)), expected, rtol=1e-6)


def test_direct_derivatives_have_forward_mode_and_second_order():
    def end(k):
        return odeint(lambda y, t: -k * y, np.array(1.0), np.array([0.0, 1.0]), **TIGHT)[1]

    assert jacfwd(end)(np.float64(2.0)) == pytest.approx(-np.exp(-2.0), rel=1e-6)
    assert hessian(end)(np.float64(2.0)) == pytest.approx(np.exp(-2.0), rel=1e-5)


def test_too_few_steps_give_nan_and_bad_arguments_raise():
    found = odeint(lambda y, t: -y, np.array(1.0), TIMES, max_steps=1)
    assert np.isnan(found[-1])
    with pytest.raises(ArgumentError, match="'direct' or 'adjoint'"):
        odeint(lambda y, t: -y, np.array(1.0), TIMES, derivative="other")
    with pytest.raises(ShapeError, match="vector of times"):
        odeint(lambda y, t: -y, np.array(1.0), np.array(1.0))
