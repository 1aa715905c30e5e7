"""Transformers: encoder and decoder layers, stacks of them, and the whole network."""

from __future__ import annotations

import copy
import math
from typing import Any

import lucid.nn.functional as F
from lucid.errors import ArgumentError
from lucid.nn import init
from lucid.nn.containers import ModuleList
from lucid.nn.layers.dropout import Dropout
from lucid.nn.layers.linear import Linear
from lucid.nn.layers.norm import LayerNorm
from lucid.nn.layers.sequences.attention import MultiheadAttention
from lucid.nn.module import Module
from lucid.ops.core.arguments import accepts_device
from lucid.ops.core.promote import as_tensor, get_default_dtype
from lucid.ops.elementwise.conditional import where
from lucid.ops.shape.creation import arange
from lucid.public.declare import public

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


def activation_of(name: str, activation: Any) -> Any:
    """Return an activation function, given by name or as a function."""
    if not callable(activation) and activation not in ACTIVATIONS:
        raise ArgumentError(
            f"{name}: activation must be 'relu', 'gelu' or a function, not {activation!r}"
        )
    return activation if callable(activation) else ACTIVATIONS[activation]


class TransformerBlock(Module):
    """The base of encoder and decoder layers: residual parts, each with a norm before or after."""

    @accepts_device
    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()

        def attention() -> MultiheadAttention:
            return MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype
            )

        self.self_attn = attention()
        if self.attends_memory:
            self.multihead_attn = attention()
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self.norm_first = norm_first
        parts = ("1", "2", "3") if self.attends_memory else ("1", "2")
        for part in parts:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
            self.register_module(f"norm{part}", norm)
        for part in parts:
            self.register_module(f"dropout{part}", Dropout(dropout))
        self.activation = activation_of(type(self).__name__, activation)

    attends_memory = False

    def residual(self, x: Any, norm: Any, part: Any) -> Any:
        return x + part(norm(x)) if self.norm_first else norm(x + part(x))

    def feed_forward(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


@public("nn")
class TransformerEncoderLayer(TransformerBlock):
    """Self-attention, then two linear maps with an activation between."""

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:
        def attended(x: Any) -> Any:
            y, _ = self.self_attn(
                x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal
            )
            return self.dropout1(y)

        x = self.residual(as_tensor(src), self.norm1, attended)
        return self.residual(x, self.norm2, lambda x: self.dropout2(self.feed_forward(x)))


@public("nn")
class TransformerDecoderLayer(TransformerBlock):
    """Self-attention, attention to a memory, then two linear maps."""

    attends_memory = True

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        def attended(x: Any) -> Any:
            y, _ = self.self_attn(
                x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal
            )
            return self.dropout1(y)

        def remembered(x: Any) -> Any:
            y, _ = self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, False, memory_mask,
                is_causal=memory_is_causal,
            )  # fmt: skip
            return self.dropout2(y)

        x = self.residual(as_tensor(tgt), self.norm1, attended)
        x = self.residual(x, self.norm2, remembered)
        return self.residual(x, self.norm3, lambda x: self.dropout3(self.feed_forward(x)))


def copies_of(name: str, layer: Any, n: int) -> ModuleList:
    """Return a list of `n` copies of a layer."""
    if not isinstance(layer, Module):
        raise ArgumentError(f"{name}: a {type(layer).__name__} is not a Module")
    return ModuleList([copy.deepcopy(layer) for _ in range(n)])


@public("nn")
class TransformerEncoder(Module):
    """A stack of copies of an encoder layer, with an optional final norm."""

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Any = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = copies_of("TransformerEncoder", encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Any:
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)


@public("nn")
class TransformerDecoder(Module):
    """A stack of copies of a decoder layer, with an optional final norm."""

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = copies_of("TransformerDecoder", decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                bool(tgt_is_causal), memory_is_causal,
            )  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)


@public("nn")
class Transformer(Module):
    """An encoder of one sequence, and a decoder of another that attends to it."""

    @accepts_device
    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        settings = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias,
        )  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*settings, dtype=dtype), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*settings, dtype=dtype), num_decoder_layers, norm()
        )
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize all matrices."""
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
            tgt_is_causal, memory_is_causal,
        )  # fmt: skip

    @staticmethod
    @accepts_device
    def generate_square_subsequent_mask(sz: int, dtype: Any = None) -> Any:
        """Return the causal mask: 0 up to the diagonal, -inf above.

        >>> import lucid
        >>> lucid.nn.Transformer.generate_square_subsequent_mask(2)
        Tensor([[  0., -inf],
                [  0.,   0.]])
        """
        sees = arange(sz)[:, None] >= arange(sz)
        return where(sees, 0.0, -math.inf).to(get_default_dtype() if dtype is None else dtype)
