"""Embedding tables: embedding, embedding_bag, one_hot."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lucid.autograd import no_grad
from lucid.errors import ArgumentError, IndexingError, ShapeError
from lucid.nn.functional.arguments import (
    as_integers,
    as_real,
    check_choice,
    check_integer,
    check_number,
    concrete_array,
)
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.elementwise.conditional import where
from lucid.ops.index.gather_scatter import Gather, ScatterAdd, TakeAlong
from lucid.ops.reduce.extrema import argmax
from lucid.ops.reduce.statistics import norm
from lucid.ops.shape.creation import arange, ones
from lucid.tape.bind import bind


@public_function("nn.functional")
def embedding(
    input: Any,
    weight: Any,
    padding_idx: Any = None,
    max_norm: Any = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Return the rows of `weight` at the indices `input`.

    The row `padding_idx` gets no gradient. `max_norm` first rescales, in place, the rows that are
    used and longer than it. `scale_grad_by_freq` divides the gradient of a row by how often it is
    used. Gradients are dense even if `sparse` is true.

    >>> import lucid
    >>> table = lucid.tensor([[0.0, 1.0], [2.0, 3.0]])
    >>> lucid.nn.functional.embedding(lucid.tensor([1, 0]), table)
    Tensor([[2., 3.],
            [0., 1.]])
    """
    indices, weight = check_table("embedding", input, weight)
    if max_norm is not None:
        renormalize_rows("embedding", indices, weight, max_norm, norm_type)
    y = bind(Gather((0,)), weight, indices)
    if scale_grad_by_freq:
        y = scale_gradient(y, 1 / index_counts(indices, weight)[..., None])
    if padding_idx is None:
        return y
    skipped = check_padding_idx("embedding", padding_idx, weight.shape[0])
    return where((indices == skipped)[..., None], y.detach(), y)


def check_table(name: str, input: Any, weight: Any) -> tuple[Any, Any]:
    """Return indices and weight as tensors, with their rank and range checked."""
    indices, weight = as_integers(name, input, "input"), as_tensor(weight)
    if weight.ndim != 2:
        raise ShapeError(f"{name}: weight of shape {weight.shape}; it must be a matrix")
    found = concrete_array(indices)
    if found is not None and found.size and not 0 <= found.min() <= found.max() < weight.shape[0]:
        facts = f"an index is outside the {weight.shape[0]} rows of the weight"
        raise IndexingError(f"{name}: {facts}: from {found.min()} to {found.max()}")
    return indices, weight


def check_padding_idx(name: str, padding_idx: Any, rows: int) -> int:
    """Return `padding_idx` as an index from 0 on; raise IndexingError if out of range."""
    index = check_integer(name, padding_idx, "padding_idx", -rows)
    if index >= rows:
        facts = f"padding_idx={padding_idx} is out of range for the {rows} rows of the weight"
        raise IndexingError(f"{name}: {facts}")
    return index % rows if rows else index


def index_counts(indices: Any, weight: Any) -> Any:
    """Return how often each index occurs."""
    once = ones(indices.shape, dtype=weight.dtype)
    counts = bind(ScatterAdd(weight.shape[:1], (0,)), once, indices)
    return bind(Gather((0,)), counts, indices)


def scale_gradient(y: Any, factor: Any) -> Any:
    """Return `y`, with its gradient multiplied by a factor."""
    fixed = y.detach()
    return fixed + (y - fixed) * factor


def renormalize_rows(name: str, indices: Any, weight: Any, max_norm: Any, norm_type: Any) -> None:
    """Scale the rows that are used to a norm of at most `max_norm`, in place and unrecorded."""
    longest, p = (
        check_number(name, max_norm, "max_norm"),
        check_number(name, norm_type, "norm_type"),
    )
    with no_grad():
        used = bind(ScatterAdd(weight.shape[:1], (0,)), ones(indices.shape), indices) > 0
        length = norm(weight, p, 1)
        factor = where(used & (length > longest), longest / (length + 1e-7), 1.0)
        weight.mul_(factor[:, None])


@public_function("nn.functional")
def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: Any = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: Any = None,
) -> Any:
    """Sums, means or maxima over bags of rows of `weight`.

    A bag is a row of a matrix `input`, or a section of a vector `input` that begins at one of
    `offsets`. `per_sample_weights` multiply the rows of a sum; the row `padding_idx` is left out.
    An empty bag gives 0.

    >>> import lucid
    >>> table = lucid.tensor([[1.0], [2.0], [4.0]])
    >>> lucid.nn.functional.embedding_bag(
    ...     lucid.tensor([0, 1, 2]), table, lucid.tensor([0, 2]), mode="sum")
    Tensor([[3.],
            [4.]])
    """
    name = "embedding_bag"
    check_choice(name, mode, "mode", ("sum", "mean", "max"))
    indices, weight = check_table(name, input, weight)
    if max_norm is not None:
        renormalize_rows(name, indices, weight, max_norm, norm_type)
    samples = check_sample_weights(per_sample_weights, mode, indices, weight)
    bags = make_bags(indices, offsets, include_last_offset)
    flat = indices.reshape(-1)
    rows = bind(Gather((0,)), weight, flat)
    if scale_grad_by_freq and mode != "max":
        rows = scale_gradient(rows, 1 / index_counts(flat, weight)[:, None])
    kept = ones(flat.shape, dtype=weight.dtype)
    if padding_idx is not None:
        kept = cast(flat != check_padding_idx(name, padding_idx, weight.shape[0]), weight.dtype)
    if mode == "max":
        return bags.max_rows(rows, kept)
    factors = kept if samples is None else kept * samples.reshape(-1)
    plain = padding_idx is None and samples is None
    total = bags.sum(rows if plain else rows * factors[:, None])
    if mode == "sum":
        return total
    sizes = bags.sum(kept)
    return total / where(sizes == 0, 1.0, sizes)[:, None]


def check_sample_weights(samples: Any, mode: str, indices: Any, weight: Any) -> Any:
    """Return `per_sample_weights`, checked, or None."""
    if samples is None:
        return None
    samples = as_real("embedding_bag", samples)
    if mode != "sum":
        facts = f"per_sample_weights with mode={mode!r}; they need mode='sum'"
        raise ArgumentError(f"embedding_bag: {facts}")
    if samples.shape != indices.shape or samples.dtype != weight.dtype:
        facts = f"per_sample_weights {samples.type} for input {indices.shape}"
        raise ShapeError(f"embedding_bag: {facts}; use its shape and the weight's dtype")
    return samples


class EqualBags(NamedTuple):
    """Bags of equal length, as the rows of a matrix."""

    bags: int
    length: int

    def sum(self, parts: Any) -> Any:
        return parts.reshape(self.bags, self.length, *parts.shape[1:]).sum(1)

    def max_rows(self, rows: Any, kept: Any) -> Any:
        """Return the maximum of every column of a bag; the first maximum gets the gradient."""
        rows = rows.reshape(self.bags, self.length, rows.shape[1])
        if not self.length:
            return rows.sum(1)
        inside = kept.reshape(self.bags, self.length, 1) > 0
        first = argmax(where(inside, rows.detach(), -math.inf), 1, True)
        chosen = bind(TakeAlong(1), rows, first).reshape(self.bags, rows.shape[2])
        return where(inside.any(1), chosen, 0.0)


class OffsetBags(NamedTuple):
    """Bags of any length, one after another; `bag_ids` is the bag of each index."""

    bags: int
    bag_ids: Any

    def sum(self, parts: Any) -> Any:
        shape = (self.bags, *parts.shape[1:])
        return bind(ScatterAdd(shape, (0,)), parts, self.bag_ids)

    def max_rows(self, rows: Any, kept: Any) -> Any:
        if not rows.shape[0] or not self.bags:
            return self.sum(rows)
        inside = (self.bag_ids == arange(self.bags)[:, None]) & (kept > 0)
        first = argmax(where(inside[:, :, None], rows.detach(), -math.inf), 1)
        columns = arange(rows.shape[1]).expand(first.shape)
        chosen = bind(Gather((0, 1)), rows, first, columns)
        return where(inside.any(1)[:, None], chosen, 0.0)


def make_bags(indices: Any, offsets: Any, include_last_offset: Any) -> EqualBags | OffsetBags:
    """Return the bags that `indices` and `offsets` describe."""
    name = "embedding_bag"
    if indices.ndim == 2:
        if offsets is not None:
            raise ArgumentError(f"{name}: offsets cannot be given for a matrix of bags")
        return EqualBags(*indices.shape)
    if indices.ndim != 1:
        raise ShapeError(f"{name}: input of shape {indices.shape}; it must be a vector or a matrix")
    if offsets is None:
        raise ArgumentError(f"{name}: a vector of indices needs offsets")
    offsets = as_integers(name, offsets, "offsets")
    if offsets.ndim != 1 or (include_last_offset and not offsets.shape[0]):
        raise ShapeError(f"{name}: offsets of shape {offsets.shape}; give a vector")
    known, size = concrete_array(offsets), indices.shape[0]
    if known is not None and known.size:
        if known[0] != 0 or known.max() > size or (np.diff(known) < 0).any():
            facts = (
                f"offsets must start at 0, not decrease and be at most {size}, the size of input"
            )
            raise ArgumentError(f"{name}: {facts}")
    count = offsets.shape[0] - bool(include_last_offset)
    started = arange(size)[:, None] >= offsets[:count]
    return OffsetBags(count, started.sum(1) - 1)


@public_function("nn.functional")
def one_hot(input: Any, num_classes: int = -1) -> Any:
    """Return vectors of zeros with a 1 at each index; num_classes=-1 takes as many as needed.

    >>> import lucid
    >>> lucid.nn.functional.one_hot(lucid.tensor([0, 2]))
    Tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    indices = as_integers("one_hot", input, "input")
    classes = check_integer("one_hot", num_classes, "num_classes", -1)
    if classes == -1:
        if not indices.numel():
            raise ArgumentError("one_hot: an empty input needs num_classes")
        classes = int(indices.max()) + 1
    known = concrete_array(indices)
    if known is not None and known.size and not 0 <= known.min() <= known.max() < max(classes, 1):
        facts = f"an index is outside {classes} classes: from {known.min()} to {known.max()}"
        raise IndexingError(f"one_hot: {facts}")
    if not classes:
        raise ArgumentError("one_hot: num_classes must be positive or -1")
    return cast(indices[..., None] == arange(classes), "int64")
