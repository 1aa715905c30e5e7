"""Rules that users write: what may be left out, what they may return, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.func as F
from lucid import autograd
from lucid.autograd import forward_ad
from lucid.errors import ArgumentError, DTypeError, GraphError, ShapeError

X = lucid.tensor([1.0, 2.0])


def leaf():
    return lucid.tensor([1.0, 2.0], requires_grad=True)


# Functions with a jvp alone


class Cube(autograd.Function):
    """x³ by its jvp alone, for n the exponent of the factor that is not a tensor."""

    @staticmethod
    def forward(x, n=2, scale=None):
        return x * x**n, "a label"

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.n, ctx.scale = inputs
        ctx.save_for_forward(x)

    @staticmethod
    def jvp(ctx, t, *_):
        (x,) = ctx.saved_tensors
        return (ctx.n + 1) * x**ctx.n * t


def cube(x, *args):
    y, label = Cube.apply(x, *args)
    assert label == "a label"
    return y


def test_a_function_with_a_jvp_alone_has_every_derivative():
    np.testing.assert_array_equal(cube(X).numpy(), [1, 8])
    np.testing.assert_array_equal(F.jvp(cube, (X,), (X,))[1].numpy(), [3, 24])
    np.testing.assert_array_equal(F.grad(lambda x: cube(x).sum())(X).numpy(), [3, 12])
    np.testing.assert_array_equal(F.grad(lambda x: cube(x, 3).sum())(X).numpy(), [4, 32])
    np.testing.assert_array_equal(F.hessian(lambda x: cube(x).sum())(X).numpy(), [[6, 0], [0, 12]])
    np.testing.assert_array_equal(F.vmap(F.grad(cube))(X).numpy(), [3, 12])
    x = leaf()
    cube(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3, 12])
    jitted = lucid.jit(F.grad(lambda x: cube(x).sum()))
    for k in (1, 2, 3):
        np.testing.assert_array_equal(jitted(k * X).numpy(), k * k * np.array([3, 12]))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, X)
        np.testing.assert_array_equal(forward_ad.unpack_dual(cube(dual)).tangent, [3, 24])


# Outputs that are not tensors, and defaults


class Split(autograd.Function):
    @staticmethod
    def forward(ctx, x, n=2):
        ctx.n = n
        return x * n, "a label", None, 7, x.shape, x + n

    @staticmethod
    def backward(ctx, g, label, nothing, number, shape, h):
        assert label is None and nothing is None and number is None and shape is None
        return g * ctx.n + h, None


def test_outputs_that_are_not_tensors_are_handed_on():
    x = leaf()
    for apply in (Split.apply, lucid.jit(lambda x: Split.apply(x))):
        for _ in range(3):
            y, *others, z = apply(x)
            assert others == ["a label", None, 7, (2,)]
            np.testing.assert_array_equal(
                [y.detach().numpy(), z.detach().numpy()], [[2, 4], [3, 4]]
            )
            x.grad = None
            (y + 10 * z).sum().backward()
            np.testing.assert_array_equal(x.grad.numpy(), [12, 12])
    grad = F.grad(lambda x: (Split.apply(x, 3)[0] + Split.apply(x, 3)[5]).sum())(X)
    np.testing.assert_array_equal(grad.numpy(), [4, 4])


class Scaled(autograd.Function):
    @staticmethod
    def forward(x, n=2, *, k=3):
        return x * n * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.n = inputs

    @staticmethod
    def backward(ctx, g):
        return g * ctx.n * 3


def test_setup_context_sees_the_defaults_of_forward():
    for kwargs, expected in [({}, 6), ({"n": 4}, 12), ({"k": 3}, 6)]:
        x = leaf()
        Scaled.apply(x, **kwargs).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), [expected] * 2)
        grad = F.grad(lambda x, kw=kwargs: Scaled.apply(x, **kw).sum())(X)
        np.testing.assert_array_equal(grad.numpy(), [expected] * 2)
    with pytest.raises(GraphError, match="1 gradients for 2 arguments"):
        Scaled.apply(leaf(), 5).sum().backward()
    with pytest.raises(ArgumentError, match=r"Scaled\.forward: .*unexpected"):
        Scaled.apply(leaf(), wrong=5)


# What is refused


def function(backward=None, jvp=None):
    class Double(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    Double.backward = staticmethod(lambda ctx, g: g * 2 if backward is None else backward(g))
    if jvp is not None:
        Double.jvp = staticmethod(lambda ctx, t: jvp(t))
    return Double.apply


WRONG = [
    (lambda g: lucid.ones(7), ShapeError, "of shape (7,) for an argument of shape (2,)"),
    (lambda g: "x", DTypeError, "is not an array: 'x'"),
    (lambda g: g * 1j, DTypeError, "dtype complex64 for an argument of dtype float32"),
]


@pytest.mark.parametrize(("wrong", "error", "words"), WRONG)
def test_a_backward_that_returns_something_else_is_named(wrong, error, words):
    runs = [
        (lambda: function(wrong)(leaf()).sum().backward(), "Double.backward returned a gradient"),
        (lambda: F.grad(lambda x: function(wrong)(x).sum())(X), "Double.backward returned"),
        (lambda: lucid.jit(F.grad(lambda x: function(wrong)(x).sum()))(X), "Double.backward"),
    ]

    def scaled(x):
        return x * 2

    custom = F.custom_vjp(scaled)
    custom.defvjp(lambda x: (x * 2, x), lambda x, g: (wrong(g),))
    runs.append((lambda: F.grad(lambda x: custom(x).sum())(X), "scaled: the rule returned"))
    runs.append((lambda: custom(leaf()).sum().backward(), "scaled: the rule returned"))
    for run, start in runs:
        with pytest.raises(error) as caught:
            run()
        assert start in str(caught.value) and words in str(caught.value)


@pytest.mark.parametrize(("wrong", "error", "words"), WRONG)
def test_a_jvp_that_returns_something_else_is_named(wrong, error, words):
    words = words.replace("argument", "output")
    custom = F.custom_jvp(lambda x: x * 2)
    custom.defjvp(lambda primals, tangents: (primals[0], wrong(tangents[0])))
    for f in (function(jvp=wrong), custom):
        with pytest.raises(error) as caught:
            F.jvp(f, (X,), (X,))
        assert words in str(caught.value)
    with pytest.raises(GraphError, match="2 tangents for 1 outputs"):
        F.jvp(function(jvp=lambda t: (t, t)), (X,), (X,))


def test_a_complex_gradient_of_a_real_tensor_is_refused():
    with pytest.raises(DTypeError, match="complex64 for an output of dtype float32"):
        (leaf() * 2).backward(lucid.tensor([1j, 1]))
    x = leaf()
    x.register_hook(lambda g: g * 1j)
    with pytest.raises(DTypeError, match="hook: returned a gradient of dtype complex64"):
        (x * 2).sum().backward()


def test_a_custom_jvp_may_be_defined_by_itself():
    @F.custom_jvp
    def exp(x):
        return lucid.exp(x)

    exp.defjvp(lambda primals, tangents: (exp(*primals), exp(*primals) * tangents[0]))
    one, e = lucid.tensor(1.0), np.exp(1.0)
    third = F.grad(F.grad(F.grad(exp)))
    for f in (F.grad(exp), F.grad(F.grad(exp)), third, lucid.jit(F.grad(exp)), lucid.jit(third)):
        for _ in range(3):
            assert f(one).item() == pytest.approx(e)
    assert F.vmap(F.grad(exp))(lucid.stack([one, one])).tolist() == pytest.approx([e, e])
    x = lucid.tensor(1.0, requires_grad=True)
    exp(x).backward()
    assert x.grad.item() == pytest.approx(e)


def test_a_custom_vjp_whose_bwd_calls_it_says_so():
    @F.custom_vjp
    def exp(x):
        return lucid.exp(x)

    exp.defvjp(lambda x: (exp(x), x), lambda x, g: (g * exp(x),))
    with pytest.raises(GraphError, match="its bwd calls exp itself"):
        F.grad(exp)(lucid.tensor(1.0))
