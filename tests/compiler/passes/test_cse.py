"""cse, text in and text out: equal equations become one."""

from __future__ import annotations

import lucid
from lucid.compiler.passes.cse import cse
from lucid.ir import parse, verify


def after_cse(text: str) -> str:
    return str(verify(cse(parse(text))))


def test_equal_equations_are_one():
    assert (
        after_cse("""graph f(x: f32[3]):
    %0: f32[3] = exp x
    %1: f32[3] = exp x
    %2: f32[3] = add %0 %1
    return %2""")
        == """graph f(x: f32[3]):
    %0: f32[3] = exp x
    %1: f32[3] = add %0 %0
    return %1"""
    )


def test_what_follows_from_equal_equations_is_equal_too():
    assert (
        after_cse("""graph f(x: f32[3]):
    %0: f32[3] = exp x
    %1: f32[3] = exp x
    %2: f32[3] = mul %0 2.0
    %3: f32[3] = mul %1 2.0
    return %2, %3""")
        == """graph f(x: f32[3]):
    %0: f32[3] = exp x
    %1: f32[3] = mul %0 2.0
    return %1, %1"""
    )


def test_parameters_operands_and_their_order_tell_equations_apart():
    text = """graph f(x: f32[2,2], y: f32[2,2]):
    %0: f32[2]   = sum[axes=(0,)] x
    %1: f32[2]   = sum[axes=(1,)] x
    %2: f32[2,2] = sub x y
    %3: f32[2,2] = sub y x
    return %0, %1, %2, %3"""
    assert after_cse(text) == text


def test_zeros_of_two_signs_and_dtypes_are_different_literals():
    text = """graph f(x: f32[2]):
    %0: f32[2] = add x 0.0
    %1: f32[2] = add x -0.0
    %2: f32[2] = full[shape=(2,), dtype='f32'] 1.0:f32
    %3: f64[2] = full[shape=(2,), dtype='f64'] 1.0:f64
    return %0, %1, %2, %3"""
    assert after_cse(text) == text


def test_equations_with_several_results_are_shared():
    graph = lucid.ir.trace(lambda x: (lucid.topk(x, 2)[0], lucid.topk(x, 2)[1]))(lucid.ones(5))
    assert len(graph.equations) == 2
    small = verify(cse(graph))
    assert len(small.equations) == 1
    assert small.outputs == small.equations[0].outputs


def test_what_nobody_reads_any_more_is_left_out():
    assert (
        after_cse("""graph f(x: f32[3]):
    %0: f32[3] = exp x
    %1: f32[3] = sin x
    return %0""")
        == """graph f(x: f32[3]):
    %0: f32[3] = exp x
    return %0"""
    )
