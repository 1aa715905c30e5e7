"""Sequences of different lengths in one tensor: padded to the longest, or packed without padding.

Packed, the rows of step 0 of all sequences come first, then those of step 1 of the sequences that
are that long, and so on; the longest sequence is the first one. Lengths are numbers, not values of
a program: `jit` recompiles when they change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lucid.errors import ArgumentError, ShapeError
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor
from lucid.ops.elementwise.conditional import where
from lucid.ops.index.lookup import index_select
from lucid.ops.shape.joining import pad, stack
from lucid.ops.shape.shaping import transpose
from lucid.public.declare import public
from lucid.public.lazy import attach
from lucid.tape.node import wrap


@public("nn.utils.rnn")
class PackedSequence(NamedTuple):
    """Sequences without padding, step by step; made by `pack_padded_sequence`.

    batch_sizes         the number of sequences that have a row at each step
    sorted_indices      the original index of each sorted sequence; None if they were already sorted
    unsorted_indices    the sorted position of each original sequence
    """

    data: Any
    batch_sizes: Any
    sorted_indices: Any = None
    unsorted_indices: Any = None

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the same sequences with the data converted."""
        return self._replace(data=self.data.to(*args, **kwargs))


class Layout(NamedTuple):
    """The positions of packed rows in the padded tensor (steps, sequences, ...).

    inside    True where a sequence has a row, of shape (steps, sequences)
    rows      the padded row of every packed row, in order
    places    the packed row of every padded row, 0 in the padding
    """

    inside: np.ndarray
    rows: np.ndarray
    places: np.ndarray


def packed_layout(batch_sizes: Any, steps: int = 0) -> Layout:
    """Return the Layout for these batch sizes, in a tensor of at least `steps` steps."""
    counts = np.asarray(as_tensor(batch_sizes).tolist(), np.int64)
    counts = np.concatenate([counts, np.zeros(max(steps - len(counts), 0), np.int64)])
    inside = np.arange(counts[0])[None, :] < counts[:, None]
    flat = inside.reshape(-1)
    places = np.where(flat, np.cumsum(flat) - 1, 0)
    return Layout(inside, np.flatnonzero(flat), places)


def pad_packed(packed: PackedSequence, layout: Layout, value: float = 0.0) -> Any:
    """Return the rows as (steps, sequences, ...), with `value` after the end of each sequence."""
    data = packed.data
    whole = index_select(data, 0, wrap(layout.places))
    shape = layout.inside.shape
    inside = wrap(layout.inside.reshape(-1, *[1] * (data.ndim - 1)))
    return where(inside, whole, value).reshape(*shape, *data.shape[1:])


def pack_rows(x: Any, layout: Layout) -> Any:
    """Return the rows of a padded tensor that are inside a sequence."""
    flat = x.reshape(-1, *x.shape[2:])
    return index_select(flat, 0, wrap(layout.rows))


def check_lengths(name: str, lengths: Any, count: int, longest: int) -> np.ndarray:
    """Return lengths as an array, with their count and range checked."""
    numbers = np.asarray(as_tensor(lengths).tolist())
    if numbers.ndim != 1 or len(numbers) != count or numbers.dtype.kind not in "iu":
        raise ArgumentError(
            f"{name}: lengths {lengths} for {count} sequences; give one integer per sequence"
        )
    if count and (numbers.min() < 1 or numbers.max() > longest):
        raise ArgumentError(
            f"{name}: lengths {numbers.tolist()}; each must be between 1 and the {longest} steps"
        )
    return numbers


@public_function("nn.utils.rnn")
def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Remove the padding of sequences (steps, sequences, ...).

    >>> import lucid
    >>> x = lucid.tensor([[1, 2], [3, 0]])
    >>> lucid.nn.utils.rnn.pack_padded_sequence(x, [2, 1], batch_first=True).data
    Tensor([1, 3, 2])
    """
    name, x = "pack_padded_sequence", as_tensor(input)
    if x.ndim < 2:
        raise ShapeError(f"{name}: input of shape {x.shape}; it must be (steps, sequences, ...)")
    x = transpose(x, 0, 1) if batch_first else x
    if not x.shape[1]:
        raise ShapeError(f"{name}: input of shape {x.shape} has no sequences")
    numbers = check_lengths(name, lengths, x.shape[1], x.shape[0])
    places: Any = (None, None)
    if enforce_sorted:
        if (np.diff(numbers) > 0).any():
            raise ArgumentError(
                f"{name}: lengths {numbers.tolist()} increase; sort the sequences by length, or "
                "give enforce_sorted=False"
            )
    else:
        order = np.argsort(-numbers, kind="stable")
        places = (wrap(order), wrap(np.argsort(order)))
        x, numbers = index_select(x, 1, places[0]), numbers[order]
    sizes = (np.arange(numbers[0])[:, None] < numbers).sum(1)
    return PackedSequence(pack_rows(x, packed_layout(sizes, x.shape[0])), wrap(sizes), *places)


@public_function("nn.utils.rnn")
def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Any, Any]:
    """Return packed sequences as (steps, sequences, ...), and their lengths.

    >>> import lucid
    >>> rnn = lucid.nn.utils.rnn
    >>> rnn.pad_packed_sequence(rnn.pack_sequence([lucid.ones(2), lucid.ones(1)]))
    (Tensor([[1., 1.],
            [1., 0.]]), Tensor([2, 1]))
    """
    steps = sequence.batch_sizes.shape[0]
    if total_length is not None and total_length < steps:
        raise ArgumentError(
            f"pad_packed_sequence: total_length {total_length} is less than the {steps} steps of "
            "the longest sequence"
        )
    layout = packed_layout(sequence.batch_sizes, total_length or 0)
    x = pad_packed(sequence, layout, padding_value)
    lengths = wrap(layout.inside.sum(0))
    if sequence.unsorted_indices is not None:
        x = index_select(x, 1, sequence.unsorted_indices)
        lengths = index_select(lengths, 0, sequence.unsorted_indices)
    return (transpose(x, 0, 1) if batch_first else x), lengths


@public_function("nn.utils.rnn")
def pad_sequence(
    sequences: Sequence[Any],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:
    """Stack sequences (steps, ...) into one tensor (steps, sequences, ...), padded with a value.

    >>> import lucid
    >>> x = [lucid.tensor([1, 2]), lucid.tensor([3])]
    >>> lucid.nn.utils.rnn.pad_sequence(x, batch_first=True, padding_value=9)
    Tensor([[1, 2],
            [3, 9]])
    """
    given = [as_tensor(x) for x in sequences]
    if not given:
        raise ArgumentError("pad_sequence: no sequence was given")
    if padding_side not in ("left", "right"):
        raise ArgumentError(
            f"pad_sequence: padding_side must be 'left' or 'right', not {padding_side!r}"
        )
    if any(not x.ndim or x.shape[1:] != given[0].shape[1:] for x in given):
        shapes = ", ".join(str(x.shape) for x in given)
        raise ShapeError(f"pad_sequence: shapes {shapes}: they may differ only in the first axis")
    steps = max(x.shape[0] for x in given)
    ends = [(steps - x.shape[0], 0)[:: 1 if padding_side == "left" else -1] for x in given]
    rest = [0, 0] * (given[0].ndim - 1)
    return stack(
        [pad(x, [*rest, *end], value=padding_value) for x, end in zip(given, ends)],
        0 if batch_first else 1,
    )


@public_function("nn.utils.rnn")
def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """Split a padded tensor into its sequences, each with its own length."""
    x = as_tensor(padded_sequences)
    x = x if batch_first else transpose(x, 0, 1)
    numbers = check_lengths("unpad_sequence", lengths, x.shape[0], x.shape[1])
    return [x[i, : int(n)] for i, n in enumerate(numbers)]


@public_function("nn.utils.rnn")
def pack_sequence(sequences: Sequence[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (steps, ...) of different lengths."""
    lengths = [as_tensor(x).shape[0] for x in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


@public_function("nn.utils.rnn")
def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """Split a PackedSequence into its sequences, each with its own length."""
    x, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(x, lengths, batch_first=True)


_, __dir__, __all__ = attach(__name__)
