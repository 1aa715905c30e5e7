"""checkpoint: less memory for derivatives, by computing values again instead of keeping them.

The function is traced to a Graph, and the Graph is one `checkpoint` equation, which keeps its
operands and what the policy names. Keys of random numbers are among the operands, so the second
computation draws what the first one drew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from lucid.errors import ArgumentError
from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.source import at_line
from lucid.ir.types import Type, is_differentiable
from lucid.ops.core.promote import as_tensor
from lucid.ops.higher_order.checkpoint_op import Checkpoint, Named
from lucid.ops.linalg.contraction import Einsum
from lucid.tape.bind import bind, bind_known, fresh
from lucid.tape.cut import Cut, cut
from lucid.tape.node import GRAD, TRACE, Trace, leaf
from lucid.tape.views import tensor_of
from lucid.transforms.vjp import vjp

Policy = str | Collection[str] | Callable[[Equation], bool]

_depth = count(3000)


def checkpoint(f: Callable[..., Any] | None = None, *, policy: Policy = "nothing") -> Any:
    """`f`, whose derivatives compute intermediate values again instead of keeping them.

    policy    what is kept after all: "nothing", "dots" (results of matrix products), "everything",
              names given by `checkpoint_name`, or a function of an Equation

    >>> import lucid
    >>> f = lucid.func.checkpoint(lambda x: lucid.sin(lucid.sin(x)).sum())
    >>> lucid.func.grad(f)(lucid.tensor([0.0, 0.0]))
    Tensor([1., 1.])
    """
    if f is None:
        return functools.partial(checkpoint, policy=policy)
    keep = decision(policy)

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten((args, kwargs))
        places = [i for i, x in enumerate(leaves) if hasattr(x, "shape")]
        tensors = [as_tensor(leaves[i]) for i in places]

        def on(values: Sequence[Any]) -> Any:
            full = list(leaves)
            for i, x in zip(places, values):
                full[i] = x
            new_args, new_kwargs = unflatten(tree, full)
            return f(*new_args, **new_kwargs)

        results, section, out_tree = traced(on, tensors)
        graph, n_out = extended(section.graph(getattr(f, "__name__", "checkpoint")), keep)
        captured = [tensor_of(section.slots[slot]) for slot in section.captured]
        op, operands = Checkpoint(graph, n_out), [*tensors, *captured]
        if len(graph.outputs) > n_out or any(y.value is None for y in results):
            outs = bind(op, *operands)
        else:
            values = apart([y.value for y in results], operands)
            outs = bind_known(op, tuple(operands), values)
        return unflatten(out_tree, outs[:n_out])

    return wrapped


def traced(on: Callable[..., Any], tensors: Sequence[Any]) -> tuple[list[Any], Cut, Any]:
    """The results of a function of tensors, with values where those have some, and its Cut.

    It runs once, as it would without a checkpoint: what it writes or draws, it writes and draws so.
    """
    trace = Trace("checkpoint", next(_depth))
    known = all(x.value is not None for x in tensors)
    flags = [TRACE | (GRAD if is_differentiable(x.dtype) else 0) for x in tensors]
    inputs = [
        fresh(x, flag) if known else leaf(x.type, trace, flag) for x, flag in zip(tensors, flags)
    ]
    try:
        leaves, tree = flatten(on(inputs))
    finally:
        trace.active = False
    results = [as_tensor(y) for y in leaves]
    return results, cut(inputs, results), tree


def apart(values: Sequence[np.ndarray], operands: Sequence[Any]) -> tuple[np.ndarray, ...]:
    """The values of results, each in memory of its own."""
    out: list[np.ndarray] = []
    for y in values:
        others = [*[x.value for x in operands], *out]
        out.append(y.copy() if any(np.may_share_memory(y, x) for x in others) else y)
    return tuple(out)


def decision(policy: Policy) -> Callable[[Equation], bool]:
    """A policy as a function that says whether the results of an Equation are kept."""
    if callable(policy):
        return policy
    if policy == "nothing":
        return lambda eqn: False
    if policy == "everything":
        return always
    if policy == "dots":
        return lambda eqn: isinstance(eqn.op, Einsum) or eqn.op.name == "matmul"
    if isinstance(policy, str):
        raise ArgumentError(
            "checkpoint: a policy is nothing, dots, everything, a list of names or a function, "
            f"not {policy!r}{at_line()}"
        )
    names = frozenset(policy)
    return lambda eqn: isinstance(eqn.op, Named) and eqn.op.label in names


def always(eqn: Equation) -> bool:
    """The policy that keeps all that the derivative reads."""
    return True


def extended(graph: Graph, keep: Callable[[Equation], bool]) -> tuple[Graph, int]:
    """The Graph with what its derivative reads and the policy keeps as further outputs."""
    n = len(graph.outputs)
    wrt = [x for x in graph.inputs if is_differentiable(x.type.dtype)]
    seeded = [is_differentiable(y.type.dtype) for y in graph.outputs]
    read = set(vjp(graph, wrt, seeded).residuals) - set(graph.inputs) if wrt and any(seeded) else ()
    kept = [
        var
        for eqn in graph.equations
        if keep(eqn)
        for var in eqn.outputs
        if var in read or keep is not always
    ]
    return Graph(graph.name, graph.inputs, graph.equations, (*graph.outputs, *kept)), n


def checkpoint_name(x: Any, name: str) -> Any:
    """`x`, with a name by which a policy of `checkpoint` may keep it."""
    return bind(Named(name), as_tensor(x))


@dataclass(frozen=True)
class Residual:
    """A value that is kept between a function and its derivative."""

    type: Type
    nbytes: int
    operation: str
    source: str


class Residuals(list[Residual]):
    """What is kept, as a list that prints as a table."""

    @property
    def nbytes(self) -> int:
        """The bytes of all of them."""
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


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Residuals:
    """What reverse mode keeps of a run of `f` until its derivative is taken.

    >>> import lucid
    >>> lucid.func.saved_residuals(lambda x: lucid.sin(x).sum(), lucid.ones(3))[0].nbytes
    12
    """
    leaves, tree = flatten((args, kwargs))
    inputs = [fresh(as_tensor(x)) for x in leaves]
    new_args, new_kwargs = unflatten(tree, inputs)
    outputs = [as_tensor(y) for y in flatten(f(*new_args, **new_kwargs))[0]]
    graph = cut(inputs, outputs).graph("f")
    makers: dict[Var, Equation] = {y: eqn for eqn in graph.equations for y in eqn.outputs}
    wrt = [x for x in graph.inputs if is_differentiable(x.type.dtype)]
    seeded = [is_differentiable(y.type.dtype) for y in graph.outputs]
    found = Residuals()
    for var in vjp(graph, wrt, seeded).residuals:
        eqn = makers.get(var)
        place = "" if eqn is None or eqn.source is None else str(eqn.source)
        what = "an argument" if eqn is None else eqn.op.name
        size = var.type.size * var.type.dtype.itemsize
        found.append(Residual(var.type, size, what, place))
    return found
