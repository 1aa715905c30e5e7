"""Collectives on 2 and 4 ranks against one process."""

from __future__ import annotations

import pytest

from tests.distributed.launch import check_ranks, needs_mpi

pytestmark = needs_mpi


@pytest.mark.parametrize("n", [2, 4])
def test_every_collective_is_what_one_process_computes(n):
    check_ranks(n, "table.py")
