"""Rows of attention of several heads as a function of its weights, head by head."""

from __future__ import annotations

import numpy as np

from lucid.errors import ArgumentError, DTypeError, ShapeError
from tests.cases.case import boolean, integer, real
from tests.table.row import Row, bad, call


def attention(
    query, key, value, n, heads, weight, bias, bias_k, bias_v, zero, p, out_weight, out_bias,
    training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
    use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None,
    average_attn_weights=True,
):  # fmt: skip
    if query.ndim == 2:
        padding = None if key_padding_mask is None else key_padding_mask[None]
        y, weights = attention(
            query[:, None], key[:, None], value[:, None], n, heads, weight, bias, bias_k, bias_v,
            zero, p, out_weight, out_bias, training, padding, True, attn_mask,
            use_separate_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight,
            average_attn_weights,
        )  # fmt: skip
        return (y[:, 0], weights[0]) if need_weights else y[:, 0]
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    parts = separate if use_separate_proj_weight else np.split(weight, 3)
    biases = np.split(bias, 3) if bias is not None else [0.0] * 3
    q, k, v = (x @ w.T + b for x, w, b in zip((query, key, value), parts, biases))
    ys, all_weights = [], []
    for b in range(query.shape[1]):
        kb, vb = k[:, b], v[:, b]
        if bias_k is not None:
            kb, vb = np.concatenate([kb, bias_k[0]]), np.concatenate([vb, bias_v[0]])
        if zero:
            kb, vb = (np.concatenate([x, np.zeros((1, n))]) for x in (kb, vb))
        added = np.zeros((len(query), len(kb)))
        if attn_mask is not None:
            mask = np.where(attn_mask, -np.inf, 0) if attn_mask.dtype == bool else attn_mask
            added[:, : len(key)] += mask
        if key_padding_mask is not None:
            added[:, : len(key)] += np.where(key_padding_mask[b], -np.inf, 0)
        outs, kept = [], []
        for h in range(heads):
            part = slice(h * n // heads, (h + 1) * n // heads)
            scores = q[:, b, part] @ kb[:, part].T / np.sqrt(n // heads) + added
            w = np.exp(scores - scores.max(-1, keepdims=True))
            w = w / w.sum(-1, keepdims=True)
            outs.append(w @ vb[:, part])
            kept.append(w)
        ys.append(np.concatenate(outs, -1) @ out_weight.T + (0.0 if out_bias is None else out_bias))
        all_weights.append(np.mean(kept, 0) if average_attn_weights else np.stack(kept))
    y = np.stack(ys, 1)
    return (y, np.stack(all_weights)) if need_weights else y


def without_none(*results):
    return tuple(x for x in results if x is not None)


def weights():
    """The arguments from in_proj_weight to out_proj_bias, for 4 features."""
    return (real(12, 4), real(12), None, None, False, 0.0, real(4, 4), real(4))


QKV = (real(3, 2, 4), real(5, 2, 4), real(5, 2, 4))
SEPARATE = {
    "use_separate_proj_weight": True,
    "q_proj_weight": real(4, 4),
    "k_proj_weight": real(4, 3),
    "v_proj_weight": real(4, 2),
}

ROWS = [
    Row(
        "nn.functional.multi_head_attention_forward",
        attention,
        [
            call(*QKV, 4, 2, *weights()),
            call(*QKV, 4, 1, *weights(), need_weights=False),
            call(*QKV, 4, 2, *weights(), average_attn_weights=False, attn_mask=real(3, 5)),
            call(
                *QKV, 4, 2, real(12, 4), None, real(1, 1, 4), real(1, 1, 4), True, 0.5, real(4, 4),
                None, False, attn_mask=boolean(3, 5), label="additional keys",
            ),
            call(
                real(3, 2, 4), real(5, 2, 3), real(5, 2, 2), 4, 2, None, real(12), None, None, True,
                0.0, real(4, 4), real(4), key_padding_mask=boolean(2, 5), **SEPARATE,
                label="separate weights",
            ),
            call(real(3, 4), real(5, 4), real(5, 4), 4, 2, *weights()),
        ],
        refused=[
            bad(ShapeError, "weights for 4 features", *QKV, 6, 2, *weights()),
            bad(ShapeError, "divisible by 3 heads", *QKV, 4, 3, *weights()),
            bad(ArgumentError, "in_proj_weight must be given", *QKV, 4, 2, None, *weights()[1:]),
            bad(
                ArgumentError, "three weights", *QKV, 4, 2, *weights(),
                use_separate_proj_weight=True,
            ),
            bad(ShapeError, "attn_mask of shape (2, 2)", *QKV, 4, 2, *weights(),
                attn_mask=real(2, 2)),
            bad(DTypeError, "attn_mask of dtype int64", *QKV, 4, 2, *weights(),
                attn_mask=integer(3, 5)),
            bad(ArgumentError, "is_causal", *QKV, 4, 2, *weights(), is_causal=True),
            bad(ArgumentError, "static_k", *QKV, 4, 2, *weights(), static_k=real(2)),
        ],
        result=without_none,
    ),
]  # fmt: skip
