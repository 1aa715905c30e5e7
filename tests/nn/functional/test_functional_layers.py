"""Embeddings, attention and linear maps as users call them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
import lucid.nn.functional as F
from lucid.errors import IndexingError

RNG = np.random.default_rng(0)


def table(requires_grad=True):
    values = np.arange(15, dtype="float32").reshape(5, 3)
    return lucid.tensor(values, requires_grad=requires_grad)


# Embeddings


def test_the_padding_row_gets_no_gradient():
    weight = table()
    F.embedding(lucid.tensor([0, 2, 2, 1]), weight, padding_idx=2).sum().backward()
    np.testing.assert_array_equal(weight.grad.numpy()[:, 0], [1, 1, 0, 0, 0])
    weight = table()
    F.embedding(lucid.tensor([4, 3]), weight, padding_idx=-1).sum().backward()
    np.testing.assert_array_equal(weight.grad.numpy()[:, 0], [0, 0, 0, 1, 0])


def test_the_gradient_may_be_divided_by_how_often_a_row_is_used():
    weight = table()
    y = F.embedding(lucid.tensor([0, 2, 2, 2]), weight, scale_grad_by_freq=True)
    np.testing.assert_array_equal(y.detach().numpy(), table(False).numpy()[[0, 2, 2, 2]])
    y.sum().backward()
    np.testing.assert_allclose(weight.grad.numpy()[:, 0], [1, 0, 1, 0, 0], rtol=1e-6)


def test_max_norm_shortens_the_rows_that_are_used_in_the_weight_itself():
    weight = table()
    y = F.embedding(lucid.tensor([1, 3]), weight, max_norm=2.0)
    lengths = np.linalg.norm(table(False).numpy(), axis=1)
    expected = table(False).numpy()
    for row in (1, 3):
        expected[row] *= 2.0 / (lengths[row] + 1e-7)
    np.testing.assert_allclose(weight.detach().numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(y.detach().numpy(), expected[[1, 3]], rtol=1e-6)
    y.sum().backward()
    np.testing.assert_array_equal(weight.grad.numpy()[:, 0], [0, 1, 0, 1, 0])


def test_the_maximum_of_a_bag_has_its_gradient_at_the_first_of_equals():
    weight = lucid.tensor([[1.0, 0.0], [1.0, 2.0]], requires_grad=True)
    F.embedding_bag(lucid.tensor([[0, 1]]), weight, mode="max").sum().backward()
    np.testing.assert_array_equal(weight.grad.numpy(), [[1, 0], [0, 1]])


def test_an_index_beyond_the_table_is_refused_also_when_compiled():
    weight = table(False)
    look = lucid.jit(lambda i: F.embedding(i, weight))
    look(lucid.tensor([0, 1]))
    with pytest.raises(IndexingError):
        look(lucid.tensor([0, 7]))


def test_one_hot_counts_the_classes_where_they_are_not_given():
    assert F.one_hot(lucid.tensor([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert F.one_hot(lucid.tensor([2, 0])).dtype == lucid.int64


# Attention


def heads(*shape):
    return lucid.tensor(RNG.normal(size=shape))


def test_a_query_that_sees_nothing_gives_zero_and_a_finite_gradient():
    q = lucid.tensor(RNG.normal(size=(1, 3, 4)), requires_grad=True)
    mask = np.ones((3, 3), bool)
    mask[1] = False
    added = np.where(mask, 0.0, -math.inf)
    for given in (mask, added):
        y = F.scaled_dot_product_attention(q, q, q, lucid.tensor(given))
        np.testing.assert_array_equal(y.detach().numpy()[0, 1], np.zeros(4))
        (gradient,) = lucid.autograd.grad(y.sum(), [q])
        assert np.isfinite(gradient.numpy()).all()


def test_a_causal_query_does_not_depend_on_later_keys():
    q, k, v = heads(2, 5, 4), heads(2, 5, 4), heads(2, 5, 4)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True).numpy()
    k[:, 3:] = 100.0
    v[:, 3:] = -100.0
    z = F.scaled_dot_product_attention(q, k, v, is_causal=True).numpy()
    np.testing.assert_array_equal(y[:, :3], z[:, :3])
    assert (y[:, 3:] != z[:, 3:]).all()


def test_large_scores_do_not_overflow():
    q = lucid.tensor(np.array([[1e4, 0.0], [0.0, 1e4]], "float32"))
    y = F.scaled_dot_product_attention(q, q, lucid.tensor([[1.0], [2.0]]))
    assert y.tolist() == [[1.0], [2.0]]


def test_attention_drops_weights_at_random():
    lucid.manual_seed(0)
    q, ones = lucid.zeros(200, 50, 2), lucid.ones(200, 50, 1)
    y = F.scaled_dot_product_attention(q, q, ones, dropout_p=0.5).numpy()
    assert abs(y.mean() - 1) < 0.02 and y.std() > 0.1


def test_attention_and_its_gradients_are_products_and_one_kernel():
    def both(q, k, v, ct):
        y, pull = lucid.func.vjp(
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v
        )
        return y, pull(ct)

    x = lucid.tensor(RNG.normal(size=(2, 2, 8, 4)).astype("float32"))
    assert len(lucid.jit(both).kernels(x, x, x, x)) == 1


# Linear


def test_the_gradient_of_a_linear_layer_needs_no_copy_of_the_weight():
    def gradients(x, w, b, ct):
        return lucid.func.vjp(F.linear, x, w, b)[1](ct)

    x, w, b, ct = lucid.ones(8, 4), lucid.ones(3, 4), lucid.ones(3), lucid.ones(8, 3)
    text = str(lucid.jit(gradients).graph(x, w, b, ct, stage="copies_inserted"))
    assert "copy" not in text, text
