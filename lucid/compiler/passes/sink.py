"""sink: Graph -> Graph in which slices, pads and concatenates apply to operands, not results.

    slice (f x y) = f (slice x) (slice y)
    pad (f x y) = where inside (f x' y') 0
    concatenate x y = where (index < size of x) x' y'

x' is a window of `x` that may extend beyond it; the elements out there are masked. A window of
memory is a slice or a pad, which loops read in place. So the gradient of a function of neighbors
(x[1:] - x[:-1]) is one loop over x, without intermediate arrays.

Only cheap operations are computed twice, and only where their operands need not be stored. All of a
pad is computed, so those of one that is several times as large as its operand count as often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lucid.compiler.fusion.groups import fusible
from lucid.compiler.kernels import scalars
from lucid.compiler.kernels.scalar_code import LLVM
from lucid.ir.facts import Box
from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.primitive import Primitive
from lucid.ir.rewrite import Rewriter, dce
from lucid.ir.types import DTYPES, SHORT_NAMES
from lucid.ops.elementwise.arithmetic import Add
from lucid.ops.elementwise.conditional import Where
from lucid.ops.elementwise.logic import BitwiseAnd, Ge, Lt
from lucid.ops.shape.concatenate import Concatenate
from lucid.ops.shape.full_and_iota import Iota
from lucid.ops.shape.movement import Broadcast, Pad, Reshape, Slice

MAX_EQUATIONS = 24  # recomputed in a window
MAX_READS = 4  # arrays that a window reads instead of one stored array
MAX_CONCATENATED = 4


def sink(graph: Graph) -> Graph:
    """Push slices, pads and concatenates of computed values toward the inputs."""
    if not any([isinstance(eqn.op, (Slice, Pad, Concatenate)) for eqn in graph.equations]):
        return graph
    return Sinker(graph).run()


@dataclass
class Uses:
    """How often values are used, which must be in memory, and which are read outside loops."""

    count: dict[Any, int] = field(default_factory=dict)
    stored: set[Any] = field(default_factory=set)
    read_outside: set[Any] = field(default_factory=set)

    @staticmethod
    def of(graph: Graph) -> Uses:
        uses = Uses(stored=set(graph.outputs), read_outside=set(graph.outputs))
        for eqn in reversed(graph.equations):
            is_view = eqn.op.aliases
            loops = not is_view and (fusible(eqn) or uses.reads_concatenate(eqn))
            for i, x in enumerate(eqn.inputs):
                uses.count[x] = uses.count.get(x, 0) + 1
                if is_view and eqn.outputs[0] in uses.stored and not isinstance(eqn.op, Slice):
                    uses.stored.add(x)
                elif not is_view and (not loops or (i == 0 and reads_at_indices(eqn))):
                    uses.stored.add(x)
                if not (loops or (is_view and eqn.outputs[0] not in uses.read_outside)):
                    uses.read_outside.add(x)
        return uses

    def reads_concatenate(self, eqn: Equation) -> bool:
        """True if only loops read a concatenate, so that they can select its parts by index."""
        few = isinstance(eqn.op, Concatenate) and len(eqn.inputs) <= MAX_CONCATENATED
        return few and is_supported(eqn) and eqn.outputs[0] not in self.read_outside


@dataclass
class WindowCost:
    """The cost of computing a value in a window."""

    equations: int = 0
    reads: set[Any] = field(default_factory=set)
    stores: bool = False


class Sinker(Rewriter):
    """The state of `sink` for one Graph."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.uses = Uses.of(graph)
        self.inputs = set(graph.inputs)
        self.replaced: dict[Any, Atom] = {}
        self.windows: dict[Any, Atom] = {}
        self.unmasked: set[Atom] = set()  # pads whose border is never read

    def run(self) -> Graph:
        for eqn in self.graph.equations:
            self.source = eqn.source
            inputs = tuple([self.replaced.get(x, x) for x in eqn.inputs])
            found = self.sink_equation(eqn, inputs)
            if found is None:
                self.add(Equation(eqn.op, inputs, eqn.outputs, eqn.source))
            else:
                self.replaced[eqn.outputs[0]] = found
                for table in (self.uses.stored, self.uses.read_outside):
                    if eqn.outputs[0] in table:
                        table.add(found)
                self.uses.count[found] = self.uses.count.get(eqn.outputs[0], 0)
        outputs = tuple([self.replaced.get(x, x) for x in self.graph.outputs])
        return dce(Graph(self.graph.name, self.graph.inputs, tuple(self.equations), outputs))

    def sink_equation(self, eqn: Equation, inputs: Sequence[Atom]) -> Atom | None:
        """The replacement of a slice, pad or concatenate, or None if it stays."""
        out = eqn.outputs[0]
        if not isinstance(eqn.op, (Slice, Pad, Concatenate)) or not is_supported(eqn):
            return None
        if isinstance(eqn.op, Concatenate):
            return (
                self.concatenate(inputs, eqn.op.axis) if self.uses.reads_concatenate(eqn) else None
            )
        x = inputs[0]
        growth = max(out.type.size // max(x.type.size, 1), 1)  # all of a pad is computed
        if not self.is_computed(x) or x in self.uses.stored or not self.is_cheap([x], growth):
            return None
        if isinstance(eqn.op, Pad):
            box = tuple([(-low, n) for low, n in zip(eqn.op.low, out.type.shape)])
            return self.masked_window(x, box)
        if out in self.uses.read_outside:
            return None
        window = self.window(x, tuple(zip(eqn.op.starts, eqn.op.sizes)))
        return self.make(Reshape(out.type.shape), window) if eqn.op.drop else window

    def is_computed(self, x: Atom) -> bool:
        """True if `x` is computed point by point, read through a few views at most."""
        for _ in range(MAX_EQUATIONS):
            made = self.producer(x)
            if made is None or not self.is_windowable(made):
                return False
            if not made.op.aliases:
                return True
            x = made.inputs[0]
        return False

    # Cost

    def is_cheap(self, xs: Iterable[Atom], growth: int = 1) -> bool:
        """True if windows of these values are cheap to compute from few arrays in memory.

        growth    how many times as large as the values their windows are
        """
        found = WindowCost()
        seen: set[Any] = set()
        for x in xs:
            self.visit(x, False, found, seen)
        equations, reads = found.equations * growth, len(found.reads) * growth
        return not found.stores and equations <= MAX_EQUATIONS and reads <= MAX_READS

    def visit(self, x: Atom, again: bool, found: WindowCost, seen: set[Any]) -> None:
        if isinstance(x, Literal) or x in seen or found.equations > MAX_EQUATIONS:
            return
        seen.add(x)
        made = self.producer(x)
        again = again or self.uses.count.get(x, 0) > 1
        if made is None or x in self.uses.stored or not self.is_windowable(made):
            found.reads.add(x)
            found.stores |= self.is_computed(x) and x not in self.uses.stored
            return
        if self.compares_index(made):
            return
        found.equations += not (made.op.aliases or made.op.fills)
        found.stores |= again and made.op.scalar in scalars.table
        for operand in made.inputs:
            self.visit(operand, again, found, seen)

    def is_windowable(self, eqn: Equation) -> bool:
        """True if a window of the result can be computed from windows of the operands."""
        op = eqn.op
        if not op.has_window(eqn) or (op.reads_memory and not is_supported(eqn)):
            return False
        return op.aliases or fusible(eqn)

    # Windows

    def window(self, x: Atom, box: Box) -> Atom:
        """`x` in a box; elements beyond `x` are undefined."""
        if isinstance(x, Literal) or box == tuple([(0, n) for n in x.type.shape]):
            return x
        key = (x, box)
        if key not in self.windows:
            self.windows[key] = self.make_window(x, box)
        return self.windows[key]

    def make_window(self, x: Var, box: Box) -> Atom:
        made = self.producer(x)
        if made is None or x in self.uses.stored or not self.is_windowable(made):
            return self.read_window(x, box)
        if self.compares_index(made):
            return self.comparison_window(made, box)
        return made.op.make_window(self, made, box)

    def operand_window(self, x: Atom, box: Box) -> Atom:
        """The window of an operand that broadcasts to a result in `box`."""
        own = box[len(box) - x.type.ndim :]
        return self.window(x, tuple([(0, 1) if n == 1 else b for n, b in zip(x.type.shape, own)]))

    def shift(self, x: Atom, start: int) -> Atom:
        """Integers plus a number."""
        return self.make(Add(), x, Literal(start, x.type.dtype)) if start else x

    def broadcast(self, y: Atom, sizes: tuple[int, ...]) -> Atom:
        """`y` broadcast along axes of size 1 that a window extends."""
        return (
            y if y.type.shape == sizes else self.make(Broadcast(sizes, tuple(range(len(sizes)))), y)
        )

    def read_window(self, x: Var, box: Box) -> Atom:
        """A window of an array in memory: a slice or a pad."""
        shape = x.type.shape
        if all([0 <= start and start + n <= size for (start, n), size in zip(box, shape)]):
            starts, limits = zip(*[(start, start + n) for start, n in box])
            return self.make(Slice(starts, limits, (1,) * len(box)), x)
        low = tuple([-start for start, _ in box])
        high = tuple([start + n - size for (start, n), size in zip(box, shape)])
        window = self.make(Pad(low, high, (0,) * len(box)), x)
        self.unmasked.add(window)
        return window

    # Pads and concatenates

    def masked_window(self, x: Atom, box: Box) -> Atom:
        """`x` in a box, with zeros where the box extends beyond `x`."""
        window, sizes = self.window(x, box), tuple([n for _, n in box])
        inside: Atom | None = None
        for axis, ((start, n), size) in enumerate(zip(box, x.type.shape)):
            for op, bound, needed in (
                (Ge(), -start, start < 0),
                (Lt(), size - start, start + n > size),
            ):
                if needed:
                    test = self.compare_index(op, sizes, axis, bound)
                    inside = test if inside is None else self.make(BitwiseAnd(), inside, test)
        window = self.broadcast(window, sizes) if not isinstance(window, Literal) else window
        if inside is None:
            return window
        return self.make(Where(), inside, window, Literal(zero(x), x.type.dtype))

    def compare_index(self, op: Primitive, sizes: tuple[int, ...], axis: int, bound: int) -> Atom:
        """The index along an axis compared with a number."""
        key = (op, sizes, axis, bound)
        if key not in self.windows:
            index = ("index", sizes, axis)
            if index not in self.windows:
                self.windows[index] = self.make(Iota(sizes, axis, "i32"))
            self.windows[key] = self.make(op, self.windows[index], Literal(bound, DTYPES["i32"]))
        return self.windows[key]

    def compares_index(self, eqn: Equation) -> bool:
        """True for the comparison of an index with a number, which costs next to nothing."""
        if not isinstance(eqn.op, (Lt, Ge)) or not isinstance(eqn.inputs[1], Literal):
            return False
        made = self.producer(eqn.inputs[0])
        return made is not None and isinstance(made.op, Iota) and made.op.has_window(made)

    def comparison_window(self, eqn: Equation, box: Box) -> Atom:
        """In a window that starts at s, i < b becomes i < b - s."""
        axis = self.producer(eqn.inputs[0]).op.axis  # type: ignore[union-attr]
        start, n = box[axis]
        bound = min(max(eqn.inputs[1].value - start, 0), n)  # type: ignore[union-attr]
        return self.compare_index(eqn.op, tuple([n for _, n in box]), axis, bound)

    def concatenate(self, xs: Sequence[Atom], axis: int) -> Atom | None:
        """A concatenate as a selection by index between windows of its operands."""
        if any([isinstance(x, Literal) for x in xs]) or not self.is_cheap(xs):
            return None
        shape = list(xs[0].type.shape)
        shape[axis] = sum(x.type.shape[axis] for x in xs)
        end, found = shape[axis], None
        for x in reversed(xs):
            begin = end - x.type.shape[axis]
            box = [(0, n) for n in shape]
            box[axis] = (-begin, shape[axis])
            window = self.window(x, tuple(box))
            if found is None:
                found = window
            else:
                here = self.compare_index(Lt(), tuple(shape), axis, end)
                found = self.make(Where(), here, window, found)
            end = begin
        return found


def is_supported(eqn: Equation) -> bool:
    """True if loops support the dtypes and no size, stride or interior padding is excluded."""
    op = eqn.op
    if isinstance(op, Pad) and (any(op.interior) or not isinstance(eqn.inputs[0], Var)):
        return False
    if isinstance(op, Slice) and set(op.strides) != {1}:
        return False
    types = [x.type for x in (*eqn.inputs, *eqn.outputs)]
    if any([SHORT_NAMES[t.dtype] not in LLVM or t.size == 0 or t.ndim == 0 for t in types]):
        return False
    return all([n < 2**31 for t in types for n in t.shape])


def reads_at_indices(eqn: Equation) -> bool:
    """True if the first operand is read at the indices that follow it."""
    return eqn.op.reads_memory and len(eqn.inputs) > 1


def zero(x: Atom) -> Any:
    return x.type.dtype.type(0).item()
