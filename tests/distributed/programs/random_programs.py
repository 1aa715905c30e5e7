"""Random programs with collectives: on ranks, and as one process on all operands stacked.

random_programs.py <first seed> <count>
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import lucid
import lucid.distributed as dist
from lucid.func import cond, grad, jvp, scan, vmap

R, N = dist.rank(), dist.world_size()
Step = tuple[Callable[[Any], Any], Callable[[Any], Any]]  # on this rank, and on all at once


def every(y: Any) -> Any:
    return y.expand((N, *y.shape))


def rows(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A local function, applied to the part of every rank."""
    return lambda x: lucid.stack([f(x[r]) for r in range(N)])


def shifted(x: Any) -> Any:
    return lucid.stack([x[(r - 1) % N] for r in range(N)])


def looped(collective: Step) -> Step:
    here, whole = collective

    def loop(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: scan(lambda c, _: (lucid.tanh(f(c)), None), x, None, length=3)[0]

    return loop(here), loop(whole)


def branched(collective: Step) -> Step:
    here, whole = collective  # the condition is the same on all ranks
    return (
        lambda x: cond(dist.all_reduce(x.sum()) > 0.0, here, lambda x: x * 0.5, x),
        lambda x: cond(x.sum() > 0.0, whole, lambda x: x * 0.5, x),
    )


COLLECTIVES: list[Step] = [
    (lambda x: dist.all_reduce(x), lambda x: every(x.sum(dim=0))),
    (lambda x: dist.all_reduce(x, "mean"), lambda x: every(x.mean(dim=0))),
    (lambda x: dist.all_reduce(x, "max"), lambda x: every(x.amax(dim=0))),
    (lambda x: dist.broadcast(x, N - 1), lambda x: every(x[N - 1])),
    (lambda x: dist.all_to_all(x), lambda x: x.transpose(0, 1)),
    (lambda x: dist.sendrecv(x, (R + 1) % N, (R - 1) % N), shifted),
    (lambda x: dist.all_gather(x).mean(dim=0), lambda x: every(x.mean(dim=0))),
    (lambda x: dist.reduce_scatter(x).expand(x.shape) / N,
     lambda x: lucid.stack([x.sum(dim=0)[r].expand(x.shape[1:]) for r in range(N)]) / N),
]  # fmt: skip
LOCAL: list[Callable[[Any], Any]] = [
    lucid.sin, lucid.tanh, lambda x: x * 1.5 + 0.25, lambda x: x * x * 0.5, lambda x: x.flip([1]),
    lambda x: lucid.softmax(x, 1), lambda x: x @ (x.transpose(0, 1) @ x) * 0.1,
]  # fmt: skip


def program(seed: int) -> Step:
    rng = np.random.default_rng(seed)
    steps: list[Step] = []
    for _ in range(rng.integers(3, 8)):
        if rng.random() < 0.5:
            f = LOCAL[rng.integers(len(LOCAL))]
            steps.append((f, rows(f)))
            continue
        chosen = COLLECTIVES[rng.integers(len(COLLECTIVES))]
        form = rng.random()
        steps.append(looped(chosen) if form < 0.2 else branched(chosen) if form < 0.35 else chosen)

    def run(number: int) -> Callable[[Any], Any]:
        def composed(x: Any) -> Any:
            for step in steps:
                x = step[number](x)
            return x

        return composed

    return run(0), run(1)


def same(what: str, found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(
        np.asarray(found), np.asarray(wanted), 1e-9, 1e-9, err_msg=f"rank {R}: {what}"
    )


def check(seed: int) -> None:
    here, whole = program(seed)
    rng = np.random.default_rng(seed + 1)
    x, t = rng.normal(size=(2, N, N, 3))
    mine, tangent = lucid.tensor(x[R]), lucid.tensor(t[R])
    same(f"{seed}: value", here(mine), whole(lucid.tensor(x))[R])
    score = lambda f: lambda x: (lucid.cos(f(x)) * 1.1).sum()  # noqa: E731
    wanted = grad(score(whole))(lucid.tensor(x))[R]
    same(f"{seed}: grad", grad(score(here))(mine), wanted)
    jitted = lucid.jit(grad(score(here)))
    for _ in range(2):
        same(f"{seed}: jit of grad", jitted(mine), wanted)
    pushed = jvp(whole, (lucid.tensor(x),), (lucid.tensor(t),))[1][R]
    same(f"{seed}: jvp", jvp(here, (mine,), (tangent,))[1], pushed)
    many = vmap(here)(lucid.stack([mine, tangent]))
    same(f"{seed}: vmap", many[1], whole(lucid.tensor(t))[R])


first, count = int(sys.argv[1]), int(sys.argv[2])
for number in range(first, first + count):
    check(number)
print(f"done {R}\n", end="", flush=True)
