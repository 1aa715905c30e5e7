"""A job in which something goes wrong ends within seconds; it says what, where, on which rank."""

from __future__ import annotations

import re

import pytest

from tests.distributed.launch import needs_mpi, run_ranks

pytestmark = needs_mpi
SECONDS = 30.0  # on a busy machine; the job itself takes one to three


def failed_job(n: int, *args: object, **settings: str) -> str:
    found = run_ranks(n, "faults.py", *args, timeout=90.0, **settings)
    assert found.code != 0, found.out
    assert "has come to the end" not in found.out, found.out
    assert found.seconds < SECONDS, f"{found.seconds} s:\n{found.out}"
    return found.out


def line_of(text: str) -> str:
    """A pattern for a line of the program."""
    return rf"{text}.*\[faults\.py:\d+\]"


@pytest.mark.parametrize(("what", "n"), [("raise-compiled", 4)])
def test_a_rank_that_raises_is_named_by_all(what, n):
    out = failed_job(n, what)
    assert "ValueError: the data of this rank are bad" in out
    assert re.search(
        line_of(r"rank 1 failed: ValueError.* \[faults\.py:\d+\].*was in all_reduce"), out
    )
    assert "rank 1 of" in out and 'faults.py", line' in out


@pytest.mark.parametrize(("what", "n"), [("kill-inside", 4)])
def test_a_rank_that_is_killed_is_named_with_its_last_collective(what, n):
    out = failed_job(n, what)
    assert re.search(
        line_of(r"rank 1 \(process \d+\) was killed by SIGKILL: it .*collective"), out
    ), out


def test_a_rank_that_exits_is_named():
    out = failed_job(2, "exit")
    assert re.search(line_of("RankFailedError: rank 1 has finished.*waits in all_reduce"), out)


def test_a_mismatch_is_an_error_that_names_both_sides():
    out = failed_job(2, "mismatches", LUCID_DISTRIBUTED_DEBUG="1")
    for kind in ("op", "shape", "dtype", "order"):
        for rank in (0, 1):
            (line,) = [x for x in out.splitlines() if x.startswith(f"{kind} on rank {rank}: ")]
            assert "ranks are about to do different things" in line
            assert re.search(line_of("rank 0: all_reduce"), line), line
            assert re.search(line_of("rank 1: all_"), line), line


def test_a_message_of_another_shape_is_an_error():
    out = failed_job(2, "message", LUCID_DISTRIBUTED_DEBUG="1")
    assert re.search("CollectiveMismatchError.*send.*f32\\[2,2\\].*recv.*f32\\[3\\]", out), out


def test_ranks_that_wait_in_different_groups_are_found():
    out = failed_job(2, "groups")
    assert "CollectiveMismatchError: ranks wait for different things" in out, out


def test_a_timeout_says_where_every_rank_is():
    out = failed_job(2, "timeout")
    assert re.search("CollectiveTimeoutError: all_reduce.*rank 0 has waited 1", out), out
    assert "rank 1 computes" in out, out


def test_an_interrupt_ends_the_wait_of_a_compiled_collective():
    out = failed_job(2, "interrupt")
    assert "KeyboardInterrupt" in out, out


def test_repeated_failures_never_hang(request):
    """--failures n: kills, errors and mismatches in turn, n jobs in all."""
    for number in range(request.config.getoption("--failures")):
        what = ("kill", "op", "kill-inside", "raise", "order", "exit")[number % 6]
        debug = "1" if what in ("op", "order") else str(number // 6 % 2)
        failed_job(2 + 2 * (number % 2), what, number % 2, LUCID_DISTRIBUTED_DEBUG=debug)
