"""Sums of long columns: chunks of rows leave partial results, the same for any threads."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.compiler.compile import compile_graph
from lucid.compiler.lowering.lower import GraphLowering
from lucid.compiler.passes.pipeline import stages
from lucid.ir import evaluate
from tests.compiler.agreement import same_bits

X = np.random.default_rng(0).normal(size=(5000, 37))
B = np.random.default_rng(1).normal(size=37)

PROGRAMS = {
    "a sum": lambda x, b: x.sum(0),
    "a sum and what follows": lambda x, b: b - 0.1 * (x * b).sum(0),
    "a sum beside what is summed": lambda x, b: ((x * 2), (x * 2).sum(0), b + 1),
    "several": lambda x, b: (x.amax(0), (x * x).sum(0), x.amin(0), (x > 3).any(0)),
    "two axes": lambda x, b: lucid.exp(x).reshape(500, 10, 37).sum((0, 1)) * b,
    "an index": lambda x, b: lucid.pad(x, (2, 1)).sum(0) + lucid.pad(b, (1, 2)),
    "a sum of sums": lambda x, b: (x - x.mean(0)).sum(0),
    "an index of the largest": lambda x, b: lucid.argmax(x, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_columns_are_the_same_for_any_number_of_threads(name, dtype, threads):
    arrays = [X.astype(dtype), B.astype(dtype)]
    graph = lucid.ir.trace(PROGRAMS[name])(*map(lucid.tensor, arrays))
    program = compile_graph(graph)
    found = []
    for n in (1, 2, 4):
        threads(n)
        found.append(program(arrays))
    for one, two, four, want in zip(*found, evaluate(graph, *arrays)):
        assert same_bits(one, two) and same_bits(one, four)
        atol = np.finfo(dtype).eps * 5000
        np.testing.assert_allclose(one, want, rtol=1e-5 if dtype == "float32" else 1e-12, atol=atol)


def kernels_of(f, *shape: int) -> list:
    lowering = GraphLowering(stages(lucid.ir.trace(f)(lucid.ones(*shape)))["copies_inserted"])
    lowering.lay_out()
    return [work.nest.partial for layout in lowering.layouts for work in layout.work]


def test_only_long_columns_are_cut():
    def total(x):
        return x.sum(0)

    assert kernels_of(total, 5000, 37) == [True, False]
    assert kernels_of(total, 50, 37) == [False]
    assert kernels_of(total, 8, 100_000) == [False]
