"""Shapes, dtypes and keywords at the edges, where PyTorch's differ from what one would guess."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, AxisError, GraphError, ShapeError
from tests.compiled import compiled


def same(actual, expected, dtype=None) -> None:
    expected = np.asarray(expected)
    np.testing.assert_array_equal(actual.numpy(), expected)
    assert actual.dtype == (expected.dtype if dtype is None else np.dtype(dtype))


def test_ends_of_a_range_of_integers_are_integers():
    same(lucid.arange(3.1, dtype=lucid.int64), [0, 1, 2])
    same(lucid.arange(0.1, -7.9, -4.0, dtype=lucid.int64), [0, -4])
    same(lucid.arange(3.1, dtype=lucid.int32), [0, 1, 2, 3], "int32")
    same(lucid.arange(-0.9, 2.1, 2.0, dtype=lucid.uint8), [0, 2], "uint8")
    same(lucid.linspace(4.3, 0, 5, dtype=lucid.int64), [4, 3, 2, 1, 0])
    same(lucid.logspace(0, 1.2, 2, dtype=lucid.int64), [1, 10])


def test_triangles_of_booleans_are_boolean():
    ones = np.ones((3, 3), bool)
    same(lucid.tensor(ones).tril(), np.tril(ones))
    same(lucid.tensor(ones).triu(1), np.triu(ones, 1))
    same(compiled(lucid.tril)(lucid.tensor(ones)), np.tril(ones))


def test_indices_of_triangles_have_the_dtype_that_is_asked_for():
    same(lucid.tril_indices(2, dtype=lucid.int32), np.stack(np.tril_indices(2)), "int32")
    same(lucid.triu_indices(2, 3, dtype=lucid.int32), np.stack(np.triu_indices(2, 0, 3)), "int32")


def test_the_covariance_of_one_variable_is_a_number():
    x = np.array([[1.0, 2.0, 4.0]])
    np.testing.assert_allclose(lucid.cov(lucid.tensor(x)).numpy(), np.var(x, ddof=1))
    assert lucid.cov(lucid.tensor(x)).shape == lucid.corrcoef(lucid.tensor(x)).shape == ()


def test_lgamma_at_minus_infinity_is_infinity():
    x = lucid.tensor([-lucid.inf, lucid.inf, 0.0, -1.0])
    same(lucid.lgamma(x), [np.inf] * 4, "float32")
    same(compiled(lucid.lgamma)(x), [np.inf] * 4, "float32")


def test_the_histogram_of_one_point_has_a_width_of_one():
    x = np.array([2.0, 2.0])
    counts, edges = np.histogram(x, 2)
    found = lucid.histogram(lucid.tensor(x), 2)
    same(found.hist, counts, "float64")
    same(found.bin_edges, edges)


def test_tensor_split_takes_indices_in_a_tensor():
    parts = lucid.tensor_split(lucid.arange(5), lucid.tensor([1, 3]))
    assert [p.tolist() for p in parts] == [[0], [1, 2], [3, 4]]
    parts = lucid.tensor_split(lucid.arange(5), lucid.tensor(2))
    assert [p.tolist() for p in parts] == [[0, 1, 2], [3, 4]]


def test_flip_takes_dims_by_name():
    x = np.arange(6).reshape(2, 3)
    same(lucid.flip(lucid.tensor(x), dims=(0, 1)), x[::-1, ::-1])
    same(lucid.tensor(x).flip(dims=[1]), x[:, ::-1])
    with pytest.raises(ArgumentError, match="flip"):
        lucid.flip(lucid.tensor(x), 0, dims=1)


def test_no_spacing_is_a_spacing_of_one():
    x = np.array([1.0, 2.0, 4.0])
    same(lucid.gradient(lucid.tensor(x), spacing=None)[0], np.gradient(x))


def test_repeat_interleave_of_counts_alone_repeats_their_places():
    same(lucid.repeat_interleave(lucid.tensor([2, 0, 1])), np.repeat(np.arange(3), [2, 0, 1]))
    x, counts = lucid.tensor([1.0, 2.0]), lucid.tensor([1, 2])
    same(lucid.repeat_interleave(x, counts, output_size=3), [1.0, 2.0, 2.0], "float32")
    with pytest.raises(ArgumentError, match="repeat_interleave: -1 repeats"):
        lucid.repeat_interleave(x, -1)


def test_renorm_by_the_largest_element():
    y = lucid.renorm(lucid.tensor([[1.0, -2.0], [0.1, 0.2]]), lucid.inf, 0, 0.5)
    np.testing.assert_allclose(y.numpy(), [[0.25, -0.5], [0.1, 0.2]], rtol=1e-6)


def test_windows_of_a_number_are_a_vector():
    same(lucid.tensor(3.0).unfold(0, 1, 1), [3.0], "float32")


def test_distances_from_no_vectors():
    mode = "use_mm_for_euclid_dist"
    assert lucid.cdist(lucid.ones(4, 5), lucid.ones(0, 3, 5), 2.0, mode).shape == (0, 4, 3)


def test_coordinates_are_int64():
    found = lucid.unravel_index(lucid.tensor([200], dtype=lucid.uint8), (2, 1000))
    same(found[0], [0], "int64")
    same(found[1], [200], "int64")


def test_lerp_with_a_complex_weight():
    y = lucid.lerp(lucid.tensor([1j]), lucid.tensor([2.0 + 0j]), 0.5j)
    np.testing.assert_allclose(y.numpy(), [1j + 0.5j * (2 - 1j)])


def test_the_sign_of_booleans_is_their_value():
    same(lucid.sign(lucid.tensor([True, False])), [True, False])


def test_circular_padding_goes_around_what_negative_widths_leave():
    x = lucid.arange(5.0).reshape(1, 5)
    pad = lucid.nn.functional.pad
    same(pad(x, (-1, 1), mode="circular"), [[1.0, 2.0, 3.0, 4.0, 1.0]], "float32")
    same(pad(x, (2, -2), mode="circular"), [[1.0, 2.0, 0.0, 1.0, 2.0]], "float32")


@pytest.mark.parametrize("shape", [(0, 0), (2, 0), (0, 2), (3, 2, 0)])
@pytest.mark.parametrize("ord", [1, 2, np.inf])
def test_norms_of_matrices_without_elements_are_zero(shape, ord):
    y = lucid.linalg.matrix_norm(lucid.zeros(*shape), ord)
    same(y, np.zeros(shape[:-2]), "float32")
    with pytest.raises(ShapeError):
        lucid.linalg.matrix_norm(lucid.zeros(0, 0), -ord)


def test_vandermonde_of_a_number_is_a_row():
    same(lucid.linalg.vander(lucid.tensor(3.0), N=3), [[1.0, 3.0, 9.0]], "float32")


def test_norm_in_another_dtype():
    x = np.full(3, 0.1, np.float32)
    same(lucid.norm(lucid.tensor(x), dtype=lucid.float64), np.linalg.norm(x.astype(float)))


MADE = {
    "zeros": lambda **kw: lucid.zeros(2, **kw),
    "ones": lambda **kw: lucid.ones(2, **kw),
    "empty": lambda **kw: lucid.empty(2, **kw),
    "full": lambda **kw: lucid.full((2,), 1.0, **kw),
    "zeros_like": lambda **kw: lucid.zeros_like(lucid.ones(2), **kw),
    "ones_like": lambda **kw: lucid.ones_like(lucid.ones(2), **kw),
    "full_like": lambda **kw: lucid.full_like(lucid.ones(2), 1.0, **kw),
    "eye": lambda **kw: lucid.eye(2, **kw),
    "arange": lambda **kw: lucid.arange(2, **kw),
    "linspace": lambda **kw: lucid.linspace(0, 1, 2, **kw),
    "logspace": lambda **kw: lucid.logspace(0, 1, 2, **kw),
    "tensor": lambda **kw: lucid.tensor([1.0, 2.0], **kw),
    "as_tensor": lambda **kw: lucid.as_tensor([1.0, 2.0], **kw),
    "asarray": lambda **kw: lucid.asarray([1.0, 2.0], **kw),
    "rand": lambda **kw: lucid.rand(2, **kw),
    "randn": lambda **kw: lucid.randn(2, **kw),
    "randint": lambda **kw: lucid.randint(0, 3, (2,), **kw),
    "randperm": lambda **kw: lucid.randperm(2, **kw),
    "rand_like": lambda **kw: lucid.rand_like(lucid.ones(2), **kw),
    "hann_window": lambda **kw: lucid.hann_window(2, **kw),
    "new_zeros": lambda **kw: lucid.ones(2).new_zeros(2, **kw),
    "new_full": lambda **kw: lucid.ones(2).new_full((2,), 1.0, **kw),
    "new_tensor": lambda **kw: lucid.ones(2).new_tensor([1.0, 2.0], **kw),
    "to": lambda **kw: lucid.ones(2).to(**kw),
}


@pytest.mark.parametrize("name", MADE)
def test_tensors_are_made_on_the_device_of_others(name):
    assert len(MADE[name](device=lucid.ones(1).device)) == 2
    with pytest.raises(ArgumentError, match=f"{name}: device='cuda'.*test_as_in_pytorch"):
        MADE[name](device="cuda")


@pytest.mark.parametrize("make", [lucid.zeros, lucid.ones, lucid.empty, lucid.rand, lucid.randn])
def test_a_size_may_be_named(make):
    assert make(size=(2, 3)).shape == (2, 3)


def test_to_takes_flags_by_position():
    x = lucid.ones(2)
    assert x.to("cpu", lucid.float64, False, True).dtype == np.float64
    assert x.to("cpu", non_blocking=True) is x
    assert x.to(lucid.float32, False, True) is not x


def test_second_derivatives_of_products_with_zeros_are_the_products_of_the_rest():
    """Of f = x0 s0 s3 + 10 x1 s1 + 100 x2 s2 at x = (0, 2, 3), s = (0, 5, 0, 4)."""

    def f(x, s):
        y = lucid.index_reduce(x, 0, lucid.tensor([0, 1, 2, 0]), s, "prod")
        return (y * lucid.tensor([1.0, 10.0, 100.0])).sum()

    x, s = lucid.tensor([0.0, 2.0, 3.0]), lucid.tensor([0.0, 5.0, 0.0, 4.0])
    (_, mixed), (_, among_s) = lucid.func.hessian(f, argnums=(0, 1))(x, s)
    same(mixed, [[4, 0, 0, 0], [0, 10, 0, 0], [0, 0, 100, 0]], "float32")
    same(among_s, np.zeros((4, 4)), "float32")


def test_third_derivatives_of_a_product_of_zeros():
    def f(s):
        return lucid.scatter_reduce(lucid.ones(1), 0, lucid.tensor([0, 0, 0]), s, "prod").sum()

    third = lucid.func.jacrev(lucid.func.hessian(f))(lucid.zeros(3)).numpy()
    places = np.indices((3, 3, 3)).reshape(3, -1).T
    all_differ = [len(set(ijk)) == 3 for ijk in places.tolist()]
    np.testing.assert_array_equal(third.reshape(-1), all_differ)


def test_a_product_over_no_elements_has_a_gradient_of_no_elements():
    x, y = lucid.ones(5, 4, 0), lucid.ones(0, 3)
    gx, gy = lucid.func.grad(lambda x, y: (x @ y).sum(), argnums=(0, 1))(x, y)
    assert (gx.shape, gy.shape) == ((5, 4, 0), (0, 3))


def test_vmap_of_a_batch_norm_that_follows_says_that_it_cannot():
    layer = lucid.nn.BatchNorm1d(3)
    with pytest.raises(GraphError, match="batch_norm.*shared by the examples of vmap"):
        lucid.func.vmap(layer)(lucid.ones(2, 4, 3))
    same(layer.running_mean, np.zeros(3), "float32")
    assert lucid.func.vmap(layer.eval())(lucid.ones(2, 4, 3)).shape == (2, 4, 3)


def test_arguments_that_make_no_sense():
    with pytest.raises(AxisError, match="gradient: an axis appears twice"):
        lucid.gradient(lucid.ones(3, 3), dim=(1, 1))
    with pytest.raises(ShapeError, match="narrow: a 0-d tensor"):
        lucid.narrow(lucid.tensor(1.0), 0, 0, 1)
    with pytest.raises(ArgumentError, match="isclose: rtol=-0.4"):
        lucid.isclose(lucid.ones(2), lucid.ones(2), rtol=-0.4)


def test_rounding_to_decimals_leaves_large_numbers_alone():
    x = np.array([60000.0, 0.25, -np.inf, np.nan], np.float16)
    for f in (lucid.round, lucid.jit(lucid.round, static_argnums=1)):
        np.testing.assert_allclose(f(lucid.tensor(x), 1), [60000.0, 0.2, -np.inf, np.nan], 1e-3)
    same(lucid.round(lucid.tensor([1.5, 1e38]), 400), np.float32([1.5, 1e38]))
    same(lucid.round(lucid.tensor([1.5, 1e38]), -400), np.float32([0.0, 0.0]))


def test_integrals_over_unsigned_points_that_decrease():
    points = lucid.tensor([9, 3, 1], dtype=lucid.uint8)
    assert lucid.trapezoid(lucid.tensor([5.0, 6.0, 4.0]), points).item() == -43.0


def test_bessel_functions_at_infinity():
    x = lucid.tensor([lucid.inf, -lucid.inf])
    same(lucid.special.i0(x), [np.inf, np.inf], "float32")
    same(lucid.special.i1(x), [np.inf, -np.inf], "float32")
    same(lucid.special.spherical_bessel_j0(x), [0.0, 0.0], "float32")
    same(compiled(lucid.special.i0)(x), [np.inf, np.inf], "float32")
    same(compiled(lucid.special.i1)(x), [np.inf, -np.inf], "float32")


def test_quantiles_beside_infinity_are_infinite():
    x = np.array([-np.inf, 1.0, 2.0, np.inf, np.inf])
    q = np.array([0.0, 0.1, 0.25, 0.375, 0.5, 0.7, 0.9, 1.0])
    expected = [-np.inf, -np.inf, 1.0, 1.5, 2.0, np.inf, np.inf, np.inf]
    same(lucid.quantile(lucid.tensor(x), lucid.tensor(q)), expected)
    same(lucid.quantile(lucid.tensor(x), 0.875, interpolation="midpoint"), np.inf)


def test_sinc_of_whole_numbers_is_zero_in_float16_too():
    y = lucid.sinc(lucid.tensor([0.0, 1.0, 2.0, 60000.0], dtype=lucid.float16))
    np.testing.assert_allclose(y.numpy(), [1.0, 0.0, 0.0, 0.0], atol=1e-6)


def test_hardtanh_of_integers_is_of_integers():
    same(lucid.nn.functional.hardtanh(lucid.tensor([-3, 0, 5])), [-1, 0, 1])


X = lucid.tensor(np.arange(6.0).reshape(2, 3))
I = lucid.tensor([0])  # noqa: E741
BY_AXIS = {
    "gather": lambda **kw: lucid.gather(X, index=lucid.tensor([[0], [1]]), **kw),
    "scatter": lambda **kw: lucid.scatter(X, index=lucid.tensor([[0], [1]]), src=9.0, **kw),
    "index_select": lambda **kw: lucid.index_select(X, index=I, **kw),
    "index_add": lambda **kw: lucid.index_add(X, index=I, source=lucid.ones(2, 1).double(), **kw),
    "index_fill": lambda **kw: lucid.index_fill(X, index=I, value=7.0, **kw),
    "select": lambda **kw: X.select(index=1, **kw),
    "narrow": lambda **kw: lucid.narrow(X, start=1, length=2, **kw),
    "select_scatter": lambda **kw: lucid.select_scatter(X, lucid.ones(2), index=0, **kw),
    "trapezoid": lambda **kw: lucid.trapezoid(X, **kw),
    "cumulative_trapezoid": lambda **kw: lucid.cumulative_trapezoid(X, **kw),
    "gradient": lambda **kw: lucid.gradient(X, **kw)[0],
    "renorm": lambda **kw: lucid.renorm(X, p=2, maxnorm=1.0, **kw),
    "unique": lambda **kw: lucid.unique(X, **kw),
    "unflatten": lambda **kw: lucid.unflatten(X, sizes=(3, 1), **kw),
    "split_with_sizes": lambda **kw: lucid.split_with_sizes(X, [1, 2], **kw)[1],
    "vecdot": lambda **kw: lucid.linalg.vecdot(X, X, **kw),
    "cross": lambda **kw: lucid.linalg.cross(X, X + 1, **kw),
}


@pytest.mark.parametrize("name", BY_AXIS)
def test_an_axis_may_be_called_dim_or_axis(name):
    same(BY_AXIS[name](axis=1), BY_AXIS[name](dim=1).numpy())
    with pytest.raises(ArgumentError, match=f"{name}.*dim or axis"):
        BY_AXIS[name](dim=1, axis=1)


def test_an_axis_given_twice_is_refused_by_position_too():
    with pytest.raises(ArgumentError, match="gather: give dim or axis, not both"):
        lucid.gather(X, 1, axis=1, index=lucid.tensor([[0], [1]]))


def test_orders_shapes_and_counts_may_be_named():
    assert lucid.permute(X, dims=(1, 0)).shape == (3, 2)
    assert X.permute(dims=(1, 0)).shape == (3, 2)
    assert lucid.reshape(X, shape=(3, 2)).shape == (3, 2)
    assert lucid.tile(X, dims=(2,)).shape == (2, 6)
    assert X.repeat(repeats=(2, 1)).shape == (4, 3)
    assert X.expand(size=(4, 2, 3)).shape == (4, 2, 3)
    assert lucid.tensordot(a=X, b=X.t(), dims=1).shape == (2, 2)
    assert lucid.searchsorted(lucid.arange(3), values=lucid.tensor([1])).tolist() == [1]
    assert lucid.take(X, index=lucid.tensor([4])).tolist() == [4.0]
    with pytest.raises(ArgumentError, match="permute: give dims once"):
        lucid.permute(X, 1, 0, dims=(1, 0))


def test_the_margin_loss_of_one_target_has_the_shape_of_the_target():
    x, loss = lucid.tensor([0.5, 0.0, 1.0]), lucid.nn.functional.multi_margin_loss
    expected = (max(0, 1 - 0.5 + 0.0) + max(0, 1 - 0.5 + 1.0)) / 3
    for target in (lucid.tensor(0), lucid.tensor([0])):
        y = loss(x, target, reduction="none")
        assert y.shape == target.shape
        np.testing.assert_allclose(y.numpy(), np.full(target.shape, expected), rtol=1e-6)
