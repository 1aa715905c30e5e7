"""Methods of Tensor: those declared by `@public("Tensor")`, and the few that are not functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.ops.shape import copying
from lucid.public import index
from lucid.public.lazy import Home, LazyModule, homes, load
from lucid.tape.node import Traced
from lucid.tensors.inplace import InPlaceOperators, in_place
from lucid.tensors.properties import Attributes, Casts

reshaping: Any = LazyModule("lucid.tensors.reshaping")


class LazyMethod:
    """A declared method that replaces itself by its function when it is first looked up."""

    __slots__ = ("home", "name", "way")

    def __init__(self, name: str, home: Home, way: str) -> None:
        self.name, self.home, self.way = name, home, way

    def __get__(self, x: Any, cls: Any = None) -> Any:
        method = self.load()
        setattr(DeclaredMethods, self.name, method)
        return method if x is None else method.__get__(x, cls)

    def load(self) -> Any:
        """Import the function, and make it the in-place method if the name is that of one."""
        function = load(self.home)
        match self.way:
            case "call":
                return function
            case "view":
                return reshaping.in_place_view(function, self.name)
            case "ufunc":
                return in_place(function, ufunc_of(self.home), self.name)
        return in_place(function, name=self.name)


def ufunc_of(home: Home) -> np.ufunc:
    """Return the NumPy ufunc that a function declares as its counterpart."""
    name = next(name for name, other in homes(index.NUMPY).items() if other == home)
    return getattr(np, name)


if TYPE_CHECKING:
    from lucid import _DeclaredMethods as DeclaredMethods
    from lucid.ops.elementwise import complexes, conditional
    from lucid.ops.shape import shaping
    from lucid.tensors.tensor import Tensor
else:
    complexes = LazyModule("lucid.ops.elementwise.complexes")
    conditional = LazyModule("lucid.ops.elementwise.conditional")
    shaping = LazyModule("lucid.ops.shape.shaping")

    doc = "The methods that `@public` declares, imported when they are first used."
    declared = {"__doc__": doc, "__slots__": ()}
    getitem = ("lucid.ops.index.subscript", "getitem")
    declared["__getitem__"] = LazyMethod("__getitem__", getitem, "call")
    for way, table in {"call": index.NAMES["Tensor"], **index.INPLACE}.items():
        declared |= {name: LazyMethod(name, home, way) for name, home in homes(table).items()}
    DeclaredMethods = type("DeclaredMethods", (Traced,), declared)


class Methods(DeclaredMethods, InPlaceOperators, Attributes, Casts):
    """All named methods of Tensor."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __getitem__(self, index: Any) -> Tensor: ...

    def where(self, condition: Any, other: Any) -> Tensor:
        """Return this tensor where `condition` is True, and `other` elsewhere."""
        return conditional.where(condition, self, other)

    def polygamma(self, n: int) -> Tensor:
        """Return the `n`-th derivative of digamma, elementwise."""
        from lucid.ops.special.error_and_gamma import polygamma

        return polygamma(n, self)

    @property
    def T(self) -> Tensor:
        """The tensor with its axes in reverse order."""
        return shaping.T(self)

    @property
    def mT(self) -> Tensor:
        """The tensor with its last two axes swapped."""
        return shaping.mT(self)

    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix."""
        return complexes.conj(shaping.t(self))

    @property
    def mH(self) -> Tensor:
        """The conjugate, with the last two axes swapped."""
        return complexes.conj(shaping.mT(self))

    @property
    def real(self) -> Tensor:
        """The real part."""
        return complexes.real(self)

    @property
    def imag(self) -> Tensor:
        """The imaginary part."""
        return complexes.imag(self)

    @property
    def flat(self) -> Iterator[Tensor]:
        """An iterator over the elements in row-major order."""
        return iter(shaping.ravel(self))

    def copy(self) -> Tensor:
        """Return a copy through which gradients flow, like `clone`."""
        return copying.clone(self)
