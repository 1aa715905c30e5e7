"""Checkpoints load on any number of ranks, and a rank that is killed leaves a whole one."""

from __future__ import annotations

import json

import numpy as np
import pytest

import lucid.distributed as dist
from lucid.errors import FileFormatError
from tests.distributed.launch import check_ranks, needs_mpi, run_ranks


@needs_mpi
def test_a_checkpoint_of_n_ranks_loads_on_m(tmp_path):
    check_ranks(4, "training.py", "checkpoint", tmp_path, "save")
    check_ranks(2, "training.py", "checkpoint", tmp_path, "load", "save")
    check_ranks(4, "training.py", "checkpoint", tmp_path, "load")
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1


@needs_mpi
def test_a_rank_killed_while_saving_leaves_the_old_or_the_new_checkpoint(tmp_path, request):
    """--failures n: n jobs that save again and again until a rank is killed."""
    for number in range(request.config.getoption("--failures")):
        found = run_ranks(2, "saving.py", tmp_path, number % 2, number, timeout=90.0)
        assert found.code != 0 and "was killed by SIGKILL" in found.out, found.out
        state = dist.load_checkpoint(tmp_path)
        epoch = state["epoch"]
        assert epoch >= 1
        assert (state["w"].numpy() == epoch).all() and (state["table"].numpy() == epoch).all()
        assert state["table"].shape == (2000, 3)


def test_a_damaged_index_is_an_error(tmp_path):
    with pytest.raises(FileFormatError, match="has no index"):
        dist.load_checkpoint(tmp_path)
    dist.save_checkpoint(tmp_path, {"w": np.ones(3)})
    index = json.loads((tmp_path / "index.json").read_text())
    (tmp_path / "index.json").write_text(json.dumps(index | {"data": "../../secret"}))
    with pytest.raises(FileFormatError, match="names"):
        dist.load_checkpoint(tmp_path)
    (tmp_path / "index.json").write_text("{")
    with pytest.raises(FileFormatError, match="damaged"):
        dist.load_checkpoint(tmp_path)
