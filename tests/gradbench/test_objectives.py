"""GradBench's objectives, jitted: derivatives against formulas by hand and finite differences."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from benchmarks.gradbench import (
    MODULES,
    ba,
    det,
    gmm,
    ht,
    kmeans,
    llsq,
    lse,
    lstm,
    ode,
    particle,
    saddle,
)
from benchmarks.gradbench.libraries import LIBRARIES
from lucid import func as F

LIB = LIBRARIES["lucid"]()


def arguments(module):
    return module.data(np.random.default_rng(1))


def tensors(arrays):
    return [LIB.array(x) for x in arrays]


def derivative(module, variant):
    """What a variant gives for its data, as NumPy arrays."""
    found = module.variants(LIB)[variant](*tensors(arguments(module)))
    return [np.asarray(x) for x in (found if isinstance(found, tuple) else [found])]


def slope(f, arrays, directions, h=1e-6):
    """The derivative of a function of NumPy arrays in a direction, by central differences."""
    ends = [f(*[a + s * h * d for a, d in zip(arrays, directions)]) for s in (1, -1)]
    return (ends[0] - ends[1]) / (2 * h)


def directions(arrays, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=a.shape) for a in arrays]


SCALARS = {  # module -> how many of its arguments are differentiated
    gmm: 4, lstm: 2, llsq: 1, lse: 1, det: 1
}  # fmt: skip


@pytest.mark.parametrize("module", SCALARS, ids=lambda m: m.__name__.split(".")[-1])
def test_gradient_is_the_slope_in_a_direction(module):
    n, args = SCALARS[module], arguments(module)
    along = directions(args[:n])
    (variant,) = module.variants(LIB)
    found = sum((g * d).sum() for g, d in zip(derivative(module, variant), along))

    def f(*moved):
        return float(module.objective(LIB, *tensors([*moved, *args[n:]])).numpy())

    np.testing.assert_allclose(found, slope(f, args[:n], along), rtol=1e-5)


def test_mixture_by_hand():
    alpha, means, q, l, x = arguments(gmm)  # noqa: E741
    k, d = q.shape
    factors = np.zeros((k, d, d))
    columns = [(j, i) for i in range(d) for j in range(i + 1, d)]
    for n, (row, column) in enumerate(columns):
        factors[:, row, column] = l[:, n]
    factors += np.exp(q)[:, :, None] * np.eye(d)
    centred = x[:, None] - means
    scaled = np.einsum("kij,nkj->nki", factors, centred)
    terms = alpha + q.sum(1) - 0.5 * (scaled**2).sum(2)
    share = softmax(terms, axis=1)
    by_factor = -np.einsum("nk,nki,nkj->kij", share, scaled, centred)
    expected = [
        share.sum(0) - len(x) * softmax(alpha),
        np.einsum("nk,nki,kij->kj", share, scaled, factors),
        share.sum(0)[:, None]
        + np.exp(q) * np.einsum("kii->ki", by_factor)
        - gmm.GAMMA**2 * np.exp(2 * q)
        + gmm.M,
        np.stack([by_factor[:, i, j] for i, j in columns], 1) - gmm.GAMMA**2 * l,
    ]
    for found, by_hand in zip(derivative(gmm, "gmm"), expected):
        np.testing.assert_allclose(found, by_hand, rtol=1e-9, atol=1e-9)


def test_mixture_of_one_is_a_normal_distribution():
    x = np.random.default_rng(0).normal(size=(5, gmm.D))
    below = np.zeros((1, gmm.D * (gmm.D - 1) // 2))
    zero = np.zeros((1, gmm.D))
    args = tensors([np.zeros(1), zero, zero, below, x])
    found = gmm.objective(LIB, *args) - gmm.prior(LIB, args[2], args[3], gmm.D, 1)
    expected = -0.5 * (x**2).sum() - 0.5 * x.size * np.log(2 * np.pi)
    np.testing.assert_allclose(float(found.numpy()), expected, rtol=1e-12)


def test_logarithm_of_a_sum_by_hand():
    (x,) = arguments(lse)
    np.testing.assert_allclose(derivative(lse, "lse")[0], softmax(x), rtol=1e-10)
    np.testing.assert_allclose(lse.objective(LIB, LIB.array(x)).numpy(), logsumexp(x))


def test_least_squares_by_hand():
    (x,) = arguments(llsq)
    t = np.linspace(-1, 1, llsq.POINTS)
    powers = np.vander(t, len(x), increasing=True)
    expected = -powers.T @ (np.sign(t) - powers @ x)
    np.testing.assert_allclose(derivative(llsq, "llsq")[0], expected, rtol=1e-8)


def test_determinant_by_hand():
    (a,) = arguments(det)
    np.testing.assert_allclose(
        derivative(det, "det")[0], np.linalg.det(a) * np.linalg.inv(a).T, rtol=1e-9
    )


def test_ode_by_hand():
    """Every step is linear in each x: the last y is their product times a constant."""
    (x,) = arguments(ode)
    last = ode.objective(LIB, LIB.array(x)).numpy()
    np.testing.assert_allclose(derivative(ode, "ode")[0], last[-1] / x, rtol=1e-9)
    np.testing.assert_allclose(last[:2], [2 * x[0], 2 * x[0] * x[1]], rtol=1e-9)


def test_newton_of_k_means_goes_to_the_means():
    centres, points = arguments(kmeans)
    nearest = ((points[:, None] - centres) ** 2).sum(2).argmin(1)
    means = [points[nearest == k].mean(0) for k in range(len(centres))]
    np.testing.assert_allclose(derivative(kmeans, "kmeans")[0], centres - np.stack(means))


def lstm_by_loops(main, extra, state, sequence):
    """(loss, gradient by the last bias), a unit at a time."""
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    state, n = state.copy(), lstm.UNITS
    total, by_bias = 0.0, np.zeros(n)
    for x, gold in itertools.pairwise(sequence):
        y = x * extra[0]
        for i in range(lstm.LAYERS):
            (w, b), (h, c) = main[2 * i : 2 * i + 2].reshape(2, 4, n), state[2 * i : 2 * i + 2]
            c = c * sigmoid(y * w[0] + b[0]) + sigmoid(h * w[1] + b[1]) * np.tanh(h * w[3] + b[3])
            y = sigmoid(y * w[2] + b[2]) * np.tanh(c)
            state[2 * i : 2 * i + 2] = y, c
        predicted = y * extra[1] + extra[2]
        whole = np.exp(predicted).sum() + 2
        total -= (gold * (predicted - np.log(whole))).sum()
        by_bias -= gold - gold.sum() * np.exp(predicted) / whole
    count = n * (len(sequence) - 1)
    return total / count, by_bias / count


def test_lstm_by_hand():
    args = arguments(lstm)
    loss, by_bias = lstm_by_loops(*args)
    np.testing.assert_allclose(lstm.objective(LIB, *tensors(args)).numpy(), loss, rtol=1e-12)
    np.testing.assert_allclose(derivative(lstm, "lstm")[1][2], by_bias, rtol=1e-9)


def test_bundle_adjustment_by_hand_and_by_differences():
    args = arguments(ba)
    cameras, _, weights, features, seen = args
    found = ba.sparse(LIB)(*tensors(args))
    assembled = ba.assembled(LIB)(*tensors(args))
    np.testing.assert_allclose(found.toarray(), assembled.toarray(), rtol=1e-9, atol=1e-12)

    def f(*moved):
        errors = ba.objective(LIB, *tensors([*moved, features, seen]))
        return np.concatenate([e.numpy().ravel() for e in errors])

    along = directions(args[:3])
    product = found @ np.concatenate([d.ravel() for d in along])
    np.testing.assert_allclose(product, slope(f, args[:3], along), rtol=1e-5, atol=1e-7)
    dense, p = found.toarray(), len(weights)
    np.testing.assert_allclose(dense[2 * p :, -p:], np.diag(-2 * weights))
    rows = np.arange(p)  # by the principal point: the weight
    np.testing.assert_allclose(dense[2 * rows, ba.CAMERA * seen[:, 0] + 7], weights)
    errors = f(*args[:3])[: 2 * p].reshape(p, 2)
    column = cameras.size + args[1].size + rows
    np.testing.assert_allclose(dense[2 * rows, column], errors[:, 0] / weights)


def test_a_camera_that_is_not_turned_has_a_derivative():
    """The length of a rotation has no derivative at 0; the formula there has."""
    camera = arguments(ba)[0][0]
    camera[:3] = 0
    point = LIB.array([0.3, -0.2, 1.0])
    by_camera = F.jacobian(lambda c: ba.projected(LIB, c, point))(LIB.array(camera)).numpy()
    near = [slope(lambda c: ba.projected(LIB, LIB.array(c), point).numpy(), [camera], [e])
            for e in np.eye(ba.CAMERA)]  # fmt: skip
    np.testing.assert_allclose(by_camera, np.stack(near, 1), rtol=1e-5, atol=1e-8)


def test_hand_by_hand_and_by_differences():
    args = arguments(ht)
    (found,) = derivative(ht, "ht")
    vertices = ht.skin(LIB, *tensors([args[0], *args[2:6]])).numpy().T
    a, b, c = (vertices[args[6][:, i]] for i in range(3))
    np.testing.assert_allclose(found[0], c - a, atol=1e-12)
    np.testing.assert_allclose(found[1], c - b, atol=1e-12)
    by_translation = np.broadcast_to(-np.eye(3)[:, None], (3, ht.POINTS, 3))
    np.testing.assert_allclose(found[5:8], by_translation, atol=1e-12)

    def f(theta):
        return ht.objective(LIB, *tensors([theta, *args[1:]])).numpy()

    (along,) = directions(args[:1])
    expected = slope(f, args[:1], [along])
    np.testing.assert_allclose(np.tensordot(along, found[2:], 1), expected, rtol=1e-5, atol=1e-7)


def test_hand_without_places_has_the_columns_of_corners():
    args = arguments(ht)
    args[1] = np.broadcast_to([1.0, 0.0], (ht.POINTS, 2))  # every point at its first corner
    full = ht.compressed(LIB)(*tensors(args)).numpy()[2:]
    (found,) = derivative(ht, "ht-simple")
    np.testing.assert_allclose(found, np.moveaxis(full, 0, -1), atol=1e-12)


def test_hand_as_a_sparse_jacobian():
    args = tensors(arguments(ht))

    def f(theta, us):
        return ht.objective(LIB, theta, us, *args[2:])

    found = F.jacobian(f, argnums=(0, 1), sparsity="auto")(*args[:2])
    expected = F.jacobian(f, argnums=(0, 1))(*args[:2])
    rows = 3 * ht.POINTS
    dense = np.concatenate([x.numpy().reshape(rows, -1) for x in expected], 1)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-9, atol=1e-12)
    assert found.nnz <= rows * (ht.POSE + 2)


def flight(w):
    """Where the particle meets the axis, squared, with the force by hand."""
    x, v = np.array([0.0, 8.0]), np.array([0.75, 0.0])
    charges = np.array([[10.0, 10.0 - w], [10.0, 0.0]])
    while x[1] + particle.DT * v[1] > 0:
        apart = x - charges
        force = (apart / np.linalg.norm(apart, axis=1)[:, None] ** 3).sum(0)
        x, v = x + particle.DT * v, v + particle.DT * force
    return (x[0] - x[1] / v[1] * v[0]) ** 2


MODES = ["ff", "fr", "rf", "rr"]


@pytest.mark.parametrize("mode", MODES)
def test_slope_of_a_flight(mode):
    outer, inner = mode
    f = lambda w: particle.objective(LIB, inner, w)  # noqa: E731
    at = LIB.array([0.1])
    np.testing.assert_allclose(f(at).numpy(), flight(0.1), rtol=1e-9)
    found = (F.jacfwd if outer == "f" else F.grad)(f)(at).numpy()
    expected = (flight(0.1 + 1e-6) - flight(0.1 - 1e-6)) / 2e-6
    np.testing.assert_allclose(found, [expected], rtol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_particle_hits_the_origin(mode, monkeypatch):
    monkeypatch.setattr(particle, "DT", 0.5)  # the interpreter, which checks this, takes every step
    (w,) = derivative(particle, f"particle-{mode}")
    assert flight(w[0]) < 1e-8 < flight(0.0)


@pytest.mark.parametrize("mode", MODES)
def test_saddle_is_at_the_origin(mode):
    for found in derivative(saddle, f"saddle-{mode}"):
        np.testing.assert_allclose(found, [0, 0], atol=1e-4)


def test_every_objective_has_its_variants_in_lucid():
    loaded = [importlib.import_module(f"benchmarks.gradbench.{name}") for name in MODULES]
    names = [variant for module in loaded for variant in module.variants(LIB)]
    assert {name.split("-")[0] for name in names} == set(MODULES)
    assert all([f"{name}-{mode}" in names for name in ("particle", "saddle") for mode in MODES])
