"""Type stubs of the public namespaces, from the signatures of their functions.

A parameter annotated `Any` is a tensor-like operand if its name says so, a result annotated `Any`
is a Tensor; `Dynamic` results stay `Any`. Classes and transforms are typed in their own modules and
imported by the stubs.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from lucid.public import index
from lucid.public.lazy import Home, homes, load
from lucid.public.out import ACCEPTS_OUT, accepts_out
from lucid.public.scan import PACKAGE

HEADER = """# Written by `python -m lucid.public.build`.

import builtins as _b
import collections.abc as _abc
import typing as _t

import numpy as _np

"""
GENERATED = (
    "ops",
    "linalg",
    "fft",
    "random",
    "nn.functional",
    "tensors",
)  # untyped tensor functions
TYPED = {"extend"}  # rules call its functions with literals and arrays too
OPERANDS = frozenset(
    "input other x y a b z self tensor tensor1 tensor2 tensors data values value end weight bias "
    "mat mat1 mat2 mat3 vec vec1 vec2 batch1 batch2 source src index indices mask condition "
    "boundaries sorted_sequence target query key exponent n q A B L LU_data LU_pivots x1 x2 k v w "
    "elements test_elements weights signal window real imag abs angle min max".split()
)
BY_NAME = {
    "dim": "Axis",
    "axis": "Axis",
    "dtype": "DTypeLike | None",
    "keepdim": "_b.bool",
    "keepdims": "_b.bool",
}
SEQUENCES = {"tensors", "arrays"}


class Stub:
    """The stub of one namespace, and what it has to import."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.lines: list[str] = []

    def text(self, name: str) -> str:
        used = "\n".join(self.lines)
        types = [t for t in ("Axis", "DTypeLike", "TensorLike") if f"_{t}" in used]
        for t in types:
            self.imports.add(f"from lucid.public.types import {t} as _{t}")
        if "_Tensor" in used:
            self.imports.add("from lucid.tensors.tensor import Tensor as _Tensor")
        return HEADER + "\n".join([*sorted(self.imports), "", used, ""])

    def reexport(self, name: str, home: Home) -> None:
        module, attribute = home
        self.imports.add(f"from {module} import {attribute} as {name}")

    def function(
        self, name: str, home: Home, indent: str = "", method: bool = False, package: str = ""
    ) -> None:
        """Add the signature of a function of a namespace, or of the method that it is."""
        target = load(home)
        if package:  # which has it with out=
            target = accepts_out(target, package, name)
        signature = inspect.signature(target)
        scope = inspect.unwrap(target).__globals__
        parts = list(self.parameters(signature.parameters.values(), scope, method))
        result = self.annotation(signature.return_annotation, scope, "_Tensor")
        self.lines.append(f"{indent}def {name}({', '.join(parts)}) -> {result}: ...")

    def parameters(
        self, found: Iterable[inspect.Parameter], space: dict[str, Any], method: bool
    ) -> Iterable[str]:
        """Return the source of the parameters; `method` makes the first one `self`."""
        previous: Any = None
        names = list(found)
        if method and names and names[0].kind is not inspect.Parameter.VAR_POSITIONAL:
            yield "self"
            names = names[1:]
            previous = inspect.Parameter.POSITIONAL_OR_KEYWORD
        for p in names:
            if previous is p.POSITIONAL_ONLY and p.kind is not p.POSITIONAL_ONLY:
                yield "/"
            if p.kind is p.KEYWORD_ONLY and previous not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
                yield "*"
            previous = p.kind
            star = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(p.kind.name, "")
            kind = self.annotation(p.annotation, space, self.by_name(p))
            yield f"{star}{p.name}: {kind}" + ("" if p.default is p.empty else " = ...")

    def by_name(self, p: inspect.Parameter) -> str:
        """Return the type that the name of a parameter annotated `Any` stands for."""
        if p.name in SEQUENCES:
            return "_t.Any"
        if p.name in OPERANDS:
            return "_TensorLike" if p.default is not None else "_TensorLike | None"
        return _prefixed(BY_NAME.get(p.name, "_t.Any"))

    def annotation(self, given: Any, space: dict[str, Any], dynamic: str) -> str:
        """Return an annotation as source of the stub, with `dynamic` for `Any`."""
        if given is inspect.Parameter.empty:
            return "_t.Any"
        text = given if isinstance(given, str) else getattr(given, "__name__", repr(given))
        tree = ast.parse(text, mode="eval")
        return ast.unparse(_Qualify(self, space, dynamic).visit(tree))


class _Qualify(ast.NodeTransformer):
    """Replaces names in an annotation by what the stub calls them."""

    def __init__(self, stub: Stub, space: dict[str, Any], dynamic: str) -> None:
        self.stub, self.space, self.dynamic = stub, space, dynamic

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str):
            return self.visit(ast.parse(node.value, mode="eval").body)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        module = self.space.get(getattr(node.value, "id", ""))
        if isinstance(module, ModuleType) and module is not np:
            return ast.parse(self.imported(getattr(module, node.attr)), mode="eval").body
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.parse(self.qualified(node.id), mode="eval").body

    def qualified(self, name: str) -> str:
        if name == "Any":
            return self.dynamic
        if name in ("Dynamic", "Callable"):
            return "_t.Any" if name == "Dynamic" else "_abc.Callable"
        value = self.space.get(name, getattr(builtins, name, None))
        if value is np:
            return "_np"
        if getattr(builtins, name, None) is value and value is not None:
            return f"_b.{name}"
        module = getattr(value, "__module__", "")
        if module in ("typing", "collections.abc"):
            return f"_{'t' if module == 'typing' else 'abc'}.{name}"
        if name == "Tensor":
            return "_Tensor"
        return self.imported(value) if module.startswith("lucid.") else "_t.Any"

    def imported(self, cls: Any) -> str:
        """Return the name of a class of the package, which the stub imports."""
        self.stub.imports.add(f"from {cls.__module__} import {cls.__name__} as _{cls.__name__}")
        return f"_{cls.__name__}"


def _prefixed(text: str) -> str:
    return text if text.startswith("_") else f"_{text}"


def is_generated(home: Home) -> bool:
    """True for functions of tensors, whose stubs follow from their signatures."""
    module = home[0].removeprefix("lucid.")
    return module.startswith(GENERATED) and inspect.isfunction(load(home))


def namespace_stub(space: str) -> Stub:
    """Return the stub of one namespace."""
    stub = Stub()
    found = homes(index.NAMES[space])
    package = "lucid" if space == "lucid" else f"lucid.{space}"
    accepting = {found[name] for name in ACCEPTS_OUT.get(space, ())}
    first: dict[Home, str] = {}
    for name, home in sorted(found.items()):
        if space in TYPED or not is_generated(home):
            stub.reexport(name, home)
        elif home in first:
            stub.lines.append(f"{name} = {first[home]}")
        else:
            first[home] = name
            stub.function(name, home, package=package if home in accepting else "")
    return stub


def methods() -> list[str]:
    """Return the class of the declared methods of Tensor."""
    stub = Stub()
    for name, home in sorted(homes(index.NAMES["Tensor"]).items()):
        stub.function(name, home, "    ", method=True)
    for table in index.INPLACE.values():
        for name, home in sorted(homes(table).items()):
            stub.function(name, home, "    ", method=True)
    return ["", "class _DeclaredMethods(_Traced):", *stub.lines]


def submodules(package: str) -> list[str]:
    """Return the public submodules of a package, which its `__dir__` lists."""
    module = import_module(package)
    names = set(module.__all__) - set(homes(index.NAMES[package.removeprefix("lucid.")]))
    return sorted(name for name in names if isinstance(getattr(module, name), ModuleType))


def stubs() -> dict[Path, str]:
    """Return the text of the stub of every namespace."""
    out = {}
    for space in index.NAMES:
        if space == "Tensor" or space in index.NAMES[space]:
            continue  # a module with its own definitions is typed in place
        package = "lucid" if space == "lucid" else f"lucid.{space}"
        stub = namespace_stub(space)
        for name in submodules(package):
            stub.imports.add(f"from {package} import {name} as {name}")
        if space == "lucid":
            stub.imports.add("from lucid.tape.node import Traced as _Traced")
            stub.lines += ["__version__: _b.str", *methods()]
        path = PACKAGE / space.replace(".", "/") if space != "lucid" else PACKAGE
        file = path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")
        out[file] = stub.text(space)
    return out
