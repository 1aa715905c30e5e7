"""Attention of several heads and transformers against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ArgumentError, DTypeError, LucidError, ShapeError

RNG = np.random.default_rng(0)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def numbers(module):
    return {name: x.numpy() for name, x in module.state_dict().items()}


def numpy_attention(w, q, k, v, heads, added=0.0, prefix=""):
    """(output, weights of every head) for (positions, features) of one example."""
    wq, wk, wv = np.split(w[f"{prefix}in_proj_weight"], 3)
    bq, bk, bv = np.split(w[f"{prefix}in_proj_bias"], 3)
    q, k, v = q @ wq.T + bq, k @ wk.T + bk, v @ wv.T + bv
    n = q.shape[1] // heads
    mixed, weights = [], []
    for h in range(heads):
        part = slice(h * n, (h + 1) * n)
        weights.append(softmax(q[:, part] @ k[:, part].T / np.sqrt(n) + added))
        mixed.append(weights[-1] @ v[:, part])
    joined = np.concatenate(mixed, 1)
    return joined @ w[f"{prefix}out_proj.weight"].T + w[f"{prefix}out_proj.bias"], weights


def attention(**options):
    lucid.manual_seed(0)
    return nn.MultiheadAttention(6, 2, **options).double()


def random(*shape):
    return RNG.normal(size=shape)


def test_attention_is_its_formula_head_by_head():
    m = attention()
    with lucid.no_grad():
        m.in_proj_bias.copy_(random(18))
    q, k, v = random(4, 3, 6), random(5, 3, 6), random(5, 3, 6)
    y, weights = m(*map(lucid.tensor, (q, k, v)))
    _, each = m(*map(lucid.tensor, (q, k, v)), average_attn_weights=False)
    assert (weights.shape, each.shape) == ((3, 4, 5), (3, 2, 4, 5))
    for i in range(3):
        expected, parts = numpy_attention(numbers(m), q[:, i], k[:, i], v[:, i], 2)
        np.testing.assert_allclose(y[:, i].detach(), expected, rtol=1e-10)
        np.testing.assert_allclose(weights[i].detach(), np.mean(parts, 0), rtol=1e-10)
        np.testing.assert_allclose(each[i].detach(), parts, rtol=1e-10)


@pytest.mark.parametrize("need_weights", [False, True])
def test_masked_keys_have_no_weight(need_weights):
    m, x = attention(batch_first=True), random(3, 5, 6)
    hidden = np.array([[0, 0, 0, 0, 1], [0, 0, 1, 1, 1], [0, 0, 0, 0, 0]], bool)
    causal = ~np.tri(5, dtype=bool)
    t = lucid.tensor(x)
    y, _ = m(t, t, t, lucid.tensor(hidden), need_weights, lucid.tensor(causal))
    for i in range(3):
        added = np.where(hidden[i] | causal, -np.inf, 0.0)
        expected, _ = numpy_attention(numbers(m), x[i], x[i], x[i], 2, added)
        np.testing.assert_allclose(y[i].detach(), expected, rtol=1e-10)


def test_boolean_and_added_masks_are_the_same_mask():
    m, t = attention(batch_first=True), lucid.tensor(random(3, 5, 6))
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    a, _ = m(t, t, t, attn_mask=mask, is_causal=True)
    b, _ = m(t, t, t, attn_mask=mask == -np.inf)
    hidden = lucid.tensor([[False] * 4 + [True]] * 3)
    c, _ = m(t, t, t, hidden, attn_mask=mask)
    d, _ = m(t, t, t, hidden, attn_mask=mask == -np.inf)
    np.testing.assert_allclose(a.detach(), b.detach(), rtol=1e-12)
    np.testing.assert_allclose(c.detach(), d.detach(), rtol=1e-12)


def test_need_weights_does_not_change_the_output():
    m = attention(add_bias_kv=True, add_zero_attn=True)
    q, k = lucid.tensor(random(4, 3, 6)), lucid.tensor(random(5, 3, 6))
    a, weights = m(q, k, k)
    b, nothing = m(q, k, k, need_weights=False)
    assert nothing is None and weights.shape == (3, 4, 7)
    np.testing.assert_allclose(a.detach(), b.detach(), rtol=1e-10)


def test_keys_and_values_may_have_other_sizes():
    m = attention(kdim=3, vdim=5)
    names = ["q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias"]
    assert list(m.state_dict()) == [*names, "out_proj.weight", "out_proj.bias"]
    y, _ = m(*[lucid.tensor(random(4, 3, n)) for n in (6, 3, 5)])
    assert y.shape == (4, 3, 6)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: nn.MultiheadAttention(6, 4), ArgumentError),
        (lambda: attention()(lucid.ones(4, 3, 6), lucid.ones(5, 3, 7), lucid.ones(5, 3, 6)),
         ShapeError),
        (lambda: attention()(lucid.ones(4, 3, 6), lucid.ones(5, 2, 6), lucid.ones(5, 2, 6)),
         ShapeError),
        (lambda: attention()(lucid.ones(4, 3, 6), lucid.ones(5, 3, 6), lucid.ones(4, 3, 6)),
         ShapeError),
        (lambda: attention()(*[lucid.ones(4, 6)] * 3, attn_mask=lucid.ones(3, 3)), ShapeError),
        (lambda: attention()(*[lucid.ones(4, 6)] * 3, attn_mask=lucid.tensor([[1]])), DTypeError),
        (lambda: attention()(*[lucid.ones(4, 6)] * 3, lucid.ones(2, 4)), ShapeError),
        (lambda: attention()(*[lucid.ones(4, 6)] * 3, is_causal=True), ArgumentError),
        (lambda: nn.TransformerEncoderLayer(6, 2, activation="sin"), ArgumentError),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(make, error):
    with pytest.raises(error):
        make()


# Transformers


def normed(x, w, name):
    centred = x - x.mean(-1, keepdims=True)
    scale = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return centred / scale * w[f"{name}.weight"] + w[f"{name}.bias"]


def fed(x, w):
    hidden = np.maximum(x @ w["linear1.weight"].T + w["linear1.bias"], 0)
    return hidden @ w["linear2.weight"].T + w["linear2.bias"]


def block(kind, **options):
    lucid.manual_seed(0)
    return getattr(nn, kind)(6, 2, 8, 0.0, batch_first=True, **options).double()


@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_layer_is_attention_and_two_products(norm_first):
    m, x = block("TransformerEncoderLayer", norm_first=norm_first), random(4, 6)
    w = numbers(m)

    def attended(x):
        return numpy_attention(w, x, x, x, 2, prefix="self_attn.")[0]

    if norm_first:
        h = x + attended(normed(x, w, "norm1"))
        expected = h + fed(normed(h, w, "norm2"), w)
    else:
        h = normed(x + attended(x), w, "norm1")
        expected = normed(h + fed(h, w), w, "norm2")
    np.testing.assert_allclose(m(lucid.tensor(x[None]))[0].detach(), expected, rtol=1e-9)


def test_a_decoder_layer_attends_to_the_memory_too():
    m, x, memory = block("TransformerDecoderLayer"), random(4, 6), random(5, 6)
    w = numbers(m)
    h = normed(x + numpy_attention(w, x, x, x, 2, prefix="self_attn.")[0], w, "norm1")
    mixed = numpy_attention(w, h, memory, memory, 2, prefix="multihead_attn.")[0]
    h = normed(h + mixed, w, "norm2")
    expected = normed(h + fed(h, w), w, "norm3")
    found = m(lucid.tensor(x[None]), lucid.tensor(memory[None]))[0]
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-9)


def test_a_stack_holds_copies_of_its_layer():
    layer = block("TransformerEncoderLayer")
    stack = nn.TransformerEncoder(layer, 3, nn.LayerNorm(6).double())
    assert len({id(part.linear1.weight) for part in stack.layers}) == 3
    x = lucid.tensor(random(2, 4, 6))
    expected = x
    for _ in range(3):
        expected = layer(expected)
    np.testing.assert_allclose(stack(x).detach(), stack.norm(expected).detach(), rtol=1e-10)


def test_later_positions_do_not_reach_earlier_ones_through_the_causal_mask():
    lucid.manual_seed(0)
    m = nn.Transformer(6, 2, 1, 1, 8, 0.0).double()
    source, x = lucid.tensor(random(3, 2, 6)), random(5, 2, 6)
    mask = m.generate_square_subsequent_mask(5)
    a = m(source, lucid.tensor(x), tgt_mask=mask)
    x[3:] = random(2, 2, 6)
    b = m(source, lucid.tensor(x), tgt_mask=mask)
    np.testing.assert_allclose(a[:3].detach(), b[:3].detach(), rtol=1e-10)
    assert not np.allclose(a[3:].detach(), b[3:].detach())


def test_jit_equals_eager_with_all_gradients():
    lucid.manual_seed(0)
    m = nn.Transformer(6, 2, 1, 1, 8, 0.0).double()
    source, x = lucid.tensor(random(3, 2, 6)), lucid.tensor(random(5, 2, 6))

    def step():
        m.zero_grad()
        loss = (m(source, x) ** 2).sum()
        loss.backward()
        return loss

    expected = step().item()
    grads = [p.grad.numpy() for p in m.parameters()]
    jitted = lucid.jit(step)
    for _ in range(2):
        np.testing.assert_allclose(jitted().item(), expected, rtol=1e-10)
        for p, g in zip(m.parameters(), grads):
            np.testing.assert_allclose(p.grad, g, rtol=1e-8, atol=1e-10)


def test_dropout_acts_while_training_alone():
    m, x = nn.TransformerEncoderLayer(6, 2, 8, 0.5), lucid.ones(4, 2, 6)
    assert not np.allclose(m(x).detach(), m(x).detach())
    m.eval()
    np.testing.assert_array_equal(m(x).detach(), m(x).detach())


def test_an_ensemble_of_attention_runs_under_vmap():
    models = [attention(batch_first=True) for _ in range(2)]
    models[1].load_state_dict({n: x * 2 for n, x in models[0].state_dict().items()})
    params, _ = lucid.func.stack_module_state(models)
    x = lucid.tensor(random(3, 5, 6))

    def run(params):
        return lucid.func.functional_call(models[0], params, (x, x, x))[0]

    found = lucid.func.vmap(run)(params)
    for i, m in enumerate(models):
        np.testing.assert_allclose(found[i].detach(), m(x, x, x)[0].detach(), rtol=1e-9)


def test_the_mask_of_a_size_that_is_no_number_is_refused():
    with pytest.raises(LucidError):
        nn.Transformer.generate_square_subsequent_mask("x")
