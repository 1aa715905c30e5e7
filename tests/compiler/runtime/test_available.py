"""Where compiled code cannot run, everything is interpreted, with one warning that says why."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import lucid
from lucid.compiler.jit import slow_notice as notice
from lucid.compiler.runtime.available import problem
from lucid.ir.text import parse

WITHOUT_LLVMLITE = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("llvmlite", "numba"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""
WITHOUT_THREADS = """
from lucid.compiler.runtime import loader
address = loader.symbol_address
def missing(name):
    if name.startswith("pthread_"):
        raise loader.LoadError(f"no symbol {name} in this process")
    return address(name)
loader.symbol_address = missing
"""
UNKNOWN_CPU = """
import llvmlite.binding as llvm
def unknown():
    raise RuntimeError("this processor is not known")
llvm.get_host_cpu_features = unknown
"""
PROGRAM = """
import warnings
import numpy as np
import lucid
from lucid import nn
from lucid.func import grad, scan, vmap

lucid.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 1))
optimizer = lucid.optim.Adam(model.parameters(), lr=0.1)

def step(x):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    jitted, x = lucid.jit(step), lucid.randn(8, 3)
    losses = [jitted(x).item() for _ in range(30)] + [step(x).item() for _ in range(30)]
    assert losses[-1] < 0.1 * losses[0], losses
    f = lucid.jit(vmap(grad(lambda x: scan(lambda c, _: (lucid.sin(c), None), x, length=3)[0])))
    y = np.array([0.1, 0.2])
    slope = np.cos(y) * np.cos(np.sin(y)) * np.cos(np.sin(np.sin(y)))
    for _ in range(3):
        np.testing.assert_allclose(f(lucid.tensor(y)).numpy(), slope)
    np.testing.assert_allclose((lucid.ones(300, 300) @ lucid.ones(300, 300)).numpy(), 300.0)
    lucid.set_num_threads(1)
print(*[f"{w.category.__name__}: {w.message}" for w in caught], sep="\\n")
"""


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        (WITHOUT_LLVMLITE, "llvmlite is not installed"),
        (WITHOUT_THREADS, "no symbol pthread_"),
        (UNKNOWN_CPU, "this processor is not known"),
    ],
    ids=["no llvmlite", "no POSIX threads", "unknown processor"],
)
def test_a_program_runs_interpreted_with_one_warning(machine, reason, tmp_path, monkeypatch):
    monkeypatch.setenv("LUCID_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("LUCID_DISABLE_JIT", raising=False)
    code = machine + PROGRAM
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    (line,) = run.stdout.splitlines()
    assert line.startswith("CompileWarning: Lucid cannot run compiled code here (")
    assert reason in line and "LUCID_DISABLE_JIT=1" in line


def test_this_machine_runs_compiled_code():
    assert problem() == ""


def test_a_slow_compilation_is_announced_once(monkeypatch, capsys):
    monkeypatch.setattr(notice.Notice, "written", False)
    monkeypatch.setattr(notice, "AFTER", 0.0)
    lines = [f"    %{i}: f32[] = sin {'x' if not i else f'%{i - 1}'}" for i in range(40)]
    graph = parse("\n".join(["graph deep(x: f32[]):", *lines, "    return %39"]))
    for _ in range(2):
        with notice.slow_notice(graph):
            for _ in range(500):
                if notice.Notice.written:
                    break
                time.sleep(0.01)
    text = capsys.readouterr().err
    assert text.count("lucid: compiling 'deep' (40 operations)") == 1


def test_the_equations_of_a_loop_count_for_the_announcement():
    def body(c, _):
        for _ in range(40):
            c = lucid.sin(c)
        return c, None

    graph = lucid.ir.trace(lambda x: lucid.func.scan(body, x, length=3)[0])(lucid.ones(2))
    assert len(graph.equations) == 1 and notice.count_equations(graph) == 41


def test_a_quick_compilation_is_not_announced(monkeypatch, capsys):
    monkeypatch.setattr(notice.Notice, "written", False)
    graph = parse("graph small(x: f32[]):\n    %0: f32[] = sin x\n    return %0")
    with notice.slow_notice(graph):
        pass
    assert capsys.readouterr().err == ""
