"""lucid.tree: nested containers as trees of leaves, and classes as such trees, as in jax.tree.

Tuples, lists, dictionaries, named tuples, dataclasses and Modules are trees; None is an empty one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from lucid.errors import ArgumentError
from lucid.ir.pytree import flatten as flatten_tree
from lucid.ir.pytree import unflatten as unflatten_tree
from lucid.public.declare import public
from lucid.public.lazy import attach
from lucid.support.structures import NAMESPACE, optree, register, structure_of_spec

C = TypeVar("C", bound=type)
__getattr__, __dir__, __all__ = attach(__name__)
IsLeaf = Callable[[Any], bool] | None


@public("tree")
def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], Any]:
    """Return the leaves of a tree and its structure.

    >>> import lucid
    >>> leaves, structure = lucid.tree.flatten({"b": 1, "a": (2, None)})
    >>> leaves, lucid.tree.unflatten(structure, "xy")
    ([2, 1], {'b': 'y', 'a': ('x', None)})
    """
    found = flatten_tree(tree)  # registers dataclasses
    if is_leaf is None:
        return found
    leaves, spec = optree.tree_flatten(tree, is_leaf=is_leaf, namespace=NAMESPACE)
    return list(leaves), structure_of_spec(spec)


@public("tree")
def unflatten(structure: Any, leaves: Iterable[Any]) -> Any:
    """Return the tree with this structure and these leaves."""
    return unflatten_tree(structure, leaves)


@public("tree")
def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of a tree."""
    return flatten(tree, is_leaf)[0]


@public("tree")
def structure(tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Return the structure of a tree, which `unflatten` takes."""
    return flatten(tree, is_leaf)[1]


@public("tree", name="map")
def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply `f` to every leaf, with what is at the same position in the other trees.

    >>> import lucid
    >>> lucid.tree.map(lambda x, y: x + y, {"w": 1, "b": 2}, {"w": 10, "b": 20})
    {'w': 11, 'b': 22}
    """
    found, shape = flatten(tree, is_leaf)
    try:
        others = [shape.flatten_up_to(other) for other in rest]
    except ValueError as error:
        raise ArgumentError(f"tree.map: the trees have different structures: {error}") from None
    return unflatten_tree(shape, [f(*xs) for xs in zip(found, *others)])


@public("tree", name="reduce")
def tree_reduce(f: Callable[[Any, Any], Any], tree: Any, initializer: Any = ...) -> Any:
    """Combine all leaves with `f`, from the first to the last."""
    found = leaves(tree)
    return (
        functools.reduce(f, found)
        if initializer is ...
        else functools.reduce(f, found, initializer)
    )


@public("tree", name="all")
def tree_all(tree: Any) -> bool:
    """True if every leaf is true."""
    return False not in [bool(x) for x in leaves(tree)]


@public("tree")
def transpose(outer: Any, inner: Any, tree: Any) -> Any:
    """Turn a tree of structure `outer` with leaves of structure `inner` inside out."""
    parts = [flatten_up_to(inner, part) for part in outer.flatten_up_to(tree)]
    return unflatten_tree(inner, [unflatten_tree(outer, xs) for xs in zip(*parts)])


def flatten_up_to(shape: Any, tree: Any) -> list[Any]:
    return list(shape.flatten_up_to(tree))


@public("tree")
def leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[tuple[Any, ...], Any]]:
    """Return (path, leaf) of every leaf; a path is the keys and indices that lead to it."""
    flatten_tree(tree)
    paths, found, _ = optree.tree_flatten_with_path(tree, is_leaf=is_leaf, namespace=NAMESPACE)
    return list(zip(paths, found))


@public("tree")
def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """`map`, where `f` gets the path of the leaf first."""
    paths = [path for path, _ in leaves_with_path(tree, is_leaf)]
    found, shape = flatten(tree, is_leaf)
    others = [shape.flatten_up_to(other) for other in rest]
    return unflatten_tree(shape, [f(*xs) for xs in zip(paths, found, *others)])


@public("tree", aliases=("register_pytree_node",))
def register_node(
    cls: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Iterable[Any]], Any],
) -> None:
    """Make a class a tree: `flatten_func(x)` is (children, rest), `unflatten_func(rest, children)`.

    The rest is compared as part of the structure, so it should be hashable.

    >>> import lucid
    >>> class Interval:
    ...     def __init__(self, low, high, name):
    ...         self.low, self.high, self.name = low, high, name
    >>> lucid.tree.register_node(
    ...     Interval, lambda x: ((x.low, x.high), x.name), lambda name, xs: Interval(*xs, name)
    ... )
    >>> width = lambda x: x.high - x.low
    >>> lucid.func.grad(width)(Interval(lucid.tensor(1.0), lucid.tensor(3.0), "x")).low
    Tensor(-1.)
    """
    check_new(cls)
    register(cls, flatten_func, unflatten_func)


@public("tree", aliases=("register_pytree_node_class",))
def register_node_class(cls: C) -> C:
    """Make a class with `tree_flatten` and `tree_unflatten(rest, children)` a tree; a decorator."""
    register_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


@public("tree")
def register_dataclass(
    cls: Any, data_fields: Iterable[str] | None = None, meta_fields: Iterable[str] = ()
) -> Any:
    """Make a class a tree of its `data_fields`; `meta_fields` belong to the structure.

    A dataclass is a tree of all its fields without this; register it before it is first used.
    """
    fields = [f.name for f in cls.__dataclass_fields__.values()] if data_fields is None else None
    meta = tuple(meta_fields)
    data = (
        tuple(name for name in fields if name not in meta) if fields else tuple(data_fields or ())
    )

    def take(x: Any) -> tuple[Any, ...]:
        rest = tuple(getattr(x, name) for name in meta)
        return tuple(getattr(x, name) for name in data), rest, data

    def make(rest: Any, children: Iterable[Any]) -> Any:
        out: Any = object.__new__(cls)
        for name, value in (*zip(data, children), *zip(meta, rest)):
            object.__setattr__(out, name, value)
        return out

    check_new(cls)
    register(cls, take, make)
    return cls


@public("tree")
def register_static(cls: C) -> C:
    """Make a class a tree without leaves, compared as a whole; usable as a decorator."""
    register_node(cls, lambda x: ((), x), lambda x, _: x)
    return cls


def check_new(cls: Any) -> None:
    """Raise an error for a class that is already a tree."""
    if not isinstance(cls, type):
        raise ArgumentError(f"tree.register_node: {cls!r:.60} is not a class")
    if optree.register_pytree_node.get(cls, namespace=NAMESPACE) is not None:
        raise ArgumentError(
            f"tree.register_node: {cls.__name__} is already a tree; a dataclass becomes one when "
            "it is first used, so register it where it is defined"
        )
