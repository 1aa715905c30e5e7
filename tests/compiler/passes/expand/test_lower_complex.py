"""lower_complex: text in, text out, and NumPy's values."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from lucid.compiler.compile import compile_graph
from lucid.compiler.passes.expand.lower_complex import lower_complex
from lucid.compiler.plan.executable import Segment
from lucid.ir import evaluate, parse, verify
from lucid.ops.core.kinds import Scale
from lucid.ops.elementwise.arithmetic import Abs, Add, Cast, Div, Mul
from lucid.ops.elementwise.complexes import Conj
from lucid.ops.elementwise.logic import Eq, Isfinite, Isinf, Isnan, Ne
from lucid.ops.linalg.contraction import Einsum, Matmul
from lucid.ops.reduce.cumulative import Cumprod
from lucid.ops.reduce.reduction import AllTrue, AnyTrue, Prod, Sum
from tests.compiler.lowering.lowering_checks import compiled


def text_of(text: str) -> str:
    return str(verify(lower_complex(parse(text))).stripped())


def test_a_product_is_written_with_its_parts():
    text = """graph f(x: c64[3], y: c64[3]):
    %0: c64[3] = mul x y
    %1: f32[3] = real %0
    return %1"""
    assert text_of(text) == str(
        parse("""graph f(x: c64[3], y: c64[3]):
    %0: f32[3] = real x
    %1: f32[3] = imag x
    %2: f32[3] = real y
    %3: f32[3] = imag y
    %4: f32[3] = mul %0 %2
    %5: f32[3] = mul %1 %3
    %6: f32[3] = sub %4 %5
    return %6""")
    )


def test_what_has_no_rule_takes_whole_values():
    text = """graph f(x: c64[3]):
    %0: c64[3] = neg x
    %1: c64[3] = tan %0
    %2: c64[3] = conj %1
    return %2"""
    found = parse(text_of(text))
    assert [eqn.op.name for eqn in found.equations] == [
        "real", "imag", "neg", "neg", "complex", "tan", "real", "imag", "neg", "complex",
    ]  # fmt: skip


def test_real_programs_stay_as_they_are():
    graph = parse("graph f(x: f32[3]):\n    %0: f32[3] = neg x\n    return %0")
    assert lower_complex(graph) is graph


EDGES = [0.0, -0.0, 1.0, -2.5, 1e30, 1e-30, np.inf, -np.inf, np.nan]


def edges() -> tuple[np.ndarray, np.ndarray]:
    numbers = np.array([complex(a, b) for a, b in itertools.product(EDGES, EDGES)])
    x, y = np.meshgrid(numbers, numbers)
    return x.copy(), y.copy()


def agree(op, *arrays) -> None:
    got = compiled(op, *arrays)(arrays)[0]
    with np.errstate(all="ignore"):
        want = np.asarray(op.eval(*arrays))
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("op", [Add(), Mul(), Div(), Scale(), Eq(), Ne()])
def test_pairs_of_remarkable_numbers(op):
    agree(op, *edges())


@pytest.mark.parametrize(
    "op", [Abs(), Conj(), Isnan(), Isinf(), Isfinite(), Cast("bool"), Cast("f32")]
)
def test_remarkable_numbers(op):
    agree(op, edges()[0][0].copy())


def random(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def test_sums_products_and_truth():
    x, y = random(4, 5), random(5, 3)
    agree(Matmul(), x, y)
    agree(Einsum("ab,bc,cd->ad"), x, y, random(3, 2))
    agree(Sum((0,)), x)
    agree(Sum((0,)), random(0, 3))
    agree(AnyTrue((0, 1)), np.zeros((3, 3), complex))
    agree(AllTrue((1,)), x)
    agree(Cast("c128"), x.real.copy())


def test_a_program_on_complex_numbers_is_one_plan():
    text = """graph f(x: c64[8], y: c64[8]):
    %0: c64[8] = mul x y
    %1: c64[8] = add %0 1j:c64
    %2: f32[8] = abs %1
    %3: c64[8] = transpose[permutation=(0,)] x
    return %1, %2, %3"""
    graph = parse(text)
    executable = compile_graph(graph)
    assert all(isinstance(part, Segment) for part in executable.parts)
    arrays = [random(8).astype("complex64"), random(8).astype("complex64")[::-1].copy()]
    for got, want in zip(executable(arrays), evaluate(graph, *arrays)):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("shape", [(1,), (2, 5), (4, 1, 7), (3, 0)])
def test_products_of_complex_numbers_along_axes(shape, rng):
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    for axis in range(len(shape)):
        ops = [Cumprod(axis, reverse, out) for reverse in (False, True) for out in (False, True)]
        for op in [*ops, Prod((axis,)), Prod(tuple(range(axis + 1)))]:
            (found,) = compiled(op, x)([x])
            np.testing.assert_allclose(found, op.eval(x), rtol=1e-12)


def test_a_product_of_what_was_computed_has_no_whole_value():
    text = """graph f(x: c128[2,3]):
    %0: c128[2,3] = neg x
    %1: c128[2] = prod[axes=(1,)] %0
    return %1"""
    assert [eqn.op.name for eqn in parse(text_of(text)).equations].count("complex") == 1


FUNCTIONS = ["exp", "log", "sin", "cos", "sinh", "cosh", "sqrt", "rsqrt"]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_functions_are_as_close_to_numpys_as_their_parts(name, dtype, rng):
    graph = parse(f"graph f(x: {dtype}[4500]):\n    %0: {dtype}[4500] = {name} x\n    return %0")
    sizes = list(itertools.product((1e-3, 1.0, 20.0), repeat=2))
    parts = [rng.standard_normal(500) * a + 1j * rng.standard_normal(500) * b for a, b in sizes]
    x = np.concatenate(parts).astype(graph.inputs[0].type.dtype)
    got = compile_graph(graph)([x])[0]
    function = {"rsqrt": lambda z: 1 / np.sqrt(z)}.get(name) or getattr(np, name)
    want = function(x.astype("complex128"))
    assert np.all(np.abs(got - want) <= 6 * np.finfo(x.dtype).eps * np.abs(want))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_finite_numbers_at_the_edges_are_numpys(name):
    edges = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 1e-30, -1e-30, 80.0, -80.0]
    x = np.array([complex(a, b) for a in edges for b in edges], "complex64")
    graph = parse(f"graph f(x: c64[100]):\n    %0: c64[100] = {name} x\n    return %0")
    got, want = compile_graph(graph)([x])[0], evaluate(graph, x)[0]
    for part in ("real", "imag"):
        a, b = getattr(got, part), getattr(want, part)
        with np.errstate(invalid="ignore"):
            near = np.abs(a - b) <= 8 * np.finfo("f4").eps * np.abs(want)
        assert np.all(near | (a == b) | (np.isnan(a) & np.isnan(b))), (x[~near], a[~near], b[~near])


def test_a_real_exponent_stays_real_even_if_it_is_infinite():
    graph = parse("graph f(x: c64[3]):\n    %0: c64[3] = exp x\n    return %0")
    x = np.array([np.inf, -np.inf, 200.0], "complex64")
    assert compile_graph(graph)([x])[0].tolist() == [np.inf + 0j, 0j, np.inf + 0j]
