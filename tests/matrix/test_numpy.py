"""NumPy's functions of tensors give NumPy's numbers in every setting.

The calls and what they give eagerly are in tests/numpy; here are the other settings. By default the
last call of every function is compiled; LUCID_TEST_ALL=1 compiles all.
"""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import LucidError
from lucid.nn import Parameter
from tests.campaign.tiers import without_optimization
from tests.matrix.test_matrix import ALL
from tests.numpy import calls, test_interop
from tests.numpy.test_interop import X, Y, cases, leaves, same

TABLE = {**test_interop.CALLS, **calls.CALLS}
CONSTANTS = {**test_interop.CONSTANT_CALLS, **calls.CONSTANT_CALLS}
COMPILED = TABLE if ALL else {f: found[-1:] for f, found in TABLE.items()}


def without_history(result):
    parts = [y.detach() if isinstance(y, lucid.Tensor) else y for y in leaves(result)]
    return tuple(parts) if isinstance(result, (tuple, list)) else parts[0]


@pytest.mark.parametrize("call", cases({**TABLE, **CONSTANTS}))
def test_of_leaves_parameters_and_views(call):
    expected = call(X.copy())
    for make in (lambda: lucid.tensor(X, requires_grad=True), lambda: Parameter(lucid.tensor(X))):
        with lucid.no_grad():
            found = call(make())
        same(without_history(found), expected)
    same(call(lucid.tensor(np.stack([X, X], -1))[..., 1]), expected)


@pytest.mark.parametrize("call", cases(COMPILED))
def test_inside_jit_on_every_call(call):
    jitted = lucid.jit(call)
    with without_optimization():
        for x in (X, Y, X):
            found, expected = jitted(lucid.tensor(x)), call(x.copy())
            assert len(leaves(found)) == len(leaves(expected))
            for a, e in zip(leaves(found), leaves(expected)):
                np.testing.assert_allclose(a.numpy(), e, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("call", cases(TABLE))
def test_inside_vmap(call):
    """NumPy's numbers, or a clear error where their shape depends on values."""
    try:
        found = lucid.func.vmap(call)(lucid.tensor(np.stack([X, Y])))
    except LucidError as error:
        assert "vmap" in str(error), error
        return
    each = [leaves(call(x.copy())) for x in (X, Y)]
    for a, *e in zip(leaves(found), *each, strict=True):
        np.testing.assert_allclose(a.numpy(), np.stack(e), rtol=1e-9, atol=1e-12)
