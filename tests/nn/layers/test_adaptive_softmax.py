"""Losses with a matrix inside: AdaptiveLogSoftmaxWithLoss and LinearCrossEntropyLoss."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ArgumentError, DTypeError, IndexingError, ShapeError
from tests.compiled import compiled

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 8))
TARGET = np.array([0, 3, 4, 8, 9, 19])


def layer(**options):
    lucid.manual_seed(0)
    return nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 9], div_value=2.0, **options).double()


def log_softmax(x):
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def all_classes(made):
    weights = {name: w.numpy() for name, w in made.state_dict().items()}
    head = log_softmax(X @ weights["head.weight"].T + weights.get("head.bias", 0.0))
    out = [head[:, :4]]
    for i in range(2):
        tail = X @ weights[f"tail.{i}.0.weight"].T @ weights[f"tail.{i}.1.weight"].T
        out.append(log_softmax(tail) + head[:, 4 + i : 5 + i])
    return np.concatenate(out, 1)


@pytest.mark.parametrize("head_bias", [False, True])
def test_output_loss_and_all_log_probabilities(head_bias):
    made = layer(head_bias=head_bias)
    expected = all_classes(made)
    output, loss = made(lucid.tensor(X), lucid.tensor(TARGET))
    np.testing.assert_allclose(output.detach(), expected[np.arange(6), TARGET], rtol=1e-12)
    np.testing.assert_allclose(loss.item(), -expected[np.arange(6), TARGET].mean(), rtol=1e-12)
    np.testing.assert_allclose(made.log_prob(lucid.tensor(X)).detach(), expected, rtol=1e-12)
    np.testing.assert_array_equal(made.predict(lucid.tensor(X)), expected.argmax(1))


def test_one_example_without_a_batch():
    made = layer()
    output, loss = made(lucid.tensor(X[0]), lucid.tensor(11))
    assert output.shape == () and loss.item() == pytest.approx(-all_classes(made)[0, 11])


def test_jit_and_transforms_give_the_same_loss_and_gradients():
    made, x, target = layer(), lucid.tensor(X), lucid.tensor(TARGET)
    loss = made(x, target).loss
    loss.backward()

    def of(module, x, target):
        return module(x, target).loss

    value, grads = compiled(lucid.func.value_and_grad(of))(made, x, target)
    np.testing.assert_allclose(value.detach(), loss.item(), rtol=1e-12)
    for (name, p), g in zip(made.named_parameters(), grads.parameters(), strict=True):
        np.testing.assert_allclose(g.detach(), p.grad, rtol=1e-9, atol=1e-12, err_msg=name)


def test_what_it_refuses():
    made = layer()
    with pytest.raises(IndexingError, match="targets from 3 to 20; there are 20 classes"):
        made(lucid.ones(2, 8), lucid.tensor([3, 20]))
    with pytest.raises(ShapeError, match=r"\(2, 8\) and a target of \(3,\)"):
        made(lucid.ones(2, 8), lucid.tensor([0, 1, 2]))
    with pytest.raises(DTypeError, match="integers"):
        made(lucid.ones(2, 8), lucid.ones(2))
    for cutoffs in ([], [5, 3], [3, 3], [0, 3], [20], [2.5]):
        with pytest.raises(ArgumentError, match="they must ascend"):
            nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs)


def test_the_cross_entropy_of_a_linear_layer():
    weight = RNG.uniform(0.5, 2.0, 20)
    made = nn.LinearCrossEntropyLoss(8, 20, bias=True, weight=lucid.tensor(weight)).double()
    w, b = (x.detach().numpy() for x in (made.linear.weight, made.linear.bias))
    picked = -log_softmax(X @ w.T + b)[np.arange(6), TARGET]
    expected = (picked * weight[TARGET]).sum() / weight[TARGET].sum()
    assert made(lucid.tensor(X), lucid.tensor(TARGET)).item() == pytest.approx(expected)
    assert sorted(made.state_dict()) == ["linear.bias", "linear.weight", "weight"]
    with pytest.raises(ShapeError, match="for 20 classes"):
        nn.LinearCrossEntropyLoss(8, 20, weight=lucid.ones(3))
    with pytest.raises(ArgumentError, match="out_features"):
        nn.LinearCrossEntropyLoss(8, 20, out_features=(2,))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_loss_in_chunks_equals_the_whole_one(reduction, weighted):
    target = lucid.tensor([0, 3, 4, -100, 9, 19])
    weight = lucid.tensor(RNG.uniform(0.5, 2.0, 20)) if weighted else None
    kwargs = {"weight": weight, "reduction": reduction, "label_smoothing": 0.1}
    whole = nn.LinearCrossEntropyLoss(8, 20, bias=True, **kwargs).double()
    x = lucid.tensor(X, requires_grad=True)
    wanted = whole(x, target)
    leaves = (x, whole.linear.weight, whole.linear.bias)
    grads = lucid.autograd.grad(wanted.sum(), leaves)
    for options in (
        nn.LinearCrossEntropyOptions(batch_chunk_size=4, chunking_method=None),
        nn.LinearCrossEntropyOptions(),
        nn.LinearCrossEntropyOptions(chunking_method="aspect_ratio"),
    ):
        whole.options = options
        found = whole(x, target)
        lucid.testing.assert_close(found, wanted)
        for g, want in zip(lucid.autograd.grad(found.sum(), leaves), grads):
            lucid.testing.assert_close(g, want)


def test_options_of_the_cross_entropy_of_a_linear_layer_are_checked():
    made = nn.LinearCrossEntropyOptions()
    assert (made.rows(1024, 64, 32000), made.rows(8, 64, 10)) == (2, 4)
    with pytest.raises(ArgumentError, match="batch_chunk_size is 0"):
        nn.LinearCrossEntropyOptions(batch_chunk_size=0)
    with pytest.raises(ArgumentError, match="chunking_method is 'ratio'"):
        nn.LinearCrossEntropyOptions(chunking_method="ratio")
    with pytest.raises(ArgumentError, match="acc_policy is 'fast'"):
        nn.LinearCrossEntropyOptions(acc_policy="fast")
    with pytest.raises(ArgumentError, match="options is a dict"):
        nn.functional.linear_cross_entropy(
            lucid.ones(2, 3), lucid.ones(4, 3), lucid.tensor([0, 1]), options={"chunks": 2}
        )


def test_a_frozen_embedding_by_position():
    table = nn.Embedding(3, 2, None, None, 2.0, False, False, lucid.ones(3, 2), True)
    assert not table.weight.requires_grad and nn.Embedding(3, 2).weight.requires_grad


def test_classes_at_several_places_have_scores_of_their_own():
    rng = np.random.default_rng(1)
    x, w, b = rng.normal(size=(6, 4)), rng.normal(size=(5, 3, 4)), rng.normal(size=(5, 3))
    t = rng.integers(0, 5, (6, 3))
    scores = np.einsum("ni,cdi->ncd", x, w) + b
    picked = np.take_along_axis(log_softmax(scores), t[:, None], 1)[:, 0]
    got = nn.functional.linear_cross_entropy(
        *[lucid.tensor(v) for v in (x, w, t)], linear_bias=lucid.tensor(b)
    )
    assert got.item() == pytest.approx(-picked.mean())


@pytest.mark.parametrize("name", ["multi_margin_loss", "multilabel_margin_loss"])
def test_a_margin_loss_of_one_class_without_axes_is_0(name):
    loss = getattr(nn.functional, name)
    assert loss(lucid.tensor(0.3), lucid.tensor(0), reduction="none").tolist() == 0.0
