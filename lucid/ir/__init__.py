"""The IR: types, Graphs, primitives, the text form, and an interpreter."""

from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.interpret import Program, evaluate
from lucid.ir.primitive import REGISTRY, Primitive
from lucid.ir.text import parse, to_text
from lucid.ir.types import Type
from lucid.ir.verify import verify

__all__ = [
    "REGISTRY",
    "Equation",
    "Graph",
    "Literal",
    "Primitive",
    "Program",
    "Type",
    "Var",
    "evaluate",
    "parse",
    "to_text",
    "verify",
]
