"""find_nan: the first equation that turns finite numbers into a nan or an infinity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.compiler.jit.jitted import Jitted
from lucid.compiler.passes.pipeline import compile_graph
from lucid.debugging.recording import line, recorded, summary, walk
from lucid.func.derivatives import value_and_grad
from lucid.ir.graph import Graph
from lucid.ir.pytree import flatten
from lucid.ir.types import is_differentiable
from lucid.ops.core.arguments import public_function


@dataclass(frozen=True)
class BadValue:
    """The first bad value and the operands it was computed from, or the fact that there is none."""

    op: str = ""
    where: str = ""
    part: str = ""
    operands: tuple[str, ...] = ()
    first: str = ""

    def __bool__(self) -> bool:
        return bool(self.op)

    def __repr__(self) -> str:
        if not self.op:
            return "every value is finite"
        lines = [f"{self.part}: {self.op} gives {self.first}{self.where}"]
        return "\n".join([*lines, *[f"  operand {i}: {x}" for i, x in enumerate(self.operands)]])


@public_function()
def find_nan(
    f: Callable[..., Any], *args: Any, backward: bool = True, infinities: bool = True
) -> BadValue:
    """Find the first equation whose result is nan or infinite although its operands are finite.

    The function is run on the arguments, then its gradient if it is a scalar function of floats
    (`backward`). A jitted function is also run as compiled code.

    >>> import lucid
    >>> lucid.find_nan(lambda x: lucid.log(x).sum(), lucid.tensor([1.0, 0.0]))
    forward: log gives -inf at [1]   [<doctest ...>:1]
      operand 0: float32[2] from 0 to 1
    """
    graph, inputs = recorded(f, args)
    found = bad_argument(graph, inputs) or bad_equation(graph, inputs, "forward", infinities)
    if not found and isinstance(f, Jitted):
        found = bad_compiled(graph, inputs, infinities)
    chosen = [i for i, x in enumerate(args) if has_floats(x)]
    is_scalar = len(graph.outputs) >= 1 and graph.outputs[0].type.shape == ()
    if found or not (backward and chosen and is_scalar):
        return found
    function = f.function if isinstance(f, Jitted) else f
    both = value_and_grad(function, argnums=tuple(chosen))
    return bad_equation(*recorded(both, args), "backward", infinities)


def has_floats(tree: Any) -> bool:
    leaves = flatten(tree)[0]
    kinds = [np.asarray(getattr(x, "value", x)).dtype for x in leaves]
    return bool(kinds) and all(is_differentiable(kind) for kind in kinds)


def first_bad(x: Any, infinities: bool) -> str:
    """Describe the first bad element of an array and its index; "" if there is none."""
    x = np.asarray(x)
    if x.dtype.kind not in "fc":
        return ""
    bad = ~np.isfinite(x) if infinities else np.isnan(x)
    if not bad.any():
        return ""
    at = np.unravel_index(int(np.argmax(bad)), x.shape) if x.ndim else ()
    place = f" at [{', '.join(map(str, at))}]" if at else ""
    return f"{x[at]}{place}"


def bad_argument(graph: Graph, inputs: Any) -> BadValue:
    for var, x in zip(graph.inputs, inputs):
        if bad := first_bad(x, infinities=False):
            return BadValue(f"argument {var.name or '?'}", "", "given", (), bad)
    return BadValue()


def bad_equation(graph: Graph, inputs: Any, part: str, infinities: bool) -> BadValue:
    for eqn, xs, ys in walk(graph, inputs):
        bad = next((text for y in ys if (text := first_bad(y, infinities))), "")
        if bad and not any(
            first_bad(x, infinities) for x in xs if np.ndim(x) or eqn.op.scalar == ""
        ):
            return BadValue(eqn.op.name, line(eqn), part, tuple(map(summary, xs)), bad)
    return BadValue()


def bad_compiled(graph: Graph, inputs: Any, infinities: bool) -> BadValue:
    """The first bad value of the compiled program, with every value as an output."""
    vars = [v for eqn in graph.equations for v in eqn.outputs]
    program = compile_graph(Graph(graph.name, graph.inputs, graph.equations, tuple(vars)))
    values = dict(zip(vars, program([np.array(x) for x in inputs])))
    for eqn in graph.equations:
        for var in eqn.outputs:
            if bad := first_bad(values[var], infinities):
                known = {**dict(zip(graph.inputs, inputs)), **values}
                xs = tuple(summary(known[v]) for v in eqn.inputs if v in known)
                return BadValue(eqn.op.name, line(eqn), "compiled", xs, bad)
    return BadValue()
