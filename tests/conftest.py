"""What every test starts from: the library imported, and its modes as they are in a new process."""

import gc
import os

import numpy as np
import pytest

from lucid.ops.core.promote import get_default_dtype, set_default_dtype
from lucid.tape.modes import local


def pytest_addoption(parser):
    parser.addoption("--programs", type=int, default=300, help="how many random programs to run")
    parser.addoption("--compositions", type=int, default=12, help="programs for all compositions")
    parser.addoption("--stateful", type=int, default=40, help="how many programs with state to run")
    parser.addoption("--first-seed", type=int, default=0, help="the campaign's first seed")
    parser.addoption("--long", action="store_true", help="10,000 steps where 600 are the rule")
    parser.addoption("--interrupts", type=int, default=4, help="how often to interrupt a step")
    parser.addoption("--forks", type=int, default=6, help="how often to fork, half compiling")
    parser.addoption("--extremes", type=int, default=100, help="calls with extreme values")
    parser.addoption("--threads-minutes", type=float, default=0.02, help="how long threads train")
    parser.addoption("--bad-calls", type=int, default=12, help="bad calls of every public name")
    parser.addoption("--failures", type=int, default=2, help="how many failing jobs to start")
    parser.addoption("--kills", type=int, default=20, help="how often to kill a process that saves")


def pytest_collection_finish():
    """The tests themselves are millions of objects, which the garbage collector need not visit."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def modes_as_in_a_new_process():
    """A test that changes a mode, or NumPy's printing, does not change the next test."""
    dtype, printing = get_default_dtype(), np.get_printoptions()
    yield
    set_default_dtype(dtype)
    np.set_printoptions(**printing)
    assert local.grad and not local.inference and local.source is None, "a mode was left switched"


@pytest.fixture(autouse=True, scope="session")
def programs_are_verified():
    """The first result of every program that a test compiles is compared with the interpreter's."""
    patch = pytest.MonkeyPatch()
    if "LUCID_VERIFY" not in os.environ:
        patch.setenv("LUCID_VERIFY", "1")
    patch.setenv("LUCID_CACHE_PROGRAMS", "0")  # tests look at what the compiler does
    yield
    patch.undo()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
