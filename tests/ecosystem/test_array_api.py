"""Libraries written for the array API standard: what goes in as a tensor comes out as one.

SciPy decides by an environment variable when it is imported, so its part runs in a new process.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import lucid
import lucid.numpy as lnp

compat = pytest.importorskip("array_api_compat")

SCIPY = """
import numpy as np
import lucid
import lucid.numpy as lnp
import scipy.cluster, scipy.differentiate, scipy.fft, scipy.integrate, scipy.linalg, scipy.ndimage
import scipy.optimize, scipy.signal, scipy.special, scipy.stats
from scipy.spatial.transform import Rotation

A, B = np.linspace(0.1, 1.0, 8), np.linspace(1.0, 2.0, 8) ** 2
M = np.sin(np.arange(10.0)).reshape(5, 2)
calls = {
    "erf": lambda a, b: scipy.special.erf(a),
    "logsumexp": lambda a, b: scipy.special.logsumexp(a),
    "softmax": lambda a, b: scipy.special.softmax(a),
    "xlogy": lambda a, b: scipy.special.xlogy(a, b),
    "betainc": lambda a, b: scipy.special.betainc(a, b, a / 2),
    "skew": lambda a, b: scipy.stats.skew(a),
    "kurtosis": lambda a, b: scipy.stats.kurtosis(a),
    "zscore": lambda a, b: scipy.stats.zscore(a),
    "gmean": lambda a, b: scipy.stats.gmean(a),
    "entropy": lambda a, b: scipy.stats.entropy(a),
    "pearsonr": lambda a, b: scipy.stats.pearsonr(a, b).statistic,
    "ttest_ind": lambda a, b: scipy.stats.ttest_ind(a, b).pvalue,
    "chisquare": lambda a, b: scipy.stats.chisquare(a).statistic,
    "fft": lambda a, b: scipy.fft.fft(a),
    "dct": lambda a, b: scipy.fft.dct(a),
    "fftconvolve": lambda a, b: scipy.signal.fftconvolve(a, b),
    "detrend": lambda a, b: scipy.signal.detrend(a),
    "hilbert": lambda a, b: scipy.signal.hilbert(a),
    "gaussian_filter": lambda a, b: scipy.ndimage.gaussian_filter(a, 1.0),
    "trapezoid": lambda a, b: scipy.integrate.trapezoid(b, a),
    "cumulative_trapezoid": lambda a, b: scipy.integrate.cumulative_trapezoid(b, a),
    "derivative": lambda a, b: scipy.differentiate.derivative(lambda x: x * x, a).df,
    "rosen": lambda a, b: scipy.optimize.rosen(a),
    "whiten": lambda a, b: scipy.cluster.vq.whiten(a.reshape(4, 2)),
    "rotation": lambda a, b: Rotation.from_rotvec(a[:3]).as_matrix(),
}
for name, call in calls.items():
    ours, theirs = call(lucid.tensor(A), lucid.tensor(B)), call(A, B)
    assert isinstance(ours, lucid.Tensor), name
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-7, atol=1e-12, err_msg=name)
assert isinstance(scipy.signal.windows.hann(5, xp=lnp), lucid.Tensor)
print(len(calls))
"""


def test_scipy_takes_and_returns_tensors():
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCIPY],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == "25"


SKLEARN = """
import numpy as np
import lucid
from sklearn import config_context, metrics
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 4))
labels, y = (X[:, 0] > 0).astype(int), X @ np.arange(4.0)
calls = {
    "pca": lambda X, l, y: PCA(2, svd_solver="full").fit(X).transform(X),
    "standard": lambda X, l, y: StandardScaler().fit_transform(X),
    "minmax": lambda X, l, y: MinMaxScaler().fit_transform(X),
    "maxabs": lambda X, l, y: MaxAbsScaler().fit_transform(X),
    "normalizer": lambda X, l, y: Normalizer().fit_transform(X),
    "ridge": lambda X, l, y: Ridge(solver="svd").fit(X, y).predict(X),
    "lda": lambda X, l, y: LinearDiscriminantAnalysis().fit(X, l).predict(X),
    "cosine": lambda X, l, y: metrics.pairwise.cosine_similarity(X),
    "rbf": lambda X, l, y: metrics.pairwise.rbf_kernel(X),
}
for name, call in calls.items():
    theirs = call(X, labels, y)
    with config_context(array_api_dispatch=True):
        ours = call(*(lucid.tensor(x) for x in (X, labels, y)))
    assert isinstance(ours, lucid.Tensor), name
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-7, atol=1e-9, err_msg=name)
with config_context(array_api_dispatch=True):
    assert metrics.accuracy_score(lucid.tensor(labels), lucid.tensor(labels)) == 1.0
    score = metrics.mean_squared_error(lucid.tensor(y), lucid.tensor(y + 0.1))
    np.testing.assert_allclose(score, 0.01)
"""


def test_scikit_learn_takes_and_returns_tensors():
    pytest.importorskip("sklearn")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", SKLEARN],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr


def test_array_api_compat_finds_the_namespace():
    x = lucid.ones(2, 3)
    assert compat.array_namespace(x, x) is lnp and compat.is_array_api_obj(x)
    assert compat.device(x) == "cpu" and compat.size(x) == 6
    assert compat.to_device(x, "cpu") is x


def test_a_function_for_any_namespace_agrees_with_array_api_strict():
    strict = pytest.importorskip("array_api_strict")

    def standardized(x):
        xp = compat.array_namespace(x)
        centered = x - xp.mean(x, axis=0, keepdims=True)
        _, s, vh = xp.linalg.svd(centered, full_matrices=False)
        return xp.concat([xp.linalg.vecdot(centered, centered), s, xp.abs(vh[0, :])])

    data = np.sin(np.arange(12.0)).reshape(4, 3)
    ours, theirs = standardized(lucid.tensor(data)), standardized(strict.asarray(data))
    assert isinstance(ours, lucid.Tensor)
    np.testing.assert_allclose(ours.numpy(), np.asarray(theirs), rtol=1e-10, atol=1e-14)
