"""Regions: a function made of several primitives, run as one primitive in eager mode.

A composition such as `layer_norm` is a dozen NumPy calls but a single loop to the compiler. Once it
was called a few times with the same types (`tape/tiering.py`), `compile_when_hot` binds a Region,
the Graph of the function for these types. The Region is interpreted until it is hot itself and runs
native code from then on; it saves only its operands, and a derivative sees the equations inside.
Observers that need every equation (a transform, a recording, anomaly detection) call the function
itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from lucid.errors import LucidError
from lucid.ir.graph import Graph
from lucid.ir.interpret import Program
from lucid.ir.primitive import HEAVY, Primitive
from lucid.ir.types import Type
from lucid.ops.core.constant_key import constant_key, value_key
from lucid.ops.core.promote import get_default_dtype
from lucid.ops.higher_order.call import Call
from lucid.ops.higher_order.custom_derivative import apply_derivative
from lucid.support.caches import cached_property
from lucid.tape.bind import bind
from lucid.tape.cut import cut
from lucid.tape.modes import current, local
from lucid.tape.node import TRACE, Trace, Traced, followers, leaf, wrap
from lucid.tape.recording.trace import replay
from lucid.tape.tiering import COMPOSITION, Tiering, table

F = TypeVar("F", bound=Callable[..., Any])


class Region(Primitive):
    """The only output of `graph`, computed as one primitive."""

    graph: Graph
    saves = "x"

    is_region: ClassVar[bool] = True
    numpy_calls = 5
    native_from = HEAVY
    value_graph = "graph"

    @cached_property
    def program(self) -> Program:
        return Program(self.graph)

    def infer(self, *xs: Type) -> Type:
        return self.graph.out_types[0]

    def eval(self, *xs: np.ndarray) -> Any:
        return self.program(xs)[0]

    def inline(self, *xs: Any) -> Any:
        return replay(self.graph, xs)[0]

    def jvp(self, ts: Any, y: Any, *xs: Any) -> Any:
        from lucid.transforms.jvp import jvp

        derivative = jvp(self.graph, self.graph.inputs, [t is not None for t in ts])
        return apply_derivative(derivative, self.graph, xs, (None,), ts)[0]

    def vjp(self, ct: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        from lucid.transforms.vjp import vjp

        derivative = vjp(self.graph, self.graph.inputs, [True])
        return tuple(apply_derivative(derivative, self.graph, xs, (None,), (ct,)))

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> Any:
        from lucid.transforms.vmap import batch_graph

        return bind(Region(batch_graph(self.graph, n, batched)), *xs)


class ClosedRegion(NamedTuple):
    """A Region (a Call if it has several results), and the constants that are its last operands."""

    region: Region | Call
    constants: tuple[Any, ...]


class FixedArguments:
    """The arguments of a Region that are not tensors: the same ones make it the same Region.

    Only if the types of the tensors are the same too, which is for the caller to compare.
    """

    def __init__(self, closed: ClosedRegion, args: tuple[Any, ...]) -> None:
        self.region, self.constants = closed
        self.default = get_default_dtype()
        self.args = [TENSOR if isinstance(x, Traced) else x for x in args]

    def operands(self, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return the operands of the Region for these arguments, None if another one is meant."""
        if len(args) != len(self.args) or get_default_dtype() is not self.default:
            return None
        tensors: list[Any] = []
        for x, fixed in zip(args, self.args):
            if fixed is TENSOR and isinstance(x, Traced):
                tensors.append(x)
            elif x is not fixed:
                return None
        return (*tensors, *self.constants)


TENSOR = object()
PLAIN = (type(None), bool, int, float, str)  # classes of what never changes


def compile_when_hot(function: F) -> F:
    """Run `function`, of tensors and hashable options, as one operation once it is hot.

    If it returns a tensor it becomes a Region, if it returns a tuple of tensors a Call.

    It must be pure: no random draws, no writes to operands, no reads of values.
    """

    regions: dict[Any, Any] = table.shortcut()  # the same as in the table
    arguments: dict[int, FixedArguments] = table.shortcut()  # by ids of Regions

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not Tiering.enabled or not current().no_observers:
            return function(*args, **kwargs)
        if followers and not kwargs:
            follower = followers.get(get_ident())
            if follower is not None:
                region = follower.steps[follower.at].op
                fixed = arguments.get(id(region))
                if fixed is not None and fixed.region is region:
                    xs = fixed.operands(args)
                    if xs is not None and (y := follower.follow(region, xs, True)) is not None:
                        return y
        tensors, parts = [], [get_default_dtype(), *kwargs]
        for x in (*args, *kwargs.values()) if kwargs else args:
            if isinstance(x, Traced):
                value, node = x.raw, x.node
                if value is None or (node is not None and node.flags & TRACE):
                    return function(*args, **kwargs)
                tensors.append(x)
                parts += (value.dtype.char, value.shape)
            elif isinstance(x, Primitive):
                parts.append(x)
            else:
                parts.append(constant_key(x, value_key))
        key = tuple(parts)
        try:
            found: Any = regions.get(key)
            entry = table.entry(COMPOSITION, (function, key)) if found is None else None
        except TypeError:  # an argument without a hash
            return function(*args, **kwargs)
        if entry is not None:
            found = entry.program
            if found is None:
                found = entry.count(1, lambda: trace_region(function, args, kwargs))
                if found is None:
                    return function(*args, **kwargs)
            regions[key] = found
            if not kwargs and all([isinstance(x, (Traced, *PLAIN)) for x in args]):
                arguments[id(found.region)] = FixedArguments(found, args)
        try:
            return bind(found.region, *tensors, *found.constants)
        except LucidError:
            return function(*args, **kwargs)  # its error message is more specific

    return call  # type: ignore[return-value]


def trace_region(function: Any, args: Any, kwargs: Any) -> ClosedRegion | None:
    """Trace a call as a Region, with the constants that the function created.

    Return None if the function cannot be traced.
    """
    trace = Trace(f"region of {function.__name__}")
    before, local.staging = local.staging, trace
    given = (*args, *kwargs.values())
    inputs = {i: leaf(x.type, trace) for i, x in enumerate(given) if isinstance(x, Traced)}
    filled = [inputs.get(i, x) for i, x in enumerate(given)]
    try:
        out = function(*filled[: len(args)], **dict(zip(kwargs, filled[len(args) :])))
        several = out.__class__ is tuple
        section = cut(inputs.values(), out if several else [out])
    except LucidError:
        return None
    finally:
        local.staging, trace.active = before, False
    constants = [section.slots[slot] for slot in section.captured]
    returned = not set(section.inputs).isdisjoint(section.outputs)
    if not section.rows or returned or any(x.flags for x in constants):
        return None
    graph = section.graph(function.__name__.lstrip("_")).stripped()
    made: Region | Call = Call(graph) if several else Region(graph)
    return ClosedRegion(made, tuple([wrap(x.saved) for x in constants]))
