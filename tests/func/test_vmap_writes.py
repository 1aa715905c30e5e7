"""vmap of a function that writes its argument writes the examples of the caller's tensor."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import func, nn
from lucid.errors import GraphError

A = np.arange(6.0).reshape(2, 3)
B = np.arange(24.0).reshape(2, 3, 4)


def tensor(x, **options):
    return lucid.tensor(np.array(x, "float64"), **options)


def same(found, expected):
    np.testing.assert_allclose(found.detach().numpy(), expected)


def test_a_write_to_the_argument_is_one_to_the_tensor_and_the_result_shares_its_memory():
    for _ in range(3):
        a = tensor(A)
        y = func.vmap(lambda x: x.add_(1))(a)
        same(a, A + 1)
        same(y, A + 1)
        y.mul_(2)
        same(a, (A + 1) * 2)


def test_writes_go_along_in_dims():
    a, b = tensor(A), tensor(2 * A)

    def f(x, y):
        x.add_(y)
        y.mul_(x)
        return x

    same(func.vmap(f, in_dims=(1, 1))(a, b), 3 * A.T)
    same(a, 3 * A)
    same(b, 2 * A * 3 * A)


def test_a_write_to_a_part_of_an_example():
    a = tensor(A)

    def f(x):
        first = x[0]
        x[1:] = first * 10
        return x.sum()

    expected = np.concatenate([A[:, :1], np.repeat(A[:, :1] * 10, 2, 1)], 1)
    same(func.vmap(f)(a), expected.sum(1))
    same(a, expected)


def test_a_view_writes_to_its_base():
    a = tensor(A)
    func.vmap(lambda x: x.zero_())(a[:, 1:])
    same(a, A * [1, 0, 0])


def test_parts_of_a_batch_write_their_rows():
    a = tensor(A)
    func.vmap(lambda x: x.add_(1), chunk_size=1)(a)
    same(a, A + 1)
    a = tensor(A)
    func.vmap(lambda x: x.add_(1) if x.sum() > 5 else x.sub_(1), branching="split")(a)
    same(a, A + np.array([[-1], [1]]))


def test_nested_vmaps_write_through():
    a = tensor(B)
    func.vmap(func.vmap(lambda x: x.mul_(x[0]), in_dims=1))(a)
    same(a, B * B[:, :1])
    a = tensor(B)
    func.vmap(func.vmap(lambda x: x.mul_(x[0]), in_dims=1), in_dims=2)(a)
    same(a, B * B[:1])


def test_a_write_in_a_loop_of_the_function():
    a = tensor(A)

    def f(x):
        func.scan(lambda c, step: (c, x.add_(step)), x.sum(), tensor([1, 2]))
        return x.sum()

    same(func.vmap(f)(a), (A + 3).sum(1))
    same(a, A + 3)


def test_jitted_calls_write_other_values_and_sizes():
    f = lucid.jit(lambda a: func.vmap(lambda x: x.mul_(2).sum(), in_dims=1)(a))
    for x in (A, A + 1, A - 1, np.ones((4, 5)), np.ones((4, 6))):
        a = tensor(x)
        same(f(a), (2 * x).sum(0))
        same(a, 2 * x)
    g = lucid.jit(lambda a: func.vmap(lambda x: x.add_(1))(a))
    for _ in range(3):
        a = tensor(A)
        g(a).add_(1)
        same(a, A + 2)


def test_a_vmap_that_recurs_writes_every_time():
    a = tensor(A)
    for _ in range(40):
        func.vmap(lambda x: x.add_(1))(a)
    same(a, A + 40)


def test_derivatives_flow_through_the_write():
    def f(x):
        y = x * 1
        func.vmap(lambda row: row.mul_(row), in_dims=1)(y)
        return y.sum()

    same(func.grad(f)(tensor(A)), 2 * A)
    same(func.jvp(f, (tensor(A),), (tensor(np.ones_like(A)),))[1], 2 * A.sum())
    gradient = lucid.jit(func.grad(f))
    for k in range(3):
        same(gradient(tensor(A + k)), 2 * (A + k))
    x = tensor(A, requires_grad=True)
    f(x).backward()
    same(x.grad, 2 * A)


def test_running_statistics_of_an_ensemble_are_those_of_its_networks():
    x = np.random.default_rng(0).normal(size=(5, 3))
    net = nn.BatchNorm1d(3)
    parameters, buffers = func.stack_module_state([net, net])
    y = func.vmap(lambda p, b: func.functional_call(net, (p, b), (lucid.tensor(x),)))(
        parameters, buffers
    )
    assert y.shape == (2, 5, 3)
    for row in (0, 1):
        np.testing.assert_allclose(buffers["running_mean"][row], 0.1 * x.mean(0), rtol=1e-5)
        assert int(buffers["num_batches_tracked"][row]) == 1
    np.testing.assert_array_equal(net.running_mean, np.zeros(3))


REFUSED = {
    "a leaf": ("a leaf that requires a gradient", lambda a: func.vmap(lambda x: x.mul_(3))(
        a.requires_grad_()
    )),
    "an argument of grad": ("an argument of a transform", lambda a: func.grad(
        lambda a: func.vmap(lambda x: x.mul_(3))(a).sum()
    )(a)),
    "twice": ("through another tensor", lambda a: func.vmap(lambda x, y: x.mul_(3) + y)(a, a)),
    "a captured tensor": (
        "through another tensor", lambda a: func.vmap(lambda x: x.mul_(3) + a.sum())(a)
    ),
    "another shape": (
        "shape of an argument of vmap", lambda a: func.vmap(lambda x: x.unsqueeze_(0))(a)
    ),
    "expanded": (
        "read-only", lambda a: func.vmap(lambda x: x.mul_(3))(a[0].expand(4, 3))
    ),
    "an array": (
        "an argument of vmap", lambda a: func.vmap(lambda x: x.mul_(3))(a.detach().numpy())
    ),
    "a tensor of no example": (
        "per-example value", lambda a: func.vmap(
            lambda i: func.vmap(lambda x: x.add_(i))(a)
        )(tensor([1, 2]))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_writes_that_are_refused_leave_the_tensor_as_it_was(name):
    words, call = REFUSED[name]
    a = tensor(A)
    with pytest.raises(GraphError, match=words):
        call(a)
    same(a, A)
