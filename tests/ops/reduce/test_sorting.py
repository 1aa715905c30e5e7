"""sort, argsort and topk as users call them."""

import math

import numpy as np
import pytest

from lucid import Tensor, func, tensor
from lucid.errors import AxisError, DTypeError, ShapeError
from lucid.ops.reduce.reduction import sum
from lucid.ops.reduce.sorting import argsort, sort, topk

INF, NAN = math.inf, math.nan


def f64(x):
    return Tensor(np.asarray(x, "float64"))


def test_sort_gives_values_and_indices():
    found = sort(f64([3.0, 1.0, 2.0]))
    assert found.values.tolist() == [1.0, 2.0, 3.0] and found.indices.tolist() == [1, 2, 0]
    assert found.indices.dtype == np.int64


def test_sort_runs_along_the_last_axis_unless_told():
    x = np.array([[3.0, 1.0], [2.0, 4.0]])
    np.testing.assert_array_equal(sort(f64(x)).values.numpy(), np.sort(x, -1))
    np.testing.assert_array_equal(sort(f64(x), 0).values.numpy(), np.sort(x, 0))
    np.testing.assert_array_equal(argsort(f64(x), axis=0).numpy(), np.argsort(x, 0))


def test_nan_counts_as_the_largest():
    x = f64([1.0, NAN, INF, -INF])
    assert argsort(x).tolist() == [3, 0, 2, 1]
    assert argsort(x, descending=True).tolist() == [1, 2, 0, 3]
    assert topk(x, 2).indices.tolist() == [1, 2]
    assert topk(x, 2, largest=False).indices.tolist() == [3, 0]


def test_equal_elements_keep_their_order_in_a_stable_sort():
    x = tensor([1, 0, 1, 0, 1])
    assert argsort(x, stable=True).tolist() == [1, 3, 0, 2, 4]
    assert argsort(x, descending=True, stable=True).tolist() == [0, 2, 4, 1, 3]
    assert sort(x, descending=True, stable=True).indices.tolist() == [0, 2, 4, 1, 3]


def test_gradient_of_sort_goes_back_through_the_permutation():
    weights = f64([1.0, 10.0, 100.0])
    grad = func.grad(lambda x: sum(sort(x).values * weights))(f64([3.0, 1.0, 2.0]))
    assert grad.tolist() == [100.0, 1.0, 10.0]
    _, tangent = func.jvp(lambda x: sort(x).values, (f64([3.0, 1.0, 2.0]),), (weights,))
    assert tangent.tolist() == [10.0, 100.0, 1.0]


def test_second_derivative_through_sort():
    hessian = func.hessian(lambda x: sum(sort(x).values * sort(x).values * f64([1.0, 2.0])))
    assert hessian(f64([3.0, 1.0])).tolist() == [[4.0, 0.0], [0.0, 2.0]]


def test_topk_gives_the_largest_in_order():
    values, indices = topk(f64([3.0, 1.0, 4.0, 1.0, 5.0]), 3)
    assert values.tolist() == [5.0, 4.0, 3.0] and indices.tolist() == [4, 2, 0]
    assert topk(f64([[3.0, 1.0], [0.0, 2.0]]), 1, dim=0, largest=False).values.tolist() == [
        [0.0, 1.0]
    ]


def test_gradient_of_topk_goes_to_the_elements_chosen():
    grad = func.grad(lambda x: sum(topk(x, 2).values))(f64([3.0, 1.0, 4.0]))
    assert grad.tolist() == [1.0, 0.0, 1.0]


def test_more_elements_than_there_are_cannot_be_chosen():
    for k in (3, -1):
        with pytest.raises(
            ShapeError, match=rf"topk: k={k} is not between 0 and 2.*test_sorting.py"
        ):
            topk(f64([1.0, 2.0]), k)


def test_of_nothing_the_order_is_nothing():
    empty = Tensor(np.ones((2, 0)))
    assert sort(empty).values.shape == argsort(empty).shape == (2, 0)
    assert topk(empty, 0).values.shape == (2, 0)


def test_a_number_is_a_row_of_one():
    assert sort(f64(3.0)).values.shape == sort(f64(3.0)).indices.shape == ()
    assert argsort(f64(3.0)).item() == 0
    assert topk(f64(3.0), 1).values.item() == 3.0


@pytest.mark.parametrize("f", [sort, argsort, lambda x: topk(x, 1)])
def test_complex_numbers_have_no_order(f):
    with pytest.raises(DTypeError, match=r"no order.*test_sorting.py"):
        f(Tensor(np.ones(3, "complex128")))


def test_an_axis_out_of_range_is_refused():
    with pytest.raises(AxisError, match="sort: axis 2"):
        sort(f64([[1.0]]), 2)


def test_sort_under_vmap_is_a_loop(rng):
    x = rng.normal(size=(3, 5))
    found = func.vmap(lambda row: sort(row, descending=True).values)(f64(x))
    np.testing.assert_array_equal(found.numpy(), -np.sort(-x, 1))


def test_integers_are_sorted_exactly():
    big = 2**53
    assert sort(tensor([big + 1, big])).values.tolist() == [big, big + 1]
