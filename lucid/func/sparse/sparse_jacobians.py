"""Sparse Jacobians: one product for every color of the pattern, assembled as a SciPy matrix.

The pattern is derived from the Graph (sparsity.py) or given by the user, and cached for
the next call with the same structure. While `jit` records, the pattern is part of the recorded path
(indices that it depends on are guarded), and the entries are computed by the compiled program.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lucid.errors import ArgumentError, DTypeError, LucidError, MutationError, ShapeError
from lucid.func.jacobians import (
    batched_derivative,
    is_complex,
    run_checked,
    seeds_per_chunk,
)
from lucid.func.run import ArgNums, Run
from lucid.func.sparse.sparsity import color_columns, decompress, jacobian_pattern
from lucid.ops.shape.derivative_seeds import full_constant
from lucid.ops.shape.joining import cat
from lucid.support.caches import once
from lucid.support.structures import register
from lucid.tape.modes import local
from lucid.tape.node import GRAD, is_recording, residual, wrap
from lucid.tape.recording.pending import is_pending
from lucid.tape.views import tensor_of


class Coloring(NamedTuple):
    """The pattern of a Jacobian and a coloring of its columns ("jvp") or rows ("vjp")."""

    pattern: Any
    mode: str
    colors: np.ndarray


def sparse_jacobian(
    f: Callable[..., Any],
    argnums: ArgNums,
    has_aux: bool,
    chunk_size: int | None,
    sparsity: Any,
    mode: str | None = None,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes a sparse Jacobian, by the mode with fewer colors if None."""
    cache: dict[Any, Coloring] = {}  # of the last structure only: most programs have one

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        run = run_checked(f, argnums, has_aux, chunk_size, args, kwargs)
        if holomorphic or is_complex([*run.inputs, *run.outputs]):
            facts = "a sparse Jacobian is one of real numbers; leave out sparsity"
            raise DTypeError(f"{run.what}: {facts}")
        if is_recording() and not (local.transforms or local.maps or run.outer & GRAD):
            result = recorded_jacobian(run, sparsity, chunk_size, mode)
            return (result, run.unwrap_tree(run.aux)) if has_aux else result
        if run.record:
            raise LucidError(
                f"{run.what}: a sparse Jacobian is a SciPy matrix and cannot be differentiated"
            )
        key = pattern_key(run)
        found = cache.get(key)
        if found is None:
            found = find_coloring(run, sparsity, captured_values(run), mode)
            cache.clear()
            cache[key] = found
        result = compressed_jacobian(run, found, chunk_size)
        return (result, run.unwrap_tree(run.aux)) if has_aux else result

    return wrapped


def pattern_key(run: Run) -> Any:
    """Return a key for the pattern: the equations and captured values, such as indices."""
    arrays = [b"" if a is None else np.asarray(a).tobytes() for a in captured_values(run)]
    return run.cut.key, tuple([hashlib.sha256(a).digest() for a in arrays])


def captured_values(run: Run) -> list[Any]:
    """Return the captured values, None for those modified in place since."""
    found: list[Any] = []
    for slot in run.cut.captured:
        try:
            found.append(residual(run.cut.slots[slot]))
        except MutationError:
            found.append(None)
    return found


def indices_read(run: Run) -> list[Any]:
    """Return the captured integers and booleans of a recording, which guards them; else None.

    The pattern depends on indices. Other values are unknown, which makes it larger at most.
    """
    nodes = [run.cut.slots[slot] for slot in run.cut.captured]
    tensors = [tensor_of(node) for node in nodes]
    return [np.asarray(x) if x.dtype.kind in "iub" else None for x in tensors]


def find_coloring(run: Run, sparsity: Any, captured: Sequence[Any], mode: str | None) -> Coloring:
    """Return the pattern with a coloring of its columns ("jvp") or its rows ("vjp").

    If the mode is None, whichever needs fewer colors.
    """
    pattern = get_pattern(run, sparsity, captured)
    found = []
    if mode != "vjp":
        found.append(Coloring(pattern, "jvp", color_columns(pattern)))
    if mode != "jvp":
        rows = pattern.T.tocsr()
        found.append(Coloring(rows, "vjp", color_columns(rows)))
    return min(found, key=lambda coloring: coloring.colors.max(initial=-1))


def get_pattern(run: Run, sparsity: Any, captured: Sequence[Any]) -> Any:
    from scipy import sparse

    if isinstance(sparsity, str) and sparsity == "auto":
        return jacobian_pattern(run.cut.graph("f"), len(run.inputs), captured)
    if not sparse.issparse(sparsity) and not isinstance(sparsity, np.ndarray):
        raise ArgumentError(
            f"{run.what}: sparsity must be 'auto' or a SciPy or NumPy matrix, not {sparsity!r}"
        )
    sizes = tuple([sum(math.prod(x.shape) for x in xs) for xs in (run.outputs, run.inputs)])
    if sparsity.shape != sizes:
        raise ShapeError(
            f"{run.what}: the pattern has shape {sparsity.shape}, the Jacobian {sizes}"
        )
    return sparse.csr_array(sparsity != 0)


def compressed_jacobian(run: Run, found: Coloring, chunk_size: int | None) -> Any:
    """Return the Jacobian of all outputs by all inputs, with one product per color."""
    sources = run.inputs if found.mode == "jvp" else run.outputs
    products = colored_products(found.mode, run, sources, found.colors, chunk_size)
    result = decompress(found.pattern, found.colors, products)
    return result if found.mode == "jvp" else result.T.tocsr()


def colored_products(
    mode: str, run: Run, sources: Sequence[Any], colors: Any, chunk_size: int | None
) -> np.ndarray:
    """Return a row per color: the derivative along the sum of all elements of that color."""
    targets = run.outputs if mode == "jvp" else run.inputs
    rows = []
    for n, outs in colored_chunks(mode, run, sources, colors, chunk_size):
        parts = [
            np.zeros((n, math.prod(t.shape)), t.dtype)
            if out is None
            else np.asarray(out).reshape(n, -1)
            for out, t in zip(outs, targets)
        ]
        rows.append(np.concatenate(parts, axis=1))
    n = sum(math.prod(t.shape) for t in targets)
    return np.concatenate(rows) if rows else np.zeros((0, n), targets[0].dtype)


def colored_chunks(
    mode: str, run: Run, sources: Sequence[Any], colors: Any, chunk_size: int | None
) -> Iterator[tuple[int, list[Any]]]:
    """Yield numbers of colors, and the derivatives along the elements of each (None: zero)."""
    count = int(colors.max(initial=-1)) + 1
    step = max(chunk_size or seeds_per_chunk(mode, run, len(sources), count), 1)
    for start in range(0, count, step):
        stop = min(start + step, count)
        directions = colors == np.arange(start, stop)[:, None]
        seeds, offset = [], 0
        for x in sources:
            size = math.prod(x.shape)
            part = directions[:, offset : offset + size].astype(x.dtype)
            seeds.append(wrap(part.reshape(stop - start, *x.shape)))
            offset += size
        yield stop - start, batched_derivative(mode, run, seeds, stop - start)


# While jit records


class RecordedMatrix:
    """A sparse Jacobian while `jit` records: its entries, which the compiled program computes.

    It is a tree with one leaf. What a jitted function returns is the SciPy matrix of the entries.
    """

    def __init__(self, entries: Any, matrix: StoredPattern) -> None:
        self.entries, self.matrix = entries, matrix

    def __getattr__(self, name: str) -> Any:
        facts = "inside a jitted function a sparse Jacobian has no values yet; return it"
        raise LucidError(f"{name}: {facts}, and use it outside")


class StoredPattern:
    """The rows and columns of the entries of a sparse matrix; equal only to itself."""

    def __init__(self, pattern: Any) -> None:
        self.indices, self.starts, self.shape = pattern.indices, pattern.indptr, pattern.shape

    def filled(self, entries: Any) -> Any:
        """Return the SciPy matrix with these entries, or what stands for it in a recording."""
        from scipy import sparse

        if not hasattr(entries, "raw") or is_pending(entries.raw) or entries.raw is None:
            return RecordedMatrix(entries, self)
        parts = (np.asarray(entries), self.indices.copy(), self.starts.copy())
        return sparse.csr_array(parts, shape=self.shape)


@once
def register_recorded_matrix() -> None:
    """Make RecordedMatrix a tree; when it is first needed, because that imports optree."""
    register(
        RecordedMatrix, lambda x: ((x.entries,), x.matrix), lambda matrix, xs: matrix.filled(*xs)
    )


def recorded_jacobian(
    run: Run, sparsity: Any, chunk_size: int | None, mode: str | None
) -> RecordedMatrix:
    """Return the Jacobian of a recording, whose entries are computed by the recorded program."""
    register_recorded_matrix()
    found = find_coloring(run, sparsity, indices_read(run), mode)
    mode, pattern = found.mode, found.pattern
    sources, targets = run.inputs, run.outputs
    if mode == "vjp":
        sources, targets = targets, sources
    width = pattern.shape[0]
    rows = np.repeat(np.arange(width), np.diff(pattern.indptr))
    places = found.colors[pattern.indices] * width + rows  # of every entry among the products
    matrix = pattern.copy()
    matrix.data = np.arange(1, len(places) + 1)
    if mode == "vjp":
        matrix = matrix.T.tocsr()
    products = [
        full_constant(0.0, (n, math.prod(t.shape)), t.dtype, True)
        if out is None
        else run.unwrap(out).reshape(n, math.prod(t.shape))
        for n, outs in colored_chunks(mode, run, sources, found.colors, chunk_size)
        for out, t in zip(outs, targets)
    ]
    ends = [cat(products[i : i + len(targets)], 1) for i in range(0, len(products), len(targets))]
    flat = cat(ends, 0).reshape(-1) if ends else wrap(np.zeros(0, targets[0].dtype))
    entries = flat[wrap(places[matrix.data - 1])]
    return RecordedMatrix(entries, StoredPattern(matrix))
