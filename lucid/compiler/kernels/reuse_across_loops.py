"""reuse_across_loops: a Nest -> the same Nest with costly values stored for later loops over a row.

A kernel loops over its rows once for every stage of reductions, and recomputes what it needs. That
is right for a sum, not for an exp. Softmax writes the exponentials to the buffer of its result in
the loop that adds them, and reads them back in the loop that divides:

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


def reuse_across_loops(nest: Nest, addresses: Sequence[Any]) -> Nest:
    """Store values that take a function such as exp, and reload them in later loops.

    `addresses` are those of the buffers: a result may overwrite an operand.
    """
    s = nest.structure
    if s.mode != "rows" or nest.indexed_axes or any(v.op == "scan" for v in nest.values):
        return nest
    held: dict[int, list[tuple[int, int]]] = {}  # loops that store and last read other values
    tried = 0
    while True:
        costly = [v for v in values_across_loops(nest) if is_costly(nest, v)]
        if len(costly) <= tried:
            return nest
        v = costly[tried]
        tried += 1
        first, last = nest.structure.stage[v], last_loops(nest)[v]
        for buffer in candidates(nest, v, last):
            if any(first < b and a < last for a, b in held.get(buffer, ())):
                continue
            new = store_and_reload(nest, v, buffer)
            if is_safe(new, buffer, first, addresses):
                nest, tried = new, 0
                held.setdefault(buffer, []).append((first, last))
                break


def values_across_loops(nest: Nest) -> list[int]:
    """Values at every point of the domain that values of a later stage read."""
    s = nest.structure
    row = frozenset(a for a, r in enumerate(nest.reduced) if r)
    found = {
        a
        for u, value in enumerate(nest.values)
        for a in value.args
        if value.op != "reduce" and s.stage[u] > s.stage[a] and s.depends[a] >= row
    }
    return sorted(v for v in found if nest.values[v].op not in LEAVES)


def is_costly(nest: Nest, v: int) -> bool:
    """True if recomputing a value takes more than arithmetic."""
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


def candidates(nest: Nest, v: int, last: int) -> list[int]:
    """Buffers that can hold a value up to a loop: its own, or those that are not written before.

    A loop reads a point before it writes there.
    """
    s = nest.structure
    whole = [store for store in nest.stores if all(nest.buffers[store.buffer].strides)]
    own = [store.buffer for store in whole if store.value == v]
    early = {store.buffer for store in nest.stores if s.stage[store.value] < last}
    dtype = nest.values[v].dtype
    late = [store.buffer for store in whole if store.buffer not in early]
    return own or [b for b in late if nest.buffers[b].dtype == dtype]


def is_safe(nest: Nest, buffer: int, loop: int, addresses: Sequence[Any]) -> bool:
    """True if nothing reads the old contents of a buffer after it is written in a loop."""
    address, strides = addresses[buffer], nest.buffers[buffer].strides
    needed = last_loops(nest)
    for v, value in enumerate(nest.values):
        if value.op in READS and value.param != buffer and addresses[value.param] == address:
            if needed[v] > loop or nest.buffers[value.param].strides != strides:
                return False
    others = {store.buffer for store in nest.stores} - {buffer}
    return all(addresses[b] != address for b in others)


def last_loops(nest: Nest) -> list[int]:
    """The last loop over the row that needs each value, or -1."""
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


def store_and_reload(nest: Nest, v: int, buffer: int) -> Nest:
    """Store `v` to a buffer early, and reload it for values of later stages."""
    stage = nest.structure.stage
    values: list[Value] = []
    equations = list(nest.equations)
    new_index: dict[int, int] = {}
    reloaded = -1
    for u, value in enumerate(nest.values):
        later = value.op != "reduce" and stage[u] > stage[v]
        args = [reloaded if a == v and later else new_index[a] for a in value.args]
        new_index[u] = len(values)
        values.append(value._replace(args=tuple(args)))
        if u == v:
            reloaded = len(values)
            values.append(Value("load", (), value.dtype, buffer))
    stores = [store._replace(value=new_index[store.value]) for store in nest.stores]
    if not any(store.buffer == buffer and store.value == new_index[v] for store in stores):
        stores.insert(0, Store(buffer, new_index[v]))
    if equations:
        equations.insert(reloaded, equations[v])
    return replace(nest, values=tuple(values), stores=tuple(stores), equations=tuple(equations))
