"""expand_einsum: an einsum -> products of two operands at a time, matmuls where a name is summed.

It follows `lucid.ops.linalg.einsum_path`, which does the same with arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lucid.ir.graph import Atom
from lucid.ops.elementwise.arithmetic import Mul
from lucid.ops.linalg.contraction import Matmul
from lucid.ops.linalg.einsum_path import contraction_order, matmul_plan, remaining_names
from lucid.ops.shape.movement import Pad, Reshape, Slice, Transpose


def expand_einsum(w: Any, terms: Sequence[str], xs: Sequence[Atom], out: str) -> Atom:
    """The einsum `terms -> out` of the operands."""
    unique = "".join(dict.fromkeys(out))
    terms, xs = list(terms), list(xs)
    if len(xs) > 2:
        for pair in contraction_order(tuple(terms), tuple([x.type.shape for x in xs]), unique):
            part = [terms[i] for i in pair], [xs[i] for i in pair]
            terms = [term for i, term in enumerate(terms) if i not in pair]
            xs = [x for i, x in enumerate(xs) if i not in pair]
            wanted = set(unique).union(*terms)
            kept = "".join(name for name in dict.fromkeys("".join(part[0])) if name in wanted)
            terms.append(kept)
            xs.append(multiply_all(w, *part, kept))
    return embed_diagonals(w, multiply_all(w, terms, xs, unique), unique, out)


def multiply_all(w: Any, terms: list[str], xs: list[Atom], out: str) -> Atom:
    term, x = terms[0], xs[0]
    for i in range(1, len(xs)):
        needed = set(out).union(*terms[i + 1 :])
        both = dict.fromkeys(term + terms[i])
        kept = out if i == len(xs) - 1 else "".join(name for name in both if name in needed)
        x = multiply_pair(w, term, x, terms[i], xs[i], kept)
        term = kept
    return reduce_one(w, x, term, out)


def reduce_one(w: Any, x: Atom, term: str, out: str) -> Atom:
    """One operand: diagonals, then sums, then the order of axes."""
    while len(set(term)) < len(term):
        x, term = diagonal(w, x, term)
    axes = tuple(i for i, name in enumerate(term) if name not in out)
    if axes:
        x = w.total(x, axes)
        term = "".join(name for name in term if name in out)
    return transpose(w, x, [term.index(name) for name in out])


def diagonal(w: Any, x: Atom, term: str) -> tuple[Atom, str]:
    """x[i, i, ...] for the first repeated name: every (n+1)-th of its n² elements."""
    name = next(name for name in term if term.count(name) > 1)
    i, j = [k for k, other in enumerate(term) if other == name][:2]
    rest = [k for k in range(len(term)) if k not in (i, j)]
    x = transpose(w, x, [i, j, *rest])
    n, *sizes = x.type.shape[1:]
    x = w.make(Reshape((n * n, *sizes)), x)
    starts, strides = (0,) * len(x.type.shape), (n + 1, *[1] * len(sizes))
    return w.make(Slice(starts, x.type.shape, strides), x), name + "".join(term[k] for k in rest)


def embed_diagonals(w: Any, x: Atom, names: str, out: str) -> Atom:
    """Embed diagonals: n elements with n zeros between them are the n² of a matrix."""
    while names != out and sorted(names) != sorted(out):
        name = next(name for name in names if out.count(name) > names.count(name))
        i = names.index(name)
        x = transpose(w, x, [i, *[k for k in range(len(names)) if k != i]])
        names = name + names[:i] + names[i + 1 :]
        n, *sizes = x.type.shape
        none = (0,) * len(sizes)
        x = w.make(Pad((0, *none), (0, *none), (n, *none)), x)
        x = w.make(Reshape((n, n, *sizes)), x)
        names = name + names
    left = list(range(len(names)))
    axes = [left.pop([names[k] for k in left].index(name)) for name in out]
    return transpose(w, x, axes)


def multiply_pair(w: Any, left: str, x: Atom, right: str, y: Atom, out: str) -> Atom:
    a, b, sums = remaining_names(left, right, out)
    x, y = reduce_one(w, x, left, a), reduce_one(w, y, right, b)
    p = matmul_plan(a, b, out)
    if not sums:
        return w.make(Mul(), align_axes(w, x, a, out), align_axes(w, y, b, out))
    if p.direct:
        return w.make(Matmul(), x, y)
    x, y = transpose(w, x, p.left), transpose(w, y, p.right)
    outer, rows = x.type.shape[: p.shared], x.type.shape[p.shared : p.shared + p.own_left]
    columns = y.type.shape[y.type.ndim - p.own_right :]
    inner = x.type.shape[p.shared + p.own_left :]
    if p.shared and not p.own_left and not p.own_right:
        products = w.make(Mul(), x, y)
        summed = tuple(range(p.shared, products.type.ndim))
        return transpose(w, w.total(products, summed), p.result)
    size = math.prod(inner)
    product = w.make(
        Matmul(),
        reshape(w, x, (*outer, math.prod(rows), size)),
        reshape(w, y, (*outer, size, math.prod(columns))),
    )
    return transpose(w, reshape(w, product, outer + rows + columns), p.result)


def align_axes(w: Any, x: Atom, names: str, out: str) -> Atom:
    """`x` with its axes in the order of `out`, and size 1 for the others, ready to broadcast."""
    if not names:
        return x
    x = transpose(w, x, [names.index(name) for name in out if name in names])
    sizes = iter(x.type.shape)
    return reshape(w, x, tuple([next(sizes) if name in names else 1 for name in out]))


def transpose(w: Any, x: Atom, permutation: Sequence[int]) -> Atom:
    order = tuple(permutation)
    return x if order == tuple(range(len(order))) else w.make(Transpose(order), x)


def reshape(w: Any, x: Atom, shape: tuple[int, ...]) -> Atom:
    return x if x.type.shape == shape else w.make(Reshape(shape), x)
