"""grad_fn and next_functions: the tape as PyTorch shows it."""

from __future__ import annotations

import lucid


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
