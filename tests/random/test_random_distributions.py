"""Draws by name against SciPy's distributions; the same eager and compiled, by key or generator."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import lucid
from lucid import random as lr
from lucid.errors import ArgumentError, DTypeError, LucidError, ShapeError
from lucid.func import vmap

N = 20_000
CONTINUOUS = {
    "exponential": ((2.0,), stats.expon(scale=0.5)),
    "laplace": ((1.0, 2.0), stats.laplace(1, 2)),
    "cauchy": ((1.0, 2.0), stats.cauchy(1, 2)),
    "gumbel": ((1.0, 2.0), stats.gumbel_r(1, 2)),
    "log_normal": ((0.5, 0.7), stats.lognorm(0.7, scale=math.exp(0.5))),
    "truncated_normal": ((1.0, 2.0, -1.0, 4.0), stats.truncnorm(-1, 1.5, 1, 2)),
    "truncated_normal far right": ((0.0, 1.0, 6.0, 9.0), stats.truncnorm(6, 9)),
    "truncated_normal far left": ((0.0, 1.0, -9.0, -6.0), stats.truncnorm(-9, -6)),
    "gamma": ((3.0, 2.0), stats.gamma(3, scale=0.5)),
    "gamma of 1": ((1.0,), stats.gamma(1)),
    "gamma below 1": ((0.2,), stats.gamma(0.2)),
    "gamma of many": ((500.0,), stats.gamma(500)),
    "beta": ((2.0, 3.0), stats.beta(2, 3)),
    "beta below 1": ((0.3, 0.8), stats.beta(0.3, 0.8)),
}
WHOLE = {
    "poisson 0.3": (0.3,), "poisson 9.99": (9.99,), "poisson 10": (10.0,), "poisson 300": (300.0,),
    "binomial 5": (5.0, 0.3), "binomial 20": (20.0, 0.9), "binomial 100": (100.0, 0.4),
    "binomial 1000": (1000.0, 0.97), "binomial 10000": (10_000.0, 0.002), "geometric": (0.3,),
}  # fmt: skip
PMF = {"poisson": stats.poisson, "binomial": stats.binom, "geometric": lambda p: stats.geom(p, -1)}


def drawn(name, params, size=(N,), **settings):
    return getattr(lr, name.split()[0])(*params, size=size, **settings)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_draws_have_their_distribution(name, dtype):
    params, theirs = CONTINUOUS[name]
    x = drawn(name, params, key=lr.key(5), dtype=dtype)
    assert x.dtype == dtype and x.shape == (N,)
    assert stats.kstest(x.numpy().astype("float64"), theirs.cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", WHOLE)
def test_draws_of_whole_numbers_have_their_distribution(name):
    params = WHOLE[name]
    theirs = PMF[name.split()[0]](*params)
    x = drawn(name, params, key=lr.key(6)).numpy()
    assert (x == np.floor(x)).all() and x.min() >= 0
    k = np.arange(0, x.max() + 1)
    counts, expected = np.bincount(x.astype(int)), theirs.pmf(k) * N
    big = expected > 8
    observed = [*counts[big], N - counts[big].sum()]
    chances = [*expected[big], N - expected[big].sum()]
    assert stats.chisquare(observed, chances).pvalue > 1e-3


def test_dirichlet_and_categorical_have_their_distributions():
    c, p = np.array([0.3, 1.0, 2.0]), np.array([0.2, 0.3, 0.5])
    x = lr.dirichlet(lucid.tensor(c), N, key=lr.key(1)).numpy()
    np.testing.assert_allclose(x.sum(-1), 1.0, rtol=1e-12)
    for i in range(3):
        assert stats.kstest(x[:, i], stats.beta(c[i], c.sum() - c[i]).cdf).pvalue > 1e-3
    k = lr.categorical(lucid.tensor(np.log(p)), N, key=lr.key(2)).numpy()
    assert stats.chisquare(np.bincount(k), p * N).pvalue > 1e-3


def test_multinomial_draws_by_weight_with_and_without_replacement():
    w = lucid.tensor([[1.0, 0.0, 3.0], [0.0, 5.0, 0.0]])
    lucid.manual_seed(0)
    x = lucid.multinomial(w, N, replacement=True).numpy()
    assert stats.chisquare(np.bincount(x[0])[[0, 2]], [N / 4, 3 * N / 4]).pvalue > 1e-3
    assert (x[1] == 1).all()
    rows = lucid.tensor([[1.0, 2.0, 3.0]]).expand(N, 3)
    pairs = lucid.multinomial(rows, 2).numpy()
    assert (pairs[:, 0] != pairs[:, 1]).all()
    chance = {(i, j): (i + 1) / 6 * (j + 1) / (6 - (i + 1)) for i in range(3) for j in range(3)}
    found = [((pairs[:, 0] == i) & (pairs[:, 1] == j)).sum() for i, j in chance if i != j]
    assert stats.chisquare(found, [N * chance[c] for c in chance if c[0] != c[1]]).pvalue > 1e-3


def test_multinomial_runs_inside_jit_with_the_same_numbers():
    w = lucid.tensor([[0.2, 0.3, 0.5], [1.0, 1.0, 0.0]])
    for replacement in (True, False):
        f = lucid.jit(lambda w, r=replacement: lucid.multinomial(w, 2, r))
        f(w), f(w)
        lucid.manual_seed(4)
        compiled = f(w).tolist()
        lucid.manual_seed(4)
        assert lucid.multinomial(w, 2, replacement).tolist() == compiled


CASES = {**{n: p for n, (p, _) in CONTINUOUS.items()}, **WHOLE}


@pytest.mark.parametrize("name", CASES)
def test_the_stream_is_the_same_eager_and_compiled(name):
    params = CASES[name]
    f = lucid.jit(lambda: drawn(name, params, (7,), dtype="float64"))
    f(), f()
    lucid.manual_seed(1)
    compiled = [f().numpy().copy() for _ in range(2)]
    lucid.manual_seed(1)
    eager = [drawn(name, params, (7,), dtype="float64").numpy() for _ in range(2)]
    np.testing.assert_allclose(compiled, eager, rtol=1e-12)
    assert not np.array_equal(*eager) or name.startswith("binomial 5")


@pytest.mark.parametrize("name", CASES)
def test_a_key_and_a_generator_decide_the_draws(name):
    params = CASES[name]
    by_key = [drawn(name, params, (9,), key=lr.key(k)).tolist() for k in (3, 3)]
    by_seed = [drawn(name, params, (9,), generator=lr.Generator(k)).tolist() for k in (3, 3)]
    assert by_key[0] == by_key[1] and by_seed[0] == by_seed[1]


@pytest.mark.parametrize("name", ["gamma", "poisson", "beta", "exponential"])
def test_under_vmap_examples_draw_the_same_or_their_own(name):
    params = [lucid.full((40,), 30.0, dtype="float64")] * (2 if name == "beta" else 1)
    draw = getattr(lr, name)
    same = vmap(draw, randomness="same")(*params).numpy()
    different = vmap(draw, randomness="different")(*params).numpy()
    assert len(set(same)) == 1 and len(set(different)) > 10
    keys = lr.split(lr.key(0), 40)
    mapped = vmap(lambda k, *p: draw(*p, key=k))(keys, *params).numpy()
    one = [draw(*[p[i] for p in params], key=keys[i]).item() for i in range(40)]
    np.testing.assert_allclose(mapped, one, rtol=1e-12)


def test_parameters_broadcast_and_decide_the_dtype():
    assert lr.gamma(lucid.ones(3, 1), lucid.ones(2)).shape == (3, 2)
    assert lr.gamma(lucid.ones(2, dtype="float64")).dtype == lucid.float64
    assert lr.gamma(lucid.ones(2), size=(5, 2)).shape == (5, 2) and lr.poisson(3.0).shape == ()
    assert lr.exponential(size=(0, 3)).shape == (0, 3) and lr.gamma(2.0, size=(0,)).shape == (0,)
    assert lr.exponential(size=4, dtype="float16").dtype == lucid.float16


def test_impossible_parameters_give_nan_and_no_endless_loop():
    bad = lucid.tensor([-1.0, math.nan, 2.0])
    for x in (lr.gamma(bad), lr.poisson(bad), lr.binomial(bad, 0.5), lr.binomial(3.0, bad / 4)):
        assert [math.isnan(v) for v in x.tolist()] == [True, True, False]


def test_ends_of_the_ranges():
    assert lr.poisson(0.0, 50).tolist() == [0.0] * 50
    assert lr.binomial(7.0, 0.0, 50).tolist() == [0.0] * 50
    assert lr.binomial(7.0, 1.0, 50).tolist() == [7.0] * 50
    assert lr.binomial(0.0, 0.5, 50).tolist() == [0.0] * 50
    small = lr.gamma(1e-4, size=1000)
    assert bool((small > 0).all()) and bool(small.isfinite().all())
    ends = lr.beta(1e-3, 1e-3, 1000)
    assert bool(ends.isfinite().all()) and abs(ends.mean().item() - 0.5) < 0.1
    large = lr.poisson(1e6, 2000, dtype="float64").numpy()
    assert abs(large.mean() - 1e6) < 4 * 1e3 / math.sqrt(2000)


def test_generators_fork_into_independent_streams():
    first, second = lr.Generator(3).split()
    again = lr.Generator(3).split(2)
    a, b = (lr.rand(1000, generator=g) for g in (first, second))
    np.testing.assert_array_equal(lr.rand(1000, generator=again[1]).numpy(), b.numpy())
    assert abs(np.corrcoef(a.numpy(), b.numpy())[0, 1]) < 0.12
    parent = lr.Generator(3)
    child = parent.fork()
    assert lr.rand(1, generator=child).item() != lr.rand(1, generator=parent).item()


@pytest.mark.parametrize(
    ("call", "error", "part"),
    [
        (
            lambda: lr.gamma(lucid.ones(3), size=(2,)),
            ShapeError,
            "shape (3,) do not broadcast to size (2,)",
        ),
        (lambda: lr.gamma(1.0, size="x"), LucidError, "gamma"),
        (lambda: lr.gamma("x"), DTypeError, "not numeric"),
        (lambda: lr.gamma(1.0, dtype="int64"), DTypeError, "int64"),
        (lambda: lr.gamma(1.0, key=3), DTypeError, "key"),
        (lambda: lr.poisson(1.0, generator=3), ArgumentError, "poisson"),
    ],
)
def test_misuse_is_told(call, error, part):
    with pytest.raises(error, match=r".*") as caught:
        call()
    assert part in str(caught.value)
