"""Hooks: by arity, replacing gradients, on leaves and results, removed by handle, block or call."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd import grad
from lucid.errors import GraphError, ShapeError


def leaf(*values: float) -> lucid.Tensor:
    return lucid.tensor(list(values), dtype="float64", requires_grad=True)


def equal(actual, expected) -> None:
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12)


def test_hook_of_one_argument_gets_the_gradient():
    x = leaf(1.0, 2.0)
    seen = []
    x.register_hook(seen.append)
    (x * x).sum().backward()
    equal(seen[0], [2.0, 4.0])


def test_a_gradient_that_a_hook_keeps_does_not_change_when_more_is_accumulated():
    x = leaf(1.0, 2.0)
    y = x * 1.0
    kept = []
    x.register_hook(kept.append)
    y.register_hook(kept.append)
    for _ in range(3):
        (y * 3.0).sum().backward(retain_graph=True)
    assert [g.tolist() for g in kept] == [[3.0, 3.0]] * 6


def test_hook_of_two_arguments_gets_the_tensor_too():
    x = leaf(1.0, 2.0)
    seen = []
    x.register_hook(lambda tensor, g: seen.append((tensor, g)))
    (x * x).sum().backward()
    assert seen[0][0] is x
    equal(seen[0][1], [2.0, 4.0])


def test_hook_of_two_arguments_on_a_result_that_is_no_longer_held():
    x = leaf(1.0, 2.0)
    seen = []
    y = lucid.exp(x)
    y.register_hook(lambda tensor, g: seen.append(tensor.numpy().copy()))
    z = (y * y).sum()
    del y
    z.backward()
    np.testing.assert_allclose(seen[0], np.exp([1.0, 2.0]))


def test_optional_arguments_do_not_count():
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g, factor=3.0: seen.append(g * factor))
    (x * 2.0).backward()
    equal(seen[0], [6.0])


def test_methods_and_partial_functions_are_hooks():
    from functools import partial

    class Watcher:
        def __init__(self):
            self.seen = []

        def hook(self, g):
            self.seen.append(g)

    x, watcher = leaf(1.0), Watcher()
    x.register_hook(watcher.hook)
    x.register_hook(partial(lambda scale, g: g * scale, 2.0))
    (x * 3.0).backward()
    equal(watcher.seen[0], [3.0])
    equal(x.grad, [6.0])


def test_returned_tensor_replaces_the_gradient_of_a_leaf():
    x = leaf(1.0, 2.0)
    x.register_hook(lambda g: g * 10.0)
    (x * x).sum().backward()
    equal(x.grad, [20.0, 40.0])


def test_returned_tensor_replaces_the_gradient_of_a_result_for_all_before_it():
    x = leaf(1.0, 2.0)
    y = x * x
    y.retain_grad()
    y.register_hook(lambda g: g * 10.0)
    (y * 3.0).sum().backward()
    equal(x.grad, [60.0, 120.0])
    equal(y.grad, [30.0, 30.0])


def test_hooks_run_in_the_order_of_registration_each_on_the_last_one_s_result():
    x = leaf(1.0)
    order = []
    x.register_hook(lambda g: order.append("first") or g + 1.0)
    x.register_hook(lambda g: order.append("second") or g * 10.0)
    (x * 2.0).backward()
    assert order == ["first", "second"]
    equal(x.grad, [30.0])


def test_hook_may_return_an_array_or_a_number_of_the_right_shape():
    x = leaf(1.0, 2.0)
    x.register_hook(lambda g: np.array([5.0, 6.0]))
    (x * 2.0).backward()
    equal(x.grad, [5.0, 6.0])


def test_gradient_of_another_shape_is_refused():
    x = leaf(1.0, 2.0)
    x.register_hook(lambda g: g.sum())
    with pytest.raises(ShapeError, match=r"hook: returned a gradient of shape \(\)"):
        (x * 2.0).sum().backward()


def test_hook_fires_once_with_the_whole_gradient():
    x = leaf(1.0)
    y = x * 2.0
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 3.0 + y * 4.0).backward()
    assert seen == [7.0]


def test_hook_registered_after_the_tensor_was_used_fires():
    x = leaf(1.0)
    y = x * 2.0
    z = y * y
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    x.register_hook(lambda g: seen.append(g.item()))
    z.backward()
    assert seen == [4.0, 8.0]


def test_hook_on_the_root_fires_with_the_seed():
    x = leaf(1.0)
    y = x * 2.0
    y.register_hook(lambda g: g * 5.0)
    y.backward()
    equal(x.grad, [10.0])


def test_hook_fires_on_every_backward_until_it_is_removed():
    x = leaf(1.0)
    seen = []
    handle = x.register_hook(lambda g: seen.append(g.item()))
    for _ in range(2):
        (x * 2.0).backward()
    handle.remove()
    handle.remove()
    (x * 2.0).backward()
    assert seen == [2.0, 2.0]


def test_handle_is_a_context_manager_and_can_be_called():
    x = leaf(1.0)
    seen = []
    with x.register_hook(lambda g: seen.append("block")):
        (x * 2.0).backward()
    handle = x.register_hook(lambda g: seen.append("call"))
    handle()
    (x * 2.0).backward()
    assert seen == ["block"]


def test_hook_may_remove_itself():
    x = leaf(1.0)
    seen = []
    handle = x.register_hook(lambda g: (seen.append(1), handle.remove())[1])
    (x * 2.0).backward()
    (x * 2.0).backward()
    assert seen == [1]


def test_hooks_see_and_change_what_autograd_grad_returns():
    x = leaf(1.0)
    y = x * 2.0
    y.register_hook(lambda g: g * 10.0)
    x.register_hook(lambda g: g + 1.0)
    equal(grad(y * 1.0, x), [21.0])


def test_hooks_stay_differentiable_under_create_graph():
    x = leaf(3.0)
    y = x * x
    y.register_hook(lambda g: g * g)
    g = grad(y * x, x, create_graph=True)  # ct of y is x, after the hook x²: 2x·x² + x² = 2x³ + x²
    equal(g, [2 * 27.0 + 9.0])
    equal(grad(g, x), [6 * 9.0 + 2 * 3.0])


def test_hooks_on_other_results_of_the_same_program_are_not_called():
    seen = []

    def run(watch):
        x = leaf(2.0)
        y = x * x
        if watch:
            y.register_hook(lambda g: seen.append(1) or g * 2.0)
        (y * 3.0).backward()
        return x.grad.item()

    assert [run(False), run(True), run(False)] == [12.0, 24.0, 12.0]
    assert seen == [1]


def test_hook_of_a_tensor_used_twice_sees_the_sum_after_a_run_with_two_tensors():
    def product(a, b):
        return (a * b).sum()

    for _ in range(3):
        product(leaf(1.0, 2.0), leaf(3.0, 4.0)).backward()
    x = leaf(1.0, 2.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.numpy().copy()))
    product(x, x).backward()
    np.testing.assert_allclose(seen, [[2.0, 4.0]])
    inner = leaf(1.0, 2.0) * 1.0
    inner.register_hook(lambda g: seen.append(g.numpy().copy()))
    product(inner, inner).backward()
    np.testing.assert_allclose(seen[1:], [[2.0, 4.0]])


def test_hook_after_accumulation_sees_the_gradient_in_place():
    x = leaf(1.0)
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (x * 2.0).backward()
    (x * 2.0).backward()
    handle.remove()
    (x * 2.0).backward()
    assert seen == [2.0, 4.0]


def test_tensors_without_a_gradient_take_no_hooks():
    with pytest.raises(GraphError, match="register_hook: this tensor does not require a gradient"):
        lucid.ones(2).register_hook(print)
    with pytest.raises(GraphError, match="only for leaves"):
        (leaf(1.0) * 2).register_post_accumulate_grad_hook(print)


def test_gradient_of_a_result_is_retained_and_accumulates():
    x = leaf(1.0)
    y = x * 2.0
    y.retain_grad()
    z = y * y
    z.backward(retain_graph=True)
    z.backward()
    equal(y.grad, [8.0])


def test_retain_grad_on_a_leaf_changes_nothing():
    x = leaf(1.0)
    x.retain_grad()
    (x * 2.0).backward()
    equal(x.grad, [2.0])
