"""Fused groups whose axes differ: each value is read where it was computed, which is checked."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.compiler.fusion.fuse import fuse
from lucid.compiler.fusion.groups import Group
from lucid.compiler.fusion.verify_steps import verify_steps
from lucid.compiler.passes.pipeline import stages
from lucid.errors import VerifyError
from lucid.ir import parse

TRANSPOSED_JOIN = """graph f(x: f64[2,3]):
    %0: f64[4,3]  = pad[low=(2,0), high=(0,0), interior=(0,0)] x
    %1: f64[3,4]  = transpose[permutation=(1,0)] %0
    %2: f64[4,3]  = pad[low=(0,0), high=(2,0), interior=(0,0)] x
    %3: f64[3,4]  = transpose[permutation=(1,0)] %2
    %4: f64[3,4]  = mul %3 %3
    %5: i32[3,4]  = iota[shape=(3,4), axis=1, dtype='i32']
    %6: bool[3,4] = lt %5 2
    %7: f64[3,4]  = where %6 %4 %1
    return %7"""


def joined(x):
    y = x.T
    return lucid.cat([y * y + 1, y], 1) * 2


def joined_by_numpy(x):
    return np.concatenate([x.T * x.T + 1, x.T], 1) * 2


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64"])
@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (3, 3), (1, 4), (4, 1), (30, 70)], ids=str)
def test_groups_whose_axes_are_swapped_are_merged_in_one_order(shape, dtype):
    f = lucid.jit(joined)
    for k in range(3):
        x = (np.random.default_rng(k).normal(size=shape) * 5).astype(dtype)
        np.testing.assert_allclose(f(x).numpy(), joined_by_numpy(x), rtol=1e-6)


def test_groups_whose_axes_are_swapped_by_vmap():
    f = lucid.jit(lucid.func.vmap(lambda v: lucid.cat([v * v + 1, v]) * 2, in_dims=1))
    for k in range(3):
        x = np.random.default_rng(k).normal(size=(5, 7))
        got = f(lucid.tensor(x)).numpy()
        np.testing.assert_allclose(got, joined_by_numpy(x), rtol=1e-12)


def test_groups_that_reduce_other_axes_are_not_one():
    def f(x, y):
        return lucid.where(x > 0, (x * 2).sum(0), (y * 3).sum(1, keepdim=True))

    jitted = lucid.jit(f)
    for k in range(3):
        rng = np.random.default_rng(k)
        x, y = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
        want = np.where(x > 0, (x * 2).sum(0), (y * 3).sum(1, keepdims=True))
        np.testing.assert_allclose(jitted(x, y).numpy(), want, rtol=1e-12)


def steps_of(text):
    graph = stages(parse(text))["copies_inserted"]
    return graph, *fuse(graph)


def test_a_group_that_reads_along_other_axes_is_refused():
    graph, steps, readings = steps_of(TRANSPOSED_JOIN)
    (group,) = steps
    verify_steps(graph, steps, readings)
    var = next(v for v, c in group.points.items() if v.type.shape == (4, 3))
    group.points[var] = group.coords[var] = tuple(reversed(group.points[var]))
    with pytest.raises(VerifyError, match=r"fuse: f: .* of shape \(4, 3\) runs along axes"):
        verify_steps(graph, steps, readings)


def test_a_transposed_reading_of_a_square_is_refused():
    graph, steps, readings = steps_of("""graph f(x: f64[3,3]):
    %0: f64[3,3] = exp x
    %1: f64[3,3] = transpose[permutation=(1,0)] %0
    %2: f64[3,3] = sin %1
    return %2""")
    (group,) = steps
    last = group.equations[-1].outputs[0]
    group.points[last] = group.coords[last] = tuple(reversed(group.points[last]))
    with pytest.raises(VerifyError, match="reads along .* what is computed along"):
        verify_steps(graph, steps, readings)


def test_a_reduction_of_other_axes_than_its_kernel_has_is_refused():
    graph, steps, readings = steps_of("""graph f(x: f64[3,4]):
    %0: f64[3] = sum[axes=(1,)] x
    return %0""")
    (group,) = (s for s in steps if isinstance(s, Group))
    group.reduced = frozenset([0])
    with pytest.raises(VerifyError, match="reduces axes"):
        verify_steps(graph, steps, readings)


def test_a_step_before_what_it_reads_is_refused():
    graph, steps, readings = steps_of("""graph f(x: f64[3,3]):
    %0: f64[3,3] = matmul x x
    %1: f64[3,3] = exp %0
    return %1""")
    with pytest.raises(VerifyError, match="reads what a later step computes"):
        verify_steps(graph, steps[::-1], readings)
