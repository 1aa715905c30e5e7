"""Rejection sampling: gamma, Poisson and binomial draws as pure functions of a key.

Each round proposes a number for every element, with the round number folded into the key; the first
accepted number is kept, so the result does not depend on the number of rounds. The loop runs until
all elements are accepted, eager and compiled. Invalid parameters give nan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lucid.func.control_flow import while_loop
from lucid.func.custom_rules.forward import custom_jvp
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import maximum, minimum, where
from lucid.ops.elementwise.exponential import exp, log, sqrt
from lucid.ops.elementwise.rounding import floor
from lucid.ops.random.keyed import fold_in, normal, split, uniform
from lucid.ops.shape.creation import full, zeros
from lucid.ops.special.error_and_gamma import lgamma
from lucid.ops.special.incomplete_gamma import gamma_density, gammainc_grad_a

Propose = Callable[[Any], tuple[Any, Any]]  # key -> (numbers, whether they are accepted)


def sample_by_rejection(key: Any, possible: Any, dtype: Any, propose: Propose) -> Any:
    """Return the first accepted number for every element; nan where none is `possible`."""

    def round_(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        i, done, values = state
        found, fits = propose(fold_in(key, i))
        return i + 1, done | fits, where(done | ~fits, values, found)

    start = as_tensor(0), ~possible, full(possible.shape, math.nan, dtype=dtype)
    return while_loop(lambda state: ~state[1].all(), round_, start)[2]


@custom_jvp
def reparameterize_gamma(a: Any, z: Any) -> Any:
    """Return the gamma draw `z` with its implicit derivative in the shape `a`."""
    return z + 0.0 * a


@reparameterize_gamma.defjvp
def _(primals: Any, tangents: Any) -> Any:
    a, z = primals
    y = reparameterize_gamma(a, z)
    wide_a, wide_y = cast(a, "float64"), cast(y, "float64")
    slope = -gammainc_grad_a(wide_a, wide_y) / gamma_density(wide_a, wide_y)
    return y, cast(slope, y.dtype) * tangents[0]


def log_gamma(key: Any, a: Any) -> Any:
    """Return logs of gamma draws of shape `a` (Marsaglia and Tsang 2000), differentiable in `a`.

    For a < 1, a draw is one of shape a + 1 times u^(1/a), which may underflow; its log does not.
    """
    rounds, boost = split(key)
    raised = where(a < 1, a + 1, a)
    fixed = raised.detach()
    d = fixed - 1 / 3
    c = 1 / sqrt(9 * d)

    def propose(key: Any) -> tuple[Any, Any]:
        first, second = split(key)
        x = normal(first, a.shape, dtype=a.dtype)
        u = 1 - uniform(second, a.shape, dtype=a.dtype)
        v = (1 + c * x) ** 3
        inside = v > 0
        bound = x * x / 2 + d * (1 - v + log(where(inside, v, 1.0)))
        return d * v, inside & (log(u) < bound)

    draw = sample_by_rejection(rounds, (fixed > 0) & (fixed < math.inf), a.dtype, propose)
    u = 1 - uniform(boost, a.shape, dtype=a.dtype)
    return log(reparameterize_gamma(raised, draw)) + where(a < 1, log(u) / a, 0.0)


def poisson(key: Any, rate: Any) -> Any:
    """Return Poisson draws in float64: by inversion below 10, else Hörmann's PTRS (1993)."""
    one, two = split(key)
    small = sample_by_inversion(
        one, exp(-minimum(rate, 10.0)), lambda k: minimum(rate, 10.0) / (k + 1)
    )
    lam = maximum(rate, 10.0)
    b = 0.931 + 2.53 * sqrt(lam)
    a = -0.059 + 0.02483 * b
    scale, ready = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)

    def propose(key: Any) -> tuple[Any, Any]:
        u, v, edge = proposal_uniforms(key, lam.shape)
        k = floor((2 * a / edge + b) * u + lam + 0.43)
        at = maximum(k, 0.0)
        chance = at * log(lam) - lam - lgamma(at + 1)
        fits = log(v * scale / (a / (edge * edge) + b)) <= chance
        return k, (k >= 0) & (((edge >= 0.07) & (v <= ready)) | fits)

    possible = (rate >= 0) & (rate < math.inf)
    large = sample_by_rejection(two, possible, "float64", propose)
    return where(possible & (rate < 10), small, large)


def binomial(key: Any, n: Any, p: Any) -> Any:
    """Return binomial draws in float64: by inversion where n p < 10, else Hörmann's BTRS."""
    one, two = split(key)
    possible = (n >= 0) & (n < math.inf) & (n == floor(n)) & (p >= 0) & (p <= 1)
    n, p = where(possible, n, 0.0), where(possible, p, 0.0)
    flipped = p > 0.5
    p = where(flipped, 1 - p, p)
    few = n * p < 10
    p_few = where(few, p, 0.0)
    small = sample_by_inversion(
        one, (1 - p_few) ** n, lambda k: maximum(n - k, 0.0) / (k + 1) * p_few / (1 - p_few)
    )
    n_many, p_many = where(few, 100.0, n), where(few, 0.5, p)
    q = 1 - p_many
    spread = sqrt(n_many * p_many * q)
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p_many
    ready, scale = 0.92 - 4.2 / b, (2.83 + 5.1 / b) * spread
    mode = floor((n_many + 1) * p_many)
    at_mode = lgamma(mode + 1) + lgamma(n_many - mode + 1)

    def propose(key: Any) -> tuple[Any, Any]:
        u, v, edge = proposal_uniforms(key, n_many.shape)
        k = floor((2 * a / edge + b) * u + n_many * p_many + 0.5)
        at = minimum(maximum(k, 0.0), n_many)
        chance = at_mode - lgamma(at + 1) - lgamma(n_many - at + 1)
        chance = chance + (at - mode) * log(p_many / q)
        fits = log(v * scale / (a / (edge * edge) + b)) <= chance
        return k, (k == at) & (((edge >= 0.07) & (v <= ready)) | fits)

    large = sample_by_rejection(two, possible, "float64", propose)
    found = where(few, small, large)
    return where(possible, where(flipped, n - found, found), math.nan)


def proposal_uniforms(key: Any, shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Return u in [-0.5, 0.5), v in (0, 1], both uniform, and the distance of u to its bounds."""
    first, second = split(key)
    u = uniform(first, shape, dtype="float64") - 0.5
    return u, 1 - uniform(second, shape, dtype="float64"), maximum(0.5 - abs(u), 2.0**-54)


def sample_by_inversion(key: Any, first: Any, ratio: Callable[[Any], Any]) -> Any:
    """Return draws by inverting the cumulative sum of P, where P(k+1) = P(k) ratio(k)."""
    unit = uniform(key, first.shape, dtype="float64")

    def more(state: tuple[Any, Any, Any]) -> Any:
        return ((unit >= state[2]) & (state[1] > 0)).any()

    def add(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        k, chance, total = state
        active = (unit >= total) & (chance > 0)
        next_chance = where(active, chance * ratio(k), chance)
        return where(active, k + 1, k), next_chance, where(active, total + next_chance, total)

    return while_loop(more, add, (zeros(*first.shape, dtype="float64"), first, first))[0]
