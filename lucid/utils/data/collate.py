"""Collating: combine examples of one structure into a batch of that structure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lucid.errors import ShapeError
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor
from lucid.ops.shape.joining import stack
from lucid.tape.node import wrap
from lucid.tensors.tensor import Tensor, tensor


@public_function("utils.data")
def default_collate(batch: Sequence[Any]) -> Any:
    """Stack tensors, arrays and numbers; recurse into tuples, lists and dictionaries.

    >>> import lucid
    >>> lucid.utils.data.default_collate([(1.0, "a"), (2.0, "b")])
    [Tensor([1., 2.], dtype=float64), ('a', 'b')]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        if all(x.node is None for x in batch):
            return wrap(stack_arrays([x.value for x in batch]))
        return stack(list(batch))
    if isinstance(first, (np.ndarray, np.generic)):
        return as_tensor(stack_arrays([np.asarray(x) for x in batch]))
    if isinstance(first, float):
        return tensor(list(batch), dtype="float64")
    if isinstance(first, (bool, int)):
        return tensor(list(batch))
    if isinstance(first, str | bytes):
        return tuple(batch)
    if isinstance(first, Mapping):
        return {key: default_collate([x[key] for x in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        if len({len(x) for x in batch}) != 1:
            raise ShapeError(
                f"collate: examples have {sorted({len(x) for x in batch})} parts; give a collate_fn"
            )
        parts = [default_collate(part) for part in zip(*batch)]
        if hasattr(first, "_fields"):
            return type(first)(*parts)
        return parts
    return list(batch)


def stack_arrays(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Stack arrays; raise ShapeError if their shapes differ."""
    shapes = {x.shape for x in arrays}
    if len(shapes) != 1:
        found = " and ".join(map(str, sorted(shapes)[:2]))
        raise ShapeError(
            f"collate: examples of shapes {found} cannot be stacked; give a collate_fn that pads "
            "them"
        )
    return np.stack(arrays)


@public_function("utils.data")
def default_convert(example: Any) -> Any:
    """Return an example with arrays converted to tensors, for a loader without batches."""
    if isinstance(example, np.ndarray):
        return as_tensor(example)
    if isinstance(example, Mapping):
        return {key: default_convert(x) for key, x in example.items()}
    if isinstance(example, tuple) and hasattr(example, "_fields"):
        return type(example)(*map(default_convert, example))
    if isinstance(example, (tuple, list)):
        return type(example)(map(default_convert, example))
    return example
