"""Read the `@public` declarations of the package from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent.parent
DECORATORS = ("public", "public_function", "creation_function")


@dataclass(frozen=True)
class Declaration:
    """What `@public` says about one name."""

    module: str  # where the object is defined, without "lucid."
    attribute: str  # its name there
    name: str  # its public name
    namespaces: tuple[str, ...]
    inplace: bool | str
    inplace_function: bool
    numpy: tuple[str, ...]


def modules() -> Iterator[tuple[str, Path]]:
    """Return the name, without "lucid.", and the file of every module of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def declarations() -> list[Declaration]:
    """Return every declaration of the package."""
    return [found for module, path in modules() for found in in_source(module, path.read_text())]


def in_source(module: str, source: str) -> Iterator[Declaration]:
    """Return the declarations in the source of one module."""
    for node in _statements(ast.parse(source).body):
        match node:
            case ast.FunctionDef(name=attribute) | ast.ClassDef(name=attribute):
                calls = node.decorator_list
            case ast.Assign(targets=[ast.Name(id=attribute)], value=ast.Call(func=call)):
                calls = [call]
            case ast.AnnAssign(target=ast.Name(id=attribute), value=ast.Call(func=call)):
                calls = [call]
            case _:
                continue
        for call in calls:
            if isinstance(call, ast.Call) and ast.unparse(call.func) in DECORATORS:
                yield from _declared(module, attribute, call)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Return the statements of a module, those inside `with` included."""
    for node in body:
        yield from _statements(node.body) if isinstance(node, ast.With) else [node]


def _declared(module: str, attribute: str, call: ast.Call) -> Iterator[Declaration]:
    """Return one Declaration for the name and one for each alias in a call of `public`."""
    namespaces = tuple([ast.literal_eval(arg) for arg in call.args]) or ("lucid",)
    options: dict[str, Any] = {k.arg or "": ast.literal_eval(k.value) for k in call.keywords}
    numpy = options.get("numpy", ())
    counterparts = (numpy,) if isinstance(numpy, str) else numpy
    as_function = options.get("inplace_function", False)
    inplace = options.get("inplace", False) or as_function
    name = options.get("name", attribute)
    for given in (name, *options.get("aliases", ())):
        yield Declaration(module, attribute, given, namespaces, inplace, as_function, counterparts)
        counterparts = ()
