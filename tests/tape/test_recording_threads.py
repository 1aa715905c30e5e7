"""Recordings of several threads, and recordings that end early, leave shared tensors usable."""

from __future__ import annotations

import sys
import threading

import pytest

import lucid
from lucid.tape.modes import current
from lucid.tape.node import active_recorders


@pytest.fixture
def fast_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def test_threads_that_record_writes_to_one_tensor_and_draws(fast_switches):
    w, errors = lucid.zeros(3), []

    def work():
        try:
            for k in range(8):
                f = lucid.jit(lambda x, k=k: w.add_(lucid.rand(3) * 0 + x * float(k)))
                f(lucid.ones(3))  # each function records once
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert w.numpy().tolist() == [4.0 * sum(range(8))] * 3
    assert not active_recorders


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_an_exception_in_a_recording_leaves_what_an_eager_run_leaves(error):
    w = lucid.zeros(3)
    p = lucid.ones(3, requires_grad=True)
    p.register_hook(lambda g: trouble())
    fails = [True]

    def trouble():
        if fails:
            raise error

    @lucid.jit
    def step(x):
        w.add_(x)
        lucid.rand(2)
        (p * w).sum().backward()
        with lucid.no_grad():
            p.sub_(p.grad)

    with pytest.raises(error):
        step(lucid.ones(3))
    assert current().no_observers and not active_recorders
    assert w.numpy().tolist() == [1.0] * 3, "written before the exception"
    fails.clear()
    for k in range(2, 5):
        p.grad = None
        before = p.detach().numpy().copy()
        step(lucid.ones(3))
        assert w.numpy().tolist() == [float(k)] * 3
        assert p.grad.tolist() == [float(k)] * 3
        assert (p.detach().numpy() == before - k).all()


def test_an_interrupt_while_a_step_compiles_leaves_nothing_of_the_step(monkeypatch):
    from lucid.compiler.jit import path

    w, compile_hot = lucid.zeros(3), path.compile_hot

    def interrupted(*_):
        assert not active_recorders, "the recording is over"
        assert w.numpy().tolist() == [0.0] * 3
        raise KeyboardInterrupt

    step = lucid.jit(lambda x: w.add_(x + lucid.rand(3) * 0) * 2)
    monkeypatch.setattr(path, "compile_hot", interrupted)
    with pytest.raises(KeyboardInterrupt):
        step(lucid.ones(3))
    monkeypatch.setattr(path, "compile_hot", compile_hot)
    assert w.numpy().tolist() == [0.0] * 3
    for k in range(1, 4):
        assert step(lucid.ones(3)).tolist() == [2.0 * k] * 3
        assert w.numpy().tolist() == [float(k)] * 3


class Interrupting:
    """A key whose comparison is interrupted once."""

    left = 1

    def __hash__(self):
        return 7

    def __eq__(self, other):
        if Interrupting.left:
            Interrupting.left -= 1
            raise KeyboardInterrupt
        return self is other


def test_an_interrupt_in_the_comparison_of_keys_leaves_the_cache_of_derivatives_usable():
    from lucid.transforms.prepare import _prepared

    before = dict(_prepared)
    Interrupting.left, first, second = 0, Interrupting(), Interrupting()
    try:
        _prepared[first] = None
        Interrupting.left = 1
        with pytest.raises(KeyboardInterrupt):
            _prepared[second] = None
        _prepared[second] = _prepared.pop(first)
        assert len(list(_prepared.values())) == len(before) + 1
    finally:
        _prepared.clear()
        _prepared.update(before)


WRITES = {
    "compiled": lambda x: lucid.jit(lambda y: x.add_(y))(lucid.full((3,), 10.0)),
    "eager": lambda x: x.add_(10.0),
    "detached": lambda x: x.data.fill_(10.0),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_of_another_thread_waits_for_the_recording_of_a_write(write):
    w, errors = lucid.zeros(3), []
    inside, outside = threading.Event(), threading.Event()

    def work():
        inside.wait(10)
        outside.set()
        try:
            write(w)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()

    @lucid.jit
    def f(x):
        w.add_(x)
        inside.set()
        outside.wait(10)
        thread.join(0.1)  # it waits until this is recorded, and cannot end
        return w * 1.0

    f(lucid.ones(3))
    thread.join(30)
    assert errors == [] and not thread.is_alive()
    assert w[0].item() in (1.0, 10.0, 11.0), "the last write, or both"
    assert w.fill_(2.0).add_(1.0).tolist() == [3.0] * 3
    assert f(lucid.ones(3)).tolist() == [4.0] * 3
