"""lucid.special beyond the table: tails and limits against mpmath, derivatives of any order."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, DTypeError

special = lucid.special
INF, NAN = math.inf, math.nan


def wide(x) -> lucid.Tensor:
    return lucid.tensor(x, dtype="float64")


def compiled(function):
    """The function as jit runs it from its second call on."""
    jitted = lucid.jit(function)

    def call(*args):
        jitted(*args)
        return jitted(*args)

    return call


def close(got, want, rtol):
    with mpmath.workdps(40):
        assert abs(mpmath.mpf(float(got)) - want) <= rtol * abs(want), f"{float(got)}, not {want}"


TAILS = [
    ("log_ndtr", -40.0, lambda x: mpmath.log(mpmath.ncdf(x))),
    ("log_ndtr", -1e4, lambda x: mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2)),
    ("log_ndtr", 9.0, lambda x: mpmath.log1p(-mpmath.ncdf(-x))),
    ("ndtr", -37.0, mpmath.ncdf),
    ("erfcx", 25.0, lambda x: mpmath.exp(x * x) * mpmath.erfc(x)),
    ("erfcx", 1e8, lambda x: 1 / (x * mpmath.sqrt(mpmath.pi))),
    ("logit", 1e-20, lambda x: mpmath.log(x / (1 - x))),
    ("i0e", 1e3, lambda x: mpmath.exp(-x) * mpmath.besseli(0, x)),
    ("i1e", -1e3, lambda x: mpmath.exp(x) * mpmath.besseli(1, x)),
    ("scaled_modified_bessel_k1", 1e3, lambda x: mpmath.exp(x) * mpmath.besselk(1, x)),
    ("entr", 1e-300, lambda x: -x * mpmath.log(x)),
    ("digamma", 1e-8, mpmath.digamma),
    ("gammaln", 1e10, mpmath.loggamma),
    ("airy_ai", 20.0, mpmath.airyai),
]


@pytest.mark.parametrize(("name", "x", "exact"), TAILS)
def test_tails_are_exact(name, x, exact):
    with mpmath.workdps(60):
        want = exact(mpmath.mpf(x))
    close(getattr(special, name)(wide(x)), want, 2e-13)
    close(compiled(getattr(special, name))(wide(x)), want, 2e-13)


SLOPES = [
    ("log_ndtr", -40.0, mpmath.ncdf, 2e-14),
    ("erfcx", 9.0, None, 2e-13),
    ("erfcx", 11.0, None, 2e-14),
    ("erfcx", 300.0, None, 2e-14),
    ("i1", 0.0, lambda x: mpmath.besseli(1, x), 1e-15),
    ("i1e", 30.0, lambda x: mpmath.exp(-x) * mpmath.besseli(1, x), 1e-12),
    ("bessel_j1", 0.0, mpmath.j1, 1e-15),
    ("modified_bessel_k1", 0.01, lambda x: mpmath.besselk(1, x), 1e-13),
    ("spherical_bessel_j0", 1e-3, mpmath.sinc, 1e-12),
]


@pytest.mark.parametrize(("name", "x", "exact", "rtol"), SLOPES)
def test_first_derivatives_in_the_tails(name, x, exact, rtol):
    with mpmath.workdps(60):
        if name == "log_ndtr":
            exact = lambda x: mpmath.log(mpmath.ncdf(x))  # noqa: E731
        if name == "erfcx":
            exact = lambda x: mpmath.exp(x * x) * mpmath.erfc(x)  # noqa: E731
        want = mpmath.diff(exact, mpmath.mpf(x))
    close(lucid.func.grad(getattr(special, name))(wide(x)), want, rtol)


ORDERS = [
    ("i0", lambda x: mpmath.besseli(0, x)),
    ("i1", lambda x: mpmath.besseli(1, x)),
    ("bessel_j0", mpmath.j0),
    ("bessel_j1", mpmath.j1),
    ("airy_ai", mpmath.airyai),
    ("sinc", mpmath.sincpi),
]


@pytest.mark.parametrize(("name", "exact"), ORDERS)
@pytest.mark.parametrize("x", [0.0, 0.7])
def test_derivatives_of_order_four_also_at_zero(name, exact, x):
    derivative = getattr(special, name)
    for _ in range(4):
        derivative = lucid.func.grad(derivative)
    with mpmath.workdps(60):
        want = mpmath.diff(exact, mpmath.mpf(x), 4)
    assert abs(float(derivative(wide(x))) - want) <= 1e-11 * max(1, abs(want))


def slope_of_gammainc(a: float, x: float) -> mpmath.mpf:
    """From the integral of its derivative, without change of sign."""
    with mpmath.workdps(40):
        a, x = mpmath.mpf(a), mpmath.mpf(x)
        psi = mpmath.digamma(a)

        def density(t):
            return (mpmath.log(t) - psi) * mpmath.exp((a - 1) * mpmath.log(t) - t)

        if mpmath.log(x) <= psi:
            return mpmath.quad(density, [0, x / 4, x / 2, x]) / mpmath.gamma(a)
        far = mpmath.linspace(x, x + 120 + 12 * mpmath.sqrt(x), 12)
        return -mpmath.quad(density, far) / mpmath.gamma(a)


@pytest.mark.parametrize(
    ("a", "x"),
    [
        (0.01, 3.0), (0.5, 1.1), (0.5, 30.0), (1.0, 1.0), (1.5, 1.01), (3.0, 1.5), (3.0, 2.6),
        (30.0, 2.0), (30.0, 29.0), (30.0, 30.0), (30.0, 60.0), (300.0, 280.0), (300.0, 320.0),
        (4.0, 0.9), (2.0, 0.01),
    ],
)  # fmt: skip
def test_incomplete_gamma_has_its_derivative_in_a(a, x):
    want = slope_of_gammainc(a, x)
    lower, upper = (lucid.func.grad(f) for f in (special.gammainc, special.gammaincc))
    close(lower(wide(a), wide(x)), want, 2e-13 + 4e-16 * a * math.log(a + 2))
    close(upper(wide(a), wide(x)), -want, 2e-13 + 4e-16 * a * math.log(a + 2))
    close(compiled(lower)(wide(a), wide(x)), want, 2e-13 + 4e-16 * a * math.log(a + 2))
    single = lucid.tensor(a, dtype="float32"), lucid.tensor(x, dtype="float32")
    exact = slope_of_gammainc(float(single[0]), float(single[1]))
    close(lower(*single), exact, 1.3e-7)


def test_incomplete_gamma_at_the_ends_has_no_slope():
    a, x = wide([2.0, 2.0, 0.5]), wide([0.0, INF, 0.0])
    slopes = lucid.func.grad(lambda a: special.gammainc(a, x).sum())(a)
    np.testing.assert_array_equal(np.asarray(slopes), 0)
    assert float(lucid.func.grad(special.gammainc, argnums=1)(wide(1.0), wide(0.0))) == 1.0


@pytest.mark.parametrize(("x", "q"), [(1.1, 0.3), (2.0, 1.0), (3.5, 12.0), (25.0, 2.0)])
def test_zeta_has_its_derivative_in_x(x, q):
    with mpmath.workdps(40):
        want = mpmath.zeta(mpmath.mpf(x), mpmath.mpf(q), 1)
    close(lucid.func.grad(special.zeta)(wide(x), wide(q)), want, 1e-13)


def test_polygamma_left_of_zero_and_its_derivative():
    for n in (1, 2, 5):
        with mpmath.workdps(40):
            want = mpmath.polygamma(n, mpmath.mpf(-0.5))
        close(lucid.polygamma(n, wide(-0.5)), want, 1e-13)
        close(compiled(lambda x, n=n: lucid.polygamma(n, x))(wide(-0.5)), want, 1e-13)


def test_limits():
    assert [float(v) for v in special.entr(wide([0.0, -1.0, INF]))] == [0.0, -INF, -INF]
    assert [float(v) for v in special.xlog1py(wide([0.0, 0.0]), wide([-1.0, INF]))] == [0.0, 0.0]
    assert math.isnan(float(special.xlog1py(wide(0.0), wide(NAN))))
    assert [float(v) for v in special.ndtri(wide([0.0, 0.5, 1.0]))] == [-INF, 0.0, INF]
    assert float(special.modified_bessel_k0(wide(0.0))) == INF
    assert math.isnan(float(special.bessel_y0(wide(-1.0))))


def test_xlog1py_of_nothing_has_no_derivative_from_an_infinite_logarithm():
    slope = lucid.func.grad(special.xlog1py)
    assert float(slope(wide(0.0), wide(-1.0))) == 0.0
    assert float(slope(wide(0.0), wide(1.0))) == pytest.approx(math.log(2))


def test_a_ufunc_reads_views_and_broadcasts_where_they_lie():
    x, a = wide(np.linspace(0.1, 4, 24).reshape(4, 6)), wide([[1.0], [2.0], [3.0]])

    def program(x, a):
        return special.gammainc(a, x.T[::2]), special.bessel_j0(x[:, ::3].T)

    for got, want in zip(compiled(program)(x, a), program(x, a)):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "asin", "sqrt", "log1p"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float16"])
def test_complex_and_half_functions_run_by_their_address_with_the_same_result(name, dtype, rng):
    x = rng.uniform(0.1, 0.9, (3, 5)) + (1j * rng.uniform(-1, 1, (3, 5)) if dtype[0] == "c" else 0)
    x, function = lucid.tensor(x.astype(dtype)), getattr(lucid, name)
    got, want = np.asarray(compiled(function)(x.T)), np.asarray(function(x.T))
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=4 * float(np.finfo(dtype).eps))


def test_orders_and_dimensions_are_checked():
    with pytest.raises(DTypeError, match="order -1"):
        lucid.polygamma(-1, wide(1.0))
    with pytest.raises(ArgumentError, match="at least 1"):
        special.multigammaln(wide(1.0), 0)


def test_slope_of_xlogy_at_zero_is_the_logarithm_where_that_is_finite():
    y = lucid.tensor(np.array([0.5, 0.0, np.inf, -1.0]))
    slope = lucid.func.grad(lambda x: lucid.xlogy(x, y).sum())(lucid.tensor(np.zeros(4)))
    np.testing.assert_allclose(slope.numpy(), [np.log(0.5), 0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("erfc", mpmath.erfc),
        ("erfcx", lambda x: mpmath.exp(x * x) * mpmath.erfc(x)),
        ("ndtr", mpmath.ncdf),
    ],
)
def test_eager_and_compiled_tails_are_within_four_units_of_the_last_place(name, exact):
    x = np.random.default_rng(3).uniform(-26, 26, 200)
    f = getattr(lucid.special, name)
    with mpmath.workdps(40):
        expected = [exact(mpmath.mpf(v)) for v in x.tolist()]
        for found in (f(lucid.as_tensor(x)), lucid.jit(f)(lucid.as_tensor(x))):
            for v, e in zip(found.tolist(), expected):
                assert abs(v - e) <= 4 * np.spacing(float(e))


def mixed(f, *xs, first, second):
    """Return the derivative in argument `first` of `f`, and then in argument `second`."""
    xs = [lucid.tensor(x, dtype=lucid.float64) for x in xs]
    grad = lucid.func.grad
    return grad(grad(f, argnums=first), argnums=second)(*xs).item()


@pytest.mark.parametrize(
    ("f", "xs", "first", "second", "expected"),
    [
        ("betainc", (1.0, 1.0, 0.3), 2, 0, math.log(0.3) + 1),
        ("betainc", (1.0, 1.0, 0.3), 2, 1, math.log(0.7) + 1),
        ("rgamma", (0.0,), 0, 0, 2 * np.euler_gamma),
        ("rgamma", (-1.0,), 0, 0, 2 * (1 - np.euler_gamma)),
        ("stdtr", (1.0, 0.0), 0, 1, (math.log(2) - 0.5) / math.pi),
        ("stdtrit", (1.0, 0.5), 0, 1, -(math.log(2) - 0.5) * math.pi),
        ("xlog1py", (0.0, -1.0), 1, 1, 0.0),
    ],
)
def test_second_derivatives_where_a_first_one_has_a_formula_of_its_own(
    f, xs, first, second, expected
):
    f = getattr(lucid.special, f)
    np.testing.assert_allclose(mixed(f, *xs, first=first, second=second), expected, rtol=1e-12)
