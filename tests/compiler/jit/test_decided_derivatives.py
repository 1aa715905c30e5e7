"""Derivatives of what a compiled function decides: by a maximum, a mask, a kink, a rounding.

Compiled code and NumPy differ in the last bit of `exp`, so a derivative that computes an operand
again must not compare it with a result that was stored. Expected values are formulas, by NumPy.
"""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.func import checkpoint, grad, jvp

SHAPES = [(3, 4), (33, 100), (200, 700)]


def values(shape, dtype, seed=0):
    """Random numbers whose largest and smallest in a row stand apart, in float16 too."""
    rng = np.random.default_rng(seed)
    x = 2 * np.tanh(rng.normal(size=shape))
    for row in x:
        low, high = rng.choice(shape[1], 2, replace=False)
        row[low], row[high] = rng.uniform(-2.9, -2.5), rng.uniform(2.5, 2.9)
    return x.astype(dtype)


def first(extreme):
    """exp at the extreme elements of each row, 0 elsewhere: the gradient of amax(exp(x), 1)."""

    def gradient(x):
        return np.where(x == extreme(x, axis=1, keepdims=True), np.exp(x), 0)

    return gradient


def chosen(x):
    e = lucid.exp(x)
    return lucid.where(e == lucid.amax(e, 1, keepdim=True), e, 0.0).sum()


def steps(x):
    e = lucid.exp(x)
    return (lucid.floor(e / lucid.amax(e, 1, keepdim=True)) * e).sum()


def below(x):
    e = lucid.exp(x)
    return (e - lucid.abs(e - lucid.amax(e, 1, keepdim=True).detach())).sum()


CASES = {
    "amax": (lambda x: lucid.amax(lucid.exp(x), 1).sum(), first(np.max)),
    "amin": (lambda x: lucid.amin(lucid.exp(x), 1).sum(), first(np.min)),
    "max": (lambda x: lucid.max(lucid.exp(x), dim=1)[0].sum(), first(np.max)),
    "sort": (lambda x: lucid.sort(lucid.exp(x), 1)[0][:, -1].sum(), first(np.max)),
    "cummax": (lambda x: lucid.cummax(lucid.exp(x), 1)[0][:, -1].sum(), first(np.max)),
    "norm": (lambda x: lucid.linalg.norm(lucid.exp(x), np.inf, 1).sum(), first(np.max)),
    "mask": (chosen, first(np.max)),
    "floor": (steps, first(np.max)),
    "abs": (
        below,
        lambda x: np.where(x == x.max(1, keepdims=True), np.exp(x), 2 * np.exp(x)),
    ),
    "scatter": (
        lambda x: lucid.scatter_reduce(
            lucid.zeros(len(x), 1, dtype=x.dtype), 1, lucid.zeros(*x.shape, dtype="int64"),
            lucid.exp(x), "amax",
        ).sum(),
        first(np.max),
    ),
}  # fmt: skip


def assert_near(got, want):
    eps = float(np.finfo(got.dtype).eps)
    np.testing.assert_allclose(got.numpy(), want, rtol=8 * eps, atol=eps)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_the_gradient_of_a_jitted_choice(name, shape, dtype):
    f, gradient = CASES[name]
    outside, inside = grad(lucid.jit(f)), lucid.jit(grad(f))
    for seed in range(3):
        x = values(shape, dtype, seed)
        want = gradient(x.astype("float64") if dtype != "float16" else x.astype("float32"))
        assert_near(outside(lucid.tensor(x)), want.astype(dtype))
        assert_near(inside(lucid.tensor(x)), want.astype(dtype))


@pytest.mark.parametrize("name", CASES)
def test_the_tangent_of_a_jitted_choice(name):
    f, gradient = CASES[name]
    jitted = lucid.jit(f)
    for seed in range(3):
        x, t = values((33, 100), "float64", seed), values((33, 100), "float64", seed + 10)
        _, tangent = jvp(jitted, (lucid.tensor(x),), (lucid.tensor(t),))
        np.testing.assert_allclose(tangent.numpy(), (gradient(x) * t).sum(), rtol=1e-10)


def test_elements_that_tie_share_under_jit():
    jitted = grad(lucid.jit(lambda x: lucid.amax(lucid.exp(x), 1).sum()))
    x = lucid.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    e2, e3 = np.exp(2.0), np.exp(3.0)
    for _ in range(3):
        want = [[0, e3 / 2, e3 / 2], [e2 / 3] * 3]
        np.testing.assert_allclose(jitted(x).numpy(), want, rtol=1e-6)


def test_a_tie_of_maximum_is_halved_under_jit():
    def f(x):
        e = lucid.exp(x)
        return lucid.maximum(e, lucid.amax(e, 1, keepdim=True).detach()).sum()

    x = values((33, 100), "float64")
    want = np.where(x == x.max(1, keepdims=True), np.exp(x) / 2, 0)
    jitted = grad(lucid.jit(f))
    for _ in range(3):
        np.testing.assert_allclose(jitted(lucid.tensor(x)).numpy(), want, rtol=1e-10)


@pytest.mark.parametrize("policy", ["nothing", "dots", "everything", "max"])
@pytest.mark.parametrize("name", CASES)
def test_a_checkpoint_decides_as_its_function_did(name, policy):
    f, gradient = CASES[name]
    keep = (lambda eqn: eqn.op.name == "max") if policy == "max" else policy
    kept = checkpoint(f, policy=keep)
    x = values((33, 100), "float64")
    inside, outside = lucid.jit(grad(kept)), grad(lucid.jit(kept))
    for _ in range(3):
        for g in (grad(kept), inside, outside):
            np.testing.assert_allclose(g(lucid.tensor(x)).numpy(), gradient(x), rtol=1e-10)


def test_second_derivatives_of_a_jitted_maximum():
    hessian = lucid.func.hessian(lucid.jit(lambda x: lucid.amax(lucid.exp(2 * x))))
    x = np.array([0.1, 1.3, -0.7])
    for _ in range(3):
        want = np.diag(np.where(x == x.max(), 4 * np.exp(2 * x), 0))
        np.testing.assert_allclose(hessian(lucid.tensor(x)).numpy(), want, rtol=1e-10)


LOOPS = {
    "fori_loop": lambda x: lucid.func.fori_loop(0, 3, lambda i, c: lucid.sin(c), x),
    "while_loop": lambda x: lucid.func.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, lucid.sin(s[1])), (0, x)
    )[1],
    "scan": lambda x: lucid.func.scan(lambda c, i: (lucid.sin(c), i + 1), x, lucid.arange(3))[0],
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("extreme", ["amin", "amax"])
def test_the_extreme_of_a_loop_is_one_of_its_values(loop, extreme):
    """The derivative computed the loop anew, and looked for the extreme of the loop before."""
    x, v = np.array([0.3, 1.2, -0.7, 0.9]), np.array([1.0, -2.0, 0.5, 3.0])
    pick = int((np.argmin if extreme == "amin" else np.argmax)(np.sin(np.sin(np.sin(x)))))

    def slope(x):
        inner = [x, np.sin(x), np.sin(np.sin(x)), np.sin(np.sin(np.sin(x)))]
        return np.prod(np.cos(inner))

    expected = np.zeros(4)
    expected[pick] = (slope(x[pick] + 1e-5) - slope(x[pick] - 1e-5)) / 2e-5 * v[pick]
    gradient = lucid.jit(grad(lambda x: lucid.sin(getattr(lucid, extreme)(LOOPS[loop](x), 0))))
    product = lucid.jit(grad(lambda x: (gradient(x) * lucid.as_tensor(v)).sum()))
    for _ in range(3):
        along = jvp(gradient, (lucid.as_tensor(x),), (lucid.as_tensor(v),))[1]
        np.testing.assert_allclose(np.asarray(along), expected, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(
            np.asarray(product(lucid.as_tensor(x))), expected, rtol=1e-8, atol=1e-12
        )
