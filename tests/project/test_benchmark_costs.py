"""The operations and bytes that benchmarks/costs.py counts, against counts by hand."""

import itertools

import numpy as np
import pytest

import lucid
from benchmarks.costs import count
from lucid.func import scan
from lucid.ir import Type


def cost(f, *types):
    return count(lucid.ir.trace(f)(*map(Type.parse, types)))


def test_a_product_of_matrices_is_2mnk_operations():
    found = cost(lambda a, b: a @ b, "f32[3,4]", "f32[4,5]")
    assert (found.flops, found.bytes) == (2 * 3 * 4 * 5, 4 * (12 + 20 + 15))


def test_operations_of_float64_count_twice():
    assert cost(lambda x: x * x + x, "f64[10]").flops == 2 * 20


def test_a_sum_counts_the_elements_that_it_reads():
    assert cost(lambda x: x.sum(1), "f32[6,7]").flops == 42


def test_the_body_of_a_scan_counts_once_a_step():
    def f(x):
        return scan(lambda c, _: (lucid.tanh(c) * c, None), x, length=50)[0]

    assert cost(f, "f32[100]").flops == 50 * 2 * 100


@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 1, 1), (2, 1, 1), (1, 0, 2)])
def test_a_convolution_counts_the_elements_of_windows_inside_the_image(stride, padding, dilation):
    def f(x, w):
        return lucid.nn.functional.conv2d(x, w, stride=stride, padding=padding, dilation=dilation)

    n, k, images, channels, filters = 7, 3, 2, 4, 5
    # Ones convolved with ones: every result is the number of products that it adds up.
    ones = np.ones((1, 1, n, n)), np.ones((1, 1, k, k))
    padded = np.pad(ones[0][0, 0], padding)
    starts = range(0, len(padded) - (k - 1) * dilation, stride)
    products = sum(
        padded[i + a * dilation, j + b * dilation]
        for i, j in itertools.product(starts, starts)
        for a, b in itertools.product(range(k), range(k))
    )
    found = cost(f, f"f32[{images},{channels},{n},{n}]", f"f32[{filters},{channels},{k},{k}]")
    assert found.flops == 2 * images * channels * filters * products


def test_only_the_rows_that_are_looked_up_count_as_read():
    found = cost(lambda table, i: table[i], "f32[1000,8]", "i64[3]")
    assert found.bytes == 4 * 3 * 8 + 8 * 3 + 4 * 3 * 8
