"""LUCID_VERIFY=1: a wrong first result of a compiled program is an error, and rounding is not."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.compiler.compile import compile_graph
from lucid.compiler.plan import verified
from lucid.compiler.plan.executable import Executable
from lucid.errors import MiscompiledError
from lucid.ir import parse


@pytest.fixture
def wrong(monkeypatch):
    """`wrong(change)` lets `change` spoil what compiled programs give."""
    monkeypatch.setenv("LUCID_VERIFY", "1")
    monkeypatch.setattr(verified, "_verified", set())
    run = Executable.__call__

    def spoil(change):
        monkeypatch.setattr(Executable, "__call__", lambda self, xs: change(run(self, xs)))

    return spoil


def doubled(outputs):
    return [y * 2 if y.dtype.kind in "fc" else y for y in outputs]


def test_a_wrong_result_of_jit_is_reported_with_the_program(wrong):
    f = lucid.jit(lambda x: lucid.sin(x) + 1.0)
    x = lucid.tensor([0.5, 2.0])
    wrong(doubled)
    with pytest.raises(MiscompiledError, match=r"output 0 at 2 of 2 elements, first at \[0\]") as e:
        f(x)
    assert "sin x" in str(e.value) and "test_verified.py" in str(e.value)


def test_a_wrong_result_is_reported_where_there_are_guards(wrong):
    f = lucid.jit(lambda x: x * 2 if x.sum() > 0 else x)
    x = lucid.tensor([0.5, 2.0])
    wrong(doubled)
    with pytest.raises(MiscompiledError):
        f(x)


def test_integers_are_compared_exactly(wrong):
    f = lucid.jit(lambda x: x * 3)
    x = lucid.tensor([1 << 40, 7])
    wrong(lambda outputs: [y + 1 for y in outputs])
    with pytest.raises(MiscompiledError, match="3298534883329, not 3298534883328"):
        f(x)


def test_wrong_results_of_hot_derivatives_are_reported(wrong, monkeypatch):
    from lucid.tape.tiering import Tiering

    monkeypatch.setattr(Tiering, "threshold", 2)
    gradient = lucid.func.grad(lambda x: (lucid.sin(x) * lucid.cos(x * 1.25)).sum())
    x = lucid.tensor([0.5, 2.0])
    gradient(x)
    wrong(doubled)
    with pytest.raises(MiscompiledError):
        gradient(x)


def test_rounding_is_no_error():
    """A sum near zero, an argmax of nearly equal numbers, a comparison with a sum's own value."""

    def f(x):
        total = (lucid.exp(x) - lucid.exp(x).mean()).sum()
        return total, lucid.exp(x).sum(0).argmax(), total > 0.0, lucid.floor(total * 1e6)

    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 4)).astype("float32")
    x = np.concatenate([x, x[::-1]], 1)
    jitted = lucid.jit(f)
    for _ in range(3):
        jitted(x)


def test_a_program_that_overwrites_its_inputs_is_compared_on_copies(wrong):
    x = lucid.arange(4.0)

    @lucid.jit
    def step():
        x.mul_(2.0)

    for k in range(1, 4):
        step()
        assert x.tolist() == [0.0, 2.0**k, 2.0 * 2**k, 3.0 * 2**k]


def test_equal_programs_are_compared_once(monkeypatch):
    monkeypatch.setenv("LUCID_VERIFY", "1")
    graph = parse("graph f(x: f64[5]):\n    %0: f64[5] = cosh x\n    return %0")
    x = np.linspace(0, 1, 5)
    first = compile_graph(graph)
    assert not first.is_verified
    np.testing.assert_allclose(first([x])[0], np.cosh(x))
    assert first.is_verified and compile_graph(graph).is_verified
    assert not compile_graph(graph, {0: 0}).is_verified


def test_nothing_is_compared_without_being_asked(monkeypatch):
    monkeypatch.setenv("LUCID_VERIFY", "0")
    graph = parse("graph f(x: f64[6]):\n    %0: f64[6] = sinh x\n    return %0")
    assert compile_graph(graph).is_verified
