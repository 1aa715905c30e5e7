"""Cases for matmul and einsum."""

import numpy as np

from lucid.ops.linalg.contraction import Einsum, Matmul
from tests.cases.case import Case, boolean, complex_, integer, real


def matmul(x, y):
    return Case(Matmul(), (x, y), np.matmul)


def einsum(equation, *args, label=""):
    """np.einsum, or a written diagonal where the result repeats a name."""
    inputs, out = equation.split("->")
    names = "".join(dict.fromkeys(out))

    def expected(*xs):
        y = np.einsum(f"{inputs}->{names}", *xs)
        if names == out:
            return y
        sizes = dict(zip(names, y.shape))
        full = np.zeros([sizes[name] for name in out], y.dtype)
        for place in np.ndindex(full.shape):
            where = dict(zip(out, place))
            if all(where[name] == i for name, i in zip(out, place)):
                full[place] = y[tuple(where[name] for name in names)]
        return full

    return Case(Einsum(equation), args, expected, label=label)


CASES = [
    matmul(real(2, 3), real(3, 4)),
    matmul(real(3), real(3)),
    matmul(real(2, 3), real(3)),
    matmul(real(3), real(3, 4)),
    matmul(real(2, 2, 3), real(2, 3, 4)),
    matmul(real(2, 1, 2, 3), real(4, 3, 2)),
    matmul(real(4, 2, 3), real(3, 2)),
    matmul(real(2, 3), real(4, 3, 2)),
    matmul(real(3), real(2, 3, 4)),
    matmul(real(2, 2, 3), real(3)),
    matmul(complex_(2, 3), complex_(3, 2)),
    matmul(complex_(2, 2, 3), complex_(3)),
    matmul(complex_(3), complex_(3)),
    matmul(integer(2, 3), integer(3, 2)),
    matmul(boolean(2, 3), boolean(3, 2)),
    matmul(real(2, 0), real(0, 3)),
    matmul(real(0, 3), real(3, 2)),
    matmul(real(0, 2, 3), real(3, 2)),
    matmul(real(0), real(0)),
    einsum("ab,bc->ac", real(2, 3), real(3, 4)),
    einsum("ab,cb->ca", complex_(2, 3), complex_(4, 3)),
    einsum("abc,acd->abd", real(2, 3, 4), real(2, 4, 2)),
    einsum("abcd,aced->abe", real(2, 1, 3, 2), real(2, 3, 4, 2)),
    einsum("ab,ab->ab", real(2, 3), real(2, 3)),
    einsum("ab,ab->b", real(2, 3), real(2, 3)),
    einsum("a,b->ab", real(2), real(3)),
    einsum("a,b->ba", complex_(2), complex_(3)),
    einsum("a,a->", real(3), real(3)),
    einsum("ab,c->c", real(2, 3), real(4), label="sums of its own"),
    einsum("abc->ca", real(2, 3, 4)),
    einsum("ab->", real(2, 3)),
    einsum("aa->a", real(3, 3)),
    einsum("aa->", complex_(3, 3)),
    einsum("aab->b", real(2, 2, 3)),
    einsum("aaa->a", real(3, 3, 3)),
    einsum("a->aa", real(3)),
    einsum("ab->bab", complex_(2, 3)),
    einsum("aab,bc->ac", real(2, 2, 3), real(3, 2)),
    einsum("ab,bc->aac", real(2, 3), real(3, 2)),
    einsum("ab,bc,cd->ad", real(2, 3), real(3, 4), real(4, 2)),
    einsum("ab,b,ac->c", complex_(2, 3), complex_(3), complex_(2, 2)),
    einsum("a,a,a->a", real(3), real(3), real(3)),
    einsum("a,b,c->abc", real(2), real(3), real(2)),
    einsum(",->", real(), real()),
    einsum("a,->a", real(3), real()),
    einsum("ab,bc->ac", real(2, 0), real(0, 3), label="empty sum"),
    einsum("ab,bc->ac", real(0, 2), real(2, 3), label="empty"),
    einsum("ab,bc->ac", integer(2, 3), integer(3, 2)),
    einsum("ab->b", integer(2, 3)),
    einsum("ab,bc->ac", boolean(2, 3), boolean(3, 2)),
]
