"""The IR: Var, Literal, Equation and Graph, all immutable.

A Graph is a straight line of equations in static single assignment form: every Var is defined once,
as an input or as the output of one equation, before it is used.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from lucid.ir.types import Type
from lucid.public.declare import public
from lucid.public.lazy import LazyModule
from lucid.support.caches import cached_property
from lucid.support.source import Source

if TYPE_CHECKING:
    from lucid.ir.primitive import Primitive

folding: Any = LazyModule("lucid.support.folding")  # to print Graphs
markup: Any = LazyModule("lucid.support.markup")
Scalar = bool | int | float | complex


@public("ir")
class Var:
    """A name for a value in a Graph. Two Vars are the same only if they are the same object."""

    __slots__ = ("name", "type")

    def __init__(self, type: Type, name: str = "") -> None:
        self.type = type
        self.name = name

    def __repr__(self) -> str:
        return f"Var({self.name or '_'}: {self.type})"


@public("ir")
class Literal:
    """A Python scalar written inline in an equation, with the dtype it is used at.

    It can stand in for a traced value, hence `node`: a literal is never on the tape.
    """

    __slots__ = ("_operand", "dtype", "value")
    _operand: np.ndarray
    node = None
    storage = None
    shape = ()
    ndim = 0

    def __init__(self, value: Scalar, dtype: np.dtype) -> None:
        self.value = value
        self.dtype = dtype

    @property
    def type(self) -> Type:
        return Type(self.dtype, ())

    @property
    def array(self) -> np.ndarray:
        return np.asarray(self.value, self.dtype)

    @property
    def operand(self) -> np.ndarray:
        """`array`, made once: to read, not to keep."""
        try:
            return self._operand
        except AttributeError:
            self._operand = array = self.array
            array.flags.writeable = False
            return array

    @property
    def key(self) -> Hashable:
        """A key that is equal for equal literals and tells -0.0 from 0.0 and True from 1."""
        return (repr(self.value), self.dtype.char)

    def __repr__(self) -> str:
        return f"Literal({self.value!r}: {self.type})"


Atom = Var | Literal


@public("ir")
class Equation(NamedTuple):
    """`outputs = op inputs`, and the line of the user's program it comes from.

    A named tuple because that is cheap to make and immutable; equal only to itself.
    """

    op: Primitive
    inputs: tuple[Atom, ...]
    outputs: tuple[Var, ...]
    source: Source | None = None

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return object.__hash__(self)


@public("ir")
@dataclass(frozen=True, eq=False)
class Graph:
    """A function of arrays: named inputs, equations in order, outputs. Prints and parses back.

    >>> import lucid
    >>> print(lucid.ir.trace(lambda x: lucid.sin(x) * 2.0)(lucid.ones(3)).stripped())
    graph lambda(x: f32[3]):
        %0: f32[3] = sin x
        %1: f32[3] = mul %0 2.0
        return %1
    """

    name: str
    inputs: tuple[Var, ...]
    equations: tuple[Equation, ...]
    outputs: tuple[Atom, ...]

    @cached_property
    def key(self) -> Hashable:
        """A structural key: equal for Graphs that compute the same thing in the same way."""
        number: dict[Var, int] = {}
        for var in self.inputs:
            number[var] = len(number)

        def reference(atom: Atom) -> Hashable:
            return number[atom] if isinstance(atom, Var) else atom.key

        rows: list[Any] = [tuple(var.type for var in self.inputs)]
        for eqn in self.equations:
            rows.append((eqn.op, *map(reference, eqn.inputs)))
            for var in eqn.outputs:
                number[var] = len(number)
        rows.append(tuple(map(reference, self.outputs)))
        return tuple(rows)

    def vars(self) -> Iterator[Var]:
        """Iterate over every Var that the Graph defines, inputs first."""
        yield from self.inputs
        for eqn in self.equations:
            yield from eqn.outputs

    def stripped(self) -> Graph:
        """Return the same Graph without source lines, in nested Graphs too."""
        from lucid.ir.rewrite import with_graphs

        equations = tuple(
            Equation(with_graphs(e.op, Graph.stripped), e.inputs, e.outputs) for e in self.equations
        )
        return Graph(self.name, self.inputs, equations, self.outputs)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Graph) and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.key)

    @property
    def in_types(self) -> tuple[Type, ...]:
        return tuple(var.type for var in self.inputs)

    @property
    def out_types(self) -> tuple[Type, ...]:
        return tuple(atom.type for atom in self.outputs)

    replay: ClassVar[Any] = None  # runs a Graph on tensors; set by `tape/recording/trace.py`

    def __call__(self, *inputs: Any) -> Any:
        """Run the Graph on tensors: one result, or a tuple of them. Every transform applies."""
        found = Graph.replay(self, inputs)
        return found[0] if len(found) == 1 else tuple(found)

    def __str__(self) -> str:
        from lucid.ir.text import to_text

        return to_text(self)

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self.equations)} equations>"

    def show(self, color: bool | None = None, fold: int = 0) -> None:
        """Print the text, by default in color on a terminal; fold=2 has a line for `blocks.0`."""
        text = folding.folded_text(str(self), fold) if fold else str(self)
        is_colored = color or (color is None and markup.is_color_terminal())
        print(markup.colored(text) if is_colored else text)

    def _repr_pretty_(self, printer: Any, _: bool) -> None:  # of IPython in a terminal
        printer.text(markup.colored(str(self)) if markup.is_color_terminal() else str(self))

    def _repr_html_(self) -> str:
        return markup.graph_html(str(self))
