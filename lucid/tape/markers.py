"""Markers: primitives that compute nothing and mark a value's history."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.errors import GraphError
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type
from lucid.support.source import at_line


class Alias(Primitive):
    """The identity that marks an input of an inner transform; skipped when a Graph is cut."""

    saves = ""
    moves, forwards = True, "last"

    def infer(self, x: Type) -> Type:
        return x

    def eval(self, x: np.ndarray) -> np.ndarray:
        return x

    def jvp(self, ts: Any, y: Any, x: Any) -> Any:
        return ts[0]

    def vjp(self, ct: Any, y: Any, x: Any) -> Any:
        return (ct,)

    def batch(self, n: int, batched: Any, x: Any) -> Any:
        return x


class Saved(Alias):
    """The identity on a value that was packed for one derivative, see `saved_tensors_hooks`."""


class StopGradient(Primitive):
    """The identity whose derivative is zero: `detach`, and everything computed under `no_grad`."""

    differentiable = False
    is_view = True
    saves = ""
    moves, forwards = True, "last"

    def infer(self, x: Type) -> Type:
        return x

    def eval(self, x: np.ndarray) -> np.ndarray:
        return x

    def batch(self, n: int, batched: Any, x: Any) -> Any:
        from lucid.tape.bind import bind

        return bind(self, x)

    def insert(self, base: Any, part: Any) -> Any:
        return part


class Write(Primitive, abstract=True):
    """The value of `new`, which a write has put in the place of `x`."""

    saves = ""
    moves, forwards = True, "last"

    def infer(self, x: Type, new: Type) -> Type:
        return new

    def eval(self, x: np.ndarray, new: np.ndarray) -> np.ndarray:
        return np.array(new)

    def batch(self, n: int, batched: Any, *xs: Any) -> Any:
        from lucid.tape.bind import bind

        return bind(self, *[x if b else x.expand((n, *x.shape)) for b, x in zip(batched, xs)])


class Overwritten(Write):
    """The value of `new` with the derivative of `x`, after a write that was not recorded."""

    def jvp(self, ts: Any, y: Any, x: Any, new: Any) -> Any:
        return ts[0]

    def vjp(self, ct: Any, y: Any, x: Any, new: Any) -> Any:
        return ct, None


class OnceDifferentiable(Primitive):
    """The value of `x`, computed from the other operands by code that has no derivative.

    function    what was marked, for the error that a derivative raises
    """

    function: str
    saves = ""
    moves, forwards = True, "first"

    def infer(self, x: Type, *origins: Type) -> Type:
        return x

    def eval(self, x: np.ndarray, *origins: np.ndarray) -> np.ndarray:
        return x

    def _error(self) -> GraphError:
        return GraphError(
            f"{self.function} is marked with once_differentiable and is differentiated twice; "
            f"write it with tensor operations and remove the mark{at_line()}"
        )

    def jvp(self, ts: Any, y: Any, *xs: Any) -> Any:
        raise self._error()

    def vjp(self, ct: Any, y: Any, *xs: Any) -> Any:
        raise self._error()

    def batch(self, n: int, batched: Any, x: Any, *origins: Any) -> Any:
        from lucid.tape.bind import bind

        return bind(self, x if batched[0] else x.expand((n, *x.shape)), *origins)


class Replaced(Write):
    """The value and the derivative of `new`, tracked because `x`, which it replaces, was."""

    def jvp(self, ts: Any, y: Any, x: Any, new: Any) -> Any:
        return ts[1]

    def vjp(self, ct: Any, y: Any, x: Any, new: Any) -> Any:
        return None, ct


ALIAS = Alias()
SAVED = Saved()
STOP_GRADIENT = StopGradient()
OVERWRITTEN = Overwritten()
REPLACED = Replaced()
