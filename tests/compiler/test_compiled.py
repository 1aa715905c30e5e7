"""A compiled Graph gives what the interpreter gives: every case, its vjp and its jvp.

By default float32 is tried for all cases, float64 for a third of them; LUCID_TEST_ALL=1 tries all.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import lucid
from lucid.compiler.runtime import cache, codegen
from lucid.compiler.runtime import kernel_table as kernels
from lucid.ir import evaluate, parse
from lucid.ops.core.kinds import Elementwise
from tests.compiler import agreement
from tests.compiler.agreement import Job, compile_jobs, difference, same_bits

ALL = os.environ.get("LUCID_TEST_ALL", "") not in ("", "0")
FAMILIES = agreement.families()
LARGE = 100_000  # elements: enough to be split into chunks
THREADS = (1, 2, 4)


def chosen(cases, dtype):
    return cases if ALL or dtype == "float32" else cases[::3]


def assert_agree(some, threads) -> None:
    """Every Job compiled = interpreted, with the same bits for any number of threads."""
    wrong = []
    for job, executable in zip(some, compile_jobs(some)):
        want = evaluate(job.graph, *job.arrays)
        results = []
        for n in THREADS:
            threads(n)
            results.append(executable(job.arrays))
        text = difference(job, results[0], want)
        for n, result in zip(THREADS[1:], results[1:]):
            if not all(map(same_bits, results[0], result)):
                text += f"\nnot the same with {n} threads"
        if text:
            wrong.append(f"{job.label}\n{job.graph}\n{text}")
    assert not wrong, f"{len(wrong)} of {len(some)} differ\n" + "\n\n".join(wrong[:5])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("family", FAMILIES)
def test_compiled_cases_equal_interpreted_ones(family, dtype, threads):
    assert_agree(agreement.jobs(chosen(FAMILIES[family], dtype), dtype), threads)


def one_case_an_op():
    """For every op that takes any size, its case with the most axes."""
    best = {}
    for cases in FAMILIES.values():
        for case in filter(agreement.scalable, cases):
            old = best.get(case.op)
            if old is None or len(case.args[0].shape) > len(old.args[0].shape):
                best[case.op] = case
    return list(best.values())


ONE_EACH = one_case_an_op()


@pytest.mark.parametrize("part", range(8))
def test_large_cases_are_split_and_equal_interpreted_ones(part, threads):
    cases = [agreement.scaled(case, LARGE) for case in ONE_EACH[part::8]]
    for case in cases:
        assert_agree(agreement.jobs([case], "float32"), threads)


def test_there_are_large_cases_of_every_kind():
    ops = [case.op for case in ONE_EACH]
    assert sum(isinstance(op, Elementwise) for op in ops) > 60
    assert {op.monoid for op in ops} >= {"sum", "prod", "max", "min", "any", "all"}


def test_a_warm_cache_gives_the_same_bits_and_compiles_nothing(tmp_path, monkeypatch, threads):
    monkeypatch.setenv("LUCID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kernels, "_loaded", type(kernels._loaded)())
    some = agreement.jobs(FAMILIES["reduction"][:20], "float32")
    cold = [executable(job.arrays) for job, executable in zip(some, compile_jobs(some))]
    kernels._loaded.clear()
    monkeypatch.setattr(codegen, "compile_object", lambda *_, **__: pytest.fail("compiled again"))
    warm = [executable(job.arrays) for job, executable in zip(some, compile_jobs(some))]
    assert all(all(map(same_bits, a, b)) for a, b in zip(cold, warm))
    assert cache.info()


LENGTHS = [1, 2, 3, 7, 8, 9, 31, 32, 33, 64, 100, 127, 1000, 1023, 4097]


def reduction(op, dtype, shape, axis):
    """The Graph of one reduction."""
    of = ",".join(map(str, shape))
    to = ",".join(str(n) for i, n in enumerate(shape) if i != axis)
    return parse(f"""graph f(x: {dtype}[{of}]):
    %0: {dtype}[{to}] = {op}[axes=({axis},)] x
    return %0""")


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
def test_reductions_of_every_length_and_layout(op, rng):
    some = []
    for n in LENGTHS:
        for shape, axis in (((n,), 0), ((3, n), 1), ((n, 5), 0), ((2, n, 3), 1)):
            x = rng.uniform(0.5, 1.5, shape).astype("float32")
            some.append(Job(f"{op} {shape}", reduction(op, "f32", shape, axis), [x]))
    for job, executable in zip(some, compile_jobs(some)):
        text = difference(job, executable(job.arrays), evaluate(job.graph, *job.arrays))
        assert not text, f"{job.graph}\n{text}"


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("shape,axis", [((1000,), 0), ((6, 50), 1), ((50, 9), 0)])
def test_extrema_keep_nan_wherever_it_stands(op, dtype, shape, axis, rng):
    graph = reduction(op, dtype, shape, axis)
    x = rng.standard_normal(shape).astype(graph.inputs[0].type.dtype)
    (executable,) = compile_jobs([Job(op, graph, [x])])
    for place in (0, 1, x.size // 2, x.size - 1):
        for nan in (np.nan, -np.nan):
            y = x.copy()
            y.reshape(-1)[place] = nan
            for value in (np.inf, -np.inf):
                y.reshape(-1)[(place + 3) % x.size] = value
                assert same_bits(executable([y])[0], evaluate(graph, y)[0])


def test_extrema_of_infinities_alone():
    for op, value in (("max", -np.inf), ("min", np.inf)):
        graph = parse(f"graph f(x: f32[3,40]):\n    %0: f32[3] = {op}[axes=(1,)] x\n    return %0")
        x = np.full((3, 40), value, "float32")
        (executable,) = compile_jobs([Job(op, graph, [x])])
        assert executable([x])[0].tolist() == [value] * 3


@pytest.mark.parametrize("layout", ["strided", "backwards", "fortran_order"])
def test_inputs_may_lie_anyhow_in_memory(layout, rng):
    from tests import laws

    text = "graph f(x: f32[7,5], y: f32[5]):\n    %0: f32[7,5] = add x y\n    return %0"
    graph = parse(text)
    x, y = (rng.standard_normal(s).astype("float32") for s in ((7, 5), (5,)))
    (executable,) = compile_jobs([Job(text, graph, [x, y])])
    move = getattr(laws, layout)
    assert same_bits(executable([move(x), move(y)])[0], x + y)


def test_a_second_pass_over_what_is_reduced_is_not_split(rng):
    """A row that is dear enough to be split, but is read again after its sum is known."""

    def normalized(x):
        for _ in range(12):
            x = lucid.exp(lucid.sin(x))
        return x / x.sum(), ((x - x.mean()) ** 2).sum()

    x = rng.standard_normal(4096).astype("float32")
    graph = lucid.ir.trace(normalized)(lucid.tensor(x))
    job = Job("normalized", graph, [x])
    (executable,) = compile_jobs([job])
    assert not difference(job, executable([x]), evaluate(graph, x))


@pytest.mark.parametrize(
    "f",
    [
        lambda z: z + z.flip(0),
        lambda z: z + z[0],
        lambda z: z[1:] * z[:-1],
        lambda z: z + z.reshape(2, 8).T.reshape(4, 4),
        lambda z: z + z.T + z.sum(0) + z.sum(1),
        lambda z: (z + z.sum(0)[:, None]).sum(1) + (z * z.T).sum(0),
        lambda z: z[::2] + z[1::2].flip(1),
        lambda z: (z - z.flip(1).sum(1, keepdims=True)) * z.max(),
    ],
)
def test_a_value_read_at_another_place_is_read_from_memory(f, rng):
    x = rng.standard_normal((4, 4)).astype("float32")
    graph = lucid.ir.trace(lambda x: f(lucid.exp(x)))(lucid.tensor(x))
    job = Job("views", graph, [x])
    (executable,) = compile_jobs([job])
    assert not difference(job, executable([x]), evaluate(graph, x))
