"""Every word of up to three letters over {grad, jvp, vjp, vmap, jacfwd, jacrev}, on functions of
every kind.

A letter turns a function of a vector into another one, with fixed tangents and cotangents. The
expected values come from NumPy: the same function written there, differentiated by a five-point
difference of fourth order, which is exact to about 1e-7 when nested three times.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from scipy import special

import lucid
import lucid.func as F

N = 3
POINT = np.array([0.7, -1.1, 1.6])
MATRIX = np.array([[0.5, -1.0, 0.3], [0.2, 0.8, -0.6], [-0.4, 0.1, 0.9]])
WEIGHTS = np.array([0.3, -0.7, 1.1])
SCALES = np.array([1.0, 0.8])


def tensor(array) -> lucid.Tensor:
    return lucid.as_tensor(np.asarray(array))


class Pair(NamedTuple):
    """One function twice: of a Tensor of shape (3,), and of arrays of shape (batch, 3) in NumPy."""

    lucid: object
    numpy: object


def in_place(x):
    y = x.clone()
    y[0] = x[1] * x[2]
    y += x
    y *= y
    return y


def in_place_numpy(x):
    y = np.stack([x[:, 1] * x[:, 2] + x[:, 0], 2 * x[:, 1], 2 * x[:, 2]], -1)
    return y * y


def tree(x):
    parts = {"a": (x[:2], x[2]), "b": [x.sum()]}
    return parts["a"][0] * parts["a"][1] + parts["b"][0].sin()


PAIRS = {
    "squares": Pair(
        lambda x: (tensor(WEIGHTS) * x**2).sum() + x.prod(),
        lambda x: (WEIGHTS * x**2).sum(-1) + x.prod(-1),
    ),
    "elementwise": Pair(
        lambda x: lucid.sin(x) * lucid.exp(-x * x) + 1 / (x * x + 1),
        lambda x: np.sin(x) * np.exp(-x * x) + 1 / (x * x + 1),
    ),
    "broadcast": Pair(
        lambda x: (x[:, None] * x + 2.0 * x[None] ** 2).sum(dim=0) * x[:1],
        lambda x: (x[:, :, None] * x[:, None] + 2 * x[:, None] ** 2).sum(1) * x[:, :1],
    ),
    "matmul": Pair(
        lambda x: tensor(MATRIX) @ lucid.tanh(tensor(MATRIX).T @ x) + x @ x,
        lambda x: np.tanh(x @ MATRIX) @ MATRIX.T + (x * x).sum(-1, keepdims=True),
    ),
    "index": Pair(
        lambda x: x[[0, 0, 2, 1]] * x[-1] * x[[1, 2, 2, 0]],
        lambda x: x[:, [0, 0, 2, 1]] * x[:, -1:] * x[:, [1, 2, 2, 0]],
    ),
    "where": Pair(
        lambda x: lucid.where(x > 0, x**3, lucid.cos(x)) * x.sum(),
        lambda x: np.where(x > 0, x**3, np.cos(x)) * x.sum(-1, keepdims=True),
    ),
    "max": Pair(
        lambda x: x.max() ** 2 * x.min() + lucid.maximum(x, x * x).sum(),
        lambda x: x.max(-1) ** 2 * x.min(-1) + np.maximum(x, x * x).sum(-1),
    ),
    "sort": Pair(
        lambda x: lucid.sort(x * x)[0] * tensor(WEIGHTS) * x,
        lambda x: np.sort(x * x, -1) * WEIGHTS * x,
    ),
    "cumulative": Pair(
        lambda x: x.cumsum(0) * x.cumprod(0),
        lambda x: x.cumsum(-1) * x.cumprod(-1),
    ),
    "softmax": Pair(
        lambda x: lucid.softmax(2.0 * x, 0) * lucid.logsumexp(x, 0),
        lambda x: special.softmax(2 * x, -1) * special.logsumexp(x, -1, keepdims=True),
    ),
    "complex": Pair(
        lambda x: lucid.abs(x * lucid.exp(1j * x) + x.sum()) ** 2 + lucid.exp(2j * x).imag,
        lambda x: np.abs(x * np.exp(1j * x) + x.sum(-1, keepdims=True)) ** 2 + np.sin(2 * x),
    ),
    "norm": Pair(
        lambda x: lucid.sqrt((x * x).sum()) + lucid.log(x * x).sum() / x[0],
        lambda x: np.sqrt((x * x).sum(-1)) + np.log(x * x).sum(-1) / x[:, 0],
    ),
    "constant": Pair(
        lambda x: lucid.stack([x[0] * x[1], lucid.as_tensor(2.5, dtype="float64")]),
        lambda x: np.stack([x[:, 0] * x[:, 1], np.full(len(x), 2.5)], -1),
    ),
    "inplace": Pair(in_place, in_place_numpy),
    "tree": Pair(tree, lambda x: x[:, :2] * x[:, 2:] + np.sin(x.sum(-1, keepdims=True))),
}

LETTERS = ("grad", "jvp", "vjp", "vmap", "jacfwd", "jacrev")
WORDS = [word for n in (1, 2, 3) for word in product(LETTERS, repeat=n)]


def weights(*shape: int) -> np.ndarray:
    """A fixed array of a shape: every cotangent of that shape in every word."""
    return np.sin(1.0 + np.arange(np.prod(shape, dtype=int))).reshape(shape)


def with_lucid(letter, f):
    """The function that a letter makes of `f`, by the transform."""
    match letter:
        case "grad":
            return F.grad(lambda x: weighted_sum(f(x)))
        case "jvp":
            return lambda x: F.jvp(f, (x,), (tensor(WEIGHTS),))[1]
        case "vjp":
            return partial(pulled, f)
        case "vmap":
            return lambda x: F.vmap(f)(tensor(SCALES)[:, None] * x)
        case "jacfwd":
            return F.jacfwd(f)
        case "jacrev":
            return F.jacrev(f)


def weighted_sum(y):
    return (y * tensor(weights(*y.shape))).sum() if y.ndim else y


def pulled(f, x):
    y, pull = F.vjp(f, x)
    return pull(tensor(weights(*y.shape)))[0]


STEPS = np.array([-2.0, -1.0, 1.0, 2.0])
COEFFICIENTS = np.array([1.0, -8.0, 8.0, -1.0]) / 12
H = 1e-2


def along(f, x: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Derivatives of a batched function along every direction: (batch, direction, ...)."""
    points = x[:, None, None] + H * STEPS[:, None] * directions[:, None]
    values = f(points.reshape(-1, N)).reshape(len(x), len(directions), 4, -1)
    out = np.tensordot(values, COEFFICIENTS, ((2,), (0,))) / H
    return out.reshape(len(x), len(directions), *f(x).shape[1:])


def with_numpy(letter, f):
    """The function that a letter makes of a batched NumPy function, by differences."""
    match letter:
        case "jvp":
            return lambda x: along(f, x, WEIGHTS[None])[:, 0]
        case "vmap":
            return lambda x: np.stack([f(x * s) for s in SCALES], 1)
        case "grad" | "vjp":
            return partial(pulled_by_differences, letter, f)
        case _:
            return lambda x: np.moveaxis(along(f, x, np.eye(N)), 1, -1)


def pulled_by_differences(letter, f, x):
    jacobian = along(f, x, np.eye(N))
    out = jacobian.shape[2:]
    u = np.ones(()) if letter == "grad" and out == () else weights(*out)
    return np.tensordot(jacobian, u, out and len(out)) if out else jacobian * u


def canonical(word):
    """Words that mean the same to NumPy share their expected value."""
    return tuple("jacfwd" if letter == "jacrev" else letter for letter in word)


@cache
def expected(name, word):
    f = PAIRS[name].numpy
    for letter in reversed(word):
        f = with_numpy(letter, f)
    return f(POINT[None])[0]


@pytest.mark.parametrize("word", WORDS, ids=".".join)
@pytest.mark.parametrize("name", PAIRS)
def test_word_equals_its_finite_differences(name, word):
    f = PAIRS[name].lucid
    for letter in reversed(word):
        f = with_lucid(letter, f)
    actual = f(tensor(POINT))
    wanted = expected(name, canonical(word))
    assert actual.shape == wanted.shape
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    np.testing.assert_allclose(actual.numpy(), wanted, rtol=2e-5, atol=2e-5 * scale)


@pytest.mark.parametrize("name", PAIRS)
def test_value_is_that_of_numpy(name):
    wanted = PAIRS[name].numpy(POINT[None])[0]
    np.testing.assert_allclose(PAIRS[name].lucid(tensor(POINT)).numpy(), wanted, rtol=1e-12)
