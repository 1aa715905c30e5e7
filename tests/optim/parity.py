"""Optimizers and schedules against PyTorch, step by step from the same initial state.

`python -m tests.optim.parity` prints what agrees and every difference; its exit code is 1 if there
is one.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import lucid
from tests.optim.settings import COMPLEX, OPTIMIZERS, SCHEDULES

STEPS, RTOL = 16, 1e-10
ROUGH = {"Muon": 5e-3}  # PyTorch makes matrices orthogonal in bfloat16, Lucid in their own dtype
LAMBDAS = {"LambdaLR": lambda t: 0.9**t, "MultiplicativeLR": lambda t: 0.95}


def arrays(kind: str, matrices: bool) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    found = [rng.normal(size=(4, 3))] + ([] if matrices else [rng.normal(size=5)])
    return found if kind == "real" else [x + 1j * rng.normal(size=x.shape) for x in found]


def loss_of(params: list[Any], i: int) -> Any:
    """Another function at every step, of real and of complex numbers."""
    apart = [p * (1.0 + i % 3) - 0.3 for p in params]
    return sum([((x * x.conj()).real ** 1.5).sum() for x in apart])


def trajectory(m: Any, name: str, settings: dict[str, Any], kind: str) -> list[np.ndarray]:
    params = [m.tensor(x, requires_grad=True) for x in arrays(kind, name == "Muon")]
    optimizer = getattr(m.optim, name)(params, **settings)
    found = []
    for i in range(STEPS):
        optimizer.zero_grad()
        loss_of(params, i).backward()
        optimizer.step()
        found += [p.detach().numpy().copy() for p in params]
    return found


def rosenbrock(m: Any, settings: dict[str, Any]) -> list[np.ndarray]:
    w = m.tensor(np.array([-1.2, 1.0, 0.5]), requires_grad=True)
    optimizer = m.optim.LBFGS([w], **settings)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((1 - w[:-1]) ** 2 + 100 * (w[1:] - w[:-1] ** 2) ** 2).sum()
        loss.backward()
        return loss

    found = []
    for _ in range(6):
        loss = optimizer.step(closure)
        found += [w.detach().numpy().copy(), loss.detach().numpy().copy()]
    return found


def rates(m: Any, build: Callable[[Any, Any], Any], optimizer: str, jumps: bool) -> list[Any]:
    """Rates and momenta of two groups at every step, at the end also at epochs given by number."""
    params = [m.tensor(np.ones(2), requires_grad=True) for _ in range(2)]
    groups = [{"params": [params[0]]}, {"params": [params[1]], "lr": 0.2}]
    made = getattr(m.optim, optimizer)(groups, lr=0.05)
    schedule = build(m.optim.lr_scheduler, made)
    found = []
    for t in [None] * (STEPS - 1) + ([5, 0, 3] if jumps else []):
        found.append(numbers_of(made.param_groups))
        for p in params:
            p.grad = m.tensor(np.ones(2))
        made.step()
        schedule.step() if t is None else schedule.step(t)
    return found


def numbers_of(groups: Any) -> np.ndarray:
    kinds = ("lr", "momentum", "betas")
    return np.concatenate([np.ravel(g[kind]) for g in groups for kind in kinds if kind in g])


def joined(kind: str) -> Callable[[Any, Any], Any]:
    def sequential(m: Any, optimizer: Any) -> Any:
        first = m.LinearLR(optimizer, start_factor=0.1, total_iters=4)
        second = m.ExponentialLR(optimizer, gamma=0.8)
        third = m.CosineAnnealingLR(optimizer, T_max=5)
        return m.SequentialLR(optimizer, [first, second, third], milestones=[4, 9])

    def chained(m: Any, optimizer: Any) -> Any:
        first = m.ConstantLR(optimizer, factor=0.1, total_iters=3)
        return m.ChainedScheduler([first, m.ExponentialLR(optimizer, 0.9)], optimizer=optimizer)

    return sequential if kind == "SequentialLR" else chained


def swa_of(m: Any) -> Any:
    """The module of weight averages that goes with a module of schedules."""
    return (torch if m is torch.optim.lr_scheduler else lucid).optim.swa_utils


def plateau(m: Any, **settings: Any) -> list[np.ndarray]:
    w = m.tensor(np.ones(2), requires_grad=True)
    optimizer = m.optim.SGD([w], lr=1.0)
    schedule = m.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **settings)
    found = []
    for measure in [5, 4, 4, 4, 4, 3, 3.5, 3, 3, 3, 2.9, float("nan"), 2.9, 2.9, 2.9, 2.9, 2.9]:
        schedule.step(measure)
        found.append(np.array([optimizer.param_groups[0]["lr"], schedule.num_bad_epochs]))
    return found


def comparisons() -> Iterator[tuple[str, Callable[[Any], list[Any]], float]]:
    """(what, a function of the library, tolerance)."""
    for kind, cases in (("real", OPTIMIZERS), ("complex", COMPLEX)):
        for name, settings in cases:
            if hasattr(torch.optim, name):
                yield (
                    f"{name} {settings} {kind}",
                    lambda m, a=(name, settings, kind): trajectory(m, *a),
                    ROUGH.get(name, RTOL),
                )
    for search in (None, "strong_wolfe"):
        settings = {"lr": 1.0 if search else 1e-3, "line_search_fn": search, "history_size": 5}
        yield f"LBFGS {settings}", lambda m, a=settings: rosenbrock(m, a), 1e-6
    for name, settings in SCHEDULES:
        jumps = name not in ("CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR")
        for optimizer in ("SGD", "Adam"):
            build = lambda m, o, a=(name, settings): getattr(m, a[0])(o, **a[1])  # noqa: E731
            rest = (build, optimizer, jumps)
            yield f"{name} {settings} of {optimizer}", lambda m, a=rest: rates(m, *a), RTOL
    for name, function in LAMBDAS.items():
        build = lambda m, o, a=(name, function): getattr(m, a[0])(o, a[1])  # noqa: E731
        yield name, lambda m, a=build: rates(m, a, "SGD", False), RTOL
    for settings in ({"anneal_epochs": 5}, {"anneal_strategy": "linear"}, {"anneal_epochs": 0}):
        build = lambda m, o, a=settings: swa_of(m).SWALR(o, 0.02, **a)  # noqa: E731
        yield f"SWALR {settings}", lambda m, a=build: rates(m, a, "SGD", False), RTOL
    for name in ("SequentialLR", "ChainedScheduler"):
        yield name, lambda m, a=name: rates(m, joined(a), "SGD", False), RTOL
    for settings in (
        {"patience": 1, "factor": 0.5},
        {"patience": 0, "mode": "max", "cooldown": 2, "threshold_mode": "abs", "min_lr": 0.01},
    ):
        yield f"ReduceLROnPlateau {settings}", lambda m, a=settings: plateau(m, **a), RTOL


def main() -> int:
    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.float64)  # of the numbers that some optimizers keep as state
    agree, differ = 0, []
    for what, run, tolerance in comparisons():
        try:
            theirs, mine = run(torch), run(lucid)
            for step, (x, y) in enumerate(zip(mine, theirs, strict=True)):
                np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance, err_msg=f"{step}")
            agree += 1
        except Exception as error:
            differ.append(f"{what}: {type(error).__name__}: {error}")
    print(f"optim: {agree} of {agree + len(differ)} trajectories as PyTorch's")
    print(*differ, sep="\n")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
