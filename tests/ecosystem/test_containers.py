"""Values in the containers of other libraries: they stay on the graph, or the conversion raises."""

from __future__ import annotations

import array
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xarray

import lucid
from lucid.errors import LucidError

BASE = np.array([1.0, 2.0, 3.0])
EYE = scipy.sparse.csr_array(np.eye(3))


def matrix(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.matrix(rows)


def stored(container, value):
    container[0] = value
    return lucid.tensor(np.asarray(container))


# name -> a function of a number, and its derivative; None if a conversion must raise
CONTAINERS = {
    "tensor * DataArray": (lambda x: np.sum((x * xarray.DataArray(BASE)).data), 6),
    "DataArray * tensor": (lambda x: np.sum((xarray.DataArray(BASE) * x).data), 6),
    "DataArray of a tensor": (lambda x: np.sum((xarray.DataArray(x * BASE) * BASE).data), 14),
    "ufunc of a DataArray": (lambda x: np.sum(np.add(x, xarray.DataArray(BASE)).data), 3),
    "Variable - tensor": (lambda x: np.sum((xarray.Variable("a", BASE) - x).data), -3),
    "tensor * Series": (lambda x: np.sum(x * pd.Series(BASE)), 6),
    "Series of tensors": (lambda x: pd.Series([x, 2 * x]).sum(), 3),
    "Series.apply": (lambda x: np.sum(pd.Series(BASE).apply(lambda b: b * x).to_numpy()), 6),
    "Series * tensor": (lambda x: np.sum(pd.Series(BASE) * x), None),
    "Series of a tensor": (lambda x: lucid.tensor(pd.Series(x * BASE).to_numpy()).sum(), None),
    "Series element": (lambda x: stored(pd.Series(BASE.copy()), x).sum(), None),
    "DataFrame * tensor": (lambda x: np.sum((pd.DataFrame({"a": BASE}) * x).to_numpy()), None),
    "masked * tensor": (lambda x: np.sum(np.ma.array(BASE) * x), None),
    "tensor * masked": (lambda x: np.sum(x * np.ma.array(BASE, mask=[0, 1, 0])), None),
    "matrix * number": (lambda x: np.sum(matrix(BASE) * x), 6),
    "matrix * column": (lambda x: np.sum(matrix(BASE) * (x * BASE[:, None])), 14),
    "column * matrix": (lambda x: np.sum((x * BASE[:, None]) * matrix(BASE)), 36),
    "matrix of a tensor": (lambda x: lucid.tensor(matrix(x * BASE)).sum(), None),
    "object array": (lambda x: np.array([x, 2 * x], dtype=object).sum(), None),
    "asarray to objects": (lambda x: np.asarray(x * BASE, dtype=object).sum(), None),
    "frompyfunc on constants": (lambda x: np.sum(np.frompyfunc(lambda a: a * x, 1, 1)(BASE)), 6),
    "frompyfunc": (lambda x: np.sum(np.frompyfunc(lambda a: a * a, 1, 1)(x * BASE)), None),
    "vectorize": (lambda x: np.sum(np.vectorize(lambda a: a * a)(x * BASE)), None),
    "vectorize on constants": (lambda x: np.sum(np.vectorize(lambda a: a * x)(BASE)), None),
    "nditer": (lambda x: lucid.tensor(sum(a for a in np.nditer(x * BASE))), None),
    "fromiter": (lambda x: lucid.tensor(np.fromiter((x * b for b in BASE), float)).sum(), None),
    "array element": (lambda x: stored(BASE.copy(), x).sum(), None),
    "array.array": (lambda x: lucid.tensor(array.array("d", x * BASE)).sum(), None),
    "bytes": (lambda x: lucid.tensor(np.frombuffer(bytes(x * BASE))).sum(), None),
    "frombuffer": (lambda x: lucid.tensor(np.frombuffer(x * BASE)).sum(), None),
    "memoryview": (lambda x: lucid.tensor(np.array(memoryview(x * BASE))).sum(), None),
    "sparse @ tensor": (lambda x: np.sum(EYE @ (x * BASE)), None),
    "tensor @ sparse": (lambda x: np.sum((x * BASE) @ EYE), None),
    "sparse * tensor": (lambda x: np.sum((EYE * x).data), None),
    "sparse of a tensor": (lambda x: (EYE.multiply(x * BASE)).sum(), None),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_value_in_a_container_keeps_its_derivative_or_raises(name):
    function, expected = CONTAINERS[name]
    slope = lucid.func.grad(function)
    x = lucid.tensor(2.0, dtype=lucid.float64)
    if expected is None:  # DetachWarning is an error here, as every warning is
        with warnings.catch_warnings(), pytest.raises((LucidError, TypeError, ValueError, Warning)):
            warnings.simplefilter("error")
            slope(x)
    else:
        assert slope(x).item() == pytest.approx(expected)


def test_constants_pass_through_the_same_containers():
    x = lucid.tensor([1.0, 2.0, 3.0], dtype=lucid.float64)
    assert (EYE @ x).tolist() == [1.0, 2.0, 3.0]
    assert (np.ma.array(BASE, mask=[0, 1, 0]) * x).sum() == 10.0
    assert (pd.Series(BASE) * x).tolist() == [1.0, 4.0, 9.0]
    assert lucid.tensor(np.ma.array(BASE)).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(LucidError, match=r"1 masked elements.*filled"):
        lucid.tensor(np.ma.array(BASE, mask=[0, 1, 0]))
