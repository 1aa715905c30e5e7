"""Datasets: examples by index, or as an iterable."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from lucid import random
from lucid.errors import ArgumentError, IndexingError
from lucid.ops.core.arguments import public_function
from lucid.ops.core.constructors import ClearConstructor
from lucid.ops.core.promote import as_tensor
from lucid.public.declare import public


@public("utils.data")
class Dataset(ClearConstructor):
    """Examples by index: subclasses define `__getitem__` and `__len__`."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} has no __len__")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


@public("utils.data")
class IterableDataset(Dataset):
    """Examples as an iterable: subclasses define `__iter__`."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")

    def __add__(self, other: Any) -> Any:
        return ChainDataset([self, other])


@public("utils.data")
class TensorDataset(Dataset):
    """Example i is the tuple of the i-th elements of tensors.

    >>> import lucid
    >>> data = lucid.utils.data.TensorDataset(lucid.ones(3, 2), lucid.arange(3))
    >>> data[1]
    (Tensor([1., 1.]), Tensor(1))
    """

    def __init__(self, *tensors: Any) -> None:
        self.tensors = tuple(map(as_tensor, tensors))
        sizes = {x.shape[0] if x.ndim else None for x in self.tensors}
        if len(sizes) != 1 or None in sizes:
            shapes = ", ".join(str(x.shape) for x in self.tensors)
            raise ArgumentError(
                f"TensorDataset: the tensors differ in the size of their first axis: {shapes}"
            )

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple([x[index] for x in self.tensors])

    def __getitems__(self, indices: Sequence[int]) -> Any:
        """Return all examples of a batch at once, unless a subclass defines `__getitem__`."""
        if type(self).__getitem__ is not TensorDataset.__getitem__:
            return [self[i] for i in indices]
        return CollatedBatch(self[as_tensor(list(indices))])

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class CollatedBatch:
    """A batch that is already collated."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch


@public("utils.data")
class StackDataset(Dataset):
    """Example i is the tuple, or dictionary, of the i-th examples of datasets."""

    def __init__(self, *datasets: Any, **named: Any) -> None:
        if bool(datasets) == bool(named):
            raise ArgumentError("StackDataset: give datasets by position or by name, not both")
        self.datasets: Any = datasets or named
        parts = list(datasets or named.values())
        if len({len(part) for part in parts}) != 1:
            raise ArgumentError(
                f"StackDataset: the lengths differ: {[len(part) for part in parts]}"
            )
        self._length = len(parts[0])

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple(part[index] for part in self.datasets)

    def __len__(self) -> int:
        return self._length


@public("utils.data")
class Subset(Dataset):
    """The examples of a dataset at some indices."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> Any:
        """Return all examples of a batch at once, if the dataset supports it."""
        if hasattr(self.dataset, "__getitems__"):
            return self.dataset.__getitems__([self.indices[i] for i in indices])
        return [self[i] for i in indices]

    def __len__(self) -> int:
        return len(self.indices)


@public("utils.data")
class ConcatDataset(Dataset):
    """The concatenation of datasets."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ArgumentError("ConcatDataset: no dataset was given")
        if any(isinstance(part, IterableDataset) for part in self.datasets):
            raise ArgumentError(
                "ConcatDataset: an IterableDataset has no indices; use ChainDataset"
            )
        self.cumulative_sizes = list(accumulate(map(len, self.datasets)))

    def __getitem__(self, index: int) -> Any:
        n = len(self)
        if not -n <= index < n:
            raise IndexingError(f"ConcatDataset: index {index} is out of range for {n}")
        index %= n
        part = bisect_right(self.cumulative_sizes, index)
        return self.datasets[part][index - (self.cumulative_sizes[part - 1] if part else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


@public("utils.data")
class ChainDataset(IterableDataset):
    """The concatenation of iterable datasets."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        for part in self.datasets:
            yield from part

    def __len__(self) -> int:
        return sum(map(len, self.datasets))


@public_function("utils.data")
def random_split(
    dataset: Any, lengths: Sequence[float], generator: random.Generator | None = None
) -> list[Subset]:
    """Split a dataset into disjoint random subsets of given sizes, or fractions that sum to 1."""
    n = len(dataset)
    if math.isclose(sum(lengths), 1) and all(0 <= x <= 1 for x in lengths):
        sizes = [math.floor(n * x) for x in lengths]
        for i in range(n - sum(sizes)):
            sizes[i % len(sizes)] += 1
    else:
        sizes = [int(x) for x in lengths]
    if sum(sizes) != n:
        raise ArgumentError(f"random_split: lengths {list(lengths)} do not sum to the {n} examples")
    order = random.randperm(n, generator=generator).tolist()
    ends = list(accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes)]
