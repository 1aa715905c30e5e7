"""Attention of several heads.

Inside, everything is (examples, heads, positions, features). Masks of both kinds, of keys and of
scores, become one that is added, or stay boolean where all of them are.
"""

from __future__ import annotations

import math
from typing import Any

import lucid.nn.functional as F
from lucid.errors import ArgumentError, DTypeError, ShapeError
from lucid.ir.source import at_line
from lucid.nn import init
from lucid.nn.layers.linear import Linear
from lucid.nn.module import Module
from lucid.nn.parameter import Parameter
from lucid.ops.conditional import where
from lucid.ops.creation import empty, zeros
from lucid.ops.joining import cat, chunk, pad
from lucid.ops.promote import as_tensor, cast
from lucid.ops.shaping import transpose


class MultiheadAttention(Module):
    """Attention of `num_heads` heads between linear projections of queries, keys and values.

    `y, weights = attention(query, key, value)` for inputs (positions, examples, features), or
    (examples, positions, features) where `batch_first`. A boolean mask is True where a key is not
    seen. The weights are None unless they are needed, which costs some speed.

    >>> import lucid
    >>> attention = lucid.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = lucid.ones(3, 5, 8)
    >>> y, weights = attention(x, x, x)
    >>> y.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ArgumentError(
                f"MultiheadAttention: {embed_dim} features are not {num_heads} equal "
                f"heads{at_line()}"
            )
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.head_dim, self.batch_first = embed_dim // num_heads, batch_first
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.add_zero_attn = add_zero_attn
        self.add_weights(bias, add_bias_kv, dtype)
        self.reset_parameters()

    def add_weights(self, bias: bool, add_bias_kv: bool, dtype: Any) -> None:
        n = self.embed_dim
        joined = self.kdim == self.vdim == n
        shapes: dict[str, tuple[int, ...] | None] = {
            "in_proj_weight": (3 * n, n) if joined else None,
            "q_proj_weight": None if joined else (n, n),
            "k_proj_weight": None if joined else (n, self.kdim),
            "v_proj_weight": None if joined else (n, self.vdim),
            "in_proj_bias": (3 * n,) if bias else None,
        }
        for name, shape in shapes.items():
            self.register_parameter(name, a_parameter(shape, dtype))
        self.out_proj = Linear(n, n, bias=bias, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, a_parameter((1, 1, n) if add_bias_kv else None, dtype))

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
            init.xavier_normal_(self.bias_v)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        if is_causal and attn_mask is None:
            raise ArgumentError(
                "MultiheadAttention: is_causal says what attn_mask is, which is missing; give "
                f"Transformer.generate_square_subsequent_mask(n){at_line()}"
            )
        given = [as_tensor(x) for x in (query, key, value)]
        self.check(given)
        batched = given[0].ndim == 3
        if not (batched and self.batch_first):  # what is one tensor stays one
            moved = {id(x): transpose(x, 0, 1) if batched else x.unsqueeze(0) for x in given}
            given = [moved[id(x)] for x in given]
        q, k, v = self.projected(given)
        masks = self.masks(attn_mask, key_padding_mask, q, given[1].shape[1])
        k, v, mask = self.extended(k, v, combined(masks, q.dtype))
        q, k, v = (self.heads(x) for x in (q, k, v))
        y, weights = self.attend(q, k, v, mask, need_weights)
        y = self.out_proj(transpose(y, 1, 2).reshape(y.shape[0], -1, self.embed_dim))
        if weights is not None:
            weights = weights.mean(1) if average_attn_weights else weights
            weights = weights if batched else weights.squeeze(0)
        if batched:
            return (y if self.batch_first else transpose(y, 0, 1)), weights
        return y.squeeze(0), weights

    def check(self, given: list[Any]) -> None:
        q, k, v = given
        shapes = f"MultiheadAttention: query {q.shape}, key {k.shape}, value {v.shape}"
        if q.ndim not in (2, 3) or k.ndim != q.ndim or v.ndim != q.ndim:
            raise ShapeError(f"{shapes}: all have 3 axes, or all 2 without examples{at_line()}")
        sizes = (self.embed_dim, self.kdim, self.vdim)
        if tuple(x.shape[-1] for x in given) != sizes:
            raise ShapeError(f"{shapes}: the last axes are {sizes}{at_line()}")
        if k.shape[:-1] != v.shape[:-1]:
            raise ShapeError(f"{shapes}: key and value agree in all but the last axis{at_line()}")
        examples = 0 if self.batch_first else 1
        if q.ndim == 3 and q.shape[examples] != k.shape[examples]:
            raise ShapeError(f"{shapes}: they differ in the number of examples{at_line()}")

    def projected(self, given: list[Any]) -> list[Any]:
        """Queries, keys and values (examples, positions, features), projected."""
        q, k, v = given
        bias = self.in_proj_bias
        if self.in_proj_weight is not None and q is k is v:
            return list(chunk(F.linear(q, self.in_proj_weight, bias), 3, -1))
        weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        if self.in_proj_weight is not None:
            weights = list(chunk(self.in_proj_weight, 3, 0))
        biases = [None] * 3 if bias is None else chunk(bias, 3, 0)
        return [F.linear(x, w, b) for x, w, b in zip(given, weights, biases)]

    def heads(self, x: Any) -> Any:
        """(examples, heads, positions, features of a head)."""
        parts = x.reshape(x.shape[0], x.shape[1], self.num_heads, self.head_dim)
        return transpose(parts, 1, 2)

    def masks(self, attn_mask: Any, key_padding_mask: Any, q: Any, keys: int) -> list[Any]:
        """The masks that there are, of four axes that broadcast to the scores."""
        found = []
        examples, queries = q.shape[:2]
        if attn_mask is not None:
            mask, heads = a_mask("attn_mask", attn_mask), self.num_heads
            if mask.shape not in ((queries, keys), (examples * heads, queries, keys)):
                raise ShapeError(
                    f"MultiheadAttention: attn_mask of shape {mask.shape}; {(queries, keys)} or "
                    f"{(examples * heads, queries, keys)} fits{at_line()}"
                )
            full = (examples, heads, queries, keys)
            found.append(mask.reshape(full) if mask.ndim == 3 else mask[None, None])
        if key_padding_mask is not None:
            mask = a_mask("key_padding_mask", key_padding_mask)
            mask = mask if mask.ndim == 2 else mask.unsqueeze(0)
            if mask.shape != (examples, keys):
                raise ShapeError(
                    f"MultiheadAttention: key_padding_mask of shape {mask.shape}; "
                    f"{(examples, keys)} fits{at_line()}"
                )
            found.append(mask[:, None, None, :])
        return found

    def extended(self, k: Any, v: Any, mask: Any) -> tuple[Any, Any, Any]:
        """Keys and values with those that are learned or 0 behind them, which all queries see."""
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
        p = self.dropout if self.training else 0.0
        if not need_weights:
            return F.scaled_dot_product_attention(q, k, v, mask, p), None
        scores = (q * (1 / math.sqrt(self.head_dim))) @ k.mT
        if mask is not None:
            boolean = mask.dtype.kind == "b"
            scores = where(mask, scores, -math.inf) if boolean else scores + mask
        weights = F.dropout(F.softmax(scores, -1), p)
        return weights @ v, weights


def a_parameter(shape: tuple[int, ...] | None, dtype: Any) -> Any:
    return None if shape is None else Parameter(empty(*shape, dtype=dtype))


def a_mask(name: str, mask: Any) -> Any:
    mask = as_tensor(mask)
    if mask.dtype.kind not in "bf":
        facts = f"{name} of dtype {mask.dtype}; it is boolean, or floating and added"
        raise DTypeError(f"MultiheadAttention: {facts}{at_line()}")
    return mask


def combined(masks: list[Any], dtype: Any) -> Any:
    """One mask: boolean, True where a key is seen, or numbers to add; None where there is none."""
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
