"""MAML: parameters from which one step of descent on ten points fits a new sine.

    python examples/maml.py [--eager] [--quick] [--out FOLDER]

The loss of a task is taken after a step of gradient descent, so its gradient differentiates that
step; `vmap` runs all tasks of a batch at once.

The squared error of new sines falls from 2.88 to 0.45 in one step and to 0.14 in ten, after 10,000
steps in 9 s on two busy cores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import support

import lucid
import lucid.nn.functional as F
from lucid import nn
from lucid.func import functional_call, grad, vmap
from lucid.optim import Adam
from lucid.utils import progress

RATE, SHOTS = 0.01, 10


def network(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
    )


def tasks(rng: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Points to adapt to and points to evaluate on, from sines of random height and phase."""
    height, phase = rng.uniform(0.1, 5, (count, 1, 1)), rng.uniform(0, np.pi, (count, 1, 1))
    x = rng.uniform(-5, 5, (count, 2 * SHOTS, 1))
    y = height * np.sin(x - phase)
    arrays = (x[:, :SHOTS], y[:, :SHOTS], x[:, SHOTS:], y[:, SHOTS:])
    return tuple(lucid.tensor(a.astype(np.float32)) for a in arrays)


def loss_of(model: nn.Module, params: Any, x: Any, y: Any) -> Any:
    return F.mse_loss(functional_call(model, params, x), y)


def adapted(model: nn.Module, params: Any, x: Any, y: Any, steps: int = 1) -> Any:
    """The parameters after steps of descent on the given points."""
    for _ in range(steps):
        slopes = grad(lambda params: loss_of(model, params, x, y))(params)
        params = {name: p - RATE * slopes[name] for name, p in params.items()}
    return params


def after(model: nn.Module, params: Any, batch: Any, steps: int = 1) -> Any:
    """The mean loss of new points after adapting, over tasks."""

    def one(x: Any, y: Any, new_x: Any, new_y: Any) -> Any:
        return loss_of(model, adapted(model, params, x, y, steps), new_x, new_y)

    return vmap(one)(*batch).mean()


def train(width: int, steps: int, size: int, compiled: bool = True) -> nn.Module:
    lucid.manual_seed(0)
    rng = np.random.default_rng(0)
    model = network(width)
    optimizer = Adam(model.parameters(), lr=1e-3)

    def step(*batch: Any) -> Any:
        loss = after(model, dict(model.named_parameters()), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    run = lucid.jit(step) if compiled else step
    for _ in (loop := progress(steps, "step")):
        loop.show(loss=run(*tasks(rng, size)))
    return model


def draw(figure: Any, model: nn.Module) -> None:
    """Three new sines: before, and after one and ten steps."""
    x, y, new_x, new_y = tasks(np.random.default_rng(2), 3)
    line = lucid.linspace(-5, 5, 200)[:, None]
    params = dict(model.named_parameters())
    for i, axes in enumerate(figure.subplots(1, 3, sharey=True)):
        for steps in (0, 1, 10):
            fitted = functional_call(model, adapted(model, params, x[i], y[i], steps), line)
            axes.plot(
                line.numpy(), fitted.detach().numpy(), label=f"{steps} step{'s' * (steps != 1)}"
            )
        axes.scatter(x[i].numpy(), y[i].numpy(), color="C3", label="shown", zorder=3)
        axes.scatter(new_x[i].numpy(), new_y[i].numpy(), color="0.6", label="not shown")
    figure.axes[0].legend()


def main(arguments: list[str] | None = None) -> float:
    options = support.options(__doc__, arguments)
    width, steps, size = (40, 100, 10) if options.quick else (40, 10000, 25)
    model, seconds = support.seconds(lambda: train(width, steps, size, not options.eager))
    new = tasks(np.random.default_rng(1), 500)
    params = {name: p.detach() for name, p in model.named_parameters()}
    losses = [after(model, params, new, count).item() for count in (0, 1, 10)]
    print(f"mean squared error of 500 new sines: {losses[0]:.2f} at first, ", end="")
    print(f"{losses[1]:.2f} after one step, {losses[2]:.2f} after ten, {seconds:.1f} s")
    support.picture(options.out / "maml.png", lambda figure: draw(figure, model), (12, 4))
    return float(losses[1] / losses[0])


if __name__ == "__main__":
    main()
