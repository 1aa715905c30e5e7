"""promote_float16: float16 is stored as such, computed in float32, and nothing is left to NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.compiler.compile import compile_graph
from lucid.compiler.plan.executable import Segment
from lucid.ir import evaluate, parse
from tests.compiler.agreement import same_bits

BITS = np.arange(2**16, dtype="uint16").view("float16")


def run(graph, *arrays):
    program = compile_graph(graph)
    assert all(isinstance(part, Segment) for part in program.parts), "a part is interpreted"
    return program([np.asarray(x) for x in arrays])


def conversion(source: str, target: str, n: int):
    return parse(f"""graph f(x: {source}[{n}]):
    %0: {target}[{n}] = cast[dtype='{target}'] x
    return %0""")


@pytest.mark.parametrize("target", ["f32", "f64"])
def test_every_half_is_converted_exactly(target):
    (got,) = run(conversion("f16", target, BITS.size), BITS)
    assert same_bits(got, BITS.astype(got.dtype))


def near_halves(dtype: str) -> np.ndarray:
    """Numbers at, just below and just above the middle between two halves, and extremes."""
    x = BITS[np.isfinite(BITS)].astype(dtype)
    with np.errstate(all="ignore"):
        middle = (x + np.nextafter(x.astype("float16"), np.float16(np.inf)).astype(dtype)) / 2
        around = [middle, np.nextafter(middle, dtype("inf")), np.nextafter(middle, dtype("-inf"))]
    edges = [np.inf, -np.inf, np.nan, 65504, 65519.99, 65520, 1e30, -1e30, 5e-8, -1e-40, 0.0, -0.0]
    return np.concatenate([x, *around, np.array(edges, dtype)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_are_rounded_to_halves_once(dtype):
    x = near_halves(dtype)
    (got,) = run(conversion("f32" if dtype is np.float32 else "f64", "f16", x.size), x)
    with np.errstate(all="ignore"):
        assert same_bits(got, x.astype("float16"))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "bool"])
def test_integers_become_halves_and_back(dtype):
    x = np.array([0, 1, 2, 100, 2047, 2049, 2051, 65519, 65520, 10**6]).astype(dtype)
    short = {"bool": "bool"}.get(dtype, dtype[0] + dtype.lstrip("uint"))
    (got,) = run(conversion(short, "f16", x.size), x)
    with np.errstate(all="ignore"):
        assert same_bits(got, x.astype("float16"))
    back = np.array([0, 1, -1.5, 99.9, 127], "float16")
    if dtype not in ("uint8", "bool"):
        (got,) = run(conversion("f16", short, back.size), back)
        assert got.tolist() == back.astype(dtype).tolist()


def half(*shape: int) -> lucid.Tensor:
    x = np.random.default_rng(sum(shape)).normal(size=shape)
    return lucid.tensor(x.astype("float16"))


EXACT = {
    "arithmetic": lambda x, y: (x + y) * x / (y * y + 1) - x,
    "comparisons": lambda x, y: lucid.where(x > y, x, y),
    "numbers": lambda x, y: x * 0.1 + 3,
    "movement": lambda x, y: lucid.cat([x.T, lucid.pad(y.T, (1, 2, 0, 1))[:, 3:]], 0)[2:, ::2],
    "extrema": lambda x, y: (x.amax(1), y.amin(0), lucid.argmax(x, 1)),
    "sort": lambda x, y: lucid.sort(x, 1),
    "gather": lambda x, y: x.gather(1, lucid.argsort(y, 1)),
    "flip": lambda x, y: lucid.flip(x, (0,)) - y,
}  # fmt: skip
CLOSE = {
    "functions": lambda x, y: lucid.exp(x) + lucid.sin(y),
    "softmax": lambda x, y: lucid.softmax(x, 1),
    "mean": lambda x, y: (x.mean(), y.sum(0)),
    "product": lambda x, y: x @ y.T,
    "cumsum": lambda x, y: lucid.cumsum(x, 1),
    "gradient": lucid.func.grad(
        lambda x, y: lucid.log_softmax(x @ y.T, 1)[:, 0].mean(), argnums=(0, 1)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [*EXACT, *CLOSE])
def test_compiled_halves_are_the_interpreted_ones(name):
    x, y = half(6, 9), half(6, 9)
    f = {**EXACT, **CLOSE}[name]
    graph = lucid.ir.trace(f)(x, y)
    arrays = [np.asarray(x), np.asarray(y)]
    for got, want in zip(run(graph, *arrays), evaluate(graph, *arrays)):
        assert got.dtype == want.dtype
        if name in EXACT:
            assert same_bits(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=4e-3, atol=4e-3)


def test_the_next_half_is_not_the_next_float():
    graph = parse("""graph f(x: f16[2]):
    %0: f16[2] = nextafter x 2.0
    return %0""")
    x = np.array([1.0, 0.0], "float16")
    (got,) = compile_graph(graph)([x])
    assert same_bits(got, np.nextafter(x, np.float16(2)))
