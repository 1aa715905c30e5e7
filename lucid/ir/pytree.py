"""Pytrees: nested tuples, lists, dicts, namedtuples and dataclasses, flattened and put back."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import optree

NAMESPACE = "lucid"
_registered: set[type] = set()


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves of a tree and its structure. None is an empty tree, as in JAX."""
    leaves, structure = optree.tree_flatten(tree, namespace=NAMESPACE)
    new = {type(x) for x in leaves if dataclasses.is_dataclass(x) and not isinstance(x, type)}
    if new := {cls for cls in new if cls not in _registered and not hasattr(cls, "__lucid_leaf__")}:
        for cls in new:
            register_dataclass(cls)
        return flatten(tree)
    return list(leaves), structure


def unflatten(structure: Any, leaves: Iterable[Any]) -> Any:
    return optree.tree_unflatten(structure, leaves)


def register_dataclass(cls: type) -> None:
    """Let instances of a dataclass be trees of their fields."""
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


def tree_map(function: Any, tree: Any, *rest: Any) -> Any:
    """`function` applied to every leaf."""
    leaves, structure = flatten(tree)
    others = [flatten(other)[0] for other in rest]
    return unflatten(structure, [function(*xs) for xs in zip(leaves, *others, strict=True)])


def broadcast_prefix(prefix: Any, tree: Any) -> list[Any]:
    """A leaf of `prefix` for every leaf of `tree`; None counts as a leaf of the prefix alone."""
    flatten(tree)
    leaves, structure = optree.tree_flatten(prefix, none_is_leaf=True, namespace=NAMESPACE)
    parts = structure.flatten_up_to(tree)
    return [x for x, part in zip(leaves, parts) for _ in flatten(part)[0]]
