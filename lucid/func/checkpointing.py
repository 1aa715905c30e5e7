"""checkpoint: trade compute for memory by recomputing intermediate values in the backward pass.

The function is traced to a Graph, which becomes one `checkpoint` equation that saves its operands
and the values selected by the policy. Random keys are operands, so the recomputation draws the same
numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Container, Sequence
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

from lucid.errors import ArgumentError
from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.rewrite import dce
from lucid.ir.text import readable_name
from lucid.ir.types import Type, is_differentiable
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor
from lucid.ops.higher_order.checkpoint_op import Checkpoint, Named
from lucid.ops.higher_order.exactness import decided_by, decides, inexact
from lucid.ops.linalg.contraction import Einsum
from lucid.support.markup import bars_html
from lucid.tape.bind import bind, bind_precomputed, fresh
from lucid.tape.cut import Cut, cut
from lucid.tape.node import GRAD, TRACE
from lucid.tape.recording.recorder import CollectEffects
from lucid.tape.recording.trace import function_name, input_names
from lucid.tape.scopes import is_placeholder
from lucid.tape.views import tensor_of
from lucid.transforms.vjp import vjp

Policy = str | Collection[str] | Callable[[Equation], bool]

P = ParamSpec("P")
R = TypeVar("R")


@overload
def checkpoint(f: Callable[P, R], *, policy: Policy = "nothing") -> Callable[P, R]: ...
@overload
def checkpoint(
    f: None = None, *, policy: Policy = "nothing"
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
@public_function("func")
def checkpoint(f: Callable[..., Any] | None = None, *, policy: Policy = "nothing") -> Any:
    """Return `f` with derivatives that recompute intermediate values instead of saving them.

    policy    what is saved: "nothing", "dots" (results of matrix products), "everything", names
              given by `checkpoint_name`, or a function of an Equation

    >>> import lucid
    >>> f = lucid.func.checkpoint(lambda x: lucid.sin(lucid.sin(x)).sum())
    >>> lucid.func.grad(f)(lucid.tensor([0.0, 0.0]))
    Tensor([1., 1.])
    """
    if f is None:
        return functools.partial(checkpoint, policy=policy)
    keep = policy_function(policy)

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten((args, kwargs))
        positions = [i for i, x in enumerate(leaves) if hasattr(x, "shape")]
        tensors = [as_tensor(leaves[i]) for i in positions]

        def call(values: Sequence[Any]) -> Any:
            full = list(leaves)
            for i, x in zip(positions, values):
                full[i] = x
            new_args, new_kwargs = unflatten(tree, full)
            return f(*new_args, **new_kwargs)

        results, section, out_tree = trace_function(call, tensors)
        graph, n_out = with_saved_outputs(section.graph(getattr(f, "__name__", "checkpoint")), keep)
        captured = [tensor_of(section.slots[slot]) for slot in section.captured]
        op, operands = Checkpoint(graph, n_out), [*tensors, *captured]
        if len(graph.outputs) > n_out or any(y.raw.__class__ is not np.ndarray for y in results):
            outs = bind(op, *operands)
        else:
            values = copy_aliased([y.value for y in results], operands)
            outs = bind_precomputed(op, tuple(operands), values)
        return unflatten(out_tree, outs[:n_out])

    return wrapped


def trace_function(call: Callable[..., Any], tensors: Sequence[Any]) -> tuple[list[Any], Cut, Any]:
    """Run a function of tensors once; return its results, its Cut and the output structure.

    It runs as it would without a checkpoint, including in-place writes and random draws, so those
    happen once: a recomputation reads the same keys and the same values from before the writes.
    """
    inputs = [fresh(x, TRACE | (GRAD if is_differentiable(x.dtype) else 0)) for x in tensors]
    with CollectEffects() as effects:
        leaves, tree = flatten(call(inputs))
        results = [as_tensor(y) for y in leaves]
    return results, cut(inputs, results, effects=effects), tree


def copy_aliased(values: Sequence[np.ndarray], operands: Sequence[Any]) -> tuple[np.ndarray, ...]:
    """Return the values of results, copied where they share memory."""
    out: list[np.ndarray] = []
    for y in values:
        others = [*[x.value for x in operands], *out]
        out.append(y.copy() if any(np.may_share_memory(y, x) for x in others) else y)
    return tuple(out)


def policy_function(policy: Policy) -> Callable[[Equation], bool]:
    """Return a policy as a predicate: True if the results of an Equation are saved."""
    if callable(policy):
        return policy
    if policy == "nothing":
        return lambda eqn: False
    if policy == "everything":
        return save_everything
    if policy == "dots":
        return lambda eqn: isinstance(eqn.op, Einsum) or eqn.op.name == "matmul"
    if isinstance(policy, str):
        raise ArgumentError(
            f"checkpoint: policy={policy!r} is not one of nothing, dots, everything, a list of "
            "names or a function"
        )
    names = frozenset(policy)
    return lambda eqn: isinstance(eqn.op, Named) and eqn.op.label in names


def save_everything(eqn: Equation) -> bool:
    """The policy that saves everything the derivative reads."""
    return True


def with_saved_outputs(graph: Graph, keep: Callable[[Equation], bool]) -> tuple[Graph, int]:
    """Return the Graph with the residuals that the policy saves as additional outputs.

    What is compared with something saved is saved too, or the result of that comparison, unless
    recomputing it gives the same bits.
    """
    n = len(graph.outputs)
    wrt = [x for x in graph.inputs if is_differentiable(x.type.dtype)]
    seeded = [is_differentiable(y.type.dtype) for y in graph.outputs]
    if not wrt or not any(seeded):
        return graph, n
    derivative = vjp(graph, wrt, seeded)
    read = set(derivative.residuals) - set(graph.inputs)
    saved = [
        var
        for eqn in graph.equations
        if keep(eqn)
        for var in eqn.outputs
        if var in read or keep is not save_everything
    ]
    if saved:
        needed = dce(replace(graph, outputs=tuple(read)))
        saved += decisive(needed, saved, decided_by(derivative.graph))
    return Graph(graph.name, graph.inputs, graph.equations, (*graph.outputs, *saved)), n


def decisive(graph: Graph, saved: Sequence[Var], compared: Container[Var]) -> list[Var]:
    """Return what is compared, and the results of comparisons, that depend on saved values."""
    dependent, differing = set(saved), inexact(graph, set(saved))
    found: list[Var] = []
    for eqn in graph.equations:
        if dependent.isdisjoint(eqn.inputs):
            continue
        dependent.update(eqn.outputs)
        is_decision = decides(eqn)
        found += [y for y in eqn.outputs if y in differing and (is_decision or y in compared)]
    return found


@public_function("func")
def checkpoint_name(x: Any, name: str) -> Any:
    """Return `x` with a name by which a policy of `checkpoint` can save it."""
    return bind(Named(name), as_tensor(x))


@dataclass(frozen=True)
class Residual:
    """A value that is saved for the derivative."""

    type: Type
    nbytes: int
    operation: str
    source: str


class Residuals(list[Residual]):
    """A list of saved values: a table as text, a picture in a notebook and for `lucid.view`."""

    @property
    def nbytes(self) -> int:
        """The total number of bytes."""
        return sum(x.nbytes for x in self)

    def __repr__(self) -> str:
        rows = [(str(x.type), f"{x.nbytes:,}", x.operation, x.source) for x in self]
        rows = [("kept", "bytes", "from", "line"), *rows, ("", f"{self.nbytes:,}", "all", "")]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [
            f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:<{widths[2]}}  {d}".rstrip()
            for a, b, c, d in rows
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (f"{x.type} {x.operation}", float(x.nbytes), f"{x.nbytes:,} {x.source}")
            for x in sorted(self, key=lambda x: -x.nbytes)
        ]
        return bars_html(f"{self.nbytes:,} bytes are saved for the backward pass", rows)


def residual_name(var: Var) -> str:
    """The name of an argument or a parameter."""
    return "a constant" if is_placeholder(var.name) else readable_name(var.name) or "an argument"


@public_function("func")
def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Residuals:
    """Return the values that reverse mode saves in a run of `f`; `lucid.view` draws the result.

    Arguments and parameters have their names (`params['w']`, `blocks.0.weight`), others the
    operation that made them.

    >>> import lucid
    >>> lucid.func.saved_residuals(lambda x: lucid.sin(x).sum(), lucid.ones(3))[0].nbytes
    12
    """
    leaves, tree = flatten((args, kwargs))
    inputs = [fresh(as_tensor(x)) for x in leaves]
    new_args, new_kwargs = unflatten(tree, inputs)
    outputs = [as_tensor(y) for y in flatten(f(*new_args, **new_kwargs))[0]]
    section = cut(inputs, outputs)
    names = input_names(f, args, kwargs)
    graph = section.graph(function_name(f), names, section.tensor_names(f))
    makers: dict[Var, Equation] = {y: eqn for eqn in graph.equations for y in eqn.outputs}
    wrt = [x for x in graph.inputs if is_differentiable(x.type.dtype)]
    seeded = [is_differentiable(y.type.dtype) for y in graph.outputs]
    found = Residuals()
    for var in vjp(graph, wrt, seeded).residuals:
        eqn = makers.get(var)
        place = "" if eqn is None or eqn.source is None else str(eqn.source)
        what = residual_name(var) if eqn is None else eqn.op.name
        size = var.type.size * var.type.dtype.itemsize
        found.append(Residual(var.type, size, what, place))
    return found
