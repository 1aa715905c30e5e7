"""Every cache at module level is registered, documented and emptied by `clear_caches`."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import lucid
import lucid.nn.functional as F
from lucid.support import caches

PACKAGE = Path(lucid.__file__).parent
PAGE = PACKAGE.parent / "docs" / "caches.md"

# Empty containers at module level that are not caches: what the program or the user has put there.
STATE = {
    "lucid.support.caches._CLEAR": "the register itself",
    "lucid.support.caches._ONCE": "the register itself",
    "lucid.compiler.backends.numba.functions._local": "the functions that a kernel calls",
    "lucid.compiler.backends.numba.steppable._errors": "the error of a kernel that runs",
    "lucid.compiler.backends.selection._local": "the backend that a thread compiles with",
    "lucid.compiler.kernels.scalars.declare.table": "the scalar functions",
    "lucid.compiler.plan.executable.CREATION_HOOKS": "observers of the profiler",
    "lucid.compiler.plan.executable.LIVE": "the programs that exist, weakly",
    "lucid.compiler.runtime.codegen._idle_machines": "LLVM's target machines, one for each thread",
    "lucid.distributed.runtime._runtime": "MPI, once it has started",
    "lucid.compat.torch.serialization._safe": "classes that the program allows in files",
    "lucid.distributions.kl.registry.FORMULAS": "what register_kl has registered",
    "lucid.func.custom_rules.reverse._running": "rules that run right now",
    "lucid.func.custom_rules.reverse._running_bwd": "rules that run right now",
    "lucid.func.custom_rules.forward._running_jvp": "rules that run right now",
    "lucid.support.structures._leaves": "classes known as leaves",
    "lucid.support.structures._others": "classes that optree is asked about",
    "lucid.support.structures._registered": "classes registered as pytrees",
    "lucid.support.locks._locks": "the locks of the package, weakly",
    "lucid.support.locks._of_threads": "the locks of threads that a fork takes, weakly",
    "lucid.tape.node.active_recorders": "the Recorders that are active right now",
    "lucid.tape.node.followers": "what follows the eager code of threads right now",
    "lucid.tape.views.exported": "the arrays whose memory NumPy sees, weakly",
    "lucid.tape.recording.recorder._getters": "classes whose attributes a recording watches",
    "lucid.tensors.printing.print_options": "what set_printoptions has set",
}
EMPTY = re.compile(
    r"\{\}|\[\]|(collections\.)?(set|dict|list|OrderedDict|defaultdict|deque)\(\)"
    r"|(weakref\.)?Weak\w+\(\)|threading\.local\(\)"
)


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield name, ast.parse(path.read_text())


def module_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements of a module and of its classes."""
    for node in tree.body:
        yield node
        if isinstance(node, ast.ClassDef):
            yield from node.body


def declared() -> tuple[set[str], set[str], list[str], list[str]]:
    """Memoized functions and tables, process-wide values, functools caches, empty containers."""
    cleared, kept, functools_caches, containers = set(), set(), [], []
    for module, tree in modules():
        for node in module_level(tree):
            if isinstance(node, ast.FunctionDef):
                for decorator in map(ast.unparse, node.decorator_list):
                    name = f"{module}.{node.name}"
                    if re.match(r"memoize\(", decorator):
                        cleared.add(name)
                    elif decorator == "once":
                        kept.add(name)
                    elif re.match(r"(functools\.)?(lru_)?cache\b", decorator):
                        functools_caches.append(name)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                name = f"{module}.{ast.unparse(target)}"
                value = ast.unparse(node.value)
                if EMPTY.fullmatch(value) and node in tree.body:
                    containers.append(name)
                elif re.search(r"\b(lru_cache|functools\.cache)\b", value):
                    functools_caches.append(name)
            for call in ast.walk(node) if node in tree.body else ():
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "new_cache":
                    text = ast.unparse(call.args[0])
                    cleared.add(text.strip("f'\"").replace("{__name__}", module))
    return cleared, kept, functools_caches, containers


def test_every_cache_at_module_level_is_registered():
    cleared, kept, functools_caches, containers = declared()
    functools_caches = [n for n in functools_caches if not n.startswith("lucid.support.caches.")]
    assert not functools_caches, "use memoize or once of lucid/support/caches.py"
    unknown = [name for name in containers if name not in cleared and name not in STATE]
    assert not unknown, "register it with new_cache, or give the reason why it is state"
    gone = [name for name in STATE if name not in containers]
    assert not gone, "no longer there"
    for name in sorted(cleared | kept):
        importlib.import_module(name.rpartition(".")[0])
    assert (sorted(cleared), sorted(kept)) == caches.registered()


def test_the_page_lists_every_cache():
    cleared, kept, _, _ = declared()
    first, second = PAGE.read_text().split("## What stays")
    listed = [
        {
            f"{module}.{name}"
            for module, names in re.findall(r"^\| `(lucid[\w.]*)` \| (.*?) \|", part, re.M)
            for name in re.findall(r"`(\w+)`", names)
        }
        for part in (first, second)
    ]
    missing = sorted((cleared - listed[0]) | (kept - listed[1]))
    gone = sorted((listed[0] - cleared) | (listed[1] - kept))
    assert not missing and not gone


def step(model, optimizer, x):
    optimizer.zero_grad()
    loss = F.gelu(model(x)).sum()
    loss.backward()
    optimizer.step()
    return loss.item()


def test_programs_still_run_right_after_clearing():
    rng = np.random.default_rng(0)
    square = lucid.jit(lambda x: (x @ x.T).sum())
    losses: dict[bool, list[float]] = {}
    for clearing in (False, True):
        lucid.manual_seed(0)
        model = lucid.nn.Linear(4, 3)
        optimizer = lucid.optim.Adam(model.parameters(), lr=0.1)
        x = lucid.tensor(np.linspace(-1, 1, 20).reshape(5, 4).astype("float32"))
        losses[clearing] = []
        for i in range(24):
            losses[clearing].append(step(model, optimizer, x))
            if clearing and i % 5 == 4:
                lucid.clear_caches()
        for _ in range(3):
            a = rng.normal(size=(6, 5))
            assert square(lucid.tensor(a)).item() == pytest.approx((a @ a.T).sum())
            found = lucid.func.grad(square)(lucid.tensor(a)).numpy()
            np.testing.assert_allclose(found, 2 * np.ones((6, 1)) * a.sum(0), rtol=1e-10)
            if clearing:
                lucid.clear_caches()
    np.testing.assert_allclose(losses[True], losses[False], rtol=1e-4)


def test_clearing_empties_the_tables_and_drops_recorded_paths():
    from lucid.compiler.plan.executable import LIVE
    from lucid.ir.infer import _inferred
    from lucid.tape.tiering import table
    from lucid.transforms.prepare import _prepared

    f = lucid.jit(lambda x: lucid.sin(x) * 3.0)
    for _ in range(3):
        f(lucid.ones(3))
        lucid.func.grad(lambda x: lucid.cos(x).sum())(lucid.ones(3))
    assert f.paths and _prepared and len(LIVE)
    program = next(iter(f.paths.values()))[0].program
    assert program in LIVE
    del program
    before = len(LIVE)
    lucid.clear_caches()
    assert not f.paths and f.last is None and not _prepared and not _inferred and not len(table)
    assert len(LIVE) < before, "a program that nobody uses is freed"
    assert f(lucid.zeros(3)).tolist() == [0.0] * 3


def test_clearing_while_a_function_is_recorded_loses_nothing():
    def f(x):
        lucid.clear_caches()
        return x * 2.0

    jitted = lucid.jit(f)
    assert [jitted(lucid.tensor(v)).item() for v in (1.0, 2.0, 3.0)] == [2.0, 4.0, 6.0]
