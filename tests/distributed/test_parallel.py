"""Data parallel training is training on the whole batch by one process."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from tests.distributed.launch import check_ranks, needs_mpi, once_per_session

pytestmark = needs_mpi
WAYS = ["module", "module-jit", "functional", "functional-jit", "deterministic", "no_sync"]


@pytest.fixture
def curves(tmp_path_factory):
    """The losses of every way to train on n ranks; the compiled module twice."""

    def measure(n: int) -> dict[str, list[str]]:
        args = ("training.py", *WAYS, "buffers", "module-jit")
        out = once_per_session(tmp_path_factory, f"curves-{n}", lambda: check_ranks(n, *args))
        found = defaultdict(list)
        for line in out.splitlines():
            if line.startswith("loss"):
                _, how, loss = line.split()
                found[how].append(loss)
        return found

    return measure


def numbers(losses: list[str]) -> np.ndarray:
    return np.array([float.fromhex(text) for text in losses])


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("how", WAYS)
def test_the_loss_curve_is_that_of_one_process(curves, how, n):
    one, many = numbers(curves(1)[how]), numbers(curves(n)[how])
    assert len(one) == len(many) > 1
    np.testing.assert_allclose(many, one, rtol=1e-12)


def test_the_last_batches_are_unequal_and_used(curves):
    assert len(curves(4)["functional"]) == 9  # three epochs of 16, 16 and 5 examples


def test_two_runs_are_equal_to_the_bit(curves):
    losses = curves(2)["module-jit"]
    assert losses[:9] == losses[9:] and len(losses) == 18


@pytest.mark.parametrize("n", [2, 4])
def test_the_deterministic_option_gives_the_bits_of_one_process(curves, n):
    assert curves(n)["deterministic"] == curves(1)["deterministic"]
