"""In-place views of leaves: under no_grad, as in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import GraphError

METHODS = {
    "t_": (), "squeeze_": (), "unsqueeze_": (0,), "transpose_": (0, 1), "swapaxes_": (0, 1),
    "swapdims_": (0, 1),
}  # fmt: skip
MAKERS = [lambda x: lucid.tensor(x, requires_grad=True), lambda x: nn.Parameter(lucid.tensor(x))]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", METHODS)
def test_a_leaf_may_be_reshaped_under_no_grad(name, make):
    x, other = np.arange(3.0).reshape(3, 1), np.arange(3.0).reshape(3, 1) + 1
    expected = getattr(lucid.tensor(x), name.rstrip("_"))(*METHODS[name]).numpy()
    leaf = make(x)
    with lucid.no_grad():
        assert getattr(leaf, name)(*METHODS[name]) is leaf
    assert leaf.is_leaf and leaf.requires_grad and leaf.grad is None
    np.testing.assert_array_equal(leaf.detach().numpy(), expected)
    (leaf * lucid.tensor(other.reshape(expected.shape))).sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), other.reshape(expected.shape))
    with lucid.no_grad():
        leaf.add_(1.0)  # a step of an optimizer
    np.testing.assert_array_equal(leaf.detach().numpy(), expected + 1)


@pytest.mark.parametrize("name", METHODS)
def test_a_recorded_leaf_or_one_with_a_gradient_keeps_its_shape(name):
    leaf = lucid.ones(3, 1, requires_grad=True)
    with pytest.raises(GraphError, match=r"no_grad\(\)"):
        getattr(leaf, name)(*METHODS[name])
    leaf.sum().backward()
    with lucid.no_grad(), pytest.raises(GraphError, match=r"set its \.grad to None"):
        getattr(leaf, name)(*METHODS[name])
    assert leaf.shape == (3, 1)
