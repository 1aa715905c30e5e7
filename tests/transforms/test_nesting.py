"""Transforms inside transforms: perturbation confusion, captured variables, words that mean the
same.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
import lucid.autograd as autograd
import lucid.func as F
from lucid.func import grad, hessian, hvp, jacfwd, jacrev, jvp, linearize, vjp, vmap


def d(f):
    """The derivative of a scalar function by forward mode."""
    return lambda x: jvp(f, (x,), (lucid.ones_like(lucid.as_tensor(x)),))[1]


def double(x) -> lucid.Tensor:
    return lucid.as_tensor(np.asarray(x, "float64"))


DERIVATIVES = {"grad": grad, "jvp": d, "jacfwd": jacfwd, "jacrev": jacrev}
both = pytest.mark.parametrize("outer", DERIVATIVES.values(), ids=DERIVATIVES)
and_inner = pytest.mark.parametrize("inner", DERIVATIVES.values(), ids=DERIVATIVES)


# Perturbation confusion: an inner derivative must not see the outer one's perturbation.
# The examples are those of Siskind & Pearlmutter, "Perturbation confusion and referential
# transparency" (2005), and "Nesting forward-mode AD in a functional framework" (2008).


@both
@and_inner
def test_derivative_of_x_times_derivative_of_x_plus_y_is_one(outer, inner):
    f = outer(lambda x: x * inner(lambda y: x + y)(double(1.0)))
    assert f(double(1.0)).item() == 1.0


@both
@and_inner
def test_inner_constant_function_of_the_outer_variable_has_derivative_zero(outer, inner):
    f = outer(lambda x: x * inner(lambda y: x * x)(double(3.0)))
    assert f(double(2.0)).item() == 0.0


@both
@and_inner
def test_product_of_outer_and_inner_variables_gives_the_mixed_derivative(outer, inner):
    f = outer(lambda x: inner(lambda y: lucid.sin(x * y) * y)(x * 2.0))
    point = 0.6

    def mixed(x):  # d/dy of sin(x y) y at y = 2x
        y = 2 * x
        return x * y * math.cos(x * y) + math.sin(x * y)

    h = 1e-5
    expected = (mixed(point + h) - mixed(point - h)) / (2 * h)
    np.testing.assert_allclose(f(double(point)).item(), expected, rtol=1e-7)


@both
def test_shift_operator_that_is_returned_from_a_derivative_keeps_perturbations_apart(outer):
    def shift(u):
        return lambda f: lambda x: f(x + u)

    # D(s)(0) is the derivative operator itself; applied twice it is the second derivative.
    # It returns a function, so the function's value at a point is what is differentiated.
    def operator(f):
        return lambda x: outer(lambda u: shift(u)(f)(x))(double(0.0))

    g = operator(operator(lambda x: lucid.exp(2.0 * x)))
    np.testing.assert_allclose(g(double(0.5)).item(), 4 * math.exp(1.0), rtol=1e-12)


@both
@and_inner
def test_three_levels_with_all_variables_captured(outer, inner):
    def f(x):
        def g(y):
            def h(z):
                return x * y * z * z

            return inner(h)(y) * x

        return inner(g)(x)

    # dh/dz at z=y: 2 x y²; times x: 2 x² y²; d/dy at y=x: 4 x³; d/dx: 12 x²
    np.testing.assert_allclose(outer(f)(double(1.5)).item(), 12 * 1.5**2, rtol=1e-12)


def test_gradient_of_a_function_that_calls_jvp_with_an_outer_tangent():
    def f(x):
        return jvp(lambda y: y**3, (double(2.0),), (x,))[1]  # 12 x

    assert grad(f)(double(5.0)).item() == 12.0


def test_gradient_of_a_function_that_calls_vjp_with_an_outer_cotangent():
    def f(u):
        return (vjp(lambda y: y**3, double([1.0, 2.0]))[1](u)[0] ** 2).sum()

    # (3 u0)² + (12 u1)²
    np.testing.assert_allclose(grad(f)(double([1.0, 1.0])).numpy(), [18.0, 288.0])


def test_derivative_of_an_outer_primal_through_the_inner_primal_and_tangent():
    def f(x):
        return jvp(lambda y: y**3, (x,), (x,))[1]  # 3 x³

    np.testing.assert_allclose(grad(f)(double(2.0)).item(), 36.0)
    np.testing.assert_allclose(d(f)(double(2.0)).item(), 36.0)
    np.testing.assert_allclose(jacfwd(jacrev(f))(double(2.0)).item(), 36.0)  # 18 x


def test_linear_functions_and_pullbacks_escape_and_stay_differentiable():
    def f(x):
        _, push = linearize(lambda y: y**3, x)
        _, pull = vjp(lambda y: y**2, x)
        return push(x) * pull(x)[0]  # 3 x³ · 2 x²

    np.testing.assert_allclose(grad(f)(double(1.5)).item(), 30 * 1.5**4)


def test_pullback_made_outside_is_used_inside_another_transform():
    _, pull = vjp(lambda y: y * y, double([1.0, 3.0]))
    inside = grad(lambda u: (pull(u)[0] ** 2).sum())(double([1.0, 1.0]))
    np.testing.assert_allclose(inside.numpy(), [8.0, 72.0])
    np.testing.assert_allclose(
        vmap(lambda u: pull(u)[0])(double(np.eye(2))).numpy(), np.diag([2, 6])
    )


def test_vmap_inside_grad_inside_vmap_keeps_both_batches_apart():
    def loss(w, xs):
        return vmap(lambda x: lucid.sin(w @ x))(xs).sum()

    w = np.linspace(-1, 1, 6).reshape(2, 3)
    xs = np.cos(np.arange(12.0)).reshape(4, 3)
    actual = vmap(grad(loss), in_dims=(0, None))(double(w), double(xs))
    expected = np.stack([(np.cos(xs @ row)[:, None] * xs).sum(0) for row in w])
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12)


def test_closure_over_the_batch_of_an_outer_vmap():
    xs, ys = np.arange(3.0), np.arange(4.0) + 10
    table = vmap(lambda x: vmap(lambda y: x * y + x)(double(ys)))(double(xs))
    np.testing.assert_allclose(table.numpy(), xs[:, None] * ys + xs[:, None])


def test_grad_of_a_captured_tensor_that_requires_grad_reaches_backward():
    w = lucid.tensor([1.0, 2.0], requires_grad=True)
    g = grad(lambda x: (w * x * x).sum())(lucid.tensor([3.0, 4.0]))  # 2 w x
    assert g.requires_grad
    g.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), [6.0, 8.0])


def test_gradient_is_a_constant_where_nothing_outside_is_tracked():
    g = grad(lambda x: (x * x).sum())(lucid.tensor([3.0, 4.0]))
    assert not g.requires_grad and g.node is None


def test_backward_inside_a_function_under_grad():
    def f(x):
        y = (x**3).sum()
        (g,) = autograd.grad(y, [x], create_graph=True)
        return (g * g).sum()  # 9 x⁴

    np.testing.assert_allclose(grad(f)(double([1.0, 2.0])).numpy(), [36.0, 288.0])


def test_stopped_gradient_is_a_constant_at_every_order():
    f = lambda x: F.stop_gradient(x) * x  # noqa: E731
    assert grad(f)(double(3.0)).item() == 3.0
    assert grad(grad(f))(double(3.0)).item() == 0.0
    assert jvp(f, (double(3.0),), (double(1.0),))[1].item() == 3.0


def test_no_grad_inside_a_transform_is_a_constant():
    def f(x):
        with lucid.no_grad():
            c = x * x
        return c * x

    assert grad(f)(double(3.0)).item() == 9.0
    assert jvp(f, (double(3.0),), (double(1.0),))[1].item() == 9.0


def test_transform_works_inside_no_grad():
    with lucid.no_grad():
        assert grad(lambda x: x * x)(double(3.0)).item() == 6.0
        assert grad(grad(lambda x: x**3))(double(3.0)).item() == 18.0


# Words that mean the same


def smooth(x):
    return lucid.sin(x[:, None] * x).sum() + lucid.exp(-(x * x)).prod() + x[0] ** 3


def vector(x):
    return lucid.tanh(x * x.sum()) + x[[1, 0, 2]] ** 2


POINT = double([0.3, -0.8, 1.2])
HESSIANS = {
    "hessian": hessian(smooth),
    "jacfwd.jacrev": jacfwd(jacrev(smooth)),
    "jacrev.jacrev": jacrev(jacrev(smooth)),
    "jacrev.jacfwd": jacrev(jacfwd(smooth)),
    "jacfwd.jacfwd": jacfwd(jacfwd(smooth)),
    "jacfwd.grad": jacfwd(grad(smooth)),
    "jacrev.grad": jacrev(grad(smooth)),
    "jacobian.grad": F.jacobian(grad(smooth)),
    "vmap of hvp": lambda x: vmap(lambda v: hvp(smooth, x, v))(double(np.eye(3))),
    "vmap of vjp": lambda x: vmap(lambda u: vjp(grad(smooth), x)[1](u)[0])(double(np.eye(3))),
}


@pytest.mark.parametrize("word", HESSIANS.values(), ids=HESSIANS)
def test_every_way_to_the_hessian_gives_the_same(word):
    h = 1e-5
    first = lambda x: grad(smooth)(double(x)).numpy()  # noqa: E731
    at = POINT.numpy()
    rows = [(first(at + h * e) - first(at - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(word(POINT).numpy(), np.stack(rows), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(word(POINT).numpy(), hessian(smooth)(POINT).numpy(), rtol=1e-12)


@pytest.mark.parametrize("f", [smooth, vector], ids=["scalar", "vector"])
def test_both_jacobians_agree(f):
    np.testing.assert_allclose(jacfwd(f)(POINT).numpy(), jacrev(f)(POINT).numpy(), rtol=1e-12)


@pytest.mark.parametrize("transform", [grad, hessian, d, jacfwd, jacrev])
def test_vmap_of_a_derivative_is_the_stack_of_derivatives(transform):
    f = smooth if transform is not d else vector
    points = double(np.sin(np.arange(12.0)).reshape(4, 3))
    together = vmap(transform(f))(points)
    alone = np.stack([transform(f)(points[i]).numpy() for i in range(4)])
    np.testing.assert_allclose(together.numpy(), alone, rtol=1e-12)


def test_jacobian_is_made_of_jvps_and_vjps():
    columns = [jvp(vector, (POINT,), (double(e),))[1].numpy() for e in np.eye(3)]
    rows = [vjp(vector, POINT)[1](double(e))[0].numpy() for e in np.eye(3)]
    np.testing.assert_allclose(jacfwd(vector)(POINT).numpy(), np.stack(columns, 1), rtol=1e-12)
    np.testing.assert_allclose(jacrev(vector)(POINT).numpy(), np.stack(rows), rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 6])
def test_derivatives_of_any_order_of_a_power_and_of_sine(order):
    f = g = lambda x: x**5
    s = lucid.sin
    for i in range(order):
        f, g, s = grad(f), d(g), (grad if i % 2 else d)(s)
    expected = math.prod(range(5, 5 - order, -1)) * 1.3 ** (5 - order) if order <= 5 else 0.0
    np.testing.assert_allclose(f(double(1.3)).item(), expected, rtol=1e-12)
    np.testing.assert_allclose(g(double(1.3)).item(), expected, rtol=1e-12)
    sine = [math.sin, math.cos, lambda x: -math.sin(x), lambda x: -math.cos(x)][order % 4]
    np.testing.assert_allclose(s(double(1.3)).item(), sine(1.3), rtol=1e-12)


def test_taylor_coefficients_through_nested_forward_mode():
    f = lucid.exp
    for n in range(5):
        np.testing.assert_allclose(f(double(0.0)).item() / math.factorial(n), 1 / math.factorial(n))
        f = d(f)


# The Graph of a derivative


def test_graph_of_a_gradient_has_the_inputs_of_the_function_alone():
    graph = lucid.ir.trace(grad(lambda x: (x * x).sum()))(lucid.ones(3))
    assert [str(var.type) for var in graph.inputs] == ["f32[3]"]
    assert graph.equations[0].op.name == "full"
    out = lucid.ir.evaluate(graph, np.array([1.0, 2.0, 3.0], "float32"))[0]
    np.testing.assert_allclose(out, [2.0, 4.0, 6.0])


@pytest.mark.parametrize(
    "word",
    [
        grad,
        lambda f: grad(lambda x: grad(f)(x).sum()),
        hessian,
        jacrev,
        jacfwd,
        lambda f: vmap(grad(lambda x: f(x[None]))),
        lambda f: grad(lambda x: jvp(f, (x,), (lucid.ones(3),))[1]),
        lambda f: grad(lambda x: autograd.grad(f(x), x, create_graph=True).sum()),
    ],
)
def test_graph_of_a_derivative_is_self_contained_and_round_trips(word):
    transformed = word(lambda x: (lucid.sin(x) * x).sum())
    x = lucid.tensor([0.5, 1.0, 2.0])
    graph = lucid.ir.trace(transformed)(x)
    captured = [var for var in graph.inputs[1:] if var.type.shape != (3,)]
    assert not captured
    again = lucid.ir.parse(str(graph))
    assert again.key == graph.key
    constants = [np.ones(3, "float32") for _ in graph.inputs[1:]]
    out = lucid.ir.evaluate(again, x.numpy(), *constants)[0]
    np.testing.assert_allclose(out, transformed(x).numpy(), rtol=1e-6)


def test_unused_arguments_and_constant_outputs_are_zeros_in_the_graph():
    graph = lucid.ir.trace(grad(lambda x, y: x.sum(), argnums=(0, 1)))(lucid.ones(2), lucid.ones(3))
    assert len(graph.inputs) == 2
    outs = lucid.ir.evaluate(graph, np.ones(2, "float32"), np.ones(3, "float32"))
    np.testing.assert_array_equal(outs[1], np.zeros(3))
    tangent = lambda x: jvp(lambda y: lucid.ones(2), (x,), (x,))[1]  # noqa: E731
    assert len(lucid.ir.trace(tangent)(lucid.ones(3)).inputs) == 1


def test_the_graph_of_a_gradient_for_one_argument_takes_the_others_as_inputs():
    def f(x, w):
        return ((x @ w) ** 2).sum()

    for transform in (grad, jacrev, jacfwd):
        graph = lucid.ir.trace(transform(f, argnums=1))(double(np.ones((2, 3))), double(np.ones(3)))
        assert [var.name for var in graph.inputs] == ["x", "w"]


def test_a_mixed_second_derivative_reaches_an_operand_whose_transpose_was_read():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 3)), rng.standard_normal(3)

    def inner(x, w):
        return ((x @ w) ** 2).sum()

    mixed = grad(lambda x: grad(inner, argnums=1)(x, double(w)).sum())(double(x))
    # d/dx of sum(2 xᵀ x w) = 2 (x w 1ᵀ + x 1 wᵀ)
    ones = np.ones(3)
    expected = 2 * (np.outer(x @ w, ones) + np.outer(x @ ones, w))
    np.testing.assert_allclose(np.asarray(mixed), expected)


@pytest.mark.parametrize(
    "inner",
    [
        lambda x, w: ((x @ w) ** 2).sum(),
        lambda x, w: ((w * w) * x).sum(),
        lambda x, w: (lucid.sin(w * w) @ x.T).sum() + (x**3).sum(),
    ],
)
def test_an_ended_transform_leaves_no_requires_grad_on_an_outer_result(inner):
    x, w = lucid.ones(2, 3), lucid.ones(3)
    mixed = grad(lambda x: grad(inner, argnums=1)(x, w).sum())(x)
    assert not mixed.requires_grad and mixed.is_leaf
    z = lucid.ones(3, requires_grad=True)  # an outer value is still tracked
    y = grad(lambda x: grad(inner, argnums=1)(x, z * 2.0).sum())(x)
    assert y.requires_grad
    y.sum().backward()
    assert z.grad is not None
