"""NumPy arrays in, NumPy arrays out: every transform, jitted or not, and what stays a tensor."""

import numpy as np
import pytest

import lucid
from lucid.func import (
    grad,
    grad_and_value,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linearize,
    value_and_grad,
    vjp,
    vmap,
)

X = np.array([1.0, 2.0])


def cubes(x):
    return (x**3).sum()


def squares(x):
    return lucid.multiply(x, x)


@pytest.mark.parametrize(
    ("transformed", "expected"),
    [
        (grad(cubes), 3 * X**2),
        (jacrev(squares), np.diag(2 * X)),
        (jacfwd(squares), np.diag(2 * X)),
        (jacobian(squares), np.diag(2 * X)),
        (hessian(cubes), np.diag(6 * X)),
        (vmap(squares), X**2),
        (lambda x: hvp(cubes, x, np.ones(2)), 6 * X),
        (lambda x: jvp(squares, (x,), (np.ones(2),))[1], 2 * X),
        (lambda x: vjp(squares, x)[1](np.ones(2))[0], 2 * X),
        (lambda x: linearize(squares, x)[1](np.ones(2)), 2 * X),
    ],
)
def test_each_transform_returns_the_kind_it_was_given(transformed, expected):
    result = transformed(X)
    assert type(result) is np.ndarray and result.flags.writeable
    np.testing.assert_allclose(result, expected)
    with_tensors = lambda: transformed(lucid.tensor(X))  # noqa: E731
    assert isinstance(with_tensors(), lucid.Tensor)


@pytest.mark.parametrize("jit", [lambda f: f, lucid.jit])
def test_values_are_numpy_numbers_and_pytrees_keep_their_structure(jit):
    value, slope = jit(value_and_grad(lambda p: (p["a"] ** 2).sum() * p["b"]))(
        {"a": X, "b": np.array(3.0)}
    )
    assert type(value) is np.float64 and value == 15.0
    assert type(slope["a"]) is np.ndarray and type(slope["b"]) is np.float64
    slope, value = jit(grad_and_value(cubes))(X)
    assert type(slope) is np.ndarray and value == 9.0


def test_a_jitted_transform_returns_arrays_at_every_call_and_size():
    f = lucid.jit(grad(cubes))
    for x in (X, X + 1.0, X * 2.0, np.arange(5.0)):
        assert type(f(x)) is np.ndarray
        np.testing.assert_allclose(f(x), 3 * x**2)
        assert isinstance(f(lucid.tensor(x)), lucid.Tensor)


def test_python_numbers_are_neither_and_give_tensors():
    assert isinstance(grad(lambda x: x * x)(3.0), lucid.Tensor)
    assert type(grad(lambda x: x * x)(np.float64(3.0))) is np.float64


def test_only_the_arguments_to_differentiate_decide():
    t = lucid.tensor(X)
    assert type(grad(lambda x, y: (x * y).sum())(X, t)) is np.ndarray
    assert isinstance(grad(lambda x, y: (x * y).sum(), 1)(X, t), lucid.Tensor)
    assert isinstance(grad(lambda x, y: (x * y).sum(), (0, 1))(X, t)[0], lucid.Tensor)


def test_a_function_that_closes_over_constants_returns_arrays():
    weight = lucid.tensor([2.0, 3.0])
    assert type(grad(lambda x: (x * weight).sum())(X)) is np.ndarray


def test_a_result_with_a_history_stays_a_tensor():
    weight = lucid.tensor([2.0, 3.0], requires_grad=True)
    slope = grad(lambda x: (x * x * weight).sum())(X)
    slope.sum().backward()
    np.testing.assert_allclose(weight.grad.numpy(), 2 * X)


def test_inner_transforms_on_arrays_are_differentiated_by_outer_ones():
    def outer(s):
        return grad(lambda x: (x**2 * s).sum())(X).sum()

    assert grad(outer)(np.float64(5.0)) == pytest.approx(6.0)
    np.testing.assert_allclose(vmap(outer)(np.array([1.0, 2.0])), [6.0, 12.0])
    jitted = lucid.jit(outer)
    assert [jitted(lucid.tensor(s)).item() for s in (1.0, 2.0)] == [6.0, 12.0]


def test_results_own_their_memory():
    x = X.copy()
    out, pull = vjp(lambda x: x, x)
    out[0] = 7.0
    assert x[0] == 1.0
    pull(x)[0][0] = 9.0
    assert x[0] == 1.0


def test_a_jitted_transform_returns_arrays_in_memory_of_their_own():
    both = lucid.jit(grad(lambda x, y: (x * y).sum() + (y * x).sum(), argnums=(0, 1)))
    alike = lucid.jit(grad(lambda x, y: (x + y).sum(), argnums=(0, 1)))
    for k in range(4):
        x, y = np.full(2, k), np.full(2, k + 1.0)
        x = x.astype(float)
        dx, dy = both(x, y)
        assert dx.tolist() == (2 * y).tolist() and dy.tolist() == (2 * x).tolist()
        ones = alike(x, y)
        ones[0][...] = 7
        assert type(ones[1]) is np.ndarray and ones[1].tolist() == [1.0, 1.0]
        assert alike(x, y)[0].tolist() == [1.0, 1.0]
        assert isinstance(both(lucid.tensor(x), y)[0], lucid.Tensor)
