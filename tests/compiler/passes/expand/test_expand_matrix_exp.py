"""matrix_exp as scaling, a Padé approximation and squaring: the values are SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from lucid.compiler.passes.expand.decompose import decompose
from lucid.ir import evaluate, parse, verify


@pytest.mark.parametrize("scale", [0.0, 0.1, 3.0, 40.0])
def test_the_written_out_exponential_is_that_of_scipy(scale):
    text = "graph f(a: f64[4,3,3]):\n    %0: f64[4,3,3] = matrix_exp a\n    return %0"
    graph = verify(decompose(parse(text)))
    names = [eqn.op.name for eqn in graph.equations]
    assert "matrix_exp" not in names and names.count("lu_solve") == 1
    a = np.random.default_rng(1).uniform(-scale, scale, (4, 3, 3))
    np.testing.assert_allclose(evaluate(graph, a)[0], expm(a), rtol=1e-10)
