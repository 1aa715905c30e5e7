import gc
import sys
import threading

import numpy as np
import pytest

from lucid.compiler.plan.instructions import Cell, Input, chunk_length
from lucid.compiler.plan.plan import Builder, _convert
from tests.compiler import texts


@pytest.fixture(scope="module")
def kernels():
    parts = (texts.ADD, texts.DOUBLE, texts.NEGATE, texts.INCREMENT, texts.BELOW)
    return texts.load(*parts, texts.PARTIAL_SUMS)


def add_plan(kernels, n, **options):
    b = Builder()
    x, y = b.input(np.float32, (n,)), b.input(np.float32, (n,))
    b.call(kernels["add"], [x, y, b.output(np.float32, (n,))], extent=n, **options)
    return b.build()


def floats(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("n", [0, 1, 10, 1000, 100_003])
def test_a_plan_computes_what_numpy_computes(kernels, n):
    x, y = floats(2, n)
    (z,) = add_plan(kernels, n, cost=0.5)(x, y)
    np.testing.assert_array_equal(z, x + y)
    assert z.dtype == np.float32


def test_instructions_pass_results_through_the_arena(kernels):
    b = Builder()
    x = b.input(np.float32, (5,))
    y = b.output(np.float32, (5,))
    b.call(kernels["double"], [x, b.arena(64)], extent=5)
    b.call(kernels["double"], [b.arena(64), b.arena(128)], extent=5)
    b.call(kernels["add"], [b.arena(128), b.arena(64), y], extent=5)
    plan = b.build(arena_bytes=192)
    x = floats(5)
    for _ in range(3):
        np.testing.assert_array_equal(plan(x)[0], 6 * x)


def test_refs_may_point_inside_a_buffer(kernels):
    b = Builder()
    x = b.input(np.float32, (8,))
    b.call(kernels["double"], [x.at(16), b.output(np.float32, (4,))], extent=4)
    x = floats(8)
    np.testing.assert_array_equal(b.build()(x)[0], 2 * x[4:])


def test_constants_stay_alive(kernels):
    b = Builder()
    x, y = b.input(np.float32, (4,)), b.output(np.float32, (4,))
    b.call(kernels["add"], [x, b.constant(np.full(4, 3, np.float32)), y], extent=4)
    plan = b.build()
    del b
    gc.collect()
    np.testing.assert_array_equal(plan(np.ones(4, np.float32))[0], [4, 4, 4, 4])


def test_the_bare_function_outlives_its_plan(kernels):
    run = add_plan(kernels, 3).run
    gc.collect()
    np.testing.assert_array_equal(run(np.ones(3, np.float32), np.ones(3, np.float32))[0], [2, 2, 2])


def test_several_outputs_and_scalars(kernels):
    b = Builder()
    x = b.input(np.float32, ())
    for name in ("double", "negate"):
        b.call(kernels[name], [x, b.output(np.float32, ())], extent=1)
    double, negative = b.build()(np.array(2.5, np.float32))
    assert (double.shape, float(double), float(negative)) == ((), 5.0, -2.5)


@pytest.mark.parametrize(
    "argument",
    [
        [1.0, 2.0, 3.0],
        np.float32(1),
        np.ones(3),
        np.ones(4, np.float32),
        np.ones((3, 1), np.float32),
        np.ones(6, np.float32)[::2],
        np.ones(3, ">f4"),
        np.ones(3, np.float32).view(np.recarray),
        np.frombuffer(b"\0" * 13, np.uint8)[1:].view(np.float32),
    ],
    ids=[
        "list",
        "scalar",
        "dtype",
        "shape",
        "rank",
        "stride",
        "byte order",
        "subclass",
        "alignment",
    ],
)
def test_the_bare_function_declines_what_it_does_not_expect(kernels, argument):
    plan = add_plan(kernels, 3)
    assert plan.run(np.ones(3, np.float32), argument) is None
    assert plan.run(np.ones(3, np.float32)) is None


def test_other_layouts_are_copied(kernels):
    plan = add_plan(kernels, 3)
    x = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(plan(x[::2], x[1::2])[0], [1, 5, 9])
    np.testing.assert_array_equal(plan(x[:3].astype(">f4"), x[:3])[0], [0, 2, 4])


def test_errors_name_the_argument(kernels):
    plan = add_plan(kernels, 3)
    with pytest.raises(TypeError, match=r"argument 1 is float64\[3\], expected float32\[3\]"):
        plan(np.ones(3, np.float32), np.ones(3))
    with pytest.raises(TypeError, match="1 arguments given, 2 expected"):
        plan(np.ones(3, np.float32))


def test_an_output_may_be_an_input_overwritten(kernels):
    b = Builder()
    x, y = b.input(np.float32, (4,)), b.input(np.float32, (4,))
    out = b.output(np.float32, (4,), into=x)
    b.call(kernels["add"], [x, y, out], extent=4)
    plan = b.build()
    a = np.ones(4, np.float32)
    assert plan(a, a + 1)[0] is a
    np.testing.assert_array_equal(a, [3, 3, 3, 3])
    a.flags.writeable = False
    with pytest.raises(ValueError, match="argument 0 is overwritten"):
        plan(a, a)


def test_calls_leak_no_references(kernels):
    plan = add_plan(kernels, 4)
    x = np.ones(4, np.float32)
    dtype = plan.outputs[0].dtype
    before = sys.getrefcount(x), sys.getrefcount(None), sys.getrefcount(dtype)
    for _ in range(1000):
        plan.run(x, x)
        plan.run(x, None)
    after = sys.getrefcount(x), sys.getrefcount(None), sys.getrefcount(dtype)
    assert np.abs(np.subtract(after, before)).max() < 100


def test_a_loop_swaps_its_carry(kernels):
    for trips in range(4):
        b = Builder()
        x, y = b.input(np.float32, (3,)), b.output(np.float32, (3,))
        b.call(kernels["double"], [x, b.arena(0)], extent=3)
        loop = b.loop(trips=trips)
        now, then = loop.carry(b.arena(0), b.arena(64))
        with loop.body:
            b.call(kernels["double"], [now, then], extent=3)
        b.call(kernels["negate"], [now, y], extent=3)
        plan = b.build(arena_bytes=128)
        x = floats(3)
        for _ in range(2):
            np.testing.assert_array_equal(plan(x)[0], -x * 2 ** (trips + 1))


def test_a_loop_slides_over_rows_and_counts(kernels):
    b = Builder()
    x, y = b.input(np.float32, (5, 2)), b.output(np.float32, (5, 2))
    count = b.output(np.int64, ())
    loop = b.loop(trips=5, counter=b.arena(0))
    row, out = loop.slide(x.at(32), -8), loop.slide(y, 8)
    with loop.body:
        b.call(kernels["double"], [row, out], extent=2)
    b.call(kernels["increment"], [b.arena(0), count], extent=1)
    x = floats(5, 2)
    reversed_rows, n = b.build(arena_bytes=64)(x)
    np.testing.assert_array_equal(reversed_rows, 2 * x[::-1])
    assert n == 5


def while_plan(kernels, limit):
    """n = 0; x doubled while n < limit; gives x."""
    b = Builder()
    x, y = b.input(np.float32, (2,)), b.output(np.float32, (2,))
    zero = b.constant(np.array(-1))
    b.call(kernels["increment"], [zero, b.arena(0)], extent=1)
    b.call(kernels["negate"], [x, b.arena(128)], extent=2)
    loop = b.loop(predicate=b.arena(256))
    n, n_next = loop.carry(b.arena(0), b.arena(64))
    now, then = loop.carry(b.arena(128), b.arena(192))
    with loop.test:
        b.call(kernels["below"], [n, b.arena(256), limit], extent=1)
    with loop.body:
        b.call(kernels["increment"], [n, n_next], extent=1)
        b.call(kernels["double"], [now, then], extent=2)
    b.call(kernels["negate"], [now, y], extent=2)
    return b.build(arena_bytes=320)


@pytest.mark.parametrize("limit", [0, 1, 2, 7])
def test_a_loop_runs_while_its_predicate_holds(kernels, limit):
    x = floats(2)
    np.testing.assert_array_equal(while_plan(kernels, limit)(x)[0], x * 2**limit)


def test_loops_nest(kernels):
    b = Builder()
    x, y = b.input(np.float32, (2,)), b.output(np.float32, (2,))
    b.call(kernels["negate"], [x, b.arena(0)], extent=2)
    outer = b.loop(trips=3)
    now, then = outer.carry(b.arena(0), b.arena(64))
    with outer.body:
        b.call(kernels["double"], [now, b.arena(128)], extent=2)
        inner = b.loop(trips=2)
        inner_now, inner_then = inner.carry(b.arena(128), b.arena(192))
        with inner.body:
            b.call(kernels["double"], [inner_now, inner_then], extent=2)
        b.call(kernels["negate"], [inner_now, then], extent=2)
    b.call(kernels["double"], [now, y], extent=2)
    x = floats(2)
    np.testing.assert_array_equal(b.build(arena_bytes=256)(x)[0], 2 * 8**3 * x)


@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.int64])
def test_a_branch_runs_the_chosen_block(kernels, dtype):
    b = Builder()
    which = b.input(dtype, ())
    x, y = b.input(np.float32, (3,)), b.output(np.float32, (3,))
    blocks = []
    for name in ("negate", "double"):
        with b.block() as block:
            b.call(kernels[name], [x, y], extent=3)
        blocks.append(block)
    b.branch(which, blocks, width=np.dtype(dtype).itemsize)
    plan = b.build()
    x = floats(3)
    np.testing.assert_array_equal(plan(np.array(0, dtype), x)[0], -x)
    np.testing.assert_array_equal(plan(np.array(1, dtype), x)[0], 2 * x)
    if dtype != np.bool_:
        np.testing.assert_array_equal(plan(np.array(99, dtype), x)[0], 2 * x)
        np.testing.assert_array_equal(plan(np.array(-1, dtype), x)[0], -x)


def test_a_branch_inside_a_loop_follows_the_carry(kernels):
    b = Builder()
    which, x = b.input(np.bool_, (4,)), b.input(np.float32, (1,))
    y = b.output(np.float32, (1,))
    b.call(kernels["negate"], [x, b.arena(0)], extent=1)
    loop = b.loop(trips=4)
    now, then = loop.carry(b.arena(0), b.arena(64))
    flag = loop.slide(which, 1)
    with loop.body:
        with b.block() as no:
            b.call(kernels["negate"], [now, then], extent=1)
        with b.block() as yes:
            b.call(kernels["double"], [now, then], extent=1)
        b.branch(flag, [no, yes])
    b.call(kernels["negate"], [now, y], extent=1)
    flags = np.array([True, False, True, True])
    np.testing.assert_array_equal(b.build(arena_bytes=128)(flags, np.ones(1, np.float32))[0], [-8])


def test_a_loop_must_end(kernels):
    with pytest.raises(ValueError, match="pass trips or a predicate"):
        Builder().loop()


@pytest.mark.parametrize("arena_bytes", [128, 1 << 20])
def test_many_threads_may_call_one_plan(kernels, arena_bytes):
    n = 1000
    b = Builder()
    x, y = b.input(np.float32, (n,)), b.output(np.float32, (n,))
    t = b.arena(arena_bytes - 4 * n if arena_bytes > 4 * n else 0)
    b.call(kernels["double"], [x, t], extent=n, cost=100)
    b.call(kernels["double"], [t, y], extent=n, cost=100)
    plan = b.build(arena_bytes=max(arena_bytes, 4 * n))
    wrong = []

    def work(seed):
        x = np.random.default_rng(seed).standard_normal(n).astype(np.float32)
        for _ in range(200):
            if not np.array_equal(plan(x)[0], 4 * x):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_a_profile_counts_runs_and_time(kernels):
    b = Builder()
    x, y = b.input(np.float32, (100,)), b.output(np.float32, (100,))
    b.call(kernels["double"], [x, b.arena(0)], extent=100, label="first")
    loop = b.loop(trips=3)
    with loop.body:
        b.call(kernels["double"], [b.arena(0), y], extent=100)
    plan = b.build(arena_bytes=400)
    assert plan.timings() == []
    plan.profile()
    for _ in range(5):
        plan(floats(100))
    plan.profile(False)
    plan(floats(100))
    counts = {label: count for label, count, _ in plan.timings()}
    assert counts == {"first": 5, "loop": 5, "double": 15}
    assert all(ns > 0 for _, _, ns in plan.timings())


def test_chunks_follow_from_size_and_cost():
    assert chunk_length(100, 1.0) == 100
    for extent, cost in [(10**5, 1.0), (10**6, 0.3), (10**9, 1.0), (7, 10**7), (333, 10_000)]:
        length = chunk_length(extent, cost)
        assert 1 <= length <= extent
        assert length * cost <= 1_000_000 + cost
        assert chunk_length(extent, cost, step=16) % 16 == 0 or extent < 16


@pytest.mark.parametrize("n", [1, 4096, 100_001])
def test_reductions_by_chunk_are_bitwise_equal_for_any_number_of_threads(kernels, threads, n):
    grain = 1024
    chunks = -(-n // grain)
    b = Builder()
    x, y = b.input(np.float32, (n,)), b.output(np.float32, (chunks,))
    b.call(kernels["partial_sums"], [x, y, grain], extent=n, cost=1.0, grain=grain)
    plan = b.build()
    x = floats(n)
    results = []
    for count in (1, 2, 4):
        threads(count)
        results += [plan(x)[0].tobytes() for _ in range(10)]
    assert len(set(results)) == 1
    wanted = [part.sum(dtype=np.float64) for part in np.split(x, range(grain, n, grain))]
    np.testing.assert_allclose(np.frombuffer(results[0], np.float32), wanted, rtol=1e-4, atol=1e-4)


def test_only_arrays_that_do_not_fit_are_copied():
    """One strided argument of many once had all of them copied."""
    wanted = Input(Cell(), np.dtype("float32"), (3, 4), False)
    plain = np.ones((3, 4), np.float32)
    assert _convert(0, wanted, plain) is plain
    strided = np.ones((4, 3), np.float32).T
    fitted = _convert(0, wanted, strided)
    assert fitted.flags.c_contiguous and not np.shares_memory(fitted, strided)
    np.testing.assert_array_equal(fitted, strided)
