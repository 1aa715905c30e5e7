"""Transforms of vectors and matrices, constraints, supports, and lists of values."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
from lucid import distributions as D
from lucid.distributions import constraints as C
from lucid.errors import ArgumentError, LucidError
from lucid.func import jacrev
from tests.distributions.test_distributions import ALL, DISCRETE

RNG = np.random.default_rng(0)


def t(x):
    return lucid.tensor(np.asarray(x, "float64"))


def close(x, y, rtol=1e-8):
    np.testing.assert_allclose(x.detach().numpy(), y, rtol=rtol, atol=1e-10)


def below(y):
    """The elements below the diagonal of a matrix."""
    return y[np.tril_indices(y.shape[-1], -1)]


def test_a_broken_stick_has_shares_and_a_slope():
    transform, x = D.StickBreakingTransform(), t(RNG.normal(size=4))
    y = transform(x)
    assert y.shape == (5,) and y.sum().item() == pytest.approx(1.0) and bool((y > 0).all())
    close(transform(t(np.zeros(4))), np.full(5, 0.2))
    close(transform.inv(y), x.numpy())
    slope = jacrev(lambda x: transform(x)[:-1])(x).numpy()
    close(transform.log_abs_det_jacobian(x, y), np.log(abs(np.linalg.det(slope))))


def test_numbers_become_the_factor_of_a_correlation():
    transform, x = D.CorrCholeskyTransform(), t(RNG.normal(size=6))
    y = transform(x)
    assert bool(C.corr_cholesky.check(y)) and y.shape == (4, 4)
    close(transform.inv(y), x.numpy())
    slope = jacrev(lambda x: below(transform(x)))(x).numpy()
    close(transform.log_abs_det_jacobian(x, y), np.log(abs(np.linalg.det(slope))))
    batch = transform(t(RNG.normal(size=(3, 2, 1))))
    assert batch.shape == (3, 2, 2, 2)
    with pytest.raises(ArgumentError, match="4 numbers do not fill the triangle"):
        transform(t(np.zeros(4)))


def test_matrices_become_triangular_and_definite():
    x = t(RNG.normal(size=(2, 3, 3)))
    for transform, constraint in [
        (D.LowerCholeskyTransform(), C.lower_cholesky),
        (D.PositiveDefiniteTransform(), C.positive_definite),
    ]:
        y = transform(x)
        assert constraint.check(y).tolist() == [True, True]
        close(transform.inv(y), np.tril(x.numpy()))


def test_maps_that_are_not_one_to_one_have_no_slope():
    for transform in (D.AbsTransform(), D.SoftmaxTransform(), D.LowerCholeskyTransform()):
        with pytest.raises(LucidError, match="not one-to-one"):
            transform.log_abs_det_jacobian(t([1.0]), t([1.0]))
    close(D.AbsTransform()(t([-1.0, 2.0])), [1.0, 2.0])
    x = t([0.1, -0.4, 2.0])
    y = D.SoftmaxTransform()(x)
    close(y, np.exp(x.numpy()) / np.exp(x.numpy()).sum())
    close(D.SoftmaxTransform()(D.SoftmaxTransform().inv(y)), y.numpy())


def test_a_distribution_function_makes_uniform_numbers():
    transform, x = D.CumulativeDistributionTransform(D.Gumbel(0.5, 2.0)), t([-1.0, 0.3, 4.0])
    y = transform(x)
    close(y, np.exp(-np.exp(-(x.numpy() - 0.5) / 2)))
    close(transform.inv(y), x.numpy())
    slopes = jacrev(transform)(x).numpy()
    close(transform.log_abs_det_jacobian(x, y), np.log(np.diag(slopes)))


def test_shapes_and_kinds_are_joined():
    x = t(RNG.normal(size=(5, 6)))
    reshape = D.ReshapeTransform((6,), (2, 3))
    assert reshape(x).shape == (5, 2, 3) and reshape.inv(reshape(x)).shape == (5, 6)
    assert reshape.log_abs_det_jacobian(x, reshape(x)).tolist() == [0.0] * 5
    both = D.IndependentTransform(D.ExpTransform(), 1)
    close(both.log_abs_det_jacobian(x, both(x)), x.numpy().sum(-1))
    stacked = D.StackTransform([D.ExpTransform(), D.TanhTransform()], dim=-1)
    y = stacked(x[:, :2])
    close(y, np.stack([np.exp(x.numpy()[:, 0]), np.tanh(x.numpy()[:, 1])], -1))
    close(stacked.inv(y), x.numpy()[:, :2])
    joined = D.CatTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)], -1, [2, 4])
    y = joined(x)
    close(y, np.concatenate([np.exp(x.numpy()[:, :2]), 1 + 2 * x.numpy()[:, 2:]], -1))
    close(joined.inv(y), x.numpy())
    close(joined.log_abs_det_jacobian(x, y)[:, 2:], np.full((5, 4), math.log(2)))
    for make, part in [
        (lambda: D.ReshapeTransform((6,), (2, 2)), "different numbers"),
        (lambda: D.CatTransform([D.ExpTransform()], 0, [1, 2]), "2 lengths for 1"),
        (lambda: stacked(x), "2 transforms for 6 elements"),
    ]:
        with pytest.raises(ArgumentError, match=part):
            make()


def test_events_pass_through_a_chain_of_transforms():
    """A density of vectors, by that of normal numbers and the determinant of the whole map."""
    chain = [D.AffineTransform(0.3, 0.5), D.StickBreakingTransform()]
    d = D.TransformedDistribution(D.Normal(t(np.zeros(3)), 1.0), chain)
    assert (d.batch_shape, d.event_shape) == ((), (4,))
    x = t(RNG.normal(size=3))
    y = d.transform(x)
    slope = jacrev(lambda x: d.transform(x)[:-1])(x).numpy()
    normal = (-(x.numpy() ** 2) / 2).sum() - 1.5 * math.log(2 * math.pi)
    close(d.log_prob(y), normal - np.log(abs(np.linalg.det(slope))))
    wide = d.expand((2, 5))
    assert wide.batch_shape == (2, 5) and wide.rsample((7,)).shape == (7, 2, 5, 4)
    normal = D.Normal(t(np.zeros((2, 6))), 1.0)
    flat = D.TransformedDistribution(normal, D.ReshapeTransform((6,), (2, 3)))
    assert (flat.batch_shape, flat.event_shape) == ((2,), (2, 3))
    assert flat.log_prob(flat.sample((4,))).shape == (4, 2)


def test_the_logistic_normal_sums_to_one():
    d = D.LogisticNormal(t([0.4]), t([0.8]))
    y = (np.arange(100_000) + 0.5) / 100_000
    density = d.log_prob(t(np.stack([y, 1 - y], -1))).exp().numpy()
    assert density.mean() == pytest.approx(1.0, abs=1e-6)
    assert d.expand((3,)).sample((2,)).shape == (2, 3, 2)


@pytest.mark.parametrize("registry", [D.transform_to, D.biject_to], ids=["transform", "biject"])
@pytest.mark.parametrize(
    "constraint",
    [
        C.real, C.positive, C.nonnegative, C.unit_interval, C.interval(-3.0, -1.0),
        C.greater_than(2.0), C.greater_than_eq(-1.0), C.less_than(5.0),
        C.half_open_interval(0.0, 2.0), C.simplex, C.real_vector, C.lower_cholesky,
        C.corr_cholesky, C.positive_definite, C.independent(C.positive, 2),
    ],
    ids=repr,
)  # fmt: skip
def test_all_numbers_are_taken_to_a_constraint(registry, constraint):
    shape = (3,) if constraint == C.corr_cholesky else (3, 3)
    transform = registry(constraint)
    y = transform(t(RNG.normal(size=shape)))
    assert bool(constraint.check(y).all())
    close(transform(transform.inv(y)), y.numpy(), rtol=1e-6)


def test_constraints_without_a_transform_say_so_and_others_can_be_registered():
    for constraint in (C.boolean, C.one_hot, C.symmetric):
        with pytest.raises(LucidError, match="transform"):
            D.biject_to(constraint)

    class Even(C.Constraint):
        pass

    D.biject_to.register(Even, lambda c: D.ExpTransform())
    assert isinstance(D.biject_to(Even()), D.ExpTransform)


@pytest.mark.parametrize(
    ("constraint", "good", "wrong"),
    [
        (C.real, 1.0, math.nan),
        (C.positive, 1e-9, 0.0),
        (C.nonnegative, 0.0, -1e-9),
        (C.interval(1.0, 2.0), 2.0, 2.1),
        (C.half_open_interval(1.0, 2.0), 1.0, 2.0),
        (C.less_than(1.0), 0.9, 1.0),
        (C.boolean, 1.0, 0.5),
        (C.integer_interval(2, 4), 3.0, 5.0),
        (C.positive_integer, 1.0, 0.0),
        (C.simplex, [0.2, 0.8], [0.2, 0.7]),
        (C.one_hot, [0.0, 1.0], [0.5, 0.5]),
        (C.real_vector, [0.0, 1.0], [0.0, math.nan]),
        (C.lower_triangular, [[1.0, 0.0], [2.0, -3.0]], [[1.0, 0.1], [2.0, 3.0]]),
        (C.lower_cholesky, [[1.0, 0.0], [2.0, 3.0]], [[1.0, 0.0], [2.0, -3.0]]),
        (C.corr_cholesky, [[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.6, 0.7]]),
        (C.symmetric, [[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [2.1, 1.0]]),
        (C.positive_semidefinite, [[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]),
        (C.positive_definite, [[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]),
    ],
    ids=lambda x: repr(x) if isinstance(x, C.Constraint) else "",
)
def test_constraints_tell_good_values_from_wrong_ones(constraint, good, wrong):
    assert constraint.check(t(good)).item() is True
    assert constraint.check(t(wrong)).item() is False


@pytest.mark.parametrize("name", [n for n in ALL if n not in ("Affine", "Power")])
def test_draws_lie_in_the_support(name):
    mine, _ = ALL[name]
    x = mine.sample((50,))
    assert bool(mine.support.check(x).all())
    assert mine.support.is_discrete == (name in DISCRETE)


def test_supports_of_vectors_and_of_other_distributions():
    for d in (
        D.Dirichlet(lucid.ones(3)),
        D.OneHotCategorical(lucid.ones(3)),
        D.Multinomial(4, lucid.ones(3)),
        D.MultivariateNormal(lucid.zeros(2), lucid.eye(2)),
        D.Wishart(4.0, lucid.eye(2)),
        D.LKJCholesky(3),
        D.Independent(D.Exponential(lucid.ones(3)), 1),
        D.LogisticNormal(lucid.zeros(2), 1.0),
        D.RelaxedOneHotCategorical(1.0, lucid.ones(3)),
        D.Categorical(lucid.ones(3)),
    ):
        assert bool(d.support.check(d.sample((20,))).all()), d
        assert d.support.event_dim == len(d.event_shape)
    with pytest.raises(LucidError, match="support"):
        ALL["Affine"][0].support  # noqa: B018


def test_the_values_of_a_discrete_distribution_in_order():
    p = lucid.tensor([0.2, 0.5])
    assert D.Bernoulli(p).enumerate_support().tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert D.Bernoulli(p).enumerate_support(expand=False).shape == (2, 1)
    assert D.Binomial(3, p).enumerate_support()[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0]
    d = D.Categorical(lucid.ones(4, 3))
    assert d.enumerate_support().shape == (3, 4)
    close(d.log_prob(d.enumerate_support()).exp().sum(0), np.ones(4), rtol=1e-6)
    assert D.OneHotCategorical(lucid.ones(3)).enumerate_support().tolist() == np.eye(3).tolist()
    assert d.has_enumerate_support and not D.Multinomial(3, p).has_enumerate_support
    relaxed = D.RelaxedOneHotCategorical(1.0, p)
    assert not relaxed.has_enumerate_support
    for d in (D.Binomial(lucid.tensor([1.0, 2.0]), p), D.Poisson(1.0), D.Normal(0.0, 1.0), relaxed):
        with pytest.raises(LucidError, match="support"):
            d.enumerate_support()


def test_checks_of_parameters_are_switched_off_for_all():
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.Normal(0.0, -1.0).scale.item() == -1.0
        D.LowRankMultivariateNormal(lucid.zeros(1), lucid.ones(1, 1), -2 * lucid.ones(1))
        with pytest.raises(ArgumentError, match="scale must be positive"):
            D.Normal(0.0, -1.0, validate_args=True)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ArgumentError, match="scale must be positive"):
        D.Normal(0.0, -1.0)
    with pytest.raises(ArgumentError, match="is not a bool"):
        D.Distribution.set_default_validate_args("yes")
