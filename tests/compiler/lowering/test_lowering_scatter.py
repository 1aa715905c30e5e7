"""Reading and writing at indices in kernels: gathers, scatters, and indices out of range."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.compiler.compile import compile_graph
from lucid.compiler.fusion.fuse import fuse
from lucid.compiler.fusion.groups import Group
from lucid.compiler.passes.pipeline import stages
from lucid.errors import IndexingError
from lucid.ir import evaluate, parse
from lucid.ops.index.gather_scatter import Gather, PutAlong, ScatterAdd, TakeAlong
from lucid.ops.index.writing import LastWrite, ScatterSet
from tests.compiler.lowering.lowering_checks import DTYPES, check, compiled, numbers, same


def indices(size: int, *shape: int, seed: int = 0, dtype: str = "int64") -> np.ndarray:
    return np.random.default_rng(seed).integers(-size, size, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_elements_are_taken_along_an_axis(dtype, axis):
    x = numbers(dtype, 4, 5, 6)
    shape = [7 if i == axis else n for i, n in enumerate(x.shape)]
    check(TakeAlong(axis), x, indices(x.shape[axis], *shape))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("axes", "batch_dims"), [((0,), 0), ((1,), 0), ((0, 2), 0), ((1,), 1), ((1, 2), 1), ((2,), 2)]
)
def test_rows_are_gathered(dtype, axes, batch_dims):
    x = numbers(dtype, 4, 5, 6)
    shape = (*x.shape[:batch_dims], 3, 2)
    places = [indices(x.shape[axis], *shape, seed=axis) for axis in axes]
    check(Gather(axes, batch_dims), x, *places)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "uint64"])
def test_indices_are_integers_of_any_dtype(dtype):
    check(Gather((0,)), numbers("float32", 5), np.array([4, 0, 2], dtype))


def test_a_number_is_gathered():
    check(Gather((0,)), numbers("float32", 5, 3), np.array(-2))


@pytest.mark.parametrize("wrong", [5, -6, 2**40, -(2**63)])
def test_an_index_out_of_range_raises_what_the_interpreter_raises(wrong):
    x, good = numbers("float32", 5, 3), np.array([1, 2])
    executable = compiled(Gather((0,)), x, good)
    bad = np.array([1, wrong])
    with pytest.raises(IndexingError, match=f"gather: index {wrong} is out of range for axis 0"):
        executable([x, bad])
    same(executable([x, good]), [x[good]])


def test_an_index_out_of_range_names_the_line_of_its_equation():
    text = """graph f(x: f32[5], i: i64[2]):
    %0: f32[5] = exp x               # train.py:3
    %1: f32[2] = gather[axes=(0,), batch_dims=0] %0 i    # train.py:4
    return %1"""
    executable = compile_graph(parse(text))
    with pytest.raises(IndexingError, match=r"\[train.py:4\]"):
        executable([np.ones(5, "float32"), np.array([0, 7])])


def test_a_gather_is_computed_with_what_uses_it_and_what_gives_its_index():
    text = """graph f(x: f32[9,4], i: i64[6], y: f32[6]):
    %0: i64[6] = add i 1:i64
    %1: f32[6] = gather[axes=(0, 1), batch_dims=0] x %0 i
    %2: f32[6] = mul %1 y
    %3: f32[] = sum[axes=(0,)] %2
    return %3"""
    graph = parse(text)
    steps, _ = fuse(stages(graph)["copies_inserted"])
    assert len(steps) == 1 and isinstance(steps[0], Group)
    arrays = [numbers("float32", 9, 4), indices(4, 6), numbers("float32", 6, seed=2)]
    same(compile_graph(graph)(arrays), evaluate(graph, *arrays))


def test_what_is_gathered_from_is_finished_before():
    text = """graph f(x: f32[6], i: i64[6]):
    %0: f32[6] = mul x x
    %1: f32[6] = gather[axes=(0,), batch_dims=0] %0 i
    %2: f32[6] = add %0 %1
    return %2"""
    graph = parse(text)
    arrays = [numbers("float32", 6), indices(6, 6)]
    same(compile_graph(graph)(arrays), evaluate(graph, *arrays))


FEW = ["bool", "int8", "float32"]
PLACES = [((0,), 0), ((1,), 0), ((0, 2), 0), ((1,), 1), ((1, 2), 1), ((2,), 2), ((0, 1, 2), 0)]


def updates_for(dtype, shape, axes, batch_dims, seed=0):
    """Updates and their places, of which many are the same."""
    places = [
        indices(min(shape[axis], 3), *shape[:batch_dims], 7, 2, seed=seed + axis) for axis in axes
    ]
    rest = [n for i, n in enumerate(shape) if i >= batch_dims and i not in axes]
    return numbers(dtype, *places[0].shape, *rest, seed=seed), places


@pytest.mark.parametrize("dtype", FEW)
@pytest.mark.parametrize(("axes", "batch_dims"), PLACES)
def test_updates_are_added_at_places(dtype, axes, batch_dims):
    shape = (4, 5, 6)
    updates, places = updates_for(dtype, shape, axes, batch_dims)
    check(ScatterAdd(shape, axes, batch_dims), updates, *places)


@pytest.mark.parametrize("dtype", FEW)
@pytest.mark.parametrize(("axes", "batch_dims"), PLACES)
def test_the_last_of_updates_at_one_place_counts(dtype, axes, batch_dims):
    shape = (4, 5, 6)
    updates, places = updates_for(dtype, shape, axes, batch_dims)
    check(ScatterSet(axes, batch_dims), numbers(dtype, *shape, seed=5), updates, *places)
    check(ScatterSet(axes, batch_dims), numbers(dtype, *shape), updates.flat[0].copy(), *places)
    check(LastWrite(tuple(shape[axis] for axis in axes), batch_dims), *places)


@pytest.mark.parametrize("dtype", FEW)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_values_are_put_along_an_axis(dtype, axis):
    values = numbers(dtype, 4, 5, 6)
    check(PutAlong(axis, 3), values, indices(3, *values.shape))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_one_value_is_put_in_every_row(axis):
    shape = [1 if i == axis else n for i, n in enumerate((4, 5, 6))]
    for dtype in FEW:
        check(PutAlong(axis, 3), numbers(dtype, *shape), indices(3, *shape))
    check(PutAlong(axis, 1), -np.zeros(shape), indices(1, *shape))
    executable = compiled(PutAlong(axis, 3), numbers("float32", *shape), indices(3, *shape))
    with pytest.raises(IndexingError, match=f"put_along: index 3 is out of range for axis {axis}"):
        executable([numbers("float32", *shape), np.full(shape, 3)])


def test_the_gradient_of_a_cross_entropy_is_one_kernel():
    text = """graph f(x: f32[9,5], i: i64[9,1]):
    %0: f32[9]   = logsumexp[axes=(1,)] x
    %1: f32[9,5] = broadcast[shape=(9,5), axes=(0,)] %0
    %2: f32[9,5] = sub x %1
    %3: f32[9,5] = exp %2
    %4: f32[9,1] = full[shape=(9,1), dtype='f32'] -1.0
    %5: f32[9,5] = put_along[axis=1, size=5] %4 i
    %6: f32[9,5] = add %3 %5
    return %6"""
    graph = parse(text.replace("-1.0", "-1.0:f32"))
    steps, _ = fuse(stages(graph)["copies_inserted"])
    assert len(steps) == 1
    arrays = [numbers("float32", 9, 5), indices(5, 9, 1)]
    got, want = compile_graph(graph)(arrays)[0], evaluate(graph, *arrays)[0]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_nothing_is_written_where_there_are_no_updates():
    none = np.zeros(0, "int64")
    check(ScatterAdd((3, 2), (0,)), np.zeros((0, 2), "float32"), none)
    check(ScatterSet((0,)), numbers("float32", 3, 2), np.zeros((0, 2), "float32"), none)
    check(PutAlong(0, 3), np.zeros(0, "float32"), none)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_scattered_sums_have_the_same_bits_for_any_number_of_threads(n, threads):
    threads(n)
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((20_000, 100)).astype("float32")
    check(ScatterAdd((50, 100), (0,)), rows, indices(50, 20_000))
    check(PutAlong(1, 30), rows[:, :40].copy(), indices(30, 20_000, 40))


def test_a_write_out_of_range_raises():
    x = numbers("float32", 4, 3)
    executable = compiled(ScatterSet((0,)), x, x[:2], np.array([0, 1]))
    with pytest.raises(IndexingError, match="scatter_set: index 4 is out of range for axis 0"):
        executable([x, x[:2], np.array([0, 4])])
