"""Python numbers beside tensors, and 0-d tensors where vectors are expected."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, DTypeError
from tests.compiled import compiled

X = np.array([0.25, 0.5, 0.75])
MASK = np.array([True, False, True])

WRITTEN = {
    "fill_": lambda x: x.fill_(0.1),
    "copy_": lambda x: x.copy_(0.1),
    "copy_ of a list": lambda x: x.copy_([0.1, 0.1, 0.1]),
    "setitem": lambda x: lucid.ops.index.subscript.setitem(x, slice(None), 0.1),
    "masked_fill": lambda x: lucid.masked_fill(x, lucid.tensor([True] * 3), 0.1),
    "masked_fill_": lambda x: x.masked_fill_(lucid.tensor([True] * 3), 0.1),
    "index_fill": lambda x: lucid.index_fill(x, 0, lucid.tensor([0, 1, 2]), 0.1),
    "scatter": lambda x: lucid.scatter(x, 0, lucid.tensor([0, 1, 2]), value=0.1),
    "index_put": lambda x: lucid.index_put(x, (lucid.tensor([0, 1, 2]),), 0.1),
    "put": lambda x: lucid.put(x, lucid.tensor([0, 1, 2]), [0.1, 0.1, 0.1]),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_number_written_into_float64_is_not_rounded_to_float32(name):
    y = WRITTEN[name](lucid.tensor(X.copy()))
    np.testing.assert_array_equal(y.numpy(), np.full(3, 0.1))


def test_a_number_too_large_for_float32_is_written_into_float64():
    y = lucid.masked_fill(lucid.tensor(X), lucid.tensor(MASK), -1e300)
    np.testing.assert_array_equal(y.numpy(), [-1e300, 0.5, -1e300])


BESIDE = {
    "xlogy": (lambda x: lucid.xlogy(x, 0.1), X * np.log(0.1)),
    "xlogy, first": (lambda x: lucid.xlogy(0.1, x), 0.1 * np.log(X)),
    "float_power": (lambda x: lucid.float_power(x, 0.1), X**0.1),
    "ldexp": (lambda x: lucid.ldexp(x, 0.1), X * 2**0.1),
    "heaviside": (lambda x: lucid.heaviside(x - x, 0.1), np.full(3, 0.1)),
    "lerp": (lambda x: lucid.lerp(x, 0.1, 0.25), X + 0.25 * (0.1 - X)),
    "fmax": (lambda x: lucid.fmax(x * lucid.nan, 0.1), np.full(3, 0.1)),
    "chebyshev": (lambda x: lucid.special.chebyshev_polynomial_t(0.1, x * 4), [0.1, -0.98, -0.296]),
}


@pytest.mark.parametrize("name", BESIDE)
def test_a_number_beside_float64_is_not_rounded_to_float32(name):
    call, expected = BESIDE[name]
    y = call(lucid.tensor(X))
    assert y.dtype == np.float64
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-14)


def test_allclose_takes_a_number_as_it_is():
    assert lucid.allclose(lucid.tensor(np.full(2, 0.1)), 0.1, rtol=0, atol=1e-15)


def test_complex_numbers_are_not_written_into_real_tensors():
    with pytest.raises(DTypeError, match="scatter: complex values for a tensor of dtype float32"):
        lucid.scatter(lucid.ones(2), 0, lucid.tensor([0]), 1j)


ZERO_D = {
    "gather": (lambda x, i: lucid.gather(x, 0, i), 2.0),
    "scatter": (lambda x, i: lucid.scatter(x, 0, i, lucid.tensor(5.0)), 5.0),
    "scatter of a number": (lambda x, i: lucid.scatter(x, 0, i, 5.0), 5.0),
    "scatter_add": (lambda x, i: lucid.scatter_add(x, 0, i, lucid.tensor(5.0)), 7.0),
    "index_select": (lambda x, i: lucid.index_select(x, 0, i), 2.0),
    "index_add": (lambda x, i: lucid.index_add(x, 0, i, lucid.tensor(5.0)), 7.0),
    "index_copy": (lambda x, i: lucid.index_copy(x, 0, i, lucid.tensor(5.0)), 5.0),
    "index_fill": (lambda x, i: lucid.index_fill(x, 0, i, 5.0), 5.0),
    "index_reduce": (lambda x, i: lucid.index_reduce(x, 0, i, lucid.tensor(5.0), "mean"), 3.5),
}


@pytest.mark.parametrize("name", ZERO_D)
def test_indexing_functions_take_a_0d_tensor_as_a_vector_of_one(name):
    call, expected = ZERO_D[name]
    y = call(lucid.tensor(2.0), lucid.tensor(0))
    assert y.shape == () and y.item() == expected
    y = compiled(call)(lucid.tensor(2.0), lucid.tensor(0))
    assert y.shape == () and y.item() == expected


def test_gather_at_no_place_has_the_shape_of_the_index():
    assert lucid.gather(lucid.ones(5), 0, lucid.zeros((2, 0), dtype=lucid.int64)).shape == (2, 0)


def test_masked_scatter_broadcasts_the_tensor_with_the_mask():
    mask = lucid.tensor([[True, False], [False, True]])
    y = lucid.masked_scatter(lucid.ones(2), mask, lucid.tensor([4.0, 5.0]))
    np.testing.assert_array_equal(y.numpy(), [[4.0, 1.0], [1.0, 5.0]])


def test_diff_taken_no_times_is_the_tensor_itself():
    x = np.array([1.0, 4.0])
    np.testing.assert_array_equal(lucid.diff(lucid.tensor(x), 0, prepend=lucid.ones(2)), x)
    with pytest.raises(ArgumentError, match="n=-1"):
        lucid.diff(lucid.tensor(x), -1)


# float16, whose squares and sums are more than it holds

HALF = np.array([[300.0, -300.0, 250.0], [400.0, 200.0, -100.0]], np.float16)
IN_HALF = {
    "norm": (lucid.norm, np.linalg.norm),
    "cubes": (lambda x: lucid.norm(x, 3), lambda x: (abs(x) ** 3).sum() ** (1 / 3)),
    "std": (lucid.std, lambda x: x.std(ddof=1)),
    "mean": (lambda x: (abs(x) * 150).mean(), lambda x: (abs(x) * 150).mean()),
    "layer_norm": (
        lambda x: lucid.nn.functional.layer_norm(x, (3,)),
        lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True),
    ),
    "rms_norm": (
        lambda x: lucid.nn.functional.rms_norm(x, (3,)),
        lambda x: x / np.sqrt((x**2).mean(1, keepdims=True)),
    ),
    "batch_norm": (
        lambda x: lucid.nn.functional.batch_norm(x, None, None, training=True),
        lambda x: (x - x.mean(0)) / x.std(0),
    ),
    "mse_loss": (lambda x: lucid.nn.functional.mse_loss(x, x / 2), lambda x: (x**2 / 4).mean()),
    "avg_pool1d": (
        lambda x: lucid.nn.functional.avg_pool1d(abs(x) * 150, 2),
        lambda x: (abs(x) * 150)[:, :2].mean(1, keepdims=True),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_HALF)
def test_functions_of_float16_do_not_overflow_on_the_way(name):
    call, expected = IN_HALF[name]
    for y in (call(lucid.tensor(HALF)), compiled(call)(lucid.tensor(HALF))):
        assert y.dtype == np.float16
        np.testing.assert_allclose(y.numpy(), expected(HALF.astype(float)), rtol=2e-3)


def test_cumsum_of_float16_counts_beyond_2048():
    assert lucid.cumsum(lucid.ones(3000, dtype=lucid.float16), 0)[-1].item() == 3000
    assert lucid.cumsum(lucid.ones(2, dtype=lucid.float16), 0, dtype="float64").dtype == np.float64
