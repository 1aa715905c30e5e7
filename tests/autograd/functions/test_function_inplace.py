"""In-place changes inside `Function.forward`, and in-place reductions, have the gradients they say.

Expected gradients are formulas; PyTorch gives the same for all programs here.
"""

from __future__ import annotations

import numpy as np
import pytest

import lucid
import lucid.func as F
from lucid.autograd import Function
from lucid.errors import GraphError, MutationError

X, W = np.array([0.25, -0.5, 0.75]), np.array([2.0, 3.0, 5.0])


class Triple(Function):
    """x * 3 in place, with the derivative 5, so that it can be told from the real one."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(3)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 5


class Unmarked(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(3)
        return x

    backward = Triple.backward


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x.exp_()

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class Pair(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        ctx.save_for_backward(y)
        x.mul_(y)
        return x, x * 2

    @staticmethod
    def backward(ctx, g, h):
        (y,) = ctx.saved_tensors
        return g * y * 7, h * 11


def used_after(x, w):
    y = x * 1
    Triple.apply(y)
    return (y * w).sum()


def unmarked(x, w):
    y = x * 1
    Unmarked.apply(y)
    return (y * w).sum()


def in_a_view(x, w):
    y = x * 1
    Triple.apply(y[1:])
    return (y * w).sum()


def seen_by_another_view(x, w):
    y = x * 1
    last = y.flip(0)[:0].sum() + y[2]
    view = y[2:]
    Triple.apply(y[1:])
    return last + (view * w[2:]).sum()


def twice(x, w):
    y = x * 1
    Triple.apply(Triple.apply(y))
    return (y * w).sum()


def saved_output(x, w):
    y = x * 1
    return (Exp.apply(y) * w).sum() + y.sum()


def two_outputs(x, w):
    y = x * 1
    a, b = Pair.apply(y, w * 1)
    return (a + b).sum() + y.sum()


PROGRAMS = {  # value, and the gradient with respect to x
    used_after: ((3 * X * W).sum(), 5 * W),
    unmarked: ((3 * X * W).sum(), 5 * W),
    in_a_view: ((np.array([1, 3, 3]) * X * W).sum(), np.array([1, 5, 5]) * W),
    seen_by_another_view: (X[2] + 3 * X[2] * W[2], [0, 0, 1 + 5 * W[2]]),
    twice: ((9 * X * W).sum(), 25 * W),
    saved_output: ((np.exp(X) * (W + 1)).sum(), np.exp(X) * (W + 1)),
    two_outputs: ((4 * X * W).sum(), 2 * 7 * W),
}
every_program = pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)


@every_program
def test_backward(f):
    x, w = lucid.tensor(X, requires_grad=True), lucid.tensor(W)
    y = f(x, w)
    y.backward()
    value, gradient = PROGRAMS[f]
    np.testing.assert_allclose(y.item(), value)
    np.testing.assert_allclose(x.grad, gradient)


@every_program
@pytest.mark.parametrize("jit", [lambda f: f, lucid.jit], ids=["eager", "jit"])
def test_transforms(f, jit):
    grad, outer = F.grad(jit(f)), jit(F.value_and_grad(f))
    for scale in (2, 3, 1):
        x, w = lucid.tensor(X), lucid.tensor(scale * W)
        value, gradient = outer(x, w)
        np.testing.assert_allclose(grad(x, w), gradient)
    np.testing.assert_allclose(value.item(), PROGRAMS[f][0])
    np.testing.assert_allclose(gradient, PROGRAMS[f][1])


@every_program
def test_vmap_is_a_loop(f):
    xs, w = np.stack([X, 2 * X]), lucid.tensor(W)
    values = F.vmap(f, in_dims=(0, None))(lucid.tensor(xs), w)
    np.testing.assert_allclose(values, [f(lucid.tensor(x), w).item() for x in xs])


@every_program
def test_jitted_and_then_backward(f):
    jitted = lucid.jit(f)
    for _ in range(3):
        x = lucid.tensor(X, requires_grad=True)
        jitted(x, lucid.tensor(W)).backward()
        np.testing.assert_allclose(x.grad, PROGRAMS[f][1])


def test_the_argument_itself_is_returned():
    y = lucid.tensor(X, requires_grad=True) * 1
    assert Triple.apply(y) is y
    plain = lucid.tensor(X)
    assert Triple.apply(plain) is plain and np.array_equal(plain, 3 * X)
    with lucid.no_grad():
        leaf = lucid.tensor(X, requires_grad=True)
        assert Triple.apply(leaf) is leaf and leaf.is_leaf and leaf.requires_grad


def test_an_input_returned_unchanged_is_a_value_of_its_own():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return -g

    x = lucid.tensor(X, requires_grad=True)
    y = x * 1
    Same.apply(y).mul_(2.0).sum().backward()
    assert np.array_equal(y.detach(), X) and x.grad.tolist() == [-2.0] * 3


def test_what_cannot_be_right_is_refused():
    class Lost(Triple):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(3) * 2

    class Silent(Triple):
        @staticmethod
        def forward(ctx, x):
            return x.mul_(3) * 2

    leaf = lucid.tensor(X, requires_grad=True)
    with pytest.raises(GraphError, match="argument 0 is marked dirty and is not returned"):
        Lost.apply(leaf * 1)
    with pytest.raises(GraphError, match="forward changes argument 0, which requires a gradient"):
        Silent.apply(leaf * 1)
    with pytest.raises(GraphError, match="a leaf that requires a gradient"):
        Triple.apply(leaf)
    for run in (
        F.grad(lambda x: Silent.apply(x * 1).sum()),
        lucid.jit(lambda x: Lost.apply(x * 1)),
    ):
        with pytest.raises(GraphError, match="argument 0"):
            run(lucid.tensor(X))


def test_a_saved_output_that_is_overwritten_is_refused():
    x = lucid.tensor(X, requires_grad=True)
    y = Exp.apply(x * 1)
    y.mul_(2.0)
    with pytest.raises(MutationError, match="changed in place"):
        y.sum().backward()


def test_a_buffer_may_be_changed():
    class Counted(Function):
        @staticmethod
        def forward(ctx, x, count):
            count.add_(1.0)
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * 3, None

    x, count = lucid.tensor(X, requires_grad=True), lucid.zeros(())
    for _ in range(2):
        Counted.apply(x, count).sum().backward()
    assert count.item() == 2.0 and x.grad.tolist() == [6.0] * 3


# In-place reductions read views of the old value, which they overwrite


@pytest.mark.parametrize("name", ["amin", "amax", "prod", "mean"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("method", ["scatter_reduce", "index_reduce"])
def test_in_place_reduction_has_the_gradient_of_the_function(name, include_self, method):
    index = lucid.tensor([0, 0, 1] if method == "index_reduce" else [[0, 1, 0], [1, 1, 0], [0] * 3])
    start = np.array([[0.25, -0.5, 0.75], [1.5, -1.25, 2.0], [0.1, 0.2, 0.3]])
    source = np.array([[2.0, 4.0, -0.5], [0.5, 3.0, -1.0], [-2.0, 1.5, 7.0]])
    weights = lucid.tensor(np.arange(9.0).reshape(3, 3) + 1)

    def in_place(x, src):
        y = x * 1
        getattr(y, method + "_")(0, index, src, name, include_self=include_self)
        return (y * y * weights).sum()

    def pure(x, src):
        y = getattr(lucid, method)(x, 0, index, src, name, include_self=include_self)
        return (y * y * weights).sum()

    args = lucid.tensor(start), lucid.tensor(source)
    expected = F.grad(pure, argnums=(0, 1))(*args)
    leaves = [lucid.tensor(a, requires_grad=True) for a in (start, source)]
    in_place(*leaves).backward()
    jitted = F.grad(lucid.jit(in_place), argnums=(0, 1))
    jitted(*args)
    for found in ([t.grad for t in leaves], F.grad(in_place, argnums=(0, 1))(*args), jitted(*args)):
        for actual, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-12)
    for i, j in ((0, 0), (1, 2), (2, 1)):  # the function itself against central differences
        step = np.zeros_like(start)
        step[i, j] = 1e-6
        above, below = (pure(lucid.tensor(start + s), args[1]).item() for s in (step, -step))
        np.testing.assert_allclose(expected[0].numpy()[i, j], (above - below) / 2e-6, rtol=1e-5)
