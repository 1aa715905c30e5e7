"""Derivatives of derivatives for another argument, which the inner one reads through views."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.func as F

rng = np.random.default_rng(0)
X, W = rng.standard_normal((3, 3)), rng.standard_normal((3, 3))


def double(x):
    return lucid.as_tensor(np.asarray(x, "float64"))


FUNCTIONS = {
    "matmul": lambda x, w: lucid.sin(x @ w).sum(),
    "slices": lambda x, w: (x[1:] * w[:2] * x[:2]).sum() + (x[0] * w.T[1]).sum(),
    "transpose": lambda x, w: (x.T * w * x).sum(),
    "flip": lambda x, w: (x.flip(0) * w * x).sum(),
    "reshape": lambda x, w: ((x.reshape(9) * w.reshape(9)) ** 2).sum(),
    "gather": lambda x, w: (x[[0, 1]] @ w @ x).sum(),
}
INNER = {
    "grad": lambda f, x, w: F.grad(f, argnums=1)(x, w),
    "jacrev": lambda f, x, w: F.jacrev(f, argnums=1)(x, w),
    "jacfwd": lambda f, x, w: F.jacfwd(f, argnums=1)(x, w),
    "vjp": lambda f, x, w: F.vjp(lambda w: f(x, w), w)[1](double(1.0))[0],
    "jvp": lambda f, x, w: F.jvp(lambda w: f(x, w), (w,), (w,))[1],
    "linearize": lambda f, x, w: F.linearize(lambda w: f(x, w), w)[1](w),
}


def by_backward(g, x):
    x.requires_grad_()
    g(x).backward()
    return x.grad


OUTER = {
    "grad": lambda g, x: F.grad(g)(x),
    "jacfwd": lambda g, x: F.jacfwd(g)(x),
    "backward": by_backward,
}


def differences(g, x, eps=1e-6):
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[i] = eps
        out[i] = (float(g(double(x + step))) - float(g(double(x - step)))) / (2 * eps)
    return out


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_other_argument_has_its_derivative(name, inner):
    def g(x):
        return (INNER[inner](FUNCTIONS[name], x, double(W)) ** 2).sum()

    expected = differences(g, X)
    for outer in OUTER.values():
        np.testing.assert_allclose(np.asarray(outer(g, double(X))), expected, atol=1e-5, rtol=1e-5)
