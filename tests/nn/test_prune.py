"""Pruning: which elements go, how the module keeps the rest, and how it trains."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ArgumentError, ModuleError, ShapeError
from lucid.nn.utils import prune

W = np.array([[0.1, -2.0, 0.3, 4.0], [5.0, -0.6, 0.7, -0.2], [0.9, 1.0, -1.1, 1.2]], "float32")


def layer():
    made = nn.Linear(4, 3)
    with lucid.no_grad():
        made.weight.copy_(lucid.tensor(W))
    return made


def mask_of(module):
    return module.weight_mask.numpy()


def test_the_smallest_elements_go():
    made = prune.l1_unstructured(layer(), "weight", 3)
    expected = np.where(np.isin(np.abs(W), np.sort(np.abs(W), None)[:3]), 0.0, W)
    np.testing.assert_array_equal(made.weight.detach(), expected)
    np.testing.assert_array_equal(made.weight_orig.detach(), W)
    np.testing.assert_array_equal(mask_of(made), expected != 0)
    x = np.ones((1, 4), "float32")
    bias = made.bias.detach().numpy()
    np.testing.assert_allclose(made(lucid.tensor(x)).detach(), x @ expected.T + bias, rtol=1e-6)


def test_names_of_parameters_and_buffers_are_pytorchs():
    made = prune.random_unstructured(layer(), "weight", 0.5)
    assert sorted(dict(made.named_parameters())) == ["bias", "weight_orig"]
    assert list(dict(made.named_buffers())) == ["weight_mask"]
    assert mask_of(made).sum() == 6 and prune.is_pruned(nn.Sequential(made))


def test_whole_channels_go_by_their_norm():
    for n in (1, 2, float("inf"), "fro"):
        made = prune.ln_structured(layer(), "weight", 1, n, dim=0)
        order = 2 if n == "fro" else n
        least = np.linalg.norm(W, order, axis=1).argmin()
        np.testing.assert_array_equal(mask_of(made)[:, 0], np.arange(3) != least)
        assert (mask_of(made) == mask_of(made)[:, :1]).all()
    made = prune.random_structured(layer(), "weight", 0.5, dim=1)
    assert mask_of(made).sum(0).tolist().count(0.0) == 2


def test_pruning_again_looks_at_what_is_left():
    made = prune.l1_unstructured(layer(), "weight", 0.5)
    prune.l1_unstructured(made, "weight", 0.5)
    assert mask_of(made).sum() == 3 and set(W[mask_of(made) == 1]) == {-2.0, 4.0, 5.0}
    assert isinstance(made._pruned["weight"], prune.PruningContainer)
    prune.ln_structured(made, "weight", 1, 1, dim=0)
    assert mask_of(made).sum() == 2 - (abs(-2.0) + 4.0 < 5.0)


def test_scores_other_than_the_elements_themselves():
    scores = np.arange(12.0).reshape(3, 4)
    made = prune.l1_unstructured(layer(), "weight", 4, importance_scores=lucid.tensor(scores))
    np.testing.assert_array_equal(mask_of(made), scores >= 4)


def test_several_parameters_are_pruned_as_one():
    first, second = layer(), nn.Linear(4, 1)
    with lucid.no_grad():
        second.weight.fill_(0.25)
    pairs = [(first, "weight"), (second, "weight")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=5)
    assert mask_of(first).sum() == 10 and mask_of(second).sum() == 1
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=1)
    assert mask_of(first).sum() + mask_of(second).sum() == 10


def test_removal_leaves_zeros_in_the_same_parameter():
    made = layer()
    before = made.weight
    prune.custom_from_mask(made, "weight", lucid.tensor(W > 0))
    prune.remove(made, "weight")
    assert made.weight is before and not prune.is_pruned(made)
    np.testing.assert_array_equal(made.weight.detach(), np.maximum(W, 0))
    assert sorted(made.state_dict()) == ["bias", "weight"]


def test_what_is_pruned_stays_zero_in_training_eager_and_jitted():
    models = [prune.l1_unstructured(layer(), "weight", 0.5)]
    models.append(copy.deepcopy(models[0]))
    x = lucid.ones(2, 4)
    for model, wrap in zip(models, (lambda f: f, lucid.jit)):
        optimizer = lucid.optim.SGD(model.parameters(), lr=0.1)

        @wrap
        def step(x, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        for _ in range(3):
            step(x)
        assert (model.weight.detach().numpy()[mask_of(model) == 0] == 0).all()
        assert (model.weight_orig.grad.numpy()[mask_of(model) == 0] == 0).all()
    np.testing.assert_allclose(models[0].weight.detach(), models[1].weight.detach(), rtol=1e-6)


def test_a_jitted_function_sees_that_a_module_is_pruned():
    made, x = layer(), lucid.ones(1, 4)
    f = lucid.jit(lambda x: made(x))
    f(x), f(x)
    prune.custom_from_mask(made, "weight", lucid.zeros(3, 4))
    np.testing.assert_allclose(f(x).detach()[0], made.bias.detach(), rtol=1e-6)
    prune.remove(made, "weight")
    np.testing.assert_allclose(f(x).detach()[0], made.bias.detach(), rtol=1e-6)


def test_the_state_of_a_pruned_module_is_loaded():
    made, other = (prune.identity(layer(), "weight") for _ in range(2))
    prune.l1_unstructured(made, "weight", 4)
    other.load_state_dict(made.state_dict())
    np.testing.assert_array_equal(other.weight.detach(), made.weight.detach())


def test_a_method_of_ones_own():
    class EveryOther(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    made = layer()
    EveryOther.apply(made, "weight")
    np.testing.assert_array_equal(mask_of(made), np.tile([0, 1], (3, 2)))
    np.testing.assert_array_equal(EveryOther().prune(lucid.ones(4)), [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("call", "error", "part"),
    [
        (lambda m: prune.l1_unstructured(m, "weight", 1.5), ArgumentError, "in [0.0, 1.0]"),
        (lambda m: prune.l1_unstructured(m, "weight", -1), ArgumentError, "nonnegative integer"),
        (lambda m: prune.l1_unstructured(m, "weight", "all"), ArgumentError, "amount='all'"),
        (lambda m: prune.l1_unstructured(m, "weight", 13), ArgumentError, "13 of 12"),
        (lambda m: prune.l1_unstructured(m, "kernel", 1), ModuleError, "no parameter 'kernel'"),
        (lambda m: prune.ln_structured(m, "bias", 1, 2, 0), ShapeError, "no channels"),
        (lambda m: prune.ln_structured(m, "weight", 1, "nuc", 0), ArgumentError, "n='nuc'"),
        (lambda m: prune.custom_from_mask(m, "weight", lucid.ones(2)), ShapeError, "a mask of"),
        (lambda m: prune.l1_unstructured(m, "weight", 1, lucid.ones(2)), ShapeError, "scores"),
        (lambda m: prune.remove(m, "weight"), ModuleError, "is not pruned"),
        (lambda m: prune.global_unstructured([], prune.L1Unstructured, amount=1), ArgumentError,
         "no parameters"),
        (lambda m: prune.global_unstructured([(m, "weight")], prune.LnStructured, amount=1, n=1),
         ArgumentError, "not unstructured"),
    ],
)  # fmt: skip
def test_misuse_is_told_and_changes_nothing(call, error, part):
    made = layer()
    with pytest.raises(error) as caught:
        call(made)
    assert part in str(caught.value)
    assert sorted(made.state_dict()) == ["bias", "weight"] and not prune.is_pruned(made)
