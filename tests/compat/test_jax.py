"""lucid.compat.jax: programs of JAX with their imports changed."""

from functools import partial

import lucid.compat.jax.tree as tree
import numpy as np
import scipy.special

import lucid.compat.jax as jax
import lucid.compat.jax.numpy as jnp
from lucid.compat.jax import grad, jit, lax, random, vmap
from lucid.compat.jax.tree_util import tree_leaves, tree_map


def init(key, sizes):
    keys = random.split(key, len(sizes) - 1)
    return [
        (0.5 * random.normal(k, (m, n)), jnp.zeros(n)) for k, m, n in zip(keys, sizes, sizes[1:])
    ]


def predict(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(jnp.dot(x, w) + b)
    w, b = params[-1]
    return jnp.dot(x, w) + b


def loss(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


@jit
def step(params, x, y):
    return tree_map(lambda p, g: p - 0.1 * g, params, grad(loss)(params, x, y))


def test_a_network_is_trained():
    key, sub = random.split(random.PRNGKey(0))
    params, x = init(sub, [2, 8, 1]), random.normal(key, (32, 2))
    y = jnp.sum(x, axis=1, keepdims=True)
    start = loss(params, x, y).item()
    for _ in range(100):
        params = step(params, x, y)
    assert loss(params, x, y).item() < 0.1 * start
    assert len(tree_leaves(params)) == len(tree.leaves(params)) == 4


def test_lax_has_control_flow_slices_and_collectives():
    assert lax.fori_loop(0, 4, lambda i, c: c + i, 0).item() == 6
    assert lax.cond(True, lambda x: x, lambda x: -x, jnp.array(1.0)).item() == 1.0
    assert lax.dynamic_slice(jnp.arange(10), (8,), (3,)).tolist() == [7, 8, 9]
    grid = lax.dynamic_update_slice(jnp.zeros((3, 3)), jnp.ones((2, 2)), (2, 0))
    assert grid.tolist() == [[0, 0, 0], [1, 1, 0], [1, 1, 0]]
    assert lax.dynamic_index_in_dim(jnp.arange(4), 2, keepdims=False).item() == 2
    assert vmap(lambda x: lax.psum(x, "i"), axis_name="i")(jnp.arange(3)).tolist() == [3] * 3
    assert lax.map(lambda x: x * 2, jnp.arange(3)).tolist() == [0, 2, 4]
    assert lax.top_k(jnp.array([1.0, 3.0, 2.0]), 2)[1].tolist() == [1, 2]


def test_nn_has_the_defaults_of_jax():
    x = np.linspace(-2, 2, 5).astype("float32")
    cdf = 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(jax.nn.gelu(jnp.array(x)), x * cdf, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jax.nn.softmax(jnp.array(x)), scipy.special.softmax(x), rtol=1e-6)
    np.testing.assert_allclose(
        jax.nn.logsumexp(jnp.array(x)).item(), scipy.special.logsumexp(x), rtol=1e-6
    )
    assert jax.nn.one_hot(jnp.array([0, 5]), 2).tolist() == [[1.0, 0.0], [0.0, 0.0]]
    assert jax.nn.swish(jnp.array(0.0)).item() == 0.0


def test_random_numbers_are_functions_of_keys_and_have_their_distributions():
    key, n = random.key(1), 4000
    assert random.normal(key, (3,)).tolist() == random.normal(key, (3,)).tolist()
    assert random.normal(random.fold_in(key, 1)).item() != random.normal(key).item()
    assert sorted(random.permutation(key, 5).tolist()) == [0, 1, 2, 3, 4]
    assert sorted(random.choice(key, 4, (4,), replace=False).tolist()) == [0, 1, 2, 3]
    p = np.array([0.1, 0.2, 0.7], "float32")
    drawn = random.choice(key, 3, (n,), p=jnp.array(p)).numpy()
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / n, p, atol=0.03)
    drawn = random.categorical(key, jnp.log(jnp.array(p)), shape=(n,)).numpy()
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / n, p, atol=0.03)
    means = {"exponential": 1.0, "gumbel": np.euler_gamma, "laplace": 0.0}
    for name, mean in means.items():
        assert abs(getattr(random, name)(key, (n,)).mean().item() - mean) < 0.08
    cut = random.truncated_normal(key, -1, 0.5, (n,)).numpy()
    assert -1 <= cut.min() and cut.max() <= 0.5


def test_boilerplate_is_there():
    assert isinstance(jax.device_get({"a": jnp.ones(2)})["a"], np.ndarray)
    assert isinstance(jax.device_put(np.ones(2)), jax.Array) and jax.devices() == ["cpu"]
    jax.config.update("jax_enable_x64", True)
    assert jax.eval_shape(lambda x: x @ x.T, jnp.ones((2, 3))).shape == (2, 2)
    assert jax.hessian(lambda x: jnp.sum(x**3))(jnp.array([1.0, 2.0])).tolist() == [[6, 0], [0, 12]]


X = np.random.default_rng(0).normal(size=(2, 3, 5, 6))


def test_slices_padding_and_sorting_of_lax():
    x = jnp.asarray(X[0, 0])
    np.testing.assert_allclose(lax.slice(x, (1, 0), (5, 6), (2, 3)), X[0, 0][1:5:2, 0:6:3])
    np.testing.assert_allclose(lax.slice_in_dim(x, 1, 4, axis=1), X[0, 0][:, 1:4])
    np.testing.assert_allclose(lax.rev(x, (1,)), X[0, 0][:, ::-1])
    np.testing.assert_allclose(lax.concatenate([x, x], 1), np.concatenate([X[0, 0]] * 2, 1))
    wide = np.full((2 + 5 + 4 + 1, 4), 7.0)
    wide[2:11:2] = X[0, 0][:, 1:5]
    np.testing.assert_allclose(lax.pad(x, 7.0, [(2, 1, 1), (-1, -1, 0)]), wide)
    keys, values = lax.sort_key_val(jnp.asarray([3, 1, 2]), jnp.asarray([10, 20, 30]))
    assert keys.tolist() == [1, 2, 3] and values.tolist() == [20, 30, 10]
    first, second, third = lax.sort(
        tuple(jnp.asarray(v) for v in ([1, 0, 1, 0], [5, 6, 4, 3], [0, 1, 2, 3])), num_keys=2
    )
    assert [v.tolist() for v in (first, second, third)] == [
        [0, 0, 1, 1], [3, 6, 4, 5], [3, 1, 2, 0],
    ]  # fmt: skip
    found = vmap(lambda v, i: lax.dynamic_update_index_in_dim(v, -1.0, i, 0))(
        x, jnp.asarray([0, 1, 2, 3, 9])
    )
    want = X[0, 0].copy()
    want[range(5), [0, 1, 2, 3, 5]] = -1.0  # a place that is too large is clamped
    np.testing.assert_allclose(found, want)


def test_contractions_and_gathers_of_lax():
    a, b = jnp.asarray(X[0]), jnp.asarray(X[1])
    got = lax.dot_general(a, b, (((2,), (2,)), ((0,), (0,))))
    np.testing.assert_allclose(got, np.einsum("bij,bkj->bik", X[0], X[1]))
    starts = jnp.asarray([[1], [4], [0]])
    rows = lax.GatherDimensionNumbers(
        offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    np.testing.assert_allclose(lax.gather(a[0], starts, rows, (1, 6)), X[0, 0][[1, 4, 0]])
    blocks = lax.GatherDimensionNumbers((0, 2), (), (1,))
    got = lax.gather(a[0], starts, blocks, (5, 2))
    np.testing.assert_allclose(got, np.stack([X[0, 0][:, i : i + 2] for i in (1, 4, 0)], 1))


def test_convolutions_of_lax_for_other_layouts_padding_and_dilation():
    w = np.random.default_rng(1).normal(size=(4, 3, 2, 3))
    x, k = jnp.asarray(X), jnp.asarray(w)

    def direct(x, w, stride=(1, 1)):
        views = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
        return np.einsum("nchwij,ocij->nohw", views[:, :, :: stride[0], :: stride[1]], w)

    np.testing.assert_allclose(lax.conv(x, k, (2, 1), "VALID"), direct(X, w, (2, 1)), atol=1e-12)
    padded = np.pad(X, ((0, 0), (0, 0), (0, 1), (1, 1)))
    got = lax.conv_general_dilated(
        x.transpose(1, 2).transpose(2, 3), k.permute(2, 3, 1, 0), (1, 1), "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )  # fmt: skip
    np.testing.assert_allclose(got.permute(0, 3, 1, 2), direct(padded, w), atol=1e-12)
    spread = np.zeros((2, 3, 9, 6))
    spread[:, :, ::2] = X
    holes = np.zeros((4, 3, 2, 5))
    holes[..., ::2] = w
    got = lax.conv_general_dilated(
        x, k, (1, 1), [(0, 0), (0, 0)], lhs_dilation=(2, 1), rhs_dilation=(1, 2)
    )
    np.testing.assert_allclose(got, direct(spread, holes), atol=1e-12)


def test_windows_are_reduced_under_vmap_and_grad():
    views = np.lib.stride_tricks.sliding_window_view(X, (1, 1, 2, 2))[:, :, ::2, ::3]
    for computation, init, want in (
        (lax.max, -np.inf, views.max((-1, -2, -3, -4))),
        (lax.add, 0.0, views.sum((-1, -2, -3, -4))),
    ):
        sizes = {"window_dimensions": (1, 2, 2), "window_strides": (1, 2, 3)}
        pool = partial(lax.reduce_window, init_value=init, computation=computation, **sizes)
        np.testing.assert_allclose(vmap(lambda x, pool=pool: pool(x))(jnp.asarray(X)), want)
    g = grad(lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (2, 2), "VALID").sum())
    want = np.zeros((5, 6))
    want[:4] = 1.0
    np.testing.assert_allclose(g(jnp.asarray(X[0, 0])), want)


def test_factorizations_of_lax():
    a = X[0, 0] @ X[0, 0].T + 5 * np.eye(5)
    low = np.linalg.cholesky(a)
    np.testing.assert_allclose(lax.linalg.cholesky(jnp.asarray(a)), low)
    b = jnp.asarray(X[0, 1].T)
    got = lax.linalg.triangular_solve(jnp.asarray(low), b, lower=True, transpose_a=True)
    np.testing.assert_allclose(got @ low.T, X[0, 1].T)
    below, main, above = X[0, 2][:3]
    full = np.diag(main + 5) + np.diag(below[1:], -1) + np.diag(above[:-1], 1)
    got = lax.linalg.tridiagonal_solve(below, main + 5, above, X[1, 0].T)
    np.testing.assert_allclose(got, np.linalg.solve(full, X[1, 0].T))


def test_vmap_maps_arguments_by_keyword_and_seeds_of_keys():
    got = vmap(lambda a, b: (2 * a, 3 * b))(a=jnp.asarray([1, 2]), b=jnp.asarray([3, 4]))
    assert [v.tolist() for v in got] == [[2, 4], [9, 12]]
    seeds = jnp.asarray([3, 2**33 + 1, -1])
    keys = [random.PRNGKey(s).tolist() for s in (3, 2**33 + 1, -1)]
    assert vmap(random.PRNGKey)(seeds).tolist() == keys
    assert jit(random.PRNGKey)(seeds[1]).tolist() == keys[1]


def test_an_exchange_over_two_named_axes_is_one_over_their_product():
    x = np.arange(2 * 3 * 6.0).reshape(2, 3, 6)
    inner = vmap(lambda v: lax.all_to_all(v, ("i", "j"), 0, 0), axis_name="j")
    got = vmap(inner, axis_name="i")(jnp.asarray(x))
    np.testing.assert_allclose(got, x.reshape(6, 6).T.reshape(2, 3, 6))
    found = vmap(lambda v: lax.pargmax(v, "i"), axis_name="i")(jnp.asarray([1.0, 5.0, 5.0]))
    assert found.tolist() == [1, 1, 1]


def test_functions_of_lax_have_the_arguments_of_jax():
    """`lucid.clamp`, `round`, `div` and `cummax` mean something else."""
    x = np.array([[-2.5, -0.5, 0.5], [1.5, 2.4, 0.49999997]], "float32")
    t = jnp.array(x)
    assert lax.clamp(-1.0, t, 1.0).tolist() == np.clip(x, -1, 1).tolist()
    assert lax.round(t).tolist() == [[-3.0, -1.0, 1.0], [2.0, 2.0, 0.0]]
    assert lax.round(t, 1).tolist() == np.round(x).tolist()
    assert lax.div(jnp.array([7, -7]), 2).tolist() == [3, -3]
    assert lax.div(jnp.array([7.0]), 2.0).tolist() == [3.5]
    np.testing.assert_allclose(lax.cumsum(t), np.cumsum(x, 0))
    np.testing.assert_allclose(lax.cumprod(t, 1), np.cumprod(x, 1))
    np.testing.assert_allclose(lax.cummax(t, axis=1), np.maximum.accumulate(x, 1))
    backward = np.minimum.accumulate(x[:, ::-1], 1)[:, ::-1]
    np.testing.assert_allclose(lax.cummin(t, axis=1, reverse=True), backward)
    assert lax.argmax(t, 1, jnp.int32).tolist() == [2, 1]
    assert lax.argmax(t, 1, jnp.int32).dtype == jnp.int32
    assert lax.argmin(t, 0, jnp.int32).tolist() == [0, 0, 1]


def test_dtypes_of_jax_numpy_make_numbers():
    assert (jnp.ones(2) * jnp.float32(2.0)).tolist() == [2.0, 2.0]
    assert jnp.zeros(2, jnp.int32).dtype == jnp.int32 and jnp.float64(1) == 1.0


def test_blocks_that_begin_before_the_first_element_count_from_the_end():
    x = jnp.arange(5)
    assert lax.dynamic_slice(x, (-2,), (2,)).tolist() == [3, 4]
    assert lax.dynamic_slice(x, (-1,), (2,)).tolist() == [3, 4]  # clamped
    assert lax.dynamic_slice(x, (-9,), (2,)).tolist() == [0, 1]
    assert lax.dynamic_update_slice(x, jnp.array([7, 8]), (-3,)).tolist() == [0, 1, 7, 8, 4]
    assert lax.dynamic_update_index_in_dim(x, jnp.array([9]), -1, 0).tolist() == [0, 1, 2, 3, 9]
