"""Choice, comparison, logic and Python's operators as users write them."""

import operator

import numpy as np
import pytest

import lucid
from lucid import tensor
from lucid.errors import DTypeError
from lucid.ops.elementwise import conditional, exponential, logic
from tests.ops.elementwise.test_elementwise import gradient

where, clamp, relu = conditional.where, conditional.clamp, conditional.relu
maximum, minimum = conditional.maximum, conditional.minimum

OPERATORS = {
    **{s: getattr(operator, s) for s in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")},
    **{s: getattr(operator, s) for s in ("eq", "ne", "lt", "le", "gt", "ge")},
}
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


def test_the_untaken_branch_of_where_gives_zero_even_where_it_is_nan():
    x = np.array([-1.0, 0.0, 4.0])
    slope = gradient(lambda x: where(x > 0, exponential.sqrt(x), 0.0), x)
    np.testing.assert_array_equal(slope, [0, 0, 0.25])
    slope = gradient(lambda x: where(x > 0, exponential.log(x), x * 2.0), x)
    np.testing.assert_array_equal(slope, [2, 2, 0.25])


def test_where_promotes_and_takes_any_condition():
    c = tensor([True, False])
    assert where(c, 1, 2.5).tolist() == [1.0, 2.5]
    assert where(c, 1, 2).dtype == np.int64
    assert where(c, tensor([1.0, 2.0]), 0).dtype == np.float32
    assert where(c, 0, tensor(np.ones(2))).dtype == np.float64
    assert where(c, tensor(np.ones(2, "int8")), 3).dtype == np.int8
    assert where(tensor([0, 3]), 1, 2).tolist() == [2, 1]
    assert where(True, tensor([1.0]), tensor([2.0])).tolist() == [1.0]
    with pytest.raises(TypeError, match="where: give both"):
        where(c, 1)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "int32", "float64", "complex128"])
def test_where_on_large_arrays_is_that_of_numpy(dtype):
    rng = np.random.default_rng(0)
    c = rng.random((100, 100)) < 0.5
    x, y = (rng.normal(size=(100, 100)).astype(dtype) for _ in range(2))
    if np.dtype(dtype).kind == "f":
        x[0], y[1] = np.nan, np.inf
    operands = [(c, x, y), (c.T, x, y), (c, x.T, y[::-1]), (c, x, y[0]), (c[0], x, y)]
    for chosen in [*operands, (c, x, dtype_zero(y)), (c, dtype_zero(y), y)]:
        result = where(*[tensor(v) for v in chosen]).numpy()
        np.testing.assert_array_equal(result, np.where(*chosen))
        assert result.dtype == dtype


def dtype_zero(y):
    return np.zeros((), y.dtype)


def test_relu_at_zero_has_derivative_zero_and_keeps_nan():
    np.testing.assert_array_equal(gradient(relu, [-1.0, 0.0, 2.0]), [0, 0, 1])
    np.testing.assert_array_equal(
        relu(tensor([-np.inf, -1.0, 0.0, 3.0, np.inf, np.nan])).numpy(),
        [0, 0, 0, 3, np.inf, np.nan],
    )
    assert relu(tensor([-3, 3])).tolist() == [0, 3]


def test_ties_of_maximum_and_minimum_share_the_gradient():
    a, b = [1.0, 2.0, 3.0, np.inf], [2.0, 2.0, 1.0, np.inf]
    for function, first in [(maximum, [0, 0.5, 1, 0.5]), (minimum, [1, 0.5, 0, 0.5])]:
        by_a, by_b = gradient(function, a, b)
        np.testing.assert_array_equal(by_a, first)
        np.testing.assert_array_equal(by_b, 1 - np.array(first))
    np.testing.assert_array_equal(
        gradient(lambda x: maximum(x, 0.0), [-1.0, 0.0, 1.0]), [0, 0.5, 1]
    )


def test_maximum_and_minimum_propagate_nan():
    x, y = tensor([np.nan, 1.0]), tensor([1.0, np.nan])
    assert np.isnan(maximum(x, y).numpy()).all() and np.isnan(minimum(x, y).numpy()).all()


def test_clamp_passes_the_gradient_inside_and_at_the_bounds():
    x = [-2.0, -1.0, 0.0, 1.0, 2.0]
    np.testing.assert_array_equal(gradient(lambda x: clamp(x, -1, 1), x), [0, 1, 1, 1, 0])
    np.testing.assert_array_equal(gradient(lambda x: clamp(x, min=-1), x), [0, 1, 1, 1, 1])
    np.testing.assert_array_equal(gradient(lambda x: clamp(x, max=1.0), x), [1, 1, 1, 1, 0])
    by_x, by_low, by_high = gradient(clamp, x, [-1.0] * 5, [1.0] * 5)
    np.testing.assert_array_equal(by_x, [0, 1, 1, 1, 0])
    np.testing.assert_array_equal(by_low, [1, 0, 0, 0, 0])
    np.testing.assert_array_equal(by_high, [0, 0, 0, 0, 1])


def test_clamp_with_crossed_bounds_is_the_upper_bound():
    x = [0.0, 1.5, 3.0]
    assert clamp(tensor(x), 2.0, 1.0).tolist() == [1.0, 1.0, 1.0]
    by_x, by_low, by_high = gradient(clamp, x, [2.0] * 3, [1.0] * 3)
    assert not by_x.any() and not by_low.any() and by_high.all()


def test_clamp_of_integers_and_bad_arguments():
    assert clamp(tensor([1, 5, 9]), 2, 6).tolist() == [2, 5, 6]
    assert clamp(tensor([1, 5, 9]), min=2).dtype == np.int64
    assert clamp(tensor([1, 2]), 1.5).tolist() == [1.5, 2.0]
    with pytest.raises(TypeError, match="clamp: give min, max or both"):
        clamp(tensor([1.0]))
    with pytest.raises(DTypeError, match="clamp: operand of dtype complex64"):
        clamp(tensor([1j]), 0.0)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "float64"])
def test_operators_agree_with_numpy_for_tensors_arrays_and_numbers(name, dtype):
    f = OPERATORS[name]
    a, b = np.array([1, 2, 3, 7], dtype), np.array([3, 2, 1, 2], dtype)
    default = np.float32 if name == "truediv" and dtype in ("int64", "uint8") else None
    for x, y in [(a, b), (a, 2), (2, a)] + ([(a, 2.0), (2.0, a)] if dtype[0] == "f" else []):
        expected = np.asarray(f(x, y))
        for u, v in [(wrapped(x), wrapped(y)), (wrapped(x), y), (x, wrapped(y))]:
            if not isinstance(u, lucid.Tensor) and not isinstance(v, lucid.Tensor):
                continue
            if isinstance(u, np.ndarray) and not hasattr(lucid.Tensor, "__array_ufunc__"):
                continue
            result = f(u, v)
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)
            assert result.dtype == (default or expected.dtype)


def wrapped(x):
    return tensor(x) if isinstance(x, np.ndarray) else x


@pytest.mark.parametrize("f", BITS, ids=lambda f: f.__name__)
def test_bit_operators_agree_with_numpy(f):
    a, b = np.array([1, 12, 255]), np.array([3, 0, 2])
    for x, y in [(a, b), (a, 2), (2, b)]:
        assert f(wrapped(x), wrapped(y)).tolist() == f(x, y).tolist()
    if f in BITS[:3]:
        p, q = np.array([True, True, False]), np.array([True, False, False])
        assert f(tensor(p), tensor(q)).tolist() == f(p, q).tolist()
        assert f(tensor(p), True).tolist() == f(p, True).tolist()
        assert f(tensor(p), True).dtype == bool
    with pytest.raises(DTypeError, match="operand of dtype float32; it takes .*integer"):
        f(tensor([1.0]), tensor([1.0]))


def test_unary_operators():
    assert (~tensor([True, False])).tolist() == [False, True]
    assert (~tensor([0, 5])).tolist() == [-1, -6]
    assert (-tensor([1, -2])).tolist() == [-1, 2]
    x = tensor([1.5, -2.5])
    assert (+x) is x and abs(x).tolist() == [1.5, 2.5]
    assert round(x).tolist() == [2.0, -2.0]
    assert [v.tolist() for v in divmod(tensor([7, -7]), 2)] == [[3, -4], [1, 1]]
    assert [v.tolist() for v in divmod(7, tensor([2, -2]))] == [[3, -4], [1, -1]]
    with pytest.raises(DTypeError, match="bitwise_not: operand of dtype float32"):
        _ = ~x


def test_shifts_by_too_much_lose_every_bit():
    assert (tensor([1, -1]) << 64).tolist() == [0, 0]
    assert (tensor([1, -1]) >> 64).tolist() == [0, -1]
    assert (tensor([True]) << 1).tolist() == [2]


def test_comparison_with_a_number_that_the_dtype_cannot_hold():
    x = tensor(np.array([3, 255], "uint8"))
    assert (x < 300).tolist() == [True, True] and (x > -1).tolist() == [True, True]
    assert (x == 255).tolist() == [False, True] and (x == 511).tolist() == [False, False]
    assert (tensor(np.array([2**63], "uint64")) > -1).tolist() == [True]
    assert (tensor([1]) < 10**30).tolist() == [True] and (tensor([1]) < -(10**400)).tolist() == [
        False
    ]


def test_comparison_with_something_else_is_false():
    x = tensor([1.0])
    assert (x == None) is False and (x != None) is True and (x == "a") is False  # noqa: E711
    with pytest.raises(TypeError):
        _ = x < "a"
    with pytest.raises(TypeError):
        _ = x + "a"


def test_order_of_complex_numbers_is_refused():
    z = tensor([1j, 2.0])
    assert (z == 1j).tolist() == [True, False]
    with pytest.raises(DTypeError, match=r"lt: operand of dtype complex64"):
        _ = z < z
    with pytest.raises(DTypeError, match=r"maximum: operand of dtype complex64"):
        maximum(z, z)


def test_comparisons_carry_no_gradient():
    x = lucid.Tensor([1.0, 2.0], requires_grad=True)
    for y in (x > 1.0, x == x, logic.isnan(x), logic.logical_not(x)):
        assert y.dtype == bool and not y.requires_grad


def test_logic_takes_any_dtype():
    x, y = tensor([0.0, np.nan, 2.0]), tensor([1, 0, 3])
    assert logic.logical_and(x, y).tolist() == [False, False, True]
    assert logic.logical_or(x, y).tolist() == [True, True, True]
    assert logic.logical_xor(x, y).tolist() == [True, True, False]
    assert logic.logical_not(tensor([0j, 1j])).tolist() == [True, False]


def test_tests_for_special_values():
    x = tensor([np.nan, np.inf, -np.inf, 1.0])
    assert logic.isnan(x).tolist() == [True, False, False, False]
    assert logic.isinf(x).tolist() == [False, True, True, False]
    assert logic.isfinite(x).tolist() == [False, False, False, True]
    assert logic.isposinf(x).tolist() == [False, True, False, False]
    assert logic.isneginf(x).tolist() == [False, False, True, False]
    assert logic.isfinite(tensor([1, 2])).tolist() == [True, True]


def test_negative_zero_stays_negative_as_a_literal():
    x = tensor([1.0])
    assert np.signbit((x * 0.0).numpy()) == [False]
    assert np.signbit((x * -0.0).numpy()) == [True]
    assert np.signbit((x * 0).numpy()) == [False]


def test_a_number_beside_a_tensor_stays_a_literal_in_the_graph():
    x = lucid.Tensor([1.0, 2.0], requires_grad=True)
    text = str(((2 / (x * 3.0)) ** 2).graph().stripped())
    assert "mul x0 3.0" in text and "div 2.0 %0" in text and "pow %1 2.0" in text


def test_the_line_of_the_operator_is_recorded():
    x = lucid.Tensor([1.0, 2.0], requires_grad=True)
    for y in (x * 2.0, -x, exponential.exp(x), relu(x), maximum(x, 1.0), 1.0 - x):
        assert "test_elementwise_choice.py" in str(y.graph())


def test_an_operator_on_a_view_or_without_gradient_takes_the_long_way_to_the_same_result():
    x = lucid.Tensor([[1.0, 2.0]], requires_grad=True)
    row = x.reshape(2)
    (row * 3.0 + (-row) + exponential.exp(row)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [2 + np.exp([1.0, 2.0])], rtol=1e-6)


def test_a_number_too_large_for_the_dtype_is_inf_beside_floats_and_an_error_beside_integers():
    x = tensor([1.0])
    assert (x * 1e300).tolist() == [np.inf] and (tensor(np.ones(1, "f2")) * -1e6).tolist() == [
        -np.inf
    ]
    assert (x < 1e300).tolist() == [True]
    with pytest.raises(DTypeError, match=r"1329 bits does not fit into float32"):
        _ = x * 10**400
    with pytest.raises(DTypeError, match=r"200 does not fit into int8"):
        _ = tensor(np.ones(1, "int8")) * 200
