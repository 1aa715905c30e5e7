"""GradCell: where `backward` leaves the gradient of a value."""

from __future__ import annotations

import weakref
from typing import Any

from lucid.tape.node import Node


class GradCell:
    """The gradient that `backward` accumulates for one value, and its hooks."""

    __slots__ = ("grad", "hooks", "keep", "post_accumulate_hooks", "previous_nodes", "retain")
    any_keep = False  # whether there has been a cell with `keep`

    def __init__(self) -> None:
        self.grad: Any = None
        self.hooks: dict[int, Any] = {}
        self.post_accumulate_hooks: dict[int, Any] = {}
        self.retain = False
        self.keep = False  # whatever is computed from this leaf retains its gradient
        self.previous_nodes: list[Any] = []

    def add_previous_node(self, node: Node) -> None:
        """Add the Node this leaf had before it was modified in place: old graphs end there."""
        self.previous_nodes = [old for old in self.previous_nodes if old() is not None]
        self.previous_nodes.append(weakref.ref(node))

    def live_previous_nodes(self) -> list[Node]:
        """Return the previous Nodes of this leaf that a graph still holds."""
        return [node for old in self.previous_nodes if (node := old()) is not None]
