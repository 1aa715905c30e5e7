"""Rows whose elements are not adjacent have the values of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import lucid

SIZES = [(1, 2), (3, 5), (40, 2), (7, 64), (33, 35), (3, 600), (600, 3)]

PROGRAMS = {
    "copy": lambda x, y, lib: (x[:, ::2] + 0)[:, ::-1],
    "copy, reversed": lambda x, y, lib: x[::-1, ::-2] * -1,
    "both": lambda x, y, lib: x[:, ::2] * x[:, 1::2] - x[:, ::2],
    "a row and a column": lambda x, y, lib: x[:, ::2] * x[0, ::2] + x[:, :1],
    "and adjacent": lambda x, y, lib: x[:, ::2] * y,
    "rows": lambda x, y, lib: x[:, ::2].sum(1),
    "columns": lambda x, y, lib: x[:, ::2].sum(0),
    "extrema": lambda x, y, lib: lib.amax(x[:, 1::2], 1) - lib.amin(x[:, ::2], 1),
    "a mask": lambda x, y, lib: lib.where(x[:, ::2] > 0, x[:, 1::2], 7),
    "a function": lambda x, y, lib: lib.exp(x[:, ::2]),
    "functions of both": lambda x, y, lib: lib.exp(x[:, ::2]) * lib.sin(x[:, 1::2]) + y,
    "a function of short rows": lambda x, y, lib: lib.tanh(y.reshape(-1, 1) * x[0, :2]),
    "a sum of functions": lambda x, y, lib: lib.log(2 + lib.cos(x[:, ::-2])).sum(1),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_strided_rows_have_the_values_of_numpy(name, dtype, threads):
    f = PROGRAMS[name]
    compiled = lucid.jit(lambda x, y: f(x, y, lucid))
    rng = np.random.default_rng(0)
    tolerance = {"float32": 1e-5, "float64": 1e-13}[dtype]
    for n in (1, 2, 3):
        threads(n)
        for rows, columns in SIZES:
            x = rng.normal(size=(rows, 2 * columns)).astype(dtype)
            y = rng.normal(size=(rows, columns)).astype(dtype)
            found = compiled(lucid.tensor(x), lucid.tensor(y))
            want = f(x, y, np)
            assert found.shape == want.shape
            scale = max(1, np.abs(x).sum() if "sum" in name or name in ("rows", "columns") else 1)
            np.testing.assert_allclose(found.numpy(), want, rtol=tolerance, atol=tolerance * scale)


def test_writes_at_indices_in_strided_rows():
    rng = np.random.default_rng(0)
    f = lucid.jit(lambda x, i: lucid.func.grad(lambda x: (x[:, i] ** 2 / 2).sum())(x))
    for rows, columns in SIZES:
        for _ in range(2):
            x, i = rng.normal(size=(rows, columns)), rng.integers(0, columns, 2 * columns)
            want = x * np.bincount(i, minlength=columns)
            np.testing.assert_allclose(
                f(lucid.tensor(x), lucid.tensor(i)).numpy(), want, atol=1e-12
            )


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "float16"])
def test_elements_at_indices_of_the_last_axis(dtype, threads):
    rng = np.random.default_rng(0)
    f = lucid.jit(lambda x, i: lucid.where(x[:, i], x[:, i], x[:, :1]))
    for n in (1, 2, 3):
        threads(n)
        for rows, columns in SIZES:
            x, i = rng.integers(0, 2, (rows, columns)).astype(dtype), rng.integers(0, columns, 40)
            want = np.where(x[:, i], x[:, i], x[:, :1])
            np.testing.assert_array_equal(f(lucid.tensor(x), lucid.tensor(i)).numpy(), want)
    with pytest.raises(IndexError):
        f(lucid.tensor(x), lucid.tensor(np.full(40, columns)))


def text_of(f, *shapes):
    (kernel,) = lucid.jit(f).kernels(*map(lucid.ones, shapes))
    return kernel.llvm


def test_addresses_are_added_where_nothing_is_adjacent():
    def blocks(x):  # the long axis is the last, along which nothing is
        return x.reshape(2, 600, 2, 2).swapaxes(0, 2).contiguous()

    assert ".next = getelementptr" in text_of(blocks, (2400, 2))
    assert ".next = getelementptr" in text_of(lambda x: x[:, ::2].sum(1), (9, 10))
    assert ".next = getelementptr" not in text_of(lambda x: x[:, ::2] + x[:, 1::2], (9, 10))


def test_vectors_are_collected_where_that_pays():
    for f in (
        lambda x, y: lucid.exp(x[:, ::2]),
        lambda x, y: (x[:, ::2] * y).sum(1),
        lambda x, y: lucid.where(x[:, ::2] > 0, y, 1),
        lambda x, y: (x[:, ::2] * y + 2) * y + 3,
    ):
        assert "asm" in text_of(f, (9, 10), (9, 5))
    for f in (lambda x, y: x[:, ::2] * y, lambda x, y: lucid.exp(y), lambda x, y: x[:, ::2].sum(1)):
        assert "asm" not in text_of(f, (9, 10), (9, 5))


def loops(f, *args):
    return [kernel.listing for kernel in lucid.jit(f).kernels(*args)]


def test_loops_run_along_the_axis_where_elements_are_nearest():
    (text,) = loops(lambda x: x[:, ::2].sum(1), lucid.ones(300, 600))
    assert "v1 = f32(0)" in text  # a sum in a register
    (text,) = [
        k for k in loops(lambda x, i: x[:, i], lucid.ones(30, 60), lucid.arange(40)) if "wrap" in k
    ]
    assert "b2[i0, i1]" in text
    assert text.index("for i1") < text.index("wrap")
