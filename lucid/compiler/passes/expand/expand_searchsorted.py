"""expand_searchsorted: a binary search by gathers and selects, so that its steps fuse.

count = 0;  for each power of two p <= n, from the largest:
    count = count + p  where count + p <= n and row[count + p - 1] is before the value
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.ir.graph import Atom, Equation, Literal
from lucid.ir.types import DTYPES, Type
from lucid.ops.elementwise.arithmetic import Add
from lucid.ops.elementwise.conditional import Minimum, Where
from lucid.ops.elementwise.logic import BitwiseAnd, BitwiseOr, Eq, Le, Lt, Ne
from lucid.ops.index.gather_scatter import Gather, TakeAlong

INT64 = DTYPES["i64"]


def expand_searchsorted(w: Any, eqn: Equation) -> Sequence[Atom]:
    """The number of elements of each sorted row that come before each value."""
    row, values = eqn.inputs
    right = eqn.op.right  # type: ignore[attr-defined]
    n = row.type.shape[-1]
    count = w.full(Type(INT64, values.type.shape), 0)
    if not values.type.size:
        return [count]
    read = Gather((0,)) if row.type.ndim == 1 else TakeAlong(row.type.ndim - 1)
    for bit in reversed(range(n.bit_length())):
        step, last = int64(1 << bit), int64(n - 1)
        more = w.make(Add(), count, step)
        index = w.make(Minimum(), w.make(Add(), more, int64(-1)), last)
        taken = comes_before(w, w.make(read, row, index), values, right)
        inside = w.make(Le(), more, int64(n))
        count = w.make(Where(), w.make(BitwiseAnd(), inside, taken), more, count)
    return [count]


def comes_before(w: Any, x: Atom, value: Atom, right: bool) -> Atom:
    """x < value, or x <= value if `right`; nan is larger than every number."""
    before = w.make(Le() if right else Lt(), x, value)
    if value.type.dtype.kind != "f":
        return before
    last = w.make(Ne(), value, value)
    if not right:
        last = w.make(BitwiseAnd(), last, w.make(Eq(), x, x))
    return w.make(BitwiseOr(), before, last)


def int64(value: int) -> Literal:
    return Literal(value, INT64)
