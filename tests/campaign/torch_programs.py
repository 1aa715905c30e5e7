"""Random programs beside PyTorch: the text of each with `torch` for `lucid`, run three times.

`python -m tests.campaign.torch_programs FIRST COUNT`, in the environment of `make parity`, compares
values, gradients and products with the Hessian. The loops of `lucid.func` are Python's there, and
functions with rules are what their rules say. A program that PyTorch cannot run is counted.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

import lucid
from tests.campaign.programs import STATES, Program, make, points, set_state, shrink
from tests.campaign.tiers import cold

DTYPES = {
    "'float64'": "torch.float64",
    "'complex128'": "torch.complex128",
    "'int64'": "torch.int64",
}


def scan(f: Any, init: Any, xs: Any = None, length: Any = None, reverse: bool = False) -> Any:
    rows = [None] * length if xs is None else list(xs)
    found = []
    for row in reversed(rows) if reverse else rows:
        init, y = f(init, row)
        found.append(y)
    return init, None if xs is None else torch.stack(found[::-1] if reverse else found)


def while_loop(goes_on: Any, body: Any, x: Any) -> Any:
    while goes_on(x):
        x = body(x)
    return x


def fori_loop(start: int, stop: Any, body: Any, x: Any) -> Any:
    for i in range(start, int(stop)):
        x = body(i, x)
    return x


def associative_scan(f: Any, xs: Any) -> Any:
    found = [xs[0]]
    for x in xs[1:]:
        found.append(f(found[-1], x))
    return torch.stack(found)


LOOPS = SimpleNamespace(
    cond=lambda which, yes, no, *xs: yes(*xs) if which else no(*xs),
    switch=lambda i, branches, *xs: branches[int(i)](*xs),
    scan=scan,
    while_loop=while_loop,
    fori_loop=fori_loop,
    associative_scan=associative_scan,
    map=lambda f, xs: torch.stack([f(x) for x in xs]),
    checkpoint=lambda f, policy=None: f,
    functional_call=torch.func.functional_call,
    vmap=torch.func.vmap,
)


class Named:
    """torch under the name `lucid`."""

    func = LOOPS

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    @staticmethod
    def jit(f: Any) -> Any:
        return f


def filled(module: torch.nn.Module) -> torch.nn.Module:
    module = module.double()
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            numbers = np.cos(np.arange(p.numel()) + i).reshape(tuple(p.shape)) * 0.6
            p.copy_(torch.tensor(numbers))
    return module.requires_grad_(False)


class Gate(torch.nn.Module):
    scale: Any = 1.0

    def forward(self, x: Any) -> Any:
        return x * self.scale if self.training else torch.tanh(x)


def squash(x: Any) -> Any:
    return x / (1 + x * x)


LINEAR, NORM, CONV = (
    filled(m) for m in (torch.nn.Linear(3, 2), torch.nn.LayerNorm(3), torch.nn.Conv1d(1, 2, 2))
)
NET = filled(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3)))
RULED = SimpleNamespace(
    by_jvp=lambda x, y: torch.sin(x) * y,
    by_vjp=torch.tanh,
    Squash=SimpleNamespace(apply=squash),
    Mapped=SimpleNamespace(apply=squash),
    numbers=lambda: lambda x, y: torch.sin(x * y) + x,
    given=lambda: lambda x: torch.where(x > 0, x, torch.expm1(x)),
    sums=lambda: lambda x: x.cumsum(0),
    linear=lambda: LINEAR,
    norm=lambda: NORM,
    conv=lambda: CONV,
)


def scope_of_call(call: int) -> dict[str, Any]:
    """The globals that a program reads in one of its calls, in PyTorch."""
    state, gate = STATES[call % len(STATES)], Gate()
    gate.scale = state["SCALE"]
    gate.train(state["FLAG"])
    table = torch.tensor(np.linspace(-1.0, 1.0, 6).reshape(2, 3))
    names = {name: state[name] for name in ("K", "FLAG", "POWER")}
    names |= {"T": torch.tensor(np.array([state["SCALE"], 1.0])), "gate": gate, "table": table}
    return {"lucid": Named(), "torch": torch, "np": np, "ruled": RULED, "net": NET, **names}


def text_for_torch(program: Program) -> str:
    text = program.text()
    for name, dtype in DTYPES.items():
        text = text.replace(name, dtype)
    text = re.sub(r"(\w+)\[::-1\]", r"\1.flip(0)", text)  # PyTorch has no negative steps
    return re.sub(r"(\w+)\.argsort\((-?\d+)\)", r"\1.argsort(dim=\2, stable=True)", text)


def torch_results(program: Program, call: int, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The value, the gradients and the Hessian's product with `directions`."""
    scope = scope_of_call(call)
    exec(compile(text_for_torch(program), "<program>", "exec"), scope)
    xs = [torch.tensor(x, requires_grad=True) for x in arrays]
    y = scope["f"](*xs)
    grads = derivative(y, xs)
    slope = sum(((g * d).sum() for g, d in zip(grads, directions(arrays, torch.tensor))), y * 0)
    return [t.detach().numpy() for t in (y, *grads, *derivative(slope, xs))]


def derivative(y: Any, xs: list[Any]) -> list[Any]:
    if not y.requires_grad:
        return [torch.zeros_like(x) for x in xs]
    found = torch.autograd.grad(y, xs, create_graph=True, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(xs, found)]


def directions(arrays: list[np.ndarray], tensor: Callable[..., Any]) -> list[Any]:
    return [tensor(np.cos(np.arange(x.size) + i).reshape(x.shape)) for i, x in enumerate(arrays)]


def lucid_results(program: Program, call: int, arrays: list[np.ndarray]) -> list[np.ndarray]:
    f, numbers = program.function(), tuple(range(len(arrays)))
    set_state(f.__globals__, call)
    along = directions(arrays, lucid.tensor)

    def slope(*xs: Any) -> Any:
        grads = lucid.func.grad(f, numbers)(*xs)
        return sum(((g * d).sum() for g, d in zip(grads, along)), lucid.zeros((), dtype="float64"))

    xs = [lucid.tensor(x) for x in arrays]
    value, grads = lucid.func.value_and_grad(f, numbers)(*xs)
    return [t.numpy() for t in (value, *grads, *lucid.func.grad(slope, numbers)(*xs))]


def failure(program: Program, counts: Counter[str]) -> str:
    """What differs from PyTorch, or ''."""
    for call, arrays in enumerate(points(program)):
        with cold():
            found = lucid_results(program, call, arrays)
        try:
            expected = torch_results(program, call, arrays)
        except (RuntimeError, TypeError, IndexError, ValueError) as error:
            counts[re.sub(r"\d+", "#", str(error).splitlines()[0])[:70]] += 1
            return ""
        for i, (a, e) in enumerate(zip(found, expected, strict=True)):
            scale = 1.0 + np.abs(np.where(np.isfinite(e), e, 0)).max(initial=0.0)
            if a.shape != e.shape or not np.allclose(a, e, 1e-8, 1e-9 * scale, equal_nan=True):
                return f"call {call + 1}, result {i}:\n{a}\nPyTorch:\n{e}"
    counts["compared"] += 1
    return ""


def main() -> None:
    first, count = map(int, sys.argv[1:])
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    failed = 0
    for seed in range(first, first + count):
        with np.errstate(all="ignore"):
            program = make(seed)
            if failure(program, counts):
                failed += 1
                small = shrink(program, lambda p: bool(failure(p, Counter())))
                print(f"---- {seed}\n{text_for_torch(small)}\n{dict(small.inputs)}")
                print(failure(small, Counter()), flush=True)
        make.cache_clear()
    refused = {text: n for text, n in counts.items() if text != "compared"}
    print(
        f"{counts['compared']} random programs as PyTorch, {failed} not; PyTorch refuses {refused}"
    )
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
