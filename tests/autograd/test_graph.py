"""The tape as PyTorch shows it: grad_fn, its hooks, hooks of several tensors, gradient edges."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import lucid
from lucid.autograd.graph import GradientPass, get_gradient_edge, register_multi_grad_hook
from lucid.errors import ArgumentError, GraphError


def test_next_functions_lead_from_a_result_to_its_leaves():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    constant = lucid.tensor([3.0, 4.0])
    y = (x * constant).exp()
    assert x.grad_fn is None and constant.grad_fn is None
    ((product, number),) = y.grad_fn.next_functions
    assert (y.grad_fn.name(), product.name(), number) == ("exp", "mul", 0)
    (leaf, _), (none, _) = product.next_functions
    assert leaf.name() == "AccumulateGrad" and leaf.next_functions == () and none is None
    assert y.grad_fn == y.grad_fn and y.grad_fn != product and hash(product) == hash(product)


def test_the_number_says_which_result_an_operand_is():
    values, _ = lucid.tensor([3.0, 1.0], requires_grad=True).sort()
    total = values * 2.0
    assert total.grad_fn.next_functions[0] == (values.grad_fn, 0)


def test_a_prehook_sees_the_gradient_and_may_replace_it():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3.0
    seen = []
    handle = y.grad_fn.register_prehook(lambda grads: seen.append(grads[0].tolist()))
    y.sum().backward(retain_graph=True)
    assert seen == [[1.0, 1.0]] and x.grad.tolist() == [3.0, 3.0]
    handle.remove()
    x.grad = None
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2.0,))
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0] and len(seen) == 1


def test_a_node_hook_runs_after_tensor_hooks_and_prehooks_and_replaces_the_gradients():
    x, w = (lucid.tensor(v, requires_grad=True) for v in ([1.0, 2.0], [3.0, 4.0]))
    y = x * w
    order = []
    y.grad_fn.register_hook(lambda gi, go: (order.append((gi, go)), (gi[0] * 2.0, None))[1])
    y.grad_fn.register_prehook(lambda go: (order.append("before"), (go[0] * 10.0,))[1])
    y.register_hook(lambda g: (order.append("tensor"), g + 1.0)[1])
    for _ in range(2):
        y.sum().backward(retain_graph=True)
    assert order[:2] == ["tensor", "before"] and len(order) == 6
    grad_inputs, grad_outputs = order[2]
    assert [g.tolist() for g in grad_inputs] == [[60.0, 80.0], [20.0, 40.0]]
    assert grad_outputs[0].tolist() == [20.0, 20.0]
    assert x.grad.tolist() == [240.0, 320.0] and w.grad.tolist() == [40.0, 80.0]


def test_a_constant_operand_has_no_gradient_and_may_not_get_one():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    y = x * lucid.tensor([3.0, 4.0])
    handle = y.grad_fn.register_hook(lambda gi, go: (gi[0], gi[0]))
    with pytest.raises(GraphError, match="a gradient where there is none"):
        y.sum().backward(retain_graph=True)
    handle.remove()
    y.grad_fn.register_hook(lambda gi, go: (gi[0],))
    with pytest.raises(ArgumentError, match="returned 1 gradients, 2 expected"):
        y.sum().backward()


def test_all_results_of_an_operation_share_its_hooks_and_metadata():
    x = lucid.tensor([1.0, 2.0, 3.0], requires_grad=True)
    u, s, _ = lucid.linalg.svd(lucid.diag(x))
    seen = []
    u.grad_fn.metadata["name"] = "svd"
    u.grad_fn.register_hook(lambda gi, go: seen.append([g is None for g in go]))
    del u
    assert s.grad_fn.metadata == {"name": "svd"}
    s.sum().backward()
    assert seen == [[True, False, True]] and x.grad.tolist() == [1.0, 1.0, 1.0]


def test_results_of_a_function_share_its_hooks():
    class Both(lucid.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            float(x)  # values are read, so that the call is one Node
            return x * 2.0, x * 3.0

        @staticmethod
        def backward(ctx, a, b):
            return a * 2.0 + b * 3.0

    x = lucid.tensor(1.0, requires_grad=True)
    a, b = Both.apply(x)
    seen = []
    a.grad_fn.register_hook(lambda gi, go: seen.append(gi[0].item()))
    (a + b).backward()
    assert seen == [5.0] and x.grad.item() == 5.0


def test_hooks_of_the_accumulation_into_a_leaf():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    ((leaf, _), _) = (x * 2.0).grad_fn.next_functions
    seen = []
    leaf.register_prehook(lambda go: (go[0] * 3.0,))
    leaf.register_hook(lambda gi, go: seen.append((gi, go[0].tolist(), x.grad.tolist())))
    for _ in range(2):
        (x * 2.0).sum().backward()
    assert seen == [((), [6.0, 6.0], [6.0, 6.0]), ((), [6.0, 6.0], [12.0, 12.0])]
    assert lucid.autograd.grad((x * 2.0).sum(), x).tolist() == [2.0, 2.0]


def test_node_hooks_stay_differentiable_under_create_graph():
    x = lucid.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * x
    y.grad_fn.register_hook(lambda gi, go: tuple([g * x for g in gi]))
    g = lucid.autograd.grad((y * x).sum(), x, create_graph=True)  # x² + 2x·x·x
    np.testing.assert_allclose(g.detach(), [3.0, 20.0, 63.0])
    np.testing.assert_allclose(lucid.autograd.grad(g.sum(), x), [8.0, 32.0, 72.0])  # 2x + 6x²


def test_a_step_that_is_followed_calls_the_hooks_of_its_nodes():
    weight = lucid.linspace(0.0, 1.0, 64 * 64).reshape(64, 64).requires_grad_()
    x = lucid.linspace(-1.0, 1.0, 64)
    calls, grads = [], []
    for step in range(60):
        hidden = weight @ x
        loss = (hidden.tanh() ** 2).sum()
        if step % 20 == 19:  # both when it is cold and when it is followed
            hidden.grad_fn.register_hook(lambda gi, go: (calls.append(1), (gi[0] * 2.0, None))[1])
        weight.grad = None
        loss.backward()
        grads.append(weight.grad.numpy().copy())
    assert len(calls) == 3
    np.testing.assert_allclose(grads[59], 2.0 * grads[58], rtol=1e-4)
    np.testing.assert_allclose(grads[58], grads[0], rtol=1e-4)


def test_a_hook_of_several_tensors_gets_all_gradients_once_a_pass():
    x, w = (lucid.tensor(v, requires_grad=True) for v in ([1.0, 2.0], [3.0, 4.0]))
    a, b, other = x * 2.0, w * 3.0, x * w
    seen = []
    with register_multi_grad_hook([a, b, other, w], seen.append):
        (a * b).sum().backward(retain_graph=True)
        lucid.autograd.grad((a * b).sum(), x, retain_graph=True)
    assert GradientPass.registered == 0  # later passes take the quick path again
    (a * b).sum().backward()
    first, second = ([None if g is None else g.tolist() for g in grads] for grads in seen)
    assert first == [[9.0, 12.0], [2.0, 4.0], None, [6.0, 12.0]]
    assert second == [[9.0, 12.0], None, None, None]


def test_a_hook_of_any_of_several_tensors_gets_the_first_gradient():
    x, w = (lucid.tensor(v, requires_grad=True) for v in (2.0, 3.0))
    seen = []
    handle = register_multi_grad_hook([x, w], lambda g: seen.append(g.item()), mode="any")
    for _ in range(2):
        (x * w).backward()
    handle.remove()
    (x * w).backward()
    assert len(seen) == 2 and set(seen) <= {2.0, 3.0}
    with pytest.raises(ArgumentError, match="mode is 'some'"):
        register_multi_grad_hook([x], print, mode="some")


def test_a_backward_pass_inside_a_hook_is_a_pass_of_its_own():
    x, w = (lucid.tensor(v, requires_grad=True) for v in (2.0, 3.0))
    seen = []
    y = x * w
    y.register_hook(lucid.enable_grad(lambda g: (x * 5.0).backward()))
    register_multi_grad_hook([x, w], lambda gs: seen.append([g and g.item() for g in gs]))
    y.backward()
    assert seen == [[5.0, None], [3.0, 2.0]]


def test_threads_have_passes_of_their_own():
    x = lucid.tensor(2.0, requires_grad=True)
    seen = []
    register_multi_grad_hook([x], lambda gs: seen.append(gs[0].item()))
    work = [threading.Thread(target=lambda k=k: (x * k).backward()) for k in (1.0, 2.0, 3.0)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert sorted(seen) == [1.0, 2.0, 3.0]


def test_an_edge_stands_for_a_tensor_that_is_gone():
    x, w = (lucid.tensor(v, requires_grad=True) for v in ([1.0, 2.0], [3.0, 4.0]))
    y = x * x
    edge, leaf = get_gradient_edge(y), get_gradient_edge(x)
    z = (y * w).sum()
    del y
    assert edge.node.name() == "mul" and leaf.node.name() == "AccumulateGrad"
    found = lucid.autograd.grad(z, (edge, leaf), retain_graph=True)
    assert [g.tolist() for g in found] == [[3.0, 4.0], [6.0, 16.0]]
    seed = lucid.tensor([1.0, 10.0])
    assert lucid.autograd.grad(edge, x, seed, retain_graph=True).tolist() == [2.0, 40.0]
    lucid.autograd.backward(z, inputs=[leaf])
    assert x.grad.tolist() == [6.0, 16.0] and w.grad is None
    with pytest.raises(GraphError, match="does not require a gradient"):
        get_gradient_edge(lucid.ones(2))
