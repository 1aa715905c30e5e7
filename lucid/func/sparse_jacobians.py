"""Sparse Jacobians: a product for every colour of the pattern, put together as a SciPy matrix.

The pattern is found from the Graph (lucid/sparsity.py) or given; what was found for a structure is
kept for the next call.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lucid.errors import ArgumentError, LucidError, MutationError, ShapeError
from lucid.func.jacobians import batched_derivative, checked_run, rows_that_fit
from lucid.func.run import ArgNums, Run
from lucid.func.sparsity import coloured, decompressed, pattern_of
from lucid.ir.source import at_line
from lucid.tape.node import residual, wrap


class Colours(NamedTuple):
    """The pattern of a Jacobian and how it is compressed: by columns ("jvp") or rows ("vjp")."""

    pattern: Any
    mode: str
    colours: np.ndarray


def sparse_jacobian(
    f: Callable[..., Any], argnums: ArgNums, has_aux: bool, chunk_size: int | None, sparsity: Any
) -> Callable[..., Any]:
    known: dict[Any, Colours] = {}  # of the last structure: most programs have one

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        run = checked_run(f, argnums, has_aux, chunk_size, args, kwargs)
        if run.record:
            raise LucidError(
                f"{run.what}: a sparse Jacobian is SciPy's and cannot be differentiated or "
                f"jitted{at_line()}"
            )
        key = structure(run)
        found = known.get(key)
        if found is None:
            found = colours_of(run, sparsity)
            known.clear()
            known[key] = found
        result = compressed_jacobian(run, found, chunk_size)
        return (result, run.release(run.aux)) if has_aux else result

    return wrapped


def structure(run: Run) -> Any:
    """What the pattern depends on: the equations, and values from outside, such as indices."""
    arrays = [b"" if a is None else np.asarray(a).tobytes() for a in captured_values(run)]
    return run.cut.key, tuple([hashlib.sha256(a).digest() for a in arrays])


def captured_values(run: Run) -> list[Any]:
    """Values from outside, None where one was changed in place since."""
    found: list[Any] = []
    for slot in run.cut.captured:
        try:
            found.append(residual(run.cut.slots[slot]))
        except MutationError:
            found.append(None)
    return found


def colours_of(run: Run, sparsity: Any) -> Colours:
    """The pattern as found or given, with the fewer colours of its columns or rows."""
    pattern = pattern_for(run, sparsity)
    forward, backward = coloured(pattern), coloured(pattern.T.tocsr())
    if forward.max(initial=-1) <= backward.max(initial=-1):
        return Colours(pattern, "jvp", forward)
    return Colours(pattern.T.tocsr(), "vjp", backward)


def pattern_for(run: Run, sparsity: Any) -> Any:
    from scipy import sparse

    if isinstance(sparsity, str) and sparsity == "auto":
        return pattern_of(run.cut.graph("f"), len(run.inputs), captured_values(run))
    if not sparse.issparse(sparsity) and not isinstance(sparsity, np.ndarray):
        raise ArgumentError(
            f"{run.what}: sparsity is 'auto' or a pattern, a matrix of SciPy or NumPy, not "
            f"{sparsity!r}{at_line()}"
        )
    sizes = tuple([sum(math.prod(x.shape) for x in xs) for xs in (run.outputs, run.inputs)])
    if sparsity.shape != sizes:
        raise ShapeError(
            f"{run.what}: a pattern of shape {sparsity.shape}; the Jacobian has {sizes}{at_line()}"
        )
    return sparse.csr_array(sparsity != 0)


def compressed_jacobian(run: Run, found: Colours, chunk_size: int | None) -> Any:
    """The Jacobian of all outputs by all inputs, by products with the colours of its pattern."""
    sources = run.inputs if found.mode == "jvp" else run.outputs
    products = coloured_products(found.mode, run, sources, found.colours, chunk_size)
    result = decompressed(found.pattern, found.colours, products)
    return result if found.mode == "jvp" else result.T.tocsr()


def coloured_products(
    mode: str, run: Run, sources: Sequence[Any], colours: Any, chunk_size: int | None
) -> np.ndarray:
    """A row for every colour: the derivative in the direction of all elements of that colour."""
    count = int(colours.max(initial=-1)) + 1
    step = chunk_size or rows_that_fit(mode, run, len(sources), count)
    targets = run.outputs if mode == "jvp" else run.inputs
    rows = []
    for start in range(0, count, max(step, 1)):
        stop = min(start + step, count)
        directions = colours == np.arange(start, stop)[:, None]
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
