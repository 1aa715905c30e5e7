"""vmap: batching without a loop, over pytrees and any axis, nested, in chunks, with randomness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import lucid
from lucid.errors import (
    AxisError,
    GraphError,
    LeakError,
    LucidError,
    ShapeError,
    TracedValueError,
)
from lucid.func import grad, jvp, vjp, vmap


def double(x) -> lucid.Tensor:
    return lucid.as_tensor(np.asarray(x, "float64"))


def array(*shape: int) -> np.ndarray:
    return np.sin(1.0 + np.arange(np.prod(shape, dtype=int))).reshape(shape)


def equal(actual, expected) -> None:
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12)


def test_function_runs_once_whatever_the_number_of_examples():
    calls = []

    def f(x):
        calls.append(x.shape)
        return x.sum()

    equal(vmap(f)(double(array(100, 3))), array(100, 3).sum(1))
    assert calls == [(3,)]


def test_one_equation_of_the_function_is_one_equation_of_the_batch():
    graph = lucid.ir.trace(vmap(lambda x: lucid.sin(x).sum()))(lucid.ones(50, 3))
    assert [eqn.op.name for eqn in graph.equations] == ["sin", "sum"]


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_any_axis_may_run_over_the_examples(dim):
    x = array(2, 3, 4)
    expected = np.stack([np.cumsum(x.take(i, dim), 0) for i in range(x.shape[dim])])
    equal(vmap(lambda x: x.cumsum(0), in_dims=dim)(double(x)), expected)


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_any_axis_of_the_result_may_hold_the_examples(dim):
    x = array(5, 2, 3)
    actual = vmap(lambda x: x * 2.0, out_dims=dim)(double(x))
    equal(actual, np.moveaxis(2 * x, 0, dim))


def test_arguments_with_none_are_shared():
    x, w = array(4, 3), array(3)
    equal(vmap(lambda x, w: x @ w, in_dims=(0, None))(double(x), double(w)), x @ w)
    equal(vmap(lambda w, x: x @ w, (None, 0))(double(w), double(x)), x @ w)


def test_in_axes_and_out_axes_are_other_names():
    x = array(3, 4)
    equal(vmap(lambda x: x * 2.0, in_axes=1, out_axes=1)(double(x)), 2 * x)


def test_python_numbers_and_strings_pass_through_where_they_are_not_mapped():
    f = vmap(lambda x, k, how: x * k if how == "times" else x, in_dims=(0, None, None))
    equal(f(double(array(3)), 2, "times"), 2 * array(3))


def test_keyword_arguments_are_shared():
    f = vmap(lambda x, *, scale: x * scale)
    equal(f(double(array(3)), scale=double(array(3))), array(3)[:, None] * array(3))


class Point(NamedTuple):
    x: object
    y: object


@dataclass
class Weights:
    w: object
    b: object


def test_dims_are_pytrees_that_match_the_arguments():
    tree = {"x": double(array(3, 2)), "y": (double(array(2)), double(array(2, 3)))}
    dims = {"x": 1, "y": (0, None)}
    actual = vmap(lambda t: t["x"].sum() * t["y"][0] + t["y"][1].sum(), in_dims=(dims,))(tree)
    equal(actual, array(3, 2).sum(0) * array(2) + array(2, 3).sum())


def test_one_dim_stands_for_a_whole_subtree():
    tree = {"x": double(array(2, 3)), "y": [double(array(2)), double(array(2, 1))]}
    actual = vmap(lambda t, c: t["x"].sum() * t["y"][0] + t["y"][1][0] + c, in_dims=(0, None))(
        tree, 1.0
    )
    equal(actual, array(2, 3).sum(1) * array(2) + array(2, 1)[:, 0] + 1)


def test_namedtuples_and_dataclasses_go_in_and_come_out():
    def f(point, weights):
        return Point(point.x @ weights.w + weights.b, {"y": point.y, "none": None})

    weights = Weights(double(array(3)), double(2.0))
    out = vmap(f, in_dims=(0, None))(Point(double(array(4, 3)), double(array(4))), weights)
    assert isinstance(out, Point) and out.y["none"] is None
    equal(out.x, array(4, 3) @ array(3) + 2)
    equal(out.y["y"], array(4))
    mapped = vmap(f, in_dims=(None, Weights(0, None)))(
        Point(double(array(3)), double(1.0)), Weights(double(array(5, 3)), double(2.0))
    )
    equal(mapped.x, array(5, 3) @ array(3) + 2)
    equal(mapped.y["y"], np.ones(5))


def test_out_dims_are_a_pytree_that_matches_the_results():
    x = array(4, 3)
    f = vmap(
        lambda x: (x * 2.0, {"s": x.sum(), "c": double(array(2))}),
        out_dims=(1, {"s": 0, "c": None}),
    )
    first, rest = f(double(x))
    equal(first, 2 * x.T)
    equal(rest["s"], x.sum(1))
    equal(rest["c"], array(2))


def test_result_that_does_not_depend_on_the_example_is_repeated():
    constant, number = vmap(lambda x: (double(array(2)), 3.0))(double(array(4)))
    equal(constant, np.tile(array(2), (4, 1)))
    equal(number, np.full(4, 3.0))


def test_function_may_return_its_argument_and_no_tensors():
    equal(vmap(lambda x: x)(double(array(3, 2))), array(3, 2))
    assert vmap(lambda x: (None, []))(double(array(3))) == (None, [])


def test_nested_vmaps_make_a_table():
    f = vmap(vmap(lambda x, y: x * y, (None, 0)), (0, None))
    equal(f(double(array(3)), double(array(4))), np.outer(array(3), array(4)))
    g = vmap(vmap(lambda x, y: x - y, (0, None)), (None, 0), out_dims=1)
    equal(g(double(array(3)), double(array(4))), array(3)[:, None] - array(4))


def test_three_levels_with_captured_batches_of_all_of_them():
    x, y, z = array(2), array(3), array(4)
    f = vmap(lambda a: vmap(lambda b: vmap(lambda c: a * b + c * a)(double(z)))(double(y)))
    equal(f(double(x)), x[:, None, None] * y[:, None] + x[:, None, None] * z)


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 7, 100])
def test_chunks_of_any_size_give_the_same(chunk):
    x = array(7, 3)
    f = vmap(lambda x, w: (x * w, x.sum(), double(1.0)), (0, None), chunk_size=chunk)
    product, total, one = f(double(x), double(array(3)))
    equal(product, x * array(3))
    equal(total, x.sum(1))
    equal(one, np.ones(7))


def test_batch_of_size_zero_gives_an_empty_result():
    out = vmap(lambda x: lucid.sin(x).sum())(double(np.zeros((0, 3))))
    assert out.shape == (0,)


def test_gradient_flows_through_vmap_to_its_arguments_and_captured_tensors():
    w = lucid.tensor([1.0, 2.0], requires_grad=True)
    x = lucid.tensor([[1.0, 3.0], [2.0, 5.0]], requires_grad=True)
    vmap(lambda x: (w * x * x).sum())(x).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), [5.0, 34.0])
    np.testing.assert_allclose(x.grad.numpy(), [[2.0, 12.0], [4.0, 20.0]])


def test_per_example_gradients():
    w, x, y = array(3), array(5, 3), array(5)
    loss = lambda w, x, y: (x @ w - y) ** 2  # noqa: E731
    actual = vmap(grad(loss), (None, 0, 0))(double(w), double(x), double(y))
    equal(actual, 2 * (x @ w - y)[:, None] * x)


def test_vmap_of_jvp_and_vjp_over_directions():
    f = lambda x: lucid.sin(x) * x.sum()  # noqa: E731
    x, directions = array(3), array(4, 3)
    jacobian = np.diag(np.cos(x) * x.sum()) + np.sin(x)[:, None]
    pushed = vmap(lambda v: jvp(f, (double(x),), (v,))[1])(double(directions))
    pulled = vmap(lambda u: vjp(f, double(x))[1](u)[0])(double(directions))
    equal(pushed, directions @ jacobian.T)
    equal(pulled, directions @ jacobian)


def test_indexing_and_writing_with_a_batch_of_indices():
    x, i = array(3, 4), np.array([2, 0, 3])
    equal(vmap(lambda x, i: x[i])(double(x), lucid.as_tensor(i)), x[np.arange(3), i])

    def write(x, i):
        y = x.clone()
        y[i] = 10.0
        return y

    expected = x.copy()
    expected[np.arange(3), i] = 10
    equal(vmap(write)(double(x), lucid.as_tensor(i)), expected)


def test_where_takes_the_place_of_a_branch():
    x = np.array([-1.0, 2.0, -3.0])
    equal(vmap(lambda x: lucid.where(x > 0, x, 10.0 * x))(double(x)), np.where(x > 0, x, 10 * x))


# What has no value


@pytest.mark.parametrize(
    "read",
    [
        lambda x: 1 if x > 0 else 2,
        lambda x: [1 for _ in iter(lambda: bool(x < 0), True)],
        lambda x: float(x),
        lambda x: x.item(),
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        lambda x: np.asarray(x),
        lambda x: range(10)[x.to("int64")],
    ],
    ids=["if", "while", "float", "item", "numpy", "tolist", "asarray", "index"],
)
def test_reading_a_value_inside_is_an_error_that_names_the_line(read):
    with pytest.raises(TracedValueError, match=r"inside vmap of .*where\(\).*\[test_vmap.py:\d+\]"):
        vmap(lambda x: read(x))(double(array(3)))


def test_printing_inside_shows_the_type():
    seen = []
    vmap(lambda x: seen.append(repr(x)) or x)(double(array(3, 2)))
    assert "f64[2]" in seen[0]


def test_value_that_leaked_is_refused_when_it_is_used():
    kept = []
    vmap(lambda x: kept.append(x * 2.0) or x)(double(array(3)))
    with pytest.raises(LeakError, match=r"vmap of lambda .* has ended.*\[test_vmap.py"):
        kept[0] + 1.0


# What is refused


def test_nothing_to_map_over_is_refused():
    with pytest.raises(LucidError, match="at least one argument must be mapped"):
        vmap(lambda x: x, in_dims=None)(double(array(3)))


def test_different_numbers_of_examples_are_refused():
    with pytest.raises(ShapeError, match=r"different numbers of examples: \[3, 4\]"):
        vmap(lambda x, y: x + y)(double(array(3)), double(array(4)))


def test_axis_out_of_range_is_refused():
    with pytest.raises(AxisError, match="axis 2 is out of range"):
        vmap(lambda x: x, in_dims=2)(double(array(3, 4)))
    with pytest.raises(AxisError, match="axis 3 is out of range"):
        vmap(lambda x: x, out_dims=3)(double(array(3, 4)))


def test_tensor_without_axes_cannot_be_mapped():
    with pytest.raises(ShapeError, match="0-d tensor"):
        vmap(lambda x: x)(double(1.0))
    with pytest.raises(LucidError, match="2.0, which has no axes"):
        vmap(lambda x, y: x)(double(array(3)), 2.0)


def test_dims_that_do_not_fit_are_refused():
    with pytest.raises(LucidError, match="in_dims=.* does not match the arguments"):
        vmap(lambda x, y: x, in_dims=(0,))(double(array(3)), double(array(3)))
    with pytest.raises(LucidError, match="out_dims=.* does not match the results"):
        vmap(lambda x: x, out_dims=(0, 0))(double(array(3)))


def test_result_that_differs_between_examples_cannot_have_out_dims_none():
    with pytest.raises(AxisError, match="out_dims is None for a batched result"):
        vmap(lambda x: x, out_dims=None)(double(array(3)))


def test_chunk_size_and_randomness_are_checked():
    with pytest.raises(LucidError, match="chunk_size=0"):
        vmap(lambda x: x, chunk_size=0)
    with pytest.raises(LucidError, match="randomness='often'"):
        vmap(lambda x: x, randomness="often")


# Random numbers


def noisy(x):
    return x * 0.0 + lucid.rand(2, dtype="float64")


def test_random_numbers_inside_are_an_error_unless_asked_for():
    with pytest.raises(LucidError, match=r"randomness='same'.*\[test_vmap.py"):
        vmap(noisy)(double(array(3, 2)))


def test_same_randomness_draws_once_for_all_examples():
    lucid.manual_seed(3)
    alone = lucid.rand(2, dtype="float64").numpy()
    lucid.manual_seed(3)
    out = vmap(noisy, randomness="same")(double(array(3, 2)))
    equal(out, np.tile(alone, (3, 1)))


def test_different_randomness_draws_for_every_example():
    lucid.manual_seed(3)
    out = vmap(noisy, randomness="different")(double(array(500, 2))).numpy()
    assert len(np.unique(out)) == 1000
    assert abs(out.mean() - 0.5) < 0.05 and abs(np.corrcoef(out.T)[0, 1]) < 0.15
    lucid.manual_seed(3)
    equal(vmap(noisy, randomness="different")(double(array(500, 2))), out)


def test_two_draws_in_one_example_differ():
    out = vmap(lambda x: (noisy(x), noisy(x)), randomness="different")(double(array(3, 2)))
    assert not (out[0].numpy() == out[1].numpy()).any()


@pytest.mark.parametrize("randomness", ["same", "different"])
@pytest.mark.parametrize("chunk", [1, 2, 4])
def test_chunks_draw_what_the_whole_would(randomness, chunk):
    lucid.manual_seed(5)
    whole = vmap(noisy, randomness=randomness)(double(array(5, 2))).numpy()
    after = lucid.rand(1).numpy()
    lucid.manual_seed(5)
    equal(vmap(noisy, randomness=randomness, chunk_size=chunk)(double(array(5, 2))), whole)
    assert (lucid.rand(1).numpy() == after).all()


def test_nested_vmaps_combine_their_randomness():
    x = double(array(3, 4))
    draw = lambda x: x * 0.0 + lucid.rand(dtype="float64")  # noqa: E731
    inner = vmap(draw, randomness="different")
    assert len(np.unique(vmap(inner, randomness="different")(x).numpy())) == 12
    columns = vmap(inner, randomness="same")(x).numpy()
    assert len(np.unique(columns)) == 4 and (columns == columns[0]).all()
    rows = vmap(vmap(draw, randomness="same"), randomness="different")(x).numpy()
    assert len(np.unique(rows)) == 3 and (rows == rows[:, :1]).all()
    with pytest.raises(LucidError, match="randomness"):
        vmap(inner)(x)


def test_randomness_under_grad_inside_vmap():
    f = grad(lambda x: (x * lucid.rand(2, dtype="float64")).sum())
    lucid.manual_seed(1)
    out = vmap(f, randomness="different")(double(array(4, 2))).numpy()
    assert len(np.unique(out)) == 8 and (0 <= out).all() and (out < 1).all()


def test_a_value_of_each_example_is_not_written_to_a_tensor_from_outside():
    total = lucid.zeros(3)
    part = total[1:]

    def add(x):
        total[0] = x
        return x

    for mapped in (lucid.vmap(add), lucid.jit(lucid.vmap(add))):
        with pytest.raises(GraphError, match=r"from outside.*\[test_vmap.py:\d+\]"):
            mapped(lucid.ones(2))
        assert total.tolist() == [0.0, 0.0, 0.0] and part.tolist() == [0.0, 0.0]


def test_a_tensor_made_inside_is_written_even_where_a_cycle_keeps_it():
    def fill(x):
        y = lucid.zeros(3)

        def write(i):
            y[i] = x * i
            return write(i - 1) if i else y.sum()

        return write(2)

    assert lucid.vmap(fill)(lucid.tensor([1.0, 2.0])).tolist() == [3.0, 6.0]


def test_a_write_before_an_error_is_undone():
    total = lucid.zeros(())

    def fail(x):
        total.add_(x)
        raise KeyError("no")

    with pytest.raises(KeyError):
        lucid.vmap(fail)(lucid.ones(2))
    assert total.item() == 0.0
