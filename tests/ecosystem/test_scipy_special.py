"""scipy.special's ufuncs on tensors are lucid.special's functions, with derivatives."""

import mpmath
import numpy as np
import pytest
import scipy.special as sp
import scipy.stats

import lucid
from lucid.func import grad, jacfwd

X = np.array([0.3, 0.6, 0.85])


@pytest.mark.parametrize(
    "name",
    ["erf", "erfc", "erfinv", "erfcinv", "gammaln", "gamma", "rgamma", "psi", "expit", "logit",
     "ndtr", "ndtri", "log_ndtr", "entr", "i0", "i0e", "i1", "j0", "j1", "y0", "y1", "k0", "k1e",
     "expm1", "log1p", "erfcx"],
)  # fmt: skip
def test_ufuncs_of_one_tensor_have_scipys_values_and_gradients(name):
    function = getattr(sp, name)
    y = function(lucid.tensor(X))
    assert isinstance(y, lucid.Tensor)
    np.testing.assert_allclose(y.numpy(), function(X), rtol=1e-12)
    slope = grad(lambda x: function(x).sum())(X)
    numeric = (function(X + 1e-6) - function(X - 1e-6)) / 2e-6
    np.testing.assert_allclose(slope, numeric, rtol=1e-6)


def test_ufuncs_of_several_tensors():
    a = X + 1.0
    for name, args in {
        "xlogy": (a, X), "xlog1py": (a, X), "beta": (a, X), "betaln": (a, X), "gammainc": (a, X),
        "gammaincc": (a, X), "gammaincinv": (a, X), "betainc": (a, a, X), "betaincinv": (a, a, X),
        "stdtr": (a, X), "jv": (0.5, X), "yv": (2, X), "iv": (1.5, X), "ive": (3, X),
    }.items():  # fmt: skip
        function = getattr(sp, name)
        ours = function(*[lucid.tensor(x) if isinstance(x, np.ndarray) else x for x in args])
        assert isinstance(ours, lucid.Tensor), name
        np.testing.assert_allclose(ours.numpy(), function(*args), rtol=1e-12, err_msg=name)


def test_a_ufunc_without_a_counterpart_says_so():
    with pytest.raises(TypeError, match="fresnel.*detach"):
        sp.fresnel(lucid.ones(2, requires_grad=True))


@pytest.mark.parametrize(
    ("a", "b", "x"),
    [(2.0, 3.0, 0.4), (0.01, 0.01, 0.5), (0.5, 0.5, 0.9), (100.0, 200.0, 0.3), (3.0, 0.01, 0.99)],
)
def test_the_derivatives_of_betainc_agree_with_mpmath(a, b, x):
    slopes = grad(lucid.special.betainc, (0, 1))(*[np.float64(v) for v in (a, b, x)])
    with mpmath.workdps(40):
        value = lambda p, q: mpmath.betainc(p, q, 0, x, regularized=True)  # noqa: E731
        expected = mpmath.diff(lambda p: value(p, b), a), mpmath.diff(lambda q: value(a, q), b)
    np.testing.assert_allclose(slopes, [float(e) for e in expected], rtol=1e-11)


DISTRIBUTIONS = {
    "Beta": (lambda p: lucid.distributions.Beta(p, 2.5), lambda p: scipy.stats.beta(p, 2.5)),
    "StudentT": (lambda p: lucid.distributions.StudentT(p, 0.25, 1.25),
                 lambda p: scipy.stats.t(p, 0.25, 1.25)),
    "Gamma": (lambda p: lucid.distributions.Gamma(p, 1.75),
              lambda p: scipy.stats.gamma(p, scale=1 / 1.75)),
    "InverseGamma": (lambda p: lucid.distributions.InverseGamma(p, 1.75),
                     lambda p: scipy.stats.invgamma(p, scale=1.75)),
    "Chi2": (lucid.distributions.Chi2, scipy.stats.chi2),
}  # fmt: skip


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_cdf_and_icdf_have_scipys_values_and_derivatives_in_value_and_parameter(name):
    ours, theirs = DISTRIBUTIONS[name]
    for method, other in (("cdf", "cdf"), ("icdf", "ppf")):

        def f(p, x, method=method):
            return getattr(ours(p), method)(x)

        def g(p, x, other=other):
            return getattr(theirs(p), other)(x)

        p = np.float64(1.8)
        np.testing.assert_allclose(f(lucid.tensor(p), lucid.tensor(X)).numpy(), g(p, X), rtol=1e-10)
        in_p, in_x = jacfwd(f, 0)(p, X), grad(lambda x, f=f, p=p: f(lucid.tensor(p), x).sum())(X)
        np.testing.assert_allclose(in_p, (g(p + 1e-6, X) - g(p - 1e-6, X)) / 2e-6, rtol=1e-5)
        np.testing.assert_allclose(in_x, (g(p, X + 1e-6) - g(p, X - 1e-6)) / 2e-6, rtol=1e-5)


def test_the_cdf_and_icdf_of_poisson():
    rate, k = np.float64(3.7), np.array([-1.0, 0.0, 2.0, 2.5, 9.0])
    ours, theirs = lucid.distributions.Poisson(lucid.tensor(rate)), scipy.stats.poisson(rate)
    np.testing.assert_allclose(ours.cdf(lucid.tensor(k)).numpy(), theirs.cdf(k), rtol=1e-12)
    levels = np.array([0.001, 0.02, 0.3, 0.5, 0.9, 0.999, *theirs.cdf([0, 3, 5])])
    np.testing.assert_array_equal(ours.icdf(lucid.tensor(levels)).numpy(), theirs.ppf(levels))
    slope = grad(lambda r: lucid.distributions.Poisson(r).cdf(lucid.tensor(2.0)))(rate)
    assert slope == pytest.approx(-scipy.stats.poisson.pmf(2, rate), rel=1e-10)
