"""Templates: recognize a tape that was cut before by matching it instead of cutting it again.

A training step leaves the same tape every time. The Cut of an earlier step is kept as a template
under the source line of its root; the next tape is compared with it edge by edge, and if it
matches, the Cut is reused with the new Nodes. A tape that differs anywhere is cut from scratch.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from lucid.caches import new_cache
from lucid.ir.graph import Literal
from lucid.tape.cut import Cut, cut_nodes, cut_to_leaves
from lucid.tape.markers import ALIAS
from lucid.tape.node import GRAD, Node

MAX_ENTRIES = 512
ALTERNATIVES = 4
MAX_EQUATIONS = 5000

_templates: OrderedDict[Any, list[Template]] = new_cache(f"{__name__}._templates", OrderedDict())


class Template:
    """A pattern that matches tapes with the structure of `cut`.

    steps    for each equation, newest first: slot, op, inputs as (position, slot), Literals
    leaves   (slot, flags, dtype, shape) of inputs and captured values
    """

    __slots__ = ("cut", "leaves", "steps")

    def __init__(self, cut: Cut) -> None:
        self.cut = cut.with_nodes([None] * len(cut.slots))  # the structure without the values
        self.steps = []
        for op, refs, slot, _, _ in reversed(cut.rows):
            inputs = cut.slots[slot].inputs
            edges = [(i, r) for i, (x, r) in enumerate(zip(inputs, refs)) if x.__class__ is Node]
            literals = [(i, x) for i, x in enumerate(inputs) if x.__class__ is Literal]
            self.steps.append((slot, op, len(inputs), tuple(edges), tuple(literals)))
        made = {row[2] for row in cut.rows}
        self.leaves = []
        for slot, node in enumerate(cut.slots):
            if slot not in made:
                typed = node.saved if node.type is None else node.type
                self.leaves.append((slot, node.flags & GRAD, typed.dtype, typed.shape))

    def match(self, ends: list[Node], starts: list[Node] | None = None) -> Cut | None:
        """Return the Cut of the tape that ends in `ends`, or None if it does not match."""
        slots: list[Any] = [None] * len(self.cut.slots)
        for slot, end in zip(self.cut.outputs, ends):
            slots[slot] = end  # type: ignore[index]
        for slot, op, count, edges, literals in self.steps:
            node = slots[slot]
            if node.__class__ is not Node or node.op is not op:
                return None
            inputs = node.inputs
            if len(inputs) != count:
                return None
            for position, other in edges:
                bound = slots[other]
                if bound is None:
                    slots[other] = inputs[position]
                elif bound is not inputs[position]:
                    return None
            for position, literal in literals:
                x = inputs[position]
                if x is not literal and (x.__class__ is not Literal or x.key != literal.key):
                    return None
        if starts is not None and not self.starts_match(slots, starts):
            return None
        for slot, flags, dtype, shape in self.leaves:
            node = slots[slot]
            if (
                node.__class__ is not Node
                or node.flags & GRAD != flags
                or (flags and node.op is not None)
            ):
                return None
            typed = node.saved if node.type is None else node.type
            if typed is None or typed.dtype != dtype or typed.shape != shape:
                return None
        if len(set(slots)) != len(slots):
            return None  # one Node in two slots: its gradient would be split
        return self.cut.with_nodes(slots)

    def starts_match(self, slots: list[Any], starts: list[Node]) -> bool:
        """True if the tape begins at `starts` and all captured values are older or leaves."""
        for slot, start in zip(self.cut.inputs, starts):
            if slots[slot] is None:
                slots[slot] = start
            elif slots[slot] is not start:
                return False
        floor = min([start.serial for start in starts], default=0)
        for slot in self.cut.captured:
            node = slots[slot]
            if node.__class__ is Node and node.op is not None and node.serial >= floor:
                return False
        return True


def find_cut(ends: list[Node], starts: list[Node] | None = None) -> Cut:
    """`cut_to_leaves`, or `cut_nodes` from `starts`, by a template if one matches."""
    source = ends[0].source if ends else None
    if source.__class__ is not tuple:
        return cut_to_leaves(ends) if starts is None else cut_nodes(starts, ends)
    key = (id(source[0]), source[1], len(ends), -1 if starts is None else len(starts))
    candidates = _templates.get(key)
    if candidates is not None:
        for template in candidates:
            cut = template.match(ends, starts)
            if cut is not None:
                return cut
    cut = cut_to_leaves(ends) if starts is None else cut_nodes(starts, ends)
    if can_be_template(cut):
        candidates = _templates.setdefault(key, [])
        candidates.insert(0, Template(cut))
        del candidates[ALTERNATIVES:]
        while len(_templates) > MAX_ENTRIES:
            _templates.popitem(last=False)
    return cut


def can_be_template(cut: Cut) -> bool:
    """True if a Cut can be matched edge by edge: no aliased inputs, one output per equation."""
    made = {row[2] for row in cut.rows}
    if not made or not made.isdisjoint(cut.inputs):
        return False
    if len(cut.rows) > MAX_EQUATIONS or any(slot.__class__ is not int for slot in cut.outputs):
        return False
    for op, refs, slot, group, _ in cut.rows:
        inputs = cut.slots[slot].inputs
        nodes = [x for x in inputs if x.__class__ is Node]
        if (
            op.single_use
            or slot != group
            or any(x.op is ALIAS for x in nodes)
            or len(refs) != len(inputs)
        ):
            return False
    return True
