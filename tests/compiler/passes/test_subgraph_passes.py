"""recursive: a pass runs over a Graph and the Graphs of its branches and loops."""

from __future__ import annotations

from lucid.compiler.passes.cse import cse
from lucid.compiler.passes.subgraph_passes import recursive, subgraphs
from lucid.ir import parse
from tests.compiler.passes.texts import after

TEXT = """graph f(xs: f32[5], c0: f32[]):
    %0: f32[] = scan[body=@0, n_consts=0, n_carry=1, length=5, reverse=False] c0 xs
    return %0
graph @0(c: f32[], x: f32[]):
    %0: f32[] = sin x
    %1: f32[] = sin x
    %2: f32[] = mul %0 %1
    %3: f32[] = add c %2
    return %3"""


def test_the_body_of_a_loop_is_rewritten_too():
    expected = """graph f(xs: f32[5], c0: f32[]):
    %0: f32[] = scan[body=@0, n_consts=0, n_carry=1, length=5, reverse=False] c0 xs
    return %0
graph @0(c: f32[], x: f32[]):
    %0: f32[] = sin x
    %1: f32[] = mul %0 %0
    %2: f32[] = add c %1
    return %2"""
    assert after(recursive(cse), TEXT) == expected
    assert after(cse, TEXT) == TEXT


def test_the_graphs_of_an_equation_are_found():
    (eqn,) = parse(TEXT).equations
    assert [len(graph.equations) for graph in subgraphs(eqn)] == [4]
