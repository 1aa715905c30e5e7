"""cut: the part of the tape between input and output tensors, with a structural key.

Tensors enter, a Cut leaves: `slots` numbers the Nodes (inputs, captured constants, results), `key`
is equal for equal structures, `graph()` builds the Graph. Computing the key takes one walk and no
Graph, so a structure that was seen before goes straight to its cached program.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.infer import infer
from lucid.ir.primitive import graphs_of
from lucid.ir.rewrite import inline_regions
from lucid.ir.verify import verify
from lucid.tape.markers import ALIAS
from lucid.tape.node import FREED, GRAD, Node, as_source, freed_error, node_type
from lucid.tape.scopes import name_captures, tensor_names
from lucid.tape.views import node_of

_by_serial = attrgetter("serial")


class Cut:
    """Equations between inputs and outputs; see the module's docstring.

    slots       Nodes by slot number: the inputs first
    inputs      slots of the inputs, one per tensor (an input may be computed from another)
    captured    slots of constants and other external values
    outputs     slots (or Literals) of the outputs
    rows        (op, references, slot, first slot of the same equation, index) for every result
    prepared    its derivatives, shared by all Cuts made of one another by `with_nodes`
    """

    __slots__ = ("captured", "inputs", "key", "outputs", "prepared", "rows", "slots")

    def __init__(
        self,
        starts: list[Node],
        ends: list[Any],
        equations: list[Node],
        lifted: Collection[tuple[int, int]] = (),
    ) -> None:
        """Number the Nodes. `lifted` are literals, as (row, position), that are captured values."""
        self.prepared: dict[Any, Any] = {}
        self.slots: list[Node] = []
        self.captured: list[int] = []
        self.rows: list[tuple[Any, ...]] = []
        slots, rows = self.slots, self.rows
        slot_of: dict[Node, int] = {}

        def slot(node: Node) -> int:
            if node not in slot_of:
                self.captured.append(define(node))
            return slot_of[node]

        def define(node: Node) -> int:
            slot_of[node] = number = len(slots)
            slots.append(node)
            return number

        made_here = set(equations)
        for node in starts:
            if node not in slot_of and node not in made_here:
                define(node)
        given = len(slots)
        first_of: dict[int, int] = {}
        for node in equations:
            refs: tuple[Any, ...] = tuple(
                [x.key if x.__class__ is Literal else slot(x) for x in node.inputs]
            )
            if lifted:
                refs = tuple([
                    slot(literal_node(x))
                    if x.__class__ is Literal and (len(rows), i) in lifted else ref
                    for i, (x, ref) in enumerate(zip(node.inputs, refs))
                ])  # fmt: skip
            if node.op is ALIAS:
                slot_of[node] = refs[0]
            else:
                number = define(node)
                rows.append(
                    (node.op, refs, number, first_of.setdefault(node.serial, number), node.index)
                )
        self.outputs = [end if end.__class__ is Literal else slot(end) for end in ends]
        self.inputs = [slot_of[node] for node in starts]
        self.key: Hashable = (
            tuple([type_key(slots[number]) for number in (*range(given), *self.captured)]),
            tuple(rows),
            tuple(self.inputs),
            tuple([end.key if end.__class__ is Literal else end for end in self.outputs]),
        )

    def with_nodes(self, slots: list[Any]) -> Cut:
        """Return the same structure with other Nodes."""
        other = object.__new__(Cut)
        other.slots = slots
        other.inputs, other.captured, other.outputs = self.inputs, self.captured, self.outputs
        other.rows, other.key, other.prepared = self.rows, self.key, self.prepared
        return other

    def build(
        self, name: str = "graph", names: Iterable[str] = (), known: Mapping[int, str] | None = None
    ) -> tuple[Graph, list[Var]]:
        """Return the Graph, captured values as its last inputs, and the Var of every slot.

        names    of the inputs, in order
        known    names of inputs and captured values by the ids of their Nodes
        """
        known = known or {}
        vars: list[Any] = [None] * len(self.slots)
        made = {row[2] for row in self.rows}
        given = [slot for slot in dict.fromkeys(self.inputs) if slot not in made]
        labels = [*names, *([""] * len(given))]
        for slot, label in zip(given, labels):
            node = self.slots[slot]
            vars[slot] = Var(node_type(node), label or known.get(id(node), ""))
        for i, slot in enumerate(self.captured):
            node = self.slots[slot]
            vars[slot] = Var(node_type(node), known.get(id(node), f"c{i}"))
        equations: list[Equation] = []
        outputs_of: dict[int, tuple[Var, ...]] = {}
        for op, refs, slot, group, index in self.rows:
            if group not in outputs_of:
                node = self.slots[slot]
                inputs = tuple(
                    [vars[r] if r.__class__ is int else x for x, r in zip(node.inputs, refs)]
                )
                result = infer(op, tuple([x.type for x in inputs]))
                types = result if isinstance(result, tuple) else (result,)
                outputs_of[group] = tuple([Var(t) for t in types])
                shown = name_captures(op, inputs) if op.control_flow else op
                source = as_source(node.source)
                equations.append(Equation(shown, inputs, outputs_of[group], source))
            vars[slot] = outputs_of[group][index]
        starts = tuple([vars[slot] for slot in (*given, *self.captured)])
        ends = tuple([end if isinstance(end, Literal) else vars[end] for end in self.outputs])
        return Graph(name, starts, tuple(equations), ends), vars

    def graph(
        self, name: str = "graph", names: Iterable[str] = (), known: Mapping[int, str] | None = None
    ) -> Graph:
        """Return the verified Graph."""
        return verify(self.build(name, names, known)[0])

    def leaf_views(self, graph: Graph, vars: Sequence[Var]) -> list[Equation]:
        """Return the equations of `build` that are views of all of an input that is a leaf.

        A view may lie in memory as no compiled program reads it: `x.T` of a matrix.
        """
        whole: set[Any] = {vars[slot] for slot in self.inputs if self.slots[slot].op is None}
        views = []
        for eqn in graph.equations:
            y = eqn.outputs[0]
            if eqn.op.is_view and eqn.inputs[0] in whole and y.type.size == eqn.inputs[0].type.size:
                whole.add(y)
                views.append(eqn)
        return views

    def tensor_names(self, function: Any = None) -> dict[int, str]:
        """Return the names of tensors that modules and what a function closes over give."""
        sources = [self.slots[row[2]].source for row in self.rows]
        for op in [row[0] for row in self.rows if row[0].control_flow]:
            sources += [eqn.source for graph in graphs_of(op) for eqn in graph.equations]
        names = tensor_names(sources, function)
        for slot in self.captured:  # a captured view is `weight.transpose`
            base: Any = self.slots[slot]
            steps: list[str] = []
            while id(base) not in names and isinstance(base, Node) and len(base.inputs) == 1:
                steps.append("" if base.op is None else base.op.name)
                base = base.inputs[0]
            if steps and id(base) in names:
                names[id(self.slots[slot])] = ".".join([names[id(base)], *reversed(steps)])
        return names


def find_slots(wanted: Sequence[Var], graph: Graph, vars: list[Var]) -> list[tuple[int, int]]:
    """Return (slot, -1) for every Var of a built Cut, (slot beside it, index) if it has none."""
    slot_of: dict[Any, tuple[int, int]] = {var: (slot, -1) for slot, var in enumerate(vars)}
    if not all([var in slot_of for var in wanted]):
        for eqn in graph.equations:
            first_slot = next((slot_of[var][0] for var in eqn.outputs if var in slot_of), None)
            for index, var in enumerate(eqn.outputs):
                if first_slot is not None and var not in slot_of:
                    slot_of[var] = (first_slot, index)
    return [slot_of[var] for var in wanted]


def type_key(node: Node) -> Hashable:
    """Return a key of a Node's type and whether it is a leaf, which has its value.

    No Type is made if the value is saved.
    """
    typed = node.type or (node.saved if node.saved is not None else node_type(node))
    return (typed.dtype.char, typed.shape, node.op is None)


def cut(
    inputs: Iterable[Any],
    outputs: Iterable[Any],
    since: int | None = None,
    effects: Sequence[Node] = (),
) -> Cut:
    """Cut what computed the tensors `outputs` from the tensors `inputs`; the rest is captured.

    since      a serial number: include everything recorded since then, and nothing older
    effects    Nodes of ordered equations, which belong to the Cut though no output needs them
    """
    starts = [node_of(x) for x in inputs]
    ends = [y if isinstance(y, Literal) else node_of(y) for y in outputs]
    if since is None:
        return cut_nodes(starts, ends, effects=effects)
    return cut_since(starts, ends, since, effects)


def between(inputs: Any, outputs: Any, name: str = "graph") -> Graph:
    """Return the Graph that computed tensors `outputs` from tensors `inputs`, from the tape."""
    section = cut(inputs, outputs)
    return inline_regions(section.graph(name, (), section.tensor_names()))


def cut_nodes(
    starts: list[Node],
    ends: list[Any],
    lifted: Collection[tuple[int, int]] = (),
    effects: Sequence[Node] = (),
) -> Cut:
    """`cut` for Nodes: the equations that depend on `starts` and lead to `ends`."""
    active: set[Any] = set(starts)
    active.update([node.cell for node in starts if node.cell is not None])  # see `free`
    equations = []
    for node in ancestors([*ends, *effects], min((node.serial for node in starts), default=0)):
        for x in node.inputs:
            if x in active:
                if node.op is FREED and node not in active:
                    raise freed_error()
                active.add(node)
                equations.append(node)
                break
        else:
            if is_constant(node):
                active.add(node)
                equations.append(node)
    return Cut(starts, ends, equations, lifted)


def cut_since(starts: list[Node], ends: list[Any], since: int, effects: Sequence[Node] = ()) -> Cut:
    """`cut_nodes` with everything recorded since a serial number; older values are inputs.

    Each start stays an input of its own, even if it was computed from another one.
    """
    given = set(starts)
    equations = [
        node
        for node in ancestors([*ends, *effects], since)
        if node not in given and node.op is not FREED
    ]
    return Cut(starts, ends, equations)


def is_constant(node: Node) -> bool:
    """True for a recorded constant: an equation on literals alone, such as `full` or `iota`."""
    return node.op is not FREED and all([x.__class__ is Literal for x in node.inputs])


def ancestors(ends: list[Any], floor: int = 0) -> list[Node]:
    """Return the equations that computed `ends`, none older than `floor`, oldest first."""
    stack = [node for node in ends if node.__class__ is Node]
    seen = set()
    found = []
    while stack:
        node = stack.pop()
        if node in seen or node.op is None or node.serial < floor:
            continue
        seen.add(node)
        found.append(node)
        for x in node.inputs:
            if x.__class__ is Node and x not in seen:
                stack.append(x)
    found.sort(key=_by_serial)
    return found


def cut_to_leaves(ends: list[Node], lifted: Collection[tuple[int, int]] = ()) -> Cut:
    """Return the Cut from every leaf that requires a gradient to `ends`, in one walk."""
    stack = list(ends)
    seen = set()
    leaves = []
    equations = []
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op is None:
            leaves.append(node)
            continue
        if node.op is FREED:
            raise freed_error()
        equations.append(node)
        for x in node.inputs:
            if x.__class__ is Node and x.flags & GRAD and x not in seen:
                stack.append(x)
    leaves.sort(key=_by_serial)
    equations.sort(key=_by_serial)
    return Cut(leaves, ends, equations, lifted)


def literal_node(x: Literal) -> Node:
    """Return a constant Node with the value of a literal."""
    return Node(None, (), 0, x.array)
