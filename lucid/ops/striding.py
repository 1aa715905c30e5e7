"""as_strided: elements picked by a size and a stride for every axis.

Strides count elements of the tensor in row-major order, whatever its layout in memory. The result
is a copy; derivatives add up where elements are picked more than once.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, IndexingError, ShapeError
from lucid.ir.source import at_line
from lucid.ir.tape import wrap
from lucid.ops.arguments import explained
from lucid.ops.joining import take_axis
from lucid.ops.lookup import index_copy
from lucid.ops.promote import as_tensor, cast


def positions(name: str, x: Any, size: Any, stride: Any, offset: Any) -> np.ndarray:
    """Where every element of the result stands in the flat tensor."""
    sizes, strides = ([operator.index(n) for n in part] for part in (size, stride))
    first = operator.index(0 if offset is None else offset)
    if len(sizes) != len(strides) or min([*sizes, *strides, first], default=0) < 0:
        facts = f"size {tuple(sizes)}, stride {tuple(strides)}, storage_offset {first}"
        raise ArgumentError(f"{name}: {facts}; one stride for every size, none negative{at_line()}")
    places: Any = np.asarray(first)
    for n, step in zip(sizes, strides):
        places = places[..., None] + np.arange(n) * step
    if places.size and places.max() >= x.numel():
        facts = f"element {places.max()} is wanted of {x.numel()}"
        raise IndexingError(f"{name}: {facts}{at_line()}")
    return places


@explained
def as_strided(input: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """The elements of a tensor by sizes and strides, which count its elements row by row.

    >>> import lucid
    >>> lucid.as_strided(lucid.arange(6), (3, 2), (1, 2))
    Tensor([[0, 2],
            [1, 3],
            [2, 4]])
    """
    x = as_tensor(input)
    places = positions("as_strided", x, size, stride, storage_offset)
    return take_axis(x.reshape(-1), 0, places.reshape(-1)).reshape(places.shape)


as_strided_copy = as_strided


@explained
def as_strided_scatter(
    input: Any, src: Any, size: Any, stride: Any, storage_offset: Any = None
) -> Any:
    """A copy of `input` with `src` in the places that `as_strided` would read."""
    x, src = as_tensor(input), as_tensor(src)
    places = positions("as_strided_scatter", x, size, stride, storage_offset)
    if src.shape != places.shape:
        facts = f"a source of shape {src.shape} for {places.shape}"
        raise ShapeError(f"as_strided_scatter: {facts}{at_line()}")
    if len(np.unique(places)) != places.size:
        raise ArgumentError(f"as_strided_scatter: places that overlap have no one value{at_line()}")
    flat = index_copy(x.reshape(-1), 0, wrap(places.reshape(-1)), cast(src, x.dtype).reshape(-1))
    return flat.reshape(x.shape)
