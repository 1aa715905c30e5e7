"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ir.types import broadcast_shapes
from lucid.nn.functional.arguments import as_reals, check_number
from lucid.nn.functional.dropouts import check_probability, drop
from lucid.ops.core.arguments import public_function
from lucid.ops.core.float16 import in_float32
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import where
from lucid.ops.higher_order.region import compile_when_hot
from lucid.ops.nn.softmax import softmax
from lucid.ops.reduce.extrema import amax
from lucid.ops.shape.creation import arange

NAME = "scaled_dot_product_attention"


@public_function("nn.functional")
@in_float32
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    """softmax(query keyᵀ scale + mask) value, over the last two axes (position, feature).

    `attn_mask` is boolean (True: attend) or is added to the scores. With `is_causal` a query
    attends to keys up to its own position. A query that attends to no key gives 0. The scale
    defaults to 1/sqrt(features). With `enable_gqa`, several query heads (axis -3) share a key head.

    >>> import lucid
    >>> q = k = lucid.tensor([[10.0, 0.0], [0.0, 10.0]])
    >>> lucid.nn.functional.scaled_dot_product_attention(q, k, lucid.tensor([[1.0], [2.0]]))
    Tensor([[1.],
            [2.]])
    """
    dropout_p = check_probability(NAME, dropout_p)
    attend = attention if dropout_p else fused_attention
    return attend(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


def attention(
    query: Any, key: Any, value: Any, mask: Any, dropout_p: float, is_causal: Any, scale: Any,
    enable_gqa: Any,
) -> Any:  # fmt: skip
    """Return softmax(scores) value, with dropout of the attention weights."""
    q, k, v = as_reals(NAME, query, key, value)
    check_shapes(q, k, v, enable_gqa)
    factor = (
        1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else check_number(NAME, scale, "scale")
    )
    queries, keys = q.shape[-2], k.shape[-2]
    groups = q.shape[-3] // max(k.shape[-3], 1) if enable_gqa else 1
    if groups > 1:  # stack the queries that share a key
        q = q.reshape(*q.shape[:-3], k.shape[-3], groups * queries, q.shape[-1])
    scores = (q @ k.mT) * factor
    wide = (*scores.shape[:-3], -1, queries, keys) if groups > 1 else scores.shape
    weights = attention_weights(scores.reshape(wide), mask, is_causal)
    if dropout_p:
        weights = drop(weights, dropout_p, weights.shape)
    if groups == 1:
        return weights @ v
    y = weights.reshape(*weights.shape[:-3], v.shape[-3], groups * queries, keys) @ v
    return y.reshape(*y.shape[:-3], -1, queries, v.shape[-1])


fused_attention = compile_when_hot(attention)


def attention_weights(scores: Any, mask: Any, is_causal: Any) -> Any:
    """Return the softmax of the masked scores; 0 for a query that attends to no key."""
    if is_causal:
        if mask is not None:
            raise ArgumentError(f"{NAME}: give attn_mask or is_causal, not both")
        queries, keys = scores.shape[-2:]
        return softmax(where(arange(queries)[:, None] >= arange(keys), scores, -math.inf), -1)
    if mask is None:
        return softmax(scores, -1) if scores.shape[-1] else scores
    mask = as_tensor(mask)
    if mask.dtype.kind not in "bf":
        facts = f"attn_mask of dtype {mask.dtype}; it must be boolean, or floating and added"
        raise DTypeError(f"{NAME}: {facts}")
    try:
        fits = broadcast_shapes(mask.shape, scores.shape)[-2:] == scores.shape[-2:]
    except ShapeError:
        fits = False
    if not fits:
        facts = f"attn_mask of shape {mask.shape} for scores of shape {scores.shape}"
        raise ShapeError(f"{NAME}: {facts}; they must broadcast")
    if mask.dtype.kind == "b":
        scores = where(mask, scores, -math.inf)
    else:
        scores = scores + cast(mask, scores.dtype)
    if not scores.shape[-1]:
        return scores
    blind = amax(scores.detach(), -1, True) == -math.inf
    return where(blind, 0.0, softmax(scores, -1))


def check_shapes(q: Any, k: Any, v: Any, enable_gqa: Any) -> None:
    """Raise ShapeError unless query, key and value fit together."""
    shapes = f"query {q.shape}, key {k.shape}, value {v.shape}"
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ShapeError(f"{NAME}: {shapes}: each must be (..., position, feature)")
    if q.shape[-1] != k.shape[-1]:
        raise ShapeError(f"{NAME}: {shapes}: query and key differ in the last axis")
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"{NAME}: {shapes}: key and value differ in axis -2")
    if enable_gqa:
        heads = [x.shape[-3] if x.ndim > 2 else 0 for x in (q, k, v)]
        if not heads[0] or not heads[1] or heads[1] != heads[2] or heads[0] % heads[1]:
            facts = "the query heads (axis -3) must be a multiple of the key and value heads"
            raise ShapeError(f"{NAME}: {shapes}: {facts}")
