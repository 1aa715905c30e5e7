"""Collectives on 2 and 4 ranks against one process."""

from __future__ import annotations

import pytest

from tests.distributed.launch import check_ranks, needs_mpi

pytestmark = needs_mpi


@pytest.mark.parametrize("n", [2, 4])
def test_every_collective_is_what_one_process_computes(n):
    check_ranks(n, "table.py")


@pytest.mark.parametrize("n", [2, 4])
def test_random_programs_on_n_ranks_are_those_of_one(n, request):
    """--programs n: a fiftieth of them, on every number of ranks."""
    count = max(4, request.config.getoption("--programs") // 50)
    first = request.config.getoption("--first-seed")
    check_ranks(n, "random_programs.py", first, count)
