"""The stubs tell the truth: calls of every public function fit the types of its stub."""

from __future__ import annotations

import ast
import builtins
import collections.abc
import importlib
import types
import typing
from pathlib import Path

import numpy as np
import pytest

import lucid
from tests.table.laws import function_of, tensors_of
from tests.table.row import arrays_for, filled, rows


class TensorLike: ...


class Axis: ...


class DTypeLike: ...


PACKAGE = Path(lucid.__file__).parent
SPACE = {
    "_b": builtins, "_t": typing, "_abc": collections.abc, "_np": np, "_Tensor": lucid.Tensor,
    "_TensorLike": TensorLike, "_Axis": Axis, "_DTypeLike": DTypeLike,
}  # fmt: skip
FILES = {"": "__init__", "linalg": "linalg/__init__", "special": "special",
         "fft": "fft/__init__", "nn.functional": "nn/functional/__init__"}  # fmt: skip


def read(path):
    """Return the functions of a stub, of its classes too, and the names that it imports."""
    tree = ast.parse(path.read_text())
    space, functions = dict(SPACE), {}
    for node in tree.body:
        match node:
            case ast.ImportFrom(module=module, names=[ast.alias(name=name, asname=alias)]):
                if alias.startswith("_") and alias not in space:
                    space[alias] = getattr(importlib.import_module(module), name)
            case ast.FunctionDef():
                functions[node.name] = node
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)):
                functions[name] = functions[other]
            case ast.ClassDef():
                functions |= {f"Tensor.{f.name}": f for f in node.body if hasattr(f, "args")}
    return functions, space


STUBS = {space: read(PACKAGE / f"{file}.pyi") for space, file in FILES.items()}
ROWS = rows()


def stub_of(name):
    space, _, last = name.rpartition(".")
    if space == "Tensor":
        return STUBS[""][0].get(name), STUBS[""][1]
    functions, names = STUBS[space]
    return functions.get(last), names


def is_number(x):
    return isinstance(x, (bool, int, float, complex, np.generic))


def fits(value, kind):
    """Return whether a value has a type of the stubs."""
    if kind is TensorLike:
        if isinstance(value, (list, tuple, range)):
            return all(fits(x, kind) for x in value)
        return isinstance(value, (lucid.Tensor, np.ndarray)) or is_number(value)
    if kind is typing.Any:
        return True
    if kind is None or kind is types.NoneType:
        return value is None
    if kind is float:
        return isinstance(value, (int, float, np.floating)) and not isinstance(value, bool)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is Axis:
        many = isinstance(value, (list, tuple)) and all(isinstance(x, int) for x in value)
        return value is None or many or isinstance(value, (int, np.integer))
    if kind is DTypeLike:
        return np.dtype(value) is not None
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, x) for x in args)
    if origin is tuple:
        if args[1:] == (...,):
            return isinstance(value, tuple) and all(fits(x, args[0]) for x in value)
        return isinstance(value, tuple) and len(value) == len(args) and all(map(fits, value, args))
    if origin in (list, collections.abc.Sequence):
        return isinstance(value, (list, tuple)) and all(fits(x, args[0]) for x in value)
    return isinstance(value, origin or kind)


def annotation(node, space):
    return typing.Any if node is None else eval(ast.unparse(node), space)


def bound(node, args, kwargs):
    """Return (parameter, value) for the arguments of a call."""
    a = node.args
    positional = [*a.posonlyargs, *a.args]
    yield from zip(positional, args)
    yield from ((a.vararg, x) for x in args[len(positional) :])
    named = {p.arg: p for p in [*positional, *a.kwonlyargs]}
    yield from ((named[key], value) for key, value in kwargs.items())


def misfits(row):
    node, space = stub_of(row.name)
    if node is None:
        return
    for c in row.calls:
        args, kwargs = filled(c, tensors_of(arrays_for(c)))
        for parameter, value in bound(node, args, kwargs):
            kind = annotation(parameter.annotation, space)
            if not fits(value, kind):
                yield f"{row.name}({c}): {parameter.arg}={value!r} is not {kind}"
        result = function_of(row)(*args, **kwargs)
        kind = annotation(node.returns, space)
        if not fits(result, kind):
            yield f"{row.name}({c}) -> {type(result).__name__} is not {kind}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_calls_and_results_have_the_types_of_the_stub(row):
    assert list(misfits(row)) == []
