"""Cumulative sums, products and extrema as users call them."""

import math

import numpy as np
import pytest

from lucid import Tensor, func, tensor
from lucid.errors import AxisError, DTypeError
from lucid.ir import bind
from lucid.ops.reduce.cumulative import (
    Recurrence,
    cummax,
    cummin,
    cumprod,
    cumsum,
    logcumsumexp,
)
from lucid.ops.reduce.reduction import sum

INF, NAN = math.inf, math.nan


def f64(x):
    return Tensor(np.asarray(x, "float64"))


def jacobian(f, x):
    return func.jacrev(f)(f64(x)).numpy(), func.jacfwd(f)(f64(x)).numpy()


def jacobian_of_cumprod(x):
    n = len(x)
    return [
        [math.prod(x[k] for k in range(i + 1) if k != j) if j <= i else 0.0 for j in range(n)]
        for i in range(n)
    ]


def test_cumsum_runs_along_either_spelling_of_the_axis():
    x = np.arange(6.0).reshape(2, 3)
    assert cumsum(f64(x), dim=1).tolist() == cumsum(f64(x), axis=-1).tolist()
    np.testing.assert_array_equal(cumsum(f64(x), 0).numpy(), np.cumsum(x, 0))


@pytest.mark.parametrize("f", [cumsum, cumprod, cummax, cummin, logcumsumexp])
def test_an_axis_must_be_named_and_exist(f):
    with pytest.raises(TypeError, match="give dim"):
        f(f64([1.0]))
    with pytest.raises(AxisError, match=r"axis 1 is out of range.*test_cumulative.py"):
        f(f64([1.0]), dim=1)


def test_a_number_is_a_row_of_one():
    x = f64(3.0)
    for f in (cumsum, cumprod, logcumsumexp):
        assert f(x, 0).shape == () and f(x, 0).item() == 3.0
    values, indices = cummax(x, dim=-1)
    assert values.shape == indices.shape == () and indices.item() == 0


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32"])
def test_sums_and_products_of_integers_are_int64(dtype):
    x = Tensor(np.ones(300, dtype))
    assert cumsum(x, 0).dtype == cumprod(x, 0).dtype == np.int64
    assert cumsum(x, 0).numpy()[-1] == 300


def test_dtype_can_be_named():
    assert cumsum(tensor([1, 2]), 0, dtype="float32").dtype == np.float32


@pytest.mark.parametrize(
    "x", [[2.0, 3.0, 4.0], [2.0, 0.0, 4.0], [0.0, 3.0, 0.0, 5.0], [0.0, 0.0], [7.0]]
)
def test_jacobian_of_cumprod_is_right_at_zeros(x):
    for found in jacobian(lambda x: cumprod(x, 0), x):
        np.testing.assert_array_equal(found, jacobian_of_cumprod(x))


def test_second_derivative_of_cumprod_is_right_at_zeros():
    x = [0.0, 3.0, 0.0, 2.0]
    expected = np.zeros((4, 4))
    for i in range(4):
        for j in range(4):
            if i != j:
                last = max(i, j)
                expected[i, j] = np.sum(
                    [
                        math.prod(x[k] for k in range(n + 1) if k not in (i, j))
                        for n in range(last, 4)
                    ]
                )
    found = func.hessian(lambda x: sum(cumprod(x, 0)))(f64(x)).numpy()
    np.testing.assert_array_equal(found, expected)


def test_overflow_of_cumprod_is_inf_without_a_warning():
    assert cumprod(Tensor(np.full(2, 1e30, "float32")), 0).numpy()[-1] == INF


def test_an_element_that_nothing_depends_on_spoils_no_gradient():
    _, pull = func.vjp(lambda x: cumprod(x, 0), f64([2.0, INF]))
    (grad,) = pull(f64([1.0, 0.0]))
    assert grad.tolist() == [1.0, 0.0]


def test_running_extrema_of_ties_have_the_last_index():
    values, indices = cummax(f64([1.0, 3.0, 2.0, 3.0]), 0)
    assert values.tolist() == [1.0, 3.0, 3.0, 3.0] and indices.tolist() == [0, 1, 1, 3]
    assert cummin(f64([3.0, 1.0, 2.0, 1.0]), 0).indices.tolist() == [0, 1, 1, 3]


def test_running_extrema_are_nan_from_the_first_nan():
    for f in (cummax, cummin):
        values, indices = f(f64([1.0, NAN, 5.0, NAN, 0.0]), 0)
        np.testing.assert_array_equal(values.numpy(), [1.0, NAN, NAN, NAN, NAN])
        assert indices.tolist() == [0, 1, 1, 3, 3]


def test_gradient_of_cummax_goes_to_the_recorded_index():
    grad = func.grad(lambda x: sum(cummax(x, 0).values))(f64([1.0, 3.0, 2.0, 3.0]))
    assert grad.tolist() == [1.0, 2.0, 0.0, 1.0]


def test_complex_numbers_have_no_running_extremum():
    with pytest.raises(DTypeError, match="no order"):
        cummax(Tensor(np.ones(2, "complex64")), 0)


def test_logcumsumexp_does_not_overflow():
    found = logcumsumexp(f64([1000.0, 1000.0, -1000.0]), 0).numpy()
    np.testing.assert_allclose(found, [1000, 1000 + math.log(2), 1000 + math.log(2)])


def test_derivative_of_logcumsumexp_is_0_while_the_sum_is():
    for found in jacobian(lambda x: logcumsumexp(x, 0), [-INF, -INF, 1.0, 2.0]):
        p = math.e / (math.e + math.e**2)
        expected = [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, p, 1 - p]]
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("rows", [1, 3, 100])
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrence_is_its_loop_for_few_rows_and_many(rows, reverse, rng):
    a, b = rng.normal(size=(2, 50, rows))
    found = bind(Recurrence(0, reverse), f64(a), f64(b)).numpy()
    state = np.zeros(rows)
    for i in reversed(range(50)) if reverse else range(50):
        state = a[i] * state + b[i]
        np.testing.assert_allclose(found[i], state)


@pytest.mark.parametrize("rows", [1, 100])
def test_a_state_of_zero_stays_zero_beside_an_infinite_factor(rows):
    a, b = np.full((3, rows), INF), np.zeros((3, rows))
    b[2] = 1.0
    found = bind(Recurrence(0), f64(a), f64(b)).numpy()
    np.testing.assert_array_equal(found, b)
