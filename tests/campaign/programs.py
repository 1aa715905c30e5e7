"""Random programs over the public operations, as Python text: made, run, and shrunk when they fail.

A Program is inputs with shapes and a list of statements `v3 = lucid.sin(v1) * v0`. It is made by
running each candidate statement on the values so far, so that shapes fit and numbers stay moderate.

Beside its inputs a program reads tensors and modules that it captures, and the globals of `STATES`,
which change from call to call.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import lucid
from tests.campaign import ruled

INDENT = "    "


@dataclass(frozen=True)
class Statement:
    """`target` becomes what `text` (one line or several) says; it reads the names `uses`."""

    target: str
    text: str
    uses: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """A scalar function of float64 arrays.

    reads    True where Python looks at values, so that vmap and traces of Types refuse it
    """

    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    statements: tuple[Statement, ...]
    result: str
    reads: bool
    seed: int

    def text(self) -> str:
        lines = [f"def f({', '.join(name for name, _ in self.inputs)}):"]
        for statement in self.statements:
            lines += [INDENT + line for line in statement.text.splitlines()]
        lines.append(f"{INDENT}return lucid.sin({self.result}).sum()")
        return "\n".join(lines)

    def function(self) -> Any:
        scope = new_scope()
        exec(compile(self.text(), "<program>", "exec"), scope)
        return scope["f"]

    def arrays(self) -> list[np.ndarray]:
        rng = np.random.default_rng(self.seed)
        return [rng.uniform(-1.5, 1.5, shape) for _, shape in self.inputs]

    def without(self, i: int) -> Program | None:
        """The program without statement `i`: its value is replaced by one it came from."""
        gone = self.statements[i]
        for other in gone.uses or ("",):
            kept = []
            for statement in self.statements[:i] + self.statements[i + 1 :]:
                if gone.target in statement.uses:
                    uses = tuple(other if name == gone.target else name for name in statement.uses)
                    text = rename(statement.text, gone.target, other)
                    statement = replace(statement, text=text, uses=uses)
                kept.append(statement)
            result = other if self.result == gone.target else self.result
            smaller = replace(self, statements=tuple(kept), result=result)
            if other and runs(smaller):
                return smaller
        return None

    def returning(self, i: int) -> Program:
        """The program that ends with statement `i`."""
        return replace(self, statements=self.statements[: i + 1], result=self.statements[i].target)


STATES: tuple[dict[str, Any], ...] = (
    {"K": 1.0, "FLAG": True, "POWER": 2, "SCALE": 0.5},
    {"K": 2, "FLAG": False, "POWER": 3, "SCALE": -1.0},
    {"K": -0.5, "FLAG": True, "POWER": 1, "SCALE": 2},
)


def new_scope() -> dict[str, Any]:
    """The globals of a program, in the state of the first call."""
    scope: dict[str, Any] = {"lucid": lucid, "np": np, "ruled": ruled}
    scope |= {"net": ruled.net(), "gate": ruled.Gate(), "table": ruled.table()}
    set_state(scope, 0)
    return scope


def set_state(scope: dict[str, Any], call: int) -> None:
    """Change the Python state that a program reads to that of a call."""
    state = STATES[call % len(STATES)]
    scope |= {"K": state["K"], "FLAG": state["FLAG"], "POWER": state["POWER"]}
    scope["T"] = lucid.as_tensor(np.array([state["SCALE"], 1.0]))  # another tensor at every call
    scope["gate"].scale = state["SCALE"]
    scope["gate"].train(state["FLAG"])


def rename(text: str, old: str, new: str) -> str:
    import re

    return re.sub(rf"\b{old}\b", new, text)


def runs(program: Program) -> bool:
    try:
        value = program.function()(*map(lucid.as_tensor, program.arrays()))
        return bool(np.isfinite(value.numpy()).all())
    except Exception:
        return False


def shrink(program: Program, fails: Any) -> Program:
    """A smaller program for which `fails` is still true; one step at a time until none is."""
    smaller: Program | None = program
    while smaller is not None:
        program = smaller
        n = len(program.statements)
        candidates = [program.returning(i) for i in range(n - 1)]
        candidates += [p for i in reversed(range(n)) if (p := program.without(i)) is not None]
        smaller = next((p for p in candidates if runs(p) and fails(p)), None)
    used = {name for statement in program.statements for name in statement.uses} | {program.result}
    fewer = replace(program, inputs=tuple(x for x in program.inputs if x[0] in used))
    return fewer if fewer.inputs and runs(fewer) and fails(fewer) else program


# Making them

UNARY = (
    "lucid.sin({x})", "lucid.cos({x} * 2.0)", "lucid.tanh({x})", "lucid.exp(-{x} * {x})",
    "lucid.sigmoid({x})", "lucid.sqrt({x} * {x} + 1.0)", "lucid.log({x} * {x} + 0.5)", "-{x}",
    "{x} ** 3", "{x} ** 2 - 1", "lucid.abs({x})", "1.0 / ({x} * {x} + 1.0)", "lucid.erf({x})",
    "lucid.atan({x})", "lucid.clamp({x}, -0.9, 1.1)", "lucid.where({x} > 0, {x}, 0.3 * {x})",
    "lucid.relu({x} - 0.2)", "lucid.log1p({x} * {x})", "lucid.expm1({x} * 0.5)",
    "lucid.sinh({x} * 0.5)", "({x} > 0.1).to('float64') * {x}", "lucid.floor({x}) + {x}",
    "(1.5 - {x}) * 0.5", "({x} * lucid.exp(1j * {x})).real", "lucid.abs({x} + 2j * lucid.sin({x}))",
    "{x}.to('complex128').imag + {x}", "{x}.clone() * 2", "2.0 ** {x}", "lucid.square({x})",
)  # fmt: skip
BINARY = (
    "{x} + {y}", "{x} - 2 * {y}", "{x} * {y}", "{x} / ({y} * {y} + 1.0)", "lucid.maximum({x}, {y})",
    "lucid.minimum({x} * 2.0, {y})", "lucid.atan2({x}, {y} * {y} + 1.0)",
    "lucid.where({x} > {y}, {x}, {y} * {y})", "({x} * {x} + 0.5) ** {y}",
    "lucid.hypot({x}, {y} + 3.0)", "lucid.where({y} < 0, {x} * {y}, 1.0)",
)  # fmt: skip
REDUCTIONS = (
    "{x}.sum({d})", "{x}.mean({d}, keepdim=True)", "{x}.prod({d})", "{x}.max({d})[0]",
    "lucid.amin({x}, {d})", "lucid.logsumexp({x}, {d})", "{x}.sum({d}, keepdim=True)",
    "({x} * {x} + 0.1).sum({d}).sqrt()", "lucid.var({x}, {d}, correction=0)",
)  # fmt: skip
ALONG = (
    "{x}.cumsum({d})", "{x}.cumprod({d})", "lucid.softmax({x}, {d})", "lucid.sort({x}, {d})[0]",
    "lucid.flip({x}, [{d}])", "lucid.log_softmax({x}, {d})", "lucid.cummax({x}, {d})[0]",
    "lucid.roll({x}, 1, {d})", "lucid.cat([{x}, {x} * 2.0], {d})", "lucid.stack([{x}, -{x}], {d})",
    "{x}.unsqueeze({d})", "lucid.topk({x}, 1, {d})[0]",
    "lucid.take_along_dim({x}, {x}.argsort({d}), {d})", "lucid.diff({x}, dim={d})",
)  # fmt: skip
SHAPES = (
    "{x}.reshape(-1)", "{x}.T if {x}.ndim == 2 else {x}", "{x}[None]",
    "{x}[..., None] * {x}[..., None]", "{x}.expand(2, *{x}.shape)", "{x}.sum()", "{x}.mean() + {x}",
    "{x}.reshape(-1, 1) * {x}.reshape(-1)[:3]",
)  # fmt: skip
INDEXING = (
    "{x}[0]", "{x}[-1:]", "{x}[::2]", "{x}[::-1]", "{x}[[0, -1, 0]]", "{x}[..., :2]",
    "{x}[..., [0, 0]]", "{x}[np.array([0, -1])] * 2.0", "{x}[1:]", "{x}[..., -1, None]",
)  # fmt: skip
PRODUCTS = (
    "{x} @ {x}.T", "lucid.einsum('ij,kj->ik', {x}, {x})", "{x}.T @ lucid.tanh({x})",
    "lucid.einsum('ij,ij->i', {x}, {x})", "{x} @ {x}.sum(0)", "lucid.matmul({x}[None], {x}.T)",
)  # fmt: skip
IN_PLACE = (
    "{t} = {x}.clone()\n{t}[0] = {x}[-1] * 2.0",
    "{t} = {x} * 1.0\n{t} += {x}\n{t} *= 0.5",
    "{t} = {x}.clone()\n{t}[..., 0] *= {x}[..., -1]",
    "{t} = lucid.zeros({x}.shape, dtype='float64')\n{t}[:1] = lucid.sin({x}[:1])\n{t}[1:] -= "
    "{x}[1:]",
    "{t} = {x}.clone()\n{t}.mul_({x}).add_(1.0)",
    "{t} = {x}.clone()\n{t}[{t} > 0.5] = 0.25",
    "{t} = {x}.clone()\nview = {t}[1:]\nview *= 3.0",
)
LOOPS = (
    "lucid.func.cond({x}.sum() > 0, lambda v: v * 2.0, lambda v: lucid.sin(v) + {y}.sum(), {x})",
    "lucid.func.switch((abs({x}.sum()) * 3).to('int64') % 3, "
    "[lambda v: v * 1.0, lambda v: v * {y}.sum(), lucid.cos], {x})",
    "lucid.func.scan(lambda c, row: (lucid.sin(c + row.sum()), c * 0.5), {y}, {x})[1]",
    "lucid.func.scan(lambda c, _: (lucid.tanh(c) + {y}.mean(), None), {x}, length=3)[0]",
    "lucid.func.scan(lambda c, row: (c * 0.5 + row, row * c.sum()), {x}[0], {x}, reverse=True)[1]",
    "lucid.func.while_loop(lambda c: (c * c).sum() > 1.0, "
    "lambda c: c * 0.5 + 0.01 * lucid.sin({x}), {x})",
    "lucid.func.fori_loop(0, abs({x}.sum()).to('int64') % 3, "
    "lambda i, c: lucid.sin(c) + {y}.mean() * i, {x})",
    "lucid.func.scan(lambda c, row: (lucid.tanh(c @ {x}.T @ {x} + row), c), {x}[0], {x})[1]",
    "lucid.func.scan(lambda c, row: (c + row[:, None] @ row[None], row @ {x}.T), "
    "{x}.T @ {x}, {x})[0] * 0.1",
    "lucid.func.scan(lambda c, row: (lucid.sin(row @ {x}.T), row @ {x}.T), {x}[:, 0], {x})[1]",
    "lucid.func.associative_scan(lambda p, q: p * q, {x})",
    "lucid.func.map(lambda row: lucid.tanh(row) + {y}.sum(), {x})",
)
RULED = (
    "lucid.func.checkpoint(lambda v: lucid.sin(v) * lucid.tanh(v + {y}.sum()))({x})",
    "lucid.func.checkpoint(lambda v, w: lucid.exp(-v) + w.mean(), policy='everything')({x}, {y})",
    "lucid.func.checkpoint(lambda v: lucid.tanh(v @ v.T) @ v, policy='dots')({x})",
    "lucid.func.checkpoint(lambda v: ruled.by_vjp(v.cumsum(0)) + v)({x})",
    "ruled.by_jvp({x}, {y}.sum())", "ruled.by_vjp({x})", "ruled.Squash.apply({x})",
    "ruled.Mapped.apply({x})", "ruled.numbers()({x}, {y}.mean())", "ruled.given()({x})",
    "ruled.sums()({x}.reshape(-1))",
)  # fmt: skip
EMPTY = (
    "{x}[:0]", "{x}[..., :0].sum(-1) + 0.5", "lucid.cat([{x}[:0], {x} * 2.0])",
    "{x}[:0].sum() + {x}",
    "lucid.zeros(0, *{x}.shape, dtype='float64').sum(0) - {x}", "{x}[:0].reshape(-1, 0).sum(1)",
    "{x} * {x}[:0].prod(0)", "{x}[[]].mean(-1, keepdim=True)",
    "{x}.reshape(-1)[:0] @ {x}.reshape(-1)[:0] + {x}", "lucid.stack([{x}[:0], {x}[:0]]).sum(1)",
)  # fmt: skip
CAPTURED = (
    "ruled.linear()({x})",
    "net({x})",
    "net({x}[..., :1].expand(*{x}.shape[:-1], 3))",
    "{x} * table[0]",
    "{x} + table[:, 0]",
    "ruled.norm()({x})",
    "gate({x})",
    "ruled.conv()({x}.reshape(1, 1, -1))",
    "{x} @ table.T",
    "net[0].weight.sum(0) * {x}",
    "lucid.func.scan(lambda c, row: (lucid.tanh(net(c)), c * row), {x}[0], {x})[1]",
    "lucid.func.cond({x}.sum() > 0.1, net, lambda v: v[..., :2], {x})",
    "lucid.func.checkpoint(net)({x})",
    "lucid.func.functional_call(ruled.linear(), {{'weight': ruled.linear().weight * 2.0}}, {x})",
)
STATE = (
    "{x} * K", "{x} ** 2 * K + K", "{x} if FLAG else -{x}", "({x} * {x} + 0.5) ** POWER",
    "{x} * T[0]", "lucid.sin({x}) + T.sum()", "gate({x}) * K", "{x}[:POWER]", "{x} * gate.scale",
    "sum([{x} * i for i in range(POWER)]) + {x}", "lucid.clamp({x}, -0.9, 1.1 + POWER)",
    "lucid.func.scan(lambda c, _: (lucid.sin(c * K) + T[0], None), {x}, length=2)[0]",
    "lucid.func.cond({x}.sum() > 0.1, lambda v: v * K, lambda v: v * T[0], {x})",
    "lucid.jit(lambda v: v * K + T[0])({x})", "lucid.func.vmap(lambda v: v * K)({x})",
)  # fmt: skip
CONTROL = (
    "{t} = {x} * 2.0 if {x}.sum() > 0 else {x} + 1.0",
    "{t} = {x}\nfor _ in range(1 + int(abs({x}.sum().item())) % 3):\n    {t} = lucid.sin({t}) + "
    "{x}",
    "{t} = {x}\nwhile abs({t}).sum().item() > 1.0:\n    {t} = {t} * 0.5",
    "{t} = {x}[{x} > 100.0].sum() * {x}",
)


def candidate(
    rng: np.random.Generator, values: dict[str, Any], target: str
) -> tuple[str, tuple[str, ...], bool]:
    """A statement's text, what it uses and whether it reads values. It may not run."""
    names = list(values)
    x = str(rng.choice(names[-4:] if rng.random() < 0.7 else names))
    y = str(rng.choice(names))
    ndim = values[x].ndim
    d = int(rng.integers(-ndim, ndim)) if ndim else 0
    kind = rng.random()
    if kind < 0.04:
        return pick(rng, CONTROL).format(x=x, t=target), (x,), True
    if kind < 0.13:
        return pick(rng, IN_PLACE).format(x=x, t=target), (x,), False
    if kind < 0.2:
        return f"{target} = " + pick(rng, (*LOOPS, *RULED)).format(x=x, y=y), (x, y), False
    if kind < 0.24:
        return f"{target} = " + pick(rng, EMPTY).format(x=x), (x,), False
    if kind < 0.29:
        return f"{target} = " + pick(rng, CAPTURED).format(x=x), (x,), False
    if kind < 0.34:
        return f"{target} = " + pick(rng, STATE).format(x=x), (x,), False
    groups = (UNARY, BINARY, BINARY, REDUCTIONS, ALONG, SHAPES, INDEXING, PRODUCTS)
    group = groups[int(rng.integers(len(groups)))]
    uses = (x, y) if group is BINARY else (x,)
    return f"{target} = " + pick(rng, group).format(x=x, y=y, d=d), uses, False


def pick(rng: np.random.Generator, group: tuple[str, ...]) -> str:
    return group[int(rng.integers(len(group)))]


def moderate(value: Any) -> bool:
    return (
        isinstance(value, lucid.Tensor)
        and value.dtype == np.float64
        and value.numpy().size <= 60
        and bool(np.isfinite(value.numpy()).all())
        and bool(np.abs(value.numpy()).max(initial=0.0) < 15.0)
    )


def points(program: Program) -> Iterator[list[np.ndarray]]:
    """The arguments of three calls, with other values in each; the first are the program's."""
    for call, scale in enumerate((1.0, -0.7, 0.4)):
        yield [scale * x + 0.05 * call for x in program.arrays()]


def has_margin(program: Program) -> bool:
    """True if rounding decides no branch: a change in the last digits changes no result visibly.

    Paths round differently, so at such a point none of them is wrong. A program that does not run
    in the state of every call has none.
    """
    try:
        return is_steady(program)
    except lucid.errors.LucidError:
        return False


def is_steady(program: Program) -> bool:
    f, rng = program.function(), np.random.default_rng(program.seed)
    numbers = tuple(range(len(program.inputs)))
    both = lucid.func.value_and_grad(f, argnums=numbers)

    def results(arrays: list[np.ndarray]) -> list[np.ndarray]:
        value, grads = both(*map(lucid.as_tensor, arrays))
        return [value.numpy(), *[g.numpy() for g in grads]]

    for call, arrays in enumerate(points(program)):
        set_state(f.__globals__, call)
        expected = results(arrays)
        for _ in range(3):
            near = [x * (1 + 1e-11 * rng.standard_normal(x.shape)) for x in arrays]
            for a, e in zip(results(near), expected):
                scale = 1.0 + np.abs(np.where(np.isfinite(e), e, 0)).max(initial=0.0)
                if not np.allclose(a, e, rtol=1e-4, atol=1e-4 * scale, equal_nan=True):
                    return False
    return True


@functools.cache
def make(seed: int) -> Program:
    """The program of a seed: two or three inputs and up to nine statements."""
    rng = np.random.default_rng(seed)
    shapes: list[tuple[int, ...]] = [(3,), (2, 3), (1, 3), (2, 1), (), (3, 3), (2, 3, 2), (4,)]
    shapes += [*shapes, (0,), (2, 0), (0, 3), (2, 1, 2, 3), (1, 2, 2, 1, 3), (2, 1, 1, 2, 2)]
    chosen = [shapes[int(rng.integers(len(shapes)))] for _ in range(int(rng.integers(1, 4)))]
    inputs = tuple((name, shape) for name, shape in zip("abc", chosen))
    program = Program(inputs, (), "a", False, seed)
    scope = new_scope()
    values = {name: lucid.as_tensor(x) for (name, _), x in zip(inputs, program.arrays())}
    statements, reads = [], False
    for _ in range(60):
        if len(statements) >= 3 + seed % 7:
            break
        target = f"v{len(statements)}"
        text, uses, looks = candidate(rng, values, target)
        try:
            inside = {**scope, **values}
            exec(text, inside)
        except lucid.errors.LucidError:
            continue
        if moderate(inside[target]):
            statements.append(Statement(target, text, uses))
            values[target] = inside[target]
            reads = reads or looks
    whole = replace(program, statements=tuple(statements), result=list(values)[-1], reads=reads)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = [whole, *[whole.returning(i) for i in reversed(range(len(statements) - 1))]]
        return next((p for p in kept if has_margin(p)), replace(whole, statements=(), result="a"))
