"""Writes that nothing records: NumPy does them at once, and they are noticed all the same."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import GraphError, MutationError

WRITES = {
    "copy_": (lambda x, y: x.copy_(y), lambda x, y: y),
    "fill_": (lambda x, y: x.fill_(3), lambda x, y: np.full_like(x, 3)),
    "zero_": (lambda x, y: x.zero_(), lambda x, y: np.zeros_like(x)),
    "mul_": (lambda x, y: x.mul_(0.1), lambda x, y: x * np.float32(0.1)),
    "add_": (lambda x, y: x.add_(y, alpha=0.1), lambda x, y: x + y * np.float32(0.1)),
    "sub_": (lambda x, y: x.sub_(y, alpha=3), lambda x, y: x - y * np.float32(3)),
    "itself": (lambda x, y: x.add_(x, alpha=2.0), lambda x, y: x + x * np.float32(2)),
    "addcdiv_": (lambda x, y: x.addcdiv_(y, y, value=2.0), lambda x, y: x + np.float32(2)),
}


def write_and_expect(name):
    x, y = np.array([1.5, -2.0, 0.3], "float32"), np.array([0.7, 5.0, -1.1], "float32")
    write, expected = WRITES[name]
    return x, lucid.tensor(y), write, expected(x, y)


@pytest.mark.parametrize("name", WRITES)
def test_unrecorded_writes_give_numpys_values(name):
    array, y, write, expected = write_and_expect(name)
    leaf = lucid.tensor(array, requires_grad=True)
    base = lucid.tensor(np.stack([array, array]))
    viewed = lucid.tensor(array)
    view = viewed[1:]
    with lucid.no_grad():
        assert write(leaf, y) is leaf and leaf.is_leaf and leaf.requires_grad
    write(base[1], y)
    write(viewed, y)
    for found in (leaf.detach(), base[1], viewed):
        np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_array_equal(base[0].numpy(), array)
    np.testing.assert_array_equal(view.numpy(), expected[1:])


@pytest.mark.parametrize("name", WRITES)
def test_unrecorded_writes_are_noticed_by_derivatives_that_need_the_old_value(name):
    array, y, write, _ = write_and_expect(name)
    x = lucid.tensor(array)
    w = lucid.tensor(array, requires_grad=True)
    loss = (w * x).sum()
    version = x._version
    write(x, y)
    assert x._version == version + 1
    with pytest.raises(MutationError):
        loss.backward()


@pytest.mark.parametrize("name", WRITES)
def test_writes_to_read_only_memory_and_to_leaves_are_refused(name):
    array, y, write, _ = write_and_expect(name)
    before = array.copy()
    array.flags.writeable = False
    with pytest.raises(GraphError, match="read-only"):
        write(lucid.from_numpy(array), y)
    with pytest.raises(GraphError, match="a leaf that requires a gradient"):
        write(lucid.tensor(array, requires_grad=True), y)
    np.testing.assert_array_equal(array, before)


def test_alpha_is_for_functions_that_have_it():
    with pytest.raises(TypeError, match="alpha"):
        lucid.ones(2).mul_(lucid.ones(2), alpha=2.0)
