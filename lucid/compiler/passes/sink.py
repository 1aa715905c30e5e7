"""sink: Graph -> Graph in which slices, pads and joins are taken of operands instead of results.

    slice (f x y) = f (slice x) (slice y)
    pad (f x y) = where inside (f x' y') 0
    concatenate x y = where (index < size of x) x' y'

x' is `x` seen through a window that may reach beyond it: whatever is there is not looked at. What a
window shows of memory is a slice or a pad, and loops read both as they lie. So the gradient of
a function of neighbours (x[1:] - x[:-1]) is one loop over x, with nothing stored between.

Only cheap operations are computed twice, and nothing is read again that lies in memory anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lucid.compiler.fusion.groups import INDEXED, VIEWS, fusible, scalar_name
from lucid.compiler.kernels import scalars
from lucid.compiler.kernels.scalar_code import LLVM
from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.primitive import Primitive
from lucid.ir.rewrite import Rewriter, remove_dead
from lucid.ir.types import DTYPES, SHORT_NAMES
from lucid.ops.core.kinds import Elementwise
from lucid.ops.elementwise.arithmetic import Add
from lucid.ops.elementwise.conditional import Where
from lucid.ops.elementwise.logic import BitwiseAnd, Ge, Lt
from lucid.ops.shape.creation import Full, Iota
from lucid.ops.shape.movement import Broadcast, Concatenate, Pad, Reshape, Slice, Transpose

MOST_EQUATIONS = 24  # that are computed again in a window
MOST_READS = 4  # arrays that a window reads instead of one that was stored
MOST_JOINED = 4

Box = tuple[tuple[int, int], ...]  # where a window begins and how far it goes, axis by axis


def sink(graph: Graph) -> Graph:
    """The Graph with its slices, pads and joins of computed values as near to memory as can be."""
    if not any([isinstance(eqn.op, (Slice, Pad, Concatenate)) for eqn in graph.equations]):
        return graph
    return Sinker(graph).run()


@dataclass
class Uses:
    """How often values are used, which must lie in memory, which are read outside of loops."""

    count: dict[Any, int] = field(default_factory=dict)
    stored: set[Any] = field(default_factory=set)
    outside: set[Any] = field(default_factory=set)

    @staticmethod
    def of(graph: Graph) -> Uses:
        uses = Uses(stored=set(graph.outputs), outside=set(graph.outputs))
        for eqn in reversed(graph.equations):
            is_view = isinstance(eqn.op, VIEWS)
            loops = not is_view and (fusible(eqn) or uses.joins(eqn))
            for i, x in enumerate(eqn.inputs):
                uses.count[x] = uses.count.get(x, 0) + 1
                if is_view and eqn.outputs[0] in uses.stored and not isinstance(eqn.op, Slice):
                    uses.stored.add(x)
                elif not is_view and (not loops or (i == 0 and isinstance(eqn.op, INDEXED))):
                    uses.stored.add(x)
                if not (loops or (is_view and eqn.outputs[0] not in uses.outside)):
                    uses.outside.add(x)
        return uses

    def joins(self, eqn: Equation) -> bool:
        """Do loops read a join, so that they can as well choose?"""
        join = isinstance(eqn.op, Concatenate) and len(eqn.inputs) <= MOST_JOINED
        return join and fits(eqn) and eqn.outputs[0] not in self.outside


@dataclass
class Window:
    """What computing a value in a window would take."""

    equations: int = 0
    reads: set[Any] = field(default_factory=set)
    stores: bool = False


class Sinker(Rewriter):
    """One run of `sink`."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.uses = Uses.of(graph)
        self.inputs = set(graph.inputs)
        self.known: dict[Any, Atom] = {}
        self.shown: dict[Any, Atom] = {}
        self.loose: set[Atom] = set()  # pads of which only the inside is looked at

    def run(self) -> Graph:
        for eqn in self.graph.equations:
            self.source = eqn.source
            inputs = tuple([self.known.get(x, x) for x in eqn.inputs])
            found = self.sunk(eqn, inputs)
            if found is None:
                self.add(Equation(eqn.op, inputs, eqn.outputs, eqn.source))
            else:
                self.known[eqn.outputs[0]] = found
                for table in (self.uses.stored, self.uses.outside):
                    if eqn.outputs[0] in table:
                        table.add(found)
                self.uses.count[found] = self.uses.count.get(eqn.outputs[0], 0)
        outputs = tuple([self.known.get(x, x) for x in self.graph.outputs])
        return remove_dead(
            Graph(self.graph.name, self.graph.inputs, tuple(self.equations), outputs)
        )

    def sunk(self, eqn: Equation, inputs: Sequence[Atom]) -> Atom | None:
        """What stands for a slice, pad or join where it is to be taken of operands."""
        out = eqn.outputs[0]
        if not isinstance(eqn.op, (Slice, Pad, Concatenate)) or not fits(eqn):
            return None
        if isinstance(eqn.op, Concatenate):
            return self.join(inputs, eqn.op.axis) if self.uses.joins(eqn) else None
        x = inputs[0]
        if not self.computes(x) or x in self.uses.stored or not self.pays([x]):
            return None
        if isinstance(eqn.op, Pad):
            box = tuple([(-low, n) for low, n in zip(eqn.op.low, out.type.shape)])
            return self.masked(x, box)
        if out in self.uses.outside:
            return None
        shown = self.window(x, tuple(zip(eqn.op.starts, eqn.op.sizes)))
        return self.make(Reshape(out.type.shape), shown) if eqn.op.drop else shown

    def computes(self, x: Atom) -> bool:
        """Is `x` computed point by point, seen through a few views at most?"""
        for _ in range(MOST_EQUATIONS):
            made = self.producer(x)
            if made is None or not self.passes(made):
                return False
            if not isinstance(made.op, (Broadcast, Transpose, Reshape, Slice)):
                return True
            x = made.inputs[0]
        return False

    # What it takes

    def pays(self, xs: Iterable[Atom]) -> bool:
        """Are windows of these values computed cheaply, from few arrays that lie in memory?"""
        found = Window()
        seen: set[Any] = set()
        for x in xs:
            self.look(x, False, found, seen)
        return (
            not found.stores
            and found.equations <= MOST_EQUATIONS
            and len(found.reads) <= MOST_READS
        )

    def look(self, x: Atom, again: bool, found: Window, seen: set[Any]) -> None:
        if isinstance(x, Literal) or x in seen or found.equations > MOST_EQUATIONS:
            return
        seen.add(x)
        made = self.producer(x)
        again = again or self.uses.count.get(x, 0) > 1
        if made is None or x in self.uses.stored or not self.passes(made):
            found.reads.add(x)
            found.stores |= self.computes(x) and x not in self.uses.stored
            return
        found.equations += 1
        if isinstance(made.op, Elementwise):
            found.stores |= again and scalar_name(made.op) in scalars.table
        for operand in made.inputs:
            self.look(operand, again, found, seen)

    def passes(self, eqn: Equation) -> bool:
        """Is a window of the result a result of windows?"""
        match eqn.op:
            case Elementwise():
                return bool(scalar_name(eqn.op)) and fusible(eqn)
            case Slice(strides=strides):
                return set(strides) <= {1}
            case Pad():
                return fits(eqn) and isinstance(eqn.inputs[0], Var)
            case Reshape(shape):
                return kept(shape) == kept(eqn.inputs[0].type.shape)
            case Iota(dtype=dtype):
                return dtype in ("i32", "i64")
            case Full():
                return isinstance(eqn.inputs[0], Literal)
        return isinstance(eqn.op, (Broadcast, Transpose))

    # Windows

    def window(self, x: Atom, box: Box) -> Atom:
        """`x` in a box, which may reach beyond it: there any number may stand."""
        if isinstance(x, Literal) or box == tuple([(0, n) for n in x.type.shape]):
            return x
        key = (x, box)
        if key not in self.shown:
            self.shown[key] = self.show(x, box)
        return self.shown[key]

    def show(self, x: Var, box: Box) -> Atom:
        made = self.producer(x)
        if made is None or x in self.uses.stored or not self.passes(made):
            return self.read(x, box)
        sizes = tuple([n for _, n in box])
        match made.op:
            case Elementwise():
                return self.spread(self.make(made.op, *self.operands(made, box)), sizes)
            case Slice(starts, _, _, drop):
                rest = iter(box)
                inner = [(0, 1) if i in drop else next(rest) for i in range(len(starts))]
                moved = tuple([(s + a, n) for s, (a, n) in zip(starts, inner)])
                shown = self.window(made.inputs[0], moved)
                return self.make(Reshape(sizes), shown) if drop else shown
            case Pad(low):
                moved = tuple([(a - s, n) for s, (a, n) in zip(low, box)])
                beyond = self.window if x in self.loose else self.masked
                return beyond(made.inputs[0], moved)
            case Broadcast(_, axes):
                y = made.inputs[0]
                inner = [(0, 1) if n == 1 else box[axis] for n, axis in zip(y.type.shape, axes)]
                return self.make(Broadcast(sizes, axes), self.window(y, tuple(inner)))
            case Transpose(permutation):
                inner = [box[permutation.index(i)] for i in range(len(permutation))]
                return self.make(made.op, self.window(made.inputs[0], tuple(inner)))
            case Reshape():
                return self.reshaped(x, made.inputs[0], box)
            case Iota(_, axis, dtype):
                places = self.make(Iota(sizes, axis, dtype))
                start = Literal(box[axis][0], DTYPES[dtype])
                return self.make(Add(), places, start) if start.value else places
        return self.make(Full(sizes, SHORT_NAMES[x.type.dtype]), made.inputs[0])

    def operands(self, eqn: Equation, box: Box) -> list[Atom]:
        out = []
        for x in eqn.inputs:
            own = box[len(box) - x.type.ndim :]
            out.append(
                self.window(x, tuple([(0, 1) if n == 1 else b for n, b in zip(x.type.shape, own)]))
            )
        return out

    def spread(self, y: Atom, sizes: tuple[int, ...]) -> Atom:
        """`y`, repeated along axes of size 1 that a window looks beyond."""
        return (
            y if y.type.shape == sizes else self.make(Broadcast(sizes, tuple(range(len(sizes)))), y)
        )

    def reshaped(self, x: Var, y: Atom, box: Box) -> Atom:
        """A window of `x`, which is `y` with other axes of size 1."""
        long = iter([b for b, n in zip(box, x.type.shape) if n != 1])
        inner = tuple([(0, 1) if n == 1 else next(long) for n in y.type.shape])
        short = tuple([1 if n == 1 else b[1] for b, n in zip(box, x.type.shape)])
        shown = self.window(y, inner)
        return self.spread(self.make(Reshape(short), shown), tuple([n for _, n in box]))

    def read(self, x: Var, box: Box) -> Atom:
        """A window of memory."""
        shape = x.type.shape
        if all([0 <= start and start + n <= size for (start, n), size in zip(box, shape)]):
            starts, limits = zip(*[(start, start + n) for start, n in box])
            return self.make(Slice(starts, limits, (1,) * len(box)), x)
        low = tuple([-start for start, _ in box])
        high = tuple([start + n - size for (start, n), size in zip(box, shape)])
        shown = self.make(Pad(low, high, (0,) * len(box)), x)
        self.loose.add(shown)
        return shown

    # Zeros around and joins

    def masked(self, x: Atom, box: Box) -> Atom:
        """`x` in a box, and zeros where that reaches beyond."""
        shown, sizes = self.window(x, box), tuple([n for _, n in box])
        inside: Atom | None = None
        for axis, ((start, n), size) in enumerate(zip(box, x.type.shape)):
            for op, bound, needed in (
                (Ge(), -start, start < 0),
                (Lt(), size - start, start + n > size),
            ):
                if needed:
                    test = self.compared(op, sizes, axis, bound)
                    inside = test if inside is None else self.make(BitwiseAnd(), inside, test)
        shown = self.spread(shown, sizes) if not isinstance(shown, Literal) else shown
        if inside is None:
            return shown
        return self.make(Where(), inside, shown, Literal(zero(x), x.type.dtype))

    def compared(self, op: Primitive, sizes: tuple[int, ...], axis: int, bound: int) -> Atom:
        """The index along an axis compared with a number."""
        key = (op, sizes, axis, bound)
        if key not in self.shown:
            place = ("index", sizes, axis)
            if place not in self.shown:
                self.shown[place] = self.make(Iota(sizes, axis, "i32"))
            self.shown[key] = self.make(op, self.shown[place], Literal(bound, DTYPES["i32"]))
        return self.shown[key]

    def join(self, xs: Sequence[Atom], axis: int) -> Atom | None:
        """Arrays one behind the other: at each index the one that stands there."""
        if any([isinstance(x, Literal) for x in xs]) or not self.pays(xs):
            return None
        shape = list(xs[0].type.shape)
        shape[axis] = sum(x.type.shape[axis] for x in xs)
        end, found = shape[axis], None
        for x in reversed(xs):
            begin = end - x.type.shape[axis]
            box = [(0, n) for n in shape]
            box[axis] = (-begin, shape[axis])
            shown = self.window(x, tuple(box))
            if found is None:
                found = shown
            else:
                here = self.compared(Lt(), tuple(shape), axis, end)
                found = self.make(Where(), here, shown, found)
            end = begin
        return found


def fits(eqn: Equation) -> bool:
    """A dtype that loops know, no zeros between elements, nothing empty, no huge index."""
    op = eqn.op
    if isinstance(op, Pad) and (any(op.interior) or not isinstance(eqn.inputs[0], Var)):
        return False
    if isinstance(op, Slice) and set(op.strides) != {1}:
        return False
    types = [x.type for x in (*eqn.inputs, *eqn.outputs)]
    if any([SHORT_NAMES[t.dtype] not in LLVM or t.size == 0 or t.ndim == 0 for t in types]):
        return False
    return all([n < 2**31 for t in types for n in t.shape])


def kept(shape: Sequence[int]) -> list[int]:
    return [n for n in shape if n != 1]


def zero(x: Atom) -> Any:
    return x.type.dtype.type(0).item()
