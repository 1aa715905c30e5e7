"""Promises about whole processes: workers that fork while others compile, settings, versions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lucid
from lucid.compat import torch
from lucid.support.settings import SETTINGS

ROOT = Path(__file__).parent.parent.parent
WORKERS = """
import threading, warnings
import lucid
from lucid.utils.data import DataLoader

warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons: of forks beside threads

class Squares:
    def __len__(self):
        return 12
    def __getitem__(self, i):
        f = lucid.jit(lambda x, i=i: (x * x + 0.0 * i).sum())
        return float(f(lucid.full((3,), float(i)))) + float(f(lucid.full((3,), float(i))))

stop, errors = threading.Event(), []

def compile_new_functions():
    n = 0
    try:
        while not stop.is_set():
            n += 1
            f = lucid.jit(lambda x, n=n: lucid.tanh(x * n + n).sum() / n)
            [f(lucid.ones(5)) for _ in range(2)]
    except BaseException as error:
        errors.append(error)

thread = threading.Thread(target=compile_new_functions)
thread.start()
try:
    for _ in range(3):
        found = [float(v) for batch in DataLoader(Squares(), 4, num_workers=2) for v in batch]
        assert found == [6.0 * i * i for i in range(12)], found
finally:
    stop.set()
    thread.join()
assert not errors, errors
print("done")
"""


def run(program: str, cache: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "LUCID_CACHE_DIR": str(cache), **variables}
    command = [sys.executable, "-c", program]
    return subprocess.run(  # in a folder for what it writes
        command, env=env, cwd=cache.parent, capture_output=True, text=True, timeout=240
    )


def test_data_loader_workers_fork_while_another_thread_compiles(tmp_path):
    found = run(WORKERS, tmp_path / "cache")
    assert found.returncode == 0 and found.stdout == "done\n", found.stderr[-3000:]


FINALIZERS = """
import os, threading, time
import llvmlite.binding as llvm
import lucid

held = threading.Event()

def free_something():
    with llvm.ffi.lib._lock:
        held.set()
        time.sleep(0.3)

thread = threading.Thread(target=free_something)
thread.start()
held.wait()
pid = os.fork()
if not pid:
    llvm.get_host_cpu_name()
    os._exit(0)
end = time.monotonic() + 20
while os.waitpid(pid, os.WNOHANG) == (0, 0):
    assert time.monotonic() < end, os.kill(pid, 9)
    time.sleep(0.01)
thread.join()
print("done")
"""


def test_a_child_can_free_what_llvm_gave_to_threads_that_are_gone(tmp_path):
    """A fork in the moment in which another thread frees its target machine hung the child."""
    found = run(FINALIZERS, tmp_path / "cache")
    assert found.returncode == 0 and found.stdout == "done\n", found.stderr[-3000:]


IMPORTS = """
import os, sys, threading, time, warnings
import lucid

warnings.simplefilter("ignore", DeprecationWarning)
sys.path.insert(0, os.getcwd())
with open("slow_module.py", "w") as file:
    file.write("import time; time.sleep(0.5); value = 3")
thread = threading.Thread(target=__import__, args=("slow_module",))
thread.start()
while "slow_module" not in sys.modules:
    time.sleep(0.001)
pid = os.fork()
if not pid:
    import slow_module
    os._exit(slow_module.value)
end = time.monotonic() + 20
while (found := os.waitpid(pid, os.WNOHANG)) == (0, 0):
    assert time.monotonic() < end, os.kill(pid, 9)
    time.sleep(0.01)
assert os.waitstatus_to_exitcode(found[1]) == 3
thread.join()
print("done")
"""


def test_a_child_can_import_what_another_thread_was_importing(tmp_path):
    """Workers of a DataLoader hung beside a thread that imported numpy.random."""
    found = run(IMPORTS, tmp_path / "cache")
    assert found.returncode == 0 and found.stdout == "done\n", found.stderr[-3000:]


WAITING = """
import os, threading, time, warnings
from lucid.support.locks import fork_waits, new_lock

warnings.simplefilter("ignore", DeprecationWarning)
shared, compiling, begun, forks = new_lock(), threading.Event(), threading.Event(), []

def compiles():
    with fork_waits():
        compiling.set()
        begun.wait()
        time.sleep(0.3)  # the fork waits for this thread, which waits for the other one
        with shared:
            pass

def holds_the_lock():
    with shared:
        begun.set()
        time.sleep(0.2)
        with fork_waits():  # which waits for the fork
            pass

threads = [threading.Thread(target=f) for f in (compiles, holds_the_lock)]
threads[0].start()
compiling.wait()
threads[1].start()
begun.wait()
start = time.monotonic()
if not os.fork():
    os._exit(0)
os.wait()
assert time.monotonic() - start < 20
for thread in threads:
    thread.join()
print("done")
"""


def test_a_fork_lets_threads_that_wait_for_each_other_end(tmp_path):
    """It took 60 seconds, and forked while the first thread still compiled."""
    found = run(WAITING, tmp_path / "cache")
    assert found.returncode == 0 and found.stdout == "done\n", found.stderr[-3000:]


def test_a_bad_value_of_a_variable_is_named_and_the_import_works(tmp_path):
    names = [name for name in SETTINGS if name not in ("LUCID_CACHE_DIR",)]
    program = f"""
import os, warnings
import lucid
os.environ.update(dict.fromkeys({names!r}, "nonsense"))
with warnings.catch_warnings(record=True):
    warnings.simplefilter("always")
    try:
        f = lucid.jit(lambda x: x * 2)
        f(lucid.ones(2)), f(lucid.ones(2))
    except lucid.errors.LucidError as error:
        assert "nonsense" in str(error) and "LUCID_" in str(error), error
print("done")
"""
    assert run(program, tmp_path / "cache").stdout == "done\n"
    bad = dict.fromkeys(names, "nonsense")
    found = run("import lucid; print(lucid.ones(2).tolist())", tmp_path / "cache", **bad)
    assert found.stdout == "[1.0, 1.0]\n", found.stderr[-2000:]


def test_the_gradient_of_a_bare_tensor_is_bare_and_in_compat_torch_a_tuple():
    x = lucid.tensor([1.0, 2.0, 3.0], requires_grad=True)
    bare = lucid.autograd.grad((x * x).sum(), x)
    assert isinstance(bare, lucid.Tensor) and bare.tolist() == [2.0, 4.0, 6.0]
    assert lucid.autograd.grad((x * x).sum(), [x])[0].tolist() == [2.0, 4.0, 6.0]
    assert torch.autograd.grad((x * x).sum(), x)[0].tolist() == [2.0, 4.0, 6.0]


def test_the_page_for_users_of_pytorch_opens_with_that_difference():
    page = (ROOT / "docs" / "coming-from.md").read_text()
    rows = [line for line in page.partition("## From PyTorch")[2].splitlines() if line[:1] == "|"]
    assert rows[2].startswith("| `autograd.grad(y, x)`")


@pytest.mark.parametrize(("name", "version"), [("llvmlite", "0.45"), ("numba", "0.62")])
def test_the_declared_minimum_is_what_make_minimum_installs(name, version):
    declared = (ROOT / "pyproject.toml").read_text()
    assert re.search(rf'"{name}>={re.escape(version)}"', declared)
    makefile = (ROOT / "Makefile").read_text()
    assert "minimum: pyproject.toml" in makefile and "/^dependencies/,/^]/s/" in makefile
