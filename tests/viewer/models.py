"""Programs that the tests look at: a small GPT and its training step."""

from __future__ import annotations

from typing import Any

import lucid
import lucid.nn.functional as F
from lucid import nn


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Any) -> Any:
        b, t, d = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        with lucid.named_scope("scores"):
            scores = q @ k.transpose(-2, -1) / (d // self.heads) ** 0.5
            mask = lucid.triu(lucid.ones(t, t), 1) > 0
            weights = lucid.softmax(lucid.where(mask, -1e9, scores), -1)
        return self.proj((weights @ v).transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x: Any) -> Any:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, layers: int, vocab: int = 32, dim: int = 16, context: int = 8) -> None:
        super().__init__()
        self.token = nn.Embedding(vocab, dim)
        self.position = nn.Embedding(context, dim)
        self.blocks = nn.ModuleList([Block(dim, 2) for _ in range(layers)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, tokens: Any) -> Any:
        x = self.token(tokens) + self.position(lucid.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss_of_gpt(layers: int) -> tuple[Any, tuple[Any, ...]]:
    """The loss of a GPT, and arguments for it."""
    model = GPT(layers)

    def loss(tokens: Any, targets: Any) -> Any:
        logits = model(tokens)
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))

    tokens = lucid.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
    return loss, (tokens, lucid.roll(tokens, -1, 1))


def training_step_of_gpt(layers: int) -> tuple[Any, tuple[Any, ...]]:
    """A training step of a GPT, and arguments for it."""
    model = GPT(layers)
    optimizer = lucid.optim.SGD(model.parameters(), lr=0.1)

    def step(tokens: Any, targets: Any) -> Any:
        optimizer.zero_grad()
        logits = model(tokens)
        value = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))
        value.backward()
        optimizer.step()
        return value

    tokens = lucid.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
    return step, (tokens, lucid.roll(tokens, -1, 1))
