"""Reference counts are compared with what was measured at import, never with a number."""

from __future__ import annotations

import ast
from pathlib import Path
from sys import getrefcount

import numpy as np

import lucid
from lucid.tape.node import LOCAL_REFERENCES

PACKAGE = Path(lucid.__file__).parent


def test_no_reference_count_is_compared_with_a_number():
    numbers = []
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        constants = {
            node.targets[0].id
            for node in tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and "getrefcount" in ast.unparse(node.left):
                with_what = node.comparators[0]
                named = isinstance(with_what, ast.Name) and with_what.id in constants
                if named or isinstance(with_what, ast.Constant):
                    numbers.append(f"{path}:{node.lineno}")
    assert not numbers


def test_a_reference_from_a_list_adds_one_to_the_count_of_a_local():
    x = object()
    assert getrefcount(x) == LOCAL_REFERENCES
    held = [x]
    assert getrefcount(x) == LOCAL_REFERENCES + 1
    del held


def test_a_donated_array_that_nobody_else_holds_is_not_copied():
    double = lucid.jit(lambda x: x * 2.0, donate_argnums=0)
    double(lucid.ones(1000))
    for _ in range(3):
        x = lucid.ones(1000)
        address = x.value.ctypes.data
        y = double(x)
        assert y.value.ctypes.data == address
        np.testing.assert_array_equal(y.numpy(), 2.0)
        shared = lucid.ones(1000)
        array = shared.value
        double(shared)
        np.testing.assert_array_equal(array, 1.0)
