"""Work on threads that no interrupt reaches."""

import signal
import threading
import time

import pytest

from lucid.compiler.runtime import codegen, native_kernel
from lucid.support.threads import on_threads
from tests.compiler import texts


def test_results_come_in_the_order_of_the_items():
    assert on_threads(lambda x: x * x, range(20)) == [x * x for x in range(20)]
    assert on_threads(lambda x: x, []) == []


@pytest.mark.parametrize("count", [1, 3])
def test_the_main_thread_calls_nothing_itself(count):
    threads = on_threads(lambda _: threading.current_thread(), range(count))
    assert threading.main_thread() not in threads


def test_another_thread_calls_a_single_item_itself():
    found = []

    def work():
        found.append(on_threads(lambda _: threading.current_thread(), [0])[0])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [thread]


def test_the_first_error_is_raised_and_nothing_more_is_begun():
    begun = []

    def work(i):
        begun.append(i)
        raise ValueError(f"item {i}")

    with pytest.raises(ValueError, match="item"):
        on_threads(work, range(1000))
    assert len(begun) < 1000
    assert not [t for t in threading.enumerate() if t.name.endswith("(work)")]


def test_an_interrupt_waits_for_what_was_begun_and_begins_nothing_more(monkeypatch):
    begun, ended = [], []

    def work(i):
        begun.append(i)
        time.sleep(0.05)
        ended.append(i)

    def stop(*_):
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            on_threads(work, range(1000))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert begun and sorted(ended) == sorted(begun) and len(begun) < 1000


@pytest.mark.parametrize(
    "call",
    [
        lambda: native_kernel.load(["negate"], texts.NEGATE),
        lambda: native_kernel.load_all([native_kernel.Request(("negate",), texts.NEGATE)]),
        lambda: codegen.compile_object(texts.NEGATE),
        lambda: codegen.assembly(texts.NEGATE),
        lambda: codegen.optimized_ir(texts.NEGATE),
    ],
)
def test_llvm_is_not_called_on_the_main_thread(call, monkeypatch):
    """An interrupt would leave its lock locked, or free something of it twice."""
    threads, optimized = [], codegen._optimized

    def noting(*args):
        threads.append(threading.current_thread())
        return optimized(*args)

    monkeypatch.setattr(codegen, "_optimized", noting)
    assert call()
    assert threads and threading.main_thread() not in threads
