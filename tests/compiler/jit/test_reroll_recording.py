"""A jitted function with a long Python loop is compiled as a loop: as quick code, same values."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.compiler.passes import loops
from lucid.compiler.passes.loops import reroll as rerolling

STEPS = 12


@pytest.fixture(autouse=True)
def short_loops_count(monkeypatch):
    monkeypatch.setattr(loops, "MIN_EQUATIONS", 20)
    monkeypatch.setattr(rerolling, "MIN_STEPS", 6)


def data(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def leaves(x):
    return [y.detach().numpy() for y in (x if isinstance(x, tuple) else (x,))]


def compare(f, *shapes, scans=None, rtol=2e-5):
    """Three calls of the jitted function with other values give what the function gives."""
    jitted = lucid.jit(f)
    for seed in range(3):
        args = [lucid.tensor(data(10 * seed + i, *shape)) for i, shape in enumerate(shapes)]
        for x, y in zip(leaves(f(*args)), leaves(jitted(*args)), strict=True):
            np.testing.assert_allclose(y, x, rtol=rtol, atol=1e-6)
    if scans is not None:
        names = [eqn.op.name for eqn in jitted.graph(*args, stage="sunk").equations]
        assert names.count("scan") == scans, names


def recurrent(h, w, xs):
    for t in range(STEPS):
        h = lucid.tanh(h @ w + xs[t])
    return h


def new_leaf():
    return lucid.tensor(data(99, 3), requires_grad=True)


SHAPES = (2, 3), (3, 3), (STEPS, 2, 3)


def test_a_loop_without_derivative_is_one_scan():
    compare(recurrent, *SHAPES, scans=1)


def test_its_gradient_is_a_scan_forward_and_one_backward():
    loss = lambda h, w, xs: (recurrent(h, w, xs) ** 2).sum()  # noqa: E731
    compare(lucid.func.grad(loss, argnums=(0, 1, 2)), *SHAPES, scans=2)


def test_second_derivatives_of_a_loop():
    def f(h, w, xs):
        inner = lucid.func.grad(lambda v: recurrent(h, v, xs).sum())
        return lucid.func.grad(lambda v: (inner(v) ** 2).sum())(w)

    compare(f, *SHAPES, rtol=2e-4)


def test_backward_of_a_module_in_a_loop():
    lucid.manual_seed(0)
    cell = nn.LSTMCell(3, 4)

    def f(xs):
        cell.zero_grad()
        h = c = lucid.zeros(2, 4)
        kept = []
        for t in range(STEPS):
            h, c = cell(xs[t], (h, c))
            kept.append(h)
        loss = (lucid.stack(kept) ** 2).mean() + c.sum()
        loss.backward()
        return (loss, h, kept[2], *[p.grad for p in cell.parameters()])

    compare(f, (STEPS, 2, 3), scans=2)


def test_values_that_stay_alive_have_their_gradients_and_values():
    leaf = new_leaf()

    def f(w, x):
        states = [x]
        for _ in range(STEPS):
            states.append(lucid.sin(states[-1] * w * leaf) + 0.1)
        last, early = states[-1], states[3]
        (first,) = lucid.autograd.grad([last.sum()], [leaf], retain_graph=True)
        (second,) = lucid.autograd.grad([(last * early).sum()], [leaf])
        return first, second, early

    compare(f, (3,), (3,))


def test_what_is_detached_in_a_loop_gets_no_gradient():
    def f(w, x):
        def loss(v):
            h = x
            for _ in range(STEPS):
                with lucid.no_grad():
                    scale = (h * v).abs() + 1.0
                h = lucid.sin(h * v) / scale + (h * v).detach()
            return h.sum()

        return lucid.func.grad(loss)(w)

    compare(f, (3,), (3,))


def test_a_value_that_python_reads_in_the_loop_is_a_guard():
    def f(w, x):
        h, total = x, 0
        for _ in range(STEPS):
            h = lucid.tanh(h * w) + 0.5 * h
            total += int(h.sum().item() > 0)
        return lucid.func.grad(lambda v: (h * v).sum())(w) + total

    compare(f, (3,), (3,))


def test_hooks_and_retained_gradients_in_a_loop_are_called():
    leaf = new_leaf()

    def f(w, x):
        leaf.grad, h = None, x
        for t in range(STEPS):
            h = lucid.sin(h * w * leaf) * 2.0
            if t == 4:
                h.retain_grad()
                kept = h
            if t == 6:
                h.register_hook(lambda g: g * 3.0)
        h.sum().backward()
        return leaf.grad, kept.grad

    compare(f, (3,), (3,))


def test_writes_in_a_loop_are_done():
    state = lucid.zeros(3)

    def f(w, x):
        state.zero_()
        h = x
        for _ in range(STEPS):
            h = lucid.sin(h * w) * 2.0
            state.add_(h)
        return lucid.func.grad(lambda v: (h * v).sum())(w), state * 1.0

    compare(f, (3,), (3,))


def test_random_numbers_in_a_loop_are_drawn_one_by_one():
    def f(x):
        for _ in range(STEPS):
            x = lucid.sin(x + lucid.rand(3)) * 2.0
        return x

    jitted = lucid.jit(f)
    for seed in range(3):
        x = lucid.tensor(data(seed, 3))
        lucid.manual_seed(seed)
        expected = f(x).numpy()
        lucid.manual_seed(seed)
        np.testing.assert_allclose(jitted(x).numpy(), expected, rtol=1e-5)


def test_views_of_a_value_in_the_loop_that_stay_alive():
    leaf = new_leaf()

    def f(w, xs):
        leaf.grad, h, heads = None, xs[0], []
        for t in range(STEPS):
            h = lucid.tanh(h * w * leaf + xs[t])
            heads.append(h[:1])
        (h.sum() + sum(heads).sum()).backward()
        return (leaf.grad, *heads[:2])

    compare(f, (3,), (STEPS, 3))


def test_an_error_in_a_function_after_its_loop_leaves_values_behind():
    kept = []

    @lucid.jit
    def f(w):
        h = w
        for _ in range(STEPS):
            h = lucid.sin(h) * 2.0
        kept.append(h)
        lucid.func.grad(lambda v: (v * h).sum())(w)
        raise ValueError("after the loop")

    w = lucid.tensor(data(0, 3))
    with pytest.raises(ValueError, match="after the loop"):
        f(w)
    expected = w.numpy()
    for _ in range(STEPS):
        expected = np.sin(expected) * 2
    np.testing.assert_allclose(kept[0].numpy(), expected, rtol=1e-5)


def test_equations_do_not_grow_with_the_steps(monkeypatch):
    monkeypatch.undo()

    def loss(w, x):
        for _ in range(700):
            x = lucid.tanh(x @ w) + 0.1
        return x.sum()

    step = lucid.jit(lucid.func.grad(loss))
    graph = step.graph(lucid.tensor(data(0, 3, 3)), lucid.tensor(data(1, 3)))
    assert len(graph.equations) < 20
