"""Lazy layers: made without the size of their input, ordinary layers after their first call."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ModuleError, ShapeError

X = np.random.default_rng(0).normal(size=(4, 6)).astype("float32")
SHAPES = {1: (2, 4, 7), 2: (2, 4, 6, 5), 3: (2, 4, 4, 3, 5)}
MADE = [(nn.LazyLinear(3), nn.Linear(5, 3), (2, 5))]
for n, shape in SHAPES.items():
    for name, args, options in [
        (f"Conv{n}d", (6, 3), {"padding": 1, "groups": 2}),
        (f"Conv{n}d", (6, 2, 2), {"bias": False}),
        (f"ConvTranspose{n}d", (6, 3, 2, 1), {"groups": 2}),
        (f"BatchNorm{n}d", (), {}),
        (f"BatchNorm{n}d", (), {"affine": False, "track_running_stats": False}),
        (f"InstanceNorm{n}d", (), {"affine": True, "track_running_stats": True}),
    ]:
        lazy, ordinary = getattr(nn, f"Lazy{name}"), getattr(nn, name)
        MADE.append((lazy(*args, **options), ordinary(4, *args, **options), shape))


@pytest.mark.parametrize(("lazy", "ordinary", "shape"), MADE, ids=lambda x: type(x).__name__)
def test_a_lazy_layer_becomes_the_ordinary_one_at_its_first_call(lazy, ordinary, shape):
    lazy, ordinary = copy.deepcopy(lazy), copy.deepcopy(ordinary)
    x = lucid.randn(*shape)
    assert list(lazy.state_dict()) == list(ordinary.state_dict())
    lazy(x)
    assert type(lazy) is type(ordinary) and repr(lazy) == repr(ordinary)
    shapes = [{name: t.shape for name, t in m.state_dict().items()} for m in (lazy, ordinary)]
    assert shapes[0] == shapes[1]
    ordinary.load_state_dict(lazy.state_dict())
    np.testing.assert_array_equal(lazy.eval()(x).detach(), ordinary.eval()(x).detach())


def test_parameters_get_the_initial_values_of_the_ordinary_layer():
    layer = nn.LazyLinear(200)
    layer(lucid.zeros(1, 100))
    weight = layer.weight.detach().numpy()
    assert 0.09 < abs(weight).max() <= 0.1 and abs(weight.std() - 0.1 / 3**0.5) < 0.002
    norm = nn.LazyBatchNorm1d()
    norm(lucid.randn(8, 3))
    np.testing.assert_array_equal(norm.weight.detach(), np.ones(3))
    np.testing.assert_array_equal(norm.num_batches_tracked, 1)


def test_the_parameter_is_the_same_object_before_and_after():
    layer = nn.LazyLinear(2)
    before = list(layer.parameters())
    layer(lucid.tensor(X))
    assert [a is b for a, b in zip(before, layer.parameters(), strict=True)] == [True, True]
    assert type(layer.weight) is nn.Parameter and layer.weight.requires_grad


def test_a_lazy_network_trains():
    net = nn.Sequential(nn.LazyLinear(8), nn.Tanh(), nn.LazyLinear(1))
    x = lucid.tensor(X)
    net(x)
    optimizer = lucid.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = (net(x) - 1.0).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_a_state_is_loaded_before_the_first_call():
    trained = nn.Linear(6, 3)
    lazy = nn.LazyLinear(3)
    lazy.load_state_dict(trained.state_dict())
    assert not lazy.has_uninitialized_params()
    np.testing.assert_array_equal(lazy(lucid.tensor(X)).detach(), trained(lucid.tensor(X)).detach())
    assert lazy.in_features == 6 and type(lazy) is nn.Linear


def test_the_state_of_a_lazy_layer_fits_lazy_layers_alone():
    state = nn.LazyLinear(3).state_dict()
    nn.LazyLinear(3).load_state_dict(state)
    with pytest.raises(ModuleError, match="weight has no shape in this state"):
        nn.Linear(6, 3).load_state_dict(state)


def test_a_parameter_without_a_shape_says_so_when_it_is_used():
    weight = nn.LazyLinear(3).weight
    assert repr(weight) == "<UninitializedParameter>" and weight.dtype == lucid.float32
    for use in (lambda: weight.shape, lambda: weight + 1, lambda: weight.numpy(), weight.sum):
        with pytest.raises(ModuleError, match="no shape yet; call its lazy layer"):
            use()


def test_conversion_frozen_parameters_and_deep_copies_wait_for_the_shape():
    layer = nn.LazyConv1d(2, 3).double().requires_grad_(False)
    twin = copy.deepcopy(layer)
    for each in (layer, twin):
        each(lucid.zeros(1, 4, 5, dtype="float64"))
        assert each.weight.dtype == lucid.float64 and not each.weight.requires_grad


def test_the_first_call_is_refused_inside_jit_and_transforms():
    layer = nn.LazyLinear(2)
    for run in (lucid.jit(lambda x: layer(x)), lucid.func.vmap(lambda x: layer(x))):
        with pytest.raises(ModuleError, match="call it once before"):
            run(lucid.tensor(X))
    layer(lucid.tensor(X))
    assert lucid.jit(lambda x: layer(x))(lucid.tensor(X)).shape == (4, 2)


def test_inputs_that_a_lazy_layer_cannot_read():
    with pytest.raises(ShapeError, match="no features"):
        nn.LazyLinear(2)(lucid.tensor(1.0))
    with pytest.raises(ShapeError, match="2 axes after"):
        nn.LazyConv2d(2, 3)(lucid.ones(2, 3))
    with pytest.raises(ShapeError, match="3 channels are not divisible into 2 groups"):
        nn.LazyConv2d(2, 3, groups=2)(lucid.ones(1, 3, 4, 4))
    with pytest.raises(ShapeError, match="4 axes"):
        nn.LazyBatchNorm2d()(lucid.ones(2, 3))


def test_the_norm_of_one_image_takes_its_channels():
    norm = nn.LazyInstanceNorm2d(affine=True)
    norm(lucid.randn(3, 4, 5))
    assert norm.weight.shape == (3,)
