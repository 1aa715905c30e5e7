"""Guards are compared as compiled code computes them: it rounds otherwise than a recorded run."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.compiler.jit import jitted, recording
from lucid.func import grad
from tests.campaign.tiers import cold


@pytest.fixture(autouse=True)
def nothing_else_is_compiled():
    """What runs before a function is compiled rounds as NumPy does, whatever ran before."""
    with cold():
        yield


def data(n=1000, seed=0):
    return np.random.default_rng(seed).normal(size=n).astype("float32")


def counted(f):
    """`f` jitted, and a list that has an element for each time that Python ran it."""
    runs = []

    def noting(*args):
        runs.append(1)
        return f(*args)

    return lucid.jit(noting), runs


def rounded_differently() -> np.ndarray:
    """Numbers whose sum of exponentials compiled code rounds otherwise than NumPy."""
    total = lucid.jit(lambda x: lucid.exp(x).sum())
    for seed in range(100):
        x = data(seed=seed)
        if total(x).item() != interpreted_sum(x):
            return x
    raise AssertionError("there is none")


def interpreted_sum(x: np.ndarray) -> float:
    return lucid.exp(lucid.tensor(x)).sum().item()


def n_paths(f) -> int:
    return sum(map(len, f.paths.values()))


def test_a_number_that_python_reads_is_recorded_once():
    f, runs = counted(lambda x: x * 2 if float(lucid.exp(x).sum()) > 0 else x)
    x = rounded_differently()
    for _ in range(40):
        np.testing.assert_array_equal(f(x).numpy(), x * 2)
    assert len(runs) == 1 and n_paths(f) == 1


def test_many_numbers_that_python_reads_are_learned_together():
    def f(x):
        parts = [lucid.exp(x * k).sum() for k in np.linspace(0.5, 1.5, 20).tolist()]
        return x * sum(1.0 for part in parts if part.item() > 0)

    f, runs = counted(f)
    x = rounded_differently()
    for _ in range(5):
        np.testing.assert_allclose(f(x).numpy(), x * 20, rtol=1e-6)
    assert len(runs) == 1 and n_paths(f) == 1


def test_a_number_that_becomes_a_constant_of_the_program():
    f, runs = counted(lambda x: x / float(lucid.exp(x).sum()))
    x = rounded_differently()
    want = x / np.exp(x.astype("float64")).sum()
    for _ in range(10):
        np.testing.assert_allclose(f(x).numpy(), want, rtol=1e-5)
    assert len(runs) == 1 and n_paths(f) == 1


def test_other_data_takes_its_own_path():
    f, runs = counted(lambda x: x * 2 if lucid.exp(x).sum().item() > 2000 else x)
    low, high = rounded_differently(), rounded_differently() + 1
    assert np.exp(low).sum() < 2000 < np.exp(high).sum()
    for _ in range(5):
        np.testing.assert_array_equal(f(low).numpy(), low)
        np.testing.assert_array_equal(f(high).numpy(), high * 2)
    assert n_paths(f) == 2 and len(runs) == 2


@pytest.mark.parametrize("largest", [True, False])
def test_a_comparison_that_rounding_decides_takes_the_path_of_compiled_code(largest):
    x = rounded_differently()
    total = lucid.jit(lambda x: lucid.exp(x).sum())
    sums = sorted([interpreted_sum(x), total(x).item()])
    bound = sums[1]

    def f(x):
        more = lucid.exp(x).sum() >= bound if largest else bound > lucid.exp(x).sum()
        return x + 1 if more else x - 1

    f, runs = counted(f)
    seen = [float(f(x)[0] - x[0]) for _ in range(20)]
    assert len(set(seen[1:])) == 1, "from the second call on it is compiled code that decides"
    assert len(runs) == 2 and n_paths(f) == 2
    up = 1 if largest else -1
    np.testing.assert_allclose((f(x + 1).numpy() - (x + 1)), up, rtol=1e-5)
    np.testing.assert_allclose((f(x - 1).numpy() - (x - 1)), -up, rtol=1e-5)
    assert n_paths(f) == 2


def test_of_a_truth_value_only_that_is_compared():
    f, runs = counted(lambda x: x * 2 if x.sum() else x)
    for seed in range(5):
        x = data(seed=seed)
        np.testing.assert_array_equal(f(x).numpy(), x * 2)
    np.testing.assert_array_equal(f(np.zeros(1000, "float32")).numpy(), np.zeros(1000))
    assert len(runs) == 2 and n_paths(f) == 2
    assert "was True and is now False" in f.why_recompiled()


def test_of_an_integer_only_that_is_compared():
    f, runs = counted(lambda x: x * int(x.sum()))
    for total in (3.25, 3.5, 3.75, 4.25):
        x = np.array([total - 1, 1], "float32")
        np.testing.assert_array_equal(f(x).numpy(), x * int(total))
    assert len(runs) == 2


def test_a_value_that_is_written_and_read():
    state = lucid.zeros(1000)

    def f(x):
        state.add_(lucid.exp(x))
        return x * float(state.sum()) * 0 + 1

    f, runs = counted(f)
    x = rounded_differently()
    for _ in range(6):
        state.zero_()
        np.testing.assert_array_equal(f(x).numpy(), np.ones(1000))
        np.testing.assert_allclose(state.numpy(), np.exp(x), rtol=1e-5)
    assert len(runs) == 1


def test_a_derivative_through_a_number_that_python_reads():
    f, _ = counted(lambda x: (x * x).sum() if lucid.exp(x).sum().item() > 0 else x.sum())
    x = rounded_differently()
    for _ in range(6):
        np.testing.assert_allclose(grad(f)(lucid.tensor(x)).numpy(), 2 * x, rtol=1e-6)
    assert n_paths(f) == 1


def test_nan_is_the_same_value():
    f, runs = counted(lambda x: x * 2 if str(x.sum().item()) == "nan" else x)
    x = np.array([np.nan, 1.0])
    for _ in range(4):
        np.testing.assert_array_equal(f(x).numpy(), x * 2)
    assert len(runs) == 1


def test_paths_and_reasons_are_bounded(monkeypatch):
    monkeypatch.setattr(recording, "MAX_SIGNATURES", 8)
    f, runs = counted(lambda x: x + 1)
    for n in range(1, 200):
        np.testing.assert_array_equal(f(np.zeros(n)).numpy(), np.ones(n))
    assert len(f.paths) == 8 and len(f.reasons) <= jitted.MAX_REASONS
    np.testing.assert_array_equal(f(np.zeros(199)).numpy(), np.ones(199))
    assert len(runs) == 199
    np.testing.assert_array_equal(f(np.zeros(1)).numpy(), np.ones(1))
    assert len(runs) == 200, "the least recent was forgotten, and is recorded again"


def test_a_guard_keeps_no_tape_alive():
    f = lucid.jit(lambda x: x * 2 if x.sum() > 0 else x)
    f(data())
    ((path,),) = f.paths.values()
    assert path.guards and all(guard.node is None for guard in path.guards)


def test_an_error_that_python_catches_is_looked_for_at_every_call():
    def factor(x):
        try:
            return lucid.linalg.cholesky(x)
        except lucid.errors.LinAlgError:
            return x * 0

    def entry(x, i):
        try:
            return x[i + 0]  # an index that is not known while the call is recorded
        except IndexError:
            return x[:1] * 0

    good, bad = 4 * lucid.eye(2), -lucid.eye(2)
    for order in ((good, bad, good, bad), (bad, good, bad)):
        jitted = lucid.jit(factor)
        for x in order:
            np.testing.assert_array_equal(
                jitted(x), 2 * np.eye(2) if x is good else np.zeros((2, 2))
            )
    jitted = lucid.jit(entry)
    for i in (5, 1, 5, 2):
        assert jitted(lucid.arange(3.0), lucid.tensor([i])).item() == i % 5


def test_what_a_caught_error_has_left_written_is_written_once():
    count = lucid.tensor(0)

    @lucid.jit
    def factor(x):
        count.add_(1)
        try:
            return lucid.linalg.cholesky(x)
        except lucid.errors.LinAlgError:
            count.add_(10)
            return x * 0

    for x, expected in ((4 * lucid.eye(2), 1), (-lucid.eye(2), 12), (4 * lucid.eye(2), 13)):
        factor(x)
        assert count.item() == expected
