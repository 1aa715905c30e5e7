"""Multi-head attention as a layer."""

from __future__ import annotations

from typing import Any

from lucid.errors import ArgumentError
from lucid.nn import init
from lucid.nn.functional.multihead import AttentionFunction
from lucid.nn.layers.linear import Linear
from lucid.nn.module import Module
from lucid.nn.parameter import Parameter
from lucid.ops.core.arguments import accepts_device
from lucid.ops.shape.creation import empty
from lucid.public.declare import public


@public("nn")
class MultiheadAttention(Module):
    """Attention with `num_heads` heads between linear projections of queries, keys and values.

    `y, weights = attention(query, key, value)` for inputs (positions, batch, features), or (batch,
    positions, features) with `batch_first`. A boolean mask is True where a key is hidden. The
    weights are None unless they are needed, which costs some speed.

    >>> import lucid
    >>> attention = lucid.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = lucid.ones(3, 5, 8)
    >>> y, weights = attention(x, x, x)
    >>> y.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    @accepts_device
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
                f"MultiheadAttention: {embed_dim} features are not divisible into {num_heads} heads"
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
            self.register_parameter(name, make_parameter(shape, dtype))
        self.out_proj = Linear(n, n, bias=bias, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, make_parameter((1, 1, n) if add_bias_kv else None, dtype))

    def reset_parameters(self) -> None:
        """Reinitialize all parameters."""
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
        return self.attention_function().run(
            query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights,
            is_causal, self.batch_first,
        )  # fmt: skip

    def attention_function(self) -> AttentionFunction:
        """Return the function that `forward` applies, with the current weights."""
        weights = (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        return AttentionFunction(
            "MultiheadAttention", self.num_heads, weights, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout if self.training else 0.0,
            self.out_proj,
        )  # fmt: skip


def make_parameter(shape: tuple[int, ...] | None, dtype: Any) -> Any:
    """Return an uninitialized parameter of a shape, or None."""
    return None if shape is None else Parameter(empty(*shape, dtype=dtype))
