"""Convolutions and pools lowered to native kernels: their tiles, residues and parts."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.nn.functional as F
from lucid.compiler.lowering.conv.pack_operands import PackWork
from lucid.compiler.lowering.conv.register_blocks import choose_block
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import kernels_of
from lucid.ir.interpret import evaluate
from lucid.ir.types import Type
from lucid.ops.nn.convolution import Convolution, ConvolutionTranspose, ConvolutionWeight
from lucid.ops.nn.max_pool import MaxPool
from tests import compiled as jitted_twice
from tests.compiler.lowering.lowering_checks import check, compiled, graph_of

# size, kernel, places, stride, padding, dilation, groups, channels and results of a group, images
FORMS = {
    "rows longer than a vector": ((9, 30), (3, 3), (9, 30), (1, 1), (1, 1), (1, 1), 1, 3, 11, 2),
    "rows shorter than a vector": ((7, 7), (3, 3), (7, 7), (1, 1), (1, 1), (1, 1), 1, 5, 9, 3),
    "stride": ((29, 30), (3, 5), (14, 14), (2, 2), (0, 1), (1, 1), 1, 2, 4, 2),
    "stride beyond the kernel": ((20, 21), (2, 2), (7, 7), (3, 3), (0, 1), (1, 1), 1, 2, 3, 1),
    "stride and dilation": ((40, 33), (3, 3), (12, 9), (3, 4), (2, 3), (2, 2), 2, 2, 3, 1),
    "depthwise": ((20, 20), (3, 3), (20, 20), (1, 1), (1, 1), (1, 1), 10, 1, 1, 2),
    "one pixel": ((13, 11), (1, 1), (13, 11), (1, 1), (0, 0), (1, 1), 1, 6, 7, 2),
    "tiles of a long row": ((30_000,), (9,), (15_000,), (2,), (4,), (1,), 1, 8, 3, 1),
    "tiles of rows": ((131, 97), (3, 3), (131, 97), (1, 1), (1, 1), (1, 1), 1, 40, 2, 1),
    "planes": ((9, 31, 40), (3,) * 3, (9, 31, 40), (1,) * 3, (1,) * 3, (1,) * 3, 1, 16, 2, 1),
    "negative padding": ((12, 12), (2, 2), (9, 10), (1, 1), (-2, -1), (1, 1), 1, 2, 2, 1),
    "many images": ((6, 6), (3, 3), (4, 4), (1, 1), (0, 0), (1, 1), 1, 4, 6, 150),
    "panels": ((7, 7), (3, 3), (7, 7), (1, 1), (1, 1), (1, 1), 1, 40, 64, 3),
    "panels and one more result": ((7, 5), (3, 3), (7, 5), (1, 1), (1, 1), (1, 1), 1, 20, 65, 1),
    "panels and one fewer": ((5, 6), (2, 3), (4, 4), (1, 1), (0, 0), (1, 1), 1, 7, 31, 2),
    "panels of long sums": ((7, 7), (3, 3), (7, 7), (1, 1), (1, 1), (1, 1), 1, 150, 256, 9),
    "panels in groups": ((9, 8), (3, 3), (5, 4), (2, 2), (1, 1), (1, 1), 3, 17, 48, 5),
    "panels with dilation": ((14, 15), (3, 2), (4, 13), (3, 1), (1, 0), (2, 2), 1, 9, 32, 2),
    "panels of tiles": ((299, 290), (3, 3), (299, 290), (1, 1), (1, 1), (1, 1), 1, 2, 32, 1),
    "panels of planes": ((5, 9, 7), (3,) * 3, (5, 9, 7), (1,) * 3, (1,) * 3, (1,) * 3, 1, 5, 32, 2),
    "cut planes": ((9, 60, 61), (3, 1, 1), (7, 60, 61), (1,) * 3, (0,) * 3, (1,) * 3, 1, 3, 32, 1),
    "panels of many images": ((14, 14), (3, 3), (14, 14), (1, 1), (1, 1), (1, 1), 1, 3, 32, 21),
    "panels of a pixel": ((7, 7), (1, 1), (7, 7), (1, 1), (0, 0), (1, 1), 1, 200, 64, 4),
    "panels of a pixel, stride": ((13, 14), (1, 1), (7, 7), (2, 2), (0, 0), (1, 1), 1, 90, 96, 4),
    "panels of a long row": ((20_000,), (5,), (20_000,), (1,), (2,), (1,), 1, 4, 48, 1),
}  # fmt: skip


def operands(form, dtype):
    size, kernel, places, *_, groups, c, o, n = form
    rng = np.random.default_rng(0)
    shapes = (n, groups * c, *size), (groups * o, c, *kernel), (n, groups * o, *places)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FORMS)
def test_all_derivatives_of_the_form_are_native_and_right(name, dtype):
    form = FORMS[name]
    size, kernel, places, stride, padding, dilation, groups, *_ = form
    x, w, y = operands(form, dtype)
    rest = (stride, padding, dilation, groups)
    for op, args in (
        (Convolution(places, *rest), (x, w)),
        (ConvolutionTranspose(size, *rest), (y, w)),
        (ConvolutionWeight(kernel, *rest), (x, y)),
    ):
        (got,) = compiled(op, *args)(args)
        wide = [a.astype("float64") for a in args]
        (want,) = evaluate(graph_of(op, *wide), *wide)
        scale = np.abs(want).max()
        tolerance = 1e-5 if dtype == "float32" else 1e-13
        np.testing.assert_allclose(got / scale, want / scale, atol=tolerance)


@pytest.mark.parametrize("name", FORMS)
def test_results_do_not_depend_on_the_number_of_threads(name):
    form = FORMS[name]
    size, kernel, places, stride, padding, dilation, groups, *_ = form
    x, w, y = operands(form, "float32")
    rest = (stride, padding, dilation, groups)
    before = lucid.get_num_threads()
    try:
        for op, args in (
            (Convolution(places, *rest), (x, w)),
            (ConvolutionTranspose(size, *rest), (y, w)),
            (ConvolutionWeight(kernel, *rest), (x, y)),
        ):
            program = compiled(op, *args)
            found = []
            for threads in (1, 2, 4):
                lucid.set_num_threads(threads)
                found.append(program(args)[0])
            np.testing.assert_array_equal(found[0], found[1])
            np.testing.assert_array_equal(found[0], found[2])
    finally:
        lucid.set_num_threads(before)


def test_few_results_or_short_sums_go_by_rows_and_many_results_by_panels():
    assert not choose_block("f32", results=1, positions=3136, vectors=392, terms=9).panels
    assert not choose_block("f32", results=64, positions=3136, vectors=392, terms=64).panels
    for places, vectors in ((49, 7), (3136, 392)):
        assert choose_block("f32", 256, places, vectors, 2304).panels
        assert choose_block("f64", 256, places, 2 * vectors, 2304).panels


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(2, 64, 48, 3), (3, 70, 31, 9), (1, 8, 8, 8), (2, 100, 2, 2)])
@pytest.mark.parametrize("dense", [True, False])
def test_packed_operands_have_results_side_by_side_and_end_with_zeros(shape, dense, dtype):
    g, m, n, k = shape
    steps = 1 if dense else 2
    x = np.random.default_rng(0).normal(size=(g, m, n, steps * k)).astype(dtype)[..., ::steps]
    blocks, rows = -(-m // 32), 32
    want = np.zeros((g, blocks * rows, n * k), dtype)
    want[:, :m] = x.reshape(g, m, n * k)
    want = want.reshape(g, blocks, rows, n * k).swapaxes(2, 3)
    np.testing.assert_array_equal(packed(x, rows), want)


def packed(x, rows):
    """What PackWork makes of an array (G, M, two axes)."""
    g, m, n, k = x.shape
    base, builder = np.ascontiguousarray(x.base), Builder()
    source = Array.of(builder.input(x.dtype, base.shape), Type(x.dtype, x.shape))
    shape = (g, -(-m // rows), n * k, rows)
    target = Array.of(builder.output(x.dtype, shape), Type(x.dtype, shape))
    strides = tuple(step // x.itemsize for step in x.strides)
    work = PackWork(source, x.shape, strides, target, "pack")
    work.add(builder, kernels_of(work.kernels()))
    return builder.build()(base)[0]


@pytest.mark.parametrize("results", [5, 40])
def test_operands_may_lie_in_any_order(results):
    rng = np.random.default_rng(0)
    x = lucid.tensor(rng.normal(size=(2, 9, 12, 3)))
    w = lucid.tensor(rng.normal(size=(3, 3, 3, results)))

    def f(x, w):
        return F.conv2d(x.permute(0, 3, 1, 2).flip(3), w.permute(3, 2, 0, 1), padding=1).sum((2, 3))

    np.testing.assert_allclose(jitted_twice.compiled(f)(x, w).numpy(), f(x, w).numpy(), rtol=1e-12)
    grads = lucid.func.grad(lambda x, w: (f(x, w) ** 2).sum(), argnums=(0, 1))
    for a, b in zip(jitted_twice.compiled(grads)(x, w), grads(x, w)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "op"),
    [
        ((2, 3, 28, 30), MaxPool((14, 15), (2, 2), (2, 2), (0, 0), (1, 1))),
        ((2, 3, 57, 57), MaxPool((29, 29), (3, 3), (2, 2), (1, 1), (1, 1))),
        ((5, 9, 9), MaxPool((3, 3), (3, 3), (3, 3), (0, 0), (1, 1))),
        ((2, 40), MaxPool((19,), (2,), (2,), (1,), (3,))),
        ((1, 300, 400), MaxPool((298, 398), (3, 3), (1, 1), (0, 0), (1, 1))),
        ((2, 7, 8, 9), MaxPool((3, 4, 5), (2, 2, 2), (2, 2, 2), (0, 0, 1), (1, 1, 1))),
    ],
)
def test_the_largest_of_windows_is_exact_with_ties_nans_and_infinities(shape, op, dtype):
    x = np.random.default_rng(0).integers(-3, 4, shape).astype(dtype)
    x[x == 3], x[x == -3] = -np.inf, np.nan
    check(op, x)


def step(n: int):
    def loss(x, w, v, b):
        x = F.max_pool2d(lucid.relu(F.conv2d(x, w, b, padding=1)), 2)
        x = F.avg_pool2d(F.conv2d(x, v, stride=2, padding=1), 3, 1, 1)
        return (F.adaptive_avg_pool2d(x, 1) ** 2).mean()

    shapes = ((n, 2, 18, 18), (5, 2, 3, 3), (7, 5, 3, 3), (5,))
    rng = np.random.default_rng(0)
    arrays = [lucid.tensor(rng.normal(size=shape).astype("float32")) for shape in shapes]
    return lucid.func.grad(loss, argnums=(0, 1, 2, 3)), arrays


def test_another_number_of_images_goes_by_the_same_kernels(new_kernels):
    w = np.ones((64, 100, 3, 3), "float32")
    for n in (1, 3, 8, 40):
        x, y = np.ones((n, 100, 7, 7), "float32"), np.ones((n, 64, 7, 7), "float32")
        rest = (1, 1), (1, 1), (1, 1)
        compiled(Convolution((7, 7), *rest), x, w)
        compiled(ConvolutionTranspose((7, 7), *rest), y, w)
        compiled(ConvolutionWeight((3, 3), *rest), x, y)
        assert new_kernels if n == 1 else not new_kernels
        new_kernels.clear()


def test_a_new_batch_size_compiles_nothing(new_kernels):
    for n in (2, 16, 37, 300):
        f, args = step(n)
        lucid.jit(f)(*args)
        assert new_kernels if n == 2 else not new_kernels
        new_kernels.clear()


def test_no_windows_are_written_to_memory():
    x, w = np.ones((8, 64, 56, 56), "float32"), np.ones((64, 64, 3, 3), "float32")
    program = compiled(Convolution((56, 56), (1, 1), (1, 1), (1, 1)), x, w)
    assert sum(part.plan.arena_bytes for part in program.parts) < x.nbytes
