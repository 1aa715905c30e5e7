"""Tiles: maps of transposed arrays have the bits of NumPy, of any size and for any threads."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.compiler.inspect.stages import kernels_of_graph

SIZES = [(8, 16), (9, 17), (16, 64), (23, 65), (50, 1000), (200, 31), (8, 130), (71, 16)]


def are_tiled(graph):
    """True if all kernels are computed in tiles."""
    return all("%tile" in kernel.llvm for kernel in kernels_of_graph(graph))


def numbers(rng, shape, dtype="float64"):
    if dtype == "bool":
        return rng.random(shape) < 0.5
    return rng.integers(-99, 99, shape).astype(dtype)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool", "float16"]
)
def test_a_transposed_array_has_the_values_of_numpy(dtype, threads):
    rng = np.random.default_rng(0)
    f = lucid.jit(lambda x, y: lucid.where(y, x.T, x.T[:1]))
    for _ in range(2):
        for rows, columns in SIZES:
            x, y = numbers(rng, (columns, rows), dtype), numbers(rng, (rows, columns), "bool")
            want = np.where(y, x.T, x.T[:1])
            for n in (1, 2, 3):
                threads(n)
                found = f(lucid.tensor(x), lucid.tensor(y)).numpy()
                assert found.dtype == want.dtype
                np.testing.assert_array_equal(found, want)


def turned(x, *axes):
    return x.transpose(axes) if isinstance(x, np.ndarray) else x.permute(axes)


PROGRAMS = {
    "one": (lambda x, y: x.T * y, (40, 24), (24, 40)),
    "both": (lambda x, y: x.T * y + x.T, (40, 24), (24, 40)),
    "two": (lambda x, y: x.T - y.T, (40, 24), (40, 24)),
    "a row and a column": (lambda x, y: x.T * y[0] + y[:, :1], (40, 24), (24, 40)),
    "batches": (lambda x, y: x.swapaxes(1, 2) / y, (3, 40, 11), (3, 11, 40)),
    "outer axes": (lambda x, y: turned(x, 2, 1, 0, 3) + y, (9, 2, 33, 3), (33, 2, 9, 3)),
    "channels last": (lambda x, y: turned(x, 0, 3, 1, 2) * y, (2, 5, 7, 19), (2, 19, 5, 7)),
    "channels first": (lambda x, y: turned(x, 0, 2, 3, 1) * y, (2, 19, 5, 7), (2, 5, 7, 19)),
    "rows reversed": (lambda x, y: x.T[::-1] * y, (40, 24), (24, 40)),
    "columns reversed": (lambda x, y: x.T[:, ::-1] * y, (40, 24), (24, 40)),
    "a window": (lambda x, y: x[3:30, 2:20].T * y, (40, 24), (18, 27)),
    "every other": (lambda x, y: x[::2].T * y, (40, 24), (24, 20)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_maps_of_transposed_arrays_have_the_values_of_numpy(name, dtype, threads):
    f, *shapes = PROGRAMS[name]
    rng = np.random.default_rng(0)
    x, y = (1 + rng.random(shape).astype(dtype) for shape in shapes)
    compiled = lucid.jit(f)
    for n in (1, 2):
        threads(n)
        for a, b in ((x, y), (x + 1, y * 2), (x * 3, y)):
            want = f(a, b)  # NumPy's own arrays
            np.testing.assert_array_equal(compiled(lucid.tensor(a), lucid.tensor(b)).numpy(), want)


def test_transposing_maps_are_tiled_and_others_are_not():
    x, y = np.ones((40, 24)), np.ones((24, 40))
    assert are_tiled(lucid.ir.trace(lambda x, y: x.T * y)(x, y))
    assert are_tiled(lucid.ir.trace(lambda x: x.T.contiguous())(x))
    for f in (lambda x, y: x * 2, lambda x, y: y[:, :1] * x[0, 0], lambda x, y: x[:, :7].T + 1):
        assert not any("%tile" in k.llvm for k in kernels_of_graph(lucid.ir.trace(f)(x, y)))


@pytest.mark.parametrize("columns", [600, 64, 17])
def test_an_index_a_mask_and_a_pad_in_tiles(columns):
    def f(x):
        return lucid.tril(x.T, 3) + lucid.nn.functional.pad(x.T[:, 1:-1] * 2, (1, 1))

    rng = np.random.default_rng(0)
    compiled = lucid.jit(f)
    assert any("%tile" in k.llvm for k in compiled.kernels(lucid.ones(columns, 70)))
    for _ in range(3):
        x = rng.normal(size=(columns, 70))
        want = np.tril(x.T, 3) + np.pad(x.T[:, 1:-1] * 2, ((0, 0), (1, 1)))
        np.testing.assert_array_equal(compiled(lucid.tensor(x)).numpy(), want)


def test_a_tensor_that_gets_its_own_transpose(threads):
    @lucid.jit
    def turn(x, y):
        x.copy_(x.T * 2 + y)
        x += x.T
        return x

    rng = np.random.default_rng(0)
    for n in (1, 2):
        threads(n)
        x, y = lucid.tensor(rng.normal(size=(2, 100, 100))[0]), rng.normal(size=(100, 100))
        expected = x.numpy().copy()
        for _ in range(4):
            expected = expected.T * 2 + y
            expected = expected + expected.T
            np.testing.assert_array_equal(turn(x, lucid.tensor(y)).numpy(), expected)
            np.testing.assert_array_equal(x.numpy(), expected)


def test_one_kernel_serves_all_sizes():
    texts = set()
    for rows, columns in ((8, 16), (50, 1000), (512, 512)):
        graph = lucid.ir.trace(lambda x, y: x.T * y)(
            np.ones((columns, rows)), np.ones((rows, columns))
        )
        (kernel,) = kernels_of_graph(graph)
        texts.add(kernel.llvm)
    assert len(texts) == 1
