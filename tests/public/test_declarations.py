"""A public name is declared once, and all that follows from the declarations is current."""

from __future__ import annotations

import ast
import importlib
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lucid
from lucid.numpy.protocols import dispatch, ufuncs
from lucid.numpy.protocols.declared import declared_counterparts
from lucid.public import build, index, scan
from lucid.public.lazy import homes

PACKAGE = Path(lucid.__file__).parent
NAMESPACES = sorted(index.NAMES.keys() - {"Tensor"})


def module_of(namespace):
    return lucid if namespace == "lucid" else importlib.import_module(f"lucid.{namespace}")


def test_generated_files_are_those_that_the_declarations_give():
    for path, text in build.files().items():
        assert path.read_text() == text, f"{path} is old: run python -m lucid.public.build"


def test_a_name_that_is_declared_twice_is_refused():
    source = "@public()\ndef f(): ...\n@public(aliases=('f',))\ndef g(): ...\n"
    with pytest.raises(ValueError, match="lucid.f is declared twice: m.f and m.g"):
        build.check(list(scan.in_source("m", source)))


def lists_of_names(tree):
    """Return (line, names) of every list, tuple, set or dict that has 3 or more strings."""
    for node in ast.walk(tree):
        parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        names = [x.value for x in parts if isinstance(x, ast.Constant) and isinstance(x.value, str)]
        if len(names) >= 3:
            yield node.lineno, names


def imports_of(tree):
    """Return the names that a module imports at its top level."""
    found = [x.names for x in tree.body if isinstance(x, ast.ImportFrom)]
    return {alias.asname or alias.name for names in found for alias in names}


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_a_namespace_does_not_list_its_names_again(namespace):
    """Neither as imports that hand names on, nor in `__all__`, nor in a table of strings."""
    declared = set(homes(index.NAMES[namespace]))
    path = Path(module_of(namespace).__file__)
    tree = ast.parse(path.read_text())
    again = [(line, declared.intersection(names)) for line, names in lists_of_names(tree)]
    assert [found for found in again if len(found[1]) >= 3] == []
    if namespace not in index.NAMES[namespace]:  # its functions are defined in other modules
        handed_on = {"verify"} if namespace == "ir" else set()  # it has the name of its module
        assert imports_of(tree) & declared == handed_on


def test_no_class_lists_the_declared_methods_again():
    declared = {*homes(index.NAMES["Tensor"])}
    declared.update(name for table in index.INPLACE.values() for name in homes(table))
    for path in sorted((PACKAGE / "tensors").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                names = {x.name for x in node.body if isinstance(x, ast.FunctionDef)}
                for x in node.body:
                    names |= {t.id for t in getattr(x, "targets", []) if isinstance(t, ast.Name)}
                assert names & declared == set(), path


def test_a_numpy_function_has_one_counterpart():
    declared = set(declared_counterparts())
    assert declared.isdisjoint(dispatch.ADAPTERS) and declared.isdisjoint(ufuncs.ADAPTERS)


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_declared_name_can_be_imported_from_its_namespace(namespace):
    module = module_of(namespace)
    assert set(homes(index.NAMES[namespace])) <= set(module.__all__)
    for name, (home, attribute) in homes(index.NAMES[namespace]).items():
        found, declared = getattr(module, name), getattr(importlib.import_module(home), attribute)
        assert found is declared or found.__wrapped__ is declared  # by `accepts_out`


def test_a_method_becomes_the_function_itself_on_first_use():
    code = (
        "import lucid, inspect\n"
        "kind = type(inspect.getattr_static(lucid.Tensor, 'sinh')).__name__\n"
        "x = lucid.ones(2); y = x.sinh()\n"
        "same = inspect.getattr_static(lucid.Tensor, 'sinh') is lucid.sinh.__wrapped__\n"
        "print(kind, same, inspect.signature(lucid.Tensor.tan), 'cosh_' in dir(lucid.Tensor))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["LazyMethod", "True", "(input:", "'Any')", "->", "'Any'", "True"]


def test_a_subclass_may_call_the_method_it_overrides():
    class Loud(lucid.Tensor):
        def asinh(self):
            return super().asinh() + 1.0

    assert np.allclose(Loud([1.0]).asinh().numpy(), np.arcsinh(1.0) + 1)


def test_functions_are_pickled_by_name():
    for function in (lucid.exp, lucid.linalg.inv, lucid.nn.functional.gelu, lucid.nn.Linear):
        assert pickle.loads(pickle.dumps(function)) is function


def test_a_star_import_gives_every_name():
    space: dict = {}
    exec("from lucid import *", space)
    assert set(lucid.__all__) <= set(space) and space["sinh"] is lucid.sinh


def test_in_place_methods_have_the_signature_of_their_function():
    for table in index.INPLACE.values():
        for name, (home, attribute) in homes(table).items():
            function = getattr(importlib.import_module(home), attribute)
            method = getattr(lucid.Tensor, name)
            assert method.__name__ == name
            assert inspect.signature(method) == inspect.signature(function)


def test_a_graph_in_text_may_name_operations_that_were_not_imported_yet():
    code = (
        "import lucid\n"
        "g = lucid.ir.parse('graph f(x: f32[2]):\\n    %0: f32[2] = erf x\\n    return %0')\n"
        "print(g.equations[0].op)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "erf"
