"""A Module as a pytree: its tensors are the leaves, everything else is its Structure.

A parameter that is shared inside the module is one leaf. The Structure rebuilds the module, with
the sharing, around other leaves; two Structures are equal where the modules differ in their tensors
alone, so `jit` finds its program again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import optree

from lucid.ir.pytree import NAMESPACE

APART = ("_parameters", "_buffers", "_modules")
PLAIN = (int, float, str, bool, complex, bytes, type(None))


class Structure:
    """A Module without its tensors: the Parts, from the outermost module on."""

    __slots__ = ("key", "root")

    def __init__(self, root: Part) -> None:
        self.root = root
        self.key = root.key

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Structure) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def rebuild(self, leaves: Sequence[Any]) -> Any:
        return rebuilt(self.root, leaves, {})


class Part:
    """One module of a Structure: its class, its plain attributes, and where its tensors stand."""

    __slots__ = ("attributes", "cls", "key", "modules", "tensors")

    cls: type
    attributes: dict[str, Any]
    tensors: dict[str, dict[str, int | None]]
    modules: dict[str, Any]
    key: Any


def part_of(
    module: Any, path: str, leaves: dict[int, Any], parts: dict[int, Part], paths: list[str]
) -> Part:
    """The Part of a module; new tensors are added to `leaves` by identity, in order."""
    if id(module) in parts:
        return parts[id(module)]
    part = parts[id(module)] = Part()
    part.cls = type(module)
    inside = module.__dict__
    part.attributes = {name: x for name, x in inside.items() if name not in APART}
    part.tensors = {}
    for place in APART[:2]:
        part.tensors[place] = {
            name: number_of(x, f"{path}{name}", leaves, paths)
            for name, x in inside.get(place, {}).items()
        }
    number = len(parts)
    part.key = ("again", number)
    part.modules = {
        name: None if child is None else part_of(child, f"{path}{name}.", leaves, parts, paths)
        for name, child in inside.get("_modules", {}).items()
    }
    part.key = (
        part.cls,
        tuple((name, comparable(x)) for name, x in part.attributes.items()),
        tuple((place, tuple(names.items())) for place, names in part.tensors.items()),
        tuple((name, None if c is None else c.key) for name, c in part.modules.items()),
    )
    return part


def number_of(x: Any, path: str, leaves: dict[int, Any], paths: list[str]) -> int | None:
    if x is None:
        return None
    if id(x) not in leaves:
        leaves[id(x)] = (len(leaves), x)
        paths.append(path)
    return leaves[id(x)][0]


def comparable(x: Any) -> Any:
    """A plain value by itself, with its type; any other object by its identity."""
    kind = type(x)
    if kind in PLAIN:
        return (kind, x)
    if kind in (tuple, list, set, frozenset):
        return (kind, tuple(map(comparable, x)))
    if kind is dict:
        return (kind, tuple((key, comparable(value)) for key, value in x.items()))
    return x.structural_key() if hasattr(kind, "structural_key") else Same(x)


class Same:
    """An object that equals only itself."""

    __slots__ = ("object",)

    def __init__(self, object: Any) -> None:
        self.object = object

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Same) and self.object is other.object

    def __hash__(self) -> int:
        return id(self.object)


def rebuilt(part: Part, leaves: Sequence[Any], done: dict[int, Any]) -> Any:
    if id(part) in done:
        return done[id(part)]
    module: Any = object.__new__(part.cls)
    done[id(part)] = module
    module.__dict__.update(part.attributes)
    for place, names in part.tensors.items():
        module.__dict__[place] = {
            name: None if i is None else leaves[i] for name, i in names.items()
        }
    module.__dict__["_modules"] = {
        name: None if child is None else rebuilt(child, leaves, done)
        for name, child in part.modules.items()
    }
    return module


def flatten(module: Any) -> tuple[list[Any], Structure, tuple[str, ...]]:
    """The different tensors of a module, its Structure, and the names of the tensors."""
    leaves: dict[int, tuple[int, Any]] = {}
    paths: list[str] = []
    root = part_of(module, "", leaves, {}, paths)
    return [x for _, x in leaves.values()], Structure(root), tuple(paths)


def register(cls: type) -> None:
    """Let the instances of a class of Modules be pytrees."""

    def rebuild(structure: Any, leaves: Any) -> Any:
        return structure.rebuild(list(leaves))

    optree.register_pytree_node(cls, flatten, rebuild, namespace=NAMESPACE)
