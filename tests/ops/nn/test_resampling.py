"""resample: what is not read leaves no trace, and native code gives the bits that NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.compiler.compile import compile_graph
from lucid.errors import DTypeError, ShapeError
from lucid.ir import Type, bind, trace
from lucid.ops.nn.resample import Resample

interpolate = lucid.nn.functional.interpolate


@pytest.mark.parametrize("mode, reached", [("nearest", 2), ("bilinear", 4), ("bicubic", 8)])
def test_inf_stays_where_it_is_read(mode, reached):
    x = np.zeros((1, 1, 16, 16), "float32")
    x[0, 0, 8, 8] = np.inf

    def grown(x):
        return interpolate(x, scale_factor=2, mode=mode)

    for f in (grown, lucid.jit(grown)):
        y = f(lucid.tensor(x)).numpy()
        assert (~np.isfinite(y)).sum() == reached**2


@pytest.mark.parametrize("shape, axis", [((5, 6, 28), 1), ((5, 6, 3), 1), ((7, 6), 1), ((6,), 0)])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("transpose", [False, True])
def test_compiled_and_interpreted_are_the_same_bits(shape, axis, mode, transpose):
    op = Resample(axis, 6, 13, mode, 6 / 13, transpose=transpose)
    size = [op.sizes[0] if i == axis else n for i, n in enumerate(shape)]
    x = np.random.default_rng(0).normal(size=size).astype("float32")
    program = compile_graph(trace(lambda x: bind(op, x))(lucid.tensor(x)))
    assert np.array_equal(program([x])[0], op.eval(x))


def test_nothing_is_left_to_numpy():
    def loss(x):
        return (interpolate(x, scale_factor=2, mode="bicubic") ** 2).sum()

    for dtype in ("float16", "float32", "float64", "complex64"):
        x = lucid.tensor(np.ones((2, 3, 4, 5), dtype))
        graph = lucid.ir.trace(lambda x: lucid.real(lucid.func.vjp(loss, x)[0]))(x)
        assert compile_graph(graph).plan is not None


def test_whole_numbers_are_taken_not_weighed():
    x = lucid.tensor(np.array([[[0, 255]]], "uint8"))
    y = interpolate(x, 4)
    assert y.dtype == np.uint8 and y.tolist() == [[[0, 0, 255, 255]]]


def test_an_operand_of_another_length_is_refused():
    with pytest.raises(ShapeError, match="no axis 1 of 5 elements"):
        Resample(1, 5, 10, "linear", 0.5).infer(Type.parse("f32[2,4]"))
    with pytest.raises(DTypeError, match="cast it"):
        Resample(0, 2, 4, "linear", 0.5).infer(Type.parse("i64[2]"))


def test_places_that_are_whole_numbers_are_those_elements():
    y = interpolate(lucid.arange(28.0).reshape(1, 1, 28), 20)
    assert y.flatten().tolist() == [i * 28 // 20 for i in range(20)]


@pytest.mark.parametrize(
    "mode, weights", [("bilinear", [1, 0, 0]), ("bicubic", [1.125, -0.125, 0])]
)
def test_one_place_between_corners_is_the_first(mode, weights):
    """As in PyTorch: the kernel of a = -1/2 at distances 1/2 and 3/2, over their sum."""
    x = lucid.tensor(np.eye(3, dtype="float32").reshape(3, 1, 1, 3))
    y = interpolate(x, (1, 1), mode=mode, align_corners=True, antialias=True)
    assert y.flatten().tolist() == pytest.approx(weights)
