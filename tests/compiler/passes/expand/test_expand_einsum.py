"""Einsums as equations, text in and text out: products of pairs, diagonals and sums."""

from __future__ import annotations

from lucid.compiler.passes.expand.decompose import decompose
from tests.compiler.passes.texts import after


def test_a_chain_of_matrices_is_two_products():
    text = """graph f(a: f32[2,3], b: f32[3,4], c: f32[4,5]):
    %0: f32[2,5] = einsum[equation='ab,bc,cd->ad'] a b c
    return %0"""
    assert after(decompose, text).count("matmul") == 2


def test_a_trace_is_the_sum_of_a_strided_slice():
    text = """graph f(a: f32[3,3]):
    %0: f32[] = einsum[equation='aa->'] a
    return %0"""
    expected = """graph f(a: f32[3,3]):
    %0: f32[9] = reshape[shape=(9,)] a
    %1: f32[3] = slice[starts=(0,), limits=(9,), strides=(4,), drop=()] %0
    %2: f32[]  = sum[axes=(0,)] %1
    return %2"""
    assert after(decompose, text) == expected


def test_a_product_without_a_sum_is_elementwise():
    text = """graph f(a: f32[2,3], b: f32[2,3]):
    %0: f32[2,3] = einsum[equation='ab,ab->ab'] a b
    return %0"""
    expected = """graph f(a: f32[2,3], b: f32[2,3]):
    %0: f32[2,3] = mul a b
    return %0"""
    assert after(decompose, text) == expected
