"""Sparsity patterns of Jacobians, propagated through a Graph, and their coloring.

A value's pattern is a sparse matrix of ones with a row for every element and a column for every
input element. Movement ops select rows, elementwise ops unite them, reductions and products mix
them. By default every result depends on everything that its operands depend on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.errors import ShapeError
from lucid.ir.graph import Equation, Graph, Literal
from lucid.ir.types import is_differentiable
from lucid.ops.core.kinds import Elementwise
from lucid.ops.higher_order.call import Call
from lucid.ops.higher_order.checkpoint_op import Checkpoint, Named, OptimizationBarrier
from lucid.ops.higher_order.custom_derivative import CustomFunction, CustomJvp, CustomVjp
from lucid.ops.higher_order.region import Region
from lucid.ops.index.gather_scatter import Gather, PutAlong, ScatterAdd, TakeAlong
from lucid.ops.index.selection import TakeOne
from lucid.ops.index.writing import ScatterSet, SliceSet
from lucid.ops.linalg.contraction import Einsum, Matmul
from lucid.ops.nn.softmax import LogSoftmax, Softmax
from lucid.ops.reduce.cumulative import Cumprod, Cumsum
from lucid.ops.reduce.extrema import Max, Min
from lucid.ops.reduce.reduction import LogSumExp, Prod, Sum
from lucid.ops.reduce.statistics import Variance
from lucid.ops.shape.concatenate import Concatenate, Stack
from lucid.ops.shape.copying import Copy
from lucid.ops.shape.movement import Broadcast, Flip, Pad, Reshape, Slice, Transpose
from lucid.ops.shape.strided import Strided
from lucid.tape.markers import Alias, Overwritten, Replaced, StopGradient
from lucid.tape.node import wrap

MOVES = (
    Reshape, Transpose, Broadcast, Slice, Pad, Flip, Strided, TakeAlong, TakeOne, Gather, Copy,
    OptimizationBarrier, Named, Alias, Concatenate, Stack, SliceSet, ScatterSet,
)  # fmt: skip
REDUCTIONS = (Sum, Prod, Max, Min, LogSumExp, Variance)
ALONG_AXIS = (Softmax, LogSoftmax, Cumsum, Cumprod)
INLINED = {
    Call: "graph", Region: "graph", Checkpoint: "graph", CustomVjp: "forward", CustomJvp: "forward",
    CustomFunction: "forward",
}  # fmt: skip
MAX_ENTRIES = 200_000_000


def jacobian_pattern(graph: Graph, n_inputs: int, constants: Sequence[np.ndarray | None]) -> Any:
    """Return the pattern of all outputs of a Graph (CSR), with a column per input element.

    constants    the values of the inputs after the first `n_inputs`, None if unknown
    """
    from scipy import sparse

    sizes = [x.type.size for x in graph.inputs[:n_inputs]]
    whole = sparse.identity(sum(sizes), np.int32, "csr")
    starts = np.cumsum([0, *sizes])
    patterns: dict[Any, Any] = {
        x: whole[starts[i] : starts[i + 1]] for i, x in enumerate(graph.inputs[:n_inputs])
    }
    behind = zip(graph.inputs[n_inputs:], constants)
    values = {x: value for x, value in behind if value is not None}
    propagate_graph(graph, patterns, values)
    if not graph.outputs:
        return sparse.csr_matrix((0, sum(sizes)), dtype=np.int32)
    rows = [patterns.get(y) for y in graph.outputs]
    empty = [sparse.csr_matrix((y.type.size, sum(sizes)), dtype=np.int32) for y in graph.outputs]
    return binarize(sparse.vstack([e if r is None else r for r, e in zip(rows, empty)], "csr"))


def binarize(matrix: Any) -> Any:
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def propagate_graph(graph: Graph, patterns: dict[Any, Any], values: dict[Any, Any]) -> None:
    """Compute the patterns, and the values that depend on no input, of all Vars of a Graph."""
    for eqn in graph.equations:
        if any(x in patterns for x in eqn.inputs if not isinstance(x, Literal)):
            propagate(eqn, patterns, values)
        elif all(isinstance(x, Literal) or x in values for x in eqn.inputs):
            results = eqn.op.eval(*[value_of(x, values) for x in eqn.inputs])
            results = results if isinstance(results, tuple) else (results,)
            values.update(zip(eqn.outputs, map(np.asarray, results)))


def value_of(x: Any, values: dict[Any, Any]) -> Any:
    return x.array if isinstance(x, Literal) else values.get(x)


def propagate(eqn: Equation, patterns: dict[Any, Any], values: dict[Any, Any]) -> None:
    """Compute the patterns of the results of one equation."""
    op = eqn.op
    if isinstance(op, StopGradient) or not op.differentiable:
        return
    if type(op) in INLINED:
        propagate_subgraph(getattr(op, INLINED[type(op)]), eqn, patterns, values)
        return
    given = [None if isinstance(x, Literal) else patterns.get(x) for x in eqn.inputs]
    y = eqn.outputs[0]
    found = None
    if isinstance(op, Elementwise):
        found = union(
            [broadcast_pattern(p, x.type.shape, y.type.shape) for p, x in zip(given, eqn.inputs)]
        )
    elif isinstance(op, (Overwritten, Replaced)):
        found = given[isinstance(op, Replaced)]
    elif isinstance(op, MOVES):
        found = movement_pattern(eqn, given, values)
    elif isinstance(op, (ScatterAdd, PutAlong)):
        found = scatter_pattern(eqn, given, values)
    elif isinstance(op, REDUCTIONS):
        found = reduction_pattern(given[0], eqn.inputs[0].type.shape, op.axes)  # type: ignore[attr-defined]
    elif isinstance(op, ALONG_AXIS):
        found = along_axes_pattern(given[0], eqn.inputs[0].type.shape, axes_of(op))
    elif isinstance(op, (Einsum, Matmul)):
        found = product_pattern(eqn, given)
    if found is not None:
        patterns[y] = found
        return
    for out in eqn.outputs:
        if is_differentiable(out.type.dtype):
            patterns[out] = dense_pattern(eqn, given, out.type.size)


def propagate_subgraph(
    graph: Graph, eqn: Equation, patterns: dict[Any, Any], values: dict[Any, Any]
) -> None:
    """Propagate patterns through an op that holds a Graph."""
    inner_patterns: dict[Any, Any] = {}
    inner_values: dict[Any, Any] = {}
    for var, x in zip(graph.inputs, eqn.inputs):
        if not isinstance(x, Literal) and x in patterns:
            inner_patterns[var] = patterns[x]
        elif value_of(x, values) is not None:
            inner_values[var] = value_of(x, values)
    propagate_graph(graph, inner_patterns, inner_values)
    for out, inner in zip(eqn.outputs, graph.outputs):
        if isinstance(inner, Literal):
            values[out] = inner.array
        elif inner in inner_patterns:
            patterns[out] = inner_patterns[inner]
        elif inner in inner_values:
            values[out] = inner_values[inner]


def axes_of(op: Any) -> tuple[int, ...]:
    axes = getattr(op, "axes", None)
    return (op.axis,) if axes is None else tuple(axes)


def element_indices(shape: Sequence[int]) -> np.ndarray:
    return np.arange(int(np.prod(shape))).reshape(shape)


def union(patterns: Sequence[Any]) -> Any:
    total = None
    for p in patterns:
        if p is not None:
            total = p if total is None else total + p
    return None if total is None else binarize(total.tocsr())


def broadcast_pattern(pattern: Any, shape: Sequence[int], to: Sequence[int]) -> Any:
    """Return the pattern of a broadcast operand."""
    if pattern is None or tuple(shape) == tuple(to):
        return pattern
    return pattern[np.broadcast_to(element_indices(shape), to).ravel()]


def movement_pattern(eqn: Equation, given: Sequence[Any], values: dict[Any, Any]) -> Any:
    """Return the pattern of a movement op, run on element indices, where 0 is a constant."""
    from scipy import sparse

    operands, rows, start = [], [], 1
    for x, p in zip(eqn.inputs, given):
        if p is not None:
            operands.append(element_indices(x.type.shape) + start)
            rows.append(p)
            start += x.type.size
        elif is_differentiable(x.type.dtype):
            operands.append(np.zeros(x.type.shape, np.int64))
        elif value_of(x, values) is None:
            return None
        else:
            operands.append(value_of(x, values))
    columns = rows[0].shape[1]
    table = sparse.vstack([sparse.csr_matrix((1, columns), dtype=np.int32), *rows], "csr")
    return table[np.asarray(eqn.op.eval(*operands)).ravel()]


def scatter_pattern(eqn: Equation, given: Sequence[Any], values: dict[Any, Any]) -> Any:
    """Return the pattern of a scatter op; its adjoint maps every element to its result."""
    values_known = [value_of(x, values) for x in eqn.inputs]
    if any(k is None for k, p in zip(values_known, given) if p is None):
        return None
    types = [np.zeros(x.type.shape) if k is None else k for x, k in zip(eqn.inputs, values_known)]
    out = eqn.outputs[0].type
    positions = wrap(element_indices(out.shape).astype(np.float64))
    (target,) = [i for i, p in enumerate(given) if p is not None]
    found = eqn.op.adjoint(positions, *[wrap(np.asarray(t)) for t in types])  # type: ignore[attr-defined]
    found = found[target] if isinstance(found, tuple) else found
    return mix_rows(given[target], np.asarray(found).astype(np.int64).ravel(), None, out.size)


def mix_rows(pattern: Any, results: np.ndarray, elements: np.ndarray | None, size: int) -> Any:
    """Return the pattern where `results[i]` depends on `elements[i]`, for every i."""
    from scipy import sparse

    elements = np.arange(len(results)) if elements is None else elements
    shape = (size, pattern.shape[0])
    pairs = sparse.csr_matrix((np.ones(len(results), np.int32), (results, elements)), shape)
    return binarize((binarize(pairs) @ pattern).tocsr())


def reduction_pattern(pattern: Any, shape: Sequence[int], axes: Sequence[int]) -> Any:
    kept = [1 if i in axes else n for i, n in enumerate(shape)]
    results = np.broadcast_to(element_indices(kept), shape).ravel()
    return mix_rows(pattern, results, None, int(np.prod(kept)))


def along_axes_pattern(pattern: Any, shape: Sequence[int], axes: Sequence[int]) -> Any:
    """Return the pattern where every result depends on all elements along the axes."""
    return broadcast_pattern(
        reduction_pattern(pattern, shape, axes),
        [1 if i in axes else n for i, n in enumerate(shape)],
        shape,
    )


def product_pattern(eqn: Equation, given: Sequence[Any]) -> Any:
    """Return the pattern of a contraction: results depend on elements that share their axes."""
    if isinstance(eqn.op, Einsum):
        terms, out = eqn.op.terms
    else:
        terms, out = matmul_terms(*[x.type.ndim for x in eqn.inputs])
    if len(set(out)) != len(out) or any(len(set(term)) != len(term) for term in terms):
        return None
    sizes: dict[str, int] = {}
    for term, x in zip(terms, eqn.inputs):
        for name, n in zip(term, x.type.shape):
            if n != 1 or name not in sizes:  # an axis of size 1 is broadcast, to size 0 too
                sizes[name] = n
    parts = [product_operand_pattern(p, term, x.type.shape, out, sizes)
             for p, term, x in zip(given, terms, eqn.inputs) if p is not None]  # fmt: skip
    return None if any([part is None for part in parts]) else union(parts)


def product_operand_pattern(
    pattern: Any, term: str, shape: Sequence[int], out: str, sizes: dict[str, int]
) -> Any:
    names = [*term, *[name for name in out if name not in term]]
    full = [sizes[name] for name in names]
    if np.prod(full, dtype=float) > MAX_ENTRIES:
        return None
    own = element_indices(shape).reshape(*shape, *[1] * (len(names) - len(term)))
    order = [names.index(name) for name in out]
    results = element_indices([sizes[name] for name in out])
    aligned = results.transpose(np.argsort(order)).reshape(
        [sizes[name] if name in out else 1 for name in names]
    )
    pairs = np.broadcast_to(aligned, full).ravel(), np.broadcast_to(own, full).ravel()
    return mix_rows(pattern, *pairs, int(np.prod([sizes[name] for name in out])))


def matmul_terms(a: int, b: int) -> tuple[list[str], str]:
    """Return the einsum terms of a matrix product."""
    letters = "abcdefghijklmnopqrstuvw"
    batch = max(a, b, 2) - 2
    left = letters[batch - max(a - 2, 0) : batch] + ("xy" if a > 1 else "y")
    right = letters[batch - max(b - 2, 0) : batch] + ("yz" if b > 1 else "y")
    out = letters[:batch] + ("x" if a > 1 else "") + ("z" if b > 1 else "")
    return [left, right], out


def dense_pattern(eqn: Equation, given: Sequence[Any], size: int) -> Any:
    """Return the pattern where every result depends on everything the operands depend on."""
    row = union([any_row(p) for p in given if p is not None])
    if row.nnz * size > MAX_ENTRIES:
        raise ShapeError(
            f"sparsity: {eqn.op.name} mixes all its elements, which gives {row.nnz * size:,} "
            f"entries; pass the pattern as sparsity=   [{eqn.source}]"
        )
    return row[np.zeros(size, np.int64)]


def any_row(pattern: Any) -> Any:
    """Return a pattern of one row: what any of the rows depends on."""
    from scipy import sparse

    rows, columns = pattern.shape
    return sparse.csr_matrix(pattern.max(axis=0) if rows else (1, columns), dtype=pattern.dtype)


# Coloring


def color_columns(pattern: Any) -> np.ndarray:
    """Color the columns greedily so that columns of one color share no row."""
    by_column = pattern.tocsc()
    rows, starts = by_column.indices.tolist(), by_column.indptr.tolist()
    taken: list[int] = [0] * pattern.shape[0]  # the colors used in each row, as bits
    colors = np.empty(pattern.shape[1], np.int64)
    for column in range(pattern.shape[1]):
        own = rows[starts[column] : starts[column + 1]]
        used = 0
        for row in own:
            used |= taken[row]
        color = (~used & (used + 1)).bit_length() - 1
        colors[column] = color
        bit = 1 << color
        for row in own:
            taken[row] |= bit
    return colors


def decompress(pattern: Any, colors: np.ndarray, products: np.ndarray) -> Any:
    """Return the sparse matrix from its products, one row per color."""
    from scipy import sparse

    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    data = products[colors[pattern.indices], rows]
    parts = (data, pattern.indices.copy(), pattern.indptr.copy())  # the pattern is cached
    return sparse.csr_array(parts, shape=pattern.shape)
