"""Random programs with state: writes, views, shared memory, modules, draws, gradients, optimizers.

A program is a set-up (captured tensors and modules) and a step that is called several times with
other inputs. Every path must leave the same outputs, the same state, gradients and random numbers.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import lucid
from tests.campaign.tiers import cold, hot

CALLS = 4
SETUP = """
s = lucid.as_tensor(np.arange(6.0).reshape(2, 3) * 0.1)
row = s[1]
flat = s.reshape(-1)
n = lucid.zeros((), dtype="int64")
w = lucid.tensor(np.linspace(-1.0, 1.0, 6).reshape(2, 3), dtype="float64", requires_grad=True)
lucid.manual_seed(7)
norm = lucid.nn.BatchNorm1d(3).to(dtype="float64")
drop = lucid.nn.Dropout(0.5)
sgd = lucid.optim.SGD([w], lr=0.1, momentum=0.9)
gen = lucid.random.Generator(3)
K = 1.0
F64 = lucid.float64
"""
STATEMENTS = (
    # arithmetic on what is there
    "{t} = lucid.sin({x}) * {y}", "{t} = {x} * K", "{t} = {x} + {y}.mean()", "{t} = {x} * s",
    "{t} = {x} * w.detach() + s", "{t} = ({x} > 0.1).to('float64') * {y}", "{t} = {x} - row",
    "{t} = {x} + n", "{t} = lucid.cat([{x}, {y}])[1:3] * 0.5", "{t} = {x}.T.reshape(2, 3) * 1.0",
    "{t} = lucid.softmax({x}, 1)", "{t} = lucid.cumsum({x}, 0) * 0.5", "{t} = flat[:3] + {x}",
    # writes to what is made here
    "{t} = {x}.clone()\n{t}[0] = {y}[1] * 2.0", "{t} = {x}.clone()\n{t}.T.mul_(0.5)",
    "{t} = {x} * 1.0\nu = {t}.reshape(-1)\nu[0] = 0.25", "{t} = {x}.clone()\n{t}[{t} > 0.5] = 0.1",
    "{t} = {x} + 0.0\n{t}.diagonal().add_(1.0)", "{t} = lucid.flip({x}, [0])\n{t}[0] = 0.5",
    "{t} = {x}.clone()\n{t}.add_({y}, alpha=-0.5)", "{t} = {x}.clone()\n{t}[:, 1:] += {y}[:, :2]",
    "{t} = {x}.clone()\n{t}.copy_({y}.T.reshape(2, 3))", "{t} = {x}.expand(2, 2, 3).clone()[1]",
    "{t} = {x}.clone()\n{t}.index_add_(0, lucid.tensor([1, 1]), {y})",
    "{t} = {x}.clone()\n{t}.scatter_(1, lucid.tensor([[0], [2]]), 0.3)",
    # writes to state, through it and its views
    "s += {x}.mean()\n{t} = s * 1.0", "s[0] = {x}[1]\n{t} = row + {x}",
    "row.mul_(0.5)\n{t} = s + {x}",
    "flat[2] = {x}.sum()\n{t} = s * {x}", "s.data.add_(0.1)\n{t} = {x} + flat.reshape(2, 3)",
    "s.T[0] = 0.2\n{t} = row * {x}", "n += 1\n{t} = {x} * n", "n.add_(2)\n{t} = {x}",
    "with lucid.no_grad():\n    w.mul_(0.9)\n{t} = {x}", "w.data[0] = 0.5\n{t} = w.detach() * {x}",
    "s.copy_({x})\n{t} = s", "s.clamp_(-1.0, 1.0)\n{t} = s.clone()", "row.copy_({x}[0])\n{t} = {x}",
    "view = s[:, 1:]\nview -= 0.1\n{t} = {x} + s", "s[s > 0.3] = 0.0\n{t} = {x}",
    "old = s.clone()\ns.zero_()\n{t} = {x} + old",
    # draws
    "{t} = {x} * lucid.rand(2, 3, dtype=F64)", "{t} = drop({x})",
    "{t} = {x} + lucid.randn(3, dtype=F64)",
    "{t} = {x} * lucid.rand(3, generator=gen, dtype=F64)", "{t} = {x}.clone()\n{t}.uniform_()",
    "{t} = {x} * lucid.bernoulli(lucid.full((2, 3), 0.5))", "{t} = {x}[lucid.randperm(2)]",
    # modules and training
    "{t} = norm({x})", "loss = (({x} * w) ** 2).sum()\nloss.backward()\n{t} = {x} + w.grad",
    "({x} * w).sum().backward()\nsgd.step()\nsgd.zero_grad()\n{t} = {x} * w.detach()",
    "w.grad = None\n{t} = {x}", "norm.eval()\n{t} = norm({x})\nnorm.train()",
    # Python looks
    "{t} = {x} * 2.0 if float(s.sum()) > 1.0 else {x}",
    "{t} = {x} if bool({x}.sum() > 0) else -{x}",
    "{t} = {x}\nfor _ in range(int(n) % 3):\n    {t} = {t} * 0.5", "{t} = {x} * len({x})",
    # control flow with effects
    "{t} = lucid.func.scan(lambda c, r: (c + r, c * r), {x}[0], {y})[1]",
    "{t} = lucid.func.scan(lambda c, r: (c + lucid.rand(3, dtype=F64), c * r), {x}[0], {y})[1]",
    "def body(c, r):\n    s[0] += r\n    return c + s[0], c\n"
    "{t} = lucid.func.scan(body, {x}[0], {y})[1]",
    "def yes(v):\n    n.add_(1)\n    return v * 2.0\n{t} = lucid.func.cond({x}.sum() > 0, yes, "
    "lambda v: v, {y})",
    "{t} = lucid.func.cond(s.sum() > 0, lambda v: v * lucid.rand((), dtype=F64), lambda v: v, {x})",
    "{t} = lucid.func.fori_loop(0, 2, lambda i, c: c * 0.5 + lucid.rand(3, dtype=F64), {x})",
    "{t} = lucid.func.checkpoint(lambda v: drop(lucid.sin(v)))({x})",
    "{t} = lucid.func.grad(lambda v: (v * s).sum())({x})", "{t} = lucid.func.vmap(lucid.sin)({x})",
    "{t} = lucid.jit(lambda v: v * s)({x})",
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """A program with state: statements over `a` and `b` of shape (2, 3), and what it returns."""

    statements: tuple[str, ...]
    result: str
    seed: int

    def text(self) -> str:
        lines = [line for s in self.statements for line in s.splitlines()]
        written = {m for m in ("s", "n") if re.search(rf"^\s*{m} [-+*]?=", "\n".join(lines), re.M)}
        scope = [f"global {name}" for name in sorted(written)]
        return "\n".join(["def step(a, b):", *[f"    {x}" for x in (*scope, *lines)],
                          f"    return {self.result}"])  # fmt: skip

    def inputs(self, call: int, noise: int) -> list[Any]:
        rng = np.random.default_rng([self.seed, call])
        arrays = [rng.uniform(-1.0, 1.0, (2, 3)) for _ in range(2)]
        if noise:
            rng = np.random.default_rng([self.seed, call, noise])
            arrays = [x * (1 + 1e-12 * rng.standard_normal(x.shape)) for x in arrays]
        return [lucid.as_tensor(x) for x in arrays]

    def observe(self, scope: dict[str, Any], result: Any) -> dict[str, np.ndarray]:
        """All that a call leaves behind, as copies."""
        seen = {name: scope[name] for name in ("s", "row", "flat", "n", "w")}
        seen |= dict(scope["norm"].named_buffers())
        seen |= {"result": result, "rng": lucid.get_rng_state(), "gen": scope["gen"].get_state()}
        if scope["w"].grad is not None:
            seen["w.grad"] = scope["w"].grad
        return {name: np.array(x.detach().numpy()) for name, x in seen.items()}

    def run(self, jitted: bool, noise: int = 0) -> list[Any]:
        """What every call leaves behind; an error of ours instead where it is refused.

        noise    the seed of a change of the inputs in their last digits; 0 for none
        """
        scope: dict[str, Any] = {"lucid": lucid, "np": np}
        exec(SETUP, scope)
        exec(compile(self.text(), "<step>", "exec"), scope)
        step = lucid.jit(scope["step"]) if jitted else scope["step"]
        seen: list[Any] = []
        for call in range(CALLS):
            scope["K"] = (1.0, 1.0, 2.5, 1.0)[call]
            try:
                result = step(*self.inputs(call, noise))
            except lucid.errors.LucidError as error:
                return [*seen, error]
            seen.append(self.observe(scope, result))
        return seen


def difference(actual: list[Any], expected: list[Any], rtol: float = 1e-9) -> str:
    """Where two runs disagree; a refusal is no disagreement, a foreign error is raised earlier."""
    for call, (a, e) in enumerate(zip(actual, expected), 1):
        if isinstance(a, Exception) or isinstance(e, Exception):
            return ""
        if a.keys() != e.keys():
            return f"call {call}: {sorted(a.keys() ^ e.keys())} is there on one path alone"
        for name, x in e.items():
            if a[name].shape != x.shape or a[name].dtype != x.dtype:
                return (
                    f"call {call}: {name} is {a[name].dtype}{a[name].shape}, not {x.dtype}{x.shape}"
                )
            if not np.allclose(a[name], x, rtol=rtol, atol=rtol / 100, equal_nan=True):
                return f"call {call}: {name} is\n{a[name]}\nwhere eager code has\n{x}"
    return ""


def failure(step: Step) -> str:
    """How the paths of a program disagree: eager cold, eager hot, jitted; '' where they do not."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            with cold():
                expected = step.run(jitted=False)
            with hot():
                text = difference(step.run(jitted=False), expected)
            if text:
                return f"eager, hot: {text}"
            text = difference(step.run(jitted=True), expected)
            return f"jitted: {text}" if text else ""
        except Exception as error:
            return f"{type(error).__name__}: {error}"


def make(seed: int) -> Step:
    """The program of a seed: two to seven statements that run eagerly."""
    rng = np.random.default_rng(seed)
    statements: list[str] = []
    names = ["a", "b"]
    for _ in range(40):
        if len(statements) >= 2 + seed % 6:
            break
        x, y = (str(rng.choice(names[-3:])) for _ in range(2))
        text = STATEMENTS[int(rng.integers(len(STATEMENTS)))]
        new = text.format(t=f"v{len(statements)}", x=x, y=y)
        longer = Step((*statements, new), f"v{len(statements)}", seed)
        if runs(longer):
            statements.append(new)
            names.append(f"v{len(statements) - 1}")
    whole = Step(tuple(statements), names[-1], seed)
    shorter = [
        Step(whole.statements[:i], f"v{i - 1}", seed) for i in range(len(statements) - 1, 0, -1)
    ]
    return next((step for step in (whole, *shorter) if has_margin(step)), Step((), "a", seed))


def has_margin(step: Step) -> bool:
    """True if rounding decides no branch: a change in the last digits changes nothing visibly."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), cold():
        warnings.simplefilter("ignore")
        usual = step.run(jitted=False)
        return not any([difference(step.run(False, k), usual, 1e-4) for k in range(1, 4)])


def runs(step: Step) -> bool:
    """True if the first calls work eagerly, with a result of the usual shape and size."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), cold():
        warnings.simplefilter("ignore")
        try:
            seen = step.run(jitted=False)
        except Exception:
            return False
    last = seen[-1]
    if isinstance(last, Exception):
        return False
    result = last["result"]
    return result.shape == (2, 3) and result.dtype == np.float64 and np.abs(result).max() < 1e3


def shrink(step: Step) -> Step:
    """A smaller program that still fails."""
    smaller: Step | None = step
    while smaller is not None:
        step, smaller = smaller, None
        for i in reversed(range(len(step.statements))):
            kept = (*step.statements[:i], *step.statements[i + 1 :])
            gone = f"v{number}" if (number := number_of(step.statements[i])) is not None else "v?"
            for other in ("a", "b"):
                renamed = tuple(re.sub(rf"\b{gone}\b", other, text) for text in kept)
                result = other if step.result == gone else step.result
                shorter = replace(step, statements=renamed, result=result)
                if runs(shorter) and has_margin(shorter) and failure(shorter):
                    smaller = shorter
                    break
            if smaller is not None:
                break
    return step


def number_of(statement: str) -> int | None:
    found = re.search(r"^v(\d+) =", statement, re.M)
    return None if found is None else int(found[1])
