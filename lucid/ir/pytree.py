"""Pytrees: flatten and unflatten nested tuples, lists, dicts, namedtuples and dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from lucid.public.lazy import LazyModule

optree: Any = LazyModule("optree")  # 10 ms that eager code does not need
NAMESPACE = "lucid"
_registered: set[type] = set()
_leaves: set[type] = set()  # classes known not to be pytrees


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """Return the leaves of a tree and its structure. None is an empty tree, as in JAX."""
    leaves, structure = optree.tree_flatten(tree, namespace=NAMESPACE)
    unknown = {x.__class__ for x in leaves} - _leaves
    if unknown:
        trees = [cls for cls in unknown if is_tree(cls)]
        _leaves.update(unknown.difference(trees))
        for cls in trees:
            register_dataclass(cls)
        if trees:
            return flatten(tree)
    return list(leaves), structure


def is_tree(cls: type) -> bool:
    """True for a dataclass that should be a pytree but is not registered yet."""
    if not dataclasses.is_dataclass(cls) or hasattr(cls, "__lucid_leaf__"):
        return False
    return cls not in _registered


def unflatten(structure: Any, leaves: Iterable[Any]) -> Any:
    return optree.tree_unflatten(structure, leaves)


def register_dataclass(cls: type) -> None:
    """Register a dataclass as a pytree of its fields."""
    names = [f.name for f in dataclasses.fields(cls)]

    def children(value: Any) -> tuple[tuple[Any, ...], None, tuple[str, ...]]:
        return tuple(getattr(value, name) for name in names), None, tuple(names)

    def rebuild(_: Any, values: Any) -> Any:
        out: Any = object.__new__(cls)
        for name, value in zip(names, values):
            object.__setattr__(out, name, value)
        return out

    optree.register_pytree_node(cls, children, rebuild, namespace=NAMESPACE)
    _registered.add(cls)


def broadcast_prefix(prefix: Any, tree: Any) -> list[Any]:
    """Return a leaf of `prefix` for every leaf of `tree`; None is a leaf of `prefix` only."""
    flatten(tree)
    leaves, structure = optree.tree_flatten(prefix, none_is_leaf=True, namespace=NAMESPACE)
    parts = structure.flatten_up_to(tree)
    return [x for x, part in zip(leaves, parts) for _ in flatten(part)[0]]
