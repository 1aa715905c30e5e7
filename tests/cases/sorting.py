"""Cases for sort, argsort and topk."""

import numpy as np

from lucid.ops.reduce.sorting import Argsort, Sort, TopK
from tests.cases.case import Case, boolean, integer, real


def order(axis, descending=False):
    """Stable order, by the rank of each element; ranks change sign to descend."""

    def expected(x):
        ranks = np.unique(x, return_inverse=True)[1].reshape(x.shape)
        return np.argsort(-ranks if descending else ranks, axis, kind="stable")

    return expected


def in_order(axis, descending=False, k=None):
    def expected(x):
        places = order(axis, descending)(x)
        places = places if k is None else np.take(places, np.arange(k), axis)
        return np.take_along_axis(x, places, axis), places

    return expected


def by_index(axis, k, largest):
    """The chosen elements where they stand, not in order of size."""

    def expected(x):
        places = np.sort(in_order(axis, largest, k)(x)[1], axis)
        return np.take_along_axis(x, places, axis), places

    return expected


CASES = [
    Case(Sort(0), (real(6, distinct=True),), in_order(0)),
    Case(Sort(1), (real(2, 4, 3, distinct=True),), in_order(1)),
    Case(Sort(0, True), (real(4, 2, distinct=True),), in_order(0, True)),
    Case(Sort(1, True, True), (integer(3, 6, low=0, high=3),), in_order(1, True), label="ties"),
    Case(Sort(0, False, True), (integer(8, low=0, high=3),), in_order(0), label="ties"),
    Case(Sort(0, True, True), (boolean(5),), in_order(0, True)),
    Case(Sort(0), (real(0),), in_order(0), label="empty"),
    Case(Sort(1), (real(0, 3),), in_order(1), label="empty-rows"),
    Case(Argsort(0), (real(6, distinct=True),), order(0)),
    Case(Argsort(1, True), (real(2, 4, 3, distinct=True),), order(1, True)),
    Case(Argsort(1, False, True), (integer(3, 6, low=0, high=3),), order(1), label="ties"),
    Case(Argsort(0, True, True), (integer(8, low=0, high=3),), order(0, True), label="ties"),
    Case(Argsort(0), (real(0, 2),), order(0), label="empty"),
    Case(TopK(0, 3), (real(6, distinct=True),), in_order(0, True, 3)),
    Case(TopK(1, 2, False), (real(2, 4, 3, distinct=True),), in_order(1, False, 2)),
    Case(TopK(1, 4), (real(2, 4, distinct=True),), in_order(1, True, 4), label="all"),
    Case(TopK(0, 2, True, False), (real(6, distinct=True),), by_index(0, 2, True)),
    Case(TopK(0, 2, False, False), (real(6, 2, distinct=True),), by_index(0, 2, False)),
    Case(TopK(0, 0), (real(3, 2),), lambda x: (x[:0], np.zeros((0, 2), "int64")), label="none"),
    Case(TopK(0, 3), (integer(3),), in_order(0, True, 3)),
]
