"""nan functions of NumPy on tensors: where=, initial=, mean= and correction= as in NumPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import lucid
import lucid.numpy as lnp

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 5))
A[0, 1] = A[2, 3] = A[3, 3] = np.nan
W = RNG.random((4, 5)) > 0.3
OPTIONS = {
    "where": {"where": W},
    "where along an axis": {"where": W, "axis": 0},
    "keepdims": {"where": W, "axis": 1, "keepdims": True},
    "initial": {"initial": 0.5},
    "initial and where": {"initial": 0.5, "where": W, "axis": 1},
    "ddof": {"ddof": 1, "where": W, "axis": 1},
    "mean": {"mean": np.nanmean(A, axis=1, keepdims=True), "axis": 1},
    "correction": {"correction": 1},
}
CASES = [
    *[(f, k) for f in ("nansum", "nanprod") for k in list(OPTIONS)[:5]],
    *[(f, k) for f in ("nanmax", "nanmin") for k in ("initial", "initial and where")],
    *[("nanmean", k) for k in list(OPTIONS)[:3]],
    *[(f, k) for f in ("nanvar", "nanstd") for k in (*list(OPTIONS)[:3], *list(OPTIONS)[5:])],
]


@pytest.mark.parametrize(("name", "option"), CASES)
def test_a_nan_function_takes_the_options_of_numpy(name, option):
    function, kwargs = getattr(np, name), OPTIONS[option]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        want = function(A, **kwargs)
    got = function(lucid.tensor(A), **kwargs)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(getattr(lnp, name)(lucid.tensor(A), **kwargs).numpy(), want)


def test_elements_that_are_nan_or_not_selected_have_a_gradient_of_zero():
    x = lucid.tensor(A, requires_grad=True)
    np.nanmean(x, where=W).backward()
    used = W & ~np.isnan(A)
    np.testing.assert_allclose(x.grad, used / used.sum())
