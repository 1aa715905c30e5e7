"""make_vjp and make_jvp of functions of one argument, and vector spaces of values.

autograd's cotangents of complex numbers are the conjugates of Lucid's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lucid import func
from lucid.ir.pytree import flatten, unflatten
from lucid.ops.core.promote import as_tensor
from lucid.support.locks import import_module
from lucid.tape.node import Traced


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(x) for x in leaves])


def in_float64(tree: Any) -> Any:
    """Return a pytree with Python's floats and complex numbers replaced by NumPy's."""

    def convert(x: Any) -> Any:
        if type(x) is float:
            return np.float64(x)
        return np.complex128(x) if type(x) is complex else x

    return map_leaves(convert, tree)


def conjugate(tree: Any) -> Any:
    return map_leaves(lambda x: np.conj(x) if iscomplex(x) else x, tree)


def iscomplex(x: Any) -> bool:
    return isinstance(x, complex) or getattr(x, "dtype", np.dtype(float)).kind == "c"


def make_vjp(fun: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """Return (vjp, fun(x)); vjp maps a cotangent of the value to that of x."""
    check(x)
    value, pull = func.vjp(lambda x: in_float64(fun(x)), in_float64(x))
    return lambda g: conjugate(pull(conjugate(in_float64(g)))[0]), value


def make_jvp(fun: Callable[[Any], Any], x: Any) -> Callable[[Any], tuple[Any, Any]]:
    """Return the function that maps a tangent of x to (fun(x), the tangent of the value)."""
    check(x)

    def jvp(v: Any) -> tuple[Any, Any]:
        tangent = in_float64(v)
        return func.jvp(lambda x: in_float64(fun(x)), (in_float64(x),), (tangent,))

    return jvp


def check(x: Any) -> None:
    for leaf in flatten(x)[0]:
        if type(leaf) is int or getattr(leaf, "dtype", np.dtype(float)).kind in "biuO":
            raise TypeError(f"Can't differentiate w.r.t. type {type(leaf)}; pass floats")


class VSpace:
    """The vector space that a value belongs to: a pytree of shapes, each real or complex."""

    def __init__(self, value: Any) -> None:
        leaves, self.structure = flatten(value)
        self.parts = [(np.shape(x), iscomplex(x)) for x in leaves]

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, VSpace) and self.structure == other.structure
        return same and self.parts == other.parts  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(tuple(self.parts))

    def __repr__(self) -> str:
        return f"VSpace({self.parts})"

    @property
    def size(self) -> int:
        """The number of real numbers in a value."""
        return sum(math.prod(shape) * (2 if complex_ else 1) for shape, complex_ in self.parts)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the only array."""
        return self.parts[0][0]

    @property
    def iscomplex(self) -> bool:
        """True if an array is complex."""
        return any(complex_ for _, complex_ in self.parts)

    def _make(self, make: Callable[[Any], Any]) -> Any:
        made = []
        for shape, complex_ in self.parts:
            y = make(shape) + 1j * make(shape) if complex_ else make(shape)
            made.append(np.asarray(y)[()])
        return unflatten(self.structure, made)

    def zeros(self) -> Any:
        """Return zeros."""
        return self._make(np.zeros)

    def ones(self) -> Any:
        """Return ones."""
        return self._make(np.ones)

    def randn(self) -> Any:
        """Return standard normal numbers."""
        return self._make(lambda shape: np.array(np.random.randn(*shape)))

    def standard_basis(self) -> Any:
        """Yield the values with one number 1 (or 1j) and zeros elsewhere."""
        for i, (shape, complex_) in enumerate(self.parts):
            for index in np.ndindex(*shape):
                for unit in (1.0, 1.0j) if complex_ else (1.0,):
                    y = np.zeros(shape, complex if complex_ else float)
                    y[index] = unit
                    leaves = flatten(self.zeros())[0]
                    leaves[i] = y[()]
                    yield unflatten(self.structure, leaves)

    def covector(self, x: Any) -> Any:
        """Return the covector of a vector."""
        return conjugate(x)

    def add(self, x: Any, y: Any) -> Any:
        """Return x + y."""
        return self._pairs(lambda a, b: a + b, x, y)

    def scalar_mul(self, x: Any, factor: Any) -> Any:
        """Return x times a number."""
        return map_leaves(lambda a: a * factor, x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """Return the real inner product."""
        pairs = zip(flatten(x)[0], flatten(y)[0])
        return sum(np.real(np.sum(np.conj(a) * b)) for a, b in pairs)

    def _pairs(self, function: Any, x: Any, y: Any) -> Any:
        pairs = zip(flatten(x)[0], flatten(y)[0])
        return unflatten(self.structure, [function(a, b) for a, b in pairs])


def vspace(value: Any) -> VSpace:
    """Return the vector space of a value."""
    return VSpace(value)


def __getattr__(name: str) -> Any:
    if name in ("primitive", "notrace_primitive", "defvjp", "defjvp"):
        return getattr(import_module("lucid.compat.autograd.extend"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def isbox(x: Any) -> bool:
    """True for a value that is being differentiated."""
    return isinstance(x, Traced)


def getval(x: Any) -> Any:
    """Return the value of a tensor as an array."""
    return as_tensor(x).detach().numpy()[()] if isinstance(x, Traced) else x
