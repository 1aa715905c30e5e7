"""What a random training step does beside its loss: reads and writes of every kind of value."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import lucid
from lucid import nn
from lucid.errors import LucidError
from tests.campaign.training_models import NETWORKS, OPTIMIZERS, ROWS, WIDTH


class State:
    """The values of a running program.

    values    the tensors of this step that an action can choose
    outside   memory that lives longer
    seen      arrays that Python has read, in order
    kept      tensors that are read at the end
    """

    def __init__(self, seed: int, network: str, optimizer: str, steps: int) -> None:
        rng = np.random.default_rng(seed)
        lucid.manual_seed(seed)
        self.net = NETWORKS[network]()
        self.optimizer = OPTIMIZERS[optimizer](list(self.net.parameters()))
        self.data = rng.normal(size=(steps, ROWS, WIDTH))
        self.array = rng.normal(size=(ROWS, WIDTH)).astype("f4")
        self.outside = [lucid.zeros(ROWS, WIDTH), lucid.from_numpy(self.array)]
        self.jitted = lucid.jit(lambda x, y: lucid.tanh(x) * y + self.outside[0])
        self.seen: list[Any] = []
        self.kept: list[Any] = []
        self.removed: list[Any] = []  # handles of hooks
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


def add_target(s: State, a: int, b: int) -> None:
    if s.loss is not None:
        target = s.plain(b)
        s.values.append(target)
        s.loss = s.loss + ((s.pick(a) - target) ** 2).mean() * target.abs().mean()


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


def hook_value(s: State, a: int, b: int) -> None:
    if s.pick(a).requires_grad:
        s.pick(a).register_hook(lambda g: g * 0.5)


def hook_parameter(s: State, p: Any) -> None:
    if p.requires_grad:
        handle = p.register_hook(lambda g: g + 0.01)
        s.removed.append(handle)


def hook_module(s: State, a: int, b: int) -> None:
    parts = list(s.net.modules())
    keep = lambda module, x, y: s.kept.append(y if isinstance(y, lucid.Tensor) else y[0])  # noqa: E731
    s.removed.append(parts[a % len(parts)].register_forward_hook(keep))


def remove_hooks(s: State, a: int, b: int) -> None:
    while s.removed:
        s.removed.pop().remove()


def freeze(s: State, p: Any) -> None:
    p.requires_grad_(not p.requires_grad or len(list(s.net.parameters())) < 3)


def learning_rate(s: State, a: int, b: int) -> None:
    for group in s.optimizer.param_groups:
        group["lr"] *= 0.9


def clip(s: State, a: int, b: int) -> None:
    s.see(nn.utils.clip_grad_norm_(list(s.net.parameters()), 0.5).item())


def penalty(s: State, a: int, b: int) -> None:
    if s.loss is None:
        return
    tracked = [p for p in s.net.parameters() if p.requires_grad]
    chosen = tracked[a % len(tracked) :][:1]
    grads = lucid.autograd.grad(s.loss, chosen, create_graph=True, allow_unused=True)
    s.loss = s.loss + sum((g * g).sum() * 0.1 for g in grads if g is not None)


def first_backward(s: State, a: int, b: int) -> None:
    if s.loss is not None:
        s.loss.backward(retain_graph=True)


def copied(s: State, a: int, b: int) -> None:
    net = copy.deepcopy(s.net).eval()
    with lucid.no_grad():
        s.values.append(net(s.plain(a)))


def restored(s: State, a: int, b: int) -> None:
    state = {name: x.clone() for name, x in s.net.state_dict().items()}
    update(s, next(s.net.parameters()), lucid.ones(()))
    s.net.load_state_dict(state)


def refused(s: State, a: int, b: int) -> None:
    try:
        s.values.append(s.pick(a).reshape(-1) @ lucid.ones(2))
    except LucidError as error:
        s.seen.append(type(error).__name__)


def in_thread(s: State, a: int, b: int) -> None:
    thread = threading.Thread(target=lambda: s.values.append(s.plain(a) * 2 + s.plain(b)))
    thread.start()
    thread.join()


def set_data(s: State, p: Any) -> None:
    p.data = p.data * 0.9


def set_gradient(s: State, a: int, b: int) -> None:
    for p in list(s.net.parameters())[a % 2 :: 2]:
        if p.grad is not None:
            p.grad = p.grad.clone() * 0.5


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
    "target": add_target,
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
    "hook on a value": hook_value,
    "hook on a parameter": of_parameters(hook_parameter),
    "hook on a module": hook_module,
    "remove hooks": remove_hooks,
    "freeze": of_parameters(freeze),
    "learning rate": learning_rate,
    "clip": clip,
    "penalty": penalty,
    "first backward": first_backward,
    "deepcopy": copied,
    "load_state_dict": restored,
    "error": refused,
    "thread": in_thread,
    "data =": of_parameters(set_data),
    "grad =": set_gradient,
    "jitted": lambda s, a, b: s.values.append(s.jitted(s.plain(a), s.plain(b))),
    "jitted and tracked": lambda s, a, b: s.values.append(s.jitted(s.pick(a), s.pick(b))),
    "other dtype": lambda s, a, b: s.values.append(s.pick(a).to("float64").exp().to("float32")),
    "stack": lambda s, a, b: s.values.append(lucid.stack([s.pick(a), s.pick(b)]).amax(0)),
    "index": lambda s, a, b: s.values.append(s.pick(a)[lucid.tensor([0, 2, 1, 1])]),
    "sorted": lambda s, a, b: s.values.append(s.plain(a).sort(0)[0]),
}  # fmt: skip
