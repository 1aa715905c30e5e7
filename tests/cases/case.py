"""A Case: a primitive with parameters, inputs to try it on, and what NumPy or SciPy gives there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lucid.ir import Primitive


@dataclass(frozen=True)
class Arg:
    """How to make one input: kind of numbers, shape, range. `make(rng, dtype)` gives the array.

    kind    "real" (floating, of the dtype under test), "complex", "int", "bool",
            "index" (int64 below `high`)
    """

    kind: str
    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0
    avoid: float = 0.0  # keep this far from zero (and from other elements where `distinct`)
    distinct: bool = False  # all elements different, well apart: for sorts and extrema
    dtype: str = ""  # a fixed dtype instead of the one under test

    def make(self, rng: np.random.Generator, dtype: Any) -> np.ndarray:
        if self.kind == "bool":
            return rng.random(self.shape) < 0.5
        if self.kind in ("int", "index"):
            return rng.integers(int(self.low), int(self.high), self.shape).astype(
                self.dtype or "int64"
            )
        values = rng.uniform(self.low, self.high, self.shape)
        if self.distinct:
            n = int(np.prod(self.shape))
            values = np.linspace(self.low, self.high, max(n, 1))[rng.permutation(n)].reshape(
                self.shape
            )
        if self.avoid:
            values = np.where(
                np.abs(values) < self.avoid, np.sign(values + 1e-9) * self.avoid, values
            )
        if self.kind == "complex":
            imaginary = rng.uniform(self.low, self.high, self.shape)
            wide = np.dtype("complex128" if np.dtype(dtype).itemsize == 8 else "complex64")
            return (values + 1j * imaginary).astype(self.dtype or wide)
        return values.astype(self.dtype or dtype)

    def direction(self, t: np.ndarray) -> np.ndarray:
        """The part of a tangent that derivatives are defined for: all of it."""
        return t


def real(*shape: int, **options: Any) -> Arg:
    return Arg("real", shape, **options)


def complex_(*shape: int, **options: Any) -> Arg:
    return Arg("complex", shape, **options)


def integer(*shape: int, low: int = -5, high: int = 6, dtype: str = "int64") -> Arg:
    return Arg("int", shape, low, high, dtype=dtype)


def boolean(*shape: int) -> Arg:
    return Arg("bool", shape)


def index(*shape: int, high: int) -> Arg:
    return Arg("index", shape, 0, high)


@dataclass(frozen=True)
class Case:
    """`op` applied to `args` equals `expected(*arrays)`, from NumPy, SciPy or a formula.

    smooth     False where the derivative is not to be compared with finite differences
               (piecewise constant results, or kinks that the inputs may hit)
    rtol       {"float64": ..., "float32": ...} where the usual tolerance is not right, with the
               reason in a comment beside it
    """

    op: Primitive
    args: tuple[Arg, ...]
    expected: Callable[..., Any]
    label: str = ""
    smooth: bool = True
    rtol: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        shapes = "-".join("x".join(map(str, a.shape)) or "0d" for a in self.args)
        return f"{self.op!r}-{self.label or shapes}".replace(" ", "")

    def arrays(self, dtype: Any = "float64", seed: int = 0) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        return [np.asarray(arg.make(rng, dtype)) for arg in self.args]
