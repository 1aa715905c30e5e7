"""pmap: vmap's work on processes, in order, with failures that name their inputs."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import lucid
import lucid.distributed as dist
from lucid.errors import ArgumentError, ShapeError, TaskError

needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None,
    reason="Dask is not installed: pip install lucid-autodiff[dask]",
)


def solve(x, w):
    return {"y": lucid.sin(x) * w, "n": x.sum()}


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("chunk_size", [None, 1, 3, 10])
def test_pmap_is_vmap(vectorize, chunk_size):
    x, w = lucid.tensor(np.linspace(0, 1, 14).reshape(7, 2)), lucid.tensor(np.arange(7.0))
    f = dist.pmap(solve, workers=0, chunk_size=chunk_size, vectorize=vectorize)
    found, wanted = f(x, w), lucid.func.vmap(solve)(x, w)
    for name in wanted:
        np.testing.assert_allclose(found[name].numpy(), wanted[name].numpy(), rtol=1e-14)


def test_arguments_may_be_shared_or_lists():
    f = dist.pmap(lambda x, k, c: x * len(k) + c, workers=0, in_dims=(0, 0, None))
    assert f(lucid.ones(3), ["a", "bb", "ccc"], 10.0).tolist() == [11.0, 12.0, 13.0]


def test_results_may_stay_a_list():
    f = dist.pmap(lambda n: lucid.ones(n), workers=0, stack=False)
    assert [y.shape for y in f([1, 2, 3])] == [(1,), (2,), (3,)]


def test_a_failure_names_its_inputs():
    def f(x):
        if float(x) > 2.5:
            raise ValueError("too large")
        return x

    with pytest.raises(TaskError, match="example 3 failed: ValueError: too large; inputs: Tensor"):
        dist.pmap(f, workers=0)(lucid.arange(5.0))


def test_bad_arguments_are_named():
    with pytest.raises(ShapeError, match=r"arguments have \[2, 3\] examples"):
        dist.pmap(lucid.add, workers=0)(lucid.ones(2), lucid.ones(3))
    with pytest.raises(ShapeError, match="pass in_dims=None"):
        dist.pmap(lucid.add, workers=0)(lucid.ones(2), 1.0)
    with pytest.raises(ArgumentError, match="in_dims=1"):
        dist.pmap(lucid.sin, workers=0, in_dims=1)(lucid.ones(2))


def test_local_processes_return_results_in_order_and_name_failures():
    scale = lucid.tensor(3.0)
    layer = lucid.nn.Linear(2, 2)
    jitted = lucid.jit(lambda x: lucid.sin(x) * scale + layer(x).detach() * 0.0)

    def f(x, fails):
        if fails:
            raise ValueError(f"bad {fails}")
        return jitted(x)

    mapped = dist.pmap(f, workers=2, chunk_size=2)
    x = lucid.tensor(np.linspace(0, 1, 10).reshape(5, 2).astype("float32"))
    np.testing.assert_allclose(mapped(x, [0] * 5).numpy(), 3 * np.sin(x.numpy()), rtol=1e-6)
    with pytest.raises(TaskError, match=r"example 4 failed: ValueError: bad 9; inputs: .*, 9"):
        mapped(x, [0, 0, 0, 0, 9])


@needs_dask
@pytest.mark.filterwarnings("ignore")  # of Dask's own imports and sockets
def test_a_dask_client_runs_the_tasks(capsys):
    from distributed import Client

    def f(seed):
        if seed == 7:
            raise ValueError("seven")
        return lucid.tensor(float(seed)) ** 2

    with Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as dask:
        assert dist.pmap(f, client=dask, progress=True)(range(6)).tolist() == [0, 1, 4, 9, 16, 25]
        with pytest.raises(TaskError, match="example 2 failed: ValueError: seven; inputs: 7"):
            dist.pmap(f, client=dask)([0, 1, 7])
