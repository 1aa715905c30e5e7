"""custom_vmap: functions with a user-defined batch rule, as in jax.custom_batching."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.errors import GraphError, ShapeError
from lucid.ir.graph import Graph
from lucid.ir.primitive import Primitive
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.types import Type, is_differentiable
from lucid.ops.core.arguments import check_callable
from lucid.ops.core.promote import as_tensor
from lucid.ops.higher_order.call import Call
from lucid.public.declare import public
from lucid.tape.bind import bind, fresh
from lucid.tape.cut import cut
from lucid.tape.modes import local
from lucid.tape.node import GRAD, TRACE, is_recording
from lucid.tape.recording.trace import function_name
from lucid.tape.views import tensor_of


@public("func")
class custom_vmap:
    """A function whose batch rule is given by `def_vmap(rule)`.

    rule(axis_size, in_batched, *args)    (outputs, out_batched)

    `in_batched` and `out_batched` are trees of booleans; examples are in axis 0 of batched arrays.

    >>> import lucid
    >>> @lucid.func.custom_vmap
    ... def total(x):
    ...     return x.sum()
    >>> @total.def_vmap
    ... def rule(axis_size, in_batched, x):
    ...     return x.sum(1) + 100.0, True
    >>> total(lucid.ones(2)), lucid.func.vmap(total)(lucid.ones(3, 2))
    (Tensor(2.), Tensor([102., 102., 102.]))
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        check_callable("custom_vmap", fun)
        functools.update_wrapper(self, fun)
        self.function = fun
        self.rule: Callable[..., Any] | None = None

    def def_vmap(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the batch rule; also usable as a decorator."""
        self.rule = rule
        return rule

    def __call__(self, *args: Any) -> Any:
        if self.rule is None:
            name = function_name(self.function)
            raise GraphError(f"{name}: no batch rule was given; call {name}.def_vmap(...) first")
        leaves, tree = flatten(args)
        given = [as_tensor(x) for x in leaves]
        if not (local.maps or is_recording() or any(x.node is not None for x in given)):
            return self.function(*args)
        inputs = [fresh(x, TRACE | (GRAD if is_differentiable(x.dtype) else 0)) for x in given]
        result, out_tree = flatten(self.function(*unflatten(tree, inputs)))
        section = cut(inputs, [as_tensor(y) for y in result])
        captured = [tensor_of(section.slots[s]) for s in section.captured]
        rule = BatchRule(self, tree, out_tree, len(given))
        return unflatten(
            out_tree, bind(CustomBatch(section.graph("forward"), rule), *given, *captured)
        )


@dataclass(frozen=True)
class BatchRule:
    """The user's rule on leaves; equal rules make equal equations."""

    custom_function: custom_vmap
    tree: Any
    out_tree: Any
    n_in: int

    def outputs(self, n: int, batched: Sequence[bool], xs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs of a batch, as Batched."""
        from lucid.transforms.vmap import Batched

        name = function_name(self.custom_function.function)
        args = unflatten(self.tree, xs[: self.n_in])
        flags = unflatten(self.tree, batched[: self.n_in])
        found = self.custom_function.rule(n, list(flags), *args)  # type: ignore[misc]
        if not isinstance(found, tuple) or len(found) != 2:
            raise GraphError(f"{name}: the batch rule must return (outputs, out_batched)")
        values, tree = flatten(found[0])
        marks = [found[1]] * len(values) if isinstance(found[1], bool) else flatten(found[1])[0]
        if tree != self.out_tree or len(marks) != len(values):
            raise GraphError(f"{name}: the batch rule and the function return different structures")
        outs = tuple(Batched(as_tensor(y), bool(mark)) for y, mark in zip(values, marks))
        for y in outs:
            if y.batched and y.tensor.shape[:1] != (n,):
                facts = f"an output marked as batched has shape {y.tensor.shape}"
                raise ShapeError(f"{name}: {facts}, not {n} examples in axis 0")
        return outs


class CustomBatch(Primitive):
    """The outputs of `graph`, with a batch rule in Python; derivatives are those of the Graph."""

    graph: Graph
    rule: Any
    value_graph = "graph"

    def infer(self, *xs: Type) -> tuple[Type, ...]:
        return self.graph.out_types

    def eval(self, *xs: np.ndarray) -> tuple[Any, ...]:
        return Call(self.graph).eval(*xs)

    def jvp(self, ts: Any, ys: Any, *xs: Any) -> tuple[Any, ...]:
        return Call(self.graph).jvp(ts, ys, *xs)

    def vjp(self, cts: Any, ys: Any, *xs: Any) -> tuple[Any, ...]:
        return Call(self.graph).vjp(cts, ys, *xs)

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> tuple[Any, ...]:
        return self.rule.outputs(n, batched, xs)
