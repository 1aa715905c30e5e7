"""The GPT of gpt.py on many processes: a functional step whose results are means over all ranks.

    python -m lucid.distributed.run -n 2 examples/parallel_gpt.py [--eager] [--quick]

`data_parallel` turns a function of this rank's pieces of text into one of the pieces of all ranks.
The loss is the same for every number of ranks that divides the 32 pieces of a step.
"""

from __future__ import annotations

from typing import Any

import gpt
import support

import lucid
import lucid.distributed as dist
from lucid.func import functional_call, value_and_grad
from lucid.nn.functional import cross_entropy


def train(model: gpt.GPT, steps: int, size: int, compiled: bool = True) -> list[float]:
    """Train by plain momentum; return the loss of every step, over the pieces of all ranks."""
    params = {name: p.detach() for name, p in model.named_parameters()}
    speeds = {name: p * 0.0 for name, p in params.items()}

    def loss(params: Any, x: Any, y: Any) -> Any:
        scores = functional_call(model, params, x)
        return cross_entropy(scores.flatten(0, 1), y.flatten())

    grads_of = dist.data_parallel(value_and_grad(loss), batch_argnums=(1, 2))

    def step(params: Any, speeds: Any, x: Any, y: Any) -> Any:
        value, grads = grads_of(params, x, y)
        speeds = {name: 0.9 * v + grads[name] for name, v in speeds.items()}
        return value, {name: p - 0.1 * speeds[name] for name, p in params.items()}, speeds

    run = lucid.jit(step) if compiled else step
    losses = []
    mine = size // dist.world_size()
    begin = mine * dist.rank()
    for x, y in gpt.batches(gpt.CODES[: -gpt.HELD_OUT], steps, size, model.length, seed=0):
        part = slice(begin, begin + mine)
        value, params, speeds = run(params, speeds, x[part], y[part])
        losses.append(value)
    model.load_state_dict(params, strict=False)
    return [value.item() for value in losses]


def main(arguments: list[str] | None = None) -> float:
    options = support.options(__doc__, arguments)
    dist.manual_seed(0, same=True)
    steps, size = (80, 16) if options.quick else (1500, 32)
    width, layers = (32, 1) if options.quick else (96, 3)
    model = gpt.GPT(length=32, width=width, layers=layers, dropout=0.0)
    losses, seconds = support.seconds(lambda: train(model, steps, size, not options.eager))
    reached = gpt.held_out_loss(model, 5)
    if dist.rank() == 0:
        print(f"{reached:.3f} nats a letter on {dist.world_size()} ranks, {seconds:.1f} s")
        support.picture(options.out / "parallel_gpt.png", lambda f: f.subplots().plot(losses))
    return reached


if __name__ == "__main__":
    main()
