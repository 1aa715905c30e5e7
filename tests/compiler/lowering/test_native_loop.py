"""Native loops: small loops, branches and loops inside as one function, with the plan's results."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import lucid
from lucid import func as F
from lucid.compiler.compile import compile_graph
from lucid.compiler.inspect.stages import planned_text
from lucid.compiler.lowering.loops import native_loop
from lucid.ir import evaluate, trace
from tests.compiler.lowering.test_control import arrays_for, same


def natives(text) -> int:
    """The number of native loops in the text of a plan."""
    return [line.strip() for line in text.splitlines()].count("native")


def is_native(graph) -> bool:
    return natives(planned_text(graph)) > 0


def collatz(n):
    """The steps from n down to 1: a while loop with a branch, on integers."""

    def step(state):
        n, count = state
        half, triple = lambda: n // 2, lambda: 3 * n + 1
        return F.cond(n % 2 == 0, half, triple), count + 1

    return F.while_loop(lambda s: s[0] != 1, step, (n, lucid.zeros((), dtype=lucid.int64)))[1]


def test_a_branch_inside_a_loop_is_taken_step_by_step():
    def expected(n):
        count = 0
        while n != 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    jitted = lucid.jit(collatz)
    for n in (27, 1, 97, 6):
        assert jitted(lucid.tensor(n)).item() == expected(n)
    assert natives(jitted.graph(lucid.tensor(7), stage="planned")) == 1


def newton(a):
    """Square roots by Newton's method inside a loop over the elements of a."""

    def root(total, x):
        y, _ = F.while_loop(
            lambda s: s[1] > 1e-12,
            lambda s: ((s[0] + x / s[0]) / 2, lucid.abs(s[0] * s[0] - x)),
            (lucid.ones_like(x), lucid.ones_like(x)),
        )
        return total + y, y

    return F.scan(root, lucid.zeros_like(a[0]), a)


def test_a_loop_inside_a_loop_is_part_of_the_same_function():
    a = lucid.tensor([2.0, 9.0, 0.25], dtype=lucid.float64)
    jitted = lucid.jit(newton)
    jitted(a)
    for factor in (1.0, 3.0):
        total, roots = jitted(a * factor)
        np.testing.assert_allclose(roots.numpy(), np.sqrt(a.numpy() * factor), rtol=1e-12)
        np.testing.assert_allclose(total.numpy(), np.sqrt(a.numpy() * factor).sum(), rtol=1e-12)
    assert natives(jitted.graph(a, stage="planned")) == 2  # one in the other


def test_the_gradient_of_nested_loops_with_stacks_is_native_and_right():
    def f(x):
        return newton(x)[0] ** 2

    a = lucid.tensor([2.0, 9.0, 0.25], dtype=lucid.float64)
    gradient = lucid.jit(F.grad(f))
    gradient(a)
    for factor in (1.0, 2.0):
        x = a.numpy() * factor
        want = np.sqrt(x).sum() / np.sqrt(x)
        np.testing.assert_allclose(gradient(a * factor).numpy(), want, rtol=1e-8)
    assert natives(gradient.graph(a, stage="planned"))


def test_padded_and_shifted_reads_stay_in_their_own_memory():
    def f(c, xs):
        def step(c, x):
            return lucid.nn.functional.pad(c[:-1], (1, 0)) + x * c, c[1:]

        return F.scan(step, c, xs)

    graph = trace(f)(lucid.ones(5), lucid.ones(4))
    assert is_native(graph)
    same(graph, arrays_for(graph))


def test_indices_inside_a_loop_are_read_and_checked():
    def f(table, start):
        return F.scan(lambda i, _: (table[i], table[i]), start, length=4)

    table, start = lucid.tensor([2, 0, 3, 1]), lucid.tensor(0)
    jitted = lucid.jit(f)
    jitted(table, start)
    last, steps = jitted(table, start)
    assert (last.item(), steps.tolist()) == (0, [2, 3, 1, 0])
    assert natives(jitted.graph(table, start, stage="planned")) == 1
    with pytest.raises(lucid.errors.IndexingError, match="out of range|out of bounds"):
        jitted(lucid.tensor([2, 0, 9, 1]), start)


def test_another_length_and_other_numbers_compile_nothing(new_kernels):
    def f(x, xs, rate):
        def step(c, x):
            return c - rate * (c - x), c

        return F.scan(step, x, xs)[0] * 2.0

    def compiled(length, rate):
        gradient = F.grad(lambda x, xs: f(x, xs, rate))
        graph = trace(gradient)(lucid.ones(()), lucid.ones(length))
        assert is_native(graph)
        program, arrays = compile_graph(graph), arrays_for(graph)
        for got, want in zip(program(arrays), evaluate(graph, *arrays), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)

    compiled(5, 0.25)
    new_kernels.clear()
    compiled(500, 0.125)
    assert new_kernels == []


@pytest.mark.parametrize("n", [native_loop.MAX_ELEMENTS, native_loop.MAX_ELEMENTS + 1])
def test_long_arrays_are_left_to_the_plan(n):
    graph = trace(lambda x: F.fori_loop(0, 3, lambda i, c: c * c + 1, x))(lucid.ones(n))
    assert is_native(graph) == (n <= native_loop.MAX_ELEMENTS)
    same(graph, arrays_for(graph), rtol=1e-5)


def test_what_is_not_a_kernel_of_our_own_is_left_to_the_plan():
    graph = trace(lambda x: F.fori_loop(0, 3, lambda i, c: lucid.linalg.inv(c) + 1, x))(
        lucid.eye(3)
    )
    assert not is_native(graph)


INTERRUPTED = """
import os, signal, threading, time
import lucid
from lucid.func import while_loop

g = lucid.jit(lambda x, n: while_loop(lambda s: s < n, lambda s: s + 1, x))
n = lucid.tensor(10)
print(g(lucid.tensor(0), n).item(), g(lucid.tensor(1), n).item())
one = lucid.tensor(1)

def interrupt():
    print(time.time(), flush=True)
    os.kill(os.getpid(), signal.SIGINT)

threading.Timer(0.7, interrupt).start()
try:
    g(one, lucid.tensor(1 << 60))
except KeyboardInterrupt:
    print(time.time())
print(g(lucid.tensor(2), n).item())
"""


def test_ctrl_c_ends_a_native_loop_and_the_next_call_is_right():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60
    )
    first, sent, caught, last = done.stdout.splitlines()
    assert (first, last) == ("10 10", "10"), done.stderr
    assert float(caught) - float(sent) < 10  # 50 ms where the machine is not busy
