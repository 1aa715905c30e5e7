"""Regions: a function made of several primitives, run as one primitive in eager mode.

A composition such as `layer_norm` is a dozen NumPy calls but a single loop to the compiler. From
its fourth call with the same types on, `compile_when_hot` binds a Region, the Graph of the function
for these types. The Region is interpreted until it is hot and runs native code from then on; it
saves only its operands, and a derivative sees the equations inside. Observers that need every
equation (a transform, a recording, anomaly detection) call the function itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from lucid.errors import LucidError
from lucid.ir.constant_key import constant_key, value_key
from lucid.ir.graph import Graph
from lucid.ir.interpret import Hot, Program
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.ops.core.promote import get_default_dtype
from lucid.ops.higher_order.custom_derivative import apply_derivative
from lucid.tape.bind import bind
from lucid.tape.cut import cut
from lucid.tape.modes import local
from lucid.tape.node import TRACE, Trace, Traced, leaf, wrap
from lucid.tape.tiering import WorkCounter, evict_older_half, operation_limit, work_on
from lucid.tape.trace import replay

F = TypeVar("F", bound=Callable[..., Any])
CALLS = 4  # with operands of the same types, before a function becomes a Region
_regions: dict[Any, Any] = {}  # calls so far, a ClosedRegion, or False if none can be traced


class Region(Primitive):
    """The only output of `graph`, computed as one primitive."""

    graph: Graph
    saves = "x"

    is_region: ClassVar[bool] = True

    @functools.cached_property
    def program(self) -> Program:
        return Program(self.graph)

    @functools.cached_property
    def counter(self) -> WorkCounter:
        return WorkCounter(operation_limit())

    def infer(self, *xs: Type) -> Type:
        return self.graph.out_types[0]

    def eval(self, *xs: np.ndarray) -> Any:
        counter = self.counter
        if counter.native is not None:
            return counter.native(xs)[0]
        counter.count_work(work_on(xs), lambda: self.graph)
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
    """A Region, and the constants that are its last operands."""

    region: Region
    constants: tuple[Any, ...]


def compile_when_hot(function: F) -> F:
    """Run `function`, of tensors and hashable options to one tensor, as a Region once it is hot.

    It must be pure: no random draws, no writes to operands, no reads of values.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not local.no_observers or Hot.compile is None:
            return function(*args, **kwargs)
        tensors, key = [], [function, get_default_dtype(), *kwargs]
        for x in (*args, *kwargs.values()) if kwargs else args:
            if isinstance(x, Traced):
                value, node = x.value, x.node
                if value is None or (node is not None and node.flags & TRACE):
                    return function(*args, **kwargs)
                tensors.append(x)
                key.append((value.dtype.char, value.shape))
            else:
                key.append(constant_key(x, value_key))
        try:
            found = _regions.get(signature := tuple(key))
        except TypeError:  # an argument without a hash
            return function(*args, **kwargs)
        if found.__class__ is not ClosedRegion:
            found = count_call(signature, found, function, args, kwargs)
            if found is None:
                return function(*args, **kwargs)
        try:
            return bind(found.region, *tensors, *found.constants)
        except LucidError:
            return function(*args, **kwargs)  # its error message is more specific

    return call  # type: ignore[return-value]


def count_call(
    signature: Any, found: Any, function: Any, args: Any, kwargs: Any
) -> ClosedRegion | None:
    """Count a call; return the Region of the function once it was called often enough."""
    if found is False:
        return None
    calls = 1 if found is None else found + 1
    if found is None:
        evict_older_half(_regions)
    if calls < min(CALLS, Hot.threshold):
        _regions[signature] = calls
        return None
    region = trace_region(function, args, kwargs)
    _regions[signature] = region or False
    return region


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
        section = cut(inputs.values(), [out])
    except LucidError:
        return None
    finally:
        local.staging, trace.active = before, False
    constants = [section.slots[slot] for slot in section.captured]
    if not section.rows or section.outputs[0] in section.inputs or any(x.flags for x in constants):
        return None
    name = function.__name__.lstrip("_")
    return ClosedRegion(
        Region(section.graph(name).stripped()), tuple([wrap(x.saved) for x in constants])
    )
