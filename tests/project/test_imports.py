"""The layers of the package hold, and importing it stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lucid

PACKAGE = Path(lucid.__file__).parent
FACE = 7  # tensors, autograd, func and what stands beside them
LAYERS = {
    "errors": 0,
    "ir": 1,
    "tape": 2,
    "ops": 3,
    "transforms": 4,
    "ops.higher_order": 5,
    "compiler": 6,
    "nn": 8,
    "optim": 8,
    "utils": 8,
}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer_of(module: str) -> int:
    """The layer of `lucid.<part>...`; the package itself stands above all of them."""
    parts = module.split(".")
    if len(parts) == 1:
        return max(LAYERS.values()) + 1
    return LAYERS.get(".".join(parts[1:3]), LAYERS.get(parts[1], FACE))


def imported_by(body: list[ast.stmt], package: list[str]) -> Iterator[tuple[int, str]]:
    """(line, module) of every import that runs when the module is imported."""
    for node in body:
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
                continue
            case ast.If() | ast.Try() | ast.With() | ast.ClassDef():
                parts = [node.body, getattr(node, "orelse", []), getattr(node, "finalbody", [])]
                parts += [handler.body for handler in getattr(node, "handlers", [])]
                for part in parts:
                    yield from imported_by(part, package)


def is_module(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_imports_only_its_own_layer_and_those_below(path):
    name = name_of(path)
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for line, target in imported_by(ast.parse(path.read_text()).body, package):
        if target.split(".")[0] == "lucid":
            assert layer_of(target) <= layer_of(name), f"{path}:{line}: {name} imports {target}"


def test_import_order_test_sees_an_import_from_above():
    early = "try:\n    from lucid import tensors\nexcept ImportError:\n    pass\n"
    late = "def f():\n    import lucid.nn\n"
    found = list(imported_by(ast.parse(early + late).body, ["lucid", "ir"]))
    assert found == [(2, "lucid.tensors")]
    assert layer_of("lucid.tensors") > layer_of("lucid.ir.graph")


def test_importing_lucid_imports_no_compiler_and_no_scipy():
    code = "import sys, lucid; print(*{'numba', 'llvmlite', 'scipy'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
