"""The IR: types, Graphs, the tape that eager operations write, and the text form."""

from lucid.ir.binding import bind
from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.interpret import Program, evaluate
from lucid.ir.primitive import REGISTRY, Primitive
from lucid.ir.tape import Node
from lucid.ir.text import parse, to_text
from lucid.ir.tracing import replay, trace
from lucid.ir.types import Type
from lucid.ir.verify import verify

__all__ = [
    "REGISTRY",
    "Equation",
    "Graph",
    "Literal",
    "Node",
    "Primitive",
    "Program",
    "Type",
    "Var",
    "bind",
    "evaluate",
    "parse",
    "replay",
    "to_text",
    "trace",
    "verify",
]
