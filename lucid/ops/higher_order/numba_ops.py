"""FromNumba and NumbaArrays: users' Numba functions of scalars and of arrays as primitives.

The interpreter and compiled programs call the same kernel by its address. Derivatives are given by
the user, or come from tracing the underlying Python function on tensors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.errors import ShapeError
from lucid.ir.primitive import Primitive
from lucid.ir.types import Type, broadcast_shapes, is_differentiable
from lucid.ops.core.kinds import Elementwise
from lucid.ops.core.promote import cast
from lucid.ops.higher_order.custom_derivative import apply_derivative, literal_to_tensor, zeros
from lucid.ops.higher_order.numba_function import ClosedGraph, promote_half
from lucid.tape.bind import bind
from lucid.tape.recording.trace import replay


def closed_graph_jvp(closed: ClosedGraph, ts: Any, xs: Sequence[Any]) -> list[Any]:
    """Return the tangents of the outputs of a ClosedGraph."""
    from lucid.transforms.jvp import jvp

    graph = closed.graph
    derivative = jvp(graph, graph.inputs[: len(xs)], [t is not None for t in ts])
    return apply_derivative(derivative, graph, [*xs, *closed.captured], [], ts)


def closed_graph_vjp(closed: ClosedGraph, cts: Any, xs: Sequence[Any]) -> list[Any]:
    """Return the cotangents of the operands of a ClosedGraph."""
    from lucid.transforms.vjp import vjp

    graph = closed.graph
    derivative = vjp(graph, graph.inputs[: len(xs)], [ct is not None for ct in cts])
    return apply_derivative(derivative, graph, [*xs, *closed.captured], [], cts)


def differentiable_indices(xs: Sequence[Any]) -> list[int]:
    """Return the indices of the values that have derivatives."""
    return [i for i, x in enumerate(xs) if is_differentiable(x.dtype)]


class FromNumba(Elementwise):
    """A scalar function that Numba compiles, applied elementwise."""

    function: Any

    accepts = "biufc"
    fails = True
    saves = "x"
    lowering = "lucid.compiler.lowering.external.numba_calls:NumbaScalarLowering"

    def infer(self, *xs: Type) -> Type:
        dtype = self.function.result(tuple([x.dtype for x in xs]))
        try:
            return Type(dtype, broadcast_shapes(*[x.shape for x in xs]))
        except ShapeError as error:
            raise ShapeError(f"{self.function.name}: {error}") from None

    def eval(self, *xs: np.ndarray) -> np.ndarray:
        type = self.infer(*[Type(x.dtype, x.shape) for x in xs])
        y = np.empty(type.shape, promote_half(type.dtype))
        xs = tuple([np.asarray(x, promote_half(x.dtype)) for x in xs])
        full = [
            x.reshape(-1) if x.size == 1 else np.ascontiguousarray(np.broadcast_to(x, y.shape))
            for x in xs
        ]
        words = [y.ctypes.data, y.itemsize]
        for x in full:
            words += [x.ctypes.data, 0 if x.size == 1 and y.size != 1 else x.itemsize]
        kernel = self.function.scalar_kernel(tuple([x.dtype for x in xs]), y.dtype)
        if not kernel.run(words, y.size):
            for numbers in np.broadcast(*xs):
                self.function.run(*numbers)
        return y.astype(type.dtype, copy=False)

    def partials(self, y: Any, *xs: Any) -> tuple[Any, ...]:
        return tuple(
            None
            if rule is None or (hasattr(x, "dtype") and not is_differentiable(x.dtype))
            else rule(*xs)
            for rule, x in zip(self.function.derivative, xs)
        )

    def closed_graph(self, y: Any, xs: Sequence[Any]) -> Any:
        return self.function.closed_graph(tuple([x.type for x in xs]), (y.type,))

    def jvp(self, ts: Any, y: Any, *xs: Any) -> Any:
        if not is_differentiable(y.dtype):
            return None
        if self.function.derivative is not None:
            t = super().jvp(ts, y, *xs)
            return None if t is None else cast(t, y.dtype)
        return closed_graph_jvp(self.closed_graph(y, xs), ts, xs)[0]

    def vjp(self, ct: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        if self.function.derivative is None:
            return tuple(closed_graph_vjp(self.closed_graph(y, xs), [ct], xs))
        found = super().vjp(ct, y, *xs)
        return tuple(None if g is None else cast(g, x.dtype) for g, x in zip(found, xs))


FromNumba.always_differentiable = False  # a function may return integers


class NumbaArrays(Primitive):
    """A function of arrays that Numba compiles.

    flags    which operands have a leading batch axis; () if there is no batch
    """

    function: Any
    flags: tuple[bool, ...] = ()

    fails = True
    saves = "x"
    lowering = "lucid.compiler.lowering.external.numba_calls:NumbaArrayLowering"

    def inner(self, xs: Sequence[Type]) -> list[Type]:
        """Return the types of one example."""
        flags = self.flags or (False,) * len(xs)
        return [Type(x.dtype, x.shape[1:]) if b else x for b, x in zip(flags, xs)]

    def batch_size(self, xs: Sequence[Any]) -> tuple[int, ...]:
        """Return the batch size as a shape: (n,), or () if there is no batch."""
        return next(((x.shape[0],) for b, x in zip(self.flags, xs) if b), ())

    def infer(self, *xs: Type) -> tuple[Type, ...]:
        outs = self.function.outputs(self.inner(xs))
        return tuple([Type(t.dtype, (*self.batch_size(xs), *t.shape)) for t in outs])

    def eval(self, *xs: np.ndarray) -> tuple[np.ndarray, ...]:
        results = self.infer(*[Type(x.dtype, x.shape) for x in xs])
        full = [np.asarray(x, promote_half(x.dtype), order="C") for x in xs]
        types = [Type(x.dtype, x.shape) for x in full]
        inner = self.inner(types)
        ys = [np.empty(t.shape, promote_half(t.dtype)) for t in results]
        n = self.batch_size(types)
        outs = [Type(y.dtype, y.shape[len(n) :]) for y in ys]
        words: list[int] = []
        for array, t in zip((*ys, *full), (*outs, *inner)):
            words += [array.ctypes.data, *self.words(t, len(array.shape) > t.ndim)]
        kernel = self.function.array_kernel(tuple(inner), tuple(outs))
        if not kernel.run(words, math.prod(n)):
            self.reraise_error(full, ys, len(n) > 0)
        return tuple([y.astype(t.dtype, copy=False) for y, t in zip(ys, results)])

    @staticmethod
    def words(t: Type, is_batched: bool) -> list[int]:
        """Return what a kernel gets besides the address: bytes of an example, and sizes."""
        return [t.size * t.dtype.itemsize if is_batched else 0, *t.shape]

    def reraise_error(self, xs: Sequence[Any], ys: Sequence[Any], is_batched: bool) -> None:
        """Raise the function's error by running it from Python, example by example."""
        flags = self.flags or (False,) * len(xs)
        for i in range(len(ys[0]) if is_batched else 1):
            args = [x[i] if b else x[()] for b, x in zip(flags, xs)]
            outs = [y[i] if is_batched else y for y in ys]
            writes = self.function.writes(len(xs))
            found = self.function.run(*args, *(outs if writes else []))
            for y, out in zip(found if isinstance(found, tuple) else (found,), outs):
                if not writes and np.shape(y) != out.shape:
                    raise ShapeError(
                        f"{self.function.name}: returned an array of shape {np.shape(y)}, but "
                        f"shape= gives {out.shape}"
                    )

    def types(self, ys: Sequence[Any], xs: Sequence[Any]) -> tuple[tuple[Type, ...], ...]:
        """Return the types of one example: of the operands, and of the results."""
        n = len(self.batch_size(xs))
        outs = tuple([Type(y.dtype, y.shape[n:]) for y in ys])
        return tuple(self.inner([x.type for x in xs])), outs

    def batch_over_examples(
        self, closed: ClosedGraph, xs: Sequence[Any], flags: Sequence[bool], *summed: bool
    ) -> ClosedGraph:
        """Batch a ClosedGraph; `flags` are those of its inputs without the captured ones."""
        from lucid.transforms.vmap import batch_graph

        n = self.batch_size(xs)
        if not n:
            return closed
        full = (*flags, *[False] * len(closed.captured))
        return ClosedGraph(batch_graph(closed.graph, n[0], full, summed), closed.captured)

    def traced_graph(self, ys: Sequence[Any], xs: Sequence[Any]) -> ClosedGraph:
        return self.batch_over_examples(
            self.function.closed_graph(*self.types(ys, xs)), xs, self.flags
        )

    def rule(self, mode: str, ys: Sequence[Any], xs: Sequence[Any]) -> ClosedGraph:
        """Return the user's rule, batched."""
        closed = self.function.rule(mode, *self.types(ys, xs))
        on_xs = [b for b, x in zip(self.flags, xs) if is_differentiable(x.dtype)]
        seeds = [True] * len(differentiable_indices(ys)) if mode == "vjp" else on_xs
        summed = [not b for b in on_xs] if mode == "vjp" else []
        return self.batch_over_examples(
            closed, xs, [*seeds, *[True] * len(ys), *self.flags], *summed
        )

    def jvp(self, ts: Any, ys: Any, *xs: Any) -> tuple[Any, ...]:
        if self.function.rules:
            return self.by_rule("jvp", ts, ys, xs)
        return tuple(closed_graph_jvp(self.traced_graph(ys, xs), ts, xs))

    def vjp(self, cts: Any, ys: Any, *xs: Any) -> tuple[Any, ...]:
        if self.function.rules:
            return self.by_rule("vjp", cts, ys, xs)
        return tuple(closed_graph_vjp(self.traced_graph(ys, xs), cts, xs))

    def by_rule(self, mode: str, seeds: Any, ys: Any, xs: Any) -> tuple[Any, ...]:
        """Differentiate by the user's rule, which is linear, or by its transpose."""
        from lucid.transforms.vjp import vjp

        (given,) = self.function.rules
        closed = self.rule(given, ys, xs)
        graph = closed.graph
        seeded, derived = (ys, xs) if mode == "vjp" else (xs, ys)
        chosen, wanted = (
            [seeds[i] for i in differentiable_indices(seeded)],
            differentiable_indices(derived),
        )
        at = [*ys, *xs, *closed.captured]
        if mode == given:
            likes = [seeded[i] for i in differentiable_indices(seeded)]
            full = [zeros(x) if seed is None else seed for seed, x in zip(chosen, likes)]
            found = [literal_to_tensor(y) for y in replay(graph, [*full, *at])]
        else:
            transpose = vjp(graph, graph.inputs[: len(wanted)], [s is not None for s in chosen])
            zero = [zeros(derived[i]) for i in wanted]
            found = apply_derivative(transpose, graph, [*zero, *at], [], chosen)
        results: list[Any] = [None] * len(derived)
        for i, derivative in zip(wanted, found):
            results[i] = derivative
        return tuple(results)

    def batch(self, n: int, batched: tuple[bool, ...], *xs: Any) -> tuple[Any, ...]:
        if not self.flags:
            return bind(NumbaArrays(self.function, batched), *xs)
        inside = [x.type if not b else Type(x.dtype, x.shape[1:]) for b, x in zip(batched, xs)]
        (m,) = self.batch_size(inside)
        flat, flags = [], []
        for x, t, b, known in zip(xs, inside, batched, self.flags):
            rest = t.shape[1:] if known else t.shape
            if b or known:
                x = x if b else x.expand((n, *x.shape))
                x = x if known else x.reshape(n, 1, *rest).expand((n, m, *rest))
                x = x.reshape(n * m, *rest)
            flat.append(x)
            flags.append(b or known)
        ys = bind(NumbaArrays(self.function, tuple(flags)), *flat)
        return tuple([y.reshape(n, m, *y.shape[1:]) for y in ys])
