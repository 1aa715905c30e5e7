"""Random training steps: what a program does beside its loss, in every place of a step.

    python -m tests.campaign.training FIRST COUNT

A step is a network, a loss, an optimizer, and actions that read and write values on the way:
results that may be pending, memory from outside, parameters, gradients, views of all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import lucid
from lucid.autograd.following import rolled_step, step_sequence
from lucid.compiler.passes import loops
from lucid.compiler.passes.loops import reroll
from lucid.errors import LucidError
from lucid.tape.node import followers
from tests.campaign.tiers import cold, hot
from tests.campaign.training_actions import ACTIONS, State
from tests.campaign.training_models import NETWORKS, OPTIMIZERS

STEPS = 7
PLACES = ("start", "forward", "loss", "backward", "step")


@dataclass(frozen=True)
class Action:
    """One line of a step: where it stands, what it does, with which of the values."""

    place: str
    name: str
    first: int
    second: int
    only: int  # the one step in which it runs; -1 for all

    def __str__(self) -> str:
        when = "" if self.only < 0 else f" in step {self.only}"
        return f"{self.place}: {self.name} {self.first} {self.second}{when}"


@dataclass(frozen=True)
class Training:
    """A program of a few steps."""

    seed: int
    network: str
    optimizer: str
    actions: tuple[Action, ...]

    def text(self) -> str:
        return "\n".join([f"{self.network}, {self.optimizer}", *map(str, self.actions)])


def make(seed: int) -> Training:
    """Return a random program."""
    rng = np.random.default_rng(seed)
    names = list(ACTIONS)
    actions = [
        Action(
            PLACES[rng.integers(len(PLACES))],
            names[rng.integers(len(names))],
            int(rng.integers(12)),
            int(rng.integers(12)),
            int(rng.integers(STEPS)) if rng.random() < 0.15 else -1,
        )
        for _ in range(rng.integers(1, 9))
    ]
    actions.sort(key=lambda action: PLACES.index(action.place))
    network = list(NETWORKS)[rng.integers(len(NETWORKS))]
    return Training(seed, network, list(OPTIMIZERS)[rng.integers(len(OPTIMIZERS))], tuple(actions))


def run(program: Training) -> list[Any]:
    """Return all that a program shows; the class of an error of ours ends it."""
    s = State(program.seed, program.network, program.optimizer, STEPS)

    def act(place: str, step: int) -> None:
        for action in program.actions:
            if action.place == place and action.only in (-1, step):
                ACTIONS[action.name](s, action.first, action.second)

    try:
        for step in range(STEPS):
            x = lucid.tensor(s.data[step].astype("f4"))
            s.values = [x]
            act("start", step)
            y = s.net(x)
            s.values += [y, y.detach()]
            act("forward", step)
            s.loss = ((y - x) ** 2).mean()
            s.values.append(s.loss.detach() + x)
            act("loss", step)
            s.optimizer.zero_grad()
            s.loss.backward()
            act("backward", step)
            s.optimizer.step()
            act("step", step)
            s.kept.append(s.loss)
            s.loss = None
    except LucidError as error:
        s.seen.append(type(error).__name__)
    s.seen += [np.array(x.detach().numpy(), dtype=float) for x in (*s.kept, *s.outside)]
    s.seen += [np.array(x.numpy(), dtype=float) for x in s.net.state_dict().values()]
    s.seen.append(lucid.random.get_rng_state().numpy().astype(float))
    return [*s.seen, *[p.grad.numpy().copy() for p in s.net.parameters() if p.grad is not None]]


@contextmanager
def short_loops() -> Iterator[None]:
    """Reroll loops of a few equations."""
    before = (loops.MIN_EQUATIONS, reroll.MIN_STEPS)
    try:
        set_loops(12, 3)
        yield
    finally:
        set_loops(*before)


def set_loops(equations: int, steps: int) -> None:
    for module in (loops, rolled_step, step_sequence):
        module.MIN_EQUATIONS = equations
    reroll.MIN_STEPS = rolled_step.MIN_STEPS = steps


def disagreement(program: Training) -> str:
    """Return how the followed program differs from the one that runs at once, or nothing.

    Every other one has its loops rerolled, however short they are.
    """
    with np.errstate(all="ignore"):
        with cold():
            want = run(program)
        try:
            with hot(), short_loops() if program.seed % 2 else nullcontext():
                got = run(program)
        except Exception as error:  # any is a failure: the program ran when nothing was followed
            return f"{type(error).__name__}: {error}"
        finally:
            followers.clear()
    if len(got) != len(want):
        return f"{len(got)} values followed, {len(want)} at once"
    for number, (a, b) in enumerate(zip(got, want)):
        if isinstance(a, str) or isinstance(b, str):
            if not (isinstance(a, str) and isinstance(b, str) and a == b):
                return f"value {number}: {a} followed, {b} at once"
        elif a.shape != b.shape or not np.allclose(a, b, rtol=2e-3, atol=1e-4, equal_nan=True):
            return f"value {number}: {a} followed, {b} at once"
    return ""


def shrink(program: Training) -> Training:
    """Return the program with as few actions as still disagree."""
    for action in program.actions:
        fewer = replace(program, actions=tuple(a for a in program.actions if a is not action))
        if disagreement(fewer):
            return shrink(fewer)
    return program


def main() -> None:
    step_sequence.is_worthwhile = lambda cut, types: True
    first, count = int(sys.argv[1]), int(sys.argv[2])
    failed = 0
    for seed in range(first, first + count):
        if disagreement(make(seed)):
            small = shrink(make(seed))
            failed += 1
            print(f"seed {seed}\n{small.text()}\n{disagreement(small)}\n", flush=True)
    print(f"{count} programs, {failed} disagree")


if __name__ == "__main__":
    main()
