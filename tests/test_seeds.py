"""The founding documents' examples, each with the result that the document prints.

Where documents disagree: gradients are Tensors, a bare input gives a bare gradient, `backward()` of
a tensor that is no scalar starts from ones.
"""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.autograd as autograd
import lucid.func as F
from lucid import Tensor
from lucid.autograd import Function, backward


def equal(actual, expected) -> None:
    assert isinstance(actual, Tensor)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-6)


# The computation graph


def test_gradient_of_a_sum_of_squares_is_twice_the_input():
    x = lucid.tensor([2.0, 3.0], requires_grad=True)
    y = x**2
    z = y.sum()
    z.backward()
    equal(x.grad, [4.0, 6.0])


def test_each_operation_is_recorded():
    x = lucid.tensor([2.0, 3.0], requires_grad=True)
    ops = [eqn.op.name for eqn in (x**2).sum().graph().equations]
    assert len(ops) == 2 and ops[-1] == "sum"


def test_retained_graph_runs_backward_twice_and_accumulates():
    x = lucid.tensor([2.0, 3.0], requires_grad=True)
    loss = (x * x).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    equal(x.grad, [8.0, 12.0])


def test_graph_is_freed_after_backward_and_the_error_names_the_remedy():
    x = lucid.tensor([2.0, 3.0], requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        loss.backward()


def test_gradients_accumulate_until_they_are_cleared():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    (x * 3.0).sum().backward()
    (x * 3.0).sum().backward()
    equal(x.grad, [6.0, 6.0])
    x.grad = None
    (x * 3.0).sum().backward()
    equal(x.grad, [3.0, 3.0])
    x.zero_grad()
    assert x.grad is None or not x.grad.numpy().any()


def test_no_grad_builds_no_graph():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    with lucid.no_grad():
        y = x * 2.0
    assert not y.requires_grad and y.is_leaf
    assert (x * 2.0).requires_grad


# A custom Function


class Clamp(autograd.Function):
    @staticmethod
    def forward(ctx: autograd.FunctionCtx, x: Tensor, lo: float, hi: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.lo, ctx.hi = lo, hi
        return x.clamp(lo, hi)

    @staticmethod
    def backward(ctx: autograd.FunctionCtx, grad_out: Tensor) -> tuple[Tensor, None, None]:
        (x,) = ctx.saved_tensors
        mask = (x >= ctx.lo) & (x <= ctx.hi)
        return grad_out * mask, None, None


def test_custom_function_runs_forward_and_backward():
    x = lucid.tensor([-2.0, 0.5, 3.0], requires_grad=True)
    out = Clamp.apply(x, -1.0, 1.0)
    equal(out.detach(), [-1.0, 0.5, 1.0])
    out.sum().backward()
    equal(x.grad, [0.0, 1.0, 0.0])


def test_gradcheck_accepts_a_right_custom_function():
    x = lucid.tensor([-2.0, 0.5, 3.0], requires_grad=True)
    assert lucid.autograd.gradcheck(Clamp.apply, (x, -1.0, 1.0), eps=1e-5)


class MyReLU(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0.0)

    @staticmethod
    def backward(ctx, grad_out):
        (x,) = ctx.saved_tensors
        return grad_out * (x > 0).float()


def test_custom_relu_may_return_a_bare_gradient():
    x = lucid.tensor([-1.0, 2.0], requires_grad=True)
    y = MyReLU.apply(x)
    y.sum().backward()
    equal(y.detach(), [0.0, 2.0])
    equal(x.grad, [0.0, 1.0])


def test_function_context_keeps_attributes_and_saved_tensors():
    class Scaled(Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.shape, ctx.factor = x.shape, factor
            return x * factor

        @staticmethod
        def backward(ctx, grad_out):
            assert ctx.shape == grad_out.shape
            return grad_out * ctx.factor, None

    x = lucid.tensor([[1.0, 2.0]], requires_grad=True)
    Scaled.apply(x, 4.0).sum().backward()
    equal(x.grad, [[4.0, 4.0]])


def test_function_with_two_outputs_gets_two_cotangents():
    class SumAndDifference(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b, a - b

        @staticmethod
        def backward(ctx, gs, gd):
            return gs + gd, gs - gd

    a = lucid.tensor([1.0], requires_grad=True)
    b = lucid.tensor([2.0], requires_grad=True)
    s, d = SumAndDifference.apply(a, b)
    (3.0 * s + 5.0 * d).sum().backward()
    equal(a.grad, [8.0])
    equal(b.grad, [-2.0])


def test_applying_the_base_class_is_refused():
    with pytest.raises((TypeError, NotImplementedError, RuntimeError)):
        Function.apply(lucid.tensor([1.0]))


# Functional transforms


def cubes(x: Tensor) -> Tensor:
    return (x**3).sum()


def test_func_grad_and_hessian_of_a_sum_of_cubes():
    x = lucid.tensor([1.0, 2.0])
    equal(F.grad(cubes)(x), [3.0, 12.0])
    equal(F.hessian(cubes)(x), [[6.0, 0.0], [0.0, 12.0]])


def test_vmap_vectorises_over_a_batch_dimension():
    xs = lucid.tensor([[1.0, 2.0], [3.0, 4.0]])
    equal(F.vmap(cubes)(xs), [9.0, 91.0])
    equal(F.vmap(F.grad(cubes))(xs), [[3.0, 12.0], [27.0, 48.0]])


def test_vjp_and_jvp_curried_and_with_primals():
    x = lucid.tensor([1.0, 2.0])
    t = lucid.tensor([1.0, 1.0])
    out, pull = F.vjp(cubes, x)
    equal(out, 9.0)
    (g,) = pull(lucid.tensor(1.0))
    equal(g, [3.0, 12.0])
    out, pull = F.vjp(cubes)(x)
    equal(pull(lucid.tensor(1.0))[0], [3.0, 12.0])
    out, tangent = F.jvp(cubes, (x,), (t,))
    equal(tangent, 15.0)
    out, tangent = F.jvp(cubes)((x,), (t,))
    equal(tangent, 15.0)


def test_both_jacobians_agree():
    x = lucid.tensor([1.0, 2.0])
    expected = [[3.0, 0.0], [0.0, 12.0]]
    equal(F.jacrev(lambda x: x**3)(x), expected)
    equal(F.jacfwd(lambda x: x**3)(x), expected)


# autograd.grad


def test_autograd_grad_of_a_bare_input_is_bare():
    x = lucid.tensor([1.0, -2.0, 3.0], requires_grad=True)
    y = lucid.sum(x * x)
    dx = lucid.autograd.grad(y, x)
    equal(dx, [2.0, -4.0, 6.0])
    assert repr(dx) == "Tensor([ 2., -4.,  6.])"


def test_autograd_grad_of_several_outputs_sums_their_gradients():
    a = lucid.tensor([2.0, -1.0, 0.5], requires_grad=True)
    b = lucid.tensor([3.0, 4.0, -2.0], requires_grad=True)
    out1 = lucid.sum(a * b)
    out2 = lucid.sum(a * a)
    da, db = lucid.autograd.grad((out1, out2), (a, b))
    equal(da, [7.0, 2.0, -1.0])
    equal(db, [2.0, -1.0, 0.5])


def test_autograd_grad_leaves_existing_gradients_as_they_were():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    x.grad = lucid.tensor([9.0, 9.0])
    equal(lucid.autograd.grad((x * x).sum(), x), [2.0, 4.0])
    equal(x.grad, [9.0, 9.0])


def test_autograd_grad_takes_tensors_arrays_and_scalars_as_seeds():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    seed = [1.0, 10.0]
    expected = [2.0, 40.0]
    equal(lucid.autograd.grad(x * x, x, grad_outputs=lucid.tensor(seed)), expected)
    equal(lucid.autograd.grad(x * x, x, grad_outputs=[np.asarray(seed, "float32")]), expected)
    equal(lucid.autograd.grad(x * x, x, grad_outputs=[3.0]), [6.0, 12.0])
    equal(lucid.autograd.grad(x * x, x), [2.0, 4.0])


def test_autograd_grad_of_an_unused_input():
    x = lucid.tensor([1.0], requires_grad=True)
    unused = lucid.tensor([1.0], requires_grad=True)
    dx, du = lucid.autograd.grad(x * 2.0, (x, unused), allow_unused=True)
    equal(dx, [2.0])
    assert du is None
    with pytest.raises(RuntimeError, match="allow_unused"):
        lucid.autograd.grad(x * 2.0, (x, unused))


def test_autograd_grad_of_an_output_that_requires_none_is_an_error():
    x = lucid.tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError):
        lucid.autograd.grad(lucid.tensor([1.0]), x)


def test_autograd_grad_retains_the_graph_where_asked():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    lucid.autograd.grad(y, x, retain_graph=True)
    equal(lucid.autograd.grad(y, x), [2.0, 4.0])


# autograd.backward


def test_backward_prints_as_the_document_says():
    x = lucid.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (x * x).sum()
    backward(y)
    assert repr(x.grad) == "Tensor([2., 4., 6.])"


def test_backward_of_several_roots_adds_at_shared_leaves():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    backward([(x * x).sum(), (3.0 * x).sum()])
    equal(x.grad, [5.0, 7.0])


def test_backward_takes_a_seed_for_each_root():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    backward([x * x, x.sum()], grad_tensors=[lucid.tensor([1.0, 10.0]), None])
    equal(x.grad, [3.0, 41.0])


def test_backward_with_create_graph_differentiates_again():
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    backward((x**3).sum(), create_graph=True)
    first = x.grad
    x.grad = None
    first.sum().backward()
    equal(x.grad, [6.0, 12.0])


def test_backward_restricted_to_inputs_leaves_the_others():
    x = lucid.tensor([1.0], requires_grad=True)
    w = lucid.tensor([2.0], requires_grad=True)
    backward((x * w).sum(), inputs=[x])
    equal(x.grad, [2.0])
    assert w.grad is None


# The report on the autodiff system


def test_product_of_integer_matrices_with_gradients():
    a = lucid.Tensor([[1, 2], [3, 4]], requires_grad=True)
    b = lucid.Tensor([[5, 6], [7, 8]], requires_grad=True)
    out = a @ b
    out.backward()
    equal(out.detach(), [[19.0, 22.0], [43.0, 50.0]])
    equal(a.grad, [[11.0, 15.0], [11.0, 15.0]])
    equal(b.grad, [[4.0, 4.0], [6.0, 6.0]])


def test_constructor_takes_the_documented_arguments_in_order():
    t = Tensor([[1.0, 2.0]], True, True, np.float64)
    assert t.requires_grad and t.dtype == np.float64
    assert Tensor([[1.0, 2.0]], requires_grad=True).requires_grad is True


def test_slice_scatters_its_gradient_back():
    x = lucid.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    (x[1:3] * 5.0).sum().backward()
    equal(x.grad, [0.0, 5.0, 5.0, 0.0])


def test_gradient_of_a_broadcast_operand_has_its_shape():
    x = lucid.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    b = lucid.tensor([1.0, 1.0], requires_grad=True)
    (x + b).backward()
    equal(b.grad, [2.0, 2.0])


def test_intermediate_gradients_are_kept_only_where_asked():
    x = lucid.tensor([2.0], requires_grad=True)
    y = x * 3.0
    kept = x * 3.0
    kept.retain_grad()
    (y + kept).backward()
    assert y.grad is None
    equal(kept.grad, [1.0])
    y = x * 3.0
    (y * y).backward(keep_grad=True)
    equal(y.grad, [12.0])


def test_hook_sees_the_tensor_and_the_gradient(capsys):
    def custom_hook(tensor, grad):
        print("Custom gradient:", grad)

    t = Tensor([[1.0, 2.0]], requires_grad=True)
    t.register_hook(custom_hook)
    (t * 2.0).sum().backward()
    assert capsys.readouterr().out == "Custom gradient: Tensor([[2., 2.]])\n"


def test_hook_may_replace_the_gradient_and_can_be_removed():
    t = Tensor([1.0, 2.0], requires_grad=True)
    handle = t.register_hook(lambda grad: grad * 10.0)
    t.sum().backward()
    equal(t.grad, [10.0, 10.0])
    handle.remove()
    t.grad = None
    t.sum().backward()
    equal(t.grad, [1.0, 1.0])
