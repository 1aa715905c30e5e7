"""Layers against PyTorch, from the same state: forward, gradients, and steps of training.

`python -m tests.nn.parity [NAME ...]` prints how many layers agree and every difference; its exit
code is 1 if there is one. The state is carried over by `load_state_dict`, so names and shapes of
parameters and buffers are compared too; names that PyTorch has and Lucid lacks are told.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import torch

import lucid
from tests.nn.layer_keywords import all_layers
from tests.nn.layer_table import RNG, Layer, Variable, arrays_of, flat, map_arrays

RTOL = 1e-9
ROUNDED = {
    "Hardsigmoid": 1e-7,  # PyTorch has 1/6 in single precision there
    "CELU": 1e-7,  # and 1/alpha
}
# PyTorch's gradient of log_probs is right after log_softmax alone.
UNCOMPARED = {("CTCLoss", "gradient of input 0")}
STEPS = 3


class Side:
    """One of the two systems with its copy of the layer."""

    def __init__(self, space: Any, made: Any, inputs: Any, options: Any, tensor: Any) -> None:
        self.space, self.module, self.tensor = space, made, tensor
        self.inputs = map_arrays(self.operand, inputs)
        self.options = map_arrays(tensor, options)

    def operand(self, x: np.ndarray) -> Any:
        made = self.tensor(np.asarray(x))
        return made.requires_grad_(True) if isinstance(x, Variable) else made

    def outputs(self) -> list[Any]:
        return flat(self.module(*self.inputs, **self.options))

    def numbers(self, xs: Any) -> list[np.ndarray]:
        return [x.detach().numpy() for x in xs]

    def train(self, weights: list[np.ndarray]) -> list[tuple[str, Any]]:
        """What a few steps of plain descent give: outputs, gradients, parameters, buffers."""
        found: list[tuple[str, Any]] = []
        for step in range(STEPS):
            ys = self.outputs()
            found += [(f"output {i} at step {step}", y) for i, y in enumerate(self.numbers(ys))]
            loss = sum((y * self.tensor(w)).sum() for y, w in zip(ys, weights))
            self.module.zero_grad()
            for x in flat(self.inputs):
                x.grad = None
            loss.backward()
            for i, x in enumerate(flat(self.inputs)):
                if x.grad is not None:
                    found.append((f"gradient of input {i}", x.grad.numpy()))
            with self.space.no_grad():
                for name, p in self.module.named_parameters():
                    found.append((f"gradient of {name}", p.grad.numpy().copy()))
                    p.sub_(p.grad * 0.01)
        state = self.module.state_dict()
        return [*found, *[(name, x.detach().numpy()) for name, x in state.items()]]


def made_by(space: Any, made: Layer) -> Any:
    """The layer of one of the systems; `Linear+weight_norm` is one with a parametrization."""
    name, _, parametrization = made.name.partition("+")
    tensor = space.tensor
    args, kwargs = map_arrays(tensor, made.args), map_arrays(tensor, made.kwargs)
    module = getattr(space.nn, name)(*args, **kwargs)
    if parametrization:
        getattr(space.nn.utils.parametrizations, parametrization)(module)
    return module


def compare(made: Layer) -> str | None:
    """The first difference between the two systems, None where there is none."""
    lucid.manual_seed(0)
    theirs, ours = (made_by(space, made).double() for space in (torch, lucid))
    inputs = tuple([arrays_of(shape) for shape in made.inputs])
    a = Side(lucid, ours, inputs, made.options, lambda x: lucid.tensor(np.asarray(x).copy()))
    b = Side(torch, theirs, inputs, made.options, lambda x: torch.tensor(x))
    weights = [RNG.normal(size=tuple(y.shape)) for y in b.outputs()]
    a.outputs()  # which gives lazy layers their parameters
    state = {name: x.numpy().copy() for name, x in theirs.state_dict().items()}
    if list(state) != list(ours.state_dict()):
        return f"names {list(ours.state_dict())}, PyTorch has {list(state)}"
    ours.load_state_dict({name: lucid.tensor(x) for name, x in state.items()})
    for (name, x), (other, y) in zip(a.train(weights), b.train(weights), strict=True):
        if name != other or x.shape != y.shape:
            return f"{name} {x.shape}, {other} {y.shape}"
        if (made.name, name) in UNCOMPARED:
            continue
        tolerance = ROUNDED.get(made.name, RTOL)
        if not np.allclose(x, y, tolerance, tolerance, equal_nan=True):
            return f"{name} differs by {abs(x - y).max():.3g}"
    return None


def missing() -> list[str]:
    """Names of PyTorch's layers that Lucid lacks."""
    theirs = [n for n in dir(torch.nn) if isinstance(getattr(torch.nn, n), type)]
    return [name for name in theirs if not hasattr(lucid.nn, name)]


def main(names: list[str]) -> int:
    chosen = [made for made in all_layers() if not names or made.name in names]
    wrong = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for made in chosen:
            try:
                difference = compare(made)
            except Exception as error:
                difference = f"{type(error).__name__}: {error}"
            if difference is not None:
                wrong += 1
                print(f"{made}: {difference}")
    print(f"layers: {len(chosen) - wrong} of {len(chosen)} agree with PyTorch")
    if not names:
        print(f"layers of PyTorch that are not here: {', '.join(missing())}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
