"""explain_no_grad: why the gradient of a loss is None or zero."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.autograd.engine import grad as autograd_grad
from lucid.compiler.jit.jitted import Jitted
from lucid.debugging.recording import line, recorded
from lucid.debugging.zero_gradient import zero_places
from lucid.errors import ArgumentError, DetachWarning, LucidError
from lucid.func.derivatives import grad
from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.rewrite import inline_regions
from lucid.ir.types import is_differentiable
from lucid.ops.core.promote import as_tensor
from lucid.public.declare import public
from lucid.tape.cut import cut
from lucid.tape.node import Traced
from lucid.tape.recording.trace import trace

INDEPENDENT = "the loss does not depend on the tensor: nothing that it computes reads it"
FLAT = ("floor", "ceil", "trunc", "round", "sign", "floor_divide")  # derivative zero


@dataclass(frozen=True)
class NoGradient:
    """Where the path from a tensor to a loss is cut: a reason and a line for each place.

    flows      whether a path is left
    is_zero    whether the gradient along it is zero at the given values
    """

    reasons: tuple[str, ...]
    flows: bool
    is_zero: bool = False

    def __repr__(self) -> str:
        if self.is_zero:
            return "\n".join(["the gradient is zero:", *[f"  {r}" for r in self.reasons]])
        if self.flows:
            partly = [f"some ways are cut: {reason}" for reason in self.reasons]
            return "\n".join(["the gradient flows from the loss to the tensor", *partly])
        return "\n".join(["no gradient reaches the tensor:", *[f"  {r}" for r in self.reasons]])


@public()
def explain_no_grad(loss: Any, x: Any, *args: Any) -> NoGradient:
    """Explain why the gradient of a loss with respect to `x` is None or zero.

    loss    a tensor, or a function of `x` and further arguments; a function is run again and shows
            more, since a tensor computed without gradients has no history

    >>> import lucid
    >>> lucid.explain_no_grad(lambda x: (x.detach() * 2).sum(), lucid.ones(3))
    no gradient reaches the tensor:
      stop_gradient: detach(), or a result computed under no_grad   [<doctest ...>:1]
    """
    if isinstance(loss, Traced):
        return explain_tensor(loss, x)
    if not callable(loss):
        raise ArgumentError(f"explain_no_grad: {type(loss).__name__} is not a tensor or a function")
    return explain_function(loss, (x, *args))


def explain_tensor(loss: Any, x: Any) -> NoGradient:
    remedy = "pass the function instead: explain_no_grad(f, x)"
    if not isinstance(x, Traced):
        return NoGradient((f"{type(x).__name__} is not a tensor",), False)
    if not is_differentiable(x.dtype):
        return NoGradient((f"{x.dtype} has no derivative; use a floating dtype",), False)
    if loss.node is None:
        reason = (
            f"the loss has no history (no_grad, detach(), or nothing required a gradient); {remedy}"
        )
        return NoGradient((reason,), False)
    if x.node is None:
        return NoGradient(("the tensor does not require a gradient: x.requires_grad_()",), False)
    graph = cut([x], [loss]).graph()
    found = explain_graph(graph, graph.inputs[0])
    if found.flows and not np.any(autograd_grad(loss, x, retain_graph=True).numpy()):
        return NoGradient((f"at these values; to see where, {remedy}",), True, True)
    return found


def explain_function(f: Callable[..., Any], args: Any) -> NoGradient:
    try:
        graph = inline_regions(trace(f)(*args))
    except LucidError as error:
        return NoGradient((f"a conversion leaves the graph: {error}",), False)
    found = explain_graph(graph, graph.inputs[0])
    if found.flows:
        return found_zero(f, args) or found
    if found.reasons == (INDEPENDENT,):
        return NoGradient(conversions(f, args) or found.reasons, False)
    return found


def found_zero(f: Callable[..., Any], args: Any) -> NoGradient | None:
    """The equations where the gradient of a function becomes zero, or None if it is not."""
    try:
        graph, inputs = recorded(f, args)
        places = zero_places(graph, inputs, graph.inputs[0])
    except LucidError:  # without values, or with a Function that cannot be traced
        return None
    return NoGradient(tuple(places), True, True) if places else None


def conversions(f: Callable[..., Any], args: Any) -> tuple[str, ...]:
    """Where Python reads numbers that depend on the first argument: these leave the graph."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DetachWarning)
            grad(lambda *xs: as_tensor(f(*xs)).sum())(*args)
    except LucidError as error:  # grad refuses a conversion that trace lets pass
        return (f"a conversion leaves the graph: {error}",)
    try:
        path = Jitted(f).path_for(args, {})
    except LucidError:
        return ()
    return tuple(
        f"{guard.what}: a conversion to a Python number or an array leaves the graph   "
        f"[{guard.source}]"
        for guard in path.guards
    )


def explain_graph(graph: Graph, x: Var) -> NoGradient:
    """Follow the values that depend on `x`, and record where the derivative is cut."""
    if not is_differentiable(x.type.dtype):
        return NoGradient((f"{x.type.dtype} has no derivative; use a floating dtype",), False)
    depends, smooth = {x}, {x}
    cuts: dict[Equation, str] = {}
    for eqn in graph.equations:
        inside = [v for v in eqn.inputs if not isinstance(v, Literal) and v in depends]
        if not inside:
            continue
        depends |= set(eqn.outputs)
        reason = cut_reason(eqn)
        if not any(v in smooth for v in inside):
            continue
        if reason:
            cuts[eqn] = reason
        else:
            smooth |= {v for v in eqn.outputs if is_differentiable(v.type.dtype)}
    ends = [v for v in graph.outputs if not isinstance(v, Literal)]
    flows = any(v in smooth for v in ends)
    wanted = needed(graph)
    reasons = [
        f"{eqn.op.name}: {reason}{line(eqn)}"
        for eqn, reason in cuts.items()
        if any(v in wanted for v in eqn.outputs)
    ]
    if not flows and not any(v in depends for v in ends):
        reasons = [INDEPENDENT]
    return NoGradient(tuple(reasons), flows)


def needed(graph: Graph) -> set[Any]:
    """The Vars that the outputs are computed from."""
    wanted = {v for v in graph.outputs if not isinstance(v, Literal)}
    for eqn in reversed(graph.equations):
        if any(v in wanted for v in eqn.outputs):
            wanted |= {v for v in eqn.inputs if not isinstance(v, Literal)}
    return wanted


def cut_reason(eqn: Equation) -> str:
    """Return why no derivative flows through an equation, or ""."""
    out = eqn.outputs[0].type.dtype
    if eqn.op.name == "stop_gradient":
        return "detach(), or a result computed under no_grad"
    if eqn.op.name == "cast" and not is_differentiable(out):
        return f"a conversion to {out}, which has no derivative"
    if out.kind == "b":
        return (
            "a comparison: its result is true or false; where(c, a, b) has a derivative in a and b"
        )
    if not any(is_differentiable(v.type.dtype) for v in eqn.outputs):
        return f"its result is {out}, which has no derivative"
    if eqn.op.name in FLAT:
        return "its derivative is zero everywhere"
    return "" if eqn.op.differentiable else "it has no derivative"
