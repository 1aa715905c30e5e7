"""fuse, as text: which equations share a kernel, and what softmax, layer norm and others become."""

from __future__ import annotations

import pytest

import lucid
from lucid.compiler.fusion.fuse import MAX_LOOPS, fuse
from lucid.compiler.fusion.groups import MAX_WEIGHT, Group, weight_of
from lucid.compiler.inspect.fused_text import count_steps, fused_text
from lucid.compiler.passes.pipeline import stages
from lucid.func import grad, value_and_grad, vjp
from lucid.ir import parse


def steps_of(f, *args) -> tuple[int, int]:
    """How many kernels and other steps a function becomes."""
    return count_steps(lowered_graph(f, *args))


def lowered_graph(f, *args):
    return stages(lucid.ir.trace(f)(*args))["copies_inserted"]


def test_an_elementwise_chain_is_one_kernel():
    graph = parse("""graph f(x: f32[4,3], y: f32[3]):
    %0: f32[4,3] = mul x y
    %1: f32[4,3] = exp %0
    %2: f32[4,3] = add %1 1.0
    return %2""")
    assert (
        fused_text(graph)
        == """\
kernel over 4 x 3, gives %2
    %0: f32[4,3] = mul x y
    %1: f32[4,3] = exp %0
    %2: f32[4,3] = add %1 1.0"""
    )


def test_a_product_stands_between_two_kernels():
    graph = parse("""graph f(x: f32[4,4]):
    %0: f32[4,4] = exp x
    %1: f32[4,4] = matmul %0 x
    %2: f32[4,4] = exp %1
    return %2""")
    assert (
        fused_text(graph)
        == """\
kernel over 4 x 4, gives %0
    %0: f32[4,4] = exp x
matmul alone
    %1: f32[4,4] = matmul %0 x
kernel over 4 x 4, gives %2
    %2: f32[4,4] = exp %1"""
    )


def test_a_transposed_operand_is_read_as_it_lies():
    graph = parse("""graph f(x: f32[4,3], y: f32[3,4]):
    %0: f32[4,3] = exp x
    %1: f32[3,4] = transpose[permutation=(1,0)] %0
    %2: f32[3,4] = add %1 y
    return %2""")
    assert (
        fused_text(graph)
        == """\
kernel over 4 x 3, gives %2
    %0: f32[4,3] = exp x
  · %1: f32[3,4] = transpose[permutation=(1,0)] %0
    %2: f32[3,4] = add %1 y"""
    )


def test_what_is_read_at_another_place_comes_from_memory():
    graph = parse("""graph f(x: f32[4]):
    %0: f32[4] = exp x
    %1: f32[4] = flip[axes=(0,)] %0
    %2: f32[4] = add %0 %1
    return %2""")
    assert (
        fused_text(graph)
        == """\
kernel over 4, gives %0
    %0: f32[4] = exp x
kernel over 4, gives %2
  · %1: f32[4] = flip[axes=(0,)] %0
    %2: f32[4] = add %0 %1"""
    )


def test_rows_and_columns_are_reduced_by_different_kernels():
    graph = parse("""graph f(x: f32[4,3]):
    %0: f32[4,3] = exp x
    %1: f32[4]   = sum[axes=(1,)] %0
    %2: f32[3]   = sum[axes=(0,)] %0
    return %1, %2""")
    assert (
        fused_text(graph)
        == """\
kernel over 4 x 3, reducing axis 1, gives %0, %1
    %0: f32[4,3] = exp x
    %1: f32[4]   = sum[axes=(1,)] %0
kernel over 4 x 3, reducing axis 0, gives %2
    %2: f32[3]   = sum[axes=(0,)] %0"""
    )


def test_groups_of_one_level_merge_where_they_meet():
    graph = parse("""graph f(x: f32[4,3], y: f32[3,4]):
    %0: f32[4,3] = exp x
    %1: f32[3,4] = sin y
    %2: f32[4,3] = transpose[permutation=(1,0)] %1
    %3: f32[4,3] = add %0 %2
    return %3""")
    assert count_steps(graph) == (1, 0)


def test_a_large_array_is_not_gone_over_twice_in_one_kernel():
    def normalized(x):
        return x / x.sum()

    assert steps_of(normalized, lucid.ones(1000)) == (1, 0)
    assert steps_of(normalized, lucid.ones(100_000)) == (2, 0)


def test_rows_are_gone_over_twice_however_many_there_are():
    assert steps_of(lambda x: x / x.sum(1, keepdims=True), lucid.ones(10_000, 100)) == (1, 0)


X, T, V = lucid.ones(32, 100), lucid.ones(32, 100), lucid.ones(100)
LABELS = lucid.tensor([1] * 32)


def softmax(x):
    return lucid.softmax(x, -1)


def layer_norm(x, scale, shift):
    centred = x - x.mean(-1, keepdim=True)
    variance = (centred * centred).mean(-1, keepdim=True)
    return centred * lucid.rsqrt(variance + 1e-5) * scale + shift


def cross_entropy(x, t):
    return -((x - lucid.logsumexp(x, 1, True)) * t).sum(1).mean()


def labeled_cross_entropy(x, labels):
    return -lucid.log_softmax(x, 1).gather(1, labels[:, None]).mean()


def gelu(x):
    return 0.5 * x * (1 + lucid.erf(x * 0.7071))


@pytest.mark.parametrize(
    "f,args,kernels",
    [
        (softmax, (X,), 1),
        (lambda x, t: vjp(softmax, x)[1](t), (X, T), 1),
        (layer_norm, (X, V, V), 1),
        (lambda x, s, t: vjp(lambda x: layer_norm(x, s, s), x)[1](t), (X, V, T), 1),
        (cross_entropy, (X, T), 2),
        (grad(cross_entropy), (X, T), 1),
        (value_and_grad(cross_entropy), (X, T), 2),
        (lambda x: labeled_cross_entropy(x, LABELS), (X,), 2),
        (value_and_grad(lambda x: labeled_cross_entropy(x, LABELS)), (X,), 2),
        (lambda x, t: vjp(gelu, x)[1](t), (X, T), 1),
        (grad(lambda x, y, z: (gelu(x * y) + lucid.sin(z) * x).sum(), (0, 1, 2)), (X, X, X), 1),
        (lambda x: lucid.var(x, 1), (X,), 1),
        (lambda x: lucid.logsumexp(x, 0), (X,), 1),
    ],
)
def test_what_works_on_rows_is_one_or_two_kernels(f, args, kernels):
    graph = lowered_graph(f, *args)
    assert count_steps(graph) == (kernels, 0), fused_text(graph)


def test_the_gradient_of_a_layer_norm_has_a_kernel_for_rows_and_one_for_columns():
    graph = lowered_graph(lambda x, s, b, t: vjp(layer_norm, x, s, b)[1](t), X, V, V, T)
    assert count_steps(graph) == (2, 0), fused_text(graph)


def test_columns_are_not_summed_together_where_one_sum_needs_the_other():
    graph = parse("""graph f(x: f32[9,5]):
    %0: f32[5]   = sum[axes=(0,)] x
    %1: f32[5]   = exp %0
    %2: f32[9,5] = mul x %1
    %3: f32[5]   = sum[axes=(0,)] %2
    return %3""")
    steps, _ = fuse(graph)
    levels = [step.level for step in steps]
    assert levels == sorted(levels)


def test_a_cheap_value_is_computed_where_it_is_needed():
    graph = parse("""graph f(x: f32[4,4], y: f32[4,4]):
    %0: f32[4,4] = mul y 3.0
    %1: f32[4,4] = matmul x x
    %2: f32[4,4] = add %1 %0
    return %2""")
    assert (
        fused_text(graph)
        == """\
matmul alone
    %1: f32[4,4] = matmul x x
kernel over 4 x 4, gives %2
    %0: f32[4,4] = mul y 3.0
    %2: f32[4,4] = add %1 %0"""
    )


def test_kernels_do_not_grow_without_end():
    def f(x):
        for _ in range(100):
            x = lucid.tanh(x) + 1
        return x

    steps, _ = fuse(lowered_graph(f, X))
    assert all(isinstance(step, Group) and step.weight <= MAX_WEIGHT for step in steps)
    assert len(steps) == 4
    assert all(step.weight == sum(map(weight_of, step.equations)) for step in steps)


def test_a_kernel_goes_over_its_rows_a_few_times_at_most():
    def f(x):
        for _ in range(20):
            x = lucid.softmax(x, 1)
        return x

    steps, _ = fuse(lowered_graph(f, X))
    assert all(max(step.loops.values()) <= MAX_LOOPS for step in steps)


def test_every_equation_is_in_one_step_and_after_what_it_reads():
    def f(x, w):
        for i in range(6):
            x = lucid.softmax(x @ w, i % 2) + x.T.sum(0, keepdims=True)
            x = x + x.flip(0) * lucid.tanh(x).mean()
        return x

    graph = lowered_graph(f, lucid.ones(8, 8), lucid.zeros(8, 8))
    steps, readings = fuse(graph)
    done = set(graph.inputs)
    seen = []
    for step in steps:
        for eqn in step.equations if isinstance(step, Group) else [step.equation]:
            for x in eqn.inputs:
                base = readings[x].base if x in readings else x
                assert base in done or not hasattr(base, "name"), fused_text(graph)
            done.update(eqn.outputs)
            seen.append(eqn)
    views = [eqn for eqn in graph.equations if eqn.outputs[0] in readings]
    assert len(seen) == len(set(seen)) == len(graph.equations) - len(views)


def test_a_second_computation_waits_and_is_not_one_with_the_first():
    graph = parse("""graph f(x: f32[4], v: f32[4]):
    %0: f32[4] = sin x
    %1: f32[4] = cumsum[axis=0, reverse=False] %0
    %2: f32[4] = optimization_barrier x %1
    %3: f32[4] = sin %2
    %4: f32[4] = mul %3 v
    return %4, %1""")
    assert (
        fused_text(graph)
        == """\
kernel over 4, gives %0
    %0: f32[4] = sin x
cumsum alone
    %1: f32[4] = cumsum[axis=0, reverse=False] %0
kernel over 4, gives %4
  · %2: f32[4] = optimization_barrier x %1
    %3: f32[4] = sin %2
    %4: f32[4] = mul %3 v"""
    )
