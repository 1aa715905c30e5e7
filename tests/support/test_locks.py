"""Locks after a fork: a child can use all of them, whatever other threads did at that moment."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

import lucid
from lucid.support import locks
from lucid.support.locks import Locks, after_recording, fork_waits, new_lock, state_lock
from lucid.tape.node import active_recorders


def child(run) -> int:
    """Return the exit code of a forked process: 0 if `run` returns True, 9 if it hangs."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if run() else 1)
        finally:
            os._exit(2)
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return 9


@pytest.fixture
def elsewhere():
    """Run a function in another thread until it has called `here()`; it goes on at the end."""
    here, go_on = threading.Event(), threading.Event()
    threads = []

    def start(function):
        def stay():
            here.set()
            go_on.wait(30)

        thread = threading.Thread(target=function, args=(stay,))
        threads.append(thread)
        thread.start()
        assert here.wait(30)

    yield start
    go_on.set()
    for thread in threads:
        thread.join(30)


def test_a_lock_of_another_thread_is_free_in_a_child(elsewhere):
    lock = new_lock()

    def hold(stay):
        with lock:
            stay()

    elsewhere(hold)
    assert child(lambda: lock.acquire(timeout=10)) == 0
    assert not lock.acquire(blocking=False), "it is still held here"


def test_a_lock_of_the_forking_thread_is_held_in_a_child():
    lock = new_lock()
    with lock:
        assert child(lambda: lock._is_owned()) == 0


def test_a_fork_waits_for_the_blocks_of_other_threads():
    here, ended = threading.Event(), []

    def block():
        with fork_waits(), fork_waits():
            here.set()
            time.sleep(0.3)
            ended.append(True)

    thread = threading.Thread(target=block)
    thread.start()
    assert here.wait(30)
    assert child(lambda: bool(ended)) == 0
    thread.join()


def test_a_fork_in_a_new_thread_waits_for_the_blocks_of_others():
    here, ended, found = threading.Event(), [], []

    def block():
        with fork_waits():
            here.set()
            time.sleep(0.3)
            ended.append(True)

    threads = [threading.Thread(target=block)]
    threads[0].start()
    assert here.wait(30)
    threads.append(threading.Thread(target=lambda: found.append(child(lambda: bool(ended)))))
    threads[1].start()
    for thread in threads:
        thread.join()
    assert found == [0]


def test_a_fork_that_waits_comes_before_the_next_block_of_a_thread():
    first, again, go_on = [threading.Event() for _ in range(3)]

    def blocks():
        with fork_waits():
            first.set()
        assert go_on.wait(30)
        with fork_waits():
            again.set()

    thread = threading.Thread(target=blocks)
    thread.start()
    assert first.wait(30)
    with locks._entrance:  # as a fork holds it
        go_on.set()
        assert not again.wait(0.3)
    assert again.wait(30)
    thread.join()


def test_a_fork_while_another_thread_records_leaves_its_tensors_usable(elsewhere):
    w, g = lucid.zeros(3), lucid.random.Generator(5)
    expected = (lucid.rand(2, generator=lucid.random.Generator(5).manual_seed(5))).tolist()

    def record(stay):
        def step(x):
            w.add_(x)
            g.next_key()
            stay()
            return w * 2

        lucid.jit(step)(lucid.ones(3))

    def use():
        w.mul_(3.0)
        g.manual_seed(5)
        right = w.numpy().tolist() == [0.0] * 3 and not active_recorders  # nothing was written yet
        right &= lucid.rand(2, generator=g).tolist() == expected
        double = lucid.jit(lambda x: w.add_(x) * 2)
        return right and [double(lucid.ones(3)).tolist()[0] for _ in range(2)] == [2.0, 4.0]

    elsewhere(record)
    assert child(use) == 0


LOCKS = Locks([new_lock(), new_lock()])


def compile_something():
    with fork_waits():
        pass


USERS = {
    "Locks": (lambda: LOCKS.run(int), LOCKS.locks),
    "after_recording": (lambda: after_recording(int), [state_lock()]),
    "fork_waits": (compile_something, [fork_waits()]),
}


@pytest.mark.parametrize("name", USERS)
def test_an_interrupt_leaves_no_lock_locked(name):
    """Where a `with` statement calls an `__exit__` in Python, two of five stay locked."""
    use, locks = USERS[name]
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    interrupts = 0
    try:
        for _ in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, 2e-4)
                while True:
                    use()
            except KeyboardInterrupt:
                interrupts += 1
                assert not any(lock._is_owned() for lock in locks)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupts == 300
