"""The arena: buffers that live together never overlap, little is wasted, results go in place."""

from __future__ import annotations

import time

import numpy as np
import pytest

import lucid
from lucid.compiler.compile import compile_graph
from lucid.compiler.inspect.stages import planned_text
from lucid.compiler.lowering.lower import GraphLowering
from lucid.compiler.passes.pipeline import stages
from lucid.compiler.plan.memory import ALIGNMENT, Lifetime, align_up, allocate
from lucid.ir import evaluate
from lucid.ir.graph import Graph
from tests.compiler.agreement import Job, compile_jobs, difference


def random_lives(rng: np.random.Generator, count: int, longest: int = 40) -> list[Lifetime]:
    first = rng.integers(0, count, count)
    length = rng.integers(0, longest, count)
    nbytes = rng.choice([0, 1, 4, 64, 100, 4096, 5000, 65536], count)
    return [Lifetime(int(n), int(a), int(a + d)) for n, a, d in zip(nbytes, first, length)]


def check_no_overlap(lives: list[Lifetime], offsets: list[int], top: int) -> None:
    """A sweep over time in which every byte's owner is known."""
    owner = np.full(top // ALIGNMENT, -1)
    events = sorted(
        [(life.first, 1, i) for i, life in enumerate(lives)]
        + [(life.last + 1, 0, i) for i, life in enumerate(lives)]
    )
    for _, begins, i in events:
        assert offsets[i] % ALIGNMENT == 0
        part = slice(offsets[i] // ALIGNMENT, (offsets[i] + align_up(lives[i].nbytes)) // ALIGNMENT)
        assert part.stop <= len(owner)
        if begins:
            assert (owner[part] == -1).all(), f"buffer {i} overlaps {set(owner[part])}"
        owner[part] = i if begins else -1


def most_alive(lives: list[Lifetime]) -> int:
    """The bytes that live at one time, at most: no arena can be smaller."""
    change: dict[int, int] = {}
    for life in lives:
        change[life.first] = change.get(life.first, 0) + align_up(life.nbytes)
        change[life.last + 1] = change.get(life.last + 1, 0) - align_up(life.nbytes)
    return max(np.cumsum([change[t] for t in sorted(change)]))


@pytest.mark.parametrize("seed", range(20))
def test_buffers_that_live_together_never_overlap(seed):
    lives = random_lives(np.random.default_rng(seed), 300)
    offsets, top = allocate(lives)
    check_no_overlap(lives, offsets, top)


@pytest.mark.parametrize("seed", range(5))
def test_the_arena_is_close_to_the_bytes_that_live_at_once(seed):
    lives = random_lives(np.random.default_rng(seed), 1000)
    _, top = allocate(lives)
    assert most_alive(lives) <= top <= 1.3 * most_alive(lives)


def test_equal_buffers_waste_nothing():
    rng = np.random.default_rng(0)
    lives = [Lifetime(4096, life.first, life.last) for life in random_lives(rng, 500)]
    _, top = allocate(lives)
    assert top == most_alive(lives)


def test_nothing_to_allocate():
    assert allocate([]) == ([], 0)


def test_time_grows_with_the_number_of_buffers_and_not_faster():
    def seconds(count: int) -> float:
        lives = random_lives(np.random.default_rng(0), count, longest=200)
        start = time.process_time()
        allocate(lives)
        return time.process_time() - start

    assert min(seconds(10_000) for _ in range(3)) < 0.5
    few, many = (min(seconds(n) for _ in range(3)) for n in (2_000, 20_000))
    assert many < 25 * few


# In place


def arena_of(graph: Graph) -> int:
    lowering = GraphLowering(stages(graph)["copies_inserted"])
    lowering.lay_out()
    return sum(layout.top for layout in lowering.layouts)


def check(graph: Graph, *arrays: np.ndarray) -> None:
    job = Job(str(graph), graph, arrays)
    (executable,) = compile_jobs([job])
    text = difference(job, executable(arrays), evaluate(graph, *arrays))
    assert not text, f"{graph}\n{text}"


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def test_a_chain_that_ends_in_an_output_needs_no_arena():
    graph = lucid.ir.trace(lambda x, w: lucid.tanh(x @ w))(lucid.ones(64, 64), lucid.ones(64, 64))
    assert arena_of(graph) == 0
    check(graph, floats(64, 64), floats(64, 64, seed=1))


def test_layers_alternate_between_two_buffers():
    def f(x, w):
        for _ in range(6):
            x = lucid.tanh(x @ w)
        return x.sum()

    graph = lucid.ir.trace(f)(lucid.ones(64, 64), lucid.ones(64, 64))
    assert arena_of(graph) == 2 * 64 * 64 * 4
    check(graph, floats(64, 64), floats(64, 64, seed=1))


def test_a_row_is_normalized_in_place():
    graph = lucid.ir.trace(lambda x, w: lucid.softmax(x @ w, 1))(
        lucid.ones(32, 16), lucid.ones(16, 48)
    )
    assert arena_of(graph) == 0
    check(graph, floats(32, 16), floats(16, 48, seed=1))


def test_an_operand_that_is_read_later_is_left_alone():
    def f(x, w):
        y = x @ w
        return lucid.exp(y) @ w + y

    graph = lucid.ir.trace(f)(lucid.ones(8, 8), lucid.ones(8, 8))
    check(graph, floats(8, 8), floats(8, 8, seed=1))


def stored_early(z, y, axis):
    return z, y / z.sum(axis, keepdims=True)


@pytest.mark.parametrize(
    "f",
    [
        lambda y: lucid.exp(y) + y.T,  # read at another place
        lambda y: lucid.exp(y) + y.flip(0),
        lambda y: y - y.sum(0),  # read again in a second loop over the columns
        lambda y: stored_early(y * 2, y, 1),  # stored before the last loop that reads y
        lambda y: stored_early(y * 2, y, 0),
        lambda y: (lucid.exp(y), y.sum(1), y.max(1)),
        lambda y: (y.sum(1) * y[:, 0], y + 1),
        lambda y: y.to(lucid.float64),  # elements of another size
        lambda y: y > 0,
        lambda y: y.sum(0) + y[0],
        lambda y: lucid.softmax(y, 0) * y.sum(),
        lambda y: (y[0] + y, y[0] * 2),
        lambda y: (y * y[0].exp()).sum(0),  # accumulated there from the start
    ],
)
@pytest.mark.parametrize("n", [8, 300])
def test_what_may_not_be_written_in_place_is_not(f, n):
    graph = lucid.ir.trace(lambda x, w: f(x @ w))(lucid.ones(n, n), lucid.ones(n, n))
    check(graph, floats(n, n), floats(n, n, seed=1) / 8)


def test_the_accumulators_of_columns_are_not_written_over_an_operand():
    graph = lucid.ir.trace(lambda x, w, z: (z * (x @ w)).sum(0))(
        lucid.ones(30), lucid.ones(30, 30), lucid.ones(50, 30)
    )
    check(graph, floats(30), floats(30, 30, seed=1), floats(50, 30, seed=2))


def in_another_shape(x):
    return lucid.softmax(x, -1).reshape(3, 2, 5, 2)


def in_two_shapes(x):
    y = lucid.softmax(x, -1)
    return y.reshape(3, 2, 5, 2), y.reshape(2, 3, 2, 5), (y * y).sum(0)


def read_after_it_was_given(x):
    y = lucid.softmax(x, -1)
    return y.reshape(3, 2, 5, 2), lucid.cumsum(lucid.softmax(y, 0), 0)


@pytest.mark.parametrize("f", [in_another_shape, in_two_shapes, read_after_it_was_given])
def test_an_output_in_another_shape_is_computed_where_it_is_given(f):
    x = np.random.default_rng(0).normal(size=(6, 10)).astype("float32")
    graph = lucid.ir.trace(f)(lucid.tensor(x)).stripped()
    copies = [line for line in planned_text(graph).splitlines() if "copy" in line]
    assert len(copies) == (1 if f is in_two_shapes else 0)
    for given, wanted in zip(compile_graph(graph)([x]), evaluate(graph, x), strict=True):
        np.testing.assert_allclose(given, wanted, rtol=1e-6)
