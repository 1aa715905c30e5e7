# Written by `python -m lucid.public.build`.

import builtins as _b
import collections.abc as _abc
import typing as _t

import numpy as _np

from lucid.debugging.graph_diff import compare as diff
from lucid.ir.graph import Equation as Equation
from lucid.ir.graph import Graph as Graph
from lucid.ir.graph import Literal as Literal
from lucid.ir.graph import Var as Var
from lucid.ir.interpret import Program as Program
from lucid.ir.interpret import evaluate as evaluate
from lucid.ir.primitive import Primitive as Primitive
from lucid.ir.primitive import REGISTRY as REGISTRY
from lucid.ir.text import parse as parse
from lucid.ir.text import to_text as to_text
from lucid.ir.types import Type as Type
from lucid.ir.verify import verify as verify
from lucid.saving.graphs import load as load
from lucid.saving.graphs import save as save
from lucid.tape.bind import bind as bind
from lucid.tape.node import Node as Node
from lucid.tape.recording.trace import replay as replay
from lucid.tape.recording.trace import trace as trace


