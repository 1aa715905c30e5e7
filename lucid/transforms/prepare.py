"""Pullback and pushforward of a Cut of the tape, through programs cached by structure.

The first time a structure occurs its Graph is built, differentiated and prepared; afterward one
lookup finds the program. If an outer transform (or `create_graph`) records, the derivative's Graph
is replayed through `bind` instead, so that it is itself on the tape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy import ndarray

from lucid.ir.graph import Graph, Literal, Var
from lucid.ir.types import Type
from lucid.ir.verify import verify
from lucid.public.lazy import LazyModule
from lucid.support.caches import new_cache
from lucid.support.garbage import gc_paused
from lucid.support.locks import new_lock
from lucid.tape.bind import sibling, without_gradient
from lucid.tape.cut import Cut, find_slots
from lucid.tape.node import Node, residual, wrap
from lucid.tape.recording.trace import replay
from lucid.tape.tiering import TieredProgram
from lucid.tape.views import tensor_of
from lucid.transforms.derivative import Derivative
from lucid.transforms.vjp import vjp

forward: Any = LazyModule("lucid.transforms.jvp")

CACHE_SIZE = 512
VERIFIED_EQUATIONS = 20_000  # longer Graphs are not verified: each rule was when it was made
CACHED_EQUATIONS = 300_000  # in all cached programs together, at about a kilobyte each


class Prepared:
    """A Derivative bound to the slots of a Cut.

    residuals    (slot, output index) of every value it reads
    types        the Type of every slot
    complete     whether no derivative is zero
    batched      programs for many seeds at once, by the number of seeds
    size         the number of equations and slots, for the cache limit
    """

    __slots__ = ("batched", "complete", "derivative", "program", "residuals", "size", "types")

    def __init__(self, derivative: Derivative, graph: Graph, vars: list[Var]) -> None:
        self.derivative = derivative
        self.complete = all(derivative.nonzero)
        if len(derivative.graph.equations) <= VERIFIED_EQUATIONS:
            verify(derivative.graph)
        self.program = TieredProgram(derivative.graph)
        self.batched: dict[int, TieredProgram] = {}
        self.types: list[Type] = [var.type for var in vars]
        self.size = len(derivative.graph.equations) + len(vars)
        self.residuals = find_slots(derivative.residuals, graph, vars)

    def nodes(self, cut: Cut) -> list[Node]:
        slots = cut.slots
        return [slots[s] if i < 0 else sibling(slots[s], i) for s, i in self.residuals]

    def residual_arrays(self, cut: Cut) -> list[ndarray]:
        """Return the values that the derivative reads; an error for one that was overwritten."""
        slots, arrays = cut.slots, []
        for slot, index in self.residuals:
            node = slots[slot] if index < 0 else sibling(slots[slot], index)
            value = node.saved
            plain = value.__class__ is ndarray and node.stamp is None
            arrays.append(value if plain else residual(node))
        return arrays

    def run(
        self, cut: Cut, seeds: Sequence[Any], record: bool, constant: bool = False
    ) -> list[Any]:
        """Return the derivatives as tensors, None for zero.

        record      whether an outer transform or `create_graph` needs the equations
        constant    whether the residuals are constants: the Cut was made under `no_grad`
        """
        chosen = [seeds[i] for i in self.derivative.seeds]
        if record or any(seed.raw is None for seed in chosen):
            tensors = [tensor_of(node) for node in self.nodes(cut)]
            if constant:
                tensors = [without_gradient(x) for x in tensors]
            constants = [wrap(array) for array in self.derivative.constants]
            outputs = replay(self.derivative.graph, [*tensors, *chosen, *constants])
        else:
            arrays = self.residual_arrays(cut)
            given = [*arrays, *[seed.value for seed in chosen], *self.derivative.constants]
            return self.derivative.with_zeros([wrap(y) for y in self.program(given)])
        return self.derivative.with_zeros(
            [wrap(y.array) if isinstance(y, Literal) else y for y in outputs]
        )


# A dict, the latest last: an interrupt in a key's __eq__ would corrupt an OrderedDict.
_prepared: dict[Any, tuple[Any, Prepared]] = {}  # with its key, so that a hit keeps no other
_lock = new_lock()


def _clear() -> None:
    with _lock:
        _prepared.clear()


new_cache(f"{__name__}._prepared", _prepared, _clear)


def prepare(mode: str, cut: Cut, seeded: Sequence[bool]) -> Prepared:
    """Return the derivative of a Cut in mode "vjp" or "jvp", cached by the Cut's structure."""
    key = (mode, *seeded)
    found = cut.prepared.get(key)
    if found is None:
        found = cut.prepared[key] = cached_derivative(mode, cut, seeded)
    return found


def cached_derivative(mode: str, cut: Cut, seeded: Sequence[bool]) -> Prepared:
    """Return the derivative from the global cache, adding it if missing."""
    if any(row[0].single_use for row in cut.rows):
        return differentiate(mode, cut, seeded)
    key = (mode, cut.key, tuple(seeded))
    with _lock:
        entry = _prepared.get(key)
        if entry is not None:
            _prepared[entry[0]] = _prepared.pop(key)
            return entry[1]
    found = differentiate(mode, cut, seeded)
    if found.size < CACHED_EQUATIONS // 2:
        with _lock:
            _prepared[key] = (key, found)
            total = sum([prepared.size for _, prepared in _prepared.values()])
            while len(_prepared) > CACHE_SIZE or total > CACHED_EQUATIONS:
                total -= _prepared.pop(next(iter(_prepared)))[1].size
    return found


def differentiate(mode: str, cut: Cut, seeded: Sequence[bool]) -> Prepared:
    """Build the Graph of a Cut and its derivative."""
    with gc_paused():
        graph, vars = cut.build()
        wrt = [vars[slot] for slot in cut.inputs]
        derivative = (vjp if mode == "vjp" else forward.jvp)(graph, wrt, seeded)
        return Prepared(derivative.with_views(cut.leaf_views(graph, vars)), graph, vars)


def pullback(
    cut: Cut, cotangents: Sequence[Any], record: bool, constant: bool = False
) -> list[Any]:
    """Return cotangents of the Cut's inputs from those of its outputs (None: zero, in both)."""
    prepared = prepare("vjp", cut, [ct is not None for ct in cotangents])
    return prepared.run(cut, cotangents, record, constant)


def pushforward(
    cut: Cut, tangents: Sequence[Any], record: bool, constant: bool = False
) -> list[Any]:
    """Return tangents of the Cut's outputs from those of its inputs (None: zero, in both)."""
    prepared = prepare("jvp", cut, [t is not None for t in tangents])
    return prepared.run(cut, tangents, record, constant)
