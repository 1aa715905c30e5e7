"""jax.tree_util: lucid.tree under its older names."""

from lucid import tree
from lucid.tree import (
    register_dataclass,
    register_node,
    register_node_class,
    register_static,
    tree_all,
    tree_map,
    tree_reduce,
)

__all__ = [
    "register_dataclass", "register_pytree_node", "register_pytree_node_class", "register_static",
    "tree_all", "tree_flatten", "tree_leaves", "tree_map", "tree_reduce", "tree_structure",
    "tree_transpose", "tree_unflatten",
]  # fmt: skip

register_pytree_node, register_pytree_node_class = register_node, register_node_class
tree_flatten, tree_unflatten, tree_leaves = tree.flatten, tree.unflatten, tree.leaves
tree_structure, tree_transpose = tree.structure, tree.transpose
