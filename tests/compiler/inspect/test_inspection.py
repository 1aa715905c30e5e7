"""What people see of a compiled program: stages, kernels, LUCID_DUMP, and profiles."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lucid
from lucid.compiler.jit.jit import jit
from lucid.compiler.passes.pipeline import STAGES

ROOT = Path(lucid.__file__).parent.parent
HERE = Path(__file__).name


def loss(w, x):
    return lucid.softmax(x @ w, 1).log().sum()


def arguments(n=32):
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((8, 16)), rng.standard_normal((n, 8))
    return lucid.tensor(w.astype("float32")), lucid.tensor(x.astype("float32"))


# Stages


@pytest.mark.parametrize("stage", ["traced", "differentiated", *STAGES])
def test_every_stage_is_a_graph_that_computes_the_same(stage):
    f = jit(lucid.func.grad(loss))
    args = arguments()
    graph = f.graph(*args, stage=stage)
    (given,) = lucid.ir.evaluate(graph, *[x.numpy() for x in args])
    np.testing.assert_allclose(given, f(*args).numpy(), rtol=1e-4, atol=1e-5)
    assert lucid.ir.parse(str(graph.stripped())).key == graph.key


def test_fused_and_planned_are_texts_with_every_kernel():
    f = jit(lucid.func.grad(loss))
    args = arguments()
    assert "kernel over" in f.graph(*args, stage="fused")
    planned = f.graph(*args, stage="planned")
    assert planned.startswith("plan    2 in, 1 out, arena ")
    assert f"matmul  [{HERE}:" in planned


def test_the_plan_says_what_is_written_in_place():
    w = lucid.zeros(3)

    @jit
    def step(x):
        w.add_(x)

    text = step.graph(lucid.ones(3), stage="planned")
    assert "1 out, 1 of them in the memory of inputs" in text


def test_an_unknown_stage_names_those_there_are():
    with pytest.raises(ValueError, match=r"stage 'fuzed'; the stages are traced, .*planned"):
        jit(loss).graph(*arguments(), stage="fuzed")


# Kernels


def test_kernels_have_a_listing_llvm_and_assembly():
    f = jit(lambda x: (lucid.tanh(x).sum(1), lucid.sort(x)[0]))
    kernels = f.kernels(lucid.ones(4, 5))
    assert len(kernels) >= 2
    for kernel in kernels:
        assert re.search(rf"define void @{kernel.name}\(", kernel.llvm)
        assert f"{kernel.name}:" in kernel.assembly and "ret" in kernel.assembly
        assert kernel.label
    (tanh,) = [k for k in kernels if k.label.startswith("tanh")]
    assert ast.parse(tanh.listing).body[0].name == "kernel"
    assert repr(tanh).startswith("<kernel tanh")


def dumped(folder, code):
    environment = {**os.environ, "LUCID_DUMP": str(folder), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )


PROGRAM = """
import lucid
f = lucid.jit(lambda x: (lucid.exp(x) @ x).sum(0))
print(float(f(lucid.zeros(3, 3)).sum()), float(f(lucid.zeros(3, 3)).sum()))
"""


def test_lucid_dump_writes_every_stage_and_kernel(tmp_path):
    run = dumped(tmp_path / "new" / "folder", PROGRAM)
    assert run.stdout.split() == ["0.0", "0.0"], run.stderr
    (place,) = (tmp_path / "new" / "folder").iterdir()
    names = {file.name for file in place.iterdir()}
    assert names >= {f"{stage}.txt" for stage in ("traced", *STAGES, "fused", "planned")}
    endings = {file.suffix for file in place.iterdir()}
    assert endings == {".txt", ".py", ".ll", ".s"}
    assert all(file.stat().st_size > 1 for file in place.iterdir())
    assert lucid.ir.parse(re.sub(r" *#.*", "", (place / "traced.txt").read_text())).inputs


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path):
    (tmp_path / "file").write_text("")
    run = dumped(tmp_path / "file", PROGRAM)
    assert run.stdout.split() == ["0.0", "0.0"]
    assert "LUCID_DUMP" in run.stderr and "interpreted" not in run.stderr


# Profiles


def test_a_profile_has_time_bytes_and_flops_of_every_instruction():
    n, m, k = 64, 48, 32
    f = jit(lambda x, w: lucid.exp(x @ w) * 2.0)
    x, w = lucid.ones(n, k), lucid.ones(k, m)
    f(x, w)
    with lucid.profile() as p:
        for _ in range(3):
            f(x, w)
    rows = {row.instruction: row for row in p.rows}
    assert set(rows) == {"matmul", "exp mul"}
    product, rest = rows["matmul"], rows["exp mul"]
    assert product.calls == rest.calls == 3
    assert product.flops == 3 * 2 * n * m * k
    assert product.bytes == 3 * 4 * (n * k + k * m + n * m)
    assert rest.flops == 3 * 2 * n * m
    assert rest.bytes == 3 * 4 * 2 * n * m
    assert all(row.nanoseconds > 0 and row.source.startswith(f"{HERE}:") for row in p.rows)


def test_a_reduction_counts_one_operation_an_element():
    f = jit(lambda x: x.sum(1) + 1.0)
    x = lucid.ones(100, 30)
    f(x)
    with lucid.profile() as p:
        f(x)
    (row,) = p.rows
    assert row.flops == 100 * 30 + 100
    assert row.bytes == 4 * (100 * 30 + 100)


def test_a_profile_is_a_table_slowest_first():
    f = jit(lambda x: lucid.sort(lucid.exp(x) @ x)[0])
    x = lucid.ones(40, 40)
    f(x)
    with lucid.profile() as p:
        f(x)
    head, *lines = str(p).splitlines()
    columns = ["µs", "calls", "µs a call", "MB", "GB/s", "GFLOP/s", "line", "instruction"]
    assert re.split(r"\s{2,}", head.strip()) == columns
    assert len(lines) == len(p.rows) >= 3
    times = [row.nanoseconds for row in p.rows]
    assert times == sorted(times, reverse=True)
    assert all(f"{HERE}:" in line for line in lines)


def test_the_graph_shown_is_that_of_the_way_these_values_take():
    @jit
    def f(x):
        return lucid.exp(x) if x.sum() > 0 else lucid.sin(x)

    up, down = lucid.ones(2), -lucid.ones(2)
    f(up), f(down)
    recorded = [path for paths in f.paths.values() for path in paths]
    for x, seen in ((up, "exp"), (down, "sin")):
        ops = [eqn.op.name for eqn in f.graph(x).equations]
        assert seen in ops and len({"exp", "sin"} & set(ops)) == 1
    assert [path for paths in f.paths.values() for path in paths] == recorded, "nothing is recorded"
    assert "log" in [eqn.op.name for eqn in jit(lambda x: x.log()).graph(up).equations]


def test_a_profile_sees_programs_made_inside_it_and_stops_after_it():
    x = lucid.ones(3)
    with lucid.profile() as p:
        f = jit(lambda x: lucid.sin(x))
        for _ in range(4):
            f(x)
    assert [row.calls for row in p.rows] == [4], "the first call runs the program too"
    f(x)
    assert [row.calls for row in p.rows] == [4]
