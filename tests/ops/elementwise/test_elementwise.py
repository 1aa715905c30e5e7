"""Arithmetic, powers and functions of elements as users call them: dtypes, edges, errors."""

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.special

import lucid
from lucid import tensor
from lucid.errors import DTypeError, ShapeError
from lucid.ops.core.errstate import quiet
from lucid.ops.elementwise import arithmetic, complexes, exponential, power, rounding, trigonometric
from lucid.ops.special import error_and_gamma as special_functions

FLOATING = [
    *[getattr(exponential, n) for n in "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt".split()],
    exponential.cbrt,
    exponential.sigmoid,
    *[getattr(trigonometric, n) for n in "sin cos tan asin acos atan sinh cosh tanh".split()],
    *[getattr(trigonometric, n) for n in "asinh acosh atanh".split()],
    *[getattr(special_functions, n) for n in "erf erfc erfinv lgamma digamma".split()],
]


def gradient(f, *values, dtype="float64"):
    """The gradients of sum(f) at these values."""
    xs = [lucid.Tensor(np.asarray(v, dtype), requires_grad=True) for v in values]
    f(*xs).sum().backward()
    grads = [np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in xs]
    return grads[0] if len(grads) == 1 else grads


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("function", FLOATING, ids=lambda f: f.__name__)
def test_functions_keep_floating_dtypes_and_make_integers_the_default_float(function):
    for dtype in ("float16", "float32", "float64"):
        assert function(tensor(np.full(3, 0.5, dtype))).dtype == dtype
        assert function(tensor(np.asarray(0.5, dtype))).dtype == dtype
    assert function(tensor([0, 1])).dtype == np.float32
    assert function(tensor([True, False])).dtype == np.float32
    assert function(0.5).dtype == np.float32


@pytest.mark.parametrize("function", FLOATING, ids=lambda f: f.__name__)
def test_no_warning_reaches_the_user(function):
    special = np.array([0.0, -0.0, 1.0, -1.0, 2.0, 1e30, -1e30, np.inf, -np.inf, np.nan])
    for dtype in ("float32", "float64"):
        function(tensor(special.astype(dtype)))


def test_division_by_zero_is_inf_or_nan_without_a_warning():
    y = tensor([1.0, -1.0, 0.0]) / 0.0
    np.testing.assert_array_equal(y.numpy(), [np.inf, -np.inf, np.nan])


def test_integers_divided_by_zero_give_zero():
    x = tensor([5, -5])
    assert (x // 0).tolist() == [0, 0]
    assert (x % 0).tolist() == [0, 0]
    assert rounding.fmod(x, 0).tolist() == [0, 0]


def test_quiet_leaves_the_error_state_as_it_was():
    with np.errstate(divide="raise"):
        assert quiet(np.log)(0.0) == -np.inf
        with pytest.raises(FloatingPointError):
            np.log(0.0)
        with pytest.raises(TypeError):
            quiet(np.log)("x")
        assert np.geterr()["divide"] == "raise"


def test_scipy_is_not_imported_before_it_is_needed():
    code = "import lucid, sys; assert not any(m.split('.')[0] == 'scipy' for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_abs_is_real_for_complex_numbers_and_its_gradient_at_zero_is_zero():
    assert arithmetic.abs(tensor([3 + 4j])).dtype == np.float32
    np.testing.assert_array_equal(gradient(arithmetic.abs, [-2.0, 0.0, 3.0]), [-1, 0, 1])
    z = np.array([3 + 4j, 0.0])
    np.testing.assert_allclose(gradient(arithmetic.abs, z, dtype="complex128"), [0.6 + 0.8j, 0])


def test_sqrt_at_zero_has_slope_inf_but_a_zero_cotangent_stays_zero():
    assert gradient(exponential.sqrt, [0.0]) == np.inf
    assert gradient(lambda x: exponential.sqrt(x) * 0.0, [0.0]) == 0.0


def test_power_zero_has_derivative_zero_everywhere():
    for x in (0.0, -2.0, 3.0, np.inf):
        assert gradient(lambda x: x**0, [x]) == 0
        assert gradient(lambda x: x**0.0, [x]) == 0
        assert gradient(lambda x, y: x**y, [x], [0.0])[0] == 0


def test_power_at_base_zero():
    for y, slope in [(0.5, np.inf), (1.0, 1.0), (1.5, 0.0), (2.0, 0.0), (-1.0, -np.inf)]:
        by_literal = gradient(lambda x, y=y: x**y, [0.0])
        by_tensor = gradient(lambda x, y: x**y, [0.0], [y])[0]
        assert by_literal == slope and by_tensor == slope
    for y in (0.0, 0.5, 2.0):
        assert gradient(lambda y: 0.0**y, [y]) == 0
        assert gradient(lambda x, y: x**y, [0.0], [y])[1] == 0


def test_power_of_a_negative_base_has_no_derivative_by_the_exponent():
    by_base, by_exponent = gradient(lambda x, y: x**y, [-2.0], [3.0])
    assert by_base == 12 and np.isnan(by_exponent)
    assert np.isnan(gradient(lambda y: (-2.0) ** y, [3.0]))


def test_exponential_of_a_literal_base():
    np.testing.assert_allclose(gradient(lambda y: 2.0**y, [3.0]), 8 * math.log(2))
    np.testing.assert_allclose(gradient(lambda y: 2**y, [3.0]), 8 * math.log(2))


@pytest.mark.parametrize("n", [-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, 2.5])
def test_literal_powers_agree_with_numpy(n):
    x = np.array([0.0, 0.3, 1.0, 2.0, 1e10, np.inf])
    with np.errstate(all="ignore"):
        expected = np.power(x, float(n))
    np.testing.assert_allclose((tensor(x) ** n).numpy(), expected, rtol=1e-15)


def test_integer_powers_are_exact_integers():
    assert (tensor([3, -3]) ** 3).tolist() == [27, -27]
    assert (tensor([2, 3]) ** tensor([62, 39])).tolist() == [2**62, 3**39]
    assert (tensor([True, False]) ** 2).dtype == np.int64
    assert (2 ** tensor([0, 5])).tolist() == [1, 32]
    assert (tensor([2, -1, 1, 0]) ** tensor([-1, -3, -2, -1])).tolist() == [0, -1, 1, 0]


def test_integers_refuse_a_negative_literal_exponent():
    with pytest.raises(
        DTypeError, match=r"pow: integers .* negative power -2; cast .*test_element"
    ):
        _ = tensor([2, 3]) ** -2
    np.testing.assert_allclose((tensor([2, 4]) ** -1.0).numpy(), [0.5, 0.25])


def test_power_two_is_the_square_to_any_order():
    x = lucid.Tensor(np.array([0.0, 3.0]), requires_grad=True)
    assert power.square(x).tolist() == [0.0, 9.0]
    np.testing.assert_array_equal(gradient(lambda x: x**2, [0.0, 3.0]), [0, 6])


def test_remainder_has_the_sign_of_the_divisor_and_fmod_that_of_the_dividend():
    x, y = np.array([5.5, -5.5, 5.5, -5.5]), np.array([3.0, 3.0, -3.0, -3.0])
    np.testing.assert_array_equal((tensor(x) % tensor(y)).numpy(), x % y)
    np.testing.assert_array_equal(rounding.fmod(tensor(x), tensor(y)).numpy(), np.fmod(x, y))
    for function, quotient in [(rounding.remainder, np.floor), (rounding.fmod, np.trunc)]:
        by_x, by_y = gradient(function, x, y)
        np.testing.assert_array_equal(by_x, np.ones(4))
        np.testing.assert_array_equal(by_y, -quotient(x / y))


def test_fmod_counts_the_times_the_divisor_was_taken_away_exactly():
    # 1.0 / 0.1 rounds to 10, but 0.1 fits into 1.0 only nine times.
    assert gradient(rounding.fmod, [1.0], [0.1])[1] == -9
    assert gradient(rounding.remainder, [1.0], [0.1])[1] == -9


def test_division_with_rounding_mode():
    x, y = tensor([7, -7]), tensor([2, 2])
    assert arithmetic.divide(x, y).tolist() == [3.5, -3.5]
    assert arithmetic.divide(x, y, rounding_mode="floor").tolist() == [3, -4]
    assert arithmetic.divide(x, y, rounding_mode="trunc").tolist() == [3, -3]
    assert arithmetic.divide(x, 2.0, rounding_mode="trunc").tolist() == [3.0, -3.0]
    with pytest.raises(ValueError, match="rounding_mode"):
        arithmetic.divide(x, y, rounding_mode="up")


def test_rounding_goes_to_even_and_has_derivative_zero():
    assert rounding.round(tensor([0.5, 1.5, 2.5, -0.5])).tolist() == [0.0, 2.0, 2.0, -0.0]
    assert rounding.round(tensor([1.25, 1.35]), decimals=1).numpy() == pytest.approx([1.2, 1.4])
    assert round(tensor([123.456]), -1).tolist() == [120.0]
    for function in (rounding.round, rounding.floor, rounding.ceil, rounding.trunc, rounding.sign):
        np.testing.assert_array_equal(gradient(function, [-1.5, 0.0, 0.3]), np.zeros(3))
        assert function(tensor([3, -3])).dtype == np.int64
    with pytest.raises(DTypeError, match=r"round: decimals 0\.5"):
        rounding.round(tensor([1.0]), 0.5)


def test_angles_and_lengths_at_the_origin_have_derivative_zero():
    for function in (trigonometric.atan2, trigonometric.hypot):
        assert np.array_equal(gradient(function, [0.0], [0.0]), [[0.0], [0.0]])


def test_hypot_and_atan2_do_not_overflow():
    assert trigonometric.hypot(tensor([3e30]), tensor([4e30])).numpy() == pytest.approx([5e30])
    by_y, by_x = gradient(trigonometric.atan2, [1e-30], [1e-30], dtype="float32")
    assert by_y == pytest.approx(5e29) and by_x == pytest.approx(-5e29)


def test_sigmoid_reaches_its_limits():
    x = np.array([-1e4, -700.0, -30.0, 0.0, 30.0, 1e4, np.inf, -np.inf, np.nan])
    y = exponential.sigmoid(tensor(x)).numpy()
    np.testing.assert_allclose(y, scipy.special.expit(x), rtol=1e-14)


def test_copysign_reads_the_sign_of_zero():
    x = arithmetic.copysign(tensor([1.0, -2.0]), tensor([-0.0, 0.0]))
    assert x.tolist() == [-1.0, 2.0]
    by_x, by_sign = gradient(arithmetic.copysign, [1.0, -2.0, 0.0], [-1.0, 1.0, 1.0])
    assert by_x.tolist() == [-1.0, -1.0, 0.0] and not by_sign.any()


def test_polygamma_of_order_zero_is_digamma():
    x = tensor(np.array([0.5, 3.0]))
    np.testing.assert_allclose(
        special_functions.polygamma(0, x).numpy(), scipy.special.psi([0.5, 3])
    )
    with pytest.raises(DTypeError, match=r"polygamma: the order 1\.5"):
        special_functions.polygamma(1.5, x)


def test_complex_numbers_come_apart_and_together():
    z = tensor(np.array([1 + 2j, -3j]))
    assert complexes.real(z).tolist() == [1.0, 0.0] and complexes.imag(z).tolist() == [2.0, -3.0]
    assert complexes.conj(z).tolist() == [1 - 2j, 3j]
    np.testing.assert_allclose(complexes.angle(z).numpy(), np.angle(z.numpy()))
    both = complexes.complex(complexes.real(z), complexes.imag(z))
    assert both.tolist() == z.tolist() and both.dtype == np.complex128
    spiral = complexes.polar(tensor([2.0]), tensor([0.5]))
    np.testing.assert_allclose(arithmetic.abs(spiral).numpy(), [2.0])


def test_real_tensors_are_their_own_real_part():
    x = tensor([1.0, -2.0])
    assert complexes.real(x) is x and complexes.conj(x) is x
    assert complexes.imag(x).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(complexes.angle(x).numpy(), [0, np.pi], rtol=1e-6)


def test_gradient_of_a_real_loss_of_complex_numbers_is_the_direction_of_ascent():
    z = np.array([1 + 2j])
    squared = gradient(lambda z: complexes.real(z * complexes.conj(z)), z, dtype="complex128")
    np.testing.assert_allclose(squared, 2 * z)


def test_scaled_addition():
    assert arithmetic.add(tensor([1.0]), 10, alpha=2).tolist() == [21.0]
    assert arithmetic.subtract(tensor([1.0]), tensor([3.0]), alpha=2).tolist() == [-5.0]


def test_errors_name_the_operation_the_facts_and_the_line():
    with pytest.raises(DTypeError, match=r"sub: .* booleans .*\[test_elementwise.py:\d+\]"):
        _ = tensor([True]) - tensor([False])
    with pytest.raises(DTypeError, match=r"neg: operand of dtype bool"):
        _ = -tensor([True])
    with pytest.raises(DTypeError, match=r"cbrt: operand of dtype complex64"):
        exponential.cbrt(tensor([1j]))
    with pytest.raises(ShapeError, match=r"add: shapes \(2,\) and \(3,\) .*test_elementwise"):
        _ = tensor([1.0, 2.0]) + tensor([1.0, 2.0, 3.0])
    with pytest.raises(DTypeError, match="complex"):
        complexes.complex(tensor([1j]), 1.0)


def test_the_slope_of_a_power_depends_on_an_exponent_of_zero():
    a = lucid.tensor([0.5, 2.0, -3.0], dtype=lucid.float64)
    b = lucid.zeros(3, dtype=lucid.float64)
    slope = lucid.func.grad(lambda a, b: lucid.pow(a, b).sum())
    np.testing.assert_array_equal(slope(a, b), np.zeros(3))
    np.testing.assert_array_equal(slope(lucid.zeros(3), lucid.zeros(3)), np.zeros(3))
    in_b = lucid.func.grad(lambda a, b: slope(a, b).sum(), argnums=1)
    for f in (in_b, lucid.jit(in_b)):
        np.testing.assert_allclose(f(a[:2], b[:2]), [2.0, 0.5])  # a**(b - 1) (1 + b log(a))
