"""ldl_factor and ldl_solve of matrices whose rows are exchanged, and their derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import LinAlgError
from tests.compiled import compiled

A = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 4.0], [1.0, 4.0, 0.5]])
B = np.arange(6.0).reshape(3, 2) - 2


def solved(a, b, hermitian=False):
    LD, pivots = lucid.linalg.ldl_factor(lucid.tensor(a), hermitian=hermitian)
    return LD, pivots, lucid.linalg.ldl_solve(LD, pivots, b, hermitian=hermitian)


@pytest.mark.parametrize("hermitian", [False, True])
def test_a_block_of_two_rows_solves_the_system(hermitian):
    skew = np.array([[0, 1, 2], [-1, 0, 0.5], [-2, -0.5, 0]])
    a = A + 1j * (skew if hermitian else A / 2)
    _, pivots, x = solved(a, lucid.tensor(B + 0j), hermitian)
    assert (pivots.numpy() < 0).any()
    np.testing.assert_allclose(x.numpy(), np.linalg.solve(a, B), rtol=1e-10)


def test_batches_broadcast_and_vmap_is_the_loop():
    both = np.stack([A, A + np.eye(3)])
    expected = np.linalg.solve(both, np.stack([B, B]))
    np.testing.assert_allclose(solved(both, lucid.tensor(B))[2].numpy(), expected, rtol=1e-10)
    LD, pivots = lucid.linalg.ldl_factor(lucid.tensor(both))
    each = lucid.vmap(lucid.linalg.ldl_solve, (0, 0, None))(LD, pivots, lucid.tensor(B))
    np.testing.assert_allclose(each.numpy(), expected, rtol=1e-10)
    again = compiled(lucid.linalg.ldl_solve)(LD, pivots, lucid.tensor(B))
    np.testing.assert_allclose(again.numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize("part", ["real", "complex"])
def test_the_gradient_of_the_right_hand_side_is_the_solution_of_the_adjoint_system(part):
    a = A if part == "real" else A + 1j * (A @ A)
    b = lucid.tensor(B.astype(a.dtype), requires_grad=True)
    ct = (B + 1).astype(a.dtype)
    x = solved(a, b)[2]
    found = lucid.autograd.grad(x, b, lucid.tensor(ct))
    np.testing.assert_allclose(found.numpy(), np.linalg.solve(a.conj().T, ct), rtol=1e-10)
    tangent = lucid.func.jvp(lambda b: solved(a, b)[2], (b,), (lucid.tensor(ct),))[1]
    np.testing.assert_allclose(tangent.numpy(), np.linalg.solve(a, ct), rtol=1e-10)


def test_factors_have_no_derivative():
    with pytest.raises(LinAlgError, match="not differentiable"):
        lucid.linalg.ldl_factor(lucid.tensor(A, requires_grad=True))
    LD, pivots, _ = solved(A, lucid.tensor(B))
    with pytest.raises(LinAlgError, match="not differentiable in LD"):
        lucid.linalg.ldl_solve(LD.requires_grad_(), pivots, lucid.tensor(B))
