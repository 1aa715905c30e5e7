"""simplify, text in and text out: what is rewritten, and what is not as it would be unsound."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.compiler.passes.simplify import is_lossless_cast, simplify
from lucid.ir import evaluate, parse, verify


def rewritten(body: str, head: str) -> str:
    """The body of the simplified Graph, one equation a line, without types."""
    lines = str(verify(simplify(parse(text_of(body, head))))).splitlines()[1:]
    return "; ".join(shorter(line) for line in lines)


def shorter(line: str) -> str:
    name, is_equation, right = line.strip().partition(" = ")
    return f"{name.split(':')[0]} = {right.strip()}" if is_equation else line.strip()


def text_of(body: str, head: str) -> str:
    return f"graph f({head}):\n" + "\n".join(f"    {line.strip()}" for line in body.split(";"))


HEAD = "x: f32[2,3], y: f32[2,3], n: i32[4], b: bool[2,3]"
SOUND = {
    "x times 1": ("%0: f32[2,3] = mul x 1.0; return %0", "return x"),
    "1 times x": ("%0: f32[2,3] = mul 1.0 x; return %0", "return x"),
    "x padded by nothing": (
        "%0: f32[2,3] = pad[low=(0,0), high=(0,0), interior=(0,0)] x; return %0",
        "return x",
    ),
    "x over 1": ("%0: f32[2,3] = div x 1.0; return %0", "return x"),
    "x minus 0": ("%0: f32[2,3] = sub x 0.0; return %0", "return x"),
    "x plus -0": ("%0: f32[2,3] = add -0.0 x; return %0", "return x"),
    "n plus 0": ("%0: i32[4] = add n 0; return %0", "return n"),
    "x to the 1": ("%0: f32[2,3] = pow x 1.0; return %0", "return x"),
    "x cubed": ("%0: f32[2,3] = pow x 3.0; return %0", "%0 = mul x x; %1 = mul %0 x; return %1"),
    "x to the -1": ("%0: f32[2,3] = pow x -1.0; return %0", "%0 = div 1.0 x; return %0"),
    "x squared": ("%0: f32[2,3] = pow x 2.0; return %0", "%0 = mul x x; return %0"),
    "x times -1": ("%0: f32[2,3] = mul x -1.0; return %0", "%0 = neg x; return %0"),
    "minus minus x": ("%0: f32[2,3] = neg x; %1: f32[2,3] = neg %0; return %1", "return x"),
    "x plus minus y": (
        "%0: f32[2,3] = neg y; %1: f32[2,3] = add x %0; return %1",
        "%0 = sub x y; return %0",
    ),
    "minus x plus y": (
        "%0: f32[2,3] = neg x; %1: f32[2,3] = add %0 y; return %1",
        "%0 = sub y x; return %0",
    ),
    "x minus minus y": (
        "%0: f32[2,3] = neg y; %1: f32[2,3] = sub x %0; return %1",
        "%0 = add x y; return %0",
    ),
    "minus x times minus y": (
        "%0: f32[2,3] = neg x; %1: f32[2,3] = neg y; %2: f32[2,3] = mul %0 %1; return %2",
        "%0 = mul x y; return %0",
    ),
    "minus x times c": (
        "%0: f32[2,3] = neg x; %1: f32[2,3] = mul %0 0.5; return %1",
        "%0 = mul x -0.5; return %0",
    ),
    "abs of minus x": (
        "%0: f32[2,3] = neg x; %1: f32[2,3] = abs %0; return %1",
        "%0 = abs x; return %0",
    ),
    "not not b": (
        "%0: bool[2,3] = bitwise_not b; %1: bool[2,3] = bitwise_not %0; return %1",
        "return b",
    ),
    "literals": (
        "%0: f32[] = full[shape=(), dtype='f32'] 2.0:f32; %1: f32[] = exp 0.0:f32; "
        "%2: f32[2,3] = mul x %1; return %2",
        "return x",
    ),
    "comparison of literals": (
        "%0: bool[] = lt 1.0:f32 2.0:f32; %1: f32[2,3] = where %0 x y; return %1",
        "return x",
    ),
    "operand that is full": (
        "%0: f32[2,3] = full[shape=(2,3), dtype='f32'] 3.0:f32; %1: f32[2,3] = mul x %0; return %1",
        "%0 = mul x 3.0; return %0",
    ),
    "two that are full": (
        "%0: f32[2] = full[shape=(2,), dtype='f32'] 3.0:f32; %1: f32[2] = mul %0 %0; return %1",
        "%0 = full[shape=(2,), dtype='f32'] 9.0:f32; return %0",
    ),
    "full that is 1": (
        "%0: f32[2,3] = full[shape=(2,3), dtype='f32'] 1.0:f32; %1: f32[2,3] = scale x %0; "
        "return %1",
        "return x",
    ),
    "scale by a number": (
        "%0: f32[2,3] = scale x 0.5; return %0",
        "%0 = mul x 0.5; return %0",
    ),
    "scale of a number": (
        "%0: f32[2,3] = scale 2.0 x; return %0",
        "%0 = mul x 2.0; return %0",
    ),
    "equal branches": ("%0: f32[2,3] = where b x x; return %0", "return x"),
    "branches true and false": (
        "%0: bool[2,3] = where b True:bool False:bool; return %0",
        "return b",
    ),
    "where not": (
        "%0: bool[2,3] = bitwise_not b; %1: f32[2,3] = where %0 x y; return %1",
        "%0 = where b y x; return %0",
    ),
    "cast to the same": ("%0: f32[2,3] = cast[dtype='f32'] x; return %0", "return x"),
    "cast there and back": (
        "%0: f64[2,3] = cast[dtype='f64'] x; %1: f32[2,3] = cast[dtype='f32'] %0; return %1",
        "return x",
    ),
    "cast through a wider one": (
        "%0: i64[4] = cast[dtype='i64'] n; %1: f64[4] = cast[dtype='f64'] %0; return %1",
        "%0 = cast[dtype='f64'] n; return %0",
    ),
    "stop_gradient": ("%0: f32[2,3] = stop_gradient x; return %0", "return x"),
    "two reshapes": (
        "%0: f32[6] = reshape[shape=(6,)] x; %1: f32[3,2] = reshape[shape=(3,2)] %0; return %1",
        "%0 = reshape[shape=(3,2)] x; return %0",
    ),
    "reshape there and back": (
        "%0: f32[6] = reshape[shape=(6,)] x; %1: f32[2,3] = reshape[shape=(2,3)] %0; return %1",
        "return x",
    ),
    "two transposes": (
        "%0: f32[3,2] = transpose[permutation=(1,0)] x; "
        "%1: f32[2,3] = transpose[permutation=(1,0)] %0; return %1",
        "return x",
    ),
    "two flips": (
        "%0: f32[2,3] = flip[axes=(0,1)] x; %1: f32[2,3] = flip[axes=(1,)] %0; return %1",
        "%0 = flip[axes=(0,)] x; return %0",
    ),
    "two broadcasts": (
        "%0: f32[2,3,4] = broadcast[shape=(2,3,4), axes=(0,1)] x; "
        "%1: f32[5,2,3,4] = broadcast[shape=(5,2,3,4), axes=(1,2,3)] %0; return %1",
        "%0 = broadcast[shape=(5,2,3,4), axes=(1,2)] x; return %0",
    ),
    "broadcast that adds ones": (
        "%0: f32[2,1,3] = broadcast[shape=(2,1,3), axes=(0,2)] x; return %0",
        "%0 = reshape[shape=(2,1,3)] x; return %0",
    ),
    "movement of full": (
        "%0: f32[2] = full[shape=(2,), dtype='f32'] 3.0:f32; "
        "%1: f32[4,2] = broadcast[shape=(4,2), axes=(1,)] %0; "
        "%2: f32[2,4] = transpose[permutation=(1,0)] %1; return %2",
        "%0 = full[shape=(2,4), dtype='f32'] 3.0:f32; return %0",
    ),
    "sum over an axis of size 1": (
        "%0: f32[2,3,1] = reshape[shape=(2,3,1)] x; %1: f32[2,3] = sum[axes=(2,)] %0; return %1",
        "return x",
    ),
    "max of full": (
        "%0: f32[2,3] = full[shape=(2,3), dtype='f32'] 3.0:f32; "
        "%1: f32[2] = max[axes=(1,)] %0; return %1",
        "%0 = full[shape=(2,), dtype='f32'] 3.0:f32; return %0",
    ),
    "what nobody reads": ("%0: f32[2,3] = exp x; return y", "return y"),
}


@pytest.mark.parametrize("name", SOUND)
def test_is_rewritten(name):
    body, expected = SOUND[name]
    assert rewritten(body, HEAD) == expected


EDGES = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e38, 1e-45], "float32")


SHAPED = ("f32[2,3,", "f32[2,1", "(2,3", "f32[2]", "f32[3,2]")  # the shape is part of the rule
ANY_SHAPE = [name for name, (body, _) in SOUND.items() if not any(s in body for s in SHAPED)]


@pytest.mark.parametrize("name", ANY_SHAPE)
def test_what_is_rewritten_keeps_its_value_at_the_edges(name):
    """inf, nan and zeros of either sign; only the sign of scale's zeros is open."""
    head = "x: f32[9,9], y: f32[9,9], n: i32[4], b: bool[9,9]"
    body = SOUND[name][0]
    graph = parse(text_of(body.replace("[2,3]", "[9,9]"), head))
    x, y = np.repeat(EDGES[:, None], 9, 1), np.repeat(EDGES[None], 9, 0)
    inputs = [x, y, np.array([-(2**31), -1, 0, 2**31 - 1], "int32"), np.eye(9) > 0]
    for before, after in zip(evaluate(graph, *inputs), evaluate(simplify(graph), *inputs)):
        np.testing.assert_array_equal(before, after)
        if before.dtype.kind == "f" and "scale" not in name:
            settled = ~np.isnan(before)
            assert (np.signbit(before) == np.signbit(after))[settled].all()


UNSOUND = {
    "x minus x, which is nan for inf": "%0: f32[2,3] = sub x x; return %0",
    "x times 0, which is nan for inf": "%0: f32[2,3] = mul x 0.0; return %0",
    "x over x, which is nan for 0": "%0: f32[2,3] = div x x; return %0",
    "x plus 0, which is 0 for -0": "%0: f32[2,3] = add x 0.0; return %0",
    "0 minus x, which is 0 for 0": "%0: f32[2,3] = sub 0.0 x; return %0",
    "scale by inf, which keeps 0": "%0: f32[2,3] = scale x inf; return %0",
    "scale of zero, which is 0 for nan": "%0: f32[2,3] = scale 0.0 x; return %0",
    "x times 1 that grows": "%0: f32[2,2,3] = broadcast[shape=(2,2,3), axes=(1,2)] x; return %0",
    "a narrower cast": (
        "%0: f16[2,3] = cast[dtype='f16'] x; %1: f32[2,3] = cast[dtype='f32'] %0; return %1"
    ),
    "an integer through a float": (
        "%0: f32[4] = cast[dtype='f32'] n; %1: i32[4] = cast[dtype='i32'] %0; return %1"
    ),
    "where with zeros of two signs": "%0: f32[2,3] = where b 0.0:f32 -0.0:f32; return %0",
    "a sum of ones": (
        "%0: f32[2,3] = full[shape=(2,3), dtype='f32'] 1.1:f32; "
        "%1: f32[2] = sum[axes=(1,)] %0; return %1"
    ),
    "products that would round differently": (
        "%0: f32[2,3] = mul x 0.1; %1: f32[2,3] = mul %0 0.3; return %1"
    ),
}


@pytest.mark.parametrize("name", UNSOUND)
def test_is_left_alone(name):
    graph = parse(text_of(UNSOUND[name], HEAD))
    assert str(simplify(graph)) == str(graph)


def test_casts_that_lose_nothing():
    kept = {("f2", "f4"), ("f4", "f8"), ("?", "f4"), ("i2", "f4"), ("i4", "f8"), ("u4", "i8")}
    lost = {("f8", "f4"), ("i4", "f4"), ("i8", "f8"), ("u8", "f8"), ("i4", "u8"), ("f4", "c8")}
    for pairs, expected in ((kept, True), (lost, False)):
        for a, b in pairs:
            assert is_lossless_cast(np.dtype(a), np.dtype(b)) is expected, (a, b)


def test_simplifying_twice_changes_nothing_more():
    for name, (body, _) in SOUND.items():
        once = simplify(parse(text_of(body, HEAD)))
        assert str(simplify(once)) == str(once), name


def test_source_lines_stay():
    graph = parse("graph f(x: f32[2]):\n    %0: f32[2] = pow x 2.0  # train.py:7\n    return %0")
    assert "# train.py:7" in str(simplify(graph))
