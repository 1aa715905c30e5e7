"""A heat equation on many processes, and its initial state recovered from a later one.

    python -m lucid.distributed.run -n 4 examples/halo_exchange.py [--eager] [--quick]

Each rank has a part of a rod and exchanges one point with each neighbor at every step. The misfit
to the temperature after some time is differentiated through all steps and all ranks, and gradient
descent finds the initial state. The objective is the sum of all ranks' results, so the
gradient on each rank is that of the whole problem; nothing is scaled by the number of ranks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import support

import lucid
import lucid.distributed as dist
from lucid.func import scan, value_and_grad

STEPS = 60


def start(points: int) -> np.ndarray:
    """The initial temperature of the whole rod, which is to be found."""
    x = np.linspace(0, 1, points)
    return np.sin(np.pi * x) + 0.5 * np.sin(4 * np.pi * x)


def neighbors() -> tuple[int | None, int | None]:
    r, n = dist.rank(), dist.world_size()
    return (r - 1 if r > 0 else None), (r + 1 if r < n - 1 else None)


def diffuse(u: Any) -> Any:
    """The rod after STEPS steps; its ends are at zero degrees."""
    left, right = neighbors()

    def step(u: Any, _: Any) -> Any:
        from_left = dist.sendrecv(u[-1:], dest=right, source=left)
        from_right = dist.sendrecv(u[:1], dest=left, source=right)
        wide = lucid.cat([from_left, u, from_right])
        return u + 0.4 * (wide[2:] - 2 * u + wide[:-2]), None

    return scan(step, u, None, length=STEPS)[0]


def recover(measured: Any, iterations: int, compiled: bool = True) -> tuple[Any, list[float]]:
    """The initial state whose diffusion fits a measurement, and the misfit on the way."""

    def misfit(u: Any) -> Any:  # this rank's share of it
        return ((diffuse(u) - measured) ** 2).sum()

    def descend(u: Any) -> Any:
        value, gradient = value_and_grad(misfit)(u)
        return dist.all_reduce(value), u - 0.5 * gradient

    run = lucid.jit(descend) if compiled else descend
    u, values = measured, []
    for _ in range(iterations):
        value, u = run(u)
        values.append(value.item())
    return u, values


def main(arguments: list[str] | None = None) -> float:
    options = support.options(__doc__, arguments)
    truth = start(96 if options.quick else 256)
    mine = np.array_split(truth, dist.world_size())[dist.rank()]
    measured = diffuse(lucid.tensor(mine))
    iterations = 40 if options.quick else 150
    (found, values), seconds = support.seconds(
        lambda: recover(measured, iterations, not options.eager)
    )
    wrong = dist.all_reduce(((found - lucid.tensor(mine)) ** 2).sum()).item()
    error = float(np.sqrt(wrong / (truth**2).sum()))
    if dist.rank() == 0:
        print(
            f"misfit {values[0]:.2e} to {values[-1]:.2e}, the state to {100 * error:.1f} % on "
            f"{dist.world_size()} ranks, {seconds:.1f} s"
        )
        support.picture(options.out / "halo_exchange.png", lambda f: f.subplots().semilogy(values))
    return error


if __name__ == "__main__":
    main()
