"""The listing of a kernel is Python that gives what the kernel gives."""

from __future__ import annotations

import ast

import numpy as np
import pytest

import lucid
from lucid.compiler.kernels.listing import buffer_views, listing
from lucid.compiler.kernels.python_kernel import from_key, max_key, min_key, python_kernel
from lucid.compiler.lowering.lower import GraphLowering
from lucid.compiler.passes.pipeline import stages
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.executable import Segment
from lucid.compiler.plan.instructions import Ref
from lucid.ir import evaluate, parse
from lucid.ir.graph import Graph
from lucid.ir.types import DTYPES
from tests.compiler import agreement


def lowered(graph: Graph) -> GraphLowering:
    lowering = GraphLowering(stages(graph)["copies_inserted"])
    lowering.lay_out()
    return lowering


def nests(graph: Graph) -> list:
    return [work.nest for layout in lowered(graph).layouts for work in layout.work]


class Memory:
    """The memory of a plan, in which listings run: inputs, outputs and the arena as bytes."""

    def __init__(self, layout, inputs) -> None:
        builder = layout.builder
        self.cells = {}
        for given, x in zip(builder.inputs, inputs):
            self.cells[given.cell] = np.ascontiguousarray(x).reshape(-1).view("uint8").copy()
        self.results = []
        for made in builder.outputs:
            size = max(int(np.prod(made.shape)) * made.dtype.itemsize, 1)
            self.cells[made.cell] = np.zeros(size, "uint8")
            self.results.append((made, self.cells[made.cell]))
        self.cells[builder.arena_cell] = np.zeros(layout.top + 64, "uint8")

    def view(self, array: Array, dtype: str, shape, strides) -> np.ndarray:
        address = array.address
        assert isinstance(address, Ref)
        kind = DTYPES[dtype]
        steps = [s * kind.itemsize for s in strides]
        memory = self.cells[address.cell]
        return np.ndarray(shape, kind, memory, address.offset, steps)

    def outputs(self) -> list[np.ndarray]:
        return [
            memory[: int(np.prod(made.shape)) * made.dtype.itemsize]
            .view(made.dtype)
            .reshape(made.shape)
            for made, memory in self.results
        ]


def run_listings(graph: Graph, inputs) -> list[np.ndarray] | None:
    """The outputs of a Graph by the listings of its kernels; None where there are other steps."""
    lowering = lowered(graph)
    if len(lowering.parts) != 1 or not isinstance(lowering.parts[0], Segment):
        return None
    (layout,) = lowering.layouts
    if not all(hasattr(work, "nest") for work in layout.work):
        return None
    chosen = [inputs[lowering.graph.inputs.index(x)] for x in lowering.parts[0].inputs]
    memory = Memory(layout, chosen)
    for work in layout.work:
        if work.nest.size:
            views = zip(work.arrays, buffer_views(work.nest))
            with np.errstate(all="ignore"):
                python_kernel(work.nest)(*[memory.view(a, *view) for a, view in views])
    made = dict(zip(lowering.parts[0].outputs, memory.outputs()))
    return [made[x] for x in lowering.graph.outputs]


# what library routines, other programs or the interpreter compute
WITHOUT_LOOPS = (
    "collectives",
    "control",
    "custom",
    "fourier",
    "linalg",
    "random",
    "symmetric",
    "tape",
)


@pytest.mark.parametrize("family", agreement.families())
def test_listings_give_what_the_graph_gives(family):
    cases = agreement.families()[family]
    tried = 0
    for job in agreement.jobs(cases[::3], "float32"):
        if sum(x.size for x in job.arrays) > 500:
            continue
        got = run_listings(job.graph, job.arrays)
        if got is not None:
            text = agreement.difference(job, got, evaluate(job.graph, *job.arrays))
            assert not text, f"{job.graph}\n{text}\n" + "\n".join(map(listing, nests(job.graph)))
            tried += 1
    assert tried or family in WITHOUT_LOOPS


def test_the_listing_of_a_softmax():
    graph = lucid.ir.trace(lambda x: lucid.softmax(x, 1))(lucid.ones(4, 3))
    (nest,) = nests(graph)
    assert (
        listing(nest)
        == """\
def kernel(b0, b1, n0=4, n1=3, lo=0, hi=4):
    for i0 in range(lo, hi):
        k1 = i32(-2147483648)
        for i1 in range(n1):
            v0 = b0[i0, i1]
            k1 = maximum(k1, max_key(v0))
        v1 = from_key(k1)
        v5 = f32(0)
        for i1 in range(n1):
            v0 = b0[i0, i1]
            v2 = v0 - v1
            v3 = exp(v2)
            v5 += v3
            b1[i0, i1] = v3
        for i1 in range(n1):
            v4 = b1[i0, i1]
            v6 = v4 / v5
            b1[i0, i1] = v6"""
    )


def test_the_listing_of_a_sum_of_columns():
    graph = parse("""graph f(x: f32[4,3]):
    %0: f32[4,3] = mul x 2.0
    %1: f32[3]   = sum[axes=(0,)] %0
    return %1""")
    (nest,) = nests(graph)
    assert (
        listing(nest)
        == """\
def kernel(b0, b1, n0=4, n1=3, c0=f32(2.0), lo=0, hi=3):
    for i1 in range(lo, hi):
        b1[i1] = f32(0)
    for i0 in range(n0):
        for i1 in range(lo, hi):
            b1[i1] += b0[i0, i1] * c0"""
    )


def test_sizes_are_arguments():
    graph = lucid.ir.trace(lambda x: (x * 2).sum(1))(lucid.ones(4, 3))
    (nest,) = nests(graph)
    kernel = python_kernel(nest)
    x, y = np.ones((2, 5), "float32"), np.zeros(2, "float32")
    kernel(x, y, n0=2, n1=5, hi=2)
    assert y.tolist() == [10.0, 10.0]


def test_a_kernel_computes_the_part_it_is_asked_for():
    graph = lucid.ir.trace(lambda x: x.transpose(0, 2) * 2)(lucid.ones(3, 4, 5))
    (nest,) = nests(graph)
    assert "for o in range(lo, hi):\n        i1 = o % n1\n        i0 = o // n1" in listing(nest)
    kernel = python_kernel(nest)
    x, y = np.arange(60, dtype="float32").reshape(3, 4, 5), np.zeros((5, 4, 3), "float32")
    kernel(x.transpose(2, 1, 0), y, lo=0, hi=7)
    kernel(x.transpose(2, 1, 0), y, lo=7, hi=20)
    np.testing.assert_array_equal(y, x.transpose(2, 1, 0) * 2)


@pytest.mark.parametrize("x", [0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, 1e-40])
def test_keys_have_the_order_of_floats_and_give_them_back(x):
    for kind in (np.float32, np.float64):
        assert from_key(max_key(kind(x))) == kind(x)
        assert min_key(kind(np.nan)) <= min_key(kind(x)) <= max_key(kind(np.nan))
        assert (max_key(kind(x)) < max_key(kind(3))) == (kind(x) < 3)


def test_every_listing_parses_as_python():
    for cases in agreement.families().values():
        for job in agreement.jobs(cases[1::5], "float64"):
            for layout in lowered(job.graph).layouts:
                for work in layout.work:
                    if hasattr(work, "nest"):
                        ast.parse(listing(work.nest))
