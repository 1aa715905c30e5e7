"""What the compiler knows of an operation stands in its class, and in no table."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import lucid
from lucid.compiler.resolve import resolve
from lucid.ir.primitive import all_primitives

COMPILER = Path(lucid.__file__).parent / "compiler"
# Passes whose rewrites are the algebra of particular operations, and may therefore name them.
ALGEBRA = {
    "passes/loops/hoist.py",
    "passes/loops/merge_loops.py",
    "passes/loops/reroll.py",
    "passes/simplify.py",
    "passes/rules/simplify_indexing.py",
    "passes/rules/simplify_matmul.py",
    "passes/sink.py",
    "passes/transpose_matmul.py",
    "plan/epilogue.py",
}
MAX_TESTS = 88  # of operation classes, in those passes


PRIMITIVES = list(all_primitives().values())
CLASSES = {cls.__name__ for cls in PRIMITIVES}
KINDS = {base.__name__ for cls in PRIMITIVES for base in cls.__mro__[:-1]}


@pytest.mark.parametrize("cls", [c for c in PRIMITIVES if c.lowering], ids=lambda c: c.name)
def test_every_lowering_exists(cls):
    lowering = resolve(cls.lowering)
    assert callable(lowering.accepts) and callable(lowering.lower)


def test_every_rule_exists():
    for cls in PRIMITIVES:
        for rule in (cls.decomposition, cls.complex_rule):
            assert rule is None or len(inspect.signature(resolve(rule)).parameters) == 2, cls


def test_facts_fit_the_fields_they_speak_of():
    for cls in PRIMITIVES:
        assert not cls.monoid or "axes" in cls.__match_args__, cls
        assert not cls.scan or "axis" in cls.__match_args__, cls
        assert not cls.value_graph or cls.value_graph in cls.__match_args__, cls
        assert cls.operand_layout in ("any", "dense", "matrix", "rows"), cls


def operations_named(node: ast.AST, imported: set[str]) -> list[str]:
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in imported]


def imported_operations(tree: ast.Module) -> set[str]:
    """The names of primitives and kinds that a module imports."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    return {a.asname or a.name for n in found for a in n.names if a.name in CLASSES | KINDS} - {
        "Primitive"
    }


def class_tests(tree: ast.Module, imported: set[str]) -> list[int]:
    """The lines that ask whether something is of an operation's class."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
            "isinstance",
            "issubclass",
        ):
            lines += [node.lineno] * bool(operations_named(node.args[1], imported))
        elif isinstance(node, ast.MatchClass):
            lines += [node.lineno] * bool(operations_named(node.cls, imported))
        elif isinstance(node, ast.Compare):
            lines += [
                node.lineno
                for side in (node.left, *node.comparators)
                if isinstance(side, ast.Name) and side.id in imported
            ]
    return lines


def tables(tree: ast.Module, imported: set[str]) -> list[int]:
    """The lines of module-level collections that list operations, as classes or as strings."""
    lines = []
    for node in tree.body:
        value = getattr(node, "value", None)
        if isinstance(value, (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.DictComp, ast.BinOp)):
            words = [n.value for n in ast.walk(value) if isinstance(n, ast.Constant)]
            listed = [w for w in words if isinstance(w, str) and w in CLASSES]
            lines += [node.lineno] * bool(operations_named(value, imported) or len(listed) > 1)
    return lines


def test_no_table_of_the_compiler_lists_operations_and_few_tests_ask_for_their_classes():
    asked = {}
    for path in sorted(COMPILER.rglob("*.py")):
        tree = ast.parse(path.read_text())
        name, imported = str(path.relative_to(COMPILER)), imported_operations(tree)
        assert not tables(tree, imported), f"{name}: give the fact to the classes (ir/facts.py)"
        asked[name] = class_tests(tree, imported)
    elsewhere = {name: lines for name, lines in asked.items() if lines and name not in ALGEBRA}
    assert not elsewhere, "ask for a fact (ir/facts.py) instead of a class"
    assert 0 < sum(map(len, asked.values())) <= MAX_TESTS
