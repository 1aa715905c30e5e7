"""saved_tensors_hooks: what the tape keeps for a derivative is packed, and unpacked by backward."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import lucid
from lucid.autograd.graph import (
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from lucid.errors import ArgumentError, DTypeError, GraphError, MutationError, ShapeError


def leaf(*values: float) -> lucid.Tensor:
    return lucid.tensor(list(values), requires_grad=True)


class Log:
    """Hooks that change nothing, and the values they have seen."""

    def __init__(self) -> None:
        self.packed: list[list[float]] = []
        self.unpacked: list[list[float]] = []

    def hooks(self) -> saved_tensors_hooks:
        return saved_tensors_hooks(
            lambda t: (self.packed.append(t.tolist()), t)[1],
            lambda t: (self.unpacked.append(t.tolist()), t)[1],
        )


@pytest.mark.parametrize(
    ("f", "saved"),
    [
        (lambda x, w, c: x * w, [[1.0, 2.0], [3.0, 4.0]]),
        (lambda x, w, c: x * c, [[5.0, 6.0]]),
        (lambda x, w, c: x * x, [[1.0, 2.0], [1.0, 2.0]]),
        (lambda x, w, c: x + w, []),
        (lambda x, w, c: x.cumsum(0), []),
        (lambda x, w, c: (x * 2.0).sqrt(), [[2.0**0.5, 2.0]]),
        (lambda x, w, c: x @ w, [[1.0, 2.0], [3.0, 4.0]]),
    ],
)
def test_exactly_what_a_derivative_reads_is_packed(f, saved):
    x, w, c = leaf(1.0, 2.0), leaf(3.0, 4.0), lucid.tensor([5.0, 6.0])
    f(x, w, c).sum().backward()
    plain = [None if v.grad is None else v.grad.tolist() for v in (x, w)]
    x.grad = w.grad = None
    log = Log()
    with log.hooks():
        y = f(x, w, c)
    assert log.unpacked == []
    y.sum().backward()
    for seen in (log.packed, log.unpacked):
        np.testing.assert_allclose(sorted(seen), saved, rtol=1e-6)
    assert plain == [None if v.grad is None else v.grad.tolist() for v in (x, w)]


def test_what_pack_returns_is_used_by_this_operation_and_by_no_other():
    x = leaf(1.0, 2.0)
    double = saved_tensors_hooks(lambda t: t * 2.0, lambda t: t)
    with double:
        y = (x * x).sum()
        e = x.exp()
    z = (x * x).sum()
    assert lucid.autograd.grad(y, x).tolist() == [4.0, 8.0]
    assert lucid.autograd.grad(z, x).tolist() == [2.0, 4.0]
    np.testing.assert_allclose(  # 2e from the product, which saves e itself, then 2e of exp
        lucid.autograd.grad((e * e).sum(), x), 4.0 * np.exp([2.0, 4.0]), rtol=1e-6
    )


def test_the_innermost_hooks_are_used_and_those_outside_come_back():
    x, outer, inner = leaf(1.0), Log(), Log()
    with outer.hooks():
        with inner.hooks():
            x * x
        x * 3.0 * x
    assert len(inner.packed) == 2 and len(outer.packed) == 2


def test_nothing_keeps_a_value_that_was_packed_away():
    store = {}

    def pack(t):
        store[len(store)] = t.numpy().copy()
        return len(store) - 1

    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(pack, lambda key: lucid.tensor(store[key])):
        middle = x * 2.0
        array = weakref.ref(middle.raw)
        y = (middle * middle).sum()
        del middle
    gc.collect()
    assert array() is None
    y.backward()
    assert x.grad.tolist() == [8.0, 16.0]


def test_hooks_run_at_every_backward_and_at_higher_orders():
    x, log = leaf(1.0, 2.0), Log()
    with log.hooks():
        y = (x**3).sum()
        y.backward(retain_graph=True)
        n = len(log.unpacked)
        y.backward()
        assert n > 0 and len(log.unpacked) == 2 * n
        g = lucid.autograd.grad((x.exp() * x).sum(), x, create_graph=True)
    np.testing.assert_allclose(x.grad, [6.0, 24.0])
    e = np.exp([1.0, 2.0])
    np.testing.assert_allclose(lucid.autograd.grad(g.sum(), x), e * [3.0, 4.0], rtol=1e-6)


def test_results_of_one_operation_and_of_a_function_are_packed():
    class Square(lucid.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * x if float(x.sum()) else x
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * 2.0 * x + 0.0 * y

    x, log = leaf(3.0, 2.0), Log()
    with log.hooks():
        y = Square.apply(x)
        s = lucid.linalg.svd(lucid.diag(x), full_matrices=False)[1]
    y.sum().backward()
    assert sorted(log.packed[:2]) == log.unpacked == [[3.0, 2.0], [9.0, 4.0]]
    assert x.grad.tolist() == [6.0, 4.0]
    n = len(log.unpacked)
    s.sum().backward()
    assert len(log.unpacked) > n
    np.testing.assert_allclose(x.grad, [7.0, 5.0], rtol=1e-6)


def test_a_write_after_packing_is_an_error_only_if_pack_keeps_the_memory():
    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        a = x * 1.0
        b = a * a
        a.mul_(3.0)
    assert lucid.autograd.grad(b.sum(), x).tolist() == [2.0, 4.0]
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        a = x * 1.0
        b = a * a
        a.mul_(3.0)
    with pytest.raises(MutationError, match="changed in place"):
        b.sum().backward()


def test_in_place_operations_pack_the_value_before_the_write():
    x, w, log = leaf(1.0, 2.0), leaf(3.0, 4.0), Log()
    with log.hooks():
        a = x * 1.0
        a.mul_(w)
    a.sum().backward()
    assert x.grad.tolist() == [3.0, 4.0] and w.grad.tolist() == [1.0, 2.0]


def test_hooks_in_a_step_that_repeats_are_called_at_every_step():
    weight = lucid.linspace(0.0, 1.0, 64 * 64).reshape(64, 64).requires_grad_()
    x = lucid.linspace(-1.0, 1.0, 64)
    grads, counts = [], []
    for step in range(60):
        packed: list[int] = []
        hooks = saved_tensors_hooks(lambda t, p=packed: (p.append(1), t * 2.0)[1], lambda t: t)
        weight.grad = None
        if step % 20 == 19:
            with hooks:
                loss = ((weight @ x) ** 2).sum()
        else:
            loss = ((weight @ x) ** 2).sum()
        loss.backward()
        grads.append(weight.grad.numpy().copy())
        counts.append(len(packed))
    assert [n > 0 for n in counts] == [step % 20 == 19 for step in range(60)]
    np.testing.assert_allclose(grads[59], 4.0 * grads[58], rtol=1e-4)  # W x and x, each doubled
    np.testing.assert_allclose(grads[58], grads[0], rtol=1e-4)


def test_a_jitted_function_is_one_operation_and_takes_no_hooks_inside():
    x, log = leaf(1.0, 2.0), Log()
    f = lucid.jit(lambda v: (v * v).sum())
    for _ in range(3):
        with log.hooks():
            y = f(x)
        assert lucid.autograd.grad(y, x).tolist() == [2.0, 4.0]

    @lucid.jit
    def g(v):
        with log.hooks():
            return v * v

    with pytest.raises(GraphError, match="enter the block outside"):
        g(x)


def test_hooks_belong_to_their_thread():
    x, log, seen = leaf(1.0, 2.0), Log(), []
    with log.hooks():
        other = threading.Thread(target=lambda: seen.append((x * x).sum()))
        other.start()
        other.join()
    assert seen and log.packed == []


def test_what_unpack_returns_is_checked():
    x = leaf(1.0, 2.0)
    for unpack, error, text in [
        (lambda t: 3, ArgumentError, "unpack returned a int"),
        (lambda t: t.sum(), ShapeError, r"unpack returned shape \(\)"),
        (lambda t: t.double(), DTypeError, "unpack returned dtype float64"),
    ]:
        with saved_tensors_hooks(lambda t: t, unpack):
            y = (x * x).sum()
        with pytest.raises(error, match=text):
            y.backward()
    with pytest.raises(ArgumentError, match="expected two functions"):
        saved_tensors_hooks(None, None)


def test_hooks_can_be_refused_and_save_on_cpu_changes_nothing():
    x = leaf(1.0, 2.0)
    with disable_saved_tensors_hooks("not here"):
        with pytest.raises(GraphError, match="not here"):
            with Log().hooks():
                pass
    with save_on_cpu(pin_memory=True):
        (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
