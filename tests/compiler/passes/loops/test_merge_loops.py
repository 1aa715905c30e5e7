"""merge_loops, text in and text out: independent loops over the same steps become one."""

from __future__ import annotations

from lucid.compiler.passes.loops.merge_loops import merge_loops
from tests.compiler.passes.texts import after

SUM = """graph @0(c: f32[], x: f32[]):
    %0: f32[] = add c x
    return %0"""
PRODUCT = """graph @1(c: f32[], x: f32[]):
    %0: f32[] = mul c x
    return %0"""


def test_two_scans_over_the_same_steps_are_one():
    text = f"""graph f(xs: f32[5], c0: f32[], c1: f32[]):
    %0: f32[] = scan[body=@0, n_consts=0, n_carry=1, length=5, reverse=False] c0 xs
    %1: f32[] = scan[body=@1, n_consts=0, n_carry=1, length=5, reverse=False] c1 xs
    return %0, %1
{SUM}
{PRODUCT}"""
    expected = """graph f(xs: f32[5], c0: f32[], c1: f32[]):
    %0: f32[], %1: f32[] = scan[body=@0, n_consts=0, n_carry=2, length=5, reverse=False] c0 c1 xs
    return %0, %1
graph @0(c: f32[], c_1: f32[], x: f32[]):
    %0: f32[] = add c x
    %1: f32[] = mul c_1 x
    return %0, %1"""
    assert after(merge_loops, text) == expected


def test_a_scan_that_reads_the_result_of_another_stays():
    text = f"""graph f(xs: f32[5], c0: f32[]):
    %0: f32[] = scan[body=@0, n_consts=0, n_carry=1, length=5, reverse=False] c0 xs
    %1: f32[] = scan[body=@1, n_consts=0, n_carry=1, length=5, reverse=False] %0 xs
    return %0, %1
{SUM}
{PRODUCT}"""
    assert after(merge_loops, text) == text


def test_scans_in_opposite_directions_stay():
    text = f"""graph f(xs: f32[5], c0: f32[], c1: f32[]):
    %0: f32[] = scan[body=@0, n_consts=0, n_carry=1, length=5, reverse=False] c0 xs
    %1: f32[] = scan[body=@1, n_consts=0, n_carry=1, length=5, reverse=True] c1 xs
    return %0, %1
{SUM}
{PRODUCT}"""
    assert after(merge_loops, text) == text


def test_carries_that_are_always_equal_are_one():
    text = f"""graph f(xs: f32[5], c0: f32[]):
    %0: f32[] = scan[body=@0, n_consts=0, n_carry=1, length=5, reverse=False] c0 xs
    %1: f32[] = scan[body=@0, n_consts=0, n_carry=1, length=5, reverse=False] c0 xs
    return %0, %1
{SUM}"""
    expected = f"""graph f(xs: f32[5], c0: f32[]):
    %0: f32[] = scan[body=@0, n_consts=0, n_carry=1, length=5, reverse=False] c0 xs
    return %0, %0
{SUM}"""
    assert after(merge_loops, text) == expected


def test_two_switches_on_one_index_are_one():
    text = """graph f(p: bool[], x: f32[2]):
    %0: f32[2] = switch[branches=(@0,@1)] p x
    %1: f32[2] = switch[branches=(@2,@3)] p x
    return %0, %1
graph @0(v: f32[2]):
    %0: f32[2] = mul v 2.0
    return %0
graph @1(v: f32[2]):
    %0: f32[2] = add v 1.0
    return %0
graph @2(v: f32[2]):
    %0: f32[2] = sub v 1.0
    return %0
graph @3(v: f32[2]):
    %0: f32[2] = mul v 3.0
    return %0"""
    expected = """graph f(p: bool[], x: f32[2]):
    %0: f32[2], %1: f32[2] = switch[branches=(@0,@1)] p x
    return %0, %1
graph @0(x0: f32[2]):
    %0: f32[2] = mul x0 2.0
    %1: f32[2] = sub x0 1.0
    return %0, %1
graph @1(x0: f32[2]):
    %0: f32[2] = add x0 1.0
    %1: f32[2] = mul x0 3.0
    return %0, %1"""
    assert after(merge_loops, text) == expected


BELOW = """graph @0(x: f32[]):
    %0: bool[] = lt x 9.0
    return %0"""
TRIPLE = """graph @1(k: f32[], x: f32[]):
    %0: f32[] = mul k x
    return %0"""
BELOW_WITH_TANGENT = """graph @2(x: f32[], t: f32[]):
    %0: bool[] = lt x 9.0
    return %0"""
TRIPLE_WITH_TANGENT = """graph @3(k: f32[], x: f32[], t: f32[]):
    %0: f32[] = mul k x
    %1: f32[] = mul k t
    return %0, %1"""


def whiles(first, step=TRIPLE_WITH_TANGENT):
    """A loop from `first`, and one from `x` that has a second carry."""
    one = "loops=((@1,False,(0,),((1,),),()),), results=(2,)"
    two = "loops=((@3,False,(0,),((1,),(2,)),()),), results=(4,)"
    return f"""graph f(k: f32[], x: f32[], y: f32[], t: f32[]):
    %0: f32[] = while[cond=@0, tests=(), {one}] k {first}
    %1: f32[] = while[cond=@2, tests=(), {two}] k x t
    return %0, %1
{BELOW}
{TRIPLE}
{BELOW_WITH_TANGENT}
{step}"""


def test_a_while_is_part_of_the_one_that_forward_mode_derives_from_it():
    loop = "loops=((@1,False,(0,),((1,),(2,)),()),), results=(4,3)"
    expected = f"""graph f(k: f32[], x: f32[], y: f32[], t: f32[]):
    %0: f32[], %1: f32[] = while[cond=@0, tests=(), {loop}] k x t
    return %1, %0
graph @0(x: f32[], t: f32[]):
    %0: bool[] = lt x 9.0
    return %0
graph @1(k: f32[], x: f32[], t: f32[]):
    %0: f32[] = mul k x
    %1: f32[] = mul k t
    return %0, %1"""
    assert after(merge_loops, whiles("x")) == expected


def test_a_while_from_another_value_stays():
    assert after(merge_loops, whiles("y")) == whiles("y")


def test_a_while_whose_carry_depends_on_one_more_stays():
    coupled = TRIPLE_WITH_TANGENT.replace("mul k x", "mul t x")
    assert after(merge_loops, whiles("x", step=coupled)) == whiles("x", step=coupled)


def test_a_while_with_another_condition_stays():
    text = whiles("x").replace("lt x 9.0", "lt x 8.0", 1)
    assert after(merge_loops, text) == text
