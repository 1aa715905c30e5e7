"""NumbaFunction: a user's Numba function, with its types, its kernels and its rules as Graphs."""

from __future__ import annotations

import math
import types as python
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from lucid.errors import (
    ArgumentError,
    DTypeError,
    GraphError,
    LucidError,
    ShapeError,
    TracedValueError,
)
from lucid.ir.graph import Graph
from lucid.ir.types import Type, is_differentiable
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.higher_order import numba_kernels
from lucid.support.caches import once
from lucid.tape.cut import cut
from lucid.tape.modes import local
from lucid.tape.node import GRAD, TRACE, Trace, leaf
from lucid.tape.recording.trace import function_name
from lucid.tape.views import tensor_of

HALF, SINGLE = np.dtype("float16"), np.dtype("float32")


def dispatcher_of(f: Any) -> Any:
    """Return the Numba dispatcher of a function, compiling a Python function."""
    if hasattr(f, "py_func") and hasattr(f, "overloads"):
        return f
    f = getattr(f, "py_func", f)
    if not hasattr(f, "__code__"):
        raise ArgumentError(f"from_numba: {f!r} is not a Python or Numba function")
    import numba

    return numba.njit(f, error_model="numpy")


class NumbaFunction:
    """A function that Numba compiles, with its types, kernels and rules; compared by identity."""

    def __init__(
        self,
        dispatcher: Any,
        derivative: Sequence[Any] | None = None,
        shape: Callable[..., Any] | None = None,
        dtype: np.dtype | None = None,
        rules: dict[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.dispatcher, self.derivative = dispatcher, derivative
        self.rules = rules or {}
        self.shape, self.dtype = shape, dtype
        self.name = function_name(dispatcher.py_func)
        self.n_parameters = dispatcher.py_func.__code__.co_argcount
        self.results = cache(self._results)
        self.scalar_kernel = cache(self._scalar_kernel)
        self.array_kernel = cache(self._array_kernel)
        self.closed_graph = cache(self._closed_graph)
        self.rule = cache(self._rule)

    def __repr__(self) -> str:
        return self.name

    def run(self, *args: Any) -> Any:
        """Run it from Python; an error keeps its class and is also a LucidError."""
        try:
            return self.dispatcher(*args)
        except Exception as error:
            kind = error_class(type(error))  # type: ignore[arg-type]
            raise kind(f"{self.name}: {error}") from error

    # Numbers

    def result(self, dtypes: tuple[np.dtype, ...]) -> np.dtype:
        """Return the dtype of a scalar function; float results take that of float operands."""
        found = self.results(tuple([Type(promote_half(dtype), ()) for dtype in dtypes]))
        if len(found) != 1 or found[0][1]:
            raise ArgumentError(
                f"from_numba: {self.name} does not return a number for numbers; give shape= if it "
                "is a function of arrays"
            )
        floating = [dtype for dtype in dtypes if dtype.kind in "fc"]
        dtype = found[0][0]
        if self.dtype is None and floating and dtype.kind == floating[0].kind:
            dtype = floating[0]
        return self.dtype or dtype

    def _results(self, given: tuple[Type, ...]) -> list[tuple[np.dtype, int]]:
        kinds = [numba_kernels.numba_type(t) for t in given]
        return numba_kernels.returned_types(self.name, self.dispatcher, kinds)

    def _scalar_kernel(self, given: tuple[np.dtype, ...], out: np.dtype) -> Any:
        import numba

        space: dict[str, Any] = {}
        for name, dtype in zip(["y", *[f"x{k}" for k in range(len(given))]], (out, *given)):
            space |= {f"{name}_type": numba.from_dtype(dtype), f"{name}_size": dtype.itemsize}
        body = numba_kernels.scalar_source(len(given))
        return numba_kernels.compile_kernel(self.name, body, self.dispatcher, space)

    # Arrays

    def writes(self, n_operands: int) -> bool:
        """True if it writes its results into further arguments instead of returning them."""
        return self.n_parameters > n_operands

    def outputs(self, given: Sequence[Type]) -> list[Type]:
        """Return the output types: shapes by the user's rule, dtypes as Numba infers them."""
        shapes = self._shapes(given)
        if self.writes(len(given)):
            dtypes = [self.dtype or floating_dtype(self.name, given)] * len(shapes)
            return [Type(dtype, shape) for dtype, shape in zip(dtypes, shapes)]
        found = self.results(tuple([Type(promote_half(t.dtype), t.shape) for t in given]))
        if any(t.dtype == HALF for t in given):
            found = [(HALF if dtype == SINGLE else dtype, ndim) for dtype, ndim in found]
        if [ndim for _, ndim in found] != [len(shape) for shape in shapes]:
            ndims = ", ".join(str(ndim) for _, ndim in found)
            raise ShapeError(
                f"{self.name}: shape= gives {shapes}, but the returned arrays have {ndims} axes"
            )
        return [Type(self.dtype or dtype, shape) for (dtype, _), shape in zip(found, shapes)]

    def _shapes(self, given: Sequence[Type]) -> list[tuple[int, ...]]:
        assert self.shape is not None
        try:
            shapes = self.shape(*[t.shape for t in given])
            listed = shapes if isinstance(shapes, list) else [shapes]
            return [tuple([int(n) for n in shape]) for shape in listed]
        except (TypeError, ValueError, IndexError) as error:
            shapes_text = ", ".join(str(t.shape) for t in given)
            raise ShapeError(f"{self.name}: shape= of {shapes_text}: {error}") from error

    def _array_kernel(self, given: tuple[Type, ...], outs: tuple[Type, ...]) -> Any:
        import numba

        space: dict[str, Any] = {}
        for kind, types in (("y", outs), ("x", given)):
            space |= {f"{kind}{k}_type": numba.from_dtype(t.dtype) for k, t in enumerate(types)}
        body = numba_kernels.array_source(outs, given, self.writes(len(given)))
        return numba_kernels.compile_kernel(self.name, body, self.dispatcher, space)

    # Derivatives

    def _closed_graph(self, given: tuple[Type, ...], outs: tuple[Type, ...]) -> ClosedGraph:
        """Trace the Python function on tensors of these types."""
        if self.shape is not None and self.writes(len(given)):
            raise self.no_derivative_error("it writes into its arguments")

        def of_tensors(*xs: Any) -> list[Any]:
            found = traceable(self.dispatcher)(*xs)
            parts = found if isinstance(found, tuple) else (found,)
            return [cast_and_expand(y, t) for y, t in zip(parts, outs)]

        try:
            return ClosedGraph.of(of_tensors, given)
        except TracedValueError as error:
            raise self.no_derivative_error(
                f"its Python code depends on values ({error})"
            ) from error
        except Exception as error:
            raise self.no_derivative_error(
                f"its Python code does not run on tensors ({error})"
            ) from error

    def no_derivative_error(self, reason: str) -> GraphError:
        remedy = "derivative=" if self.shape is None else "vjp= or jvp="
        return GraphError(
            f"{self.name}: no derivative was found, because {reason}; give {remedy} to from_numba"
        )

    def _rule(self, mode: str, given: tuple[Type, ...], outs: tuple[Type, ...]) -> ClosedGraph:
        """Trace the user's rule as a Graph: (seeds, results, operands) -> derivatives.

        For a vjp the seeds are cotangents of the floating results and the derivatives those of the
        floating operands; for a jvp it is the other way round, with tangents.
        """
        seeded, derived = (outs, given) if mode == "vjp" else (given, outs)
        moves = [i for i, t in enumerate(seeded) if is_differentiable(t.dtype)]
        wanted = [i for i, t in enumerate(derived) if is_differentiable(t.dtype)]
        function: Any = self.rules[mode]

        def of_tensors(*leaves: Any) -> list[Any]:
            seeds = dict(zip(moves, leaves))
            ys = leaves[len(moves) : len(moves) + len(outs)]
            first: Any = tuple([seeds.get(i) for i in range(len(seeded))])
            if mode == "vjp" and len(outs) == 1:
                first = first[0]
            y = ys[0] if len(ys) == 1 else ys
            found = function(first, y, *leaves[len(moves) + len(outs) :])
            parts = found if isinstance(found, (tuple, list)) else (found,)
            if len(parts) != len(derived):
                raise GraphError(
                    f"{self.name}: {mode}= returned {len(parts)} derivatives; {len(derived)} are "
                    "needed"
                )
            return [cast_and_expand(parts[i], derived[i]) for i in wanted]

        return ClosedGraph.of(of_tensors, [*[seeded[i] for i in moves], *outs, *given])


@dataclass(eq=False)
class ClosedGraph:
    """The Graph of a function of tensors, and the captured constants that are its last inputs."""

    graph: Graph
    captured: list[Any]

    @staticmethod
    def of(f: Callable[..., Any], given: Sequence[Type]) -> ClosedGraph:
        running = Trace("a function of Numba's")
        flags = [TRACE | (GRAD if is_differentiable(t.dtype) else 0) for t in given]
        inputs = [leaf(t, running, flag) for t, flag in zip(given, flags)]
        before, local.staging = local.staging, running
        try:
            found = cut(inputs, f(*inputs))
        finally:
            local.staging, running.active = before, False
        captured = [tensor_of(found.slots[slot]) for slot in found.captured]
        return ClosedGraph(found.graph("f"), captured)


def cast_and_expand(y: Any, t: Type) -> Any:
    """Convert a result to the expected type; None is zero."""
    return cast(as_tensor(0.0 if y is None else y), t.dtype).expand(t.shape)


@once
def error_class(kind: type) -> type:
    """Return the class of LucidErrors that are also errors of another class."""
    return type(kind.__name__, (LucidError, kind), {})


def promote_half(dtype: np.dtype) -> np.dtype:
    return SINGLE if dtype == HALF else dtype


def floating_dtype(name: str, given: Sequence[Type]) -> np.dtype:
    found = next((t.dtype for t in given if t.dtype.kind in "fc"), None)
    if found is None:
        raise DTypeError(f"{name}: no operand has a floating dtype; give dtype= to from_numba")
    return found


def traceable(dispatcher: Any) -> Callable[..., Any]:
    """Return the underlying Python function with `math` and Numba functions that take tensors."""
    function = dispatcher.py_func
    used = set(global_names(function.__code__))
    space = {
        name: tensor_version(value) if name in used else value
        for name, value in function.__globals__.items()
    }
    closure = tuple(
        python.CellType(tensor_version(cell.cell_contents)) for cell in function.__closure__ or ()
    )
    return python.FunctionType(
        function.__code__, space, function.__name__, function.__defaults__, closure
    )


def global_names(code: Any) -> list[str]:
    inner = [c for c in code.co_consts if isinstance(c, python.CodeType)]
    return [*code.co_names, *[name for c in inner for name in global_names(c)]]


def tensor_version(value: Any) -> Any:
    """Return the replacement for a global of a Numba function when it runs on tensors."""
    if value is math:
        return TensorMath()
    if isinstance(value, python.BuiltinFunctionType) and value.__module__ == "math":
        return getattr(TensorMath(), value.__name__)
    return traceable(value) if hasattr(value, "py_func") else value


class TensorMath:
    """The module `math` for tensors."""

    def __getattr__(self, name: str) -> Any:
        import lucid

        theirs = getattr(math, name)
        if not callable(theirs):
            return theirs
        return getattr(lucid, {"fabs": "abs", "gamma": ""}.get(name, name), theirs)
