"""Memory of large results: freed blocks serve later results, and never one that is still seen."""

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name

import lucid
from lucid.compiler.runtime import results

N = (40 << 20) // 4  # elements of float32 in 40 MB
ROOT = Path(lucid.__file__).parent.parent
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@lucid.jit
def add(x, y):
    return x + y


@pytest.fixture(autouse=True)
def _nothing_kept():
    lucid.clear_caches()
    yield
    lucid.clear_caches()


def large(value):
    return add(lucid.full((N,), float(value)), lucid.tensor(1.0))


def address(x):
    return x.numpy().__array_interface__["data"][0]


def test_a_freed_result_serves_the_next_one_of_its_size():
    x, one = lucid.ones(N), lucid.tensor(1.0)
    first = address(add(x, one))
    for value in (2.0, 3.0, 4.0):
        y = add(x, lucid.tensor(value))
        assert address(y) == first
        assert y[0].item() == y[-1].item() == 1.0 + value
        del y


def test_calls_with_large_results_cause_no_page_faults():
    x, one = lucid.ones(N), lucid.tensor(1.0)
    for _ in range(3):
        add(x, one)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        add(x, one)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert faults < 100, "568 for each call, if the pages were new"


def test_a_live_result_keeps_its_memory():
    held = [large(i) for i in range(4)]
    assert len({address(y) for y in held}) == 4
    assert [y[7].item() for y in held] == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    "see",
    [
        lambda a: a[5:9],
        lambda a: a.reshape(-1, 4).T[1],
        lambda a: memoryview(a)[5:9],
        lambda a: np.frombuffer(memoryview(a), np.float32)[5:9],
        lambda a: np.from_dlpack(a)[5:9],
        lambda a: lucid.from_numpy(a)[5:9].numpy(),
    ],
    ids=["view", "view of a view", "memoryview", "buffer", "dlpack", "tensor"],
)
def test_memory_that_something_sees_is_not_reused(see):
    seen = see(large(1.0).numpy())
    for value in (5.0, 6.0):
        assert large(value)[0].item() == value + 1.0
    assert set(np.asarray(seen).ravel().tolist()) == {2.0}


def test_a_dlpack_capsule_keeps_the_memory():
    capsule = large(1.0).numpy().__dlpack__()
    assert large(5.0)[0].item() == 6.0

    class Carrier:
        def __dlpack__(self, **_):
            return capsule

        def __dlpack_device__(self):
            return (1, 0)

    assert np.from_dlpack(Carrier())[3] == 2.0


def test_the_array_owns_its_memory_and_can_be_resized():
    a = large(1.0).detach().numpy().copy()
    b = results.empty((N,), np.float32)
    assert b.base is None and b.flags.owndata and get_handler_name(b) == "lucid"
    b[:] = a
    b.resize(N + 100, refcheck=False)
    assert (b[:N] == 2.0).all() and (b[N:] == 0.0).all()
    b.resize(10, refcheck=False)
    assert b.tolist() == [2.0] * 10


def test_arrays_of_the_user_come_from_the_handler_they_had():
    large(1.0)
    assert get_handler_name(np.empty(N, np.float32)) == "default_allocator"
    assert get_handler_name(results.empty((10,), np.float32)) == "default_allocator"
    np.asarray(results.empty((N,), np.float32))
    assert get_handler_name() == "default_allocator"


def test_smaller_blocks_may_be_asked_for_and_begin_at_a_huge_page():
    large(1.0)
    made = [results.empty((1 << 20,), np.float32, results.MAPPED_FROM) for _ in range(2)]
    addresses = [a.__array_interface__["data"][0] for a in made]
    assert [a % results.HUGE_PAGE for a in addresses] == [0, 0]
    del made
    again = results.empty((1024, 1024), np.float32, results.MAPPED_FROM)
    assert again.__array_interface__["data"][0] in addresses
    assert get_handler_name(results.empty((255, 1024), "f4", results.MAPPED_FROM)) != "lucid"


def test_threads_get_memory_of_their_own():
    failures = []

    def work(number):
        for i in range(6):
            y = large(number * 100 + i).numpy()
            if not (y == number * 100 + i + 1).all():
                failures.append((number, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def megabytes(body, **environment):
    """The numbers that a program prints; resident() is what it holds of 40 MB results, in MB."""
    head = f"""
import gc, os
import numpy as np, lucid
add = lucid.jit(lambda x, y: x + y)
def large(n={N}):
    return add(lucid.ones(n), lucid.tensor(1.0))
def now():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
large(), large({N} + 1024), lucid.ones({N})
lucid.clear_caches()
large(); lucid.clear_caches()
start = now()
def resident():
    return now() - start
"""
    run = subprocess.run(
        [sys.executable, "-c", head + body],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    return [int(word) for word in run.stdout.split()]


@linux
def test_what_is_kept_has_a_limit_and_returns_to_the_system():
    held, kept, cleared = megabytes(
        """
held = [large() for _ in range(5)]
print(resident())
del held
print(resident())
lucid.clear_caches()
print(resident())
""",
        LUCID_RESULT_POOL_BYTES=str(90 << 20),
    )
    assert held > 190 and 70 < kept < 110 and cleared < 20


@linux
def test_the_limit_may_be_zero():
    (kept,) = megabytes("large(); print(resident())", LUCID_RESULT_POOL_BYTES="0")
    assert kept < 20


@linux
def test_a_block_that_later_allocations_do_not_use_returns_to_the_system():
    before, after = megabytes(
        f"""
large(); print(resident())
for _ in range(20):
    large({N} + 1024)
print(resident())
"""
    )
    assert 30 < before < 60 and 30 < after < 60


@linux
def test_a_fork_returns_what_is_kept_and_both_sides_go_on():
    kept, child, parent = megabytes(
        """
mine = large()
large(); print(resident(), flush=True)
pid = os.fork()
if pid == 0:
    assert large()[3].item() == 2.0 and mine[3].item() == 2.0
    lucid.clear_caches()
    print(resident(), flush=True)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print(resident())
assert large()[3].item() == 2.0 and mine[3].item() == 2.0
"""
    )
    assert kept > 70 and child < 60 and parent < 60


@linux
def test_the_memory_of_large_intermediate_values_is_asked_to_have_huge_pages():
    before, after = megabytes(
        """
def advised():
    found = size = 0
    for line in open("/proc/self/smaps"):
        if line.startswith("Size:"):
            size = int(line.split()[1]) << 10
        found += size * (line.startswith("VmFlags:") and "hg" in line.split())
    return found >> 20
rows, columns, w = lucid.ones(20_000), lucid.ones(500), lucid.ones(500, 2)
product = lucid.jit(lambda a, b, w: ((a[:, None] * b) @ w).sum())
print(advised())
assert product(rows, columns, w).item() == 2e7
print(advised())
"""
    )
    is_possible = results.constants()["MADV_HUGEPAGE"] >= 0  # NumPy's own switch
    assert (after - before >= 30) == is_possible  # of 38 that the product of the two takes
