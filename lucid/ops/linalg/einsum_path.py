"""Einsum on NumPy arrays: two operands at a time, as one matmul wherever there is a sum.

np.einsum calls BLAS only after a path search that costs more than a small product; here the plan
of every pair is cached by its equation.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lucid.ops.core.errstate import quiet
from lucid.support.caches import memoize

EXHAUSTIVE_LIMIT = 8  # up to this many operands the optimal order is searched for


@quiet
def contract(terms: list[str], xs: list[np.ndarray], out: str) -> np.ndarray:
    """The einsum `terms -> out` of the operands."""
    if len(xs) == 2 and len(set(out)) == len(out):
        return np.asarray(multiply_pair(terms[0], xs[0], terms[1], xs[1], out))
    unique = "".join(dict.fromkeys(out))
    terms, xs = list(terms), list(xs)
    if len(xs) > 2:
        for pair in contraction_order(tuple(terms), tuple([x.shape for x in xs]), unique):
            part = [terms[i] for i in pair], [xs[i] for i in pair]
            terms = [term for i, term in enumerate(terms) if i not in pair]
            xs = [x for i, x in enumerate(xs) if i not in pair]
            wanted = set(unique).union(*terms)
            kept = "".join(name for name in dict.fromkeys("".join(part[0])) if name in wanted)
            terms.append(kept)
            xs.append(multiply_all(*part, kept))
    return embed_diagonals(multiply_all(terms, xs, unique), unique, out)


@memoize(maxsize=1024)
def contraction_order(
    terms: tuple[str, ...], shapes: tuple[tuple[int, ...], ...], out: str
) -> list[Any]:
    """Return the pairs to contract in order, as positions among the remaining operands."""
    if len(terms) <= EXHAUSTIVE_LIMIT:
        sizes = {name: n for term, shape in zip(terms, shapes) for name, n in zip(term, shape)}
        return tree_to_path(optimal_tree(terms, sizes, out), len(terms))
    zero = np.zeros(())
    arrays = [np.broadcast_to(zero, shape) for shape in shapes]
    path, _ = np.einsum_path(f"{','.join(terms)}->{out}", *arrays, optimize="greedy")
    return path[1:]


def optimal_tree(terms: tuple[str, ...], sizes: dict[str, int], out: str) -> Any:
    """Return the nested pairs of operands whose products take the fewest multiplications.

    Sets of operands are bit masks. Dynamic programming finds the best split of every set from the
    smaller sets: 3**n splits in all.
    """
    n = len(terms)
    every = (1 << n) - 1
    inside = [set().union(*[terms[i] for i in range(n) if s >> i & 1]) for s in range(every + 1)]
    kept = [inside[s] & (inside[every ^ s] | set(out)) for s in range(every + 1)]
    best: dict[int, tuple[int, Any]] = {1 << i: (0, i) for i in range(n)}
    for s in range(1, every + 1):
        if s in best:
            continue
        found = None
        part = (s - 1) & s
        while part > s ^ part:  # every split of s once: the part that holds its highest bit
            cost = best[part][0] + best[s ^ part][0]
            if found is None or cost < found[0]:
                cost += math.prod([sizes[name] for name in kept[part] | kept[s ^ part]])
                if found is None or cost < found[0]:
                    found = cost, (best[part][1], best[s ^ part][1])
            part = (part - 1) & s
        assert found is not None
        best[s] = found
    return best[every][1]


def tree_to_path(tree: Any, n: int) -> list[tuple[int, int]]:
    """Convert nested pairs to a path: each step removes a pair and appends its product."""
    left: list[Any] = list(range(n))
    path: list[tuple[int, int]] = []

    def make(node: Any) -> Any:
        if isinstance(node, int):
            return node
        made = [make(part) for part in node]
        first, second = sorted(left.index(part) for part in made)
        del left[second], left[first]
        left.append(node)
        path.append((first, second))
        return node

    make(tree)
    return path


def multiply_all(terms: list[str], xs: list[np.ndarray], out: str) -> np.ndarray:
    term, x = terms[0], xs[0]
    for i in range(1, len(xs)):
        needed = set(out).union(*terms[i + 1 :])
        both = dict.fromkeys(term + terms[i])
        kept = out if i == len(xs) - 1 else "".join(name for name in both if name in needed)
        x = multiply_pair(term, x, terms[i], xs[i], kept)
        term = kept
    return reduce_operand(x, term, out) if term != out else x


def reduce_operand(x: np.ndarray, term: str, out: str) -> np.ndarray:
    """Reduce one operand: diagonals, then sums, then the order of axes."""
    names = "".join(dict.fromkeys(term))
    if names != term:
        x = np.einsum(f"{term}->{names}", x)
    axes = tuple(i for i, name in enumerate(names) if name not in out)
    if axes:
        x = np.add.reduce(x, axis=axes, dtype=x.dtype)
        names = "".join(name for name in names if name in out)
    return x if names == out else np.transpose(x, [names.index(name) for name in out])


def embed_diagonals(x: np.ndarray, names: str, out: str) -> np.ndarray:
    """Write diagonals: 'i' to 'ii' gives a matrix that is zero off its diagonal."""
    if names == out:
        return np.asarray(x)
    sizes = dict(zip(names, x.shape))
    result = np.zeros([sizes[name] for name in out], x.dtype)
    places = np.ogrid[tuple(slice(0, n) for n in x.shape)]
    result[tuple(places[names.index(name)] for name in out)] = x
    return result


class MatmulPlan(NamedTuple):
    """How two operands become one matmul; axes are grouped as shared, own and summed."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    shared: int
    own_left: int
    own_right: int
    result: tuple[int, ...]
    direct: bool  # no transpose or reshape is needed


@memoize(maxsize=4096)
def matmul_plan(left: str, right: str, out: str) -> MatmulPlan:
    shared = [name for name in out if name in left and name in right]
    own_left = [name for name in out if name not in right]
    own_right = [name for name in out if name not in left]
    summed = [name for name in left if name not in out]
    made = shared + own_left + own_right
    order_left, order_right = shared + own_left + summed, shared + summed + own_right
    return MatmulPlan(
        tuple(map(left.index, order_left)),
        tuple(map(right.index, order_right)),
        len(shared),
        len(own_left),
        len(own_right),
        tuple(map(made.index, out)),
        [*left, *right, *out] == order_left + order_right + made
        and len(own_left) == len(own_right) == len(summed) == 1,
    )


@memoize(maxsize=4096)
def remaining_names(left: str, right: str, out: str) -> tuple[str, str, bool]:
    """Return the names left in each operand after its own sums, and whether any is summed."""
    a = "".join(name for name in dict.fromkeys(left) if name in out or name in right)
    b = "".join(name for name in dict.fromkeys(right) if name in out or name in left)
    return a, b, any(name not in out for name in a)


def multiply_pair(left: str, x: np.ndarray, right: str, y: np.ndarray, out: str) -> np.ndarray:
    a, b, sums = remaining_names(left, right, out)
    x = x if a == left else reduce_operand(x, left, a)
    y = y if b == right else reduce_operand(y, right, b)
    if not sums:
        return np.multiply(align_axes(x, a, out), align_axes(y, b, out))
    p = matmul_plan(a, b, out)
    if p.direct:
        return np.matmul(x, y)
    if p.shared and not p.own_left and not p.own_right:
        return np.einsum(f"{a},{b}->{out}", x, y)
    x, y = x.transpose(p.left), y.transpose(p.right)
    s, split_x, split_y = p.shared, p.shared + p.own_left, y.ndim - p.own_right
    outer, rows, columns = x.shape[:s], x.shape[s:split_x], y.shape[split_y:]
    inner = math.prod(x.shape[split_x:])
    product = np.matmul(
        x.reshape(*outer, math.prod(rows), inner), y.reshape(*outer, inner, math.prod(columns))
    )
    return product.reshape(outer + rows + columns).transpose(p.result)


def align_axes(x: np.ndarray, names: str, out: str) -> np.ndarray:
    """Return `x` with its axes in the order of `out`, with size 1 for those it lacks."""
    if names == out:
        return x
    x = x.transpose([names.index(name) for name in out if name in names])
    sizes = iter(x.shape)
    return x.reshape([next(sizes) if name in names else 1 for name in out])
