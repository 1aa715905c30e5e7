"""from_numba: functions that users wrote for Numba are operations, eager and compiled."""

from __future__ import annotations

import math
import subprocess
import sys
import threading

import numba
import numpy as np
import pytest

import lucid
import lucid.func as F
from lucid.errors import ArgumentError, GraphError, LucidError, ShapeError
from tests.compiled import compiled

X = lucid.tensor(np.linspace(-1.0, 1.0, 7))


@numba.njit
def square(x):
    return x * x


@numba.njit
def wave(x, y=2.0):
    return math.sin(x) * y + square(x)


@numba.njit
def step(x):
    if x > 0:
        return x
    return 0.1 * x


@numba.njit
def slope(x):
    return 1.0 if x > 0 else 0.1


@numba.njit
def picky(x):
    if x > 0.5:
        raise ValueError("too large")
    return x


@numba.njit
def running(x, out):
    total = 0.0
    for i in range(len(x)):
        total += x[i]
        out[i] = total


def programs(jitted):
    return [path.program for paths in jitted.paths.values() for path in paths]


def test_a_function_of_numbers_is_applied_to_every_element():
    f = F.from_numba(wave)
    np.testing.assert_allclose(f(X, 3.0), 3 * np.sin(X) + np.square(X), rtol=1e-14)
    np.testing.assert_allclose(f(X), 2 * np.sin(X) + np.square(X), rtol=1e-14)
    np.testing.assert_allclose(f(y=3.0, x=X), f(X, 3.0))
    assert f(X.to("float32")).dtype == np.float32
    assert f.__name__ == "wave"


def test_a_derivative_is_found_by_running_the_function_on_tensors():
    f = F.from_numba(wave)
    gradient = F.grad(lambda x: f(x, 3.0).sum())
    np.testing.assert_allclose(gradient(X), 3 * np.cos(X) + 2 * np.asarray(X), rtol=1e-14)
    second = np.diag(-3 * np.sin(X) + 2)
    np.testing.assert_allclose(F.hessian(lambda x: f(x, 3.0).sum())(X), second, rtol=1e-14)


def test_a_derivative_may_be_a_function_of_numba_too():
    f = F.from_numba(step, derivative=slope)
    expected = np.where(np.asarray(X) > 0, 1.0, 0.1)
    gradient = F.grad(lambda x: f(x).sum())
    np.testing.assert_array_equal(gradient(X), expected)
    np.testing.assert_array_equal(compiled(gradient)(X), expected)
    np.testing.assert_array_equal(F.jvp(f, (X,), (X,))[1], expected * np.asarray(X))


def test_a_derivative_that_cannot_be_found_is_asked_for():
    with pytest.raises(GraphError, match=r"step: .*give derivative= to from_numba"):
        F.grad(F.from_numba(step))(lucid.tensor(1.0))


def test_compiled_it_is_an_instruction_of_one_plan():
    f = F.from_numba(wave)
    g = lucid.jit(lambda x: lucid.exp(f(x.T * 2, 0.5)).sum(0))
    x = lucid.tensor(np.random.default_rng(0).normal(size=(50, 40)))
    y = 2 * np.asarray(x).T
    np.testing.assert_allclose(g(x), np.exp(0.5 * np.sin(y) + y * y).sum(0), rtol=1e-12)
    (program,) = programs(g)
    assert program.plan is not None


def test_inside_a_loop_it_is_compiled_too():
    f = F.from_numba(wave)
    g = lucid.jit(lambda x: F.fori_loop(0, 5, lambda i, x: f(x, 0.5), x))
    expected = np.asarray(X)
    for _ in range(5):
        expected = 0.5 * np.sin(expected) + expected**2
    np.testing.assert_allclose(g(X), expected, rtol=1e-12)
    assert programs(g)[0].plan is not None


@pytest.mark.parametrize("wrap", [lambda f: f, lucid.jit], ids=["eager", "jitted"])
def test_an_error_that_it_raises_is_raised(wrap):
    f = wrap(F.from_numba(picky))
    np.testing.assert_array_equal(f(X * 0.1), X * 0.1)
    with pytest.raises(ValueError, match="picky: too large") as found:
        f(X)
    assert isinstance(found.value, LucidError)


def test_many_threads_may_run_it_at_once():
    f = lucid.jit(F.from_numba(wave))
    x = lucid.tensor(np.random.default_rng(0).normal(size=100_000))
    expected = np.asarray(f(x, 1.0))
    results = [None] * 8

    def run(i):
        results[i] = np.asarray(f(x, 1.0))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_a_function_of_arrays_that_writes_its_result():
    f = F.from_numba(
        running, shape=lambda x: x, vjp=lambda ct, y, x: lucid.flip(ct.flip(0).cumsum(0), [0])
    )
    x = lucid.tensor(np.random.default_rng(0).normal(size=(3, 5)))
    np.testing.assert_allclose(F.vmap(f)(x), np.cumsum(x, 1), rtol=1e-14)
    np.testing.assert_allclose(F.vmap(f, in_dims=1)(x), np.cumsum(x, 0).T, rtol=1e-14)
    jacobian = np.tril(np.ones((5, 5)))
    np.testing.assert_array_equal(F.jacrev(f)(x[0]), jacobian)
    np.testing.assert_array_equal(F.jacfwd(f)(x[0]), jacobian)
    np.testing.assert_array_equal(compiled(F.jacfwd(f))(x[0]), jacobian)
    squares = compiled(F.hessian(lambda x: (f(x) ** 2).sum()))
    np.testing.assert_allclose(squares(x[0]), 2 * jacobian.T @ jacobian)


def test_a_view_is_copied_for_a_function_of_arrays():
    f = F.from_numba(running, shape=lambda x: x)
    x = lucid.tensor(np.arange(10.0))
    np.testing.assert_array_equal(compiled(lambda x: f(x[::2]))(x), np.cumsum(np.arange(0, 10, 2)))


def test_a_result_of_another_shape_than_announced_is_an_error():
    def double(x):
        return np.concatenate((x, x))

    f = F.from_numba(double, shape=lambda x: x)
    for call in (f, lucid.jit(f)):
        with pytest.raises(ShapeError, match=r"double: returned .*\(14,\).*\(7,\)"):
            call(X)
    with pytest.raises(ShapeError, match="returned arrays have 1 axes"):
        F.from_numba(double, shape=lambda x: (*x, 2))(X)


def test_a_decorator_with_options():
    @F.from_numba(dtype="int64")
    def sign(x):
        return 1 if x > 0 else -1

    assert sign(X).dtype == np.int64
    assert list(np.asarray(sign(X))) == [-1, -1, -1, -1, 1, 1, 1]


@pytest.mark.parametrize(
    "make, told",
    [
        (lambda: F.from_numba(3), "3 is not a Python or Numba function"),
        (lambda: F.from_numba(wave, derivative=slope), "1 derivatives for 2 arguments"),
        (lambda: F.from_numba(step, vjp=slope), "use derivative="),
        (lambda: F.from_numba(running, slope, shape=lambda x: x), "either vjp= or jvp="),
        (lambda: F.from_numba(lambda x: x.no_such_thing)(X), "Numba cannot compile"),
        (lambda: F.from_numba(lambda x: "text")(X), "must return numbers"),
        (lambda: F.from_numba(step)(X, X), "too many positional arguments"),
    ],
)
def test_misuse_is_explained(make, told):
    with pytest.raises(ArgumentError, match=told):
        make()


def test_numba_is_imported_only_when_a_function_is_given():
    code = "import lucid, sys; lucid.func.from_numba; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
