"""keeping: a Nest -> the same Nest, with costly values kept for later loops over a row.

A kernel goes over its rows once for every stage of reductions, and computes anew what it needs.
That is right for a sum, not for an exp. Softmax writes the exponentials to the place of its result
in the loop that adds them, and reads them back in the loop that divides:

    loop 1    v = exp(x - top);  b1[i] = v;  total += v
    loop 2    b1[i] = b1[i] / total
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lucid.compiler.kernels import scalars
from lucid.compiler.kernels.nest import READS, Nest, Store, Value

LEAVES = ("load", "guarded", "const", "number", "iota", "reduce")


def keep_costly(nest: Nest, addresses: Sequence[Any]) -> Nest:
    """Values that take a function such as exp and are needed in a later loop are read back there.

    `addresses` says where each buffer begins: a result may be written over an operand.
    """
    s = nest.structure
    if s.mode != "rows" or nest.places or any(v.op == "scan" for v in nest.values):
        return nest
    used: set[int] = set()
    tried = 0
    while True:
        costly = [v for v in crossing(nest) if takes_function(nest, v)]
        if len(costly) <= tried:
            return nest
        v = costly[tried]
        tried += 1
        for buffer in candidates(nest, v):
            new = rebuilt(nest, v, buffer)
            if buffer not in used and is_safe(new, buffer, nest.structure.stage[v], addresses):
                nest, tried = new, tried - 1
                used.add(buffer)
                break


def crossing(nest: Nest) -> list[int]:
    """Values at every point of the domain that a value of a later stage is computed from."""
    s = nest.structure
    row = frozenset(a for a, r in enumerate(nest.reduced) if r)
    found = {
        a
        for u, value in enumerate(nest.values)
        for a in value.args
        if value.op != "reduce" and s.stage[u] > s.stage[a] and s.depends[a] >= row
    }
    return sorted(v for v in found if nest.values[v].op not in LEAVES)


def takes_function(nest: Nest, v: int) -> bool:
    """Does computing a value anew take more than arithmetic?"""
    stack = [v]
    seen: set[int] = set()
    while stack:
        value = nest.values[stack.pop()]
        if value.op in scalars.table:
            return True
        new = [a for a in value.args if a not in seen and nest.values[a].op not in LEAVES]
        seen.update(new)
        stack += new
    return False


def candidates(nest: Nest, v: int) -> list[int]:
    """Buffers that can hold a value at every point: its own, or those that the last loop writes."""
    s = nest.structure
    whole = [store for store in nest.stores if all(nest.buffers[store.buffer].strides)]
    own = [store.buffer for store in whole if store.value == v]
    loops = [s.stage[value.args[0]] for value in nest.values if value.op == "reduce"]
    last = max([*loops, *[s.stage[store.value] for store in nest.stores]])
    late = [store.buffer for store in whole if s.stage[store.value] == last]
    dtype = nest.values[v].dtype
    return own or [b for b in late if nest.buffers[b].dtype == dtype]


def is_safe(nest: Nest, buffer: int, loop: int, addresses: Sequence[Any]) -> bool:
    """Does nothing read what else lies in a buffer once it is written in a loop?"""
    place, strides = addresses[buffer], nest.buffers[buffer].strides
    needed = last_loops(nest)
    for v, value in enumerate(nest.values):
        if value.op in READS and value.param != buffer and addresses[value.param] == place:
            if needed[v] > loop or nest.buffers[value.param].strides != strides:
                return False
    others = {store.buffer for store in nest.stores} - {buffer}
    return all(addresses[b] != place for b in others)


def last_loops(nest: Nest) -> list[int]:
    """The last loop over the row that needs each value, -1 for none."""
    s = nest.structure
    row = frozenset(a for a, r in enumerate(nest.reduced) if r)
    end = max(s.stage) + 1
    needed = [-1] * len(nest.values)
    for store in nest.stores:
        inside = s.depends[store.value] & row
        needed[store.value] = max(needed[store.value], s.stage[store.value] if inside else end)
    for v in reversed(range(len(nest.values))):
        value = nest.values[v]
        for a in value.args:
            needed[a] = max(needed[a], s.stage[a] if value.op == "reduce" else needed[v])
    return needed


def rebuilt(nest: Nest, v: int, buffer: int) -> Nest:
    """The Nest in which values of later stages read `v` from a buffer, where it is stored early."""
    stage = nest.structure.stage
    values: list[Value] = []
    place: dict[int, int] = {}
    again = -1
    for u, value in enumerate(nest.values):
        later = value.op != "reduce" and stage[u] > stage[v]
        args = [again if a == v and later else place[a] for a in value.args]
        place[u] = len(values)
        values.append(value._replace(args=tuple(args)))
        if u == v:
            again = len(values)
            values.append(Value("load", (), value.dtype, buffer))
    stores = [store._replace(value=place[store.value]) for store in nest.stores]
    if not any(store.buffer == buffer and store.value == place[v] for store in stores):
        stores.insert(0, Store(buffer, place[v]))
    return replace(nest, values=tuple(values), stores=tuple(stores))
