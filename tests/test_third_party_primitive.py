"""Primitives defined outside the package are batched, differentiated, fused and compiled like ours.

Each is checked eagerly and jitted, on the second and third call with other values, against NumPy
and formulas.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numba
import numpy as np
import pytest

import lucid
from lucid import extend
from lucid.errors import ArgumentError, ShapeError
from lucid.extend import Bilinear, Elementwise, Linear, NativeCall, NumbaCall, Primitive, Type, bind
from lucid.func import grad, hessian, jvp, vmap

# Elementwise, with scalar code of its own


class Agnesi(Elementwise):
    """1 / (1 + x²)."""

    accepts, saves = "fc", "xy"
    scalar = extend.scalar(lambda x: 1 / (1 + x * x))

    def eval(self, x: np.ndarray) -> Any:
        return 1 / (1 + x * x)

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (-2.0 * x * y * y,)


def smooth_hinge(x, y, beta):
    """log(1 + exp(beta (x - y))) / beta, without overflow; beta is a number."""
    z = beta * (x - y)
    return (extend.code.select(z > 0, z, 0) + extend.code.log1p(extend.code.exp(-abs(z)))) / beta


class SmoothHinge(Elementwise):
    """A function of two operands, with a parameter in its scalar code."""

    beta: float
    accepts, saves = "f", "x"

    @cached_property
    def scalar(self) -> str:
        return extend.scalar(lambda x, y: smooth_hinge(x, y, self.beta))

    def eval(self, x: np.ndarray, y: np.ndarray) -> Any:
        return np.logaddexp(self.beta * (x - y), 0).astype(x.dtype) / x.dtype.type(self.beta)

    def partials(self, out: Any, x: Any, y: Any) -> tuple[Any, ...]:
        slope = lucid.sigmoid(self.beta * (x - y))
        return slope, -slope


class Bump(Elementwise):
    """sin(x) + x², computed by Numba for every element."""

    accepts, saves = "f", "x"
    lowering = NumbaCall(numba.njit(lambda x: np.sin(x) + x * x))

    def eval(self, x: np.ndarray) -> Any:
        return np.sin(x) + x * x

    def partials(self, y: Any, x: Any) -> tuple[Any, ...]:
        return (lucid.cos(x) + 2.0 * x,)


# Linear and bilinear, without native code: NumPy runs them inside compiled programs


class Revolve(Linear):
    """The last axis, moved cyclically by `shift` places."""

    shift: int

    def infer(self, x: Type) -> Type:
        if x.ndim == 0:
            raise ShapeError("revolve: a 0-d tensor has no last axis")
        return x

    def eval(self, x: np.ndarray) -> np.ndarray:
        return np.roll(x, self.shift, axis=-1)

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(Revolve(-self.shift), ct)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)


class CircularConvolution(Bilinear):
    """sum over j of x[..., j] y[..., i - j]."""

    def infer(self, x: Type, y: Type) -> Type:
        return x

    def eval(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(y), x.shape[-1]).astype(x.dtype)

    @staticmethod
    def reversed(x: Any) -> Any:
        return bind(Revolve(1), x.flip(-1))

    def left(self, ct: Any, x: Any, y: Any) -> Any:
        return bind(self, ct, self.reversed(y))

    def right(self, ct: Any, x: Any, y: Any) -> Any:
        return bind(self, ct, self.reversed(x))

    def batch(self, n: int, batched: tuple[bool, ...], x: Any, y: Any) -> Any:
        return bind(self, *[v if b else v.expand((n, *v.shape)) for b, v in zip(batched, (x, y))])


class Reversed(Linear):
    """The last axis backward; in compiled code a view, which takes no step of its own."""

    moves = True

    def infer(self, x: Type) -> Type:
        return x

    def eval(self, x: np.ndarray) -> np.ndarray:
        return x[..., ::-1].copy()

    def view(self, x: Any) -> Any:
        *outer, last = x.strides
        return x.over(x.shape, (*outer, -last), (x.shape[-1] - 1) * last)

    def adjoint(self, ct: Any, x: Any) -> Any:
        return bind(self, ct)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)


# Opaque, with native code that needs no Python


@numba.cfunc(
    numba.void(numba.types.CPointer(numba.types.voidptr), numba.int64, numba.int64), cache=False
)
def prefix_products(args, lo, hi):
    sizes = numba.carray(args[2], (4,), np.int64)
    y = numba.carray(args[0], (sizes[0], sizes[1]), np.float64)
    x = numba.carray(args[1], (sizes[2], sizes[3]), np.float64)
    for i in range(lo, hi):
        total = 1.0
        for j in range(sizes[1]):
            total *= 1.0 + x[i, j]
            y[i, j] = total


class Compound(Primitive):
    """The growth of a capital: y[i, j] = product over k <= j of 1 + x[i, k], of matrices."""

    saves = "xy"
    lowering = NativeCall(
        lambda op, given, results: prefix_products if given[0].dtype == np.float64 else None,
        extent=lambda op, given, results: given[0].shape[0],
    )

    def infer(self, x: Type) -> Type:
        if x.ndim != 2:
            raise ShapeError(f"compound: {x.shape} is not a matrix")
        return x

    def eval(self, x: np.ndarray) -> np.ndarray:
        return np.cumprod(1 + x, axis=-1)

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        return y * lucid.cumsum(ts[0] / (1.0 + x), -1)

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return ((ct * y).flip(-1).cumsum(-1).flip(-1) / (1.0 + x),)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x.reshape(n * x.shape[1], x.shape[2])).reshape(x.shape)


# Opaque, without any native code


class Median(Primitive):
    """The median of the last axis, of odd size, by NumPy."""

    saves = "x"

    def infer(self, x: Type) -> Type:
        return Type(x.dtype, x.shape[:-1])

    def eval(self, x: np.ndarray) -> Any:
        return np.median(x, axis=-1).astype(x.dtype)

    def jvp(self, ts: tuple[Any, ...], y: Any, x: Any) -> Any:
        return lucid.where(x == y.unsqueeze(-1), ts[0], 0.0).sum(-1)

    def vjp(self, ct: Any, y: Any, x: Any) -> tuple[Any, ...]:
        return (lucid.where(x == y.unsqueeze(-1), ct.unsqueeze(-1), 0.0),)

    def batch(self, n: int, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)


WEIGHTS = np.random.default_rng(0).normal(size=(3, 5))


def weighted(op: Primitive, before: Any = lambda x: x) -> Any:
    """A number that depends on every element of the result."""

    def f(x: Any) -> Any:
        y = bind(op, before(x))
        weights = WEIGHTS[:, 0] if y.ndim == 1 else WEIGHTS
        return (lucid.sin(y) * weights).sum()

    return f


def hinge(x: Any) -> Any:
    return bind(SmoothHinge(2.0), x, 0.5 * lucid.cos(x)).sum() + (x * x * x).sum()


def convolved(x: Any) -> Any:
    return (bind(CircularConvolution(), x, lucid.sin(x)) * WEIGHTS).sum()


FUNCTIONS = {
    "elementwise": weighted(Agnesi()),
    "elementwise of two, with a parameter": hinge,
    "elementwise by numba": weighted(Bump()),
    "linear": weighted(Revolve(2), lucid.exp),
    "bilinear": convolved,
    "view": weighted(Reversed(), lucid.exp),
    "opaque with a lowering": weighted(Compound(), lambda x: 0.3 * x),
    "opaque": weighted(Median(), lambda x: x * x * x),
}
EXPECTED = {
    "elementwise": lambda x: (np.sin(1 / (1 + x**2)) * WEIGHTS).sum(),
    "elementwise of two, with a parameter": lambda x: (
        np.log1p(np.exp(2 * (x - 0.5 * np.cos(x)))).sum() / 2 + (x**3).sum()
    ),
    "elementwise by numba": lambda x: (np.sin(np.sin(x) + x**2) * WEIGHTS).sum(),
    "linear": lambda x: (np.sin(np.roll(np.exp(x), 2, -1)) * WEIGHTS).sum(),
    "view": lambda x: (np.sin(np.exp(x)[:, ::-1]) * WEIGHTS).sum(),
    "bilinear": lambda x: sum(
        WEIGHTS[i, k] * x[i, j] * np.sin(x[i, (k - j) % 5])
        for i in range(3)
        for k in range(5)
        for j in range(5)
    ),
    "opaque with a lowering": lambda x: (np.sin(np.cumprod(1 + 0.3 * x, -1)) * WEIGHTS).sum(),
    "opaque": lambda x: (np.sin(np.median(x**3, -1)) * WEIGHTS[:, 0]).sum(),
}
CASES = pytest.mark.parametrize("name", FUNCTIONS)
POINTS = [np.random.default_rng(seed).normal(size=(3, 5)) for seed in (1, 2, 3)]


def slopes(f: Any, x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The derivatives of f by central differences."""
    out = np.empty((*np.shape(f(x)), *x.shape))
    for index in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[index] = step
        out[(..., *index)] = (f(x + e) - f(x - e)) / (2 * step)
    return out


def calls(f: Any) -> Any:
    """Eager, and each call of the jitted function, with other values."""
    jitted = lucid.jit(f)
    return [(f, POINTS[0]), *[(jitted, x) for x in POINTS]]


def value(y: Any) -> np.ndarray:
    return y.detach().numpy()


@CASES
def test_values(name):
    for f, x in calls(FUNCTIONS[name]):
        np.testing.assert_allclose(value(f(lucid.tensor(x))), EXPECTED[name](x), rtol=1e-9)


@CASES
def test_grad_and_jvp(name):
    for f, x in calls(grad(FUNCTIONS[name])):
        np.testing.assert_allclose(value(f(lucid.tensor(x))), slopes(EXPECTED[name], x), atol=1e-6)
    direction = np.cos(np.arange(15.0)).reshape(3, 5)

    def tangent(x):
        return jvp(FUNCTIONS[name], (x,), (lucid.tensor(direction),))[1]

    for f, x in calls(tangent):
        expected = (slopes(EXPECTED[name], x) * direction).sum()
        np.testing.assert_allclose(value(f(lucid.tensor(x))), expected, atol=1e-6)


@CASES
def test_vmap(name):
    jitted = lucid.jit(vmap(FUNCTIONS[name]))
    for f in (vmap(FUNCTIONS[name]), jitted, jitted, jitted):
        for batch in (np.stack(POINTS), np.stack(POINTS[::-1])):
            expected = [EXPECTED[name](x) for x in batch]
            np.testing.assert_allclose(value(f(lucid.tensor(batch))), expected, rtol=1e-9)
    many = np.stack(POINTS)
    expected = [slopes(EXPECTED[name], x) for x in many]
    got = lucid.jit(vmap(grad(FUNCTIONS[name])))
    for _ in range(2):
        np.testing.assert_allclose(value(got(lucid.tensor(many))), expected, atol=1e-6)


@CASES
def test_hessian(name):
    gradient = grad(FUNCTIONS[name])
    for f, x in calls(hessian(FUNCTIONS[name])):
        expected = slopes(lambda x: value(gradient(lucid.tensor(x))), x, 1e-5)
        np.testing.assert_allclose(value(f(lucid.tensor(x))), expected, atol=1e-5)


@CASES
def test_backward_and_graph_text(name):
    x = lucid.tensor(POINTS[0], requires_grad=True)
    FUNCTIONS[name](x).backward()
    np.testing.assert_allclose(value(x.grad), slopes(EXPECTED[name], POINTS[0]), atol=1e-6)
    graph = lucid.ir.trace(FUNCTIONS[name])(lucid.tensor(POINTS[0]))
    assert lucid.ir.parse(str(graph)).key == graph.key


# Native code


def planned(f: Any, *args: Any) -> str:
    return str(lucid.jit(f).graph(*args, stage="planned"))


def test_scalar_code_fuses_with_its_neighbors_and_reductions():
    def f(x):
        return (bind(Agnesi(), 2.0 * x) * lucid.exp(x) + 1.0).sum(-1)

    x = lucid.tensor(POINTS[0])
    kernels = lucid.jit(f).kernels(x)
    assert len(kernels) == 1 and "lambda_" in kernels[0].listing
    assert "numpy" not in planned(f, x)
    expected = (np.exp(POINTS[0]) / (1 + (2 * POINTS[0]) ** 2) + 1).sum(-1)
    np.testing.assert_allclose(value(lucid.jit(f)(x)), expected, rtol=1e-12)


def test_the_gradient_of_scalar_code_fuses_too():
    x = lucid.tensor(np.linspace(-3, 3, 1000, dtype="float32"))
    f = grad(lambda x: bind(Agnesi(), x).sum())
    assert len(lucid.jit(f).kernels(x)) == 1
    expected = -2 * value(x) / (1 + value(x) ** 2) ** 2
    np.testing.assert_allclose(value(lucid.jit(f)(x)), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_scalar_code_of_every_dtype(dtype):
    x = np.linspace(-3, 3, 7).astype(dtype)
    f = lucid.jit(lambda x: bind(Agnesi(), x) + 1)
    for values in (x, -x, 2 * x):
        wide = values.astype(np.result_type(dtype, np.float64))
        expected = 1 / (1 + wide**2) + 1
        y = f(lucid.tensor(values))
        assert value(y).dtype == dtype
        np.testing.assert_allclose(value(y), expected, rtol=2e-3 if dtype == "float16" else 1e-6)


def test_the_parameter_of_scalar_code_is_part_of_its_kernel():
    x = lucid.tensor(POINTS[0])
    for beta in (1.0, 2.0, 1.0):
        f = lucid.jit(lambda x, beta=beta: bind(SmoothHinge(beta), x, lucid.zeros_like(x)))
        for _ in range(2):
            np.testing.assert_allclose(
                value(f(x)), np.log1p(np.exp(beta * POINTS[0])) / beta, rtol=1e-12
            )


def test_lowerings_run_without_python():
    x = lucid.tensor(POINTS[0])
    for op in (Agnesi(), Bump(), Reversed(), Compound()):
        assert "numpy" not in planned(lambda x, op=op: bind(op, x) * 2.0, x)
    assert "numpy   median" in planned(lambda x: bind(Median(), x) * 2.0, x)
    assert "numpy   revolve[shift=1]" in planned(lambda x: bind(Revolve(1), x) * 2.0, x)


def test_a_native_call_reads_views_and_runs_in_parallel():
    x = np.random.default_rng(5).normal(size=(4, 300)) / 10
    f = lucid.jit(lambda x: bind(Compound(), x.t()[::3]))
    for values in (x, -x, 2 * x):
        expected = np.cumprod(1 + values.T[::3], -1)
        np.testing.assert_allclose(value(f(lucid.tensor(values))), expected, rtol=1e-12)


@numba.cfunc(numba.void(numba.types.CPointer(numba.types.voidptr), numba.int64, numba.int64))
def extremes(args, lo, hi):
    n = numba.carray(args[4], (4,), np.int64)
    low, high = numba.carray(args[0], n[0], np.float64), numba.carray(args[1], n[1], np.float64)
    x = numba.carray(args[2], (n[2], n[3]), np.float64)
    scale = numba.carray(args[3], 1, np.float64)[0]
    for i in range(lo, hi):
        low[i] = scale * x[i].min()
        high[i] = scale * x[i].max()


class Extremes(Primitive):
    """The least and the largest element of each row, times a number."""

    differentiable = False
    lowering = NativeCall(
        lambda op, given, results: extremes, lambda op, given, _: given[0].shape[0]
    )

    def infer(self, x: Type, scale: Type) -> tuple[Type, Type]:
        return Type(x.dtype, x.shape[:1]), Type(x.dtype, x.shape[:1])

    def eval(self, x: np.ndarray, scale: np.ndarray) -> tuple[Any, Any]:
        return scale * x.min(-1), scale * x.max(-1)


def test_a_native_call_with_several_results_and_a_literal():
    def f(x):
        low, high = bind(Extremes(), 2.0 * x, lucid.ir.Literal(0.5, x.dtype))
        return high - low

    assert "numpy" not in planned(f, lucid.tensor(POINTS[0]))
    jitted = lucid.jit(f)
    for x in (*POINTS, np.ones((0, 5))):
        np.testing.assert_allclose(value(jitted(lucid.tensor(x))), np.ptp(x, -1), rtol=1e-12)


def test_a_native_call_that_has_no_function_for_a_dtype_leaves_it_to_eval():
    x = lucid.tensor(POINTS[0].astype("float32"))
    assert "numpy   compound" in planned(lambda x: bind(Compound(), x), x)
    y = lucid.jit(lambda x: bind(Compound(), x))(x)
    np.testing.assert_allclose(value(y), np.cumprod(1 + value(x), -1), rtol=1e-6)


def test_in_a_loop_of_the_compiler():
    def f(x):
        return lucid.func.scan(
            lambda c, _: (bind(Agnesi(), c) + bind(Bump(), c), None), x, None, 4
        )[0]

    x = POINTS[0]
    expected = x
    for _ in range(4):
        expected = 1 / (1 + expected**2) + np.sin(expected) + expected**2
    for g in (f, *[lucid.jit(f)] * 2):
        np.testing.assert_allclose(value(g(lucid.tensor(x))), expected, rtol=1e-9)


@pytest.mark.parametrize("op", [Agnesi(), Bump(), Revolve(1), Median()], ids=lambda op: op.name)
def test_hot_eager_calls(op):
    for seed in range(40):
        x = np.random.default_rng(seed).normal(size=(51, 1001))
        np.testing.assert_allclose(value(bind(op, lucid.tensor(x))), op.eval(x), rtol=1e-12)


# Mistakes


def test_scalar_code_that_branches_is_refused_with_the_remedy():
    with pytest.raises(ArgumentError, match=r"no truth value; use select"):
        extend.scalar(lambda x: x if x > 0 else -x)


def test_scalar_code_that_calls_other_functions_is_refused():
    with pytest.raises(ArgumentError, match=r"lucid\.extend\.code"):
        extend.scalar(lambda x: np.sqrt(x))
    with pytest.raises(ArgumentError, match="returns 1.0"):
        extend.scalar(lambda x: 1.0)
    with pytest.raises(ArgumentError, match="returns a value of type b1"):
        extend.scalar(lambda x: x > 0)


def test_a_name_that_is_taken_is_refused_but_a_class_may_be_defined_again():
    def define(constant):
        class Shifted(Elementwise):
            accepts, saves = "f", ""
            scalar = extend.scalar(lambda x: x + constant)

            def eval(self, x):
                return x + constant

        return Shifted()

    for constant in (1.0, 2.0):
        op = define(constant)
        f = lucid.jit(lambda x, op=op: bind(op, x) * 2.0)
        for _ in range(3):
            assert f(lucid.tensor([1.0])).tolist() == [2 * (1 + constant)]
    with pytest.raises(ArgumentError, match="the name 'gcd' is taken by lucid"):

        class Gcd(Elementwise):
            pass


def test_the_module_offers_what_the_page_says():
    for name in extend.__all__:
        assert getattr(extend, name) is not None
