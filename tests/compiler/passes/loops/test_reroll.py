"""reroll, text in and text out: a sequence of equal steps becomes one Scan."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.compiler.passes import loops
from lucid.compiler.passes.loops import reroll as rerolling
from lucid.compiler.passes.loops.reroll import reroll
from lucid.ir import Type, parse, trace, verify


@pytest.fixture(autouse=True)
def short_loops_count(monkeypatch):
    monkeypatch.setattr(loops, "MIN_EQUATIONS", 8)
    monkeypatch.setattr(rerolling, "MIN_STEPS", 4)


def rerolled(f, *types):
    """The Graph of `f` before and after; both give the same values."""
    graph = trace(f)(*[Type.parse(t) for t in types]).stripped()
    out = verify(reroll(graph))
    rng = np.random.default_rng(0)
    xs = [rng.standard_normal(x.type.shape).astype(x.type.dtype) for x in graph.inputs]
    for a, b in zip(lucid.ir.evaluate(graph, *xs), lucid.ir.evaluate(out, *xs), strict=True):
        np.testing.assert_array_equal(a, b)
    return out


def scans(graph):
    return [eqn for eqn in graph.equations if eqn.op.name == "scan"]


def test_equal_steps_are_a_scan_over_slices():
    def f(h, w, xs):
        for t in range(4):
            h = lucid.tanh(h @ w + xs[t])
        return h

    assert (
        str(rerolled(f, "f32[3]", "f32[3,3]", "f32[4,3]"))
        == """graph f(h: f32[3], w: f32[3,3], xs: f32[4,3]):
    %0: f32[3] = scan[body=@0, n_consts=1, n_carry=1, length=4, reverse=False] w h xs
    return %0
graph @0(w: f32[3,3], x1: f32[3], x2: f32[3]):
    %0: f32[3] = matmul x1 w
    %1: f32[3] = add %0 x2
    %2: f32[3] = tanh %1
    return %2"""
    )


def test_a_program_that_does_not_repeat_is_left_alone():
    def f(x):
        for op in (lucid.sin, lucid.cos, lucid.tanh, lucid.exp) * 2:
            x = op(x) * x
            x = x if op is lucid.cos else x + 1.0
        return x

    graph = trace(f)(Type.parse("f32[3]"))
    assert scans(reroll(graph)) == []


def test_numbers_that_change_from_step_to_step_are_an_array():
    def f(x):
        for t in range(6):
            x = lucid.sin(x) * (0.1 * t + 1) + 0.1 * (t % 2)
        return x

    (scan,) = scans(rerolled(f, "f32[3]"))
    assert [x.type.shape for x in scan.inputs] == [(3,), (6,), (6,)]


def test_exponents_that_change_from_step_to_step_are_left_alone():
    def f(x):
        for t in range(6):
            x = lucid.sin(x) ** float(t + 1)
        return x

    graph = trace(f)(Type.parse("f32[3]"))
    assert reroll(graph) is graph


def test_short_graphs_are_left_alone(monkeypatch):
    monkeypatch.setattr(loops, "MIN_EQUATIONS", 100)
    graph = parse("""graph f(x: f32[3]):
    %0: f32[3] = sin x
    %1: f32[3] = sin %0
    %2: f32[3] = sin %1
    %3: f32[3] = sin %2
    return %3""")
    assert reroll(graph) is graph


def test_a_value_of_two_steps_before_is_a_chain_of_carries():
    def fibonacci(a, b):
        for _ in range(8):
            a, b = b, lucid.sin(a) + b * 2.0
        return b

    (eqn,) = scans(rerolled(fibonacci, "f32[2]", "f32[2]"))
    assert eqn.op.n_carry == 3


def test_values_of_all_steps_are_stacked_and_joined():
    def f(h, xs):
        out = []
        for t in range(6):
            h = lucid.tanh(h * 2.0 + xs[t])
            out.append(h)
        return lucid.stack(out), lucid.cat(out, 0), lucid.stack(out, 1), out[2]

    graph = rerolled(f, "f32[3]", "f32[6,3]")
    assert len(scans(graph)) == 1
    assert not any(eqn.op.name == "concatenate" for eqn in graph.equations)


def test_steps_may_go_backward_through_any_axis():
    def f(h, xs):
        for t in reversed(range(6)):
            h = lucid.tanh(h * 2.0 + xs[:, t]) + xs[:, t : t + 1].reshape(3)
        return h

    (eqn,) = scans(rerolled(f, "f32[3]", "f32[3,6]"))
    assert eqn.op.length == 6


def test_layers_of_loops_read_each_other_step_by_step():
    def f(h, xs):
        layer = [xs[t] for t in range(6)]
        for _ in range(3):
            state, out = h, []
            for x in layer:
                state = lucid.tanh(state * 2.0 + x)
                out.append(state)
            layer = out
        return state

    assert len(scans(rerolled(f, "f32[3]", "f32[6,3]"))) == 3


def test_equations_around_a_loop_that_look_like_a_step_stay_outside():
    def f(h, w, z):
        h = lucid.tanh(z) * w
        for _ in range(6):
            h = lucid.tanh(h) * w
        return lucid.tanh(h) * z

    assert len(scans(rerolled(f, "f32[3]", "f32[3]", "f32[3]"))) == 1


def test_windows_that_overlap_are_left_alone():
    def f(h, xs):
        for t in range(6):
            h = lucid.tanh(h * 2.0 + xs[t : t + 3])
        return h

    graph = trace(f)(Type.parse("f32[3]"), Type.parse("f32[9]"))
    assert reroll(graph) is graph
