"""hoist, text in and text out: products that do not depend on the carry leave their loop."""

from __future__ import annotations

from lucid.compiler.passes.loops.hoist import hoist
from tests.compiler.passes.texts import after


def test_a_product_of_scanned_rows_is_one_product_before_the_loop():
    text = """graph f(xs: f32[5,2], w: f32[2,3], c: f32[3]):
    %0: f32[3], %1: f32[5,3] = scan[body=@0, n_consts=1, n_carry=1, length=5, reverse=False] w c xs
    return %0, %1
graph @0(c0: f32[2,3], c: f32[3], x: f32[2]):
    %0: f32[3] = matmul x c0
    %1: f32[3] = add c %0
    %2: f32[3] = tanh %1
    return %2, c"""
    expected = """graph f(xs: f32[5,2], w: f32[2,3], c: f32[3]):
    %0: f32[5,3]             = matmul xs w
    %1: f32[3], %2: f32[5,3] = scan[body=@0, n_consts=0, n_carry=1, length=5, reverse=False] c %0
    return %1, %2
graph @0(c: f32[3], x1: f32[3]):
    %0: f32[3] = add c x1
    %1: f32[3] = tanh %0
    return %1, c"""
    assert after(hoist, text) == expected


def test_a_product_with_the_carry_stays_and_its_weight_is_transposed_once():
    text = """graph f(xs: f32[5,3], w: f32[3,3], c: f32[3]):
    %0: f32[3], %1: f32[5,3] = scan[body=@0, n_consts=1, n_carry=1, length=5, reverse=False] w c xs
    return %0, %1
graph @0(c0: f32[3,3], c: f32[3], x: f32[3]):
    %0: f32[3,3] = transpose[permutation=(1,0)] c0
    %1: f32[3]   = matmul c %0
    %2: f32[3]   = add %1 x
    return %2, c"""
    expected = """graph f(xs: f32[5,3], w: f32[3,3], c: f32[3]):
    %0: f32[3,3]             = transpose[permutation=(1,0)] w
    %1: f32[3], %2: f32[5,3] = scan[body=@0, n_consts=1, n_carry=1, length=5, reverse=False] %0 c xs
    return %1, %2
graph @0(x0: f32[3,3], c: f32[3], x: f32[3]):
    %0: f32[3] = matmul c x0
    %1: f32[3] = add %0 x
    return %1, c"""
    assert after(hoist, text) == expected


def test_products_of_all_steps_are_one_batched_product():
    text = """graph f(ps: f32[5,2], qs: f32[5,3], c0: f32[2,3]):
    %0: f32[2,3] = scan[body=@0, n_consts=0, n_carry=1, length=5, reverse=False] c0 ps qs
    return %0
graph @0(t: f32[2,3], p: f32[2], q: f32[3]):
    %0: f32[2,1] = reshape[shape=(2,1)] p
    %1: f32[1,3] = reshape[shape=(1,3)] q
    %2: f32[2,3] = matmul %0 %1
    %3: f32[2,3] = add t %2
    return %3"""
    expected = """graph f(ps: f32[5,2], qs: f32[5,3], c0: f32[2,3]):
    %0: f32[5,2,1] = reshape[shape=(5,2,1)] ps
    %1: f32[5,1,3] = reshape[shape=(5,1,3)] qs
    %2: f32[5,2,3] = matmul %0 %1
    %3: f32[2,3]   = scan[body=@0, n_consts=0, n_carry=1, length=5, reverse=False] c0 %2
    return %3
graph @0(t: f32[2,3], x1: f32[2,3]):
    %0: f32[2,3] = add t x1
    return %0"""
    assert after(hoist, text) == expected
