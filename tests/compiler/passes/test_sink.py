"""sink, as text: slices, pads and concatenates of computed values apply to their operands."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.compiler.compile import compile_graph
from lucid.compiler.inspect.fused_text import count_steps
from lucid.compiler.passes.pipeline import stages
from lucid.compiler.passes.sink import sink
from lucid.ir import evaluate, parse, verify
from tests.compiler.agreement import same_bits


def sunk(text: str) -> str:
    return str(verify(sink(parse(text))))


def test_a_slice_of_a_result_is_a_result_of_slices():
    assert (
        sunk("""graph f(x: f32[9], y: f32[9]):
    %0: f32[9] = mul x y
    %1: f32[4] = slice[starts=(2,), limits=(6,), strides=(1,), drop=()] %0
    %2: f32[]  = sum[axes=(0,)] %1
    return %2""")
        == """\
graph f(x: f32[9], y: f32[9]):
    %0: f32[4] = slice[starts=(2,), limits=(6,), strides=(1,), drop=()] x
    %1: f32[4] = slice[starts=(2,), limits=(6,), strides=(1,), drop=()] y
    %2: f32[4] = mul %0 %1
    %3: f32[]  = sum[axes=(0,)] %2
    return %3"""
    )


def test_a_padded_result_is_chosen_where_the_index_lies_inside():
    assert (
        sunk("""graph f(x: f32[4,3], y: f32[3]):
    %0: f32[4,3] = add x y
    %1: f32[7,3] = pad[low=(1,0), high=(2,0), interior=(0,0)] %0
    return %1""")
        == """\
graph f(x: f32[4,3], y: f32[3]):
    %0: f32[7,3]  = pad[low=(1,0), high=(2,0), interior=(0,0)] x
    %1: f32[7,3]  = add %0 y
    %2: i32[7,3]  = iota[shape=(7,3), axis=0, dtype='i32']
    %3: bool[7,3] = ge %2 1
    %4: bool[7,3] = lt %2 5
    %5: bool[7,3] = bitwise_and %3 %4
    %6: f32[7,3]  = where %5 %1 0.0:f32
    return %6"""
    )


LEFT_ALONE = {
    "a product of two arrays in one of three parts of a pad": """graph f(x: f32[4,3], y: f32[4,3]):
    %0: f32[4,3] = mul x y
    %1: f32[4,9] = pad[low=(0,3), high=(0,3), interior=(0,0)] %0
    return %1""",
    "an exponential that is needed whole as well": """graph f(x: f32[9]):
    %0: f32[9] = exp x
    %1: f32[8] = slice[starts=(1,), limits=(9,), strides=(1,), drop=()] %0
    %2: f32[8] = slice[starts=(0,), limits=(8,), strides=(1,), drop=()] %0
    %3: f32[8] = sub %1 %2
    return %3""",
    "a result that lies in memory anyway": """graph f(x: f32[9]):
    %0: f32[9] = mul x x
    %1: f32[11] = pad[low=(1,), high=(1,), interior=(0,)] %0
    return %0, %1""",
    "a slice that no loop reads": """graph f(x: f32[9,9]):
    %0: f32[9,9] = mul x x
    %1: f32[4,9] = slice[starts=(0,0), limits=(4,9), strides=(1,1), drop=()] %0
    %2: f32[4,9] = matmul %1 x
    return %2""",
    "zeros between elements": """graph f(x: f32[9]):
    %0: f32[9] = mul x x
    %1: f32[17] = pad[low=(0,), high=(0,), interior=(1,)] %0
    return %1""",
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_is_left_alone(name):
    text = str(parse(LEFT_ALONE[name]))
    assert sunk(text) == text


def test_a_window_of_an_index_begins_where_the_window_does():
    graph = parse("""graph f(x: i32[4]):
    %0: i32[7] = iota[shape=(7,), axis=0, dtype='i32']
    %1: i32[7] = mul %0 %0
    %2: i32[4] = slice[starts=(2,), limits=(6,), strides=(1,), drop=()] %1
    %3: i32[4] = add %2 x
    return %3""")
    x = np.arange(4, dtype="int32")
    assert count_steps(stages(graph)["copies_inserted"]) == (1, 0)
    assert compile_graph(graph)([x])[0].tolist() == [4, 10, 18, 28]


def test_a_window_of_a_comparison_with_an_index_compares_with_another_number():
    assert (
        sunk("""graph f(x: f32[9]):
    %0: i32[9]  = iota[shape=(9,), axis=0, dtype='i32']
    %1: bool[9] = lt %0 5
    %2: f32[9]  = where %1 x 0.0:f32
    %3: f32[4]  = slice[starts=(2,), limits=(6,), strides=(1,), drop=()] %2
    %4: f32[]   = sum[axes=(0,)] %3
    return %4""")
        == """\
graph f(x: f32[9]):
    %0: i32[4]  = iota[shape=(4,), axis=0, dtype='i32']
    %1: bool[4] = lt %0 3
    %2: f32[4]  = slice[starts=(2,), limits=(6,), strides=(1,), drop=()] x
    %3: f32[4]  = where %1 %2 0.0:f32
    %4: f32[]   = sum[axes=(0,)] %3
    return %4"""
    )


@pytest.mark.parametrize("op", ["lt", "ge"])
@pytest.mark.parametrize("bound", [-1, 0, 2, 3, 6, 9, 2**31 - 1])
def test_windows_of_comparisons_hold_where_the_comparisons_do(op, bound):
    graph = parse(f"""graph f(x: f32[9]):
    %0: i32[9]  = iota[shape=(9,), axis=0, dtype='i32']
    %1: bool[9] = {op} %0 {bound}:i32
    %2: f32[9]  = where %1 x 0.0:f32
    %3: f32[11] = pad[low=(4,), high=(-2,), interior=(0,)] %2
    %4: f32[11] = mul %3 %3
    return %4""")
    x = np.arange(1, 10, dtype="float32")
    chosen = np.where(np.arange(9) < bound if op == "lt" else np.arange(9) >= bound, x, 0)
    assert count_steps(stages(graph)["copies_inserted"]) == (1, 0)
    assert compile_graph(graph)([x])[0].tolist() == [0, 0, 0, 0, *(chosen[:7] ** 2)]


def test_views_and_comparisons_of_indices_are_not_counted_as_work():
    """Seven shifts take seven products and selections, which one kernel computes."""

    def shifted(x):
        y = x
        for _ in range(7):
            y = lucid.cat([x[:1], y[:-1] * 2.0])
        return y + 1.0

    graph = lucid.ir.trace(shifted)(np.zeros(9))
    assert count_steps(stages(graph)["copies_inserted"]) == (1, 0)
    run = compile_graph(graph)
    for x in np.random.default_rng(0).normal(size=(3, 9)):
        powers = 2.0 ** np.arange(7)
        assert run([x])[0].tolist() == [*(x[0] * powers + 1.0), *(x[:2] * 2.0**7 + 1.0)]


def neighbors(x):
    return ((x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def smooth(x):
    return (x[1:, 1:] * x[:-1, :-1] - x[1:, :-1]).sum()


A, B = (
    lucid.tensor(np.linspace(-2, 3, 35).reshape(7, 5)),
    lucid.tensor(np.linspace(1, 2, 15).reshape(3, 5)),
)
PROGRAMS = {
    "gradient of neighbors": (lucid.func.grad(neighbors), (A[:, 0] + 0,)),
    "gradient in two axes": (lucid.func.grad(smooth), (A,)),
    "gradient of a gradient": (
        lucid.func.grad(lambda x: (lucid.func.grad(smooth)(x) ** 2).sum()), (A,)
    ),
    "joined": (lambda a, b: lucid.cat([a * 2, b + 1, a[:2]], 0) ** 2, (A, B)),
    "rolled": (lambda a: lucid.roll(a * 3, (2, 3), (0, 1)) - a, (A,)),
    "padded and cut": (lambda a: lucid.pad(a * a, (1, 2, -2, 3)) + 1, (A,)),
    "padded in an axis of size 1": (lambda a: lucid.pad(a[:1] - 1, (0, 0, 2, 1)) * a[:4], (A,)),
    "padded twice": (lambda a: lucid.pad(lucid.pad(a * 2, (1, 0)) * 3, (0, 1, 2, 2)) - 1, (A,)),
    "a slice with an axis dropped": (lambda a: (a * 2)[3] + (a - 1)[2:5, 1].sum(), (A,)),
    "broadcast": (lambda a: lucid.pad((a[:, :1] * 2).expand(7, 5) + 1, (1, 1)) * 2, (A,)),
    "transposed": (lambda a: (a * 2).T[1:4] + lucid.pad(a, (0, 0, 0, -4)).sum(), (A,)),
    "infinities outside": (lambda a: lucid.pad(1 / a[1:-1], (1, 1, 1, 1)) * 2, (A * 0 + 1,)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_the_same_to_the_bit(name):
    f, args = PROGRAMS[name]
    graph = lucid.ir.trace(f)(*args)
    arrays = [np.asarray(x) for x in args]
    for got, want in zip(compile_graph(graph)(arrays), evaluate(graph, *arrays)):
        if "sum" in str(graph):
            np.testing.assert_allclose(got, want, rtol=1e-13)
        else:
            assert same_bits(got, want)


@pytest.mark.parametrize(
    "name", ["gradient of neighbors", "gradient in two axes", "joined", "rolled"]
)
def test_they_are_one_kernel_without_memory_between(name):
    f, args = PROGRAMS[name]
    assert count_steps(stages(lucid.ir.trace(f)(*args))["copies_inserted"]) == (1, 0)


def test_long_chains_of_movement_are_no_trouble():
    lines = ["graph f(x: f32[9]):"]
    before = "x"
    for i in range(0, 6000, 3):
        lines += [
            f"    %{i}: f32[8] = slice[starts=(1,), limits=(9,), strides=(1,), drop=()] {before}",
            f"    %{i + 1}: f32[9] = pad[low=(0,), high=(1,), interior=(0,)] %{i}",
            f"    %{i + 2}: f32[9] = neg %{i + 1}",
        ]
        before = f"%{i + 2}"
    graph = parse("\n".join([*lines, f"    return {before}"]))
    verify(sink(graph))
