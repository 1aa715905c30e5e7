"""Products: what the public functions give, and what they say of bad input."""

import numpy as np
import pytest

import lucid
from lucid.errors import ShapeError
from lucid.ops.core.promote import as_tensor
from lucid.ops.linalg import contraction, products
from lucid.tape.recording.trace import trace

rng = np.random.default_rng(0)
A, B, C = rng.normal(size=(2, 3)), rng.normal(size=(3, 4)), rng.normal(size=(4, 2, 3))
V, Z = rng.normal(size=3), rng.normal(size=3) + 1j * rng.normal(size=3)

COMPARED = {
    "mm": (lambda: products.mm(A, B), A @ B),
    "bmm": (lambda: products.bmm(C, C.swapaxes(1, 2)), C @ C.swapaxes(1, 2)),
    "mv": (lambda: products.mv(A, V), A @ V),
    "dot": (lambda: products.dot(V, V), V @ V),
    "dot of a number": (lambda: products.dot(2.0, V), 2 * V),
    "dot of more axes": (lambda: products.dot(C, B), np.dot(C, B)),
    "dot of more axes right": (lambda: products.dot(A.T, C), np.dot(A.T, C)),
    "vdot": (lambda: products.vdot(Z, V), np.vdot(Z, V)),
    "inner": (lambda: products.inner(C, A), np.inner(C, A)),
    "outer": (lambda: products.outer(V, Z), np.outer(V, Z)),
    "tensordot": (lambda: products.tensordot(A, B, 1), np.tensordot(A, B, 1)),
    "tensordot of two lists": (
        lambda: products.tensordot(C, A, ([1, 2], [0, 1])),
        np.tensordot(C, A, ([1, 2], [0, 1])),
    ),
    "tensordot of none": (lambda: products.tensordot(V, V, 0), np.tensordot(V, V, 0)),
    "kron": (lambda: products.kron(A, B), np.kron(A, B)),
    "kron of vector and matrix": (lambda: products.kron(V, A), np.kron(V, A)),
    "einsum implicit": (lambda: contraction.einsum("ij,jk", A, B), A @ B),
    "einsum implicit order": (lambda: contraction.einsum("ba", A), A.T),
    "einsum trace": (lambda: contraction.einsum("ii", B[:, :3]), np.trace(B)),
    "einsum ellipsis": (
        lambda: contraction.einsum("...ij,kj->...ik", C, A),
        np.einsum("...ij,kj->...ik", C, A),
    ),
    "einsum implicit ellipsis": (
        lambda: contraction.einsum("...j,j", C, V),
        np.einsum("...j,j", C, V),
    ),
    "einsum ellipsis that broadcasts": (
        lambda: contraction.einsum("i...,i...->i...", A, C[:2]),
        np.einsum("i...,i...->i...", A[:, None], C[:2]),
    ),
    "einsum broadcasts ones": (
        lambda: contraction.einsum("ij,ij->ij", A[:1], A),
        A[:1] * A,
    ),
    "einsum with spaces": (lambda: contraction.einsum(" i j , j -> i ", A, V), A @ V),
    "einsum of three": (
        lambda: contraction.einsum("ij,jk,li->lk", A, B, A.T),
        np.einsum("ij,jk,li->lk", A, B, A.T),
    ),
    "einsum of a list": (lambda: contraction.einsum("ij,j->i", [A, V]), A @ V),
}


@pytest.mark.parametrize("name", COMPARED)
def test_function_agrees_with_numpy(name):
    function, expected = COMPARED[name]
    y = function()
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-12)
    assert y.shape == np.shape(expected)


def test_einsum_of_many_random_equations_agrees_with_numpy():
    sizes = dict(zip("abcde", (2, 3, 1, 4, 2)))
    for _ in range(200):
        terms = [
            "".join(rng.choice(list(sizes), rng.integers(0, 4))) for _ in range(rng.integers(1, 4))
        ]
        names = sorted(set("".join(terms)))
        out = "".join(rng.permutation(names)[: rng.integers(0, len(names) + 1)])
        xs = [rng.normal(size=[sizes[name] for name in term]) for term in terms]
        equation = f"{','.join(terms)}->{out}"
        y = contraction.einsum(equation, *xs)
        np.testing.assert_allclose(y.numpy(), np.einsum(equation, *xs), atol=1e-10)


def test_einsum_is_recorded_under_canonical_names():
    graph = trace(lambda x, y: contraction.einsum("pq,qr->pr", x, y))(A, B)
    assert "einsum[equation='ab,bc->ac']" in str(graph)


def test_einsum_that_only_transposes_is_a_transpose():
    assert "transpose" in str(trace(lambda x: contraction.einsum("ij->ji", x))(A))


def test_einsum_of_one_operand_does_not_share_memory():
    x = lucid.Tensor(np.eye(3))
    assert not np.shares_memory(contraction.einsum("ii->i", x).value, x.value)


def test_matmul_promotes_dtypes():
    assert contraction.matmul(A.astype("float32"), B).dtype == "float64"
    assert contraction.matmul(as_tensor([[1, 2]]), as_tensor([1.0, 2.0])).dtype == "float32"


def test_matmul_of_integers_stays_integer():
    y = contraction.matmul(as_tensor([[1, 2]]), as_tensor([3, 4]))
    assert y.dtype == "int64" and y.tolist() == [11]


def test_gradient_of_a_complex_product_is_that_of_the_real_parts():
    z = lucid.Tensor(Z, requires_grad=True)
    loss = contraction.matmul(z, as_tensor(Z.conj()))
    (loss.real if hasattr(loss, "real") else loss).sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), Z, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: contraction.matmul(np.zeros((32, 64)), np.zeros((128, 10))),
            "matmul: (32, 64) @ (128, 10): inner sizes 64 and 128 differ",
        ),
        (lambda: contraction.matmul(A, np.float64(1)), "0-d operand"),
        (lambda: contraction.matmul(C, np.zeros((3, 3, 1))), "do not broadcast"),
        (lambda: products.mm(A, V), "mm: shapes (2, 3) and (3,)"),
        (lambda: products.bmm(C, C[:1].swapaxes(1, 2)), "4 and 1 matrices"),
        (lambda: products.tensordot(A, B, 3), "3 axes of (2, 3) and (3, 4)"),
        (lambda: products.tensordot(A, B, ([0], [0])), "differ in size"),
        (lambda: contraction.einsum("ij,jk->ik", A), "2 terms for 1 operands"),
        (lambda: contraction.einsum("ijk->i", A), "'ijk' does not name 2 axes"),
        (lambda: contraction.einsum("ij->k", A), "no operand has"),
        (lambda: contraction.einsum("ij,jk->ik", A, A), "is 3 in operand 0 and 2 in operand 1"),
        (lambda: contraction.einsum("i+j", A), "is not an equation"),
    ],
)
def test_bad_input_is_named_with_the_line(call, words):
    with pytest.raises(ShapeError) as caught:
        call()
    assert words in str(caught.value)
    assert "test_contraction.py:" in str(caught.value)


def test_einsum_with_lists_of_axis_numbers():
    a, b = A, B
    got = lucid.einsum(lucid.tensor(a), [0, 1], lucid.tensor(b), [1, 2], [2, 0])
    np.testing.assert_allclose(got.numpy(), (a @ b).T)
    got = lucid.einsum(lucid.tensor(a), [..., 0], lucid.tensor(b[:, 0]), [0])
    np.testing.assert_allclose(got.numpy(), a @ b[:, 0])
    with pytest.raises(ShapeError, match="is not a list of axis numbers"):
        lucid.einsum(lucid.tensor(a), [0, 99])
