"""decompose: text in, text out."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.compiler.passes.expand.decompose import decompose
from lucid.ir import evaluate, parse, verify
from lucid.ir.graph import Equation, Graph, Var
from lucid.ops.higher_order.call import Call


def decomposed(text: str) -> str:
    return str(verify(decompose(parse(text))).stripped())


def graph(inputs: str, body: str, result: str = "%0") -> str:
    lines = "".join(f"    {line.strip()}\n" for line in body.strip().splitlines())
    return str(parse(f"graph f({inputs}):\n{lines}    return {result}"))


def test_logsumexp_is_a_shifted_sum():
    text = graph("x: f32[2,3]", "%0: f32[2] = logsumexp[axes=(1,)] x")
    assert decomposed(text) == graph(
        "x: f32[2,3]",
        """
        %0: f32[2] = max[axes=(1,)] x
        %1: bool[2] = isfinite %0
        %2: f32[2] = where %1 %0 0.0:f32
        %3: f32[2,3] = broadcast[shape=(2, 3), axes=(0,)] %2
        %4: f32[2,3] = sub x %3
        %5: f32[2,3] = exp %4
        %6: f32[2] = sum[axes=(1,)] %5
        %7: f32[2] = log %6
        %8: f32[2] = add %7 %2
        """,
        "%8",
    )


def test_argmax_of_integers_is_the_least_index_of_the_maximum():
    text = graph("x: i32[4]", "%0: i64[] = argmax[axis=0] x")
    assert decomposed(text) == graph(
        "x: i32[4]",
        """
        %0: i32[] = max[axes=(0,)] x
        %1: i32[4] = broadcast[shape=(4,), axes=()] %0
        %2: bool[4] = eq x %1
        %3: i32[4] = iota[shape=(4,), axis=0, dtype='i32']
        %4: i32[4] = where %2 %3 4:i32
        %5: i32[] = min[axes=(0,)] %4
        %6: i64[] = cast[dtype='i64'] %5
        """,
        "%6",
    )


def test_einsum_of_two_is_a_matmul():
    text = graph("x: f32[2,3], y: f32[4,3]", "%0: f32[4,2] = einsum[equation='ab,cb->ca'] x y")
    assert decomposed(text) == graph(
        "x: f32[2,3], y: f32[4,3]",
        """
        %0: f32[3,4] = transpose[permutation=(1, 0)] y
        %1: f32[2,4] = matmul x %0
        %2: f32[4,2] = transpose[permutation=(1, 0)] %1
        """,
        "%2",
    )


def test_a_diagonal_is_every_fifth_of_sixteen():
    text = graph("x: f32[4,4]", "%0: f32[4] = einsum[equation='aa->a'] x")
    assert decomposed(text) == graph(
        "x: f32[4,4]",
        """
        %0: f32[16] = reshape[shape=(16,)] x
        %1: f32[4] = slice[starts=(0,), limits=(16,), strides=(5,), drop=()] %0
        """,
        "%1",
    )


def test_an_empty_sum_is_full_of_zeros():
    text = graph("x: f32[2,0]", "%0: f32[2] = sum[axes=(1,)] x")
    full = "%0: f32[2] = full[shape=(2,), dtype='f32'] 0.0:f32"
    assert decomposed(text) == graph("x: f32[2,0]", full)


def test_a_product_of_integers_is_a_sum():
    text = graph("x: i64[2,3], y: i64[3]", "%0: i64[2] = matmul x y")
    assert "matmul" not in decomposed(text)


@pytest.mark.parametrize(
    "equation",
    ["aab->b", "a->aa", "ab->aabb", "ab,bc,cd->ad", "aab,bcc->ca", "ab,cb->ca", "abc,abc->a",
     "a,b->ab", "aaa->a", "ab->baa", "abcd,cd->abd", "ab,,b->a", "a,a->"],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["f64", "i64", "bool"])
def test_an_einsum_written_out_has_its_value(equation, dtype):
    inputs, _, out = equation.partition("->")
    sizes = dict(zip("abcd", (3, 2, 4, 5)))
    rng = np.random.default_rng(0)
    long = {"f64": "float64", "i64": "int64", "bool": "bool"}[dtype]
    arrays = [
        rng.integers(-4, 5, [sizes[name] for name in term]).astype(long)
        for term in inputs.split(",")
    ]
    names = [f"x{i}: {dtype}[{','.join(map(str, x.shape))}]" for i, x in enumerate(arrays)]
    shape = ",".join(str(sizes[name]) for name in out)
    operands = " ".join(f"x{i}" for i in range(len(arrays)))
    text = graph(
        ", ".join(names), f"%0: {dtype}[{shape}] = einsum[equation='{equation}'] {operands}"
    )
    whole = parse(text)
    parts = verify(decompose(whole))
    assert not any(eqn.op.name == "einsum" for eqn in parts.equations)
    np.testing.assert_array_equal(evaluate(parts, *arrays)[0], evaluate(whole, *arrays)[0])


def test_a_called_graph_is_written_out_each_time_with_vars_of_its_own():
    inner = parse(graph("a: f32[2]", "%0: f32[2] = sin a\n%1: f32[2] = mul %0 %0", "%1"))
    x, y, z = (Var(inner.inputs[0].type, name) for name in ("x", "", ""))
    calls = (Equation(Call(inner), (x,), (y,)), Equation(Call(inner), (y,), (z,)))
    text = str(verify(decompose(Graph("f", (x,), calls, (z,)))))
    assert text == graph(
        "x: f32[2]",
        """
        %0: f32[2] = sin x
        %1: f32[2] = mul %0 %0
        %2: f32[2] = sin %1
        %3: f32[2] = mul %2 %2
        """,
        "%3",
    )


SCAN = """graph f(a: f32[], c: f32[], x: f32[{n}]):
    %0: f32[], %1: f32[{n}] = scan[body=@0, n_consts=1, n_carry=1, length={n}, reverse=True] a c x
    return %0, %1
graph @0(a: f32[], c: f32[], x: f32[]):
    %0: f32[] = mul a x
    %1: f32[] = add c %0
    return %1, %0"""


def test_a_scan_of_one_step_is_its_body():
    assert decomposed(SCAN.format(n=1)) == graph(
        "a: f32[], c: f32[], x: f32[1]",
        """
        %0: f32[] = reshape[shape=()] x
        %1: f32[] = mul a %0
        %2: f32[] = add c %1
        %3: f32[1] = reshape[shape=(1,)] %1
        """,
        "%2, %3",
    )


def test_a_scan_of_two_steps_is_left_alone():
    text = str(parse(SCAN.format(n=2)).stripped())
    assert decomposed(text) == text
