"""The neural tangent kernel with vmap: JAX's program with its imports changed.

The kernel of two inputs is the product of the gradients of the network in its parameters; kernel
regression with it predicts what training by small steps of gradient descent would.
"""

import lucid.compat.jax as jax
import lucid.compat.jax.numpy as jnp
from lucid.compat.jax import grad, jit, random, vmap
from lucid.compat.jax.tree_util import tree_leaves, tree_map

WIDTH = 256


def init(key):
    k1, k2 = random.split(key)
    return {"w": random.normal(k1, (1, WIDTH)), "b": random.normal(k2, (WIDTH,)),
            "a": random.normal(random.fold_in(key, 1), (WIDTH,))}  # fmt: skip


def network(params, x):
    return jnp.dot(jnp.tanh(x @ params["w"] + params["b"]), params["a"]) / WIDTH**0.5


def entry(params, x1, x2):
    """One entry of the kernel: the gradients' product, over all parameters."""
    g1, g2 = grad(network)(params, x1), grad(network)(params, x2)
    return sum(tree_leaves(tree_map(lambda u, v: jnp.sum(u * v), g1, g2)))


kernel = jit(vmap(vmap(entry, (None, None, 0)), (None, 0, None)))


def main():
    params = init(random.PRNGKey(0))
    train = jnp.linspace(-2.0, 2.0, 9)[:, None]
    test = jnp.linspace(-1.9, 1.9, 20)[:, None]
    target, truth = jnp.sin(train[:, 0]), jnp.sin(test[:, 0])
    start, at_test = vmap(network, (None, 0))(params, train), vmap(network, (None, 0))(params, test)
    weights = jnp.linalg.solve(kernel(params, train, train) + 1e-4 * jnp.eye(9), target - start)
    error = jnp.max(jnp.abs(at_test + kernel(params, test, train) @ weights - truth)).item()
    print(f"largest error of the kernel's prediction of sin: {error:.4f}")
    jacobian = jax.jacrev(lambda p: vmap(network, (None, 0))(p, train))(params)
    rows = jnp.concatenate([j.reshape(9, -1) for j in tree_leaves(jacobian)], axis=1)
    gap = jnp.max(jnp.abs(rows @ rows.T - kernel(params, train, train))).item()
    return error, gap


if __name__ == "__main__":
    main()
