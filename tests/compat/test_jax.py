"""lucid.compat.jax: programs of JAX with their imports changed."""

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
