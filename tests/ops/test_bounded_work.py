"""Values in a tensor that would make a function run on, or read other memory, are refused.

Eagerly, in compiled programs (where the value may come with any call), batched and differentiated.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import lucid
from lucid import func, linalg, special
from lucid.errors import ArgumentError, LucidError, ShapeError

POLYNOMIALS = [name for name in special.__all__ if "_polynomial_" in name]
HUGE = 10**17
X = lucid.tensor([0.1, 0.2, 0.3], dtype="float64")
SMALL, LARGE = lucid.tensor([1, 2, 3]), lucid.tensor([1, 2, HUGE])


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_a_huge_degree_in_a_tensor_is_refused_on_every_path(name):
    f = getattr(special, name)
    paths = {
        "eager": f,
        "vmap": func.vmap(f),
        "jit": lucid.jit(f),
        "jit of vmap": lucid.jit(func.vmap(f)),
        "jit of grad": lucid.jit(func.grad(lambda x, n: f(x, n).sum())),
    }
    for path, call in paths.items():
        good = call(X, SMALL)
        for _ in range(2):
            with pytest.raises(ArgumentError, match=f"{name}: a degree exceeds .*got {HUGE}"):
                call(X, LARGE)
            np.testing.assert_allclose(call(X, SMALL), good, rtol=1e-12, err_msg=path)


@pytest.mark.parametrize("degree", [1e30, np.inf, np.nan, np.uint64(2**63 + 5), np.float16(np.inf)])
def test_degrees_beyond_all_integers_are_refused_too(degree):
    for n in (degree, np.array([degree]), lucid.tensor([degree])):
        with pytest.raises(ArgumentError, match="chebyshev_polynomial_t: a degree exceeds"):
            special.chebyshev_polynomial_t(X, n)


def test_the_least_integer_is_a_negative_degree():
    n = lucid.tensor([-(2**63)])
    for f in (special.chebyshev_polynomial_v, lucid.jit(special.chebyshev_polynomial_w)):
        for _ in range(3):
            np.testing.assert_array_equal(f(X, n), np.zeros(3))


def test_small_integers_and_booleans_are_degrees():
    for dtype in ("int8", "uint8", "uint64", "bool", "float16"):
        n = lucid.tensor([0, 1, 1], dtype=dtype)
        np.testing.assert_allclose(special.legendre_polynomial_p(X, n), [1.0, 0.2, 0.3])


def test_zeta_and_polygamma_end_at_any_negative_number():
    x = np.array([-1e15 - 0.5, -3.5, 2.5])
    zeta, third = lucid.jit(lambda x: special.zeta(3.0, x)), lucid.jit(lambda x: x.polygamma(2))
    slope = lucid.jit(func.grad(lambda x: special.zeta(3.0, x).sum()))
    for shift in range(3):
        at = lucid.tensor(x + shift)
        near = x[1:] + shift
        expected = [np.nan, *scipy.special.zeta(3.0, near)]
        np.testing.assert_allclose(special.zeta(3.0, at), expected)
        np.testing.assert_allclose(zeta(at), expected)
        np.testing.assert_allclose(third(at), -2.0 * np.array(expected))
        np.testing.assert_allclose(at.polygamma(2), -2.0 * np.array(expected))
        np.testing.assert_allclose(slope(at), [np.nan, *(-3.0 * scipy.special.zeta(4.0, near))])


MATRIX = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 3.0], [1.0, 3.0, 0.0]])
FACTORS = {"lu_solve": linalg.lu_factor, "ldl_solve": linalg.ldl_factor}
BAD_PIVOTS = [[1, 2, 10**9], [0, 2, 3], [1, 2, -3], [-1, 2, 3], [2**33 + 1, 2, 3], [-1, -1, -1]]


@pytest.mark.parametrize("name", FACTORS)
def test_pivots_that_are_no_rows_are_refused_on_every_path(name):
    """LAPACK reads and writes memory by them."""
    factors, pivots = FACTORS[name](lucid.tensor(MATRIX))
    solve = getattr(linalg, name)
    compiled = lucid.jit(solve)
    for k in range(3):
        b = np.array([[1.0], [2.0], [4.0 + k]])
        for f in (solve, compiled):
            found = f(factors, pivots, lucid.tensor(b))
            np.testing.assert_allclose(found, np.linalg.solve(MATRIX, b))
            for bad in BAD_PIVOTS:
                with pytest.raises(ArgumentError, match=f"{name}: .*pivot.*factor"):
                    f(factors, lucid.tensor(bad), lucid.tensor(b))


def test_unpacking_refuses_pivots_that_are_no_rows():
    unpack = lucid.jit(lambda pivots: lucid.lu_unpack(lucid.tensor(MATRIX), pivots).P)
    for _ in range(3):
        np.testing.assert_array_equal(unpack(lucid.tensor([1, 2, 3])), np.eye(3))
        with pytest.raises(ArgumentError, match="lu_unpack: a pivot is not from 1 to 3"):
            unpack(lucid.tensor([1, 2, 4]))


@pytest.mark.parametrize("name", ["stride", "padding", "dilation"])
def test_windows_beyond_the_largest_size_are_refused(name):
    """Planning the tiles of 10**17 positions did not end, and strides were NumPy's error."""
    x, w = lucid.ones(1, 2, 9), lucid.ones(2, 2, 3)
    for size in (10**17, 10**30):
        convolve = lambda x, w: lucid.nn.functional.conv1d(x, w, **{name: size})  # noqa: B023,E731
        for f in (convolve, lucid.jit(convolve)):
            with pytest.raises(ShapeError, match=f"conv1d: {name} {size} is too large"):
                f(x, w)


def test_neighbors_beyond_the_channels_are_not_summed():
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    size = 10**17
    found = lucid.nn.functional.local_response_norm(lucid.tensor(x), size, float(size), 0.5, 2.0)
    np.testing.assert_allclose(found, x / np.sqrt(2.0 + (x * x).sum(1, keepdims=True)))


TOO_LARGE = {
    "fft": lambda x: lucid.fft.fft(x, n=10**30),
    "fftn": lambda x: lucid.fft.fftn(x, s=(10**17, 100)),
    "expand": lambda x: x.expand(2**61, 3, 4).sum(),
    "vmap": lambda x: func.vmap(lambda y: y.expand(2**60, 4))(x),
    "diag_embed": lambda x: lucid.diag_embed(x, lucid.tensor(2**31)),
}


NEGATIVE = {
    "expand": lambda x: x.expand(-7, 3, 4),
    "broadcast_to": lambda x: lucid.broadcast_to(x, (-7, 3, 4)),
    "rand": lambda x: x + lucid.rand(-7, 3, 4),
}


@pytest.mark.parametrize("name", NEGATIVE)
def test_negative_sizes_are_refused_where_nothing_is_computed_yet(name):
    for f in (NEGATIVE[name], lucid.jit(NEGATIVE[name])):
        with pytest.raises(LucidError, match="negative|-7"):
            f(lucid.ones(3, 4))


@pytest.mark.parametrize("name", TOO_LARGE)
def test_sizes_beyond_any_memory_are_refused_where_nothing_is_computed_yet(name):
    for f in (TOO_LARGE[name], lucid.jit(TOO_LARGE[name])):
        with pytest.raises(ShapeError, match="exceeds any memory"):
            f(lucid.ones(3, 4))
