"""What the table's random numbers do not meet: nan, infinities, ties, zeros, values that decide."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
import lucid.func as F
from lucid.errors import ArgumentError, TracedValueError

NAN, INF = math.nan, math.inf


def same(actual, expected) -> None:
    np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))


# Functions of elements


def test_fmax_and_fmin_prefer_numbers_to_nan():
    x, y = lucid.tensor([1.0, NAN, NAN, 2.0]), lucid.tensor([NAN, 3.0, NAN, 1.0])
    same(lucid.fmax(x, y), np.fmax(x.numpy(), y.numpy()))
    same(lucid.fmin(x, y), np.fmin(x.numpy(), y.numpy()))


def test_the_gradient_of_fmax_goes_to_the_number_beside_a_nan():
    y = lucid.tensor([NAN, 3.0])
    same(F.grad(lambda x: lucid.fmax(x, y).sum())(lucid.tensor([1.0, NAN])), [1.0, 0.0])


def test_xlogy_is_zero_where_x_is_zero_but_nan_where_y_is():
    x, y = lucid.tensor([0.0, 0.0, 0.0, 2.0]), lucid.tensor([0.0, INF, NAN, 0.0])
    same(lucid.xlogy(x, y), [0.0, 0.0, NAN, -INF])
    same(F.grad(lambda y: lucid.xlogy(0.0, y).sum())(lucid.tensor([0.0, 1.0])), [0.0, 0.0])


def test_logaddexp2_does_not_overflow():
    x, y = np.array([1e300, -INF, INF, INF]), np.array([1e300, -INF, -INF, INF])
    same(lucid.logaddexp2(lucid.tensor(x), lucid.tensor(y)), np.logaddexp2(x, y))


def test_logit_at_the_ends_is_infinite_unless_they_are_held_back():
    x = lucid.tensor([0.0, 1.0, 2.0])
    same(lucid.logit(x), [-INF, INF, NAN])
    assert np.isfinite(lucid.logit(x, 0.01).numpy()).all()


@pytest.mark.parametrize("x", [0.0, 1e-30, 1e-8, 1e-3, 0.1])
def test_sinc_has_its_derivatives_near_zero(x):
    """sinc' = -pi² x / 3 + pi⁴ x³ / 30, sinc'' = -pi² / 3 + pi⁴ x² / 10, up to the next terms."""
    t = lucid.tensor(x, dtype=lucid.float64)
    slope, bend = F.grad(lucid.sinc)(t), F.grad(F.grad(lucid.sinc))(t)
    u = math.pi * x
    series = [(-1) ** k * u ** (2 * k) / math.factorial(2 * k + 1) for k in range(12)]
    assert float(lucid.sinc(t)) == pytest.approx(sum(series), rel=1e-14)
    slopes = [
        (-1) ** k * 2 * k * math.pi * u ** (2 * k - 1) / math.factorial(2 * k + 1)
        for k in range(1, 12)
    ]
    assert float(slope) == pytest.approx(sum(slopes), rel=1e-13, abs=1e-300)
    bends = [
        (-1) ** k * 2 * k * (2 * k - 1) * math.pi**2 * u ** (2 * k - 2) / math.factorial(2 * k + 1)
        for k in range(1, 12)
    ]
    assert float(bend) == pytest.approx(sum(bends), rel=1e-12)


def test_sinc_in_single_precision_keeps_its_slope_at_small_numbers():
    x = lucid.tensor(1e-4, dtype=lucid.float32)
    assert float(F.grad(lucid.sinc)(x)) == pytest.approx(-(math.pi**2) * 1e-4 / 3, rel=1e-5)


def test_heaviside_at_zero_is_the_value_and_its_gradient_goes_there():
    x = lucid.tensor([-1.0, 0.0, -0.0, 1.0, NAN])
    same(lucid.heaviside(x, 0.25), [0.0, 0.25, 0.25, 1.0, 0.0])
    same(F.grad(lambda v: lucid.heaviside(x, v).sum())(lucid.tensor(0.25)), 2.0)


def test_signbit_sees_negative_zero_and_the_sign_of_nan():
    x = np.array([-0.0, 0.0, -INF, NAN, np.copysign(NAN, -1)])
    same(lucid.signbit(lucid.tensor(x)), np.signbit(x))


def test_frexp_of_subnormal_and_infinite_numbers():
    x = np.array([0.0, 5e-324, 1e-310, 1.5, -8.0, INF, NAN])
    mantissa, exponent = lucid.frexp(lucid.tensor(x))
    expected = np.frexp(x)
    same(mantissa, expected[0])
    same(exponent, expected[1])


def test_lerp_reaches_both_ends_exactly():
    x, y = lucid.tensor([0.1, 1e8]), lucid.tensor([0.7, -3.0])
    for weight in (0.0, lucid.zeros(2)):
        same(lucid.lerp(x, y, weight), x)
    for weight in (1.0, lucid.ones(2)):
        same(lucid.lerp(x, y, weight), y)


def test_a_beta_of_zero_does_not_read_the_operand():
    nan = lucid.full((2, 2), NAN)
    same(lucid.addmm(nan, lucid.eye(2), lucid.eye(2), beta=0), np.eye(2))


# Order


def test_nan_is_the_largest_and_a_quantile_of_it_is_nan():
    x = lucid.tensor([[1.0, NAN, 3.0], [4.0, 2.0, 6.0]])
    same(lucid.kthvalue(x, 3).values, [NAN, 6.0])
    same(lucid.quantile(x, 0.5, dim=1), [NAN, 4.0])
    same(lucid.nanquantile(x, 0.5, dim=1), [2.0, 4.0])
    same(lucid.nanmedian(x, dim=1).values, [1.0, 4.0])
    same(lucid.nanmedian(lucid.tensor([NAN, NAN])), NAN)
    same(lucid.nanquantile(lucid.tensor([NAN, NAN]), 0.5), NAN)


def test_gradients_of_nanquantile_pass_nan_by():
    x = lucid.tensor([1.0, NAN, 3.0])
    same(F.grad(lambda x: lucid.nanquantile(x, 0.25))(x), [0.75, 0.0, 0.25])


def test_mode_of_a_tie_is_the_smallest_and_its_index_holds_it():
    x = lucid.tensor([3.0, 1.0, 3.0, 1.0, 2.0])
    values, index = lucid.mode(x)
    assert float(values) == 1.0 == float(x[int(index)])
    same(F.grad(lambda x: lucid.mode(x).values)(x).sum(), 1.0)


def test_searching_for_nan_ends_behind_all_numbers():
    row = lucid.tensor([1.0, 3.0, NAN])
    same(lucid.searchsorted(row, lucid.tensor([NAN, 2.0, 5.0])), [2, 1, 2])
    same(lucid.searchsorted(row, lucid.tensor([NAN]), right=True), [3])


def test_isin_does_not_find_nan_and_finds_the_rest_among_many():
    x = lucid.tensor([NAN, 1.0, 77.0])
    same(lucid.isin(x, lucid.tensor([NAN, 1.0])), [False, True, False])
    same(lucid.isin(x, lucid.arange(100.0)), [False, True, True])


# Writing at indices


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_elements_that_tie_share_the_gradient(reduce):
    def f(x, src):
        return lucid.scatter_reduce(x, 0, lucid.tensor([0, 0, 1]), src, reduce).sum()

    ones = lucid.ones(2), lucid.ones(3)
    own, sent = F.grad(f, (0, 1))(*ones)
    same(own, np.float32([1 / 3, 1 / 2]))
    same(sent, np.float32([1 / 3, 1 / 3, 1 / 2]))


def test_products_with_zeros_have_their_gradients():
    def f(x, src):
        return lucid.scatter_reduce(x, 0, lucid.tensor([0, 0, 1, 1]), src, "prod").sum()

    x, src = lucid.tensor([2.0, 0.0]), lucid.tensor([0.0, 3.0, 0.0, 5.0])
    own, sent = F.grad(f, (0, 1))(x, src)
    same(own, [0.0, 0.0])
    same(sent, [6.0, 0.0, 0.0, 0.0])


def test_means_of_integers_are_rounded_down():
    x = lucid.tensor([1, -2])
    found = lucid.scatter_reduce(x, 0, lucid.tensor([0, 1]), lucid.tensor([2, -1]), "mean")
    same(found, [1, -2])


# Values that decide the shape


def test_bincount_of_nothing_has_the_least_length_and_weights_have_gradients():
    same(lucid.bincount(lucid.zeros(0, dtype="int64"), minlength=3), [0, 0, 0])
    x = lucid.tensor([1, 2, 1])
    same(
        F.grad(lambda w: (lucid.bincount(x, w) ** 2).sum())(lucid.tensor([1.0, 2.0, 3.0])),
        [8, 4, 8],
    )


@pytest.mark.parametrize(
    "function", [lucid.unique, lucid.unique_consecutive, lucid.bincount, lucid.nonzero]
)
def test_a_compiled_function_follows_values_that_decide_its_shape(function):
    compiled = lucid.jit(lambda x: function(x) * 2)
    for values in ([3, 1, 3], [0, 5, 2], [3, 1, 3], [1, 1, 1]):
        x = lucid.tensor(values)
        same(compiled(x), function(x) * 2)


@pytest.mark.parametrize(
    "function", [lucid.unique, lucid.unique_consecutive, lucid.bincount, lucid.nonzero]
)
def test_inside_vmap_they_say_that_there_are_no_values(function):
    with pytest.raises(TracedValueError, match="vmap"):
        F.vmap(function)(lucid.ones(2, 3, dtype="int64"))


def test_unique_keeps_every_nan_and_its_gradient_goes_to_the_first_of_equals():
    x = lucid.tensor([2.0, NAN, 1.0, 2.0, NAN])
    same(lucid.unique(x), [1.0, 2.0, NAN, NAN])
    weights = lucid.tensor([1.0, 10.0])
    grad = F.grad(lambda x: (lucid.unique(x) * weights).sum())(lucid.tensor([2.0, 1.0, 2.0]))
    same(grad, [10.0, 1.0, 0.0])


def test_nonzero_static_runs_where_nonzero_cannot():
    x = lucid.tensor([[0, 1, 2], [3, 0, 0]])
    found = F.vmap(lambda row: lucid.nonzero_static(row, size=2))(x)
    same(found, [[[1], [2]], [[0], [-1]]])


# In place


IN_PLACE = {
    "addcmul_": (lucid.ones(3), lucid.full((3,), 2.0)),
    "addcdiv_": (lucid.ones(3), lucid.full((3,), 2.0)),
    "lerp_": (lucid.ones(3), 0.25),
    "clamp_min_": (0.5,),
    "clamp_max_": (0.5,),
    "xlogy_": (lucid.full((3,), 2.0),),
    "logit_": (0.1,),
    "sinc_": (),
    "ldexp_": (lucid.tensor([1, 2, 3]),),
    "index_put_": ((lucid.tensor([0]),), lucid.tensor([7.0])),
    "index_reduce_": (0, lucid.tensor([0, 0]), lucid.tensor([3.0, 4.0]), "amax"),
    "scatter_reduce_": (0, lucid.tensor([0, 0]), lucid.tensor([3.0, 4.0]), "prod"),
    "masked_scatter_": (lucid.tensor([True, False, True]), lucid.tensor([8.0, 9.0])),
    "put_": (lucid.tensor([2]), lucid.tensor([5.0])),
    "addmv_": (lucid.eye(3), lucid.ones(3)),
    "float_power_": (2,),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_form_computes_the_same_and_keeps_the_gradient(name):
    arguments = IN_PLACE[name]
    start = lucid.tensor([0.2, 0.4, 0.9], dtype="float64" if name == "float_power_" else "float32")

    def plain(x):
        return (getattr(lucid.Tensor, name[:-1])(x, *arguments) ** 2).sum()

    def written(x):
        y = x * 1.0
        assert getattr(y, name)(*arguments) is y
        return (y**2).sum()

    np.testing.assert_allclose(float(written(start)), float(plain(start)), rtol=1e-6)
    np.testing.assert_allclose(
        F.grad(written)(start).numpy(), F.grad(plain)(start).numpy(), rtol=1e-6
    )


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (7, 3), (2, 5), (3, 3, 3)])
def test_fill_diagonal_is_numpys(shape, wrap):
    expected = np.zeros(shape, "float32")
    np.fill_diagonal(expected, 2.0, wrap)
    same(lucid.zeros(shape).fill_diagonal_(2.0, wrap), expected)


def test_cdist_of_many_equal_points_has_no_nan_in_its_gradient():
    x = lucid.ones(30, 2)
    assert np.isfinite(F.grad(lambda x: lucid.cdist(x, x).sum())(x).numpy()).all()
    with pytest.raises(ArgumentError, match="nonnegative"):
        lucid.pdist(x, -1.0)


@pytest.mark.filterwarnings("error")
def test_numbers_that_a_dtype_does_not_hold_become_infinite_without_a_warning():
    same(lucid.tensor([1e300, -1e300]), [INF, -INF])
    same(lucid.tensor(np.array([1e300]), dtype="float32"), [INF])
    assert lucid.tensor([NAN], dtype="int32").dtype == np.int32
