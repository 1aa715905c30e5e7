"""The data that the debugging tools inspect: the Graph of a function, with all its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lucid.compiler.jit.jitted import Jitted
from lucid.errors import GraphError, LucidError
from lucid.ir.graph import Equation, Graph, Literal
from lucid.ir.primitive import Primitive
from lucid.ir.rewrite import inline_regions


def recorded(f: Callable[..., Any], args: Sequence[Any]) -> tuple[Graph, list[np.ndarray]]:
    """The Graph of a function for these arguments, and the values of its inputs."""
    jitted: Any = f if isinstance(f, Jitted) else Jitted(f)
    path = jitted.path_for(args, {})
    values = [x.value for x in jitted.operands(tuple(args), {})]
    return inline_regions(path.graph), [*values, *(path.arrays() or ())]


def walk(
    graph: Graph,
    inputs: Sequence[Any],
    skip_errors: bool = False,
    evaluate: Callable[[Primitive, list[Any]], Any] = lambda op, xs: op.eval(*xs),
) -> Iterator[tuple[Equation, list[Any], Any]]:
    """Interpret a Graph: each equation with the values of its operands and results.

    skip_errors    the results of an equation that cannot be evaluated again are None
    """
    env: dict[Any, Any] = dict(zip(graph.inputs, inputs, strict=True))
    for eqn in graph.equations:
        xs = [x.array if isinstance(x, Literal) else env[x] for x in eqn.inputs]
        try:
            if any(x is None for x in xs):
                raise GraphError("an operand is not known")
            with np.errstate(all="ignore"):
                found = evaluate(eqn.op, xs)
        except LucidError:
            if not skip_errors:
                raise
            env.update(dict.fromkeys(eqn.outputs))
            yield eqn, xs, None
            continue
        ys = list(found) if isinstance(found, tuple) else [np.asarray(found)]
        env.update(zip(eqn.outputs, ys))
        yield eqn, xs, ys


def line(eqn: Equation) -> str:
    """The user's line of an equation, in brackets."""
    return f"   [{eqn.source}]" if eqn.source else ""


def summary(x: Any) -> str:
    """Describe an operand briefly: its type and its range."""
    x = np.asarray(x)
    if x.size == 1:
        return f"{x.dtype} {x.item()!r}"
    shape = "x".join(map(str, x.shape))
    if not x.size or x.dtype.kind not in "fiub":
        return f"{x.dtype}[{shape}]"
    finite = x[np.isfinite(x)]
    ends = f" from {finite.min():.4g} to {finite.max():.4g}" if finite.size else ""
    bad = x.size - finite.size
    return f"{x.dtype}[{shape}]{ends}" + (f", {bad} not finite" if bad else "")
