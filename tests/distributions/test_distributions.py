"""Distributions against SciPy: densities, moments, draws, gradients through draws, divergences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import betaln, ive

import lucid
from lucid import distributions as D
from lucid.distributions.kl.mismatched_supports import infinite
from lucid.distributions.kl.registry import FORMULAS as KL_FORMULAS
from lucid.errors import ArgumentError, LucidError
from lucid.func import grad, vmap

f64 = "float64"


def t(*values):
    return lucid.tensor(np.array(values, f64))


A, B = np.array([0.5, 2.0, 3.5]), np.array([1.5, 0.7, 4.0])
a, b = lucid.tensor(A), lucid.tensor(B)
P = np.array([0.1, 0.5, 0.85])


class Kumaraswamy:
    """SciPy's Beta(1, b) to the power 1/a."""

    def __init__(self, a, b):
        self.a, self.b, self.beta = a, b, stats.beta(1, b)

    def ppf(self, p):
        return self.beta.ppf(p) ** (1 / self.a)

    def cdf(self, x):
        return self.beta.cdf(x**self.a)

    def logpdf(self, x):
        return self.beta.logpdf(x**self.a) + np.log(self.a) + (self.a - 1) * np.log(x)

    def mean(self):
        return np.exp(np.log(self.b) + betaln(1 + 1 / self.a, self.b))

    def var(self):
        return np.exp(np.log(self.b) + betaln(1 + 2 / self.a, self.b)) - self.mean() ** 2

    def std(self):
        return np.sqrt(self.var())

    def entropy(self):
        def term(x, i):
            y = Kumaraswamy(self.a[i], self.b[i]).logpdf(x)
            return -y * np.exp(y)

        return np.array([quad(term, 0, 1, (i,))[0] for i in range(len(self.a))])


LOW = np.array([0.1, 0.3, 0.45])
R = np.log((1 - LOW) / LOW)
CONTINUOUS = {
    "Normal": (D.Normal(a, b), stats.norm(A, B)),
    "LogNormal": (D.LogNormal(a / 4, b / 4), stats.lognorm(B / 4, scale=np.exp(A / 4))),
    "Uniform": (D.Uniform(a, a + b), stats.uniform(A, B)),
    "Exponential": (D.Exponential(a), stats.expon(scale=1 / A)),
    "Gamma": (D.Gamma(a, b), stats.gamma(A, scale=1 / B)),
    "Chi2": (D.Chi2(a), stats.chi2(A)),
    "Beta": (D.Beta(a, b), stats.beta(A, B)),
    "Laplace": (D.Laplace(a, b), stats.laplace(A, B)),
    "Cauchy": (D.Cauchy(a, b), stats.cauchy(A, B)),
    "StudentT": (D.StudentT(a + 2, b, a), stats.t(A + 2, B, A)),
    "HalfNormal": (D.HalfNormal(b), stats.halfnorm(scale=B)),
    "Gumbel": (D.Gumbel(a, b), stats.gumbel_r(A, B)),
    "Weibull": (D.Weibull(a, b), stats.weibull_min(B, scale=A)),
    "HalfCauchy": (D.HalfCauchy(b), stats.halfcauchy(scale=B)),
    "Pareto": (D.Pareto(b, a + 2), stats.pareto(A + 2, scale=B)),
    "GeneralizedPareto": (D.GeneralizedPareto(a, b, t(0.2, -0.5, 0.0)),
                          stats.genpareto([0.2, -0.5, 0.0], A, B)),
    "InverseGamma": (D.InverseGamma(a + 2, b), stats.invgamma(A + 2, scale=B)),
    "Kumaraswamy": (D.Kumaraswamy(a + 1, b + 1), Kumaraswamy(A + 1, B + 1)),
    "FisherSnedecor": (D.FisherSnedecor(a, b + 4), stats.f(A, B + 4)),
    "VonMises": (D.VonMises(a * 0.0, b), stats.vonmises(B)),
    "ContinuousBernoulli": (D.ContinuousBernoulli(lucid.tensor(LOW)),
                            stats.truncexpon(R, scale=1 / R)),
    "Affine": (D.TransformedDistribution(D.Normal(a, b), D.AffineTransform(2.0, -3.0)),
               stats.norm(2 - 3 * A, 3 * B)),
    "Power": (D.TransformedDistribution(D.Gamma(a + 1, b), D.PowerTransform(-1.0)),
              stats.invgamma(A + 1, scale=B)),
}  # fmt: skip
DISCRETE = {
    "Bernoulli": (D.Bernoulli(lucid.tensor(P)), stats.bernoulli(P)),
    "Bernoulli-logits": (D.Bernoulli(logits=lucid.tensor(np.log(P / (1 - P)))), stats.bernoulli(P)),
    "Binomial": (D.Binomial(lucid.tensor([3.0, 20.0, 100.0], dtype=f64), lucid.tensor(P)),
                 stats.binom([3, 20, 100], P)),
    "Poisson": (D.Poisson(t(0.5, 8.0, 60.0)), stats.poisson([0.5, 8.0, 60.0])),
    "Geometric": (D.Geometric(lucid.tensor(P)), stats.geom(P, loc=-1)),
    "NegativeBinomial": (D.NegativeBinomial(t(0.5, 3.0, 8.0), lucid.tensor(P)),
                         stats.nbinom([0.5, 3.0, 8.0], 1 - P)),
}  # fmt: skip
ALL = {**CONTINUOUS, **DISCRETE}
MOMENTS = [n for n in ALL if n not in ("Affine", "Power", "Cauchy", "VonMises")]
NO_CDF = ("StudentT", "Beta", "Power", "FisherSnedecor", "VonMises")
NO_ENTROPY = ("Binomial", "Poisson", "NegativeBinomial", "FisherSnedecor")
N = 4000


def close(x, y, rtol=1e-9, atol=1e-11):
    np.testing.assert_allclose(x.detach().numpy(), y, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_density_is_scipys(name):
    mine, theirs = CONTINUOUS[name]
    x = theirs.ppf(np.linspace(0.02, 0.98, 9)[:, None])
    close(mine.log_prob(lucid.tensor(x)), theirs.logpdf(x))


@pytest.mark.parametrize("name", DISCRETE)
def test_probability_is_scipys_and_that_of_other_numbers_is_zero(name):
    mine, theirs = DISCRETE[name]
    k = np.array([[-1.0], [0.0], [1.0], [2.0], [3.0], [15.0], [70.0], [0.5]])
    with np.errstate(all="ignore"):
        close(mine.log_prob(lucid.tensor(k)), theirs.logpmf(k))


@pytest.mark.parametrize("name", ["LogNormal", "Uniform", "Exponential", "Gamma", "Beta",
                                  "HalfNormal", "Weibull", "Power", "HalfCauchy", "Pareto",
                                  "GeneralizedPareto", "InverseGamma", "Kumaraswamy",
                                  "FisherSnedecor", "ContinuousBernoulli"])  # fmt: skip
def test_density_outside_the_support_is_zero_and_has_no_nan_slope(name):
    mine, _ = CONTINUOUS[name]
    x = lucid.tensor(-0.5, dtype=f64, requires_grad=True)
    found = mine.log_prob(x)
    assert found.tolist() == [-math.inf] * 3
    assert grad(lambda x: lucid.where(found > -9, mine.log_prob(x), 0.0).sum())(x).item() == 0.0


@pytest.mark.parametrize("name", [n for n in CONTINUOUS if n not in NO_CDF])
def test_cdf_is_scipys(name):
    mine, theirs = CONTINUOUS[name]
    x = theirs.ppf(np.linspace(0.02, 0.98, 7)[:, None])
    close(mine.cdf(lucid.tensor(x)), theirs.cdf(x))


@pytest.mark.parametrize(
    "name", [n for n in CONTINUOUS if n not in (*NO_CDF, "Gamma", "Chi2", "InverseGamma")]
)
def test_icdf_is_scipys(name):
    mine, theirs = CONTINUOUS[name]
    p = np.linspace(0.02, 0.98, 7)[:, None]
    close(mine.icdf(lucid.tensor(p)), theirs.ppf(p))


@pytest.mark.parametrize("name", MOMENTS)
def test_moments_are_scipys(name):
    mine, theirs = ALL[name]
    close(mine.mean, theirs.mean())
    close(mine.variance, theirs.var())
    close(mine.stddev, theirs.std())


@pytest.mark.parametrize("name", [n for n in MOMENTS if n not in NO_ENTROPY])
def test_entropy_is_scipys(name):
    mine, theirs = ALL[name]
    close(mine.entropy(), theirs.entropy(), rtol=1e-7)


def test_moments_that_do_not_exist():
    assert all(math.isnan(x) for x in D.Cauchy(a, b).mean.tolist())
    few = D.StudentT(t(0.5, 1.5, 3.0))
    assert str(few.mean.tolist()) == "[nan, 0.0, 0.0]"
    assert str(few.variance.tolist()) == "[nan, inf, 3.0]"


@pytest.mark.parametrize("name", CONTINUOUS)
def test_draws_have_their_distribution(name):
    mine, theirs = CONTINUOUS[name]
    lucid.manual_seed(7)
    x = mine.sample((N,))
    assert x.shape == (N, 3) and x.dtype == lucid.float64 and not x.requires_grad
    units = theirs.cdf(x.numpy())
    assert min(stats.kstest(units[:, i], "uniform").pvalue for i in range(3)) > 1e-3


@pytest.mark.parametrize("name", DISCRETE)
def test_draws_of_whole_numbers_have_their_distribution(name):
    mine, theirs = DISCRETE[name]
    lucid.manual_seed(8)
    x = mine.sample((N,)).numpy()
    for i in range(3):
        k = np.arange(0, x[:, i].max() + 1)
        counts = (x[:, i, None] == k).sum(0)
        expected = theirs.pmf(k[:, None])[:, i] * N
        big = expected > 5
        observed = [*counts[big], N - counts[big].sum()]
        chances = [*expected[big], N - expected[big].sum()]
        if chances[-1] < 5:
            observed, chances = observed[:-1], chances[:-1]
        scaled = np.array(chances) * sum(observed) / sum(chances)
        assert counts.sum() == N
        assert len(observed) < 2 or stats.chisquare(observed, scaled).pvalue > 1e-3


@pytest.mark.parametrize("name", ALL)
def test_draws_are_the_same_jitted(name):
    mine, _ = ALL[name]
    draw = lucid.jit(lambda: mine.sample((5,)))
    lucid.manual_seed(3)
    draw(), draw()
    lucid.manual_seed(3)
    compiled = [draw().numpy().copy() for _ in range(2)]
    lucid.manual_seed(3)
    eager = [mine.sample((5,)).numpy() for _ in range(2)]
    np.testing.assert_allclose(compiled, eager, rtol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_a_generator_decides_the_draws(name):
    mine, _ = ALL[name]
    draws = [mine.sample((4,), generator=lucid.Generator(seed)).numpy() for seed in (1, 1)]
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize("name", ALL)
def test_expand_broadcasts_the_batch(name):
    mine, _ = ALL[name]
    wide = mine.expand((2, 3))
    assert wide.batch_shape == (2, 3) and wide.sample((4,)).shape == (4, 2, 3)
    x = mine.sample()
    close(wide.log_prob(x), np.stack([mine.log_prob(x).detach().numpy()] * 2))


@pytest.mark.parametrize("name", ALL)
def test_slope_of_the_density_is_that_of_differences(name):
    mine, _ = ALL[name]
    if not mine.params:
        mine = mine.base_dist
    lucid.manual_seed(0)
    x = mine.sample()
    params = {k: v for k, v in mine.params.items() if k != "total_count"}
    fixed = {k: v for k, v in mine.params.items() if k == "total_count"}

    def f(params):
        return type(mine)(**params, **fixed).log_prob(x).sum()

    slopes, h = grad(f)(params), 1e-6
    for key, value in params.items():
        up, down = ({**params, key: value + s * h} for s in (1, -1))
        numeric = (f(up).item() - f(down).item()) / (2 * h)
        assert slopes[key].sum().item() == pytest.approx(numeric, rel=1e-5, abs=1e-6)


# Gradients through draws: d/dθ E[g(x)] is known where E[g(x)] is.

MEANS = {
    "Normal": (lambda p: D.Normal(p, 2.0 * p), lambda p: p),
    "LogNormal": (lambda p: D.LogNormal(p / 4, p / 8), lambda p: math.exp(p / 4 + p * p / 128)),
    "Uniform": (lambda p: D.Uniform(p, 3 * p), lambda p: 2 * p),
    "Exponential": (lambda p: D.Exponential(p), lambda p: 1 / p),
    "Laplace": (lambda p: D.Laplace(p, p), lambda p: p),
    "Gumbel": (lambda p: D.Gumbel(p, p), lambda p: p * (1 + 0.5772156649)),
    "Weibull": (lambda p: D.Weibull(p, 2.0), lambda p: p * math.gamma(1.5)),
    "HalfNormal": (lambda p: D.HalfNormal(p), lambda p: p * math.sqrt(2 / math.pi)),
    "Gamma": (lambda p: D.Gamma(p, 1.5), lambda p: p / 1.5),
    "Gamma-small": (lambda p: D.Gamma(p / 4, p), lambda p: 0.25),
    "Chi2": (lambda p: D.Chi2(p), lambda p: p),
    "Beta": (lambda p: D.Beta(p, 1.5), lambda p: p / (p + 1.5)),
    "Beta-small": (lambda p: D.Beta(p / 4, 0.4), lambda p: p / (p + 1.6)),
    "Pareto": (lambda p: D.Pareto(p, 6.0), lambda p: 1.2 * p),
    "GeneralizedPareto": (lambda p: D.GeneralizedPareto(p, p, 0.1), lambda p: p + p / 0.9),
    "InverseGamma": (lambda p: D.InverseGamma(6.0, p), lambda p: p / 5),
    "Kumaraswamy": (lambda p: D.Kumaraswamy(p, 1.0), lambda p: p / (p + 1)),
    "FisherSnedecor": (lambda p: D.FisherSnedecor(3.0, p + 8), lambda p: (p + 8) / (p + 6)),
    "ContinuousBernoulli": (
        lambda p: D.ContinuousBernoulli(p / 5),
        lambda p: p / (2 * p - 5) + 1 / math.log(5 / p - 1),
    ),
}


@pytest.mark.parametrize("name", MEANS)
def test_gradient_of_a_mean_passes_through_draws(name):
    make, mean = MEANS[name]

    def estimate(p):
        return make(p).rsample((40_000,), generator=lucid.Generator(5)).mean()

    at, h = 1.7, 1e-5
    slope = grad(estimate)(lucid.tensor(at, dtype=f64)).item()
    exact = (mean(at + h) - mean(at - h)) / (2 * h)
    assert slope == pytest.approx(exact, abs=0.05)


def test_gradient_of_a_gamma_draw_keeps_its_quantile():
    """dz/da = -(∂F/∂a) / f, here by differences of SciPy's quantiles."""
    for shape in (1.0, 1.3, 4.0, 60.0):

        def draw(a):
            return lucid.random.gamma(a, size=(6,), key=lucid.random.key(4))

        z = draw(lucid.tensor(shape, dtype=f64)).numpy()
        p = stats.gamma(shape).cdf(z)
        h = 1e-5 * shape
        expected = (stats.gamma(shape + h).ppf(p) - stats.gamma(shape - h).ppf(p)) / (2 * h)
        _, slope = lucid.func.jvp(draw, (lucid.tensor(shape, dtype=f64),), (t(1.0)[0],))
        np.testing.assert_allclose(slope.numpy(), expected, rtol=1e-5)


def test_gradient_through_a_dirichlet_draw():
    target = lucid.tensor([1.0, 0.0, 0.0], dtype=f64)

    def estimate(c):
        x = D.Dirichlet(c).rsample((40_000,), generator=lucid.Generator(5))
        return (x * target).sum(-1).mean()

    slope = grad(estimate)(t(0.5, 1.0, 2.0))
    np.testing.assert_allclose(slope.numpy(), [3.0 / 3.5**2, *[-0.5 / 3.5**2] * 2], atol=0.01)


def test_draws_without_gradients_say_so():
    for mine, _ in [*DISCRETE.values(), CONTINUOUS["VonMises"]]:
        with pytest.raises(LucidError, match="use sample and log_prob"):
            mine.rsample()


def test_angles_turn_with_their_location():
    loc = np.array([3.0, -2.0, 0.5])
    d = D.VonMises(lucid.tensor(loc), b)
    x = np.linspace(-3, 3, 7)[:, None]
    close(d.log_prob(lucid.tensor(x)), stats.vonmises(B, loc).logpdf(x))
    close(d.variance, 1 - ive(1, B) / ive(0, B))
    lucid.manual_seed(4)
    drawn = d.sample((N,)).numpy()
    assert (abs(drawn) <= math.pi).all()
    turned = (drawn - loc + math.pi) % (2 * math.pi) - math.pi
    for i in range(3):
        assert stats.kstest(turned[:, i], stats.vonmises(B[i]).cdf).pvalue > 1e-3
    spread = D.VonMises(0.0, t(1e-7)).sample((N,)).numpy()[:, 0]
    assert stats.kstest(spread, stats.uniform(-math.pi, 2 * math.pi).cdf).pvalue > 1e-3


def test_a_continuous_bernoulli_is_smooth_about_one_half():
    p = np.array([0.4, 0.49899, 0.49901, 0.5, 0.5009, 0.5011, 0.7])
    d = D.ContinuousBernoulli(lucid.tensor(p))
    x = np.linspace(0, 1, 2001)[:, None]
    density = p**x * (1 - p) ** (1 - x)
    area = np.trapezoid(density, x, axis=0)
    close(d.log_prob(lucid.tensor(x[::500])), np.log(density / area)[::500], rtol=1e-6, atol=1e-7)
    close(d.mean, np.trapezoid(density * x, x, axis=0) / area, rtol=1e-6)
    second = np.trapezoid(density * x**2, x, axis=0) / area
    close(d.variance, second - d.mean.numpy() ** 2, rtol=1e-5)
    # PyTorch's formula too takes p = 1/2 for the whole of `lims` in the distribution function.
    close(d.icdf(d.cdf(t(0.3))), np.full(7, 0.3), rtol=1e-9)


def test_a_relaxed_choice_nears_a_choice_as_it_cools():
    p = np.array([0.2, 0.3, 0.5])
    for make, chance in [
        (lambda T: D.RelaxedBernoulli(T, lucid.tensor(p)), p),
        (lambda T: D.RelaxedOneHotCategorical(T, lucid.tensor(p)), p),
    ]:
        lucid.manual_seed(9)
        cold = make(t(0.01)[0]).rsample((20_000,)).numpy()
        assert np.minimum(cold, 1 - cold).mean() < 0.01
        np.testing.assert_allclose(cold.mean(0), chance, atol=0.015)


def test_relaxed_bernoulli_is_a_squeezed_logistic():
    p, T = np.array([0.2, 0.5, 0.9]), 0.7
    theirs = stats.logistic(np.log(p / (1 - p)) / T, 1 / T)
    d = D.RelaxedBernoulli(lucid.tensor(T, dtype=f64), lucid.tensor(p))
    y = np.array([[0.1], [0.5], [0.97]])
    x = np.log(y / (1 - y))
    close(d.log_prob(lucid.tensor(y)), theirs.logpdf(x) - np.log(y * (1 - y)))
    assert d.log_prob(t(-0.1, 0.0, 1.0)).tolist() == [-math.inf] * 3
    lucid.manual_seed(1)
    drawn = d.rsample((N,)).numpy()
    for i in range(3):
        found = stats.logistic(theirs.args[0][i], theirs.args[1])
        assert stats.kstest(np.log(drawn / (1 - drawn))[:, i], found.cdf).pvalue > 1e-3


def test_the_density_of_relaxed_one_hot_draws_sums_to_one():
    d = D.RelaxedOneHotCategorical(t(0.8)[0], t(0.3, 0.7))
    y = (np.arange(200_000) + 0.5) / 200_000
    density = d.log_prob(lucid.tensor(np.stack([y, 1 - y], -1))).exp().numpy()
    assert density.mean() == pytest.approx(1.0, abs=1e-3)
    assert d.event_shape == (2,) and d.expand((4,)).rsample((5,)).shape == (5, 4, 2)
    # For two categories the first share is a relaxed Bernoulli number.
    one = D.RelaxedBernoulli(t(0.8)[0], t(0.3))
    close(d.log_prob(t(0.2, 0.8)), one.log_prob(t(0.2)).item())


def test_straight_through_draws_have_the_gradient_of_the_probabilities():
    weights = t(1.0, 5.0, -2.0)

    def f(logits):
        d = D.OneHotCategoricalStraightThrough(logits=logits)
        drawn = d.rsample(generator=lucid.Generator(0))
        return (drawn * weights).sum(), drawn

    logits = t(0.1, 0.4, -0.3)
    slope, drawn = grad(f, has_aux=True)(logits)
    assert sorted(drawn.tolist()) == pytest.approx([0.0, 0.0, 1.0])
    p = np.exp(logits.numpy()) / np.exp(logits.numpy()).sum()
    close(slope, p * (weights.numpy() - p @ weights.numpy()))


def test_the_mode_of_kumaraswamys_is_where_its_density_is_greatest():
    d = D.Kumaraswamy(a + 1, b + 1)
    x = lucid.tensor(np.linspace(0.0, 1.0, 100_001)[1:-1, None])
    close(d.mode, x.numpy()[d.log_prob(x).numpy().argmax(0), 0], atol=1e-5)
    assert math.isnan(D.Kumaraswamy(0.5, 2.0).mode.item())


def test_moments_of_heavy_tails_that_do_not_exist():
    assert D.Pareto(1.0, t(0.5, 1.5, 3.0)).mean.tolist() == [math.inf, 3.0, 1.5]
    assert D.Pareto(1.0, t(0.5, 2.0, 3.0)).variance.tolist() == [math.inf, math.inf, 0.75]
    assert D.InverseGamma(t(0.5, 1.0, 3.0), 2.0).mean.tolist() == [math.inf, math.inf, 1.0]
    assert str(D.FisherSnedecor(3.0, t(2.0, 4.0)).mean.tolist()) == "[nan, 2.0]"
    assert D.GeneralizedPareto(0.0, 1.0, t(1.5, 0.5)).mean.tolist() == [math.inf, 2.0]


# Vectors


def test_categorical_probabilities_and_draws():
    p = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    logits = lucid.tensor(p + 1e-300).log()
    for d in (D.Categorical(lucid.tensor(p * 4)), D.Categorical(logits=logits)):
        assert d.batch_shape == (2,) and d.event_shape == ()
        close(d.log_prob(lucid.tensor([2, 0])), np.log([0.5, 1.0]))
        close(d.log_prob(lucid.tensor([[0, 0], [1, 0], [2, 0]])).exp()[:, 0], p[0])
        close(d.entropy(), stats.entropy(p, axis=-1))
        x = d.sample((N,)).numpy()
        assert x.shape == (N, 2) and (x[:, 1] == 0).all() and x.dtype == np.int64
        assert stats.chisquare(np.bincount(x[:, 0]), p[0] * N).pvalue > 1e-3
        assert d.mode.tolist() == [2, 0]
        assert d.expand((4, 2)).sample().shape == (4, 2)
    assert D.Categorical(t(0.5, 0.5)).log_prob(lucid.tensor([0, 1, 1])).shape == (3,)


def test_one_hot_and_multinomial():
    p = np.array([0.2, 0.3, 0.5])
    one = D.OneHotCategorical(lucid.tensor(p))
    x = one.sample((N,))
    assert x.shape == (N, 3) and bool((x.sum(-1) == 1).all())
    close(one.log_prob(t(0.0, 1.0, 0.0)), np.log(0.3))
    many = D.Multinomial(10, lucid.tensor(p))
    theirs = stats.multinomial(10, p)
    close(many.log_prob(t(2.0, 3.0, 5.0)), theirs.logpmf([2, 3, 5]))
    close(many.mean, 10 * p)
    x = many.sample((N,)).numpy()
    assert (x.sum(-1) == 10).all()
    np.testing.assert_allclose(np.cov(x.T), theirs.cov(), atol=0.2)
    assert many.expand((2,)).sample().shape == (2, 3)


def test_dirichlet_is_scipys():
    c = np.array([0.5, 1.0, 3.0])
    d, theirs = D.Dirichlet(lucid.tensor(c)), stats.dirichlet(c)
    x = d.sample((N,))
    close(x.sum(-1), np.ones(N))
    close(d.log_prob(x[:50]), [theirs.logpdf(row) for row in x[:50].numpy()], rtol=1e-7)
    close(d.mean, theirs.mean())
    close(d.variance, theirs.var())
    close(d.entropy(), theirs.entropy())
    for i in range(3):
        marginal = stats.beta(c[i], c.sum() - c[i])
        assert stats.kstest(x.numpy()[:, i], marginal.cdf).pvalue > 1e-3


def test_multivariate_normal_is_scipys(rng):
    m = rng.normal(size=(3, 3))
    loc, cov = rng.normal(size=3), m @ m.T + np.eye(3)
    theirs, x = stats.multivariate_normal(loc, cov), rng.normal(size=(5, 3))
    for kind, value in (("covariance_matrix", cov), ("precision_matrix", np.linalg.inv(cov)),
                        ("scale_tril", np.linalg.cholesky(cov))):  # fmt: skip
        d = D.MultivariateNormal(lucid.tensor(loc), **{kind: lucid.tensor(value)})
        close(d.log_prob(lucid.tensor(x)), theirs.logpdf(x))
        close(d.entropy(), theirs.entropy())
        close(d.covariance_matrix, cov)
        close(d.variance, np.diag(cov))
    lucid.manual_seed(1)
    drawn = d.rsample((20_000,)).numpy()
    np.testing.assert_allclose(np.cov(drawn.T), cov, atol=0.15)
    assert d.expand((2,)).sample((4,)).shape == (4, 2, 3)
    close(d.expand((2,)).log_prob(lucid.tensor(x[:2])), theirs.logpdf(x[:2]))


def test_a_normal_vector_of_low_rank_is_scipys(rng):
    loc, W, d = rng.normal(size=4), rng.normal(size=(4, 2)), rng.uniform(0.5, 2.0, 4)
    cov = W @ W.T + np.diag(d)
    mine = D.LowRankMultivariateNormal(*map(lucid.tensor, (loc, W, d)))
    theirs, x = stats.multivariate_normal(loc, cov), rng.normal(size=(5, 4))
    close(mine.log_prob(lucid.tensor(x)), theirs.logpdf(x))
    close(mine.entropy(), theirs.entropy())
    close(mine.covariance_matrix, cov)
    close(mine.variance, np.diag(cov))
    lucid.manual_seed(1)
    np.testing.assert_allclose(np.cov(mine.rsample((20_000,)).numpy().T), cov, atol=0.2)
    assert mine.expand((2,)).sample((3,)).shape == (3, 2, 4)


def test_wisharts_distribution_is_scipys(rng):
    m = rng.normal(size=(3, 3))
    V = m @ m.T / 3 + np.eye(3)
    theirs, x = stats.wishart(5.5, V), stats.wishart(6, V).rvs(4, random_state=0)
    for kind, value in (("covariance_matrix", V), ("precision_matrix", np.linalg.inv(V)),
                        ("scale_tril", np.linalg.cholesky(V))):  # fmt: skip
        d = D.Wishart(lucid.tensor(5.5, dtype=f64), **{kind: lucid.tensor(value)})
        close(d.log_prob(lucid.tensor(x)), [theirs.logpdf(y) for y in x])
        close(d.entropy(), theirs.entropy())
    close(d.mean, theirs.mean())
    close(d.mode, theirs.mode())
    close(d.variance, theirs.var())
    lucid.manual_seed(2)
    drawn = d.rsample((20_000,)).numpy()
    np.testing.assert_allclose(drawn.mean(0), theirs.mean(), atol=0.15)  # 5 standard errors
    np.testing.assert_allclose(drawn.var(0), theirs.var(), rtol=0.1)
    assert d.expand((2,)).sample().shape == (2, 3, 3)


def test_factors_of_random_correlations():
    for n, eta in ((2, 0.7), (4, 2.0)):
        d = D.LKJCholesky(n, lucid.tensor(eta, dtype=f64))
        lucid.manual_seed(3)
        L = d.sample((N,)).numpy()
        R = L @ L.swapaxes(-1, -2)
        np.testing.assert_allclose(np.diagonal(R, axis1=1, axis2=2), 1.0, rtol=1e-10)
        assert (np.triu(L, 1) == 0).all()
        # Every correlation is 2 Beta(c, c) - 1 with c = eta + n/2 - 1.
        marginal = stats.beta(eta + n / 2 - 1, eta + n / 2 - 1)
        for i in range(1, n):
            assert stats.kstest((R[:, i, 0] + 1) / 2, marginal.cdf).pvalue > 1e-3
    # For n = 2 the density is that of L[1, 0] = r, which is marginal.pdf, over dL[1,1] / dr.
    d, r = D.LKJCholesky(2, lucid.tensor(1.7, dtype=f64)), 0.4
    L = lucid.tensor([[1.0, 0.0], [r, math.sqrt(1 - r * r)]], dtype=f64)
    close(d.log_prob(L), stats.beta(1.7, 1.7).logpdf((r + 1) / 2) - math.log(2))
    assert d.expand((5,)).sample((3,)).shape == (3, 5, 2, 2)


def test_independent_sums_over_its_axes(rng):
    base = D.Normal(lucid.zeros(4, 3, dtype=f64), 1.0)
    d = D.Independent(base, 1)
    assert (d.batch_shape, d.event_shape) == ((4,), (3,))
    x = lucid.tensor(rng.normal(size=(2, 4, 3)))
    close(d.log_prob(x), stats.norm.logpdf(x.numpy()).sum(-1))
    close(d.entropy(), np.full(4, 3 * stats.norm.entropy()))
    assert d.expand((5, 4)).rsample().shape == (5, 4, 3)


def test_a_mixture_is_the_weighted_sum_of_its_components():
    w, loc, scale = np.array([0.3, 0.7]), np.array([-2.0, 1.0]), np.array([0.5, 1.0])
    d = D.MixtureSameFamily(
        D.Categorical(lucid.tensor(w)), D.Normal(lucid.tensor(loc), lucid.tensor(scale))
    )
    x = np.linspace(-4, 4, 9)
    close(d.log_prob(lucid.tensor(x)), np.log((w * stats.norm(loc, scale).pdf(x[:, None])).sum(-1)))
    cdf = lambda x: (w * stats.norm(loc, scale).cdf(np.asarray(x)[:, None])).sum(-1)  # noqa: E731
    close(d.cdf(lucid.tensor(x)), cdf(x))
    close(d.mean, w @ loc)
    close(d.variance, w @ (scale**2 + loc**2) - (w @ loc) ** 2)
    lucid.manual_seed(2)
    assert stats.kstest(d.sample((N,)).numpy(), cdf).pvalue > 1e-3
    vectors = D.Independent(D.Normal(lucid.zeros(2, 3), 1.0), 1)
    assert D.MixtureSameFamily(D.Categorical(t(1.0, 1.0)), vectors).sample((5,)).shape == (5, 3)


@pytest.mark.parametrize(
    "transform",
    [
        D.ExpTransform(),
        D.SigmoidTransform(),
        D.TanhTransform(),
        D.SoftplusTransform(),
        D.AffineTransform(1.0, -2.0),
        D.ComposeTransform([D.AffineTransform(0.5, 2.0), D.TanhTransform()]),
    ],
    ids=repr,
)
def test_transforms_invert_and_know_their_slope(transform):
    x = t(-1.5, -0.2, 0.3, 1.2)
    y = transform(x)
    close(transform.inv(y), x.numpy())
    slope = grad(lambda x: transform(x).sum())(x)
    close(transform.log_abs_det_jacobian(x, y), np.log(np.abs(slope.numpy())))


def test_a_transformed_density_sums_to_one():
    transforms = [D.AffineTransform(0.1, 2.0), D.TanhTransform()]
    d = D.TransformedDistribution(D.Normal(0.3, 0.8), transforms)
    x = np.tanh(np.linspace(-9, 9, 20_001))
    total = np.trapezoid(d.log_prob(lucid.tensor(x)).exp().numpy(), x)
    assert total == pytest.approx(1.0, abs=1e-4)
    assert d.log_prob(t(-1.5, 1.0)).tolist() == [-math.inf, -math.inf]


# Divergences

PAIRS = {
    "Normal": (D.Normal(a, b), D.Normal(b, a)),
    "LogNormal": (D.LogNormal(a / 4, b / 4), D.LogNormal(b / 4, a / 4 + 0.5)),
    "Laplace": (D.Laplace(a, b), D.Laplace(b, a)),
    "Uniform": (D.Uniform(a, a + 1), D.Uniform(a - 1, a + 2)),
    "Exponential": (D.Exponential(a), D.Exponential(b)),
    "Gamma": (D.Gamma(a, b), D.Gamma(b, a)),
    "Chi2": (D.Chi2(a), D.Chi2(b)),
    "Beta": (D.Beta(a, b), D.Beta(b, a)),
    "Bernoulli": (D.Bernoulli(lucid.tensor(P)), D.Bernoulli(logits=a)),
    "Binomial": (D.Binomial(5, lucid.tensor(P)), D.Binomial(5, logits=a)),
    "Geometric": (D.Geometric(lucid.tensor(P)), D.Geometric(logits=a)),
    "Poisson": (D.Poisson(a), D.Poisson(b)),
    "Categorical": (D.Categorical(a), D.Categorical(b)),
    "Dirichlet": (D.Dirichlet(a), D.Dirichlet(b)),
    "MultivariateNormal": (
        D.MultivariateNormal(a, lucid.eye(3, dtype=f64) * 2),
        D.MultivariateNormal(b, lucid.eye(3, dtype=f64) + 0.5),
    ),
    "Independent": (D.Independent(D.Normal(a, b), 1), D.Independent(D.Normal(b, a), 1)),
    "LowRankMultivariateNormal": (
        D.LowRankMultivariateNormal(a, lucid.eye(3, 2, dtype=f64), b),
        D.LowRankMultivariateNormal(b, lucid.ones(3, 1, dtype=f64), a),
    ),
    "Wishart": (
        D.Wishart(t(4.5)[0], lucid.eye(3, dtype=f64) * 2),
        D.Wishart(t(5.5)[0], lucid.eye(3, dtype=f64) + 0.5),
    ),
    "Cauchy": (D.Cauchy(a, b), D.Cauchy(b, a)),
    "Gumbel": (D.Gumbel(a, b), D.Gumbel(b, a + 3)),
    "HalfNormal": (D.HalfNormal(a), D.HalfNormal(b)),
    "Pareto": (D.Pareto(b, a), D.Pareto(b / 2, b)),
    "ContinuousBernoulli": (
        D.ContinuousBernoulli(lucid.tensor(P)),
        D.ContinuousBernoulli(logits=a),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_divergence_is_the_mean_of_the_log_ratio(name):
    p, q = PAIRS[name]
    lucid.manual_seed(11)
    x = p.sample((40_000,))
    ratio = (p.log_prob(x) - q.log_prob(x)).numpy()
    error = 5 * ratio.std(0) / math.sqrt(len(ratio)) + 1e-9
    assert (np.abs(D.kl_divergence(p, q).numpy() - ratio.mean(0)) < error).all()
    close(D.kl_divergence(p, p), np.zeros(np.shape(ratio.mean(0))), atol=1e-9)


def test_a_divergence_may_be_infinite_unknown_or_registered():
    assert D.kl_divergence(D.Uniform(0.0, 2.0), D.Uniform(0.0, 1.0)).item() == math.inf
    with pytest.raises(LucidError, match="register_kl adds one"):
        D.kl_divergence(D.Gumbel(0.0, 1.0), D.Weibull(1.0, 1.0))

    class Mine(D.Gumbel):
        pass

    D.register_kl(Mine, D.Gumbel)(lambda p, q: 42)
    assert D.kl_divergence(Mine(0.0, 1.0), D.Gumbel(0.0, 1.0)) == 42


# Under transforms


def test_draws_under_vmap_are_the_same_or_different():
    def draw(loc):
        return D.Normal(loc, 1.0).rsample() - loc

    loc = lucid.zeros(50, dtype=f64)
    same = vmap(draw, randomness="same")(loc).numpy()
    different = vmap(draw, randomness="different")(loc).numpy()
    assert len(set(same)) == 1 and len(set(different)) == 50
    with pytest.raises(LucidError, match="randomness"):
        vmap(draw)(loc)
    gammas = vmap(lambda a: D.Gamma(a, 1.0).rsample((3,)), randomness="different")(loc + 2.0)
    assert gammas.shape == (50, 3) and len(set(gammas.numpy().ravel())) == 150


def test_draws_under_checkpoint_are_drawn_again_the_same():
    def f(p):
        x = D.Gamma(p, 1.0).rsample((100,))
        return (x * D.Normal(p, p).rsample((100,))).sum()

    p = lucid.tensor(2.0, dtype=f64)
    lucid.manual_seed(5)
    plain = lucid.func.value_and_grad(f)(p)
    lucid.manual_seed(5)
    again = lucid.func.value_and_grad(lucid.func.checkpoint(f))(p)
    np.testing.assert_allclose([x.item() for x in again], [x.item() for x in plain], rtol=1e-12)


def test_elbo_trains_inside_jit():
    loc = lucid.tensor(0.0, dtype=f64, requires_grad=True)
    log_scale = lucid.tensor(0.0, dtype=f64, requires_grad=True)
    optimizer = lucid.optim.Adam([loc, log_scale], lr=0.05)
    target = D.Normal(lucid.tensor(3.0, dtype=f64), 0.5)

    @lucid.jit
    def step():
        optimizer.zero_grad()
        q = D.Normal(loc, log_scale.exp())
        x = q.rsample((64,))
        loss = (q.log_prob(x) - target.log_prob(x)).mean()
        loss.backward()
        optimizer.step()
        return loss

    lucid.manual_seed(0)
    for _ in range(400):
        step()
    assert loc.item() == pytest.approx(3.0, abs=0.1)
    assert log_scale.exp().item() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: D.Normal(0.0, -1.0), "scale must be positive"),
        (lambda: D.Normal(math.nan, 1.0), "loc must be a number"),
        (lambda: D.Uniform(1.0, 0.0), "low must be less than high"),
        (lambda: D.Bernoulli(1.5), "probs must be in [0, 1]"),
        (lambda: D.Bernoulli(), "give either probs or logits"),
        (lambda: D.Bernoulli(0.5, 0.0), "give either probs or logits"),
        (lambda: D.Categorical(t(-1.0, 3.0)), "non-negative"),
        (lambda: D.Multinomial(-1, t(1.0)), "total_count"),
        (lambda: D.Binomial(2.5, 0.5), "non-negative integer"),
        (lambda: D.NegativeBinomial(-1.0, 0.5), "total_count must be non-negative"),
        (lambda: D.RelaxedBernoulli(0.0, 0.5), "temperature must be positive"),
        (lambda: D.RelaxedOneHotCategorical(-1.0, t(0.5, 0.5)), "temperature must be positive"),
        (lambda: D.Pareto(0.0, 1.0), "scale must be positive"),
        (lambda: D.LowRankMultivariateNormal(t(1.0), t(1.0), t(1.0)), "n, (n, k) and n"),
        (lambda: D.LowRankMultivariateNormal(t(1.0), lucid.ones(1, 1), t(0.0)), "cov_diag must be"),
        (lambda: D.Wishart(3.0), "exactly one of"),
        (lambda: D.Wishart(1.0, lucid.eye(3)), "df must be greater than the number of rows"),
        (lambda: D.LKJCholesky(1), "integer >= 2"),
        (lambda: D.VonMises(0.0, 0.0), "concentration must be positive"),
        (lambda: D.ContinuousBernoulli(), "give either probs or logits"),
        (lambda: D.MultivariateNormal(t(1.0)), "exactly one of"),
        (lambda: D.MultivariateNormal(t(1.0), lucid.eye(2)), "a matrix of shape (2, 2)"),
        (lambda: D.Independent(D.Normal(0.0, 1.0), 1), "1 axes"),
        (lambda: D.MixtureSameFamily(D.Categorical(t(1.0)), D.Normal(0.0, 1.0)), "Categorical"),
    ],
)
def test_misuse_is_told(make, part):
    with pytest.raises(ArgumentError, match=r".*") as caught:
        make()
    assert part in str(caught.value)


def test_validation_can_be_switched_off():
    assert D.Normal(0.0, -1.0, validate_args=False).scale.item() == -1.0


def test_repr_shows_parameters():
    assert repr(D.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(D.Normal(a, 1.0)) == "Normal(loc: (3,), scale: (3,))"


def test_parameters_that_do_not_fit_are_told():
    from lucid.errors import ShapeError

    with pytest.raises(ShapeError, match=r"Categorical: probs has shape \(\)"):
        D.Categorical(lucid.tensor(1.0))
    with pytest.raises(ShapeError, match=r"Dirichlet: concentration has shape \(\)"):
        D.Dirichlet(lucid.tensor(1.0))
    with pytest.raises(ShapeError, match=r"Normal: loc of shape \(2,\) and scale of shape \(3,\)"):
        D.Normal(lucid.zeros(2), lucid.ones(3))


def in_double(x):
    return lucid.tensor(x, dtype="float64")


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (p, q)
        for p in ("Beta", "Exponential", "Gamma", "Gumbel", "Laplace", "Normal", "Uniform")
        for q in ("Normal", "Exponential", "Gamma", "Laplace", "Uniform", "Beta")
        if KL_FORMULAS.get((getattr(D, p), getattr(D, q)), infinite) is not infinite and p != q
    ],
)
def test_divergences_of_two_classes_are_the_integrals(p, q):
    from scipy import integrate

    first = {"Exponential": (1.7,), "Uniform": (0.2, 0.9)}.get(p, (2.1, 1.4))
    others = {"Exponential": (0.6,), "Uniform": (-0.5, 2.0), "Normal": (0.3, 1.2)}
    second = others.get(q, (1.6, 2.3))
    p, q = getattr(D, p)(*map(in_double, first)), getattr(D, q)(*map(in_double, second))

    def density(x):
        found = p.log_prob(in_double(x)).item()
        return math.exp(found) * (found - q.log_prob(in_double(x)).item()) if found > -700 else 0.0

    low, high = {D.Uniform: (0.2, 0.9), D.Beta: (0.0, 1.0)}.get(type(p), (-40.0, 60.0))
    low = 0.0 if type(p) in (D.Exponential, D.Gamma) else low
    expected, _ = integrate.quad(density, low, high, points=[first[0]] if low < 0 else None)
    close(D.kl_divergence(p, q), expected, rtol=1e-6, atol=1e-8)


def test_a_divergence_from_what_cannot_be_is_infinite():
    assert D.kl_divergence(D.Uniform(-1.0, 1.0), D.Exponential(1.0)).item() == math.inf
    assert D.kl_divergence(D.Uniform(0.5, 1.5), D.Beta(2.0, 2.0)).item() == math.inf
    assert D.kl_divergence(D.Beta(2.0, 2.0), D.Uniform(0.5, 2.0)).item() == math.inf
