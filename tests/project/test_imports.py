"""The layers of the package hold for every import, and importing it stays light."""

from __future__ import annotations

import ast
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lucid

PACKAGE = Path(lucid.__file__).parent
LAYERS = [
    ["errors", "public", "support"],
    ["ir"],
    ["tape"],
    ["ops"],
    ["transforms"],
    ["ops.higher_order"],
    ["compiler"],
    ["tensors", "autograd", "func", "random"],
    ["numpy", "linalg", "fft", "signal", "special", "extend", "nn", "optim", "distributions",
     "utils", "saving", "testing", "tree"],
    ["compat", "viewer", "exporters", "debugging", "distributed", "public.build",
     "public.stubs"],
]  # fmt: skip
LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")

# Imports inside functions that go upward, each with the reason why it must.
ALLOWED = {
    ("lucid.tape.recording.trace", "lucid.ops.core.promote"): "arguments of trace() become tensors",
    ("lucid.tape.tiering", "lucid.ops.shape.movement"): "an operand that lies transposed",
    ("lucid.ops.reduce.statistics", "lucid.linalg"): "norm(p='nuc') is matrix_norm",
    (
        "lucid.ops.higher_order.implicit_solve",
        "lucid.func.solvers.implicit",
    ): "its solvers",
    ("lucid.ops.higher_order.numba_function", "lucid"): "math.<name> of a tensor is lucid.<name>",
    ("lucid.func.solvers.krylov", "lucid.linalg"): "solvers of small dense systems",
    (
        "lucid.tensors.numpy_protocols",
        "lucid.numpy.protocols.dispatch",
    ): "NumPy's functions",
    ("lucid.tensors.numpy_protocols", "lucid.numpy.protocols.ufuncs"): "NumPy's ufuncs",
}


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer_of(module: str) -> int:
    """The layer of `lucid.<part>...`; the package itself stands above all of them."""
    parts = module.split(".")
    if len(parts) == 1:
        return len(LAYERS)
    return LAYER_OF.get(".".join(parts[1:3]), LAYER_OF.get(parts[1], len(LAYERS)))


def imported_by(tree: ast.AST, package: list[str]) -> Iterator[tuple[int, str]]:
    """(line, module) of every import, those inside functions included."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Import():
                yield from ((node.lineno, alias.name) for alias in node.names)
            case ast.ImportFrom():
                base = package[: len(package) - node.level + 1] if node.level else []
                origin = ".".join([*base, *([node.module] if node.module else [])])
                for alias in node.names:
                    inside = origin == "lucid" and is_module(alias.name)
                    yield node.lineno, f"lucid.{alias.name}" if inside else origin
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                for other in node.orelse:
                    yield from imported_by(ast.Module([other], []), package)
            case ast.Call(func=ast.Name(id="LazyModule"), args=[ast.Constant(value=str(origin))]):
                yield node.lineno, origin
            case _:
                yield from imported_by(node, package)


def is_module(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()


def upward_imports() -> dict[tuple[str, str], str]:
    found = {}
    for path in MODULES:
        name = name_of(path)
        package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        for line, target in imported_by(ast.parse(path.read_text()), package):
            if name.startswith("lucid.compat.") and target == "lucid":
                continue  # namespaces of whole programs stand on the package itself
            if target.split(".")[0] == "lucid" and layer_of(target) > layer_of(name):
                found[name, target] = f"{path}:{line}"
    return found


def test_imports_go_downwards_but_for_a_short_list():
    found = upward_imports()
    assert {pair: line for pair, line in found.items() if pair not in ALLOWED} == {}
    assert {pair for pair in ALLOWED if pair not in found} == set(), "no longer needed"
    assert len(ALLOWED) <= 8


@pytest.mark.parametrize("path", sorted((PACKAGE / "ir").glob("*.py")), ids=name_of)
def test_the_ir_imports_the_ir_alone(path):
    for line, target in imported_by(ast.parse(path.read_text()), ["lucid", "ir"]):
        if target.split(".")[0] == "lucid":
            allowed = ("errors", "support", "public", "ir")
            assert target.split(".")[1] in allowed, f"{path}:{line}"


def test_every_part_of_the_package_has_a_layer():
    parts = {path.name.removesuffix(".py") for path in PACKAGE.iterdir()}
    parts -= {"__init__", "__pycache__", "__main__", "py.typed"}
    assert {part for part in parts if part not in LAYER_OF and ".pyi" not in part} == set()


def test_import_order_test_sees_imports_from_above_inside_functions_too():
    early = "try:\n    from lucid import tensors\nexcept ImportError:\n    pass\n"
    late = "def f():\n    import lucid.nn\n"
    found = list(imported_by(ast.parse(early + late), ["lucid", "ir"]))
    assert found == [(2, "lucid.tensors"), (6, "lucid.nn")]
    assert layer_of("lucid.tensors") > layer_of("lucid.ir.graph")


HEAVY = """
numba llvmlite scipy optree html json subprocess asyncio concurrent.futures logging
lucid.compiler.passes.pipeline lucid.compiler.runtime.codegen lucid.nn lucid.optim
"""


def test_importing_lucid_imports_nothing_heavy():
    code = f"import sys, lucid; print(*set({HEAVY.split()}) & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


NOT_FOR_A_STORED_PROGRAM = """
numba llvmlite.binding scipy concurrent.futures glob _hashlib optree json signal cmath
lucid.ir.interpret lucid.tape.recording.body lucid.transforms.jvp lucid.compiler.jit.budget
lucid.compiler.runtime.interrupts lucid.ops.core.decorated lucid.ops.shape.bitcast
lucid.tensors.hook_handles lucid.tensors.reshaping lucid.tensors.transport
lucid.compiler.passes.pipeline lucid.compiler.passes.loops.reroll lucid.compiler.runtime.blas
lucid.ops.elementwise.complexes lucid.ops.higher_order.call lucid.ops.higher_order.control.scan
"""
FIRST_CALL = """
import sys, lucid
loss = lambda w, x: (x @ w).tanh().sum()
w, x = lucid.full((40, 30), 0.01), lucid.ones(20, 40)
print(round(lucid.jit(lucid.func.grad(loss))(w, x)[0, 0].item(), 2), end=" ")
"""


def test_the_first_call_of_a_stored_program_imports_only_what_it_needs(tmp_path):
    folder, file = tmp_path / "cache", tmp_path / "program.py"
    folder.mkdir(mode=0o700)
    unwanted = f"set({NOT_FOR_A_STORED_PROGRAM.split()})"
    file.write_text(f"{FIRST_CALL}print(*{unwanted} & set(sys.modules))")
    settings = {"LUCID_CACHE_DIR": str(folder), "LUCID_CACHE_PROGRAMS": "1", "LUCID_VERIFY": "0"}
    said = [
        subprocess.run(
            [sys.executable, str(file)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **settings},
        ).stdout.split()
        for _ in range(2)
    ]
    assert "lucid.compiler.passes.pipeline" in said[0]
    assert said[1] == [f"{20 / math.cosh(0.4) ** 2:.2f}"]


def test_imports_leave_the_garbage_collector_as_it_was():
    code = "import gc; gc.{0}able(); import lucid; lucid.jit; print(gc.isenabled())"
    for state, expected in (("en", "True"), ("dis", "False")):
        command = [sys.executable, "-c", code.format(state)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        assert run.stdout.split() == [expected]


def test_imported_objects_are_old_for_the_garbage_collector_and_frozen_ones_stay_frozen():
    code = """
import gc, numpy
if {0}:
    gc.freeze()
frozen = gc.get_freeze_count()
import lucid
print(sum(map(len, map(gc.get_objects, (0, 1)))) < 1000, gc.get_freeze_count() == frozen)
"""
    for freeze, expected in ((False, ["True", "True"]), (True, ["False", "True"])):
        command = [sys.executable, "-c", code.format(freeze)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        assert run.stdout.split() == expected
