"""fold_constants, text in and text out: what depends on constants alone is computed once."""

from __future__ import annotations

import numpy as np

from lucid.compiler.passes.fold_constants import fold_constants
from lucid.ir import evaluate, parse, verify


def folded(text: str, **arrays: np.ndarray) -> tuple[str, list[list[float]]]:
    graph = parse(text)
    known = {var: arrays[var.name] for var in graph.inputs if var.name in arrays}
    out, constants = fold_constants(graph, known)
    given = [np.full(v.type.shape, 1.5, v.type.dtype) for v in graph.inputs if v not in known]
    everything = [known.get(v, given[0] if given else None) for v in graph.inputs]
    for x, y in zip(evaluate(graph, *everything), evaluate(verify(out), *given, *constants)):
        np.testing.assert_array_equal(x, y)
    return str(out), [c.tolist() for c in constants]


def test_arithmetic_of_constants_is_done_and_a_broadcast_stays_small():
    text, constants = folded(
        """graph f(x: f32[3], k: f32[3], m: f32[2]):
    %0: f32[3] = mul k 2.0
    %1: f32[3] = add x %0
    %2: f32[3,2] = broadcast[shape=(3,2), axes=(1,)] m
    %3: f32[3,2] = broadcast[shape=(3,2), axes=(0,)] %1
    %4: f32[3,2] = mul %3 %2
    return %4""",
        k=np.array([1.0, 2.0, 3.0], "float32"),
        m=np.array([5.0, 7.0], "float32"),
    )
    assert (
        text
        == """graph f(x: f32[3], k0: f32[3], k1: f32[2]):
    %0: f32[3,2] = broadcast[shape=(3,2), axes=(1,)] k1
    %1: f32[3]   = add x k0
    %2: f32[3,2] = broadcast[shape=(3,2), axes=(0,)] %1
    %3: f32[3,2] = mul %2 %0
    return %3"""
    )
    assert constants == [[2.0, 4.0, 6.0], [5.0, 7.0]]


def test_a_constant_of_one_number_becomes_that_number():
    text, constants = folded(
        """graph f(x: f32[3], k: f32[3]):
    %0: f32[3] = add x k
    return %0""",
        k=np.full(3, 4.0, "float32"),
    )
    assert (
        text
        == """graph f(x: f32[3]):
    %0: f32[3] = full[shape=(3,), dtype='f32'] 4.0:f32
    %1: f32[3] = add x %0
    return %1"""
    )
    assert constants == []


def test_zeros_of_both_signs_are_not_one_number():
    _, constants = folded(
        """graph f(x: f32[2], k: f32[2]):
    %0: f32[2] = add x k
    return %0""",
        k=np.array([0.0, -0.0], "float32"),
    )
    assert len(constants) == 1
