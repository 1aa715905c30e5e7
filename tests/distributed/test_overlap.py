"""Compiled programs start a collective, compute what does not need it, and then wait for it."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.compiler.compile import compile_graph
from lucid.compiler.fusion.fuse import fuse
from lucid.compiler.fusion.groups import Group
from lucid.distributed import lowering
from lucid.distributed.collectives import AllReduce, Collective
from lucid.ir import parse
from lucid.tape.bind import bind

BACKWARD = """graph f(x: f32[64,64], w: f32[64,64]):
    %0: f32[64,64] = matmul x w
    %1: f32[64,64] = all_reduce[group='world', size=2] %0
    %2: f32[64,64] = sub w %1
    %3: f32[64,64] = matmul %0 w
    %4: f32[64,64] = all_reduce[group='world', size=2] %3
    %5: f32[64,64] = sub w %4
    %6: f32[64,64] = matmul %3 w
    return %2, %5, %6"""


class Flight:
    """Collectives of two equal ranks whose results arrive when they are waited for."""

    def __init__(self) -> None:
        self.open: dict = {}
        self.log: list[str] = []

    def begin(self, eqn, args) -> None:
        x, out = lowering.arrays_at(eqn, args)
        self.log.append("start")
        self.open[eqn.outputs[0]] = x, x.copy(), out
        out[...] = np.nan  # nobody may read it yet

    def finish(self, eqn, args) -> None:
        x, before, out = self.open.pop(eqn.outputs[0])
        self.log.append("wait")
        np.testing.assert_array_equal(x, before, "memory of an operand in flight was written")
        assert np.isnan(out).all(), "memory of a result in flight was written"
        out[...] = 2 * x


@pytest.fixture
def flight(monkeypatch):
    found = Flight()

    def run(eqn, args) -> None:
        x, out = lowering.arrays_at(eqn, args)
        out[...] = 2 * x

    monkeypatch.setattr(lowering, "begin_at", found.begin)
    monkeypatch.setattr(lowering, "finish_at", found.finish)
    monkeypatch.setattr(lowering, "poll_at", lambda eqn, args: None)
    monkeypatch.setattr(lowering, "run_at", run)
    monkeypatch.setattr(Collective, "eval", lambda self, x: 2 * x)
    monkeypatch.setenv("LUCID_VERIFY", "0")
    return found


def names(graph) -> list[str]:
    steps, _ = fuse(graph)
    return ["kernel" if isinstance(s, Group) else s.equation.op.name for s in steps]


def test_what_reads_a_result_comes_after_what_does_not():
    wanted = ["matmul", "all_reduce", "matmul", "all_reduce", "matmul"]
    found = names(parse(BACKWARD))
    assert [name for name in found if name != "kernel"] == wanted
    assert "kernel" not in found[: found.index("matmul", 4)]


def test_a_collective_that_waits_for_another_keeps_its_place():
    graph = parse("""graph f(x: f32[4], y: f32[4]):
    %0: f32[4] = all_reduce[group='world', size=2] x
    %1: f32[4] = exp %0
    %2: f32[4] = all_reduce_prod[group='world', size=2] %1
    %3: f32[] = send[group='world', size=2, dest=1, source=-1] y
    return %2""")
    found = [name for name in names(graph) if name != "kernel"]
    assert found == ["all_reduce", "all_reduce_prod", "send"]


def test_the_plan_computes_between_start_and_wait(flight):
    program = compile_graph(parse(BACKWARD))
    labels = [label.split("  ")[0] for label in program.plan.labels]
    assert labels[:5] == ["matmul", "all_reduce", "matmul", "all_reduce", "matmul"]
    assert labels[5:].count("wait for all_reduce") == 2
    x, w = np.random.default_rng(0).normal(size=(2, 64, 64)).astype(np.float32)
    for scale in (1.0, 0.5, 2.0):
        first, second, third = program([scale * x, w])
        a = scale * x @ w
        np.testing.assert_allclose(first, w - 2 * a, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(second, w - 2 * a @ w, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(third, a @ w @ w, rtol=1e-3, atol=1e-2)
    assert flight.log == ["start", "start", "wait", "wait"] * 3


def test_a_collective_whose_result_is_read_at_once_is_one_instruction(flight):
    graph = parse("""graph f(x: f32[4]):
    %0: f32[4] = all_reduce[group='world', size=2] x
    %1: f32[4] = exp %0
    return %1""")
    (result,) = compile_graph(graph)([np.ones(4, np.float32)])
    np.testing.assert_allclose(result, np.exp(2.0) * np.ones(4), rtol=1e-6)
    assert flight.log == []


def reduced(x):
    return bind(AllReduce("world", 2), x)


def random_program(seed: int, all_reduce):
    """A function of three matrices with collectives at random places, used late, soon or never."""

    def f(*matrices):
        rng = np.random.default_rng(seed)
        values = list(matrices)
        for _ in range(rng.integers(8, 20)):
            a, b = (values[i] for i in rng.integers(0, len(values), 2))
            kind = rng.integers(0, 8)
            if kind < 3:
                values.append(all_reduce(a if kind else a.T) * 0.5)
            else:
                halves = a.reshape(2, 3, 6)
                other = [a @ b * 0.2, a + b, lucid.tanh(a) * b, a.T, lucid.cat([halves[1], b[:3]])]
                values.append(other[kind - 3])
        return tuple(values[-3:])

    return f


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_memory_in_flight_is_neither_read_nor_written(flight, first):
    for seed in range(first, first + 10):
        matrices = np.random.default_rng(seed).normal(size=(3, 6, 6))
        given = [lucid.tensor(m) for m in matrices]
        graph = lucid.ir.trace(random_program(seed, reduced))(*given)
        found = compile_graph(graph)(list(matrices))
        wanted = random_program(seed, lambda x: x * 2.0)(*given)
        for y, expected in zip(found, wanted, strict=True):
            np.testing.assert_allclose(y, expected.numpy(), rtol=1e-9, atol=1e-9)
    assert "start" in flight.log and flight.log.count("start") == flight.log.count("wait")


def test_in_a_loop_a_collective_is_waited_for_at_once(flight):
    graph = lucid.ir.trace(
        lambda x: lucid.func.scan(lambda c, _: (reduced(c) + x, c.sum()), x, None, length=3)
    )(lucid.ones(4))
    result = compile_graph(graph)([np.ones(4, np.float32)])
    assert flight.log == [] and result[0].tolist() == [15.0] * 4


def test_every_collective_is_asynchronous_and_ordered():
    kinds = Collective.__subclasses__()
    assert kinds and all(kind.asynchronous and kind.ordered for kind in kinds)
