"""Operations in exported modules: the cases of the compiler, and programs that run alone.

By default every 8th case is tried; LUCID_TEST_ALL=1 tries them all.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import lucid
from lucid.errors import ExportError
from lucid.exporters.c_target import c_module
from lucid.exporters.export import Recorded
from lucid.exporters.numpy_target import numpy_module
from lucid.ir import evaluate
from lucid.nn import functional as F
from tests.compiler import agreement
from tests.exporters.test_export import arrays_of, close, load, run_alone, tensor

FAMILIES = agreement.families()
STEP = 1 if os.environ.get("LUCID_TEST_ALL", "") not in ("", "0") else 8
UP_TO_SIGNS = ("eig-",)  # eigenvectors have any phase


def jobs(cases):
    for case in cases[::STEP]:
        for job in agreement.jobs_of(case, "float32"):
            if not job.label.startswith(UP_TO_SIGNS):
                yield job


def recorded(job):
    return Recorded("f", job.graph, [f"a{i}" for i in range(len(job.graph.inputs))], {})


def check(job, run):
    found = run(*job.arrays)
    found = found if isinstance(found, tuple) else (found,)
    for a, b in zip(found, evaluate(job.graph, *job.arrays), strict=True):
        b = np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape), job.label
        np.testing.assert_array_equal(np.isfinite(a), np.isfinite(b), job.label)
        known = np.isfinite(b)
        size = np.abs(b[known]).max() if known.any() else 0
        np.testing.assert_allclose(a[known], b[known], 0, 1e-4 * size, err_msg=job.label)


@pytest.mark.parametrize("family", FAMILIES)
def test_numpy_modules_compute_the_cases(family):
    for job in jobs(FAMILIES[family]):
        try:
            text = numpy_module(recorded(job))
        except ExportError as error:  # refused, by the name of an operation
            assert "has no NumPy text" in str(error), job.label
            continue
        space = {}
        exec(text, space)
        check(job, space["f"])


@pytest.mark.parametrize("family", ["control", "convolution", "sorting"])
def test_c_modules_compute_the_cases(family, tmp_path):
    for number, job in enumerate(jobs(FAMILIES[family])):
        try:
            files = c_module(recorded(job))
        except ExportError as error:
            assert "in C" in str(error) or "has no C text" in str(error), job.label
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text.replace('"-O3"', '"-O1"'))
        space = {"__file__": str(folder / "f.py")}
        exec(files["f.py"].replace('"-O3"', '"-O1"'), space)
        check(job, space["f"])


def cnn(x, w, v):
    h = F.max_pool2d(F.relu(F.conv2d(x, w, padding=1)), 2)
    return F.log_softmax(h.flatten(1) @ v, 1).sum()


def newton(x):
    """Square roots by iteration until it has converged."""

    def step(state):
        y, _ = state
        new = 0.5 * (y + x / y)
        return new, abs(new - y).max()

    return lucid.func.while_loop(lambda s: s[1] > 1e-6, step, (x, x.max()))[0]


def piecewise(x):
    return lucid.func.cond(x.sum() > 0, lambda x: lucid.sin(x), lambda x: x * x, x)


def quantiles(x):
    values, order = lucid.sort(x, 1, descending=True)
    return values[:, :2], order, lucid.argsort(x, 0)


def spectrum(x):
    return lucid.fft.irfft(abs(lucid.fft.rfft(x)) ** 2 + 0j)


def solves(a, b):
    spd = a @ a.T + 3 * lucid.eye(4)
    q, r = lucid.linalg.qr(a)
    u, s, v = lucid.linalg.svd(a)
    values, vectors = lucid.linalg.eigh(spd)
    return (
        lucid.linalg.solve(a, b), lucid.linalg.inv(spd), lucid.linalg.det(a), q @ r, s,
        (u * s) @ v, lucid.linalg.cholesky(spd), values, (vectors * values) @ vectors.T,
    )  # fmt: skip


EVERYWHERE = {
    "cnn": (lucid.func.value_and_grad(cnn, argnums=(1, 2)),
            (tensor(2, 3, 8, 8), tensor(4, 3, 3, 3, seed=1), tensor(64, 5, seed=2))),
    "newton": (newton, (abs(tensor(6)) + 1,)),
    "piecewise": (piecewise, (tensor(5),)),
    "quantiles": (quantiles, (tensor(4, 7),)),
}  # fmt: skip
WITH_NUMPY = {
    "spectrum": (spectrum, (tensor(3, 16),)),
    "solves": (solves, (tensor(4, 4), tensor(4, 2, seed=1))),
}


@pytest.mark.parametrize("target", ["numpy", "numba", "c"])
def test_loops_branches_convolutions_sorting_and_factorizations_run_alone(target, tmp_path):
    found = EVERYWHERE if target == "c" else {**EVERYWHERE, **WITH_NUMPY}
    for name, (f, args) in found.items():
        lucid.export(f, *args, target=target, name=name, path=tmp_path)
        np.savez(tmp_path / f"{name}_in.npz", *arrays_of(args))
    run_alone(tmp_path, found, target)
    for name, (f, args) in found.items():
        got = np.load(tmp_path / f"{name}_out.npz")
        for i, y in enumerate(arrays_of(f(*args))):
            close(got[f"arr_{i}"], y, ulps=200)
    roots = np.load(tmp_path / "newton_out.npz")["arr_0"]
    np.testing.assert_allclose(roots, np.sqrt(arrays_of(EVERYWHERE["newton"][1])[0]), rtol=1e-6)
    if target != "c":
        a, b = (x.astype("float64") for x in arrays_of(WITH_NUMPY["solves"][1]))
        solved = np.load(tmp_path / "solves_out.npz")["arr_0"]
        np.testing.assert_allclose(solved, np.linalg.solve(a, b), rtol=1e-4)


def exported(f, x, target, folder, monkeypatch):
    """The result of an exported function of one array."""
    return load(lucid.export(f, lucid.tensor(x), target=target, name="f"), folder, monkeypatch)(x)


def ulps(y, exact):
    """The largest error, in ulps of the largest number."""
    return float(np.abs(y - exact).max() / np.abs(exact).max() / np.finfo(y.dtype).eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", ["numba", "c"])
def test_long_sums_are_as_exact_as_those_of_kernels(target, dtype, tmp_path, monkeypatch):
    x = (np.random.default_rng(0).random((300, 400)) + 1).astype(dtype)
    for axis in (None, 0, 1):
        folder = tmp_path / str(axis)
        folder.mkdir()
        found = exported(lambda x: x.mean(axis), x, target, folder, monkeypatch)  # noqa: B023
        exact = x.astype(np.longdouble).mean(axis)
        in_order = (
            axis == 0 and dtype == "float64"
        )  # rows are added one after another, as NumPy does
        assert ulps(found, exact) <= (ulps(x.mean(axis), exact) if in_order else 1.0)


@pytest.mark.parametrize("target", ["numba", "c"])
def test_sums_of_infinities_are_those_of_numpy(target, tmp_path, monkeypatch):
    x = np.array([[1.0, np.inf], [np.inf, -np.inf], [np.nan, 1.0], [1e308, 1e308], [0.1, 0.2]])
    found = exported(lambda x: x.sum(1), x, target, tmp_path, monkeypatch)
    np.testing.assert_array_equal(found, np.array([np.inf, np.nan, np.nan, np.inf, 0.1 + 0.2]))


@pytest.mark.parametrize("target", ["numpy", "numba"])
def test_running_sums_of_complex_exponentials_are_exported(target, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 5)) + 1j * rng.standard_normal((3, 5))
    found = exported(lambda x: lucid.logcumsumexp(x, 1), x, target, tmp_path, monkeypatch)
    np.testing.assert_allclose(np.exp(found), np.cumsum(np.exp(x), 1), rtol=1e-13)
