"""Names of parameters that a layer's class knows mean what they mean in other modules."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn


def test_a_property_of_a_subclass_comes_first():
    class Halved(nn.Linear):
        @property
        def weight(self):
            return self._parameters["weight"] * 0.5

    layer, x = Halved(2, 3, bias=False), lucid.ones(1, 2)
    want = layer._parameters["weight"].detach().numpy().sum(1) / 2
    np.testing.assert_allclose(layer(x).detach().numpy()[0], want, rtol=1e-6)


def test_an_attribute_of_an_instance_comes_first():
    layer = nn.Linear(2, 2, bias=False)
    layer.__dict__["weight"] = lucid.eye(2)
    assert layer(lucid.ones(1, 2)).tolist() == [[1.0, 1.0]]


def test_a_name_that_is_deleted_or_replaced():
    layer = nn.Linear(2, 2)
    layer.bias = None
    layer.weight = nn.Parameter(lucid.eye(2))
    assert layer(lucid.ones(1, 2)).tolist() == [[1.0, 1.0]]
    del layer.weight
    assert not hasattr(layer, "weight")
    with pytest.raises(AttributeError, match="Linear has no attribute 'weight'"):
        layer.weight  # noqa: B018
    layer.weight = lucid.eye(2) * 2  # not a parameter
    assert layer.weight.tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert "weight" not in dict(layer.named_parameters())


def test_a_class_has_no_parameters():
    for kind, name in ((nn.Linear, "weight"), (nn.LSTMCell, "bias_ih"), (nn.Conv2d, "bias")):
        assert not hasattr(kind, name)


def test_a_jitted_function_sees_another_parameter():
    layer, x = nn.Linear(2, 2, bias=False), lucid.ones(1, 2)
    run = lucid.jit(lambda x: layer(x))
    for factor in (1.0, 2.0, 3.0):
        layer.weight = nn.Parameter(lucid.eye(2) * factor)
        for _ in range(3):
            assert run(x).tolist() == [[factor, factor]]


def test_a_parametrized_weight_is_computed():
    class Doubled(nn.Module):
        def forward(self, w):
            return 2 * w

    layer = nn.Linear(2, 2, bias=False)
    with lucid.no_grad():
        layer.weight.copy_(lucid.eye(2))
    nn.utils.parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer(lucid.ones(1, 2)).tolist() == [[2.0, 2.0]]


def test_running_statistics_are_found_among_the_buffers():
    norm = nn.BatchNorm1d(2)
    norm(lucid.tensor([[0.0, 2.0], [2.0, 4.0]]))
    np.testing.assert_allclose(norm.running_mean.numpy(), [0.1, 0.3], rtol=1e-6)
    assert norm.num_batches_tracked.item() == 1
    norm.running_mean = lucid.zeros(2)
    assert norm.running_mean.tolist() == [0.0, 0.0]
