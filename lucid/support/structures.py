"""Trees of tuples, lists, dicts and None, taken apart without optree, and what is left of them.

Such a tree is simple: its leaves are in optree's order. Every other tree is left to optree, which
takes 7 ms to import: it knows namedtuples and the classes that are registered, and it says in what
a tree differs from a structure.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from lucid.public.lazy import LazyModule
from lucid.support.caches import cached_property, memoize

optree: Any = LazyModule("optree")
NAMESPACE = "lucid"
LEAF = ...
KEY_CLASSES = frozenset([str, int])  # of dicts in simple trees; 1 and True would be one key
MAX_DEPTH = 50  # of simple trees, since what walks them is recursive
FEW_USES = 16  # of a simple structure; then it is used often, and optree is faster
_registered: set[type] = set()
_leaves: set[type] = set()  # classes known not to be pytrees
_others: set[type] = set()  # classes known not to be in simple trees


class OtherTree(Exception):
    """A tree that is not simple, or has another structure than it should have."""


class Structure:
    """A tree without its leaves.

    nodes    of a simple tree LEAF, None, (class, children) of a tuple or a list, or
             (dict, children, sorted keys, keys as they were inserted). Children are their number
             if all are leaves, a tuple of nodes otherwise. Of any other tree optree's PyTreeSpec
    """

    def __init__(self, nodes: Any, num_leaves: int) -> None:
        self.nodes, self.num_leaves = nodes, num_leaves
        self.uses = 0

    @cached_property
    def spec(self) -> Any:
        """optree's PyTreeSpec of the tree."""
        if not is_simple(self.nodes):
            return self.nodes
        tree = build(self.nodes, iter(range(self.num_leaves)))
        return optree.tree_structure(tree, namespace=NAMESPACE)

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Structure):
            return False
        if self.nodes == other.nodes:
            return True
        simple = is_simple(self.nodes), is_simple(other.nodes)
        if all(simple):
            return are_equal(self.nodes, other.nodes)
        return any(simple) and bool(self.spec == other.spec)

    def __hash__(self) -> int:
        return self.num_leaves

    def __repr__(self) -> str:
        return repr(self.spec)

    def __reduce__(self) -> Any:
        return Structure, (self.nodes, self.num_leaves)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the tree with these leaves."""
        given = list(leaves)
        if self.is_rare() and len(given) == self.num_leaves:
            return build(self.nodes, iter(given))
        return self.spec.unflatten(given)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return what a tree has where this structure has leaves; ValueError if it differs."""
        parts: list[Any] = []
        if self.is_rare():
            try:
                gather(self.nodes, tree, parts)
                return parts
            except OtherTree:
                pass
        parts = self.spec.flatten_up_to(tree)
        return parts

    def is_rare(self) -> bool:
        """Count a use of a simple structure; after a few, optree's methods replace these two."""
        if self.nodes is LEAF or self.nodes is None:
            return True
        self.uses += 1
        if self.uses <= FEW_USES and is_simple(self.nodes):
            return True
        self.__dict__.update(unflatten=self.spec.unflatten, flatten_up_to=self.spec.flatten_up_to)
        return False

    def is_leaf(self) -> bool:
        return self.type is None

    @property
    def type(self) -> Any:
        """The class of the outermost container, None for a leaf."""
        if self.nodes is LEAF or self.nodes is None:
            return None if self.nodes is LEAF else None.__class__
        return self.nodes[0] if is_simple(self.nodes) else self.nodes.type

    @property
    def num_nodes(self) -> int:
        """The number of leaves and containers, None included."""
        return int(self.spec.num_nodes)

    @property
    def num_children(self) -> int:
        return len(self.children())

    def children(self) -> list[Structure]:
        if not is_simple(self.nodes):
            return [structure_of_spec(child) for child in self.nodes.children()]
        return [structure(nodes, count_leaves(nodes)) for nodes in children_of(self.nodes)]

    def entries(self) -> list[Any]:
        """Return the keys or indices of the children."""
        if not is_simple(self.nodes):
            return list(self.nodes.entries())
        return list(self.nodes[2] if self.type is dict else range(self.num_children))


@memoize(1024)
def structure(nodes: Any, num_leaves: int) -> Structure:
    """Return the one Structure for these nodes, so that all of its uses are counted."""
    return Structure(nodes, num_leaves)


def is_simple(nodes: Any) -> bool:
    return nodes is LEAF or nodes is None or nodes.__class__ is tuple


def children_of(nodes: Any) -> tuple[Any, ...]:
    if nodes is LEAF or nodes is None:
        return ()
    children: Any = nodes[1]
    return (LEAF,) * children if children.__class__ is int else children


def count_leaves(nodes: Any) -> int:
    if nodes is LEAF or nodes is None:
        return int(nodes is LEAF)
    children = nodes[1]
    return children if children.__class__ is int else sum(map(count_leaves, children))


def are_equal(a: Any, b: Any) -> bool:
    """True for equal nodes but for the order in which keys were inserted."""
    if a == b:
        return True
    if a.__class__ is not tuple or b.__class__ is not tuple or a[0] is not b[0]:
        return False
    xs, ys = children_of(a), children_of(b)
    return a[2:3] == b[2:3] and len(xs) == len(ys) and all(map(are_equal, xs, ys))


def structure_of_spec(spec: Any) -> Structure:
    return Structure(spec, spec.num_leaves)


def nodes_of(tree: Any, leaves: list[Any], depth: int = MAX_DEPTH) -> Any:
    """Return the nodes of a simple tree and append its leaves."""
    cls = type(tree)
    parts: Any = tree
    keys: tuple[Any, ...] = ()
    order = keys
    if cls is dict:
        keys = order = tuple(tree)
        if order:
            if not KEY_CLASSES.issuperset(map(type, order)):
                raise OtherTree
            try:
                keys = tuple(sorted(order))
            except TypeError:  # strings and numbers
                raise OtherTree from None
        parts = tree.values() if keys == order else [tree[key] for key in keys]
    elif cls is not tuple and cls is not list:
        if tree is None:
            return None
        if cls not in _leaves and not is_leaf(cls):
            raise OtherTree
        leaves.append(tree)
        return LEAF
    children: Any = len(parts)
    if _leaves.issuperset(map(type, parts)):
        leaves += parts
    elif depth:
        children = tuple([nodes_of(x, leaves, depth - 1) for x in parts])
        if children.count(LEAF) == len(parts):
            children = len(parts)
    else:
        raise OtherTree
    return (cls, children, keys, order) if cls is dict else (cls, children)


def is_leaf(cls: type) -> bool:
    """True for a class that neither optree nor Lucid takes apart."""
    if cls in _others:
        return False
    if issubclass(cls, (tuple, dict, deque)) or is_tree(cls) or is_registered(cls):
        _others.add(cls)  # whatever it is, optree will know
        return False
    _leaves.add(cls)
    return True


def is_registered(cls: type) -> bool:
    """True for a class that is a pytree, for anybody who uses optree."""
    if "optree" not in sys.modules:
        return False
    return optree.register_pytree_node.get(cls, namespace=NAMESPACE) is not None


def build(nodes: Any, leaves: Iterator[Any]) -> Any:
    """Return the simple tree of these nodes and leaves."""
    if nodes is LEAF:
        return next(leaves)
    if nodes is None:
        return None
    children = nodes[1]
    parts: Iterable[Any]
    if children.__class__ is int:
        parts = islice(leaves, children)
    else:
        parts = [build(x, leaves) for x in children]
    if nodes[0] is not dict:
        return nodes[0](parts)
    _, _, keys, order = nodes
    found = dict(zip(keys, parts))
    return found if keys == order else {key: found[key] for key in order}


def gather(nodes: Any, tree: Any, parts: list[Any]) -> None:
    """Append what a tree has where a simple structure has leaves."""
    if nodes is LEAF:
        parts.append(tree)
        return
    if nodes is None:
        if tree is not None:
            raise OtherTree
        return
    children = nodes[1]
    n = children if children.__class__ is int else len(children)
    if type(tree) is not nodes[0] or len(tree) != n:
        raise OtherTree
    if nodes[0] is dict:
        try:
            tree = [tree[key] for key in nodes[2]]
        except KeyError:
            raise OtherTree from None
    if n is children:
        parts += tree
    else:
        for inside, x in zip(children, tree):
            gather(inside, x, parts)


def unregistered(leaves: list[Any]) -> list[type]:
    """Return the classes of leaves that should be pytrees."""
    if _leaves.issuperset(map(type, leaves)):
        return []
    return [cls for cls in set(map(type, leaves)) if not is_leaf(cls) and is_tree(cls)]


def is_tree(cls: type) -> bool:
    """True for a dataclass that should be a pytree but is not registered yet."""
    if not hasattr(cls, "__dataclass_fields__") or hasattr(cls, "__lucid_leaf__"):
        return False
    return cls not in _registered


def register(cls: type, children: Any, rebuild: Any) -> None:
    """Register a class as a pytree, by optree's functions."""
    optree.register_pytree_node(cls, children, rebuild, namespace=NAMESPACE)
    _registered.add(cls)
    _leaves.discard(cls)


def subscripts(structure: Structure) -> list[str] | None:
    """Return `['w'][0]` for every leaf of a simple tree, None if the tree is not simple."""
    return subscripts_of(structure.nodes) if is_simple(structure.nodes) else None


def subscripts_of(nodes: Any) -> list[str]:
    children = children_of(nodes)
    if not children:
        return [""] * (nodes is LEAF)
    keys = nodes[2] if nodes[0] is dict else range(len(children))
    return [f"[{k!r}]{rest}" for k, x in zip(keys, children) for rest in subscripts_of(x)]


def prefix_parts(prefix: Any, tree: Any) -> list[tuple[Any, Any]]:
    """Return (leaf, what the tree has there) of a prefix of tuples, lists, integers and None."""
    cls = type(prefix)
    if prefix is None or cls is int:
        return [(prefix, tree)]
    if cls not in (tuple, list) or type(tree) is not cls or len(tree) != len(prefix):
        raise OtherTree
    return [pair for part, inside in zip(prefix, tree) for pair in prefix_parts(part, inside)]
