"""Sums, products, truth, extrema and statistics as users call them."""

import math

import numpy as np
import pytest
from scipy import special

from lucid import Tensor, func, tensor
from lucid.errors import AxisError, DTypeError, ShapeError
from lucid.ops.core.promote import set_default_dtype
from lucid.ops.nn.softmax import log_softmax, softmax
from lucid.ops.reduce.extrema import amax, amin, aminmax, argmax, argmin, max, min
from lucid.ops.reduce.reduction import all, any, count_nonzero, logsumexp, prod, sum
from lucid.ops.reduce.statistics import (
    mean,
    median,
    nanmean,
    nansum,
    norm,
    std,
    std_mean,
    var,
    var_mean,
)

INF, NAN = math.inf, math.nan
MATRIX = np.array([[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]])


def close(actual, expected, rtol=1e-12):
    np.testing.assert_allclose(actual.numpy(), expected, rtol=rtol, atol=rtol)


def gradient(f, x):
    return func.grad(f)(Tensor(np.asarray(x, "float64"))).numpy()


def hessian(f, x):
    return func.hessian(f)(Tensor(np.asarray(x, "float64"))).numpy()


def f64(x):
    return Tensor(np.asarray(x, "float64"))


# Axes


@pytest.mark.parametrize("reduce", [sum, prod, amax, amin, mean, logsumexp, any, all])
def test_both_spellings_of_axes_give_the_same(reduce):
    x = f64(MATRIX)
    assert reduce(x).shape == ()
    assert reduce(x, 1).shape == reduce(x, dim=-1).shape == reduce(x, axis=1).shape == (2,)
    assert reduce(x, dim=(0, 1), keepdim=True).shape == (1, 1)
    assert reduce(x, axis=[0], keepdims=True).shape == (1, 3)


def test_no_axes_means_all_for_dim_and_none_for_axis():
    assert sum(f64(MATRIX), dim=()).shape == ()
    assert sum(f64(MATRIX), axis=()).shape == (2, 3)
    assert amax(f64(MATRIX), dim=[]).shape == ()


def test_dim_and_axis_together_are_refused():
    for reduce in (sum, amax, mean, norm, max, median, argmax):
        with pytest.raises(TypeError, match=r"dim or axis, not both.*test_reduction.py"):
            reduce(f64(MATRIX), dim=0, axis=0)


def test_an_axis_out_of_range_names_the_operation_and_the_line():
    with pytest.raises(AxisError, match=r"sum: axis 2 is out of range for 2 axes.*test_reduction"):
        sum(f64(MATRIX), dim=2)
    with pytest.raises(AxisError, match="argmax: axis 2"):
        argmax(f64(MATRIX), dim=2)
    with pytest.raises(AxisError, match="appears twice"):
        sum(f64(MATRIX), dim=(0, -2))


def test_a_number_has_the_axes_0_and_minus_1():
    x = f64(3.0)
    for reduce in (sum, prod, amax, mean, logsumexp):
        assert reduce(x, dim=-1).shape == ()
    assert max(x, dim=0).values.item() == 3.0 and max(x, dim=0).indices.shape == ()
    assert argmax(x, dim=0).item() == 0
    with pytest.raises(AxisError):
        sum(x, dim=1)


# Dtypes


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64"])
def test_sum_and_product_of_integers_are_int64(dtype):
    x = Tensor(np.ones(300, dtype))
    assert sum(x).dtype == prod(x).dtype == np.int64
    assert sum(x).item() == 300


def test_dtype_of_a_sum_can_be_named():
    assert sum(Tensor(np.ones(3, "float32")), dtype="float64").dtype == np.float64
    assert prod(tensor([2, 3]), dtype="float32").dtype == np.float32


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_floating_dtypes_stay(dtype):
    x = Tensor(np.ones((2, 2), dtype))
    for reduce in (sum, prod, mean):
        assert reduce(x).dtype == reduce(x, 0).dtype == np.dtype(dtype)


def test_mean_of_integers_is_the_default_float():
    assert mean(tensor([1, 2])).dtype == np.float32
    assert mean(tensor([True, False])).item() == 0.5
    set_default_dtype("float64")
    assert mean(tensor([1, 2])).dtype == np.float64


def test_mean_in_an_integer_dtype_is_refused():
    with pytest.raises(DTypeError, match=r"int64; give a floating"):
        mean(tensor([1.0]), dtype="int64")


@pytest.mark.parametrize("f", [max, min, amax, argmin, median])
def test_complex_numbers_have_no_order(f):
    with pytest.raises(DTypeError, match=r"no order.*test_reduction.py"):
        f(Tensor(np.ones(3, "complex64")))


# Nothing


def test_of_nothing_the_sum_is_0_and_the_product_1():
    empty = Tensor(np.ones((2, 0), "float32"))
    assert sum(empty).item() == 0 and prod(empty).item() == 1
    assert sum(empty, 1).tolist() == [0, 0] and prod(empty, 1).tolist() == [1, 1]
    assert not any(empty).item() and all(empty).item()
    assert logsumexp(empty, 1).tolist() == [-INF, -INF]
    assert np.isnan(mean(empty).item())


@pytest.mark.parametrize("f", [max, min, amax, amin, argmax, argmin, median])
def test_of_nothing_there_is_no_extremum(f):
    with pytest.raises(ShapeError, match=r"empty.*test_reduction.py"):
        f(Tensor(np.ones(0)))
    with pytest.raises(ShapeError, match=r"axis 1 of shape \(2, 0\) is empty"):
        f(Tensor(np.ones((2, 0))), dim=1)


def test_extrema_over_another_axis_than_the_empty_one_are_empty():
    assert amax(Tensor(np.ones((2, 0))), dim=0).shape == (0,)
    assert argmax(Tensor(np.ones((2, 0))), dim=0).shape == (0,)


# Products


@pytest.mark.parametrize("x", [[2.0, 3.0, 4.0], [2.0, 0.0, 4.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
def test_gradient_of_prod_is_the_product_of_the_others(x):
    others = [math.prod(x[:i] + x[i + 1 :]) for i in range(3)]
    np.testing.assert_array_equal(gradient(prod, x), others)


def test_hessian_of_prod_is_right_with_two_zeros():
    x = [0.0, 3.0, 0.0, 2.0]
    expected = [
        [0 if i == j else math.prod(x[k] for k in range(4) if k not in (i, j)) for j in range(4)]
        for i in range(4)
    ]
    np.testing.assert_array_equal(hessian(prod, x), expected)


def test_third_derivative_of_prod_is_right_with_three_zeros():
    third = func.jacfwd(func.hessian(prod))(f64([0.0, 0.0, 0.0, 5.0])).numpy()
    expected = np.zeros((4, 4, 4))
    for i, j, k in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]:
        expected[i, j, k] = 5.0
    np.testing.assert_array_equal(third, expected)


def test_overflow_of_prod_is_inf_without_a_warning():
    assert prod(Tensor(np.full(3, 1e30, "float32"))).item() == INF


# Extrema


def test_a_tie_shares_the_gradient_in_amax_and_max_of_all():
    for f in (amax, max, lambda x: max(x, axis=0)):
        np.testing.assert_array_equal(gradient(f, [2.0, 1.0, 2.0]), [0.5, 0.0, 0.5])
    np.testing.assert_array_equal(gradient(amin, [1.0, 1.0, 2.0]), [0.5, 0.5, 0.0])


def test_a_tie_gives_the_gradient_to_the_first_in_max_along_dim():
    np.testing.assert_array_equal(
        gradient(lambda x: max(x, dim=0).values, [2.0, 1.0, 2.0]), [1, 0, 0]
    )
    np.testing.assert_array_equal(gradient(lambda x: min(x, dim=0)[0], [2.0, 1.0, 1.0]), [0, 1, 0])


def test_max_along_dim_gives_values_and_indices():
    found = max(f64(MATRIX), dim=1)
    close(found.values, [5.0, 6.0])
    assert found.indices.tolist() == [1, 2] and found.indices.dtype == np.int64
    values, indices = min(f64(MATRIX), 0, keepdim=True)
    assert values.tolist() == [[1.0, 3.0, 2.0]] and indices.tolist() == [[0, 1, 0]]


def test_max_along_axis_gives_values():
    close(max(f64(MATRIX), axis=1), [5.0, 6.0])
    close(min(f64(MATRIX), axis=(0, 1), keepdims=True), [[1.0]])


def test_max_of_two_tensors_is_maximum():
    close(max(f64([1.0, 5.0]), f64([3.0, 2.0])), [3.0, 5.0])
    close(min(f64([1.0, 5.0]), np.array([3.0, 2.0])), [1.0, 2.0])


def test_max_along_two_dims_points_to_amax():
    with pytest.raises(AxisError, match="amax takes several"):
        max(f64(MATRIX), dim=(0, 1))


def test_nan_is_the_extremum_and_has_the_gradient():
    x = [1.0, NAN, 3.0, NAN]
    assert np.isnan(amax(f64(x)).item()) and np.isnan(min(f64(x)).item())
    assert argmax(f64(x)).item() == argmin(f64(x)).item() == 1
    np.testing.assert_array_equal(gradient(amax, x), [0.0, 0.5, 0.0, 0.5])


def test_an_infinite_cotangent_does_not_spoil_the_elements_not_chosen():
    _, pull = func.vjp(amax, f64([1.0, 2.0]))
    (grad,) = pull(f64(INF))
    assert grad.tolist() == [0.0, INF]


def test_aminmax_gives_both():
    low, high = aminmax(f64(MATRIX), dim=0)
    assert low.tolist() == [1.0, 3.0, 2.0] and high.tolist() == [4.0, 5.0, 6.0]
    assert aminmax(f64(MATRIX)).max.item() == 6.0


def test_argmax_without_dim_counts_in_the_flattened_tensor():
    assert argmax(f64(MATRIX)).item() == 5
    assert argmax(f64(MATRIX), keepdim=True).shape == (1, 1)
    assert argmin(f64(MATRIX), axis=1, keepdims=True).tolist() == [[0], [1]]
    assert argmax(tensor([3, 7, 7])).item() == 1


def test_extrema_of_booleans_are_booleans():
    x = tensor([True, False])
    assert amax(x).dtype == np.bool_ and amax(x).item() is True and amin(x).item() is False


# Truth and counting


def test_any_and_all_take_every_dtype():
    assert any(tensor([0, 3])).item() and not all(tensor([0, 3])).item()
    assert all(tensor([NAN, 1.0])).item()
    assert any(Tensor(np.array([0j, 1j]))).item()
    assert any(tensor([[True, False], [False, False]]), dim=1).tolist() == [True, False]


def test_count_nonzero_counts_along_dim():
    x = tensor([[0, 1], [2, 3]])
    assert count_nonzero(x).item() == 3
    assert count_nonzero(x, dim=0).tolist() == [1, 2]
    assert count_nonzero(tensor([True, False])).dtype == np.int64


# Logsumexp and softmax


def test_logsumexp_does_not_overflow():
    x = f64([1000.0, 1000.0])
    close(logsumexp(x), 1000 + math.log(2))
    close(logsumexp(-x), -1000 + math.log(2))


def test_logsumexp_of_infinities():
    assert logsumexp(tensor([-INF, -INF])).item() == -INF
    assert logsumexp(tensor([INF, 1.0])).item() == INF
    assert logsumexp(tensor([INF, -INF])).item() == INF
    assert np.isnan(logsumexp(tensor([NAN, 1.0])).item())


def test_gradient_of_logsumexp_is_softmax_and_0_where_all_is_minus_inf():
    x = np.array([0.5, -1.0, 2.0])
    np.testing.assert_allclose(gradient(logsumexp, x), special.softmax(x))
    np.testing.assert_array_equal(gradient(logsumexp, [-INF, -INF]), [0.0, 0.0])
    np.testing.assert_array_equal(gradient(logsumexp, [-INF, 1.0]), [0.0, 1.0])
    np.testing.assert_array_equal(hessian(logsumexp, [-INF, -INF]), np.zeros((2, 2)))


def test_softmax_agrees_with_scipy():
    x = f64(MATRIX * 100)
    for dim in (0, 1):
        close(softmax(x, dim), special.softmax(MATRIX * 100, dim))
        close(log_softmax(x, axis=dim), special.log_softmax(MATRIX * 100, dim))
    assert softmax(f64(3.0), 0).item() == 1.0
    for f in (softmax, log_softmax):
        assert f(Tensor(np.ones((0, 3))), 0).shape == (0, 3)


def test_log_softmax_of_float32_is_exact_far_from_0():
    x = np.array([1000.0, 1001.0, 999.5], "float32")
    exact = special.log_softmax(x.astype("float64"))
    close(log_softmax(Tensor(x), 0), exact, rtol=1e-6)


def test_softmax_needs_an_axis():
    with pytest.raises(TypeError, match="softmax: give dim"):
        softmax(f64(MATRIX))


def test_jacobian_of_softmax_is_its_formula():
    x = np.array([0.5, -1.0, 2.0])
    p = special.softmax(x)
    expected = np.diag(p) - np.outer(p, p)
    close(func.jacrev(lambda x: softmax(x, 0))(f64(x)), expected)
    close(func.jacfwd(lambda x: softmax(x, 0))(f64(x)), expected)
    close(func.jacrev(lambda x: log_softmax(x, 0))(f64(x)), np.eye(3) - p)


def test_masked_elements_have_no_share_in_softmax():
    assert softmax(tensor([-INF, 0.0]), 0).tolist() == [0.0, 1.0]
    np.testing.assert_array_equal(
        gradient(lambda x: sum(softmax(x, 0) * f64([3.0, 5.0])), [-INF, 0.0]), [0.0, 0.0]
    )


# Means, variances, norms


def test_variances_agree_with_numpy():
    x = f64(MATRIX)
    close(var(x), MATRIX.var(ddof=1))
    close(var(x, 1), MATRIX.var(1, ddof=1))
    close(var(x, dim=1, correction=0), MATRIX.var(1))
    close(var(x, 1, False), MATRIX.var(1))
    close(var(x, False), MATRIX.var())
    close(var(x, axis=0, ddof=0, keepdims=True), MATRIX.var(0, keepdims=True))
    close(std(x, 1, keepdim=True), MATRIX.std(1, ddof=1, keepdims=True))
    spread, middle = var_mean(x, 0)
    close(spread, MATRIX.var(0, ddof=1))
    close(middle, MATRIX.mean(0))
    close(std_mean(x, 1, keepdim=True)[1], MATRIX.mean(1, keepdims=True))


def test_variance_of_complex_numbers_is_real():
    x = np.array([1 + 2j, 3 - 1j, 0.5j])
    assert var(Tensor(x)).dtype == np.float64
    close(var(Tensor(x)), x.var(ddof=1))


def test_one_spelling_of_the_correction_at_a_time():
    with pytest.raises(TypeError, match="one of unbiased, correction and ddof"):
        var(f64(MATRIX), ddof=0, correction=1)


def test_too_few_elements_give_nan_without_a_warning():
    assert np.isnan(var(tensor([2.0])).item())
    assert var(tensor([2.0]), correction=0).item() == 0.0


def test_gradient_of_std_is_0_where_all_elements_are_equal():
    np.testing.assert_array_equal(gradient(std, [2.0, 2.0]), [0.0, 0.0])
    np.testing.assert_array_equal(hessian(std, [2.0, 2.0]), np.zeros((2, 2)))


def test_gradient_of_std_is_its_formula():
    x = np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(gradient(std, x), (x - x.mean()) / (2 * x.std(ddof=1)))


@pytest.mark.parametrize("p", [2, 1, 3, 0.5, -1, 0, INF, -INF])
def test_norms_agree_with_numpy(p):
    row = np.array([3.0, -4.0, 0.5, 2.0])
    close(norm(f64(row), p), np.linalg.norm(row, p))
    close(
        norm(f64([row, 2 * row]), p, dim=1, keepdim=True),
        np.linalg.norm([row, 2 * row], p, 1, True),
    )


@pytest.mark.parametrize("p", [2, 1, 3, 0.5, 0, INF])
def test_gradient_of_a_norm_at_0_is_0(p):
    assert norm(f64([0.0, 0.0]), p).item() == 0.0
    np.testing.assert_array_equal(gradient(lambda x: norm(x, p), [0.0, 0.0]), [0.0, 0.0])
    np.testing.assert_array_equal(hessian(lambda x: norm(x, p), [0.0, 0.0]), np.zeros((2, 2)))


@pytest.mark.parametrize("p", [2, 1, 3, 1.5])
def test_gradient_of_a_norm_is_its_formula_with_a_zero_among_the_elements(p):
    x = np.array([3.0, 0.0, -4.0])
    expected = np.sign(x) * (np.abs(x) / np.linalg.norm(x, p)) ** (p - 1)
    np.testing.assert_allclose(gradient(lambda x: norm(x, p), x), expected, rtol=1e-12)


def test_norm_of_complex_numbers_is_real():
    close(norm(Tensor(np.array([3 + 4j, 12j]))), 13.0)


def test_norm_refuses_what_is_no_number():
    with pytest.raises(TypeError, match="norm: p='abc' is not a number"):
        norm(f64(MATRIX), "abc")


def test_nan_is_left_out_of_nansum_and_nanmean():
    x = f64([[1.0, NAN], [3.0, 4.0]])
    assert nansum(x).item() == 8.0
    assert nansum(x, dim=1).tolist() == [1.0, 7.0]
    assert nanmean(x, axis=0).tolist() == [2.0, 4.0]
    np.testing.assert_array_equal(gradient(nansum, [1.0, NAN]), [1.0, 0.0])
    np.testing.assert_array_equal(gradient(nanmean, [1.0, NAN, 3.0]), [0.5, 0.0, 0.5])
    assert np.isnan(nanmean(f64([NAN])).item())


def test_median_is_the_lower_middle_element():
    assert median(f64([4.0, 1.0, 3.0, 2.0])).item() == 2.0
    values, indices = median(f64(MATRIX), dim=1)
    assert values.tolist() == [2.0, 4.0] and indices.tolist() == [2, 0]
    assert median(f64(MATRIX), axis=0).tolist() == [1.0, 3.0, 2.0]
    np.testing.assert_array_equal(gradient(median, [4.0, 1.0, 3.0]), [0.0, 0.0, 1.0])


def test_a_nan_is_the_median():
    values, indices = median(f64([1.0, NAN, 3.0, NAN]), dim=0)
    assert np.isnan(values.item()) and indices.item() == 1


# Under vmap


@pytest.mark.parametrize(
    "f",
    [
        lambda x: max(x, dim=0).values,
        lambda x: median(x, dim=0).indices,
        lambda x: softmax(x, 0),
        lambda x: std(x, 0),
        lambda x: norm(x, 3),
        lambda x: mean(x, keepdim=True),
    ],
)
def test_composites_are_mapped_as_a_loop_would(f, rng):
    x = rng.normal(size=(3, 4, 2))
    rows = np.stack([f(f64(row)).numpy() for row in x])
    close(func.vmap(f)(f64(x)), rows)


def test_an_axis_may_be_a_tensor_that_is_written_later():
    x, axis = tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), tensor(0)
    assert x.sum(axis).tolist() == [3.0, 5.0, 7.0]
    axis.fill_(1)
    assert x.sum(axis).tolist() == [3.0, 12.0] and x.amax((axis,)).tolist() == [2.0, 5.0]
