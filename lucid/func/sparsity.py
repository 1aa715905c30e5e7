"""Sparse Jacobians: which elements depend on which, read from a Graph, and coloured.

A value's pattern is a sparse matrix of ones with a row for every element and a column for every
input. Movements select rows, elementwise operations unite them, reductions and products mix them.
Where nothing better is known, every result depends on all that its operands depend on.
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
from lucid.ops.higher_order.checkpoint_op import Again, Checkpoint, Named
from lucid.ops.higher_order.custom_derivative import CustomFunction, CustomJvp, CustomVjp
from lucid.ops.higher_order.region import Region
from lucid.ops.index.gather_scatter import Gather, PutAlong, ScatterAdd, TakeAlong
from lucid.ops.index.writing import ScatterSet, SliceSet
from lucid.ops.linalg.contraction import Einsum, Matmul
from lucid.ops.nn.softmax import LogSoftmax, Softmax
from lucid.ops.reduce.cumulative import Cumprod, Cumsum
from lucid.ops.reduce.extrema import Max, Min
from lucid.ops.reduce.reduction import LogSumExp, Prod, Sum
from lucid.ops.shape.copying import Copy
from lucid.ops.shape.movement import Broadcast, Concatenate, Flip, Pad, Reshape, Slice, Transpose
from lucid.tape.markers import Alias, Overwritten, StopGradient
from lucid.tape.node import wrap

MOVES = (
    Reshape, Transpose, Broadcast, Slice, Pad, Flip, TakeAlong, Gather, Copy, Again, Named, Alias,
    Concatenate, SliceSet, ScatterSet,
)  # fmt: skip
REDUCTIONS = (Sum, Prod, Max, Min, LogSumExp)
ALONG = (Softmax, LogSoftmax, Cumsum, Cumprod)
INLINED = {
    Call: "graph", Region: "graph", Checkpoint: "graph", CustomVjp: "forward", CustomJvp: "forward",
    CustomFunction: "forward",
}  # fmt: skip
MOST_ENTRIES = 200_000_000


def pattern_of(graph: Graph, n_inputs: int, constants: Sequence[np.ndarray | None]) -> Any:
    """The pattern of all outputs of a Graph (CSR), with a column for every input element.

    constants    the values of the inputs behind the first `n_inputs`, None where not known
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
    walk(graph, patterns, values)
    if not graph.outputs:
        return sparse.csr_matrix((0, sum(sizes)), dtype=np.int32)
    rows = [patterns.get(y) for y in graph.outputs]
    empty = [sparse.csr_matrix((y.type.size, sum(sizes)), dtype=np.int32) for y in graph.outputs]
    return ones(sparse.vstack([e if r is None else r for r, e in zip(rows, empty)], "csr"))


def ones(matrix: Any) -> Any:
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def walk(graph: Graph, patterns: dict[Any, Any], values: dict[Any, Any]) -> None:
    """Find the patterns, and the values that depend on no input, of all that a Graph computes."""
    for eqn in graph.equations:
        if any(x in patterns for x in eqn.inputs if not isinstance(x, Literal)):
            follow(eqn, patterns, values)
        elif all(isinstance(x, Literal) or x in values for x in eqn.inputs):
            results = eqn.op.eval(*[value_of(x, values) for x in eqn.inputs])
            results = results if isinstance(results, tuple) else (results,)
            values.update(zip(eqn.outputs, map(np.asarray, results)))


def value_of(x: Any, values: dict[Any, Any]) -> Any:
    return x.array if isinstance(x, Literal) else values.get(x)


def follow(eqn: Equation, patterns: dict[Any, Any], values: dict[Any, Any]) -> None:
    """The patterns of the results of one equation."""
    op = eqn.op
    if isinstance(op, StopGradient) or not op.differentiable:
        return
    if type(op) in INLINED:
        inside(getattr(op, INLINED[type(op)]), eqn, patterns, values)
        return
    given = [None if isinstance(x, Literal) else patterns.get(x) for x in eqn.inputs]
    y = eqn.outputs[0]
    found = None
    if isinstance(op, Elementwise):
        found = united([spread(p, x.type.shape, y.type.shape) for p, x in zip(given, eqn.inputs)])
    elif isinstance(op, Overwritten):
        found = given[0]
    elif isinstance(op, MOVES):
        found = moved(eqn, given, values)
    elif isinstance(op, (ScatterAdd, PutAlong)):
        found = scattered(eqn, given, values)
    elif isinstance(op, REDUCTIONS):
        found = reduced(given[0], eqn.inputs[0].type.shape, op.axes)  # type: ignore[attr-defined]
    elif isinstance(op, ALONG):
        found = along(given[0], eqn.inputs[0].type.shape, axes_of(op))
    elif isinstance(op, (Einsum, Matmul)):
        found = multiplied(eqn, given)
    if found is not None:
        patterns[y] = found
        return
    for out in eqn.outputs:
        if is_differentiable(out.type.dtype):
            patterns[out] = everything(eqn, given, out.type.size)


def inside(graph: Graph, eqn: Equation, patterns: dict[Any, Any], values: dict[Any, Any]) -> None:
    """An operation that holds a Graph depends as that Graph does."""
    inner_patterns: dict[Any, Any] = {}
    inner_values: dict[Any, Any] = {}
    for var, x in zip(graph.inputs, eqn.inputs):
        if not isinstance(x, Literal) and x in patterns:
            inner_patterns[var] = patterns[x]
        elif value_of(x, values) is not None:
            inner_values[var] = value_of(x, values)
    walk(graph, inner_patterns, inner_values)
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


def numbers(shape: Sequence[int]) -> np.ndarray:
    return np.arange(int(np.prod(shape))).reshape(shape)


def united(patterns: Sequence[Any]) -> Any:
    total = None
    for p in patterns:
        if p is not None:
            total = p if total is None else total + p
    return None if total is None else ones(total.tocsr())


def spread(pattern: Any, shape: Sequence[int], to: Sequence[int]) -> Any:
    """The pattern of an operand that is broadcast."""
    if pattern is None or tuple(shape) == tuple(to):
        return pattern
    return pattern[np.broadcast_to(numbers(shape), to).ravel()]


def moved(eqn: Equation, given: Sequence[Any], values: dict[Any, Any]) -> Any:
    """Operations that move elements, run on the numbers of the elements: 0 is no element."""
    from scipy import sparse

    operands, rows, start = [], [], 1
    for x, p in zip(eqn.inputs, given):
        if p is not None:
            operands.append(numbers(x.type.shape) + start)
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


def scattered(eqn: Equation, given: Sequence[Any], values: dict[Any, Any]) -> Any:
    """Operations that add every element to one result: where to, says the adjoint."""
    known = [value_of(x, values) for x in eqn.inputs]
    if any(k is None for k, p in zip(known, given) if p is None):
        return None
    types = [np.zeros(x.type.shape) if k is None else k for x, k in zip(eqn.inputs, known)]
    out = eqn.outputs[0].type
    places = wrap(numbers(out.shape).astype(np.float64))
    (target,) = [i for i, p in enumerate(given) if p is not None]
    found = eqn.op.adjoint(places, *[wrap(np.asarray(t)) for t in types])  # type: ignore[attr-defined]
    found = found[target] if isinstance(found, tuple) else found
    return mixed(given[target], np.asarray(found).astype(np.int64).ravel(), None, out.size)


def mixed(pattern: Any, results: np.ndarray, elements: np.ndarray | None, size: int) -> Any:
    """A result depends on an element for every pair (result, element)."""
    from scipy import sparse

    elements = np.arange(len(results)) if elements is None else elements
    shape = (size, pattern.shape[0])
    pairs = sparse.csr_matrix((np.ones(len(results), np.int32), (results, elements)), shape)
    return ones((ones(pairs) @ pattern).tocsr())


def reduced(pattern: Any, shape: Sequence[int], axes: Sequence[int]) -> Any:
    kept = [1 if i in axes else n for i, n in enumerate(shape)]
    results = np.broadcast_to(numbers(kept), shape).ravel()
    return mixed(pattern, results, None, int(np.prod(kept)))


def along(pattern: Any, shape: Sequence[int], axes: Sequence[int]) -> Any:
    """Every result depends on all elements along the axes."""
    return spread(
        reduced(pattern, shape, axes), [1 if i in axes else n for i, n in enumerate(shape)], shape
    )


def multiplied(eqn: Equation, given: Sequence[Any]) -> Any:
    """Products: a result depends on the elements with which it shares the names of axes."""
    if isinstance(eqn.op, Einsum):
        terms, out = eqn.op.terms
    else:
        terms, out = matmul_terms(*[x.type.ndim for x in eqn.inputs])
    if len(set(out)) != len(out) or any(len(set(term)) != len(term) for term in terms):
        return None
    sizes: dict[str, int] = {}
    for term, x in zip(terms, eqn.inputs):
        for name, n in zip(term, x.type.shape):
            sizes[name] = max(sizes.get(name, 1), n)
    parts = [paired(p, term, x.type.shape, out, sizes)
             for p, term, x in zip(given, terms, eqn.inputs) if p is not None]  # fmt: skip
    return None if any([part is None for part in parts]) else united(parts)


def paired(pattern: Any, term: str, shape: Sequence[int], out: str, sizes: dict[str, int]) -> Any:
    names = [*term, *[name for name in out if name not in term]]
    full = [sizes[name] for name in names]
    if np.prod(full, dtype=float) > MOST_ENTRIES:
        return None
    own = numbers(shape).reshape(*shape, *[1] * (len(names) - len(term)))
    order = [names.index(name) for name in out]
    results = numbers([sizes[name] for name in out])
    aligned = results.transpose(np.argsort(order)).reshape(
        [sizes[name] if name in out else 1 for name in names]
    )
    pairs = np.broadcast_to(aligned, full).ravel(), np.broadcast_to(own, full).ravel()
    return mixed(pattern, *pairs, int(np.prod([sizes[name] for name in out])))


def matmul_terms(a: int, b: int) -> tuple[list[str], str]:
    """A product of matrices as names of axes."""
    letters = "abcdefghijklmnopqrstuvw"
    batch = max(a, b, 2) - 2
    left = letters[batch - max(a - 2, 0) : batch] + ("xy" if a > 1 else "y")
    right = letters[batch - max(b - 2, 0) : batch] + ("yz" if b > 1 else "y")
    out = letters[:batch] + ("x" if a > 1 else "") + ("z" if b > 1 else "")
    return [left, right], out


def everything(eqn: Equation, given: Sequence[Any], size: int) -> Any:
    """Every result depends on all that the operands depend on."""
    from scipy import sparse

    row = united([sparse.csr_matrix(p.max(axis=0)) for p in given if p is not None])
    if row.nnz * size > MOST_ENTRIES:
        raise ShapeError(
            f"sparsity: {eqn.op.name} mixes all its elements, which makes {row.nnz * size:,} "
            f"entries; give the pattern as sparsity=   [{eqn.source}]"
        )
    return row[np.zeros(size, np.int64)]


# Colours


def coloured(pattern: Any) -> np.ndarray:
    """A colour for every column, such that columns of one colour share no row (greedily)."""
    by_column = pattern.tocsc()
    rows, starts = by_column.indices.tolist(), by_column.indptr.tolist()
    taken: list[int] = [0] * pattern.shape[0]  # the colours in a row, as bits
    colours = np.empty(pattern.shape[1], np.int64)
    for column in range(pattern.shape[1]):
        own = rows[starts[column] : starts[column + 1]]
        used = 0
        for row in own:
            used |= taken[row]
        colour = (~used & (used + 1)).bit_length() - 1
        colours[column] = colour
        bit = 1 << colour
        for row in own:
            taken[row] |= bit
    return colours


def decompressed(pattern: Any, colours: np.ndarray, products: np.ndarray) -> Any:
    """The sparse matrix from its products with the colours: row c is the sum of its columns."""
    from scipy import sparse

    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    data = products[colours[pattern.indices], rows]
    return sparse.csr_array((data, pattern.indices, pattern.indptr), shape=pattern.shape)
