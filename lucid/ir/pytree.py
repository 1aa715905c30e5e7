"""Pytrees: flatten and unflatten nested tuples, lists, dicts, namedtuples and dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from lucid.support import structures
from lucid.support.structures import NAMESPACE, OtherTree, Structure, optree, register


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of a tree and its structure. None is an empty tree, as in JAX."""
    leaves: list[Any] = []
    try:
        nodes = structures.nodes_of(tree, leaves)
    except OtherTree:
        return flatten_other(tree)
    return leaves, structures.structure(nodes, len(leaves))


def flatten_other(tree: Any) -> tuple[list[Any], Structure]:
    """`flatten` by optree, of a tree that is not simple."""
    leaves, spec = optree.tree_flatten(tree, namespace=NAMESPACE)
    trees = structures.unregistered(leaves)
    for cls in trees:
        register_dataclass(cls)
    return flatten_other(tree) if trees else (leaves, Structure(spec, len(leaves)))


def unflatten(structure: Any, leaves: Iterable[Any]) -> Any:
    return structure.unflatten(leaves)


def register_dataclass(cls: type) -> None:
    """Register a dataclass as a pytree of its fields."""
    names = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]

    def children(value: Any) -> tuple[tuple[Any, ...], None, tuple[str, ...]]:
        return tuple(getattr(value, name) for name in names), None, tuple(names)

    def rebuild(_: Any, values: Any) -> Any:
        out: Any = object.__new__(cls)
        for name, value in zip(names, values):
            object.__setattr__(out, name, value)
        return out

    register(cls, children, rebuild)


def broadcast_prefix(prefix: Any, tree: Any) -> list[Any]:
    """Return a leaf of `prefix` for every leaf of `tree`; None is a leaf of `prefix` only."""
    try:
        pairs = structures.prefix_parts(prefix, tree)
    except OtherTree:
        flatten(tree)  # registers dataclasses
        leaves, spec = optree.tree_flatten(prefix, none_is_leaf=True, namespace=NAMESPACE)
        pairs = list(zip(leaves, spec.flatten_up_to(tree)))
    return [x for x, part in pairs for _ in flatten(part)[0]]
