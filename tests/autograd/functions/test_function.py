"""Function: every feature of an explicit backward, eagerly and under every transform."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import lucid
from lucid.autograd import Function, grad, gradcheck, gradgradcheck, once_differentiable
from lucid.errors import DTypeError, GraphError, MutationError, ShapeError
from lucid.func import grad as func_grad
from lucid.func import hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from tests.compiled import compiled


def leaf(*values: float) -> lucid.Tensor:
    return lucid.tensor(list(values), dtype="float64", requires_grad=True)


def double(x) -> lucid.Tensor:
    return lucid.as_tensor(np.asarray(x, "float64"))


def equal(actual, expected) -> None:
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12)


class Exp(Function):
    """Saves its output."""

    @staticmethod
    def forward(ctx, x):
        y = lucid.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class Scaled(Function):
    """x · y · factor: an attribute, a keyword, and an argument that is no tensor."""

    @staticmethod
    def forward(ctx, x, factor, y, *, shift=0.0):
        ctx.save_for_backward(x, y)
        ctx.factor = factor
        return x * y * factor + shift

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y * ctx.factor, None, g * x * ctx.factor


class SinCos(Function):
    """Two outputs."""

    @staticmethod
    def forward(ctx, x):
        s, c = lucid.sin(x), lucid.cos(x)
        ctx.save_for_backward(s, c)
        return s, c

    @staticmethod
    def backward(ctx, gs, gc):
        s, c = ctx.saved_tensors
        return gs * c - gc * s


class Reads(Function):
    """A backward that looks at values: it cannot be traced."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2.0 if x.sum().item() > 0 else x * 3.0

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (2.0 if x.sum().item() > 0 else 3.0)


# Eagerly


def test_backward_is_called_with_the_gradient():
    x = leaf(0.5, 1.0)
    Exp.apply(x).sum().backward()
    equal(x.grad, np.exp([0.5, 1.0]))


def test_arguments_attributes_and_keywords():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    out = Scaled.apply(x, 10.0, y, shift=1.0)
    equal(out, [31.0, 81.0])
    out.sum().backward()
    equal(x.grad, [30.0, 40.0])
    equal(y.grad, [10.0, 20.0])


def test_several_outputs_share_one_backward():
    x = leaf(0.5)
    s, c = SinCos.apply(x)
    (s * 2.0 + c * 3.0).backward()
    equal(x.grad, [2 * np.cos(0.5) - 3 * np.sin(0.5)])
    s, c = SinCos.apply(x)
    equal(grad(s, x), [np.cos(0.5)])
    s, c = SinCos.apply(x)
    equal(grad([s, c], x), [np.cos(0.5) - np.sin(0.5)])


def test_result_without_tracked_arguments_is_plain():
    assert Exp.apply(lucid.ones(2)).node is None
    with lucid.no_grad():
        assert Exp.apply(leaf(1.0)).node is None


def test_needs_input_grad_says_which_arguments_are_wanted():
    seen = []

    class Probe(Function):
        @staticmethod
        def forward(ctx, x, n, y):
            seen.append(ctx.needs_input_grad)
            return x * y * n

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, None, None

    Probe.apply(leaf(1.0), 2, lucid.ones(1, dtype="float64")).backward()
    assert seen == [(True, False, False)] * 2


def test_missing_gradients_are_zeros_or_none():
    seen = []

    class Two(Function):
        materialize = True

        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(Two.materialize)
            return x * 1.0, x * 2.0

        @staticmethod
        def backward(ctx, a, b):
            seen.append(b)
            return a if b is None else a + 2.0 * b

    x = leaf(1.0, 2.0)
    Two.apply(x)[0].sum().backward()
    equal(seen[0], [0.0, 0.0])
    Two.materialize = False
    Two.apply(x)[0].sum().backward()
    assert seen[1] is None
    equal(x.grad, [2.0, 2.0])


def test_outputs_marked_non_differentiable_carry_no_gradient():
    class SortOf(Function):
        @staticmethod
        def forward(ctx, x):
            order, mask = x.argsort(), (x > 0).to("float64")
            ctx.save_for_backward(order)
            ctx.mark_non_differentiable(order, mask)
            return x[order], order, mask

        @staticmethod
        def backward(ctx, g, *_):
            (order,) = ctx.saved_tensors
            return g[order.argsort()]

    x = leaf(3.0, -1.0, 2.0)
    y, order, mask = SortOf.apply(x)
    assert y.requires_grad and not order.requires_grad and not mask.requires_grad
    (y * lucid.tensor([1.0, 10.0, 100.0])).sum().backward()
    equal(x.grad, [100.0, 1.0, 10.0])
    equal(
        func_grad(lambda x: (SortOf.apply(x)[0] * SortOf.apply(x)[2]).sum())(x.detach()), [1, 1, 0]
    )


def test_backward_may_return_a_bare_tensor_a_tuple_or_trailing_nones():
    class Trailing(Scaled):
        @staticmethod
        def backward(ctx, g):
            return (*Scaled.backward(ctx, g), None, None)

    x, y = leaf(1.0), leaf(3.0)
    Trailing.apply(x, 2.0, y).backward()
    equal(x.grad, [6.0])


def test_scalar_gradients_broadcast_and_are_cast():
    class Sum(Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            return g.to("float32")

    x = leaf(1.0, 2.0, 3.0)
    Sum.apply(x).backward()
    equal(x.grad, [1.0, 1.0, 1.0])
    assert x.grad.dtype == np.float64


def test_wrong_gradients_are_refused():
    class Shape(Exp):
        @staticmethod
        def backward(ctx, g):
            return lucid.ones(5)

    class Count(Exp):
        @staticmethod
        def backward(ctx, g):
            return g, g

    with pytest.raises(ShapeError, match=r"Shape.backward returned a gradient of shape \(5,\)"):
        Shape.apply(leaf(1.0, 2.0)).sum().backward()
    with pytest.raises(GraphError, match="Count.backward returned 2 gradients for 1 arguments"):
        Count.apply(leaf(1.0)).backward()


def test_misuse_is_refused():
    with pytest.raises(TypeError, match="cannot be instantiated"):
        Exp()
    with pytest.raises(TypeError, match="define a subclass"):
        Function.apply(1.0)

    class Saves(Exp):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3.0)
            return x

    with pytest.raises(DTypeError, match="a float is not a tensor; set it as an attribute"):
        Saves.apply(leaf(1.0))


def test_saved_tensor_that_changed_is_refused():
    x = leaf(1.0, 2.0) * 1.0
    y = Scaled.apply(x, 2.0, x)
    x += 1.0
    with pytest.raises(MutationError, match="changed in place"):
        y.sum().backward()


def test_setup_context_takes_the_place_of_ctx_in_forward():
    class Square(Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return 2.0 * ctx.saved_tensors[0] * g

    x = leaf(3.0)
    Square.apply(x).backward()
    equal(x.grad, [6.0])
    equal(func_grad(func_grad(lambda x: Square.apply(x)))(double(3.0)), 2.0)


def test_backward_that_reads_values_works_eagerly_and_under_func_grad():
    for sign, factor in ((1.0, 2.0), (-1.0, 3.0)):
        x = leaf(sign, sign)
        Reads.apply(x).sum().backward()
        equal(x.grad, [factor, factor])
        equal(func_grad(lambda x: Reads.apply(x).sum())(double([sign, sign])), [factor, factor])
        _, pull = vjp(lambda x: Reads.apply(x), double([sign, sign]))
        equal(pull(double([1.0, 2.0]))[0], [factor, 2 * factor])


def test_backward_that_reads_values_says_so_where_there_are_none():
    with pytest.raises(lucid.errors.LucidError, match=r"Reads|value"):
        vmap(lambda x: Reads.apply(x))(double([[1.0], [2.0]]))
    with pytest.raises(GraphError, match="Reads: .* differentiated in forward mode"):
        jvp(lambda x: Reads.apply(x), (double([1.0]),), (double([1.0]),))


class Once(Exp):
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        assert not lucid.is_grad_enabled()
        return g * ctx.saved_tensors[0]


TWICE = r"Once\.backward is marked with once_differentiable and is differentiated twice"


def test_once_differentiable_backward_raises_when_differentiated_again():
    x = leaf(0.5)
    g = grad(Once.apply(x), x, create_graph=True)
    equal(g, [np.exp(0.5)])
    with pytest.raises(GraphError, match=TWICE):
        g.backward()
    with pytest.raises(GraphError, match=TWICE):
        grad(grad(Once.apply(x * x), x, create_graph=True), x)
    with pytest.raises(GraphError, match=TWICE):
        func_grad(lambda y: func_grad(lambda x: Once.apply(x).sum())(y).sum())(double([0.5]))
    with pytest.raises(GraphError, match=TWICE):
        jvp(func_grad(lambda x: Once.apply(x).sum()), (double([0.5]),), (double([1.0]),))


def test_once_differentiable_backward_has_every_first_derivative():
    x = leaf(0.5, 1.0)
    Once.apply(x).sum().backward()
    equal(x.grad, np.exp([0.5, 1.0]))
    first = func_grad(lambda x: Once.apply(x).sum())
    jitted = lucid.jit(first)
    for point in ([0.5, 1.0], [2.0, -1.0], [0.0, 3.0]):
        equal(first(double(point)), np.exp(point))
        equal(jitted(double(point)), np.exp(point))
    equal(vmap(first)(double([[0.5], [2.0]])), np.exp([[0.5], [2.0]]))


# Higher orders and transforms


def test_checks_pass_to_second_order():
    assert gradcheck(Exp.apply, leaf(0.5, -1.0), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(Exp.apply, leaf(0.5, -1.0))
    assert gradcheck(lambda x, y: Scaled.apply(x, 3.0, y), (leaf(0.5), leaf(2.0)))
    assert gradgradcheck(lambda x, y: Scaled.apply(x, 3.0, y), (leaf(0.5), leaf(2.0)))
    assert gradcheck(SinCos.apply, leaf(0.5), check_forward_ad=True)
    assert gradgradcheck(SinCos.apply, leaf(0.5))


def test_create_graph_to_order_four():
    x = y = leaf(0.5)
    y = Exp.apply(x * 2.0)
    for n in range(1, 5):
        y = grad(y, x, create_graph=True)
        equal(y, [2.0**n * np.exp(1.0)])


FUNCTIONS = {
    "exp": (lambda x: Exp.apply(x), lambda x: lucid.exp(x)),
    "scaled": (lambda x: Scaled.apply(x, 3.0, x), lambda x: 3.0 * x * x),
    "several": (
        lambda x: SinCos.apply(x)[0] * SinCos.apply(x)[1],
        lambda x: lucid.sin(x) * lucid.cos(x),
    ),
    "captured": (
        lambda x: Scaled.apply(x, 2.0, lucid.tanh(x)) + Exp.apply(x.sum()),
        lambda x: 2.0 * x * lucid.tanh(x) + lucid.exp(x.sum()),
    ),
}
TRANSFORMS = {
    "grad": lambda f: func_grad(lambda x: f(x).sum()),
    "jvp": lambda f: lambda x: jvp(f, (x,), (double([1.0, -2.0]),))[1],
    "linearize": lambda f: lambda x: linearize(f, x)[1](double([1.0, -2.0])),
    "vmap": lambda f: lambda x: vmap(f)(lucid.stack([x, 2.0 * x])),
    "vmap in the last axis": lambda f: lambda x: vmap(f, 1, 1)(lucid.stack([x, 2.0 * x], 1)),
    "jacrev": jacrev,
    "jacfwd": jacfwd,
    "hessian": lambda f: hessian(lambda x: f(x).sum()),
    "vmap of grad": lambda f: (
        lambda x: vmap(func_grad(lambda x: f(x).sum()))(lucid.stack([x, 2.0 * x]))
    ),
    "grad of vmap": lambda f: func_grad(lambda x: vmap(f)(lucid.stack([x, 2.0 * x])).sum()),
    "vmap of jvp": lambda f: lambda x: vmap(lambda v: jvp(f, (x,), (v,))[1])(double(np.eye(2))),
    "jacfwd of jacfwd": lambda f: jacfwd(jacfwd(f)),
    "jacrev of jacfwd": lambda f: jacrev(jacfwd(f)),
    "third order": lambda f: jacfwd(jacrev(jacrev(lambda x: f(x).sum()))),
    "vmap of hessian": lambda f: (
        lambda x: vmap(hessian(lambda x: f(x).sum()))(lucid.stack([x, 2.0 * x]))
    ),
    "vmap of vmap": lambda f: lambda x: vmap(vmap(f))(lucid.stack([lucid.stack([x, 2.0 * x])] * 2)),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_behaves_like_the_operations_it_stands_for(name, transform):
    custom, plain = FUNCTIONS[name]
    x = double([0.3, -0.7])
    expected = TRANSFORMS[transform](plain)(x).numpy()
    np.testing.assert_allclose(
        TRANSFORMS[transform](custom)(x).numpy(), expected, rtol=1e-10, atol=1e-12
    )


def test_backward_of_the_user_and_not_of_the_operations_is_used():
    class Lies(Exp):
        @staticmethod
        def backward(ctx, g):
            return g * 7.0

    equal(func_grad(lambda x: Lies.apply(x))(double(0.5)), 7.0)
    equal(jvp(lambda x: Lies.apply(x), (double(0.5),), (double(1.0),))[1], 7.0)
    equal(jacfwd(lambda x: Lies.apply(x))(double([0.5, 1.0])), 7 * np.eye(2))
    equal(vmap(func_grad(lambda x: Lies.apply(x)))(double([0.5, 1.0])), [7.0, 7.0])


def test_captured_tracked_tensors_inside_forward_reach_backward_only_as_arguments():
    w = leaf(2.0)
    x = leaf(3.0)

    class Times(Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g * w, g * x

    value = func_grad(lambda x: Times.apply(x, w).sum())(x)
    equal(value, [2.0])
    value.backward()
    equal(w.grad, [1.0])


# Memory


def freed_without_collector(make) -> bool:
    """True where the big array that `make` saved dies with the last reference to the result."""
    gc.collect()
    gc.disable()
    try:
        result, ref = make()
        assert ref() is not None
        del result
        return ref() is None
    finally:
        gc.enable()


def test_saved_output_makes_no_reference_cycle():
    def make():
        y = Exp.apply(leaf(1.0, 2.0))
        return y, weakref.ref(y.node)

    assert freed_without_collector(make)

    def through_arrays():
        y = Exp.apply(leaf(1.0, 2.0))
        return y, weakref.ref(y.value)

    assert freed_without_collector(through_arrays)


def test_saved_input_and_attributes_are_freed_with_the_result():
    class Holder:
        pass

    holders = []

    class Keeps(Exp):
        @staticmethod
        def forward(ctx, x):
            ctx.holder = Holder()
            holders.append(weakref.ref(ctx.holder))
            return Exp.forward(ctx, x)

    def make():
        y = Keeps.apply(leaf(1.0))
        return y, holders[-1]

    assert freed_without_collector(make)


def test_saved_values_are_freed_by_backward():
    gc.collect()
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        inner = x * 2.0
        y = Scaled.apply(inner, 2.0, inner)
        loss = y.sum()
        ref = weakref.ref(inner.value)
        del inner, y
        assert ref() is not None
        loss.backward()
        assert ref() is None
    finally:
        gc.enable()


def test_a_thousand_calls_leave_nothing_behind():
    import tracemalloc

    x = leaf(1.0, 2.0)

    def step():
        x.grad = None
        Exp.apply(x).sum().backward()

    for _ in range(50):
        step()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(300):
            step()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 30_000


# jvp and vmap of the user's own


class Doubled(Function):
    """x · factor, with a jvp that is twice the slope, so that one sees that it is used."""

    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]
        ctx.save_for_forward(inputs[0])
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None

    @staticmethod
    def jvp(ctx, tangent, _):
        (x,) = ctx.saved_tensors
        return 2 * tangent * ctx.factor + 0 * x


class Mapped(Function):
    """x · y, whose batch adds 100, so that one sees that its vmap is used."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x

    @staticmethod
    def vmap(info, in_dims, x, y):
        assert info.batch_size == 3
        return x * y + 100.0, 0


def test_a_jvp_of_ones_own_is_used_in_forward_mode_alone():
    x = lucid.tensor([1.0, 2.0])
    f = lambda x: Doubled.apply(x, 3.0)  # noqa: E731
    _, tangent = lucid.func.jvp(f, (x,), (lucid.ones(2),))
    assert tangent.tolist() == [6.0, 6.0]
    assert lucid.func.grad(lambda x: f(x).sum())(x).tolist() == [3.0, 3.0]
    _, jitted = compiled(lambda x: lucid.func.jvp(f, (x,), (lucid.ones(2),)))(x)
    assert jitted.tolist() == [6.0, 6.0]


def test_a_vmap_of_ones_own_is_used():
    x = lucid.tensor([1.0, 2.0, 3.0])
    assert lucid.func.vmap(Mapped.apply)(x, x).tolist() == [101.0, 104.0, 109.0]
    shared = lucid.func.vmap(Mapped.apply, in_dims=(0, None))(x, lucid.tensor(2.0))
    assert shared.tolist() == [102.0, 104.0, 106.0]
    gradient = lucid.func.vmap(lucid.func.grad(Mapped.apply))(x, x)
    assert gradient.tolist() == [1.0, 2.0, 3.0]
    outside = lucid.func.grad(lambda x: lucid.func.vmap(Mapped.apply)(x, x).sum())(x)
    assert outside.tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("asked", [True, False])
def test_a_batch_rule_is_there_whether_or_not_it_is_asked_for(asked):
    class Cube(Function):
        generate_vmap_rule = asked

        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, ct):
            (x,) = ctx.saved_tensors
            return 3 * x * x * ct

    x = lucid.tensor([1.0, 2.0, 3.0])
    for f in (lucid.func.vmap(lucid.func.grad(Cube.apply)), lucid.func.vmap(Cube.apply)):
        np.testing.assert_allclose(compiled(f)(x), f(x))
    np.testing.assert_allclose(lucid.func.vmap(lucid.func.grad(Cube.apply))(x), [3, 12, 27])
