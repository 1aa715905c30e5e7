"""Calls in PyTorch's words: what a signature shows is what the function takes."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import linalg
from lucid.errors import ArgumentError
from lucid.nn import functional as F

X = np.array([[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]], "float32")
Y = np.array([[2.0, 2.0, 2.0], [5.0, 5.0, 5.0]], "float32")
SQUARE = np.array([[2.0, 1.0], [1.0, 3.0]], "float32")
EXPONENTIALS = np.exp(X) / np.exp(X).sum(1, keepdims=True)


def x():
    return lucid.tensor(X)


def y():
    return lucid.tensor(Y)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: lucid.softmax(input=x(), dim=1), EXPONENTIALS),
        (lambda: F.softmax(input=x(), dim=1, dtype=lucid.float64), EXPONENTIALS),
        (lambda: lucid.softmax(x(), 1, lucid.float64), EXPONENTIALS),
        (lambda: lucid.sub(input=x(), other=y(), alpha=2), X - 2 * Y),
        (lambda: lucid.max(input=x(), other=y()), np.maximum(X, Y)),
        (lambda: x().min(other=y()), np.minimum(X, Y)),
        (lambda: lucid.where(condition=x() > y(), input=x(), other=y()), np.maximum(X, Y)),
        (lambda: lucid.dot(input=x()[0], tensor=y()[0]), X[0] @ Y[0]),
        (lambda: lucid.tensordot(a=x(), b=y(), dims=2), (X * Y).sum()),
        (lambda: lucid.take(input=x(), index=lucid.tensor([4, 0])), X.ravel()[[4, 0]]),
        (lambda: lucid.take(x(), indices=lucid.tensor([4, 0])), X.ravel()[[4, 0]]),
        (lambda: lucid.norm(x(), p="fro"), np.sqrt((X * X).sum())),
        (lambda: lucid.nan_to_num(x() / 0 * 0, nan=None), np.zeros_like(X)),
        (lambda: lucid.broadcast_to(input=x(), size=(2, 2, 3)), np.stack([X, X])),
        (lambda: x().broadcast_to(2, 2, 3), np.stack([X, X])),
        (lambda: x().reshape(1, 2, 3, 1).squeeze(0, 3), X),
        (lambda: lucid.swapdims(input=x(), dim0=0, dim1=1), X.T),
        (lambda: x().split(split_size=2, dim=1)[1], X[:, 2:]),
        (lambda: lucid.split(tensor=x(), split_size_or_sections=[1, 2], dim=1)[1], X[:, 1:]),
        (lambda: lucid.hsplit(input=x(), sections=3)[1], X[:, 1:2]),
        (lambda: lucid.tensor_split(x(), indices=(1,), dim=1)[1], X[:, 1:]),
        (lambda: lucid.searchsorted(x()[0].sort().values, input=2.5), np.array(2)),
        (lambda: lucid.igamma(input=lucid.ones(1), other=lucid.ones(1)), 1 - np.exp([-1.0])),
        (lambda: lucid.fft.rfft(input=x()).real, np.fft.rfft(X).real),
        (lambda: linalg.eigvalsh(input=lucid.tensor(SQUARE)), np.linalg.eigvalsh(SQUARE)),
        (lambda: linalg.det(A=lucid.tensor(SQUARE)), np.float32(5)),
        (lambda: lucid.det(input=lucid.tensor(SQUARE)), np.float32(5)),
        (lambda: lucid.inverse(input=lucid.tensor(SQUARE)), np.linalg.inv(SQUARE)),
        (lambda: lucid.pinverse(input=x(), rcond=1e-6), np.linalg.pinv(X)),
        (lambda: lucid.tensor(SQUARE).cholesky(True), np.linalg.cholesky(SQUARE).T),
        (lambda: F.one_hot(input=lucid.tensor([1, 0]), num_classes=2), np.eye(2)[[1, 0]]),
        (lambda: x().add_(other=y(), alpha=2), X + 2 * Y),
        (lambda: x().copy_(other=y(), non_blocking=True), Y),
        (lambda: x().clamp_(min=2, max=4), X.clip(2, 4)),
        (lambda: x().transpose_(dim0=0, dim1=1), X.T),
        (lambda: F.leaky_relu_(input=-x(), negative_slope=0.5), -X / 2),
        (lambda: x().to(other=lucid.zeros(1, dtype=lucid.float64)), X.astype("float64")),
        (lambda: x().numpy(force=True), X),
    ],
)
def test_a_call_in_the_words_of_pytorch_gives_its_result(call, expected):
    found = np.asarray(call())
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=2e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda: lucid.split(x(), 2, split_size=1),
        lambda: lucid.hsplit(x(), 3, sections=3),
        lambda: lucid.tensor_split(x(), sections=2, indices=(1,)),
        lambda: lucid.max(x(), 0, other=y()),
    ],
)
def test_two_words_for_one_parameter_are_refused(call):
    with pytest.raises(ArgumentError, match="not both"):
        call()


@pytest.mark.parametrize("kind", [lucid.float32, lucid.float64])
def test_normal_numbers_have_the_dtype_and_the_history_that_are_asked_for(kind):
    drawn = lucid.normal(0.0, 1.0, (2, 3), dtype=kind, requires_grad=True)
    assert drawn.dtype == kind and drawn.requires_grad and drawn.shape == (2, 3)


def test_integers_are_int64_where_the_dtype_is_none():
    drawn = [
        lucid.randint(0, 5, (3,), dtype=None),
        lucid.randperm(3, dtype=None),
        lucid.tril_indices(2, 2, dtype=None),
        lucid.triu_indices(2, 2, dtype=None),
    ]
    assert {tensor.dtype for tensor in drawn} == {lucid.int64}
