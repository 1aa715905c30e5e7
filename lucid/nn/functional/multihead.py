"""Multi-head attention as a function of its weights.

Internally everything is (batch, heads, positions, features). Masks of keys and of scores are
combined into one that is added, or that stays boolean if all of them are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.nn.functional.attention import scaled_dot_product_attention
from lucid.nn.functional.dropouts import dropout
from lucid.nn.functional.linear_maps import linear
from lucid.ops.core.arguments import number, public_function
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import where
from lucid.ops.nn.softmax import softmax
from lucid.ops.shape.creation import zeros
from lucid.ops.shape.joining import cat, chunk, pad
from lucid.ops.shape.shaping import transpose


class AttentionFunction:
    """The weights and settings of one call of multi-head attention.

    weights    of queries, keys and values in one matrix, or None and three matrices
    out        the projection of the result
    dropout    the probability of dropping an attention weight, 0 in evaluation
    """

    def __init__(
        self,
        name: str,
        num_heads: int,
        weights: tuple[Any, Any, Any, Any],
        in_proj_bias: Any,
        bias_k: Any,
        bias_v: Any,
        add_zero_attn: bool,
        dropout: float,
        out: Callable[[Any], Any],
    ) -> None:
        self.name, self.num_heads, self.weights = name, num_heads, weights
        self.in_proj_bias, self.bias_k, self.bias_v = in_proj_bias, bias_k, bias_v
        self.add_zero_attn, self.dropout, self.out = add_zero_attn, dropout, out
        joined, q, k, v = weights
        n = joined.shape[-1] if joined is not None else q.shape[-1]
        self.embed_dim, self.head_dim = n, n // num_heads
        self.sizes = (n, n, n) if joined is not None else (n, k.shape[-1], v.shape[-1])

    def run(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any,
        need_weights: bool,
        attn_mask: Any,
        average_attn_weights: bool,
        is_causal: bool,
        batch_first: bool,
    ) -> tuple[Any, Any]:
        """Return the result and the weights (None unless needed), in the layout of the inputs."""
        if is_causal and attn_mask is None:
            raise ArgumentError(
                f"{self.name}: is_causal describes attn_mask, which is missing; give "
                "Transformer.generate_square_subsequent_mask(n)"
            )
        given = [as_tensor(x) for x in (query, key, value)]
        self.check(given, batch_first)
        batched = given[0].ndim == 3
        if not (batched and batch_first):  # one tensor given several times stays one
            moved = {id(x): transpose(x, 0, 1) if batched else x.unsqueeze(0) for x in given}
            given = [moved[id(x)] for x in given]
        q, k, v = self.project(given)
        masks = self.broadcast_masks(attn_mask, key_padding_mask, q, given[1].shape[1])
        k, v, mask = self.append_bias_kv(k, v, combine_masks(masks, q.dtype))
        q, k, v = (self.split_heads(x) for x in (q, k, v))
        y, weights = self.attend(q, k, v, mask, need_weights)
        y = self.out(transpose(y, 1, 2).reshape(y.shape[0], -1, self.embed_dim))
        if weights is not None:
            weights = weights.mean(1) if average_attn_weights else weights
            weights = weights if batched else weights.squeeze(0)
        if batched:
            return (y if batch_first else transpose(y, 0, 1)), weights
        return y.squeeze(0), weights

    def check(self, given: list[Any], batch_first: bool) -> None:
        """Raise ShapeError unless query, key and value fit together."""
        q, k, v = given
        shapes = f"{self.name}: query {q.shape}, key {k.shape}, value {v.shape}"
        if q.ndim not in (2, 3) or k.ndim != q.ndim or v.ndim != q.ndim:
            raise ShapeError(f"{shapes}: all must have 3 axes, or 2 without a batch")
        sizes = self.sizes
        if tuple(x.shape[-1] for x in given) != sizes:
            raise ShapeError(f"{shapes}: the last axes must be {sizes}")
        if k.shape[:-1] != v.shape[:-1]:
            raise ShapeError(f"{shapes}: key and value must agree in all but the last axis")
        examples = 0 if batch_first else 1
        if q.ndim == 3 and q.shape[examples] != k.shape[examples]:
            raise ShapeError(f"{shapes}: they differ in batch size")

    def project(self, given: list[Any]) -> list[Any]:
        """Apply the input projections to queries, keys and values (batch, positions, features)."""
        q, k, v = given
        joined, *weights = self.weights
        bias = self.in_proj_bias
        if joined is not None and q is k is v:
            return list(chunk(linear(q, joined, bias), 3, -1))
        if joined is not None:
            weights = list(chunk(joined, 3, 0))
        biases = [None] * 3 if bias is None else chunk(bias, 3, 0)
        return [linear(x, w, b) for x, w, b in zip(given, weights, biases)]

    def split_heads(self, x: Any) -> Any:
        """Reshape to (batch, heads, positions, features per head)."""
        parts = x.reshape(x.shape[0], x.shape[1], self.num_heads, self.head_dim)
        return transpose(parts, 1, 2)

    def broadcast_masks(
        self, attn_mask: Any, key_padding_mask: Any, q: Any, keys: int
    ) -> list[Any]:
        """Return the given masks with four axes that broadcast to the scores."""
        found = []
        examples, queries = q.shape[:2]
        if attn_mask is not None:
            mask, heads = check_mask(self.name, "attn_mask", attn_mask), self.num_heads
            if mask.shape not in ((queries, keys), (examples * heads, queries, keys)):
                raise ShapeError(
                    f"{self.name}: attn_mask of shape {mask.shape} is not {(queries, keys)} or "
                    f"{(examples * heads, queries, keys)}"
                )
            full = (examples, heads, queries, keys)
            found.append(mask.reshape(full) if mask.ndim == 3 else mask[None, None])
        if key_padding_mask is not None:
            mask = check_mask(self.name, "key_padding_mask", key_padding_mask)
            mask = mask if mask.ndim == 2 else mask.unsqueeze(0)
            if mask.shape != (examples, keys):
                raise ShapeError(
                    f"{self.name}: key_padding_mask of shape {mask.shape}; it must be "
                    f"{(examples, keys)}"
                )
            found.append(mask[:, None, None, :])
        return found

    def append_bias_kv(self, k: Any, v: Any, mask: Any) -> tuple[Any, Any, Any]:
        """Append learned or zero keys and values, which every query attends to."""
        n, added = k.shape[0], 0
        if self.bias_k is not None:
            learned = [b.expand(n, 1, self.embed_dim) for b in (self.bias_k, self.bias_v)]
            k, v, added = cat([k, learned[0]], 1), cat([v, learned[1]], 1), added + 1
        if self.add_zero_attn:
            none = zeros(n, 1, self.embed_dim, dtype=k.dtype)
            k, v, added = cat([k, none], 1), cat([v, none], 1), added + 1
        if mask is not None and added:
            mask = pad(mask, [0, added], value=mask.dtype.kind == "b")
        return k, v, mask

    def attend(self, q: Any, k: Any, v: Any, mask: Any, need_weights: bool) -> tuple[Any, Any]:
        """Return the attended values, and the attention weights if needed."""
        if not need_weights:
            return scaled_dot_product_attention(q, k, v, mask, self.dropout), None
        scores = (q * (1 / math.sqrt(self.head_dim))) @ k.mT
        if mask is not None:
            boolean = mask.dtype.kind == "b"
            scores = where(mask, scores, -math.inf) if boolean else scores + mask
        weights = dropout(softmax(scores, -1), self.dropout)
        return weights @ v, weights


@public_function("nn.functional")
def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any | None]:
    """Compute `nn.MultiheadAttention` for inputs (positions, batch, features)."""
    name = "multi_head_attention_forward"
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    if static_k is not None or static_v is not None:
        raise ArgumentError(f"{name}: static_k and static_v are not supported")
    chosen = separate if use_separate_proj_weight else (in_proj_weight,)
    if any([w is None for w in chosen]):
        wanted = "three weights" if use_separate_proj_weight else "in_proj_weight"
        raise ArgumentError(f"{name}: {wanted} must be given")
    parts = [as_tensor(w) for w in chosen]
    features = parts[0].shape[-1] if parts[0].ndim else 0
    embed_dim_to_check = number(name, "embed_dim_to_check", embed_dim_to_check)
    if features != embed_dim_to_check or num_heads < 1 or features % num_heads:
        facts = f"weights for {features} features, expected {embed_dim_to_check}"
        raise ShapeError(f"{name}: {facts}, divisible by {num_heads} heads")
    weights: Any = (None, *parts) if use_separate_proj_weight else (parts[0], None, None, None)
    attending = AttentionFunction(
        name, num_heads, weights, in_proj_bias, bias_k, bias_v, bool(add_zero_attn),
        dropout_p if training else 0.0, lambda y: linear(y, out_proj_weight, out_proj_bias),
    )  # fmt: skip
    return attending.run(
        query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights,
        is_causal, False,
    )  # fmt: skip


def check_mask(what: str, name: str, mask: Any) -> Any:
    """Return a mask as a tensor; raise DTypeError unless it is boolean or floating."""
    mask = as_tensor(mask)
    if mask.dtype.kind not in "bf":
        facts = f"{name} of dtype {mask.dtype}; it must be boolean, or floating and added"
        raise DTypeError(f"{what}: {facts}")
    return mask


def combine_masks(masks: list[Any], dtype: Any) -> Any:
    """Combine masks into one: boolean (True: attend), or numbers to add; None if there are none."""
    if not masks:
        return None
    if all(mask.dtype.kind == "b" for mask in masks):
        hidden = masks[0] if len(masks) == 1 else masks[0] | masks[1]
        return ~hidden
    added = [
        where(mask, -math.inf, 0.0).to(dtype) if mask.dtype.kind == "b" else cast(mask, dtype)
        for mask in masks
    ]
    return added[0] if len(added) == 1 else added[0] + added[1]
