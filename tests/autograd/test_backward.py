"""backward and autograd.grad: roots, seeds, inputs, accumulation, freeing, higher orders."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import lucid
from lucid import autograd
from lucid.autograd import backward, grad
from lucid.errors import GraphError, MutationError, ShapeError


def leaf(*values: float) -> lucid.Tensor:
    return lucid.tensor(list(values), dtype="float64", requires_grad=True)


def equal(actual, expected) -> None:
    assert isinstance(actual, lucid.Tensor)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12)


# Roots and seeds


def test_several_roots_are_one_traversal():
    x = leaf(1.0, 2.0)
    shared = x * x
    seen = []
    shared.register_hook(lambda g: seen.append(g.numpy().copy()))
    backward([shared.sum(), (shared * 3.0).sum()])
    equal(x.grad, [8.0, 16.0])
    np.testing.assert_allclose(seen, [[4.0, 4.0]])


def test_several_roots_have_a_seed_each():
    x = leaf(1.0, 2.0)
    backward([x * 2.0, (x * x).sum()], [lucid.tensor([1.0, 10.0]), 0.5])
    equal(x.grad, [3.0, 22.0])
    x.grad = None
    backward([x * 2.0, (x * x).sum()], [None, 0.5])
    equal(x.grad, [3.0, 4.0])


def test_root_that_depends_on_another_root():
    x = leaf(3.0)
    y = x * x
    backward([y, y * 2.0])
    equal(x.grad, [18.0])


def test_same_root_twice_counts_twice():
    x = leaf(3.0)
    y = x * x
    backward([y, y])
    equal(x.grad, [12.0])


def test_root_that_is_a_leaf_gets_its_seed():
    x = leaf(1.0, 2.0)
    x.backward(lucid.tensor([3.0, 4.0]))
    equal(x.grad, [3.0, 4.0])


def test_root_with_several_elements_starts_from_ones():
    x = leaf(1.0, 2.0)
    (x * x).backward()
    equal(x.grad, [2.0, 4.0])
    equal(grad(x * x, x), [2.0, 4.0])


@pytest.mark.parametrize("seed", [2.0, 2, np.float64(2), np.array([2.0, 2.0]), lucid.tensor(2.0)])
def test_seed_is_a_tensor_an_array_or_a_scalar_that_broadcasts(seed):
    x = leaf(1.0, 2.0)
    equal(grad(x * x, x, seed), [4.0, 8.0])
    equal(grad(x * x, x, [seed]), [4.0, 8.0])
    y = x * x
    y.backward(seed)
    equal(x.grad, [4.0, 8.0])


def test_seed_of_the_wrong_shape_is_refused():
    x = leaf(1.0, 2.0)
    with pytest.raises(ShapeError, match=r"gradient of shape \(3,\) for an output of shape \(2,\)"):
        (x * x).backward(np.ones(3))


def test_wrong_number_of_seeds_is_refused():
    x = leaf(1.0, 2.0)
    with pytest.raises(ShapeError, match="2 gradients were given for 1"):
        backward([x * x], [1.0, 1.0])


def test_roots_that_need_no_gradient_are_refused():
    with pytest.raises(GraphError, match="does not require a gradient"):
        lucid.ones(3).backward()
    with pytest.raises(GraphError, match="no tensors given"):
        backward([])
    with pytest.raises(GraphError, match="a float does not require"):
        backward(3.0)


# Accumulation


def test_gradients_accumulate_and_are_not_shared():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x + y).backward()
    assert x.grad.numpy() is not y.grad.numpy()
    x.grad.numpy()[...] = 7.0
    equal(y.grad, [1.0, 1.0])
    (x + y).backward()
    equal(x.grad, [8.0, 8.0])
    equal(y.grad, [2.0, 2.0])


def test_gradient_is_not_the_memory_of_the_seed():
    x = leaf(1.0, 2.0)
    seed = np.array([1.0, 1.0])
    (x + 0.0).backward(seed)
    seed[...] = 9.0
    equal(x.grad, [1.0, 1.0])


def test_gradient_of_a_broadcast_seed_may_be_written_to():
    x = leaf(1.0, 2.0)
    (x * 1.0).sum().backward()
    x.grad += 1.0
    equal(x.grad, [2.0, 2.0])


def test_gradient_has_the_dtype_and_shape_of_the_tensor():
    x = lucid.ones(2, 3, requires_grad=True)
    w = lucid.ones(3, dtype="float64", requires_grad=True)
    (x * w).sum().backward()
    assert x.grad.dtype == np.float32 and x.grad.shape == (2, 3)
    assert w.grad.dtype == np.float64 and w.grad.shape == (3,)


def test_leaf_that_is_not_reached_keeps_no_gradient():
    x, y = leaf(1.0), leaf(1.0)
    (x * 2).backward()
    assert y.grad is None


# inputs=


def test_inputs_alone_receive_a_gradient():
    x, y = leaf(1.0), leaf(2.0)
    (x * y).backward(inputs=[x])
    equal(x.grad, [2.0])
    assert y.grad is None
    (x * y).backward(inputs=y)
    equal(y.grad, [1.0])


def test_intermediate_results_may_be_inputs():
    x = leaf(2.0)
    y = x * x
    (y * y).backward(inputs=[y])
    equal(y.grad, [8.0])
    assert x.grad is None


def test_empty_inputs_are_refused():
    with pytest.raises(GraphError, match="inputs is empty"):
        (leaf(1.0) * 2).backward(inputs=[])


def test_keep_grad_keeps_the_gradient_of_every_result():
    x = leaf(2.0)
    y = x * x
    z = y * 3.0
    z.backward(keep_grad=True)
    equal(y.grad, [3.0])
    equal(z.grad, [1.0])
    equal(x.grad, [12.0])


def test_retained_gradient_of_an_intermediate_result():
    x = leaf(2.0)
    y = x * x
    y.retain_grad()
    assert y.retains_grad
    (y * 3.0).backward()
    equal(y.grad, [3.0])


def test_keep_grad_in_the_constructor():
    x = lucid.Tensor([1.0], requires_grad=True, keep_grad=True)
    (x * 2.0).backward()
    equal(x.grad, [2.0])


# autograd.grad


def test_grad_leaves_every_grad_attribute_alone():
    x = leaf(1.0, 2.0)
    y = x * x
    y.retain_grad()
    x.grad = lucid.tensor([7.0, 7.0])
    result = grad(y.sum(), x)
    equal(result, [2.0, 4.0])
    equal(x.grad, [7.0, 7.0])
    assert y.grad is None


def test_bare_input_gives_a_bare_gradient_and_a_sequence_a_tuple():
    x, y = leaf(1.0), leaf(2.0)
    assert isinstance(grad(x * y, x), lucid.Tensor)
    assert isinstance(grad(x * y, [x]), tuple)
    both = grad(x * y, (x, y))
    equal(both[0], [2.0])
    equal(both[1], [1.0])


def test_gradient_with_respect_to_an_intermediate_result_and_its_leaf():
    x = leaf(2.0)
    y = x * x
    gy, gx = grad(y * y, [y, x])
    equal(gy, [8.0])
    equal(gx, [32.0])


def test_unused_input_is_an_error_none_or_zeros():
    x, y = leaf(1.0), leaf(2.0, 3.0)
    with pytest.raises(
        GraphError, match=r"input 1 of type f64\[2\] was not used.*allow_unused=True"
    ):
        grad(x * 2, [x, y])
    assert grad(x * 2, [x, y], allow_unused=True)[1] is None
    equal(grad(x * 2, [x, y], materialize_grads=True)[1], [0.0, 0.0])


def test_output_that_needs_no_gradient_is_an_error_unless_unused_is_allowed():
    x = leaf(1.0)
    with pytest.raises(GraphError, match="an output does not require a gradient"):
        grad(lucid.ones(1), x)
    assert grad(lucid.ones(1), x, allow_unused=True) is None


def test_input_that_needs_no_gradient_is_refused():
    with pytest.raises(GraphError, match="does not require a gradient"):
        grad(leaf(1.0) * 2, lucid.ones(1))


# Freeing


def test_second_backward_says_retain_graph():
    y = leaf(1.0) * 2.0
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        (y * 2.0).backward()


def test_retained_graph_goes_on():
    x = leaf(2.0)
    y = x * x
    for n in (1, 2, 3):
        y.backward(retain_graph=True)
        equal(x.grad, [4.0 * n])
    y.backward()
    equal(x.grad, [16.0])


def test_freed_part_stops_a_graph_that_shares_it_and_no_other():
    x = leaf(2.0)
    shared = x * x
    (shared * 2.0).backward()
    with pytest.raises(GraphError, match="freed"):
        (shared * 3.0).backward()
    (x * 3.0).backward()
    equal(x.grad, [11.0])


def test_graph_and_what_it_saved_are_freed_by_backward_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        a = lucid.exp(x)
        b = a * a
        loss = b.sum()
        arrays = [weakref.ref(t.node) for t in (a, b)]
        del a, b
        assert all(ref() is not None for ref in arrays)
        loss.backward()
        assert all(ref() is None for ref in arrays)
    finally:
        gc.enable()


def test_graph_that_is_dropped_is_freed_without_backward():
    gc.collect()
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        y = lucid.exp(x) * x
        node = weakref.ref(y.node.inputs[0])
        del y
        assert node() is None
    finally:
        gc.enable()


def test_untracked_arithmetic_holds_nothing():
    x = lucid.ones(3)
    y = x * 2.0 + 1.0
    assert y.node is None and x.node is None
    kept = weakref.ref(y)
    y = lucid.exp(y)
    assert kept() is None and y.node is None


def test_results_that_carry_no_derivative_hold_nothing():
    x = leaf(1.0, 2.0)
    assert (x > 1.0).node is None and x.argmax().node is None
    with lucid.no_grad():
        assert lucid.exp(x).node is None


# Higher orders


def test_create_graph_to_order_four():
    x = leaf(1.5)
    y = x**6
    for factor, power in [(6, 5), (30, 4), (120, 3), (360, 2)]:
        y = grad(y, x, create_graph=True)
        assert y.requires_grad
        equal(y, [factor * 1.5**power])


def test_backward_with_create_graph_leaves_a_differentiable_gradient():
    x = leaf(3.0)
    (x**3).backward(create_graph=True)
    g, x.grad = x.grad, None
    g.backward()
    equal(x.grad, [18.0])


def test_gradient_penalty():
    x = leaf(1.0, 2.0)
    w = leaf(3.0, -1.0)
    g = grad((lucid.sin(x * w)).sum(), x, create_graph=True)
    (g * g).sum().backward()
    xs, ws = np.array([1.0, 2.0]), np.array([3.0, -1.0])
    c, s = np.cos(xs * ws), np.sin(xs * ws)
    equal(w.grad, 2 * ws * c * (c - ws * xs * s))
    equal(x.grad, -2 * ws**3 * c * s)


def test_hessian_vector_product_by_double_backward():
    x, v = leaf(1.0, 2.0), lucid.tensor([1.0, -1.0], dtype="float64")
    g = grad((x**3).sum() + x[0] * x[1], x, create_graph=True)
    equal(grad(g, x, v), [6.0 - 1.0, -12.0 + 1.0])


def test_gradient_without_create_graph_is_a_constant():
    x = leaf(2.0)
    assert not grad(x**3, x).requires_grad


# Structure


def test_diamond_and_reuse():
    x = leaf(2.0)
    a = x * x
    b = a + x
    c = a * b * a
    equal(grad(c, x), [6 * 2.0**5 + 5 * 2.0**4])


def test_many_uses_of_one_tensor():
    x = leaf(1.0, 1.0)
    total = x
    for _ in range(50):
        total = total + x * 2.0
    total.sum().backward()
    equal(x.grad, [101.0, 101.0])


def test_same_structure_with_other_shapes_and_numbers_is_not_confused():
    for shape in [(2,), (3,), (2, 2), ()]:
        for factor in (2.0, 3.0, -0.0, 0.0, 1, True):
            x = lucid.ones(*shape, dtype="float64", requires_grad=True)
            (x * x * factor).sum().backward()
            equal(x.grad, np.full(shape, 2.0 * factor))


def test_in_place_change_of_a_saved_value_is_an_error():
    x = leaf(1.0, 2.0)
    y = lucid.exp(x)
    z = y.sum()
    y += 1.0
    with pytest.raises(MutationError, match="changed in place.*clone"):
        z.backward()


def test_nothing_is_left_of_the_modes_when_a_hook_raises():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with lucid.no_grad():
        pass
    with pytest.raises(ZeroDivisionError):
        (y * 1.0).backward()
    assert lucid.is_grad_enabled()


def test_threads_run_backward_at_the_same_time():
    from concurrent.futures import ThreadPoolExecutor

    def work(seed):
        x = leaf(float(seed), 1.0)
        for _ in range(20):
            x.grad = None
            (lucid.sin(x) * x).sum().backward()
        return x.grad.numpy()

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(8)))
    for seed, g in enumerate(results):
        x = np.array([float(seed), 1.0])
        np.testing.assert_allclose(g, np.cos(x) * x + np.sin(x))


def test_graph_of_a_result_can_be_read_after_retained_backward():
    x = leaf(1.0)
    y = (x * 2.0).sum()
    y.backward(retain_graph=True)
    assert [eqn.op.name for eqn in y.graph().equations] == ["mul", "sum"]


def test_backward_is_a_method_of_the_module_too():
    x = leaf(2.0)
    autograd.backward(x * x)
    equal(x.grad, [4.0])


def test_a_freed_graph_is_known_to_lead_to_a_leaf_that_was_written_since():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    h = x * x
    h.sum().backward()
    with lucid.no_grad():
        x.sub_(0.1)
    with pytest.raises(GraphError, match="freed"):
        grad((h * 3).sum() + x.sum(), x)
    other = lucid.ones(2, requires_grad=True)
    assert grad((h + other).sum(), other).tolist() == [1.0, 1.0]


def test_a_loss_that_is_kept_keeps_no_parameter_alive():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    leaf = weakref.ref(x.node)
    del x
    assert leaf() is None and loss.item() == 5.0


def test_grad_of_an_iterator_is_a_tuple_even_with_one_element():
    layer = lucid.nn.Linear(2, 1, bias=False)
    for inputs in (layer.parameters(), {"w": layer.weight}.values(), [layer.weight]):
        found = lucid.autograd.grad(layer(lucid.ones(1, 2)).sum(), inputs)
        assert isinstance(found, tuple) and [g.tolist() for g in found] == [[[1.0, 1.0]]]


# A view of all of a leaf is made again by the derivative, which reads the leaf


@pytest.mark.parametrize("steps", [1, 40])
def test_a_transposed_leaf_and_a_transposed_result_beside_it(steps):
    rng = np.random.default_rng(0)
    for _ in range(steps):
        a, b = rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
        x, w = (lucid.tensor(v, requires_grad=True) for v in (a, b))
        hidden = x @ w.T  # of a leaf
        (x.T @ hidden * (x * 2.0).T.sum()).sum().backward()  # of a leaf, and of a result
        rows, total = a @ b.T, 2.0 * a.sum()
        product = a.T @ rows
        seed = np.full((2, 4), total)
        pulled = a @ seed
        equal(x.grad, pulled @ b + rows @ seed.T + 2.0 * product.sum())
        equal(w.grad, pulled.T @ a)


def test_derivatives_of_higher_order_through_a_transposed_leaf():
    w = lucid.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    for _ in range(3):
        (first,) = grad((w @ w.T).sum(), [w], create_graph=True)
        equal(first, 2.0 * np.broadcast_to(w.numpy().sum(0), (2, 3)))
        (second,) = grad((first * first).sum(), [w])
        equal(second, 16.0 * np.broadcast_to(w.numpy().sum(0), (2, 3)))


def test_the_gradient_of_a_result_reads_its_view():
    x = leaf(1.0, 2.0)
    for _ in range(3):
        hidden = (x * 3.0).reshape(2, 1)
        (g,) = grad((hidden @ hidden.T).sum(), [hidden])
        equal(g, 2.0 * hidden.numpy().sum() * np.ones((2, 1)))
        again = (x.reshape(1, 2) * 1.0).requires_grad_()
        (g,) = grad((again @ again.T).sum(), [again])
        equal(g, 2.0 * again.numpy())


def test_a_leaf_that_is_changed_after_its_view_was_read_is_an_error():
    w = lucid.tensor(np.ones((2, 3)), requires_grad=True)
    for _ in range(20):
        loss = (w @ w.T).sum()
        loss.backward()
        loss = (w @ w.T).sum()
        with lucid.no_grad():
            w.mul_(0.5)
        with pytest.raises(MutationError, match="changed in place"):
            loss.backward()


@pytest.mark.parametrize("steps", [1, 40])
def test_a_leaf_that_is_frozen_after_it_was_read_gets_no_gradient(steps):
    w, v = (lucid.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    for _ in range(steps):
        w.grad = v.grad = None
        w.requires_grad_(True)
        y = (lucid.exp(w) * w * v * v).sum()
        w.requires_grad_(False)
        y.backward()
        assert w.grad is None
        np.testing.assert_allclose(v.grad.numpy(), 2 * np.exp([1, 2]) * [1, 4], rtol=1e-6)
    w.requires_grad_(True)
    (w * v).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), [1, 2])


def test_zero_grad_sets_a_gradient_to_zeros_in_its_memory():
    w, v = (lucid.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    buffer = lucid.zeros(4)
    w.grad, v.grad = grads = buffer[:2], buffer[2:]
    optimizer = lucid.optim.SGD([w, v], lr=0.0)
    for _ in range(3):
        optimizer.zero_grad(set_to_none=False)
        np.testing.assert_array_equal(buffer.numpy(), np.zeros(4))
        (w * 3.0 + v * v).sum().backward()
        optimizer.step()
        assert w.grad is grads[0] and v.grad is grads[1]
        np.testing.assert_array_equal(buffer.numpy(), [3, 3, 2, 4])
