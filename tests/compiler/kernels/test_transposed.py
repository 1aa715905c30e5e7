"""Tiles: maps of transposed arrays have the bits of NumPy, of any size and for any threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lucid
from lucid.compiler.inspect.stages import kernels_of_graph
from lucid.compiler.kernels.nest import reordered
from lucid.compiler.kernels.transposed import adjacent_axis_last
from lucid.compiler.lowering.lower import GraphLowering
from lucid.compiler.passes.pipeline import stages

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


# Reductions: the axis along which elements are adjacent is the last, or operands are copied before


F = lucid.nn.functional
REDUCTIONS = {
    "rows": (lambda x, y: x.T.sum(-1), lambda x, y: x.T.sum(-1)),
    "columns": (lambda x, y: x.T.sum(0), lambda x, y: x.T.sum(0)),
    "everything": (lambda x, y: (x.T * y).sum(), lambda x, y: (x.T * y).sum()),
    "rows of both": (lambda x, y: (x.T * y).sum(-1), lambda x, y: (x.T * y).sum(-1)),
    "columns of both": (lambda x, y: (x.T * y).sum(0), lambda x, y: (x.T * y).sum(0)),
    "extrema": (lambda x, y: x.T.amax(-1) - x.T.amin(-1), lambda x, y: np.ptp(x.T, -1)),
    "the largest": (lambda x, y: x.T.argmax(-1), lambda x, y: x.T.argmax(-1)),
    "softmax": (
        lambda x, y: lucid.softmax(x.T, -1),
        lambda x, y: np.exp(x.T) / np.exp(x.T).sum(-1, keepdims=True),
    ),
    "softmax, transposed again": (
        lambda x, y: lucid.softmax(x.T, -1).T.contiguous(),
        lambda x, y: np.exp(x) / np.exp(x).sum(0),
    ),
    "a norm": (
        lambda x, y: F.layer_norm(x.T, (x.shape[0],), eps=0.0),
        lambda x, y: (x.T - x.T.mean(-1, keepdims=True)) / x.T.std(-1, keepdims=True),
    ),
    "a norm beside its operand": (
        lambda x, y: (y + x.T, (y + x.T) - (y + x.T).mean(-1, keepdims=True))[1],
        lambda x, y: (y + x.T) - (y + x.T).mean(-1, keepdims=True),
    ),
    "a sum of what is stored": (
        lambda x, y: (z := x.T * 2, z.sum(-1, keepdims=True) + z)[1],
        lambda x, y: 2 * x.T + 2 * x.T.sum(-1, keepdims=True),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("shape", [(40, 30), (17, 70), (1000, 23), (300, 200), (5, 7)])
def test_reductions_of_transposed_arrays_have_the_values_of_numpy(name, shape, threads):
    f, reference = REDUCTIONS[name]
    rng = np.random.default_rng(0)
    compiled = lucid.jit(f)
    for n in (1, 2, 1):
        threads(n)
        x, y = rng.normal(size=shape), rng.normal(size=shape[::-1])
        found = compiled(lucid.tensor(x), lucid.tensor(y)).numpy()
        np.testing.assert_allclose(found, reference(x, y), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("channels", [16, 64, 100])
def test_a_norm_of_channels_in_images(channels):
    """The layer norm of ConvNeXt: over the channels of images that have them first."""
    x = np.random.default_rng(0).normal(size=(2, channels, 9, 8))
    f = lucid.jit(lambda x: F.layer_norm(x.permute(0, 2, 3, 1), (channels,)).permute(0, 3, 1, 2))
    for _ in range(3):
        want = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        np.testing.assert_allclose(f(lucid.tensor(x)).contiguous().numpy(), want, atol=1e-12)
        x = x * 2 + 1


def test_sums_that_lie_in_an_operand_stay_sums_of_rows():
    """As sums of columns they would grow in the operand that later rows read."""
    graph = lucid.ir.trace(lambda x: x.T.sum(-1))(np.ones((40, 30)))
    layout = GraphLowering(stages(graph)["copies_inserted"])
    layout.lay_out()
    ((work,),) = [part.work for part in layout.layouts]
    assert work.nest.structure.mode == "columns"
    rows = reordered(work.nest, [1, 0])
    assert adjacent_axis_last(rows, work.arrays).structure.mode == "columns"
    in_place = [work.arrays[0], replace(work.arrays[1], ref=work.arrays[0].ref)]
    assert adjacent_axis_last(rows, in_place) is rows


def test_a_sum_of_rows_and_an_operand_that_is_not_read_again(threads):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 100)), rng.normal(size=(100, 50))
    compiled = lucid.jit(lambda x, y: x.T.sum(-1) + y @ lucid.ones(50, dtype=lucid.float64))
    for n in (1, 2, 2):
        threads(n)
        found = compiled(lucid.tensor(x), lucid.tensor(y)).numpy()
        np.testing.assert_allclose(found, x.T.sum(-1) + y.sum(1), rtol=1e-12, atol=1e-12)


def test_few_elements_that_many_rows_read_are_copied():
    """The distances of points to 16 centers with 8 coordinates each, which lie center by center."""
    f = lucid.jit(lambda x, y: ((x[:, None] - y) ** 2).sum(2))
    rng = np.random.default_rng(0)
    for points, copies in ((4, 0), (100, 1)):
        y = rng.normal(size=(16, 8))
        for _ in range(3):
            x = rng.normal(size=(points, 8))
            found = f(lucid.tensor(x), lucid.tensor(y))
            assert len(f.kernels(lucid.tensor(x), lucid.tensor(y))) == 1 + copies
            np.testing.assert_allclose(found, ((x[:, None] - y) ** 2).sum(2), rtol=1e-12)


def test_sums_that_are_stored_across_their_rows_grow_in_a_copy(threads):
    """The gradient of 40 centers with 9 coordinates: a row of sums is a column of the result."""

    def slope(points, centers, weights):
        return (weights[:, None, :] * (points[:, :, None] - centers.T)).sum(0).T.contiguous()

    rng = np.random.default_rng(0)
    compiled = lucid.jit(slope)
    for n, count in ((1, 60), (2, 61), (2, 60), (1, 300)):
        threads(n)
        x, y = rng.normal(size=(count, 9)), rng.normal(size=(40, 9))
        w = rng.normal(size=(count, 40))
        args = [lucid.tensor(value) for value in (x, y, w)]
        want = np.einsum("pc,pcd->cd", w, x[:, None] - y)
        np.testing.assert_allclose(compiled(*args).numpy(), want, rtol=1e-10, atol=1e-10)
        assert len(compiled.kernels(*args)) == 3  # centers are copied before, and sums after


def test_windows_that_overlap_are_not_copied():
    x = np.random.default_rng(0).normal(size=600)
    f = lucid.jit(lambda x: lucid.softmax(lucid.as_strided(x, (300, 100), (1, 3)), 1))
    assert len(f.kernels(lucid.tensor(x))) == 1
    for _ in range(3):
        windows = np.lib.stride_tricks.as_strided(x, (300, 100), (8, 24))
        want = np.exp(windows) / np.exp(windows).sum(1, keepdims=True)
        np.testing.assert_allclose(f(lucid.tensor(x)).numpy(), want, rtol=1e-12)
        x = x + 0.1


def test_gradients_through_transposed_arrays():
    def loss(x, y):
        return (lucid.softmax(x.T * y, -1) * y).sum() + (x.T.sum(-1) ** 2).sum()

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 30)), rng.normal(size=(30, 40))
    step = lucid.jit(lucid.func.grad(loss))
    for _ in range(3):
        found = step(lucid.tensor(x), lucid.tensor(y)).numpy()
        direction = rng.normal(size=x.shape)
        h = 1e-6
        up, down = (loss(lucid.tensor(x + s * h * direction), lucid.tensor(y)) for s in (1, -1))
        np.testing.assert_allclose(
            (found * direction).sum(), (up - down).item() / (2 * h), rtol=1e-6
        )
        x = x + 0.1
