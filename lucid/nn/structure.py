"""A Module as a pytree: its tensors are the leaves, everything else is its Structure.

A parameter that is shared inside the module is one leaf. The Structure rebuilds the module, with
the sharing, around other leaves. Two Structures are equal if the modules differ only in their
tensors, so `jit` finds its program again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.ops.core.constant_key import ByIdentity, constant_key
from lucid.support.structures import register as register_tree

REGISTRIES = ("_parameters", "_buffers", "_modules")


class Structure:
    """A Module without its tensors: a tree of Parts."""

    __slots__ = ("key", "root")

    def __init__(self, root: Part) -> None:
        self.root = root
        self.key = root.key

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Structure) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def rebuild(self, leaves: Sequence[Any]) -> Any:
        """Return a module of this structure around other leaves."""
        return rebuild_part(self.root, leaves, {})


class Part:
    """One module of a Structure: its class, plain attributes, and indices of its tensors."""

    __slots__ = ("attributes", "cls", "key", "modules", "tensors")

    cls: type
    attributes: dict[str, Any]
    tensors: dict[str, dict[str, int | None]]
    modules: dict[str, Any]
    key: Any


def build_part(
    module: Any, path: str, leaves: dict[int, Any], parts: dict[int, Part], paths: list[str]
) -> Part:
    """Return the Part of a module; new tensors are added to `leaves` by identity, in order."""
    if id(module) in parts:
        return parts[id(module)]
    part = parts[id(module)] = Part()
    part.cls = type(module)
    inside = module.__dict__
    part.attributes = {name: x for name, x in inside.items() if name not in REGISTRIES}
    part.tensors = {}
    for place in REGISTRIES[:2]:
        part.tensors[place] = {
            name: leaf_index(x, f"{path}{name}", leaves, paths)
            for name, x in inside.get(place, {}).items()
        }
    number = len(parts)
    part.key = ("again", number)
    part.modules = {
        name: None if child is None else build_part(child, f"{path}{name}.", leaves, parts, paths)
        for name, child in inside.get("_modules", {}).items()
    }
    part.key = (
        part.cls,
        tuple((name, comparison_key(x)) for name, x in part.attributes.items()),
        tuple((place, tuple(names.items())) for place, names in part.tensors.items()),
        tuple((name, None if c is None else c.key) for name, c in part.modules.items()),
    )
    return part


def leaf_index(x: Any, path: str, leaves: dict[int, Any], paths: list[str]) -> int | None:
    """Return the index of a tensor among the leaves, adding it if it is new."""
    if x is None:
        return None
    if id(x) not in leaves:
        leaves[id(x)] = (len(leaves), x)
        paths.append(path)
    return leaves[id(x)][0]


def comparison_key(x: Any) -> Any:
    """Return a plain value with its type; any other object compares by identity."""
    return constant_key(x, key_of_object)


def key_of_object(x: Any) -> Any:
    return x.structural_key() if hasattr(type(x), "structural_key") else ByIdentity(x)


def rebuild_part(part: Part, leaves: Sequence[Any], done: dict[int, Any]) -> Any:
    """Return the module of a Part around other leaves."""
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
        name: None if child is None else rebuild_part(child, leaves, done)
        for name, child in part.modules.items()
    }
    return module


def flatten(module: Any) -> tuple[list[Any], Structure, tuple[str, ...]]:
    """Return the distinct tensors of a module, its Structure, and the names of the tensors."""
    leaves: dict[int, tuple[int, Any]] = {}
    paths: list[str] = []
    root = build_part(module, "", leaves, {}, paths)
    return [x for _, x in leaves.values()], Structure(root), tuple(paths)


def register(cls: type) -> None:
    """Register a Module class as a pytree node."""

    def rebuild(structure: Any, leaves: Any) -> Any:
        return structure.rebuild(list(leaves))

    register_tree(cls, flatten, rebuild)
