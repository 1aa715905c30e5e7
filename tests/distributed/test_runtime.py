"""The world of one process, what importing costs, and errors of bad arguments."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import lucid
import lucid.distributed as dist
from lucid.errors import ArgumentError, DistributedError, DTypeError, ShapeError


def test_importing_does_not_start_mpi():
    code = (
        "import sys, lucid; assert 'lucid.distributed' not in sys.modules\n"
        "import lucid.distributed as dist; dist.all_reduce, dist.DataParallel\n"
        "assert 'mpi4py' not in sys.modules and 'distributed' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_mpiexec_the_world_is_this_process():
    dist.init(timeout=5.0)
    dist.barrier()
    assert (dist.rank(), dist.world_size()) == (0, 1)
    group = dist.new_group([0])
    assert dist.rank(group) == 0 and dist.new_group([0]) is group
    x = lucid.tensor([[1.0, 2.0]])
    for y in (dist.all_reduce(x, "mean"), dist.broadcast(x, group=group), dist.all_to_all(x)):
        assert y.tolist() == [[1.0, 2.0]]
    assert dist.scatter(x).tolist() == [1.0, 2.0] and dist.gather(x).shape == (1, 1, 2)
    assert dist.sendrecv(x, None, None).tolist() == [[0.0, 0.0]]


def test_bad_arguments_are_named():
    x = lucid.ones(3)
    for call, error, text in [
        (lambda: dist.all_reduce(x, "median"), ArgumentError, "op='median' is not one of sum"),
        (lambda: dist.all_reduce(x + 1j, "max"), DTypeError, "complex numbers have no max"),
        (lambda: dist.reduce_scatter(x), ShapeError, "axis 0 of f32"),
        (lambda: dist.all_to_all(x), ShapeError, "one row for each of the 1 ranks"),
        (lambda: dist.broadcast(x, 3), ArgumentError, "rank 3 in a group of 1"),
        (lambda: dist.send(x, 0), ArgumentError, "use sendrecv"),
        (lambda: dist.new_group([0, 5]), ArgumentError, r"ranks \[0, 5\] in a world of 1"),
        (lambda: dist.all_gather(x, 7), ShapeError, "axis 7"),
    ]:
        with pytest.raises(error, match=text):
            call()
    from lucid.distributed.runtime import group_named

    with pytest.raises(DistributedError, match="call new_group first"):
        group_named("0,9")


def test_a_sampler_deals_every_example_once():
    parts = [list(dist.DistributedSampler(range(11), 3, r, batch_size=4, seed=2)) for r in range(3)]
    assert [len(part) for part in parts] == [3, 3, 3]
    seen = [i for step in zip(*parts) for part in step for i in part]
    assert sorted(seen) == list(range(11))
    again = dist.DistributedSampler(range(11), 3, 0, batch_size=4, seed=2)
    first = list(again)
    again.set_epoch(1)
    assert list(again) != first
    assert len(list(dist.DistributedSampler(range(11), 3, 0, drop_last=True))) == 3


def test_the_mean_of_nothing_does_not_spoil_the_gradient():
    from lucid.distributed.parallel import weighted_means

    (found,) = weighted_means([lucid.tensor([np.nan, np.nan])], 0)
    assert np.isnan(found.numpy()).all()  # nobody has an example: 0 / 0
    (found,) = weighted_means([lucid.tensor([1.0, 2.0])], 3)
    assert found.tolist() == [1.0, 2.0]
