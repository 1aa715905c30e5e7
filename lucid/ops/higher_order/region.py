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
from lucid.ops.core.promote import Default
from lucid.ops.higher_order.call import Call
from lucid.ops.higher_order.custom_derivative import apply_derivative
from lucid.ops.higher_order.expected_call import follow_call, is_constant, learn_call
from lucid.support.caches import cached_property, new_cache
from lucid.tape.bind import bind
from lucid.tape.cut import cut
from lucid.tape.fast_bind import bind_one, bind_pair
from lucid.tape.modes import current, local
from lucid.tape.node import TRACE, Trace, Traced, followers, leaf, wrap
from lucid.tape.recording.trace import replay
from lucid.tape.tiering import COMPOSITION, Tiering, table

F = TypeVar("F", bound=Callable[..., Any])
MAX_TUPLES = 1024


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


def compile_when_hot(function: F) -> F:
    """Run `function`, of tensors and hashable options, as one operation once it is hot.

    If it returns a tensor it becomes a Region, if it returns a tuple of tensors a Call.

    It must be pure: no random draws, no writes to operands, no reads of values.
    """

    regions: dict[Any, Any] = table.shortcut()  # the same as in the table

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not Tiering.enabled or not current().no_observers:
            return function(*args, **kwargs)
        follower, at = None, 0
        if followers and (follower := followers.get(get_ident())) is not None:
            y = follow_call(follower, call, args, kwargs)
            if y is not None:
                return y
            at = follower.at
        tensors, parts = [], [Default.floating, *kwargs]
        for x in (*args, *kwargs.values()) if kwargs else args:
            if isinstance(x, Traced):
                value, node = x.raw, x.node
                if value is None or (node is not None and node.flags & TRACE):
                    return function(*args, **kwargs)
                tensors.append(x)
                parts += (value.dtype.char, value.shape)
            elif isinstance(x, Primitive):
                parts.append(x)
            elif x.__class__ is tuple:
                parts.append(tuple_key(x))
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
        region, constants = found
        if constants:
            tensors += constants
        try:
            if not region.is_region or not 1 <= len(tensors) <= 2:
                y = bind(region, *tensors)
            elif follower is not None and region is follower.steps[at].op:
                y = bind(region, *tensors)  # the next step, whether its operands are tracked or not
            elif len(tensors) == 1:
                y = bind_one(region, tensors[0])
            else:
                y = bind_pair(region, tensors[0], tensors[1])
        except LucidError:
            return function(*args, **kwargs)  # its error message is more specific
        if follower is not None and follower.at == at + 1:
            learn_call(call, args, kwargs, constants, y)
        return y

    return call  # type: ignore[return-value]


# id of a tuple -> it and its key: shapes and axes are mostly the same objects
_tuple_keys: dict[int, tuple[Any, Any]] = new_cache(f"{__name__}._tuple_keys", {})


def tuple_key(x: tuple[Any, ...]) -> Any:
    """`constant_key` of a tuple, kept for constants."""
    found = _tuple_keys.get(id(x))
    if found is not None and found[0] is x:
        return found[1]
    key = constant_key(x, value_key)
    if is_constant(x):
        if len(_tuple_keys) >= MAX_TUPLES:
            _tuple_keys.clear()
        _tuple_keys[id(x)] = (x, key)
    return key


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
