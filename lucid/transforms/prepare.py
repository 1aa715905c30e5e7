"""Pullback and pushforward of what stands on the tape, through programs cached by structure.

The first time a structure is met its Graph is cut, differentiated and prepared; afterwards one
look-up finds the program. Where an outer transform (or `create_graph`) is watching, the
derivative's Graph is replayed through `bind` instead, so that it is itself on the tape.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

from lucid.ir.graph import Graph, Literal, Var
from lucid.ir.interpret import Runner
from lucid.ir.types import Type
from lucid.ir.verify import verify
from lucid.tape.bind import sibling
from lucid.tape.cut import Cut
from lucid.tape.node import Node, residual, wrap
from lucid.tape.trace import replay
from lucid.tape.views import tensor_of
from lucid.transforms.derivative import Derivative
from lucid.transforms.jvp import jvp
from lucid.transforms.vjp import vjp

CACHE_SIZE = 512
VERIFIED_EQUATIONS = 20_000  # a longer Graph is copied from the same rules, and each was checked
CACHED_EQUATIONS = 300_000  # of all programs together: one of them holds about a kilobyte


class Prepared:
    """A Derivative tied to the slots of a Cut.

    residuals    (slot, output index) of every value it reads
    types        the Type of every slot
    complete     is no derivative zero?
    batched      programs for many seeds at once, by their number
    size         how many equations and slots it holds, for the cache
    """

    __slots__ = ("batched", "complete", "derivative", "program", "residuals", "size", "types")

    def __init__(self, derivative: Derivative, graph: Graph, vars: list[Var]) -> None:
        self.derivative = derivative
        self.complete = all(derivative.nonzero)
        if len(derivative.graph.equations) <= VERIFIED_EQUATIONS:
            verify(derivative.graph)
        self.program = Runner(derivative.graph)
        self.batched: dict[int, Runner] = {}
        self.types: list[Type] = [var.type for var in vars]
        self.size = len(derivative.graph.equations) + len(vars)
        place: dict[Any, tuple[int, int]] = {var: (slot, -1) for slot, var in enumerate(vars)}
        missing = [var for var in derivative.residuals if var not in place]
        if missing:
            for eqn in graph.equations:
                known = next((place[var][0] for var in eqn.outputs if var in place), None)
                for index, var in enumerate(eqn.outputs):
                    if known is not None and var not in place:
                        place[var] = (known, index)
        self.residuals = [place[var] for var in derivative.residuals]

    def nodes(self, cut: Cut) -> list[Node]:
        slots = cut.slots
        return [slots[s] if i < 0 else sibling(slots[s], i) for s, i in self.residuals]

    def run(self, cut: Cut, seeds: Sequence[Any], record: bool) -> list[Any]:
        """The derivatives as tensors, None where zero."""
        nodes = self.nodes(cut)
        chosen = [seeds[i] for i in self.derivative.seeds]
        if record or any(seed.value is None for seed in chosen):
            tensors = [tensor_of(node) for node in nodes]
            constants = [wrap(array) for array in self.derivative.constants]
            outputs = replay(self.derivative.graph, [*tensors, *chosen, *constants])
        else:
            arrays = [residual(node) for node in nodes]
            given = [*arrays, *[seed.value for seed in chosen], *self.derivative.constants]
            found = [wrap(y) for y in self.program(given)]
            return found if self.complete else self.derivative.spread(found)
        return self.derivative.spread(
            [wrap(y.array) if isinstance(y, Literal) else y for y in outputs]
        )


@contextmanager
def collector_paused() -> Iterator[None]:
    """The objects made here all stay: a collector that looks through them only costs time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


_prepared: OrderedDict[Any, Prepared] = OrderedDict()
_lock = Lock()


def prepare(mode: str, cut: Cut, seeded: Sequence[bool]) -> Prepared:
    """The derivative of a Cut in mode "vjp" or "jvp", cached by the Cut's structure."""
    short = (mode, *seeded)
    known = cut.prepared.get(short)
    if known is None:
        known = cut.prepared[short] = look_up(mode, cut, seeded)
    return known


def look_up(mode: str, cut: Cut, seeded: Sequence[bool]) -> Prepared:
    """The derivative from the cache, or made now and kept there."""
    if any(row[0].once for row in cut.rows):
        return differentiate(mode, cut, seeded)
    key = (mode, cut.key, tuple(seeded))
    with _lock:
        found = _prepared.get(key)
        if found is not None:
            _prepared.move_to_end(key)
            return found
    found = differentiate(mode, cut, seeded)
    if found.size < CACHED_EQUATIONS // 2:
        with _lock:
            _prepared[key] = found
            total = sum([prepared.size for prepared in _prepared.values()])
            while len(_prepared) > CACHE_SIZE or total > CACHED_EQUATIONS:
                total -= _prepared.popitem(last=False)[1].size
    return found


def differentiate(mode: str, cut: Cut, seeded: Sequence[bool]) -> Prepared:
    """Build the Graph of a Cut and its derivative."""
    with collector_paused():
        graph, vars = cut.build()
        wrt = [vars[slot] for slot in cut.inputs]
        derivative = (vjp if mode == "vjp" else jvp)(graph, wrt, seeded)
        return Prepared(derivative, graph, vars)


def pullback(cut: Cut, cotangents: Sequence[Any], record: bool) -> list[Any]:
    """Cotangents of the Cut's inputs from those of its outputs (None: zero, in both)."""
    prepared = prepare("vjp", cut, [ct is not None for ct in cotangents])
    return prepared.run(cut, cotangents, record)


def pushforward(cut: Cut, tangents: Sequence[Any], record: bool) -> list[Any]:
    """Tangents of the Cut's outputs from those of its inputs (None: zero, in both)."""
    prepared = prepare("jvp", cut, [t is not None for t in tangents])
    return prepared.run(cut, tangents, record)
