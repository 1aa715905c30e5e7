"""Tiering: what recurs in eager code is compiled after some runs, and gives what it gave."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import lucid
import lucid.nn.functional as F
from lucid.compiler import compile
from lucid.compiler.jit import hot_programs as hot
from lucid.errors import SettingWarning
from lucid.ir.interpret import Program
from lucid.tape import template as template_module
from lucid.tape import tiering
from lucid.tape.template import Template
from lucid.tape.tiering import DERIVATIVE, OPERATION, Entry, TieredProgram, Tiering, table

ROOT = Path(lucid.__file__).parent.parent


@pytest.fixture
def compiled(monkeypatch):
    """A threshold of three runs, and the Graphs that were compiled."""
    graphs = []

    def note(graph):
        graphs.append(graph)
        return hot.compile_hot(graph)

    monkeypatch.setattr(Tiering, "threshold", 3)
    monkeypatch.setattr(Tiering, "enabled", True)
    monkeypatch.setattr(Tiering, "compile", staticmethod(note))
    table.clear()
    yield graphs
    table.clear()


def a_graph(n: int = 7):
    return lucid.ir.parse(f"""graph f(x: f32[{n}]):
    %0: f32[{n}] = exp x
    %1: f32[{n}] = mul %0 2.0
    return %1""")


def test_a_program_is_interpreted_first_and_compiled_at_the_threshold(compiled):
    runner, x = TieredProgram(a_graph()), np.ones(7, "float32")
    results = []
    for run in range(1, 6):
        results.append(runner([x])[0])
        assert len(compiled) == (run >= 3)
        assert isinstance(runner.program, Program) == (run < 3)
    for result in results:
        np.testing.assert_allclose(result, 2 * np.exp(x), rtol=1e-6)


def step(w, x, seed: int):
    """One training step as eager users write it; seeds give other numbers in the same structure."""
    a = lucid.tensor(np.random.default_rng(seed).standard_normal((4, 6)), dtype=lucid.float32)
    h = lucid.tanh(a @ w + x)
    loss = (lucid.softmax(h, 1) * h).sum()
    loss.backward()
    grads = w.grad.numpy().copy(), x.grad.numpy().copy()
    w.grad = x.grad = None
    return grads


def leaves():
    rng = np.random.default_rng(0)
    return [
        lucid.tensor(rng.standard_normal(shape).astype("float32"), requires_grad=True)
        for shape in ((6, 5), (5,))
    ]


def test_a_backward_that_comes_again_is_compiled_and_agrees(compiled, monkeypatch):
    w, x = leaves()
    hot_grads = [step(w, x, seed) for seed in range(8)]
    assert len(compiled) == 1, "so few operations on small tensors are not followed"
    monkeypatch.setattr(Tiering, "enabled", False)
    for seed, grads in enumerate(hot_grads):
        for got, want in zip(grads, step(*leaves(), seed)):
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def test_another_structure_starts_cold(compiled):
    w, x = leaves()
    for seed in range(4):
        step(w, x, seed)
    before = len(compiled)
    for _ in range(2):
        (w * w).sum().backward()
        w.grad = None
    assert len(compiled) == before


def test_a_failure_to_compile_warns_once_and_interprets(monkeypatch):
    monkeypatch.setattr(Tiering, "threshold", 2)
    monkeypatch.setattr(Tiering, "compile", staticmethod(hot.compile_hot))
    table.clear()

    def broken(graph, *options):
        raise RuntimeError("no such instruction")

    monkeypatch.setattr(compile, "compile_graph", broken)
    runner, x = TieredProgram(a_graph()), np.ones(7, "float32")
    runner([x])
    with pytest.warns(hot.CompileWarning, match="RuntimeError: no such instruction"):
        result = runner([x])[0]
    np.testing.assert_allclose(result, 2 * np.exp(x), rtol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runner([x])


def test_install_reads_the_environment(monkeypatch):
    for name in ("compile", "enabled", "threshold"):
        monkeypatch.setattr(Tiering, name, getattr(Tiering, name))
    monkeypatch.setenv("LUCID_TIERING", "0")
    hot.install()
    assert not Tiering.enabled and Tiering.compile is not None
    monkeypatch.setenv("LUCID_TIERING", "1")
    monkeypatch.setenv("LUCID_TIERING_THRESHOLD", "5")
    hot.install()
    assert Tiering.enabled and Tiering.threshold == 5
    monkeypatch.setenv("LUCID_DISABLE_JIT", "1")
    hot.install()
    assert not Tiering.enabled and Tiering.compile is None


@pytest.mark.parametrize(
    "name, text", [("LUCID_TIERING", "maybe"), ("LUCID_TIERING_THRESHOLD", "-1"),
                   ("LUCID_TIERING_THRESHOLD", "soon"), ("LUCID_DISABLE_JIT", "2")],
)  # fmt: skip
def test_a_bad_value_in_the_environment_is_named_and_the_default_holds(name, text, monkeypatch):
    for attribute in ("compile", "enabled", "threshold"):
        monkeypatch.setattr(Tiering, attribute, getattr(Tiering, attribute))
    monkeypatch.setenv(name, text)
    with pytest.warns(SettingWarning, match=f"{name}='{text}': expected"):
        hot.install()
    assert Tiering.enabled and Tiering.compile is not None and Tiering.threshold == 16


PROGRAM = """
import sys
import lucid
w = lucid.ones(3, requires_grad=True)
for _ in range(6):
    (lucid.exp(w) * w).sum().backward()
    w.grad = None
print("lucid.compiler.passes.pipeline" in sys.modules, "llvmlite.binding" in sys.modules)
"""


def run(program: str, tmp_path, **environment: str) -> str:
    settings = {"PYTHONPATH": str(ROOT), "LUCID_CACHE_DIR": str(tmp_path / "cache"), **environment}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_the_environment_turns_it_off(tmp_path):
    early = {"LUCID_TIERING_THRESHOLD": "2"}
    assert run(PROGRAM, tmp_path, LUCID_TIERING="0", **early) == "False False"
    assert run(PROGRAM, tmp_path, LUCID_DISABLE_JIT="1", **early) == "False False"


JITTED = """
import sys
import numpy as np
import lucid
f = lucid.jit(lambda x, n: (lucid.exp(x) * n).sum(), static_argnums=1)
model = lucid.nn.Linear(3, 2)
opt = lucid.optim.SGD(model.parameters(), lr=0.1)
before = model.weight.detach().numpy().copy()
for k in range(4):
    assert abs(f(np.full(3, float(k)), 2).item() - 6 * np.exp(k)) < 1e-3 * np.exp(k)
    x = lucid.ones(1, 3, requires_grad=True)
    assert np.allclose(lucid.func.grad(f)(x, 2).numpy(), 2 * np.exp(1.0))
    opt.zero_grad()
    model(x).sum().backward()
    opt.step()
    lucid.func.scan(lambda c, _: (c * 1.5, c), lucid.ones(2), length=50)
    lucid.utils.checkpoint.checkpoint(lambda x: lucid.sin(x) * 2.0, x).sum().backward()
    lucid.rand(100_000)
assert np.allclose(model.weight.detach().numpy(), before - 0.4)
assert "exp" in str(f.graph(np.ones(3), 2))
print("lucid.compiler.passes.pipeline" in sys.modules, "llvmlite.binding" in sys.modules)
"""


def test_disable_jit_runs_everything_by_the_interpreter(tmp_path):
    early = {"LUCID_TIERING_THRESHOLD": "0"}
    assert run(JITTED, tmp_path, LUCID_DISABLE_JIT="1", **early).split()[1] == "False"
    assert run(JITTED, tmp_path, LUCID_TIERING="0", **early) == "True True"


def test_a_bad_threshold_does_not_break_the_import(tmp_path):
    program = "import warnings; warnings.simplefilter('error')\ntry: import lucid\n"
    program += "except RuntimeWarning as error: print(error)"
    assert "LUCID_TIERING_THRESHOLD='x'" in run(program, tmp_path, LUCID_TIERING_THRESHOLD="x")


def test_a_threshold_in_the_environment_turns_it_on_early(tmp_path):
    assert run(PROGRAM, tmp_path, LUCID_TIERING_THRESHOLD="2") == "True True"
    assert run(PROGRAM, tmp_path, LUCID_TIERING_THRESHOLD="2") == "True False", "from a warm cache"


def test_nothing_is_compiled_below_the_threshold(tmp_path):
    assert run(PROGRAM, tmp_path, LUCID_TIERING_THRESHOLD="100") == "False False"


def test_importing_lucid_loads_no_compiler(tmp_path):
    program = "import lucid, sys; print([m for m in sys.modules if m.startswith('lucid.compiler')])"
    loaded = run(program, tmp_path)
    assert "pipeline" not in loaded and "codegen" not in loaded and "llvmlite" not in loaded


def test_eight_threads_share_a_hot_graph(compiled):
    runner = TieredProgram(a_graph(1000))
    wrong: list[str] = []
    start = threading.Barrier(8)

    def work(number: int) -> None:
        x = np.full(1000, number, "float32")
        start.wait()
        for _ in range(50):
            got = runner([x])[0]
            if not np.allclose(got, 2 * np.exp(x), rtol=1e-6):
                wrong.append(f"thread {number}: {got[:3]}")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert not isinstance(runner.program, Program)


# The table


def test_the_least_recently_used_entries_are_dropped_and_may_become_hot_again(
    compiled, monkeypatch
):
    monkeypatch.setattr(tiering, "MAX_ENTRIES", 4)
    programs = [TieredProgram(a_graph(n)) for n in range(2, 7)]
    first, x = programs[0], np.ones(2, "float32")
    for _ in range(3):
        first([x])
    assert len(compiled) == 1 and not isinstance(first.program, Program)
    for n, other in enumerate(programs[1:4], 3):
        other([np.ones(n, "float32")])
        first([x])  # used between: it stays
    assert not isinstance(first.program, Program)
    for _ in range(2):
        for n, other in enumerate(programs[1:], 3):
            other([np.ones(n, "float32")])
    assert len(table) <= 4 and isinstance(first.program, Program), "dropped, and interpreted"
    for run in range(1, 4):
        np.testing.assert_allclose(first([x])[0], 2 * np.exp(x), rtol=1e-6)
        assert isinstance(first.program, Program) == (run < 3)


def test_the_table_is_bounded_by_the_equations_it_holds(compiled, monkeypatch):
    monkeypatch.setattr(tiering, "MAX_WEIGHT", 9)
    for n in range(2, 12):
        TieredProgram(a_graph(n))([np.ones(n, "float32")])
        assert table.weight == sum(e.weight for e in table.entries.values()) <= 9
    assert table.of(DERIVATIVE)


def test_equal_graphs_share_an_entry(compiled):
    for run in range(1, 5):
        TieredProgram(a_graph())([np.ones(7, "float32")])
        assert len(compiled) == (run >= 3)
    assert len(table) == 1


def test_what_belongs_to_one_backward_is_not_kept(compiled):
    w = lucid.ones(3, requires_grad=True)
    for _ in range(5):
        y = w * w
        y.register_hook(lambda g: None)
        y.sum().backward()
    assert not table.of(DERIVATIVE)


def test_an_interrupt_while_compiling_leaves_the_entry_as_it_was():
    entry = Entry(2)
    entry.count(1, lambda: "unused")

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        entry.count(1, interrupted)
    assert entry.program is None
    assert entry.count(1, lambda: "program") == "program"


def test_one_table_holds_all_that_is_hot(monkeypatch):
    monkeypatch.setattr(Tiering, "threshold", 0)
    table.clear()
    x = lucid.ones(64, 64, requires_grad=True)
    lucid.rand(9)
    jitted = lucid.jit(lambda x: lucid.sin(x) * 2.0)
    for _ in range(2):
        F.gelu(x @ x).sum().backward()
        lucid.func.scan(lambda c, _: (c * 1.5, c), lucid.ones(2), length=3)
        jitted(x).sum().backward()
    names = {key[0].name for key, entry in table.entries.items() if entry.program is not None}
    assert names == {
        "operation", "composition", "derivative", "loop", "call", "cipher", "draw"
    }  # fmt: skip
    table.clear()
    assert len(table) == 0 and not table.of(OPERATION)
    np.testing.assert_allclose((x.detach() @ x.detach()).numpy(), 64.0)


def test_eight_threads_run_backward_of_one_structure(compiled):
    want = [step(*leaves(), seed) for seed in range(8)]
    got: dict[int, list] = {}
    start = threading.Barrier(8)

    def work(number: int) -> None:
        w, x = leaves()
        start.wait()
        got[number] = [step(w, x, number) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 8
    for number, results in got.items():
        for result in results:
            for a, b in zip(result, want[number]):
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_a_gradient_function_that_comes_again_is_recognised_without_cutting(monkeypatch):
    cuts = []
    monkeypatch.setattr(template_module, "Template", lambda cut: cuts.append(1) or Template(cut))
    factors = lucid.tensor([2.0, 3.0])
    gradient = lucid.func.grad(lambda x, n: (x**n * factors).sum())
    for k in range(1, 6):
        x = lucid.full((2,), float(k))
        assert gradient(x, 2).tolist() == [4.0 * k, 6.0 * k]
    assert len(cuts) == 1
    assert gradient(x, 3).tolist() == [150.0, 225.0], "another literal is another structure"
    assert len(cuts) == 2


def test_a_number_that_changes_every_step_is_an_operand_of_one_program():
    from lucid.transforms.prepare import _prepared

    w, known = lucid.tensor([1.0, 2.0, 3.0], requires_grad=True), []
    x = w.detach().numpy().astype("float64")
    for i in range(40):
        c, d = 0.5 + 0.1 * i, 1.0 / (i + 1)
        ((w * c + d).sin() * 2.0 / d - c).sum().backward()
        np.testing.assert_allclose(w.grad.numpy(), np.cos(x * c + d) * c * 2 / d, rtol=1e-3)
        w.grad = None
        known.append(len(_prepared))
    assert known[-1] == known[2], "the second step differs in its numbers, the third has a program"


def test_a_number_that_decides_a_derivative_stays_in_its_program():
    w = lucid.tensor([1.0, 2.0], requires_grad=True)
    for n in (2.0, 3.0, 0.5, 2.0, 1.0, 0.0):
        (w**n).sum().backward()
        np.testing.assert_allclose(w.grad.numpy(), n * np.array([1.0, 2.0]) ** (n - 1), rtol=1e-6)
        w.grad = None


def test_a_tape_that_leads_elsewhere_is_not_taken_for_the_same():
    scale = {"by": lucid.tensor([1.0, 1.0])}

    def f(x, y):
        return (x * scale["by"] * y).sum()

    gradient = lucid.func.grad(f, argnums=(0, 1))
    x, y = lucid.tensor([2.0, 3.0]), lucid.tensor([5.0, 7.0])
    for _ in range(3):
        assert [g.tolist() for g in gradient(x, y)] == [[5, 7], [2, 3]]
    inner = lucid.func.grad(lambda z: gradient(x * z, y)[1].sum())
    assert inner(lucid.tensor(4.0)).item() == 5.0
    scale["by"] = lucid.tensor([10.0, 1.0], requires_grad=True)
    assert [g.tolist() for g in gradient(x, y)] == [[50, 7], [20, 3]]
    twice = lucid.func.grad(lambda x: f(x, x))
    assert twice(x).tolist() == [40.0, 6.0]


def test_a_program_for_transposed_operands_leaves_vectors_to_others():
    op = lucid.ir.trace(lambda a, b: a @ b)(lucid.ones(3, 3), lucid.ones(3, 3)).equations[0].op
    a = np.arange(9.0).reshape(3, 3)
    native = tiering.compile_operation(op, [a.T, a])
    np.testing.assert_allclose(native([a.T, a]), a.T @ a)
    direct = native.direct()
    np.testing.assert_allclose(direct(a.T, a)[0], a.T @ a)
    assert direct(np.ones(3), np.ones(3)) is None and direct(np.ones(3), a) is None
    found = direct(a, a)  # another layout
    assert found is None or np.array_equal(found[0], a @ a)
