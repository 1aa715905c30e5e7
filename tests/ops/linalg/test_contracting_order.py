"""In which order the operands of an einsum are multiplied."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

import lucid
from lucid.ops.linalg.einsum_path import contraction_order
from tests.compiled import compiled


def multiplications(path, terms, sizes, out) -> int:
    """What a path costs, where every operand is first summed over the names that only it has."""
    parts = [frozenset([i]) for i in range(len(terms))]

    def names(part):
        inside = set().union(*[terms[i] for i in part])
        rest = [term for i, term in enumerate(terms) if i not in part]
        return inside & set(out).union(*rest)

    total = 0
    for i, j in path:
        first, second = parts[i], parts[j]
        total += math.prod(sizes[name] for name in names(first) | names(second))
        parts = [p for k, p in enumerate(parts) if k not in (i, j)] + [first | second]
    assert len(parts) == 1
    return total


def every_path(n):
    if n == 1:
        yield []
        return
    for pair in itertools.combinations(range(n), 2):
        for rest in every_path(n - 1):
            yield [pair, *rest]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n", [3, 4, 5])
def test_no_order_of_a_few_operands_is_cheaper(n, seed):
    rng = random.Random(seed)
    sizes = {name: rng.choice([2, 3, 7, 30]) for name in "abcdefg"}
    terms = tuple("".join(rng.sample("abcdefg", rng.randint(1, 3))) for _ in range(n))
    out = "".join(rng.sample(sorted(set("".join(terms))), 2))
    shapes = tuple(tuple(sizes[name] for name in term) for term in terms)
    best = min(multiplications(path, terms, sizes, out) for path in every_path(n))
    assert multiplications(contraction_order(terms, shapes, out), terms, sizes, out) == best


def test_a_chain_of_matrices_is_multiplied_from_its_narrow_end():
    shapes = ((100, 100), (100, 100), (100, 1))
    assert contraction_order(("ab", "bc", "cd"), shapes, "ad") == [(1, 2), (0, 1)]


@pytest.mark.parametrize("n", [2, 3, 6, 9])
def test_any_number_of_operands_gives_numpys_result(n):
    rng = np.random.default_rng(n)
    xs = [rng.standard_normal((3, 3)) for _ in range(n)]
    names = "abcdefghij"
    equation = ",".join(names[i : i + 2] for i in range(n)) + f"->{names[0]}{names[n]}"
    expected = np.linalg.multi_dot(xs)
    actual = lucid.einsum(equation, *map(lucid.tensor, xs))
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-10)
    jitted = compiled(lambda *xs: lucid.einsum(equation, *xs))(*map(lucid.tensor, xs))
    np.testing.assert_allclose(jitted.numpy(), expected, rtol=1e-10)
