"""Settings and Python numbers are part of what a compiled path depends on, with their types."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.compiler.jit.recording import RecompileWarning
from lucid.errors import ArgumentError, DTypeError

NUMBERS = [2, 2.0, True, 1, 1.0, -0.0, 0.0, 0, math.nan, math.nan, 2]
I = lucid.tensor([1, 2])  # noqa: E741
ONE = lucid.tensor(1.0)


def same(found, expected) -> None:
    assert found.dtype == expected.dtype
    assert str(found.tolist()) == str(expected.tolist())  # tells nan, 0.0 and -0.0


def kind(x, n):
    """A number that tells the class and the sign of a Python number."""
    return x * (10 * [int, float, bool].index(type(n)) + (math.copysign(1, n) < 0))


@pytest.mark.parametrize("wrap", [lambda n: n, lambda n: (n,), lambda n: [n], lambda n: {"n": n}])
def test_a_static_number_is_told_by_its_type_and_sign(wrap):
    def unwrapped(n):
        return n["n"] if isinstance(n, dict) else n[0] if isinstance(n, (tuple, list)) else n

    f = lucid.jit(lambda x, n: kind(x, unwrapped(n)), static_argnums=1)
    for n in NUMBERS * 2:
        assert f(ONE, wrap(n)).item() == kind(1, n)
    assert len(f.paths) == len({(type(n), repr(n)) for n in NUMBERS})


def test_a_static_dataclass_is_told_by_the_types_of_its_fields():
    @dataclass(frozen=True)
    class Config:
        __lucid_leaf__ = True
        n: object

    f = lucid.jit(lambda x, c: kind(x, c.n), static_argnums=-1)
    for n in NUMBERS:
        assert f(ONE, Config(n)).item() == kind(1, n)


def test_static_arguments_that_cannot_be_constants():
    f = lucid.jit(lambda x, n: x, static_argnums=(1,))
    with pytest.raises(ArgumentError, match="static argument has no hash"):
        f(ONE, bytearray(b"a"))
    with pytest.raises(ArgumentError, match="static_argnums='n' is not an integer"):
        lucid.jit(lambda x, n: x, static_argnums="n")


def test_the_default_dtype_is_a_guard():
    f = lucid.jit(lambda x: (lucid.zeros(2), x / 2))
    try:
        for name in ("float32", "float64", "float16", "float32", "float64"):
            lucid.set_default_dtype(name)
            for _ in range(3):
                zeros, half = f(I)
                assert zeros.dtype == half.dtype == name
    finally:
        lucid.set_default_dtype("float32")
    assert len(f.paths) == 3


def test_numbers_as_arguments_have_the_types_of_eager_code():
    f = lucid.jit(lambda x, n: x * n)
    for n in [*NUMBERS, 2j, lucid.float32.type(3), I.numpy()[0], lucid.float64.type(3)]:
        for x in (I, I.to("float32"), I.to("float16")):
            for _ in range(2):
                same(f(x, n), x * n)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "complex64"])
@pytest.mark.parametrize("other", ["float32", "float64"])
def test_a_number_beside_a_tensor_without_axes_is_promoted_as_in_eager_code(dtype, other):
    def f(x, y, n):
        return x * n, n + x, x - n * 2, (n * n + 1) * x, y * n, x * n + y, lucid.where(y > 0, x, n)

    x, y = lucid.tensor(3).to(dtype), lucid.ones(2, dtype=other)
    jitted = lucid.jit(f)
    for n in (0.1, 2, 0.3, True, 2j):
        expected = f(x, y, n)
        for _ in range(2):
            for found, e in zip(jitted(x, y, n), expected):
                assert found.dtype == e.dtype
                np.testing.assert_allclose(
                    found.numpy(), e.numpy(), rtol=1e-3 * (dtype == "float16")
                )
        with lucid.no_grad():
            assert [t.dtype for t in lucid.jit(lambda *xs: jitted(*xs))(x, y, n)] == [
                t.dtype for t in expected
            ]


def test_numbers_that_a_closure_reads_may_change_their_type():
    n, in_list, in_dict, config, module = 2, [2], {"n": [2]}, type("Config", (), {})(), nn.Module()

    def by_default(x, numbers=in_list):
        return x * numbers[0]

    keyword = partial(lambda x, n: x * n, n=2)
    functions = [
        lucid.jit(lambda x: x * n),
        lucid.jit(lambda x: x * in_list[0]),
        lucid.jit(lambda x: x * in_dict["n"][0]),
        lucid.jit(lambda x: x * config.n),
        lucid.jit(lambda x: x * config.inner.n),
        lucid.jit(lambda x: x * module.n),
        lucid.jit(by_default),
        lucid.jit(keyword),
    ]
    config.inner = type("Inner", (), {})()
    for value in NUMBERS * 2:
        n = in_list[0] = in_dict["n"][0] = config.n = config.inner.n = module.n = value
        keyword.keywords["n"] = value
        for f in functions:
            same(f(I), I * value)
            same(f(I), I * value)
    assert all(not f.is_uncompiled for f in functions)


def test_attributes_that_methods_read_are_guarded():
    class Model:
        def __init__(self):
            self.n = 2.0

        @property
        def twice(self):
            return 2 * self.n

        def scale(self, x):
            return x * self.twice

        @lucid.jit
        def jitted(self, x):
            return self.scale(x)

        def __call__(self, x):
            return self.scale(x)

    a, b = Model(), Model()
    functions = [lucid.jit(a.scale), lucid.jit(a), lucid.jit(lambda x: a.scale(x)), a.jitted]
    for n in (2.0, 3.0, 3.0, -1.0, 2.0):
        a.n, b.n = n, n + 1
        assert [f(ONE).item() for f in functions] == [2 * n] * 4
        assert b.jitted(ONE).item() == 2 * n + 2


def test_an_attribute_that_the_function_itself_changes_is_no_guard():
    counter = type("Counter", (), {"n": 0})()
    counter.n = 0

    @lucid.jit
    def f(x):
        counter.n += 1
        return x * 2

    assert [f(ONE).item() for _ in range(3)] == [2.0] * 3
    assert len(next(iter(f.paths.values()))) == 1


@pytest.mark.parametrize("x", [lucid.tensor([1.0, 2.0]), lucid.tensor(3.0), lucid.tensor(3)])
def test_a_numpy_scalar_is_an_array_of_its_dtype_with_and_without_jit(x):
    f = lucid.jit(lambda x, s: x * s)
    for s in [np.float64(0.1), np.float64(0.7), np.float32(0.3), np.float32(0.1), np.int64(4)] * 2:
        same(f(x, s), x * s)
        same(f(x, s), x * lucid.tensor(s))
    assert len(f.paths) == 3  # one for each dtype, none for a value


def test_a_python_float_beside_float64_arrays_keeps_its_digits():
    f = lucid.jit(lambda x, s: x * s)
    for dtype in (lucid.float64, lucid.complex128, lucid.float32):
        x = lucid.tensor([1.0, 3.0], dtype=dtype)
        for s in (0.1, 0.7, 0.3):
            same(f(x, s), x * s)


@pytest.mark.parametrize("default", ["float32", "float64"])
@pytest.mark.parametrize("others", [(), ("float32",), ("float64",), ("float32", "float64")])
@pytest.mark.parametrize("n", [0.1, 2, True, 0.1 + 0.2j])
def test_a_number_alone_has_the_dtype_of_eager_code_beside_any_tensors(default, others, n):
    def f(n, *xs):
        return (lucid.sin(n), lucid.full((2,), n), lucid.add(n, n), *[x * n for x in xs])

    lucid.set_default_dtype(default)
    xs = [lucid.ones(2, dtype=other) for other in others]
    jitted = lucid.jit(f)
    for number in (n, n, type(n)(not n) if n is True else n * 3):
        for found, expected in zip(jitted(number, *xs), f(number, *xs), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)


def test_a_number_meets_captured_float64_tensors_with_all_of_its_digits():
    x, z = lucid.ones(2, dtype="float64"), lucid.ones((), dtype="complex128")
    f = lucid.jit(lambda s, n: (x * s, x + s * 3, x - (n * 0.1 + s), z * s, x[0] * s))
    for s in (0.1, 0.7, 0.1):
        expected = [s, 1 + s * 3, 1 - (7 * 0.1 + s), s, s]
        for g in (f, lambda *a: lucid.vmap(f, in_dims=None, axis_size=2)(*a)):
            found = [np.ravel(y.numpy())[0] for y in g(s, 7)]
            np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_a_number_and_a_tensor_without_axes_are_other_arguments():
    f = lucid.jit(lambda s: lucid.sin(s))
    for s in (2.0, lucid.tensor(2.0, dtype="float64"), 2.0, np.float64(2.0), 2.0):
        for _ in range(2):
            assert f(s).dtype == lucid.sin(s).dtype


@pytest.mark.parametrize("make", [lucid.as_tensor, lucid.asarray, lucid.tensor])
def test_a_tensor_of_a_number_is_rounded_and_promoted_as_a_tensor(make):
    calls = {
        "digits": lambda s: make(s).to("float64") * 3,
        "all digits": lambda s: make(s, dtype="float64") * 3,
        "promotion": lambda s: make(s, dtype="float64") * lucid.tensor(1.0),
        "a shape": lambda s: make(s, dtype="float64") * lucid.ones(2),
    }
    for f in calls.values():
        jitted = lucid.jit(f)
        for number in (0.1, 1 / 3, 0.1):
            same(jitted(number), f(number))


@pytest.mark.parametrize(
    ("read", "number"),
    [
        (lambda s: math.sin(s), 123456789.123),
        (lambda s: int(s * 100), 0.29),
        (lambda s: float(-s / 3 + s**0.5), 0.7),
        (lambda s: 1.0 if 0.7 - 1e-12 < s and s < 0.7 + 1e-12 else 2.0, 0.7),
        (lambda s: 1.0 if s == 0.1 else 2.0, 0.1),
        (lambda s: abs(complex(s * 1j)), 0.7),
    ],
)
def test_python_reads_a_number_with_all_of_its_digits(read, number):
    x, f = lucid.ones(1, dtype="float64"), lucid.jit(lambda x, s: x * read(s))
    for s in (number, number, number + 1, number, number):
        same(f(x, s), x * read(s))


def test_a_number_keeps_its_digits_where_python_runs_the_function():
    c = lucid.tensor([1.0, 2.0], dtype="float64")
    writes = lucid.jit(lambda x, s: (c.add_(1.0), x * (2.0 * s))[1])
    for x in (lucid.ones(2, dtype="float64"), c, c):
        same(writes(x, 0.7), x * (2.0 * 0.7))
    recompiled = lucid.jit(lambda x, s, n: x * (2.0 * s) + int(n) * 0)
    with pytest.warns(RecompileWarning):
        for n in range(20):
            x = lucid.ones(1, dtype="float64")
            same(recompiled(x, 0.7, lucid.tensor(float(n))), x * (2.0 * 0.7))


@pytest.mark.parametrize(
    ("dtype", "good", "bad"), [("uint8", 255, 256), ("int32", -7, 2**40), ("int64", 1, 2**63)]
)
def test_an_integer_that_does_not_fit_is_an_error_on_every_call(dtype, good, bad):
    x, f = lucid.tensor([1], dtype=dtype), lucid.jit(lambda x, k: x + k)
    for _ in range(3):
        same(f(x, good), x + good)
        with pytest.raises(DTypeError, match="does not fit into"):
            f(x, bad)
