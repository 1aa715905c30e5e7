"""template: recognize a tape that was cut before by matching it instead of cutting it again.

A training step leaves the same tape every time. The Cut of an earlier step is kept as a template
under the source line of its root; the next tape is compared with it edge by edge, and if it
matches, the Cut is reused with the new Nodes. A tape that differs anywhere is cut from scratch.

Making a template and comparing it in vain take longer than cutting. So a line whose templates were
of no use gets one only where a tape has the size of one of the last.
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
ALTERNATIVES = 4  # templates of a line, and sizes of tapes that it remembers
MAX_MISSES = 8  # in a row, after which a template goes
MAX_EQUATIONS = 20_000

_lines: OrderedDict[Any, Line] = new_cache(f"{__name__}._lines", OrderedDict())


class Line:
    """The templates of a source line, newest first.

    sizes     of the tapes that were cut there last
    wasted    how many templates have gone without a match, less those that did match
    """

    __slots__ = ("sizes", "templates", "wasted")

    def __init__(self) -> None:
        self.templates: list[Template] = []
        self.sizes: list[tuple[int, int]] = []
        self.wasted = 0

    def match(self, ends: list[Node], starts: list[Node] | None, changed: Any) -> Cut | None:
        """Return the Cut of a tape by the first template that matches, or None."""
        for template in self.templates:
            cut = template.match(ends, starts, changed)
            if cut is not None:
                template.misses = 0
                if not template.has_matched:
                    template.has_matched = True
                    self.wasted = max(self.wasted - 1, 0)
                return cut
            template.misses += 1
        self.keep([t for t in self.templates if t.misses < MAX_MISSES])
        return None

    def add(self, cut: Cut, is_variant: bool) -> None:
        """Make a template of a Cut, if it is likely to come again.

        is_variant    it differs from a template in numbers alone
        """
        size = len(cut.rows), len(cut.slots)
        recurs = is_variant or self.wasted < ALTERNATIVES or size in self.sizes
        self.sizes = [size, *self.sizes[: ALTERNATIVES - 1]]
        if recurs and can_be_template(cut):
            self.keep([Template(cut), *self.templates[: ALTERNATIVES - 1]])

    def keep(self, templates: list[Template]) -> None:
        """Keep these templates alone."""
        kept = set(map(id, templates))
        self.wasted += sum([not (t.has_matched or id(t) in kept) for t in self.templates])
        self.templates = templates


class Template:
    """A pattern that matches tapes with the structure of `cut`.

    steps    for each equation, newest first: slot, op, number of inputs, those that are Nodes as
             (position, slot), and what `numbers_match` compares, None if there is nothing
    leaves   (slot, flags, dtype, shape) of inputs and captured values
    lifted   (row, position) of literals whose values are operands: they differ from step to step
    misses   how often in a row it did not match
    """

    __slots__ = ("cut", "has_matched", "leaves", "lifted", "misses", "steps")

    def __init__(self, cut: Cut) -> None:
        self.cut = cut.with_nodes([None] * len(cut.slots))  # the structure without the values
        self.misses = 0
        self.has_matched = False
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
            compared = (number, literals, lifted) if numbers else None
            self.steps.append((slot, op, len(inputs), tuple(edges), compared))
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
        moved: list[tuple[int, int]] = []
        slots: list[Any] = [None] * len(self.cut.slots)
        for slot, end in zip(self.cut.outputs, ends):
            slots[slot] = end  # type: ignore[index]
        for slot, op, count, edges, compared in self.steps:
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
            if compared is not None and not numbers_match(op, inputs, slots, moved, *compared):
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
            if typed is None or typed.shape != shape:
                return None
            if typed.dtype is not dtype and typed.dtype != dtype:
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


def numbers_match(
    op: Any,
    inputs: tuple[Any, ...],
    slots: list[Any],
    moved: list[tuple[int, int]],
    row: int,
    literals: tuple[Any, ...],
    lifted: tuple[Any, ...],
) -> bool:
    """True if the numbers of an equation are those of a template, or may be operands instead.

    literals    (position, Literal) of numbers that are the same
    lifted      (position, slot, dtype) of those that are operands, whose Nodes go to `slots`
    moved       gets the places of others that differ, as (row, position)
    """
    for position, literal in literals:
        x = inputs[position]
        if x is not literal and (x.__class__ is not Literal or x.key != literal.key):
            if not can_lift(op, x, literal):
                return False
            moved.append((row, position))
    for position, other, dtype in lifted:
        x = inputs[position]
        if x.__class__ is not Literal or x.dtype != dtype:
            return False
        slots[other] = literal_node(x)
    return True


def find_cut(ends: list[Node], starts: list[Node] | None = None) -> Cut:
    """`cut_to_leaves`, or `cut_nodes` from `starts`, by a template if one matches."""
    source = ends[0].source if ends else None
    if source.__class__ is Source:  # of an operation with several results
        source = (source.code, source.offset)
    if source.__class__ is not tuple:
        return cut_to_leaves(ends) if starts is None else cut_nodes(starts, ends)
    key = (id(source[0]), source[1], len(ends), -1 if starts is None else len(starts))
    line = _lines.get(key)
    if line is None:
        line = _lines[key] = Line()
        while len(_lines) > MAX_ENTRIES:
            _lines.popitem(last=False)
    lifted: set[tuple[int, int]] = set()
    found = line.match(ends, starts, lifted)
    if found is not None:
        return found
    if is_recording():  # its numbers are constants of one path
        lifted.clear()
    cut = cut_to_leaves(ends, lifted) if starts is None else cut_nodes(starts, ends, lifted)
    line.add(cut, bool(lifted))
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
