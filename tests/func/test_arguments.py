"""What transforms refuse: structures that do not fit, and derivatives that there are not."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.func as F
from lucid.errors import ArgumentError, DTypeError, ShapeError

# Complex functions

Z = np.array([1 + 2j, 3 - 1j])


def test_jacobians_of_holomorphic_functions_are_complex_derivatives():
    def f(z):
        return lucid.sin(z) * z.flip(0)

    expected = np.diag(np.cos(Z) * Z[::-1]) + np.diag(np.sin(Z))[:, ::-1]
    z = lucid.tensor(Z)
    for transform in (F.jacrev, F.jacfwd, F.jacobian, lambda f: lucid.jit(F.jacrev(f))):
        np.testing.assert_allclose(transform(f)(z).numpy(), expected, rtol=1e-12)
    mapped = F.vmap(F.jacrev(f))(lucid.stack([z, z]))
    np.testing.assert_allclose(mapped.numpy(), [expected] * 2, rtol=1e-12)
    hessian = F.hessian(lambda z: (z**3).sum())(z)
    np.testing.assert_allclose(hessian.numpy(), np.diag(6 * Z), rtol=1e-12)


def test_jacobians_between_real_and_complex_numbers():
    x, z = lucid.tensor([1.0, 2.0], dtype="float64"), lucid.tensor(Z)
    into = F.jacobian(lambda x: x * (1 + 2j))(x)
    np.testing.assert_array_equal(into.numpy(), (1 + 2j) * np.eye(2))
    gradient = F.jacobian(lambda z: (z.abs() ** 2).sum())(z)
    np.testing.assert_allclose(gradient.numpy(), 2 * Z, rtol=1e-12)
    with pytest.raises(DTypeError, match="use jacfwd"):
        F.jacrev(lambda x: x * (1 + 2j))(x)
    with pytest.raises(DTypeError, match="use jacrev"):
        F.jacfwd(lambda z: z.abs())(z)
    with pytest.raises(DTypeError, match="no complex Hessian"):
        F.hessian(lambda z: (z.abs() ** 2).sum())(z)
    with pytest.raises(DTypeError, match="leave out sparsity"):
        F.jacobian(lambda z: z * z, sparsity="auto")(z)


# Arguments that do not fit


def test_an_argument_is_named_once_in_argnums():
    for transform in (F.grad, F.jacrev, F.jacfwd, F.hessian, F.value_and_grad):
        for argnums in ((0, 0), (0, -2), (1, -1)):
            with pytest.raises(ArgumentError, match="names an argument twice"):
                transform(lambda x, y: (x * y).sum(), argnums)(lucid.ones(2), lucid.ones(2))


def test_cotangents_and_tangents_have_the_structure_of_what_they_belong_to():
    x, one = lucid.tensor([1.0, 2.0]), lucid.tensor(1.0)
    _, pull = F.vjp(lambda x: {"a": x * 2, "b": x.sum()}, x)
    fits = [{"a": lucid.ones(2), "b": one}, {"b": 1, "a": np.ones(2)}, {"a": 1.0, "b": 1.0}]
    for ct in fits:
        np.testing.assert_array_equal(pull(ct)[0].numpy(), [3, 3])
    np.testing.assert_array_equal(pull({"a": None, "b": 1.0})[0].numpy(), [1, 1])
    for ct in ({"a": lucid.ones(2), "c": one}, (lucid.ones(2), one), [lucid.ones(2), one]):
        with pytest.raises(ShapeError, match=r"expected \{'a': \*, 'b': \*\}"):
            pull(ct)
    for ct in ({"a": lucid.ones(2)}, one, None):
        with pytest.raises(ShapeError, match="expected 2"):
            pull(ct)
    with pytest.raises(DTypeError, match="imaginary part"):
        pull({"a": lucid.tensor([1j, 1]), "b": one})
    with pytest.raises(DTypeError, match="imaginary part"):
        F.jvp(lambda x: x, (x,), (lucid.tensor([1j, 1]),))
    with pytest.raises(ShapeError, match="both tuples"):
        F.jvp(lambda x: x, (x,), x)
    with pytest.raises(ShapeError, match="expected"):
        F.jvp(lambda x: x["a"], ({"a": x},), ({"b": x},))
    _, pull = F.vjp(lambda x: (x * 2,), x)
    for ct in (lucid.ones(2), (lucid.ones(2),), [lucid.ones(2)]):
        np.testing.assert_array_equal(pull(ct)[0].numpy(), [2, 2])
