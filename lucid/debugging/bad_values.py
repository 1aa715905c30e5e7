"""find_nan: the first equation that turns finite numbers into a nan or an infinity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.compiler.compile import compile_graph
from lucid.compiler.jit.jitted import Jitted
from lucid.debugging.recording import line, recorded, summary, walk
from lucid.func.derivatives import value_and_grad
from lucid.ir.graph import Graph, Literal, Var
from lucid.ir.pytree import flatten
from lucid.ir.rewrite import dce
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
    (`backward`). A jitted function is also run as compiled code, where bisection of its Graph finds
    the equation.

    >>> import lucid
    >>> lucid.find_nan(lambda x: lucid.log(x).sum(), lucid.tensor([1.0, 0.0]))
    forward: log gives -inf at [1]   [<doctest ...>:1]
      operand 0: float32[2] from 0 to 1
    """
    graph, inputs = recorded(f, args)
    found = bad_argument(graph, inputs) or bad_equation(graph, inputs, "forward", infinities)
    is_compiled = isinstance(f, Jitted)
    if not found and is_compiled:
        found = bad_compiled(graph, inputs, "forward", infinities)
    chosen = [i for i, x in enumerate(args) if has_floats(x)]
    is_scalar = len(graph.outputs) >= 1 and graph.outputs[0].type.shape == ()
    if found or not (backward and chosen and is_scalar):
        return found
    function = f.function if isinstance(f, Jitted) else f
    both = value_and_grad(function, argnums=tuple(chosen))
    graph, inputs = recorded(both, args)
    found = bad_equation(graph, inputs, "backward", infinities)
    return (
        bad_compiled(graph, inputs, "backward", infinities) if is_compiled and not found else found
    )


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


def bad_compiled(graph: Graph, inputs: Any, part: str, infinities: bool) -> BadValue:
    """The equation that makes the first bad result of compiled code, by bisection of the Graph.

    The beginning of a program, up to an equation, is compiled with the values that the rest reads
    as results. They are finite before the equation that is found, and not after it.
    """
    results = frontier(graph, len(graph.equations))
    if not any_bad(compiled_values(graph, results, inputs), infinities):
        return BadValue()
    low, high = 0, len(graph.equations)
    while high - low > 1:
        middle = (low + high) // 2
        values = compiled_values(graph, frontier(graph, middle), inputs)
        low, high = (low, middle) if any_bad(values, infinities) else (middle, high)
    eqn = graph.equations[high - 1]
    ys = compiled_values(graph, list(eqn.outputs), inputs)
    bad = next((text for y in ys if (text := first_bad(y, infinities))), "")
    read = [x for x in eqn.inputs if not isinstance(x, Literal)]
    made = [x for x in read if x not in graph.inputs]
    known = dict(zip(graph.inputs, inputs)) | dict(zip(made, compiled_values(graph, made, inputs)))
    xs = [x.array if isinstance(x, Literal) else known[x] for x in eqn.inputs]
    return BadValue(eqn.op.name, line(eqn), f"compiled {part}", tuple(map(summary, xs)), bad)


def frontier(graph: Graph, count: int) -> list[Var]:
    """The values of the first `count` equations that the rest of the Graph or its results read."""
    rest = [x for eqn in graph.equations[count:] for x in eqn.inputs]
    read = {x for x in (*rest, *graph.outputs) if isinstance(x, Var)}
    return [y for eqn in graph.equations[:count] for y in eqn.outputs if y in read]


def compiled_values(graph: Graph, wanted: list[Var], inputs: Any) -> list[Any]:
    """Values of a Graph, computed by compiled code."""
    if not wanted:
        return []
    part = dce(Graph(graph.name, graph.inputs, graph.equations, tuple(wanted)))
    return list(compile_graph(part)([np.array(x) for x in inputs]))


def any_bad(values: list[Any], infinities: bool) -> bool:
    return any(first_bad(x, infinities) for x in values)
