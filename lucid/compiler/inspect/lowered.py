"""Ahead-of-time compilation: `jit(f).lower(*args).compile()`, as in JAX.

A function is traced with the types of its arguments, so it can be compiled before values exist.
"""

from __future__ import annotations

import functools
from typing import Any

from lucid.compiler.inspect.stages import stage_of
from lucid.errors import ArgumentError
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.types import Type
from lucid.ops.core.promote import as_tensor
from lucid.ops.higher_order.call import Call, program_of_call
from lucid.tape.bind import bind
from lucid.tape.recording.trace import trace_types


class Lowered:
    """A jitted function traced for the types of its arguments.

    graph       its Graph, with the tensors that it closes over as last inputs
    in_tree     the structure of (args, kwargs)
    out_tree    the structure of its result
    """

    def __init__(self, jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        static = {i for i in jitted.static_indices(args) if i < len(args)}
        self.static = {i: args[i] for i in static}
        self.name = jitted.name

        @functools.wraps(jitted.function)
        def call(*dynamic: Any, **rest: Any) -> Any:
            return jitted.function(*self.all_arguments(dynamic), **rest)

        dynamic = tuple(x for i, x in enumerate(args) if i not in static)
        leaves, self.in_tree = flatten((dynamic, kwargs))
        self.in_types = tuple(x if isinstance(x, Type) else as_tensor(x).type for x in leaves)
        self.graph, self.out_tree, self.captured = trace_types(call, dynamic, kwargs)

    def all_arguments(self, dynamic: tuple[Any, ...]) -> list[Any]:
        """Return all positional arguments: the static ones at their places among the others."""
        rest = iter(dynamic)
        n = len(dynamic) + len(self.static)
        return [self.static[i] if i in self.static else next(rest) for i in range(n)]

    def as_text(self, stage: str = "traced") -> str:
        """Return the Graph as text, after a stage of the compiler."""
        return str(stage_of(self.graph, stage))

    def compile(self) -> Compiled:
        """Compile the Graph, and return a function of arguments of exactly these types."""
        return Compiled(self)


class Compiled:
    """A function compiled for one signature; other types are an error."""

    def __init__(self, lowered: Lowered) -> None:
        self.lowered = lowered
        self.out_tree = lowered.out_tree
        program_of_call(lowered.graph, eager=False)

    def as_text(self) -> str:
        """Return the plan as text."""
        return self.lowered.as_text("planned")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        lowered = self.lowered
        dynamic = tuple(x for i, x in enumerate(args) if i not in lowered.static)
        leaves, tree = flatten((dynamic, kwargs))
        tensors = [as_tensor(x) for x in leaves]
        types = tuple(x.type for x in tensors)
        if tree != lowered.in_tree or types != lowered.in_types:
            wanted = ", ".join(map(str, lowered.in_types))
            facts = f"called with {', '.join(map(str, types))}, compiled for {wanted}"
            raise ArgumentError(f"{lowered.name}: {facts}; call the jitted function for others")
        outs = bind(Call(lowered.graph), *tensors, *lowered.captured)
        return unflatten(lowered.out_tree, outs)
