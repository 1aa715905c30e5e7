"""Random programs, compiled = interpreted: those of tests/transforms, and ones made to be fused.

LUCID_TEST_ALL=1 runs ten times as many. A failure prints the smallest program that shows it.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import lucid
from lucid.func import value_and_grad
from lucid.ir import Graph, evaluate, parse
from lucid.ir.pytree import flatten
from lucid.tape.bind import fresh
from lucid.tape.cut import cut
from lucid.tape.node import GRAD, TRACE
from tests.campaign.programs import make, shrink
from tests.compiler.agreement import Job, compile_jobs, difference

MORE = 10 if os.environ.get("LUCID_TEST_ALL", "") not in ("", "0") else 1
TOGETHER = 10


def disagreements(some: list[Job]) -> list[str]:
    some = [job for job in some if all(isinstance(x, np.ndarray) for x in job.arrays)]
    out = []
    for job, executable in zip(some, compile_jobs(some)):
        with np.errstate(all="ignore"):
            text = difference(job, executable(job.arrays), evaluate(job.graph, *job.arrays))
        if text:
            out.append(f"{job.label}\n{job.graph}\n{text}")
    return out


def traced(label: str, f, arrays) -> Job:
    """The Graph of a function, with the arrays that it captured as further inputs.

    None stands for one whose value no derivative needs, and which was not kept.
    """
    inputs = [fresh(lucid.as_tensor(x), TRACE | GRAD) for x in arrays]
    section = cut(inputs, flatten(f(*inputs))[0])
    captured = [section.slots[slot].saved for slot in section.captured]
    return Job(label, section.graph(), [*arrays, *captured])


def jobs_of(program) -> list[Job]:
    """The program and its value with gradients, as Graphs."""
    f, arrays = program.function(), program.arrays()
    both = value_and_grad(f, argnums=tuple(range(len(arrays))))
    return [traced(f"{g.__name__} of\n{program.text()}", g, arrays) for g in (f, both)]


@pytest.mark.parametrize("part", range(4 * MORE))
def test_programs_of_every_operation(part):
    programs = [make(seed) for seed in range(part * TOGETHER, (part + 1) * TOGETHER)]
    programs = [p for p in programs if not p.reads]
    wrong = disagreements([job for p in programs for job in jobs_of(p)])
    if wrong:
        smaller = [shrink(p, lambda q: disagreements(jobs_of(q))) for p in programs if
                   disagreements(jobs_of(p))]  # fmt: skip
        pytest.fail("\n\n".join([*(p.text() for p in smaller), wrong[0]]))


# Programs made to be fused: a few shapes, many reductions and broadcasts, several results

UNARY = (lucid.exp, lucid.sin, lucid.tanh, lambda x: x * x, lambda x: -x, lambda x: x * 0.5 + 1)
BINARY = (
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: x / (y * y + 1),
    lucid.maximum,
    lambda x, y: lucid.where(x > y, x, y * 0.5),
)


def normalized(x):
    """Moderate numbers, whatever came before."""
    return x / (1 + lucid.abs(x))


def fit(x, y) -> bool:
    pairs = zip(reversed(x.shape), reversed(y.shape))
    return all(a == b or 1 in (a, b) for a, b in pairs)


def fused_program(seed: int):
    """A function of two matrices and a vector with several results."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, 14))
    choices = [(int(rng.integers(7)), *rng.integers(0, 1 << 30, 3).tolist()) for _ in range(count)]

    def f(a, b, v):
        values = [a, b, v]
        for kind, i, j, k in choices:
            x, y = values[i % len(values)], values[j % len(values)]
            if kind < 2:
                values.append(UNARY[k % len(UNARY)](normalized(x)))
            elif kind < 4 and fit(x, y):
                values.append(BINARY[k % len(BINARY)](x, y))
            elif kind == 4 and x.ndim:
                dim = (None, 0, -1)[k % 3]
                keep = bool(j % 2)
                total = (lucid.sum, lucid.mean, lucid.amax)[i % 3](x, dim, keep)
                values.append(normalized(total))
            elif kind == 5 and x.ndim == 2 and x.shape[0] == x.shape[1]:
                values.append(x.T)
            elif kind == 6 and x.ndim == 2 and y.ndim == 2 and x.shape[1] == y.shape[0]:
                values.append(normalized(x @ y / x.shape[1]))
        kept = values[3:] or values
        return [kept[k] for k in sorted({len(kept) - 1, len(kept) // 2, seed % len(kept)})]

    f.__name__ = f"fused{seed}"
    return f


SIZES = [(3, 3), (1, 7), (16, 16), (9, 400), (300, 300), (5000, 4), (2, 20_000)]


def gradient_of(f):
    def g(a, b, v):
        total = lambda *xs: sum([y.sum() for y in f(*xs)])  # noqa: E731
        return lucid.func.grad(total, argnums=(0, 1, 2))(a, b, v)

    g.__name__ = f"gradient of {f.__name__}"
    return g


@pytest.mark.parametrize("part", range(6 * MORE))
def test_programs_that_fuse(part):
    some = []
    for seed in range(part * TOGETHER, (part + 1) * TOGETHER):
        rng = np.random.default_rng(seed)
        m, n = SIZES[seed % len(SIZES)]
        arrays = [rng.uniform(-1, 1, shape).astype("float32") for shape in ((m, n), (m, n), (n,))]
        f = fused_program(seed)
        some += [traced(g.__name__, g, arrays) for g in (f, gradient_of(f))]
    wrong = disagreements(some)
    if wrong:
        labels = {text.split("\n")[0] for text in wrong}
        wrong = [job.label for job in some if job.label in labels and not is_nearer(job)]
    assert not wrong, f"{len(wrong)} of {len(some)} differ: {wrong[:3]}"


def is_nearer(job: Job) -> bool:
    """Whether compiled code is nearer to float64 than the interpreter.

    NumPy adds the rows of a matrix one after another: a sum of 5,000 float32 rows is wrong by 5e-5
    of its size where compiled code is wrong by 1e-5.
    """
    (executable,) = compile_jobs([job])
    compiled, interpreted = executable(job.arrays), evaluate(job.graph, *job.arrays)
    exact = evaluate(in_float64(job.graph), *[x.astype("float64") for x in job.arrays])
    few_digits = 4 * np.finfo("float32").eps
    return all(
        abs(c - e).max() <= max(abs(i - e).max(), few_digits * abs(e).max())
        for c, i, e in zip(compiled, interpreted, exact)
    )


def in_float64(graph: Graph) -> Graph:
    return parse(str(graph).replace("f32", "f64"))
