"""template: recognize a tape that was cut before by matching it instead of cutting it again.

A training step leaves the same tape every time. The Cut of an earlier step is kept as a template
under the source line of its root; the next tape is compared with it edge by edge, and if it
matches, the Cut is reused with the new Nodes. A tape that differs anywhere is cut from scratch.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from lucid.ir.graph import Literal
from lucid.support.caches import new_cache
from lucid.support.source import Source
from lucid.tape.cut import Cut, cut_nodes, cut_to_leaves, literal_node
from lucid.tape.markers import ALIAS
from lucid.tape.node import GRAD, Node, is_recording

MAX_ENTRIES = 512
ALTERNATIVES = 4
MAX_EQUATIONS = 20_000

_templates: OrderedDict[Any, list[Template]] = new_cache(f"{__name__}._templates", OrderedDict())


class Template:
    """A pattern that matches tapes with the structure of `cut`.

    steps    for each equation, newest first: slot, op, inputs as (position, slot), Literals,
             lifted literals as (position, slot, dtype)
    leaves   (slot, flags, dtype, shape) of inputs and captured values
    lifted   (row, position) of literals whose values are operands: they differ from step to step
    """

    __slots__ = ("cut", "leaves", "lifted", "steps")

    def __init__(self, cut: Cut) -> None:
        self.cut = cut.with_nodes([None] * len(cut.slots))  # the structure without the values
        self.steps = []
        self.lifted: set[tuple[int, int]] = set()
        for number, (op, refs, slot, _, _) in reversed(list(enumerate(cut.rows))):
            inputs = cut.slots[slot].inputs
            edges = [(i, r) for i, (x, r) in enumerate(zip(inputs, refs)) if x.__class__ is Node]
            numbers = [
                (i, x, r) for i, (x, r) in enumerate(zip(inputs, refs)) if x.__class__ is Literal
            ]
            literals = tuple([(i, x) for i, x, r in numbers if r.__class__ is not int])
            lifted = tuple([(i, r, x.dtype) for i, x, r in numbers if r.__class__ is int])
            self.lifted.update([(number, i) for i, _, _ in lifted])
            self.steps.append((slot, op, len(inputs), tuple(edges), literals, lifted))
        made = {row[2] for row in cut.rows}
        self.leaves = []
        for slot, node in enumerate(cut.slots):
            if slot not in made:
                typed = node.saved if node.type is None else node.type
                self.leaves.append((slot, node.flags & GRAD, typed.dtype, typed.shape))

    def match(
        self, ends: list[Node], starts: list[Node] | None, changed: set[tuple[int, int]]
    ) -> Cut | None:
        """Return the Cut of the tape that ends in `ends`, or None if it does not match.

        Where nothing but numbers differ, `changed` gets their places, as (row, position).
        """
        row, moved = len(self.steps), []
        slots: list[Any] = [None] * len(self.cut.slots)
        for slot, end in zip(self.cut.outputs, ends):
            slots[slot] = end  # type: ignore[index]
        for slot, op, count, edges, literals, lifted in self.steps:
            row -= 1
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
                    if not can_lift(op, x, literal):
                        return None
                    moved.append((row, position))
            for position, other, dtype in lifted:
                x = inputs[position]
                if x.__class__ is not Literal or x.dtype != dtype:
                    return None
                slots[other] = literal_node(x)
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
        if moved:
            changed.update(self.lifted, moved)
            return None
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
    if source.__class__ is Source:  # of an operation with several results
        source = (source.code, source.offset)
    if source.__class__ is not tuple:
        return cut_to_leaves(ends) if starts is None else cut_nodes(starts, ends)
    key = (id(source[0]), source[1], len(ends), -1 if starts is None else len(starts))
    candidates = _templates.get(key)
    lifted: set[tuple[int, int]] = set()
    for template in candidates or ():
        cut = template.match(ends, starts, lifted)
        if cut is not None:
            return cut
    if is_recording():  # its numbers are constants of one path
        lifted.clear()
    cut = cut_to_leaves(ends, lifted) if starts is None else cut_nodes(starts, ends, lifted)
    if can_be_template(cut):
        candidates = _templates.setdefault(key, [])
        candidates.insert(0, Template(cut))
        del candidates[ALTERNATIVES:]
        while len(_templates) > MAX_ENTRIES:
            _templates.popitem(last=False)
    return cut


def can_lift(op: Any, x: Any, before: Literal) -> bool:
    """True if a number may be an operand of a cached program instead of a part of its key."""
    return (
        x.__class__ is Literal
        and x.dtype == before.dtype
        and x.dtype.kind in "fc"
        and bool(op.scalar)
        and not op.literals_are_static
    )


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
