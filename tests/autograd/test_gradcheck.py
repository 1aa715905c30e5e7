"""gradcheck and gradgradcheck accept right derivatives and find wrong ones."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd import Function, GradcheckError, gradcheck, gradgradcheck
from lucid.errors import GraphError


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class WrongCube(Cube):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * x * g


class WrongTwice(Cube):
    """Right to first order, constant to second."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * (x * x).detach() * g


def leaf(*values: float, dtype: str = "float64") -> lucid.Tensor:
    return lucid.tensor(list(values), dtype=dtype, requires_grad=True)


def test_right_derivatives_pass():
    assert gradcheck(Cube.apply, leaf(1.0, -2.0))
    assert gradcheck(lambda x, y: x @ y, (leaf(1.0, 2.0), leaf(3.0, 4.0)))
    assert gradgradcheck(Cube.apply, leaf(1.0, -2.0))


def test_wrong_derivative_is_found_and_described():
    with pytest.raises(
        GradcheckError, match="output 0 for input 0 differs from central differences"
    ):
        gradcheck(WrongCube.apply, leaf(1.0, -2.0))
    assert gradcheck(WrongCube.apply, leaf(1.0, -2.0), raise_exception=False) is False


def test_wrong_second_derivative_is_found_by_gradgradcheck_alone():
    assert gradcheck(WrongTwice.apply, leaf(1.0, -2.0))
    with pytest.raises(GradcheckError):
        gradgradcheck(WrongTwice.apply, leaf(1.0, -2.0))
    assert gradgradcheck(WrongTwice.apply, leaf(1.0, -2.0), raise_exception=False) is False


def test_inputs_of_single_precision_are_checked_in_double():
    x = leaf(1.0, -2.0, dtype="float32")
    assert gradcheck(lambda x: lucid.sin(x) * x, x, atol=1e-8, rtol=1e-7)
    assert x.dtype == np.float32 and x.grad is None


def test_arguments_that_are_no_tensors_pass_through():
    f = lambda x, n, how, i: (x**n)[i] if how == "power" else x  # noqa: E731
    assert gradcheck(f, (leaf(1.0, 2.0), 3, "power", lucid.as_tensor([1, 0, 1])))


def test_only_inputs_that_require_a_gradient_are_checked():
    f = lambda x, y: x * y.detach()  # noqa: E731
    assert gradcheck(f, (leaf(1.0, 2.0), lucid.tensor([3.0, 4.0])))
    with pytest.raises(GradcheckError):
        gradcheck(f, (lucid.tensor([1.0, 2.0]), lucid.tensor([3.0, 4.0])))


def test_outputs_may_be_trees_of_any_shape():
    assert gradcheck(lambda x: {"a": x * x, "b": (x.sum(), None, 3)}, leaf(1.0, 2.0))
    assert gradcheck(lambda x: x[:, None] * x, leaf(1.0, 2.0))


def test_complex_inputs_and_outputs():
    z = lucid.tensor([1 + 2j, -0.5j], dtype="complex128", requires_grad=True)
    assert gradcheck(lambda z: z * z.conj() + z**2, z)
    assert gradcheck(lambda z: lucid.abs(z), z)
    assert gradcheck(lambda x: lucid.exp(1j * x), leaf(0.3, 0.4))


def test_forward_mode_and_batched_gradients_are_checked_on_request():
    assert gradcheck(Cube.apply, leaf(1.0, 2.0), check_forward_ad=True, check_batched_grad=True)
    f = lambda x: lucid.tanh(x) * x.sum()  # noqa: E731
    assert gradcheck(f, leaf(1.0, 2.0), check_forward_ad=True, check_batched_grad=True)
    with pytest.raises(GradcheckError, match="differs"):
        gradcheck(WrongCube.apply, leaf(1.0, 2.0), check_forward_ad=True)


def test_output_that_does_not_depend_on_the_input():
    assert gradcheck(lambda x: (x * 2, lucid.ones(2, dtype="float64")), leaf(1.0, 2.0))


def test_nothing_to_check_is_an_error():
    with pytest.raises(GraphError, match="no input is a floating tensor"):
        gradcheck(lambda x: x, lucid.arange(3))
    with pytest.raises(GraphError, match="returned no floating tensor"):
        gradcheck(lambda x: x.argmax(), leaf(1.0, 2.0))


def test_seeds_of_gradgradcheck_may_be_given():
    assert gradgradcheck(lambda x: x**3, leaf(1.0, 2.0), lucid.tensor([1.0, -1.0]))
    assert gradgradcheck(
        lambda x: (x**2, x**3), leaf(1.0, 2.0), [1.0 * lucid.ones(2), lucid.ones(2)]
    )
