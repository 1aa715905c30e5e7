"""Random training steps: what a program does beside its loss, in every place of a step.

    python -m tests.campaign.training FIRST COUNT

A step is a network, a loss, an optimizer, and actions that read and write values on the way:
results that may be pending, memory from outside, parameters, gradients, views of all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import lucid
from lucid import nn
from lucid.errors import LucidError
from lucid.tape.node import followers
from tests.campaign.tiers import cold, hot

ROWS, WIDTH, STEPS = 4, 3, 7
PLACES = ("start", "forward", "loss", "backward", "step")
NETWORKS: dict[str, Callable[[], Any]] = {
    "linear": lambda: nn.Sequential(nn.Linear(WIDTH, 5), nn.Tanh(), nn.Linear(5, WIDTH)),
    "norm": lambda: nn.Sequential(nn.Linear(WIDTH, 5), nn.BatchNorm1d(5), nn.Linear(5, WIDTH)),
    "dropout": lambda: nn.Sequential(nn.Linear(WIDTH, 5), nn.Dropout(0.3), nn.Linear(5, WIDTH)),
}
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda ps: lucid.optim.SGD(ps, lr=0.05, momentum=0.5),
    "adam": lambda ps: lucid.optim.AdamW(ps, lr=0.01, eps=0.01),  # rounding decides nothing
}


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


class State:
    """The values of a running program.

    values    the tensors of this step that an action can choose
    outside   memory that lives longer
    seen      arrays that Python has read, in order
    kept      tensors that are read at the end
    """

    def __init__(self, program: Training) -> None:
        rng = np.random.default_rng(program.seed)
        lucid.manual_seed(program.seed)
        self.net = NETWORKS[program.network]()
        self.optimizer = OPTIMIZERS[program.optimizer](list(self.net.parameters()))
        self.data = rng.normal(size=(STEPS, ROWS, WIDTH))
        self.array = rng.normal(size=(ROWS, WIDTH)).astype("f4")
        self.outside = [lucid.zeros(ROWS, WIDTH), lucid.from_numpy(self.array)]
        self.seen: list[Any] = []
        self.kept: list[Any] = []
        self.values: list[Any] = []
        self.loss: Any = None

    def pick(self, number: int) -> Any:
        pool = [*self.values, *self.outside]
        return pool[number % len(pool)]

    def plain(self, number: int) -> Any:
        return self.pick(number).detach()

    def see(self, x: Any) -> None:
        self.seen.append(np.array(x, dtype=float))


def update(s: State, x: Any, y: Any) -> None:
    with lucid.no_grad():
        x.mul_(0.5).add_(y)


def in_place(write: Callable[[Any, Any], Any]) -> Callable[[State, int, int], None]:
    """An action that writes to a value without a history, or to a new one."""

    def act(s: State, a: int, b: int) -> None:
        x = s.pick(a)
        if x.requires_grad:
            x = x.detach() * 1.5
            s.values.append(x)
        write(x, s.plain(b))

    return act


def write_view(make: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: make(x).add_(make(y))


def add_loss(s: State, a: int, b: int) -> None:
    if s.loss is not None:
        s.loss = s.loss + (s.pick(a) * s.plain(b)).mean()


def branch(s: State, a: int, b: int) -> None:
    if s.pick(a).sum() > 0:
        s.values.append(s.plain(b) * 2)


def remember(s: State, a: int, b: int) -> None:
    s.outside[0] = s.plain(a) * 0.9  # a new tensor takes the place of the old one


def of_gradients(act: Callable[[State, Any], None]) -> Callable[[State, int, int], None]:
    def all_gradients(s: State, a: int, b: int) -> None:
        grads = [p.grad for p in s.net.parameters() if p.grad is not None]
        if grads:
            act(s, grads[a % len(grads)])

    return all_gradients


def of_parameters(act: Callable[[State, Any], None]) -> Callable[[State, int, int], None]:
    def one_parameter(s: State, a: int, b: int) -> None:
        parameters = list(s.net.parameters())
        act(s, parameters[a % len(parameters)])

    return one_parameter


def decay(s: State, p: Any) -> None:
    with lucid.no_grad():
        p.mul_(0.99)


def keep_view(s: State, p: Any) -> None:
    s.kept.append(p.detach().view(-1))


def clear(s: State, a: int, b: int) -> None:
    s.optimizer.zero_grad(set_to_none=bool(a % 2))


def evaluate(s: State, a: int, b: int) -> None:
    s.net.eval()
    with lucid.no_grad():
        s.values.append(s.net(s.plain(a)))
    s.net.train()


ACTIONS: dict[str, Callable[[State, int, int], Any]] = {
    "double": lambda s, a, b: s.values.append(s.plain(a) * 2),
    "product": lambda s, a, b: s.values.append(s.plain(a) * s.plain(b)),
    "sum of rows": lambda s, a, b: s.values.append(s.plain(a).sum(0, keepdim=True) + s.plain(b)),
    "softmax": lambda s, a, b: s.values.append(lucid.softmax(s.plain(a), 1)),
    "clone": lambda s, a, b: s.values.append(s.pick(a).clone()),
    "tracked": lambda s, a, b: s.values.append(s.pick(a) * s.pick(b)),
    "noise": lambda s, a, b: s.values.append(s.plain(a) + lucid.rand(ROWS, WIDTH)),
    "view": lambda s, a, b: s.values.append(s.plain(a).view(WIDTH, ROWS).t()[:ROWS]),
    "add_": in_place(lambda x, y: x.add_(y, alpha=0.5)),
    "mul_": in_place(lambda x, y: x.mul_(y)),
    "copy_": in_place(lambda x, y: x.copy_(y)),
    "fill_": in_place(lambda x, y: x.fill_(0.5)),
    "tanh_": in_place(lambda x, y: x.tanh_()),
    "halve": in_place(lambda x, y: x.mul_(0.5)),
    "clamp_": in_place(lambda x, y: x.clamp_(-0.8, 0.9)),
    "where": in_place(lambda x, y: x.copy_(lucid.where(y > 0, x, y))),
    "lerp_": in_place(lambda x, y: x.lerp_(y, 0.1)),
    "+= own": in_place(lambda x, y: x.add_(x)),
    "row": in_place(write_view(lambda x: x[1])),
    "column": in_place(write_view(lambda x: x.t()[0])),
    "flat": in_place(write_view(lambda x: x.reshape(-1)[2:5])),
    "element": in_place(lambda x, y: x.__setitem__((0, 1), y[1, 0])),
    "mask": in_place(lambda x, y: x.__setitem__(y > 0, 0.25)),
    "masked_fill_": in_place(lambda x, y: x.masked_fill_(y > 0, -0.5)),
    "item": lambda s, a, b: s.see(s.pick(a).sum().item()),
    "numpy": lambda s, a, b: s.see(s.plain(a).numpy().copy()),
    "argmax": lambda s, a, b: s.see(s.plain(a).argmax(1).tolist()),
    "if": branch,
    "keep": lambda s, a, b: s.kept.append(s.pick(a)),
    "keep row": lambda s, a, b: s.kept.append(s.pick(a)[0]),
    "remember": remember,
    "array": lambda s, a, b: s.array.__setitem__((a % ROWS, b % WIDTH), a / 7),
    "loss": add_loss,
    "no_grad": lambda s, a, b: update(s, s.outside[a % 2], s.plain(b)),
    "zero_grad": clear,
    "evaluate": evaluate,
    "look at a gradient": of_gradients(lambda s, g: s.see(g.norm().item())),
    "scale a gradient": of_gradients(lambda s, g: g.mul_(0.5)),
    "keep a gradient": of_gradients(lambda s, g: s.kept.append(g)),
    "look at a parameter": of_parameters(lambda s, p: s.see(p.detach().sum().item())),
    "mean of a parameter": of_parameters(lambda s, p: s.values.append(p.mean() * s.plain(0))),
    "write a parameter": of_parameters(decay),
    "view of a parameter": of_parameters(keep_view),
}  # fmt: skip


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
    s = State(program)

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


def disagreement(program: Training) -> str:
    """Return how the followed program differs from the one that runs at once, or nothing."""
    with np.errstate(all="ignore"):
        with cold():
            want = run(program)
        try:
            with hot():
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
    from lucid.autograd.following import step_sequence

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
