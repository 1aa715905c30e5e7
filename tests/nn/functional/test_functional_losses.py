"""Losses as users call them: at extremes, with nothing to count, compiled."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy import special

import lucid
import lucid.nn.functional as F
from lucid.compiler.inspect.stages import planned_text
from lucid.errors import IndexingError

INF = math.inf


def gradient(f, x):
    return lucid.func.grad(f)(lucid.tensor(np.asarray(x, "float32"))).numpy()


# Extremes


def test_cross_entropy_is_exact_for_large_scores():
    """log(1 + e⁻¹) where 1e4 + log(...) would be rounded to a multiple of 1e-3."""
    x = lucid.tensor([[1e4, 1e4 - 1], [-1e4, 1e4]])
    loss = F.cross_entropy(x, lucid.tensor([0, 0]), reduction="none")
    np.testing.assert_allclose(loss.numpy(), [math.log1p(math.exp(-1)), 2e4], rtol=1e-6)
    slope = gradient(lambda x: F.cross_entropy(x, lucid.tensor([0, 0]), reduction="sum"), x.numpy())
    share = 1 / (1 + math.e)
    np.testing.assert_allclose(slope, [[-share, share], [-1, 1]], rtol=1e-5)


def test_a_class_that_is_impossible_costs_nothing_where_it_is_not_wanted():
    x = lucid.tensor([[0.0, -INF, 0.0]])
    assert F.cross_entropy(x, lucid.tensor([0])).item() == pytest.approx(math.log(2))
    shares = lucid.tensor([[0.5, 0.0, 0.5]])
    assert F.cross_entropy(x, shares).item() == pytest.approx(math.log(2))
    assert np.isfinite(gradient(lambda x: F.cross_entropy(x, shares), x.numpy())).all()


@pytest.mark.parametrize("target", [0.0, 1.0])
def test_binary_cross_entropy_of_logits_is_exact_on_both_sides(target):
    x = np.array([-1e4, -20.0, 0.0, 20.0, 1e4], "float32")
    t = lucid.full((5,), target)
    loss = F.binary_cross_entropy_with_logits(lucid.tensor(x), t, reduction="none").numpy()
    wrong = x.astype("float64") * (1 - 2 * target)
    np.testing.assert_allclose(loss, np.logaddexp(0, wrong), rtol=1e-6)
    slope = gradient(lambda x: F.binary_cross_entropy_with_logits(x, t, reduction="sum"), x)
    np.testing.assert_allclose(slope, special.expit(x.astype("f8")) - target, atol=1e-7)


def test_binary_cross_entropy_of_certainty_is_bounded():
    loss = F.binary_cross_entropy(
        lucid.tensor([0.0, 1.0, 0.0, 1.0]), lucid.tensor([1.0, 0.0, 0.0, 1.0]), reduction="none"
    )
    assert loss.tolist() == [100, 100, 0, 0]


def test_second_derivatives_where_branches_meet():
    """Of softplus(x) - t x at 0: 1/4, on either side and at the border itself."""
    t = lucid.tensor([0.0, 0.3, 1.0])

    def loss(x):
        return F.binary_cross_entropy_with_logits(x, t, reduction="sum")

    hessian = lucid.func.hessian(loss)(lucid.zeros(3)).numpy()
    np.testing.assert_allclose(hessian, np.eye(3) / 4, atol=1e-7)
    np.testing.assert_allclose(gradient(loss, np.zeros(3)), 0.5 - t.numpy(), atol=1e-7)


def test_soft_margin_does_not_overflow():
    loss = F.soft_margin_loss(lucid.tensor([-1e4, 1e4]), lucid.ones(2), reduction="none")
    assert loss.tolist() == [1e4, 0]


def test_divergence_from_a_target_of_zero_is_zero():
    x = lucid.tensor([-INF, -0.5])
    assert F.kl_div(x, lucid.tensor([0.0, 1.0]), reduction="sum").item() == 0.5
    assert F.kl_div(x, lucid.tensor([-INF, 0.0]), reduction="sum", log_target=True).item() == 0.5


def test_variance_below_eps_still_has_a_gradient():
    """That of (log v + d²/v) / 2 at v = eps, as in PyTorch: (1/v - d²/v²) / 2."""
    zero, one = lucid.zeros(1), lucid.ones(1)
    slope = gradient(lambda var: F.gaussian_nll_loss(zero, one, var, eps=0.5), [0.1])
    np.testing.assert_allclose(slope, [0.5 * (1 / 0.5 - 1 / 0.25)], rtol=1e-6)


# What does not count


def test_a_mean_over_nothing_is_nan_and_a_sum_is_zero():
    x, t = lucid.zeros(2, 3), lucid.tensor([-100, -100])
    assert math.isnan(F.cross_entropy(x, t).item())
    assert F.cross_entropy(x, t, reduction="sum").item() == 0
    assert F.nll_loss(x, t, reduction="none").tolist() == [0, 0]


def test_what_is_ignored_gets_no_gradient_whatever_it_holds():
    x = [[0.0, 1.0], [math.nan, INF]]
    slope = gradient(lambda x: F.cross_entropy(x, lucid.tensor([1, -100]), reduction="sum"), x)
    assert (slope[1] == 0).all() and (slope[0] != 0).all()


def test_targets_may_be_of_any_integer_dtype():
    x = lucid.tensor([[0.1, 0.9], [0.4, 0.2]])
    expected = F.cross_entropy(x, lucid.tensor([1, 0])).item()
    for dtype in ("int32", "uint8", "int8"):
        found = F.cross_entropy(x, lucid.tensor([1, 0], dtype=dtype), ignore_index=-1)
        assert found.item() == pytest.approx(expected)


# Compiled


def test_the_gradient_of_cross_entropy_needs_no_array_beside_itself():
    x, t = lucid.ones(64, 50), lucid.tensor(np.arange(64) % 50)
    step = lucid.jit(lucid.func.grad(lambda x: F.cross_entropy(x, t)))
    plan = planned_text(step.graph(x)).splitlines()
    (arena,) = re.findall(r"arena (\d+) bytes", plan[0])
    assert int(arena) < x.nbytes / 4, plan
    assert sum("sum" in line for line in plan) == 2, plan  # of what counts, and of each row


def test_a_target_beyond_the_classes_is_refused_also_when_compiled():
    loss = lucid.jit(lambda x, t: F.cross_entropy(x, t))
    x = lucid.ones(2, 3)
    loss(x, lucid.tensor([0, 1]))
    with pytest.raises(IndexingError):
        loss(x, lucid.tensor([0, 3]))


def test_ignored_targets_are_found_anew_at_every_call_of_compiled_code():
    loss = lucid.jit(lambda x, t: F.cross_entropy(x, t))
    x = lucid.tensor([[0.0, 1.0], [3.0, 0.0]])
    first = loss(x, lucid.tensor([0, 1])).item()
    second = loss(x, lucid.tensor([0, -100])).item()
    expected = [math.log(1 + math.e), 3 + math.log1p(math.exp(-3))]
    assert first == pytest.approx(sum(expected) / 2, rel=1e-6)
    assert second == pytest.approx(expected[0], rel=1e-6)


# Sequences


def forward(x, labels, blank=0):
    """log P(labels) by the forward recursion in probabilities, in float64."""
    symbols = [blank]
    for label in labels:
        symbols += [label, blank]
    p = np.exp(x.astype("float64"))
    alpha = np.zeros(len(symbols))
    alpha[:2] = p[0, symbols[:2]]
    for row in p[1:]:
        new = np.zeros_like(alpha)
        for s, symbol in enumerate(symbols):
            new[s] = alpha[s] + (alpha[s - 1] if s else 0)
            if s > 1 and symbol != blank and symbol != symbols[s - 2]:
                new[s] += alpha[s - 2]
            new[s] *= row[symbol]
        alpha = new
    return np.log(alpha[-2:].sum())


def scores(times=30, batch=2, classes=6):
    x = np.random.default_rng(0).normal(size=(times, batch, classes))
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def test_ctc_of_longer_sequences():
    x, targets = scores(), np.array([[1, 2, 2, 5, 3], [4, 4, 4, 1, 0]])
    loss = F.ctc_loss(lucid.tensor(x), lucid.tensor(targets), [30, 20], [5, 4], reduction="none")
    expected = [-forward(x[:, 0], targets[0]), -forward(x[:20, 1], targets[1, :4])]
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-10)


def test_the_gradient_of_ctc_is_minus_the_expected_counts():
    """They add up to -1 at every time that counts, whatever the scores, and to 0 behind the end."""
    x = lucid.tensor(3 * scores())
    targets = lucid.tensor([[1, 2, 2], [4, 4, 1]])

    def loss(x):
        return F.ctc_loss(x, targets, [30, 20], [3, 2], reduction="sum")

    slope = lucid.func.grad(loss)(x).numpy()
    np.testing.assert_allclose(slope[:, 0].sum(-1), -1, rtol=1e-9)
    np.testing.assert_allclose(slope[:20, 1].sum(-1), -1, rtol=1e-9)
    assert (slope[20:, 1] == 0).all()


def test_an_impossible_target_has_an_infinite_loss_and_no_gradient():
    x, target = lucid.tensor(scores(2, 1, 3)), lucid.tensor([[1, 1]])
    assert F.ctc_loss(x, target, [2], [2]).item() == INF
    assert F.ctc_loss(x, target, [2], [2], zero_infinity=True).item() == 0
    slope = lucid.func.grad(lambda x: F.ctc_loss(x, target, [2], [2], zero_infinity=True))(x)
    assert (slope == 0).all()


def test_ctc_of_scores_without_probability():
    x = scores(4, 1, 3)
    x[:, :, 2] = -INF
    loss = F.ctc_loss(lucid.tensor(x), lucid.tensor([[1]]), [4], [1])
    assert loss.item() == pytest.approx(-forward(x[:, 0], [1]))
    assert F.ctc_loss(lucid.tensor(x), lucid.tensor([[2]]), [4], [1]).item() == INF


def test_a_distance_of_ones_own_may_raise_its_own_errors():
    def distance(x, y):
        raise KeyError("mine")

    x = lucid.ones(2, 3)
    with pytest.raises(KeyError, match="mine"):
        F.triplet_margin_with_distance_loss(x, x, x, distance_function=distance)
