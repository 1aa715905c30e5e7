"""Sparse Jacobians: one product for every color of the pattern, assembled as a SciPy matrix.

The pattern is derived from the Graph (sparsity.py) or given by the user, and cached for
the next call with the same structure.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Sequence
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
from lucid.tape.node import residual, wrap


class Coloring(NamedTuple):
    """The pattern of a Jacobian and a coloring of its columns ("jvp") or rows ("vjp")."""

    pattern: Any
    mode: str
    colors: np.ndarray


def sparse_jacobian(
    f: Callable[..., Any], argnums: ArgNums, has_aux: bool, chunk_size: int | None, sparsity: Any
) -> Callable[..., Any]:
    cache: dict[Any, Coloring] = {}  # of the last structure only: most programs have one

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        run = run_checked(f, argnums, has_aux, chunk_size, args, kwargs)
        if is_complex([*run.inputs, *run.outputs]):
            facts = "a sparse Jacobian is one of real numbers; leave out sparsity"
            raise DTypeError(f"{run.what}: {facts}")
        if run.record:
            raise LucidError(
                f"{run.what}: a sparse Jacobian is a SciPy matrix and cannot be differentiated or "
                "jitted"
            )
        key = pattern_key(run)
        found = cache.get(key)
        if found is None:
            found = find_coloring(run, sparsity)
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


def find_coloring(run: Run, sparsity: Any) -> Coloring:
    """Return the pattern with a coloring of its columns or rows, whichever needs fewer colors."""
    pattern = get_pattern(run, sparsity)
    forward, backward = color_columns(pattern), color_columns(pattern.T.tocsr())
    if forward.max(initial=-1) <= backward.max(initial=-1):
        return Coloring(pattern, "jvp", forward)
    return Coloring(pattern.T.tocsr(), "vjp", backward)


def get_pattern(run: Run, sparsity: Any) -> Any:
    from scipy import sparse

    if isinstance(sparsity, str) and sparsity == "auto":
        return jacobian_pattern(run.cut.graph("f"), len(run.inputs), captured_values(run))
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
    count = int(colors.max(initial=-1)) + 1
    step = chunk_size or seeds_per_chunk(mode, run, len(sources), count)
    targets = run.outputs if mode == "jvp" else run.inputs
    rows = []
    for start in range(0, count, max(step, 1)):
        stop = min(start + step, count)
        directions = colors == np.arange(start, stop)[:, None]
        seeds, offset = [], 0
        for x in sources:
            size = math.prod(x.shape)
            part = directions[:, offset : offset + size].astype(x.dtype)
            seeds.append(wrap(part.reshape(stop - start, *x.shape)))
            offset += size
        outs = batched_derivative(mode, run, seeds, stop - start)
        rows.append(
            np.concatenate(
                [
                    np.zeros((stop - start, math.prod(t.shape)), t.dtype)
                    if out is None
                    else np.asarray(out).reshape(stop - start, -1)
                    for out, t in zip(outs, targets)
                ],
                axis=1,
            )
        )
    n = sum(math.prod(t.shape) for t in targets)
    return np.concatenate(rows) if rows else np.zeros((0, n), targets[0].dtype)
