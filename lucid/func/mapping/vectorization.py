"""vectorize: map a function of core arrays over all leading axes, as in NumPy and JAX."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from lucid.errors import ArgumentError, ShapeError
from lucid.func.mapping.batching import vmap
from lucid.ir.types import broadcast_shapes
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor

_SIGNATURE = re.compile(r"^\([\w,]*\)(,\([\w,]*\))*->\([\w,]*\)(,\([\w,]*\))*$")
Axes = list[tuple[str, ...]]


@public_function("func")
def vectorize(
    f: Callable[..., Any], *, excluded: Collection[Any] = (), signature: str | None = None
) -> Callable[..., Any]:
    """Return `f` with all axes before those of its core arguments mapped and broadcast.

    signature    the core axes, such as "(n),(n)->()" for a dot product; scalars by default
    excluded     positions and names of arguments that are passed unchanged

    >>> import lucid
    >>> dot = lucid.func.vectorize(lambda x, y: (x * y).sum(), signature="(n),(n)->()")
    >>> dot(lucid.ones(4, 1, 3), lucid.ones(2, 3)).shape
    (4, 2)
    """
    inputs, outputs = (None, None) if signature is None else parse_signature(signature)

    @functools.wraps(f)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        dynamic = [i for i in range(len(args)) if i not in excluded]
        tensors = [as_tensor(args[i]) for i in dynamic]
        cores: Axes = [()] * len(tensors) if inputs is None else inputs
        if len(cores) != len(tensors):
            facts = f"{len(tensors)} arguments for the {len(cores)} of {signature!r}"
            raise ArgumentError(f"vectorize: {facts}")
        sizes: dict[str, int] = {}
        batches = [batch_shape(x, core, sizes) for x, core in zip(tensors, cores)]
        shape = broadcast_shapes(*batches)

        def core_call(*values: Any) -> Any:
            full = list(args)
            for i, x in zip(dynamic, values):
                full[i] = x
            result = f(*full, **kwargs)
            check_outputs(result, outputs, sizes)
            return result

        mapped: Callable[..., Any] = core_call
        for axis in range(len(shape) - 1, -1, -1):
            dims = [axis_of(batch, axis, len(shape), shape[axis]) for batch in batches]
            if any(d is not None for d in dims):
                mapped = vmap(mapped, in_dims=tuple(dims))
            else:
                mapped = vmap(mapped, in_dims=None, axis_size=shape[axis])
        return mapped(*[squeeze_ones(x, batch, shape) for x, batch in zip(tensors, batches)])

    return vectorized


def parse_signature(signature: str) -> tuple[Axes, Axes]:
    """Return the names of the core axes of the arguments and of the results."""
    text = signature.replace(" ", "")
    if not _SIGNATURE.match(text):
        raise ArgumentError(f"vectorize: {signature!r} is not a signature such as '(m,n),(n)->(m)'")
    left, right = text.split("->")
    parts = [re.findall(r"\(([\w,]*)\)", side) for side in (left, right)]
    found = [[tuple(x for x in part.split(",") if x) for part in side] for side in parts]
    return found[0], found[1]


def batch_shape(x: Any, core: tuple[str, ...], sizes: dict[str, int]) -> tuple[int, ...]:
    """Return the axes before the core ones; record the sizes of the core axes and compare them."""
    if x.ndim < len(core):
        raise ShapeError(f"vectorize: {x.type} has fewer axes than the core ({','.join(core)})")
    n = x.ndim - len(core)
    check_sizes(x.shape[n:], core, sizes)
    return x.shape[:n]


def check_sizes(shape: Sequence[int], core: tuple[str, ...], sizes: dict[str, int]) -> None:
    for name, size in zip(core, shape):
        wanted = int(name) if name.isdigit() else sizes.setdefault(name, size)
        if size != wanted:
            raise ShapeError(f"vectorize: core axis {name} has sizes {wanted} and {size}")


def check_outputs(result: Any, outputs: Axes | None, sizes: dict[str, int]) -> None:
    """Raise an error if the results of one call do not match the signature."""
    results = result if isinstance(result, (tuple, list)) else (result,)
    expected = [()] * len(results) if outputs is None else outputs
    if len(results) != len(expected):
        raise ArgumentError(f"vectorize: {len(results)} results, not {len(expected)}")
    for y, core in zip(results, expected):
        y = as_tensor(y)
        if y.ndim != len(core):
            facts = f"a result of shape {y.shape} is not ({','.join(core)})"
            raise ShapeError(f"vectorize: {facts}; state the core axes in signature=")
        check_sizes(y.shape, core, sizes)


def axis_of(batch: tuple[int, ...], axis: int, ndim: int, size: int) -> int | None:
    """Return 0 if an argument has this broadcast axis, None if it is repeated along it."""
    own = axis - (ndim - len(batch))
    return None if own < 0 or (batch[own] == 1 and size != 1) else 0


def squeeze_ones(x: Any, batch: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Drop axes of size 1 that are repeated."""
    offset = len(shape) - len(batch)
    kept = [n for i, n in enumerate(batch) if not (n == 1 and shape[i + offset] != 1)]
    return x.reshape((*kept, *x.shape[len(batch) :]))
