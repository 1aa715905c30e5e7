"""The networks and optimizers of random training steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lucid
from lucid import nn

ROWS, WIDTH = 4, 3


class Recurrent(nn.Module):
    """A cell that goes over the rows, with its state from one to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(WIDTH, 4)
        self.out = nn.Linear(4, WIDTH)

    def forward(self, x: Any) -> Any:
        h, c, rows = lucid.zeros(1, 4), lucid.zeros(1, 4), []
        for row in x:
            h, c = self.cell(row[None], (h, c))
            rows.append(self.out(h))
        return lucid.cat(rows)


class Tied(nn.Module):
    """A weight that is used twice, a part without a gradient, a branch on a value."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(lucid.rand(WIDTH, 5) - 0.5)
        self.scale = nn.Parameter(lucid.ones(WIDTH))

    def forward(self, x: Any) -> Any:
        with lucid.no_grad():
            center = (x @ self.weight).mean()
        y = lucid.relu(x @ self.weight - center) @ self.weight.T
        return y * self.scale + x.detach()


class Gated(nn.Module):
    """Two kinds of cells, one on the states of the other, from a state of zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.GRUCell(WIDTH, 4), nn.RNNCell(4, WIDTH)

    def forward(self, x: Any) -> Any:
        h = y = None
        rows = []
        for row in x:
            h = self.first(row[None], h)
            y = self.second(h, y)
            rows.append(y)
        return lucid.cat(rows)


class Quantized(nn.Module):
    """A straight-through estimator: the step reads a value of its own, detached."""

    def __init__(self) -> None:
        super().__init__()
        self.code, self.out = nn.Linear(WIDTH, 5), nn.Linear(5, WIDTH)

    def forward(self, x: Any) -> Any:
        z = self.code(x)
        off = (lucid.floor(z * 4 + 0.3) / 4 - z).detach()
        return self.out(z + off) + 0.1 * (self.out(z) - self.out(z).detach()) ** 2


NETWORKS: dict[str, Callable[[], Any]] = {
    "linear": lambda: nn.Sequential(nn.Linear(WIDTH, 5), nn.Tanh(), nn.Linear(5, WIDTH)),
    "norm": lambda: nn.Sequential(nn.Linear(WIDTH, 5), nn.BatchNorm1d(5), nn.Linear(5, WIDTH)),
    "dropout": lambda: nn.Sequential(nn.Linear(WIDTH, 5), nn.Dropout(0.3), nn.Linear(5, WIDTH)),
    "convolution": lambda: nn.Sequential(
        nn.Unflatten(1, (1, WIDTH)),
        nn.Conv1d(1, 2, 2, padding=1),
        nn.GELU(),
        nn.Flatten(),
        nn.Linear(2 * WIDTH + 2, WIDTH),
    ),
    "recurrent": Recurrent,
    "gated": Gated,
    "quantized": Quantized,
    "tied": Tied,
    "layer norm": lambda: nn.Sequential(nn.Linear(WIDTH, 5), nn.LayerNorm(5), nn.Linear(5, WIDTH)),
}
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda ps: lucid.optim.SGD(ps, lr=0.05, momentum=0.5),
    "adam": lambda ps: lucid.optim.AdamW(ps, lr=0.01, eps=0.01),  # rounding decides nothing
    "last": lambda ps: lucid.optim.SGD(ps[-2:], lr=0.05),  # other gradients add up
    "two": lambda ps: Both(ps),
    "by hand": lambda ps: ByHand(ps),
}


class Both:
    """Two optimizers, of every other parameter."""

    def __init__(self, parameters: list[Any]) -> None:
        self.parts = (
            lucid.optim.SGD(parameters[::2], lr=0.05),
            lucid.optim.RMSprop(parameters[1::2], lr=0.01, eps=0.01),
        )
        self.param_groups = [group for part in self.parts for group in part.param_groups]

    def zero_grad(self, set_to_none: bool = True) -> None:
        for part in self.parts:
            part.zero_grad(set_to_none=set_to_none)

    def step(self) -> None:
        for part in self.parts:
            part.step()


class ByHand:
    """An update that is written out."""

    def __init__(self, parameters: list[Any]) -> None:
        self.param_groups = [{"params": parameters, "lr": 0.05}]

    def zero_grad(self, set_to_none: bool = True) -> None:
        for p in self.param_groups[0]["params"]:
            if set_to_none:
                p.grad = None
            elif p.grad is not None:
                p.grad.zero_()

    def step(self) -> None:
        with lucid.no_grad():
            for p in self.param_groups[0]["params"]:
                if p.grad is not None:
                    p -= self.param_groups[0]["lr"] * p.grad
