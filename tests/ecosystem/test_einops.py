"""einops, through its registered backends and through the array API, on tensors."""

import numpy as np
import pytest

import lucid

pytest.importorskip("einops")
import einops
import einops.array_api

import lucid.compat.einops

X = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: m.rearrange(x, "a b c -> b (a c)"),
        lambda m, x: m.rearrange(x, "a b (c d) -> d b a c", d=2),
        lambda m, x: m.reduce(x, "a b c -> b", "mean"),
        lambda m, x: m.reduce(x, "a b (c 2) -> a c", "max"),
        lambda m, x: m.repeat(x, "a b c -> a (b 2) c"),
        lambda m, x: m.pack([x, x], "a b *")[0],
    ],
)
@pytest.mark.parametrize("module", [einops, einops.array_api])
def test_einops_takes_and_returns_tensors(module, call):
    y = call(module, lucid.tensor(X))
    assert isinstance(y, lucid.Tensor)
    np.testing.assert_allclose(y.numpy(), call(einops, X))


def test_einops_is_differentiated_and_compiled():
    def f(x):
        return (einops.einsum(x, x, "a b c, a d c -> b d") ** 2).sum()

    slope = lucid.func.grad(f)(X)
    np.testing.assert_allclose(
        slope, 4 * np.einsum("bd,adc->abc", np.einsum("abc,adc->bd", X, X), X)
    )
    jitted = lucid.jit(lucid.func.grad(f))
    for scale in (1.0, 2.0, 3.0):
        np.testing.assert_allclose(jitted(scale * X), scale**3 * slope)
