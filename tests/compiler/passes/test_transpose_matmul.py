"""transpose_matmul, text in and text out: a product that is read transposed is computed so."""

from __future__ import annotations

from lucid.compiler.passes.transpose_matmul import transpose_matmul
from tests.compiler.passes.texts import after


def test_the_gradient_of_a_weight_is_computed_in_the_layout_of_the_weight():
    text = """graph f(x: f32[4,2], ct: f32[4,3]):
    %0: f32[2,4] = transpose[permutation=(1,0)] x
    %1: f32[2,3] = matmul %0 ct
    %2: f32[3,2] = transpose[permutation=(1,0)] %1
    %3: f32[3,2] = mul %2 0.1
    return %3"""
    expected = """graph f(x: f32[4,2], ct: f32[4,3]):
    %0: f32[3,4] = transpose[permutation=(1,0)] ct
    %1: f32[3,2] = matmul %0 x
    %2: f32[3,2] = mul %1 0.1
    return %2"""
    assert after(transpose_matmul, text) == expected


def test_a_reader_that_takes_any_layout_leaves_the_product_alone():
    text = """graph f(x: f32[2,4], y: f32[4,3], z: f32[2]):
    %0: f32[2,3] = matmul x y
    %1: f32[3,2] = transpose[permutation=(1,0)] %0
    %2: f32[3]   = matmul %1 z
    return %2"""
    assert after(transpose_matmul, text) == text


def test_a_product_that_others_read_as_it_is_stays():
    text = """graph f(x: f32[2,4], y: f32[4,3]):
    %0: f32[2,3] = matmul x y
    %1: f32[3,2] = transpose[permutation=(1,0)] %0
    return %0, %1"""
    assert after(transpose_matmul, text) == text
