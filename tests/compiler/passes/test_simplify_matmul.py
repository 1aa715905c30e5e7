"""simplify_matmul, as text: products with a shared operand are merged, identities dropped."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.compiler.compile import compile_graph
from lucid.compiler.passes.pipeline import stages
from lucid.compiler.passes.simplify import simplify
from lucid.ir import evaluate, parse, verify

SIMPLER = {
    "a matrix times many vectors is one product": (
        """graph f(x: f32[4,3], y: f32[5,3,1]):
    %0: f32[5,4,1] = matmul x y
    return %0""",
        """graph f(x: f32[4,3], y: f32[5,3,1]):
    %0: f32[5,3]   = reshape[shape=(5,3)] y
    %1: f32[3,4]   = transpose[permutation=(1,0)] x
    %2: f32[5,4]   = matmul %0 %1
    %3: f32[5,4,1] = reshape[shape=(5,4,1)] %2
    return %3""",
    ),
    "a sum of products is one product": (
        """graph f(x: f32[5,4,3], y: f32[5,4,2]):
    %0: f32[5,3,4] = transpose[permutation=(0,2,1)] x
    %1: f32[5,3,2] = matmul %0 y
    %2: f32[3,2]   = sum[axes=(0,)] %1
    return %2""",
        """graph f(x: f32[5,4,3], y: f32[5,4,2]):
    %0: f32[20,3] = reshape[shape=(20,3)] x
    %1: f32[20,2] = reshape[shape=(20,2)] y
    %2: f32[3,20] = transpose[permutation=(1,0)] %0
    %3: f32[3,2]  = matmul %2 %1
    return %3""",
    ),
    "a product with an identity is its other operand": (
        """graph f(x: f32[3,4]):
    %0: i64[4,4]  = iota[shape=(4,4), axis=0, dtype='i64']
    %1: i64[4,4]  = iota[shape=(4,4), axis=1, dtype='i64']
    %2: bool[4,4] = eq %0 %1
    %3: f32[4,4]  = cast[dtype='f32'] %2
    %4: f32[3,4]  = matmul x %3
    return %4""",
        """graph f(x: f32[3,4]):
    return x""",
    ),
}  # fmt: skip

LEFT_ALONE = {
    "indices that are shifted": """graph f(x: f32[3,4]):
    %0: i64[4,4]  = iota[shape=(4,4), axis=0, dtype='i64']
    %1: i64[4,4]  = iota[shape=(4,4), axis=1, dtype='i64']
    %2: i64[4,4]  = add %1 1
    %3: bool[4,4] = eq %0 %2
    %4: f32[4,4]  = cast[dtype='f32'] %3
    %5: f32[3,4]  = matmul x %4
    return %5""",
    "a sum over rows of the products": """graph f(x: f32[5,4,3], y: f32[5,4,2]):
    %0: f32[5,3,4] = transpose[permutation=(0,2,1)] x
    %1: f32[5,3,2] = matmul %0 y
    %2: f32[5,2]   = sum[axes=(1,)] %1
    return %2""",
    "matrices that share an operand": """graph f(x: f32[4,3], y: f32[5,3,2]):
    %0: f32[5,4,2] = matmul x y
    return %0""",
}


@pytest.mark.parametrize("name", SIMPLER)
def test_products_that_become_simpler(name):
    before, after = map(parse, SIMPLER[name])
    assert str(verify(simplify(before))) == str(after)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=var.type.shape).astype(var.type.dtype) for var in before.inputs]
    for got, want in zip(compile_graph(before)(arrays), evaluate(before, *arrays)):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_products_that_are_left_alone(name):
    graph = parse(LEFT_ALONE[name])
    assert str(simplify(graph)) == str(graph)


def test_the_hessian_of_a_linear_model_has_no_product_with_basis_vectors():
    x, y = lucid.ones(30, 5), lucid.ones(30)

    def loss(w):
        return lucid.exp(-y * (x @ w)).mean()

    graph = lucid.ir.trace(lucid.func.hessian(loss))(lucid.ones(5))
    products = [
        eqn for eqn in stages(graph)["copies_inserted"].equations if eqn.op.name == "matmul"
    ]
    assert [eqn.outputs[0].type.shape for eqn in products] == [(30,), (5, 5)]
