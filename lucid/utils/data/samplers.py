"""Samplers: the order in which the examples of a dataset are visited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lucid import random
from lucid.errors import ArgumentError
from lucid.ops.core.constructors import ClearConstructor
from lucid.ops.core.promote import as_tensor
from lucid.public.declare import public

INDICES_AT_ONCE = 1 << 16


@public("utils.data")
class Sampler(ClearConstructor):
    """An iterable of indices."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")


@public("utils.data")
class SequentialSampler(Sampler):
    """All indices in order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


@public("utils.data")
class RandomSampler(Sampler):
    """All indices in random order, or indices drawn with replacement."""

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: random.Generator | None = None,
    ) -> None:
        if num_samples is not None and num_samples <= 0:
            raise ArgumentError(f"RandomSampler: num_samples must be positive, not {num_samples}")
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator

    @property
    def num_samples(self) -> int:
        """The number of indices drawn."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, wanted = len(self.data_source), self.num_samples
        if not n:
            return
        if self.replacement:
            while wanted > 0:  # in parts, since programs ask for 10**10 indices to train forever
                size = min(wanted, INDICES_AT_ONCE)
                yield from random.randint(0, n, (size,), generator=self.generator).tolist()
                wanted -= size
            return
        while wanted > 0:
            order = random.randperm(n, generator=self.generator).tolist()
            yield from order[:wanted]
            wanted -= n

    def __len__(self) -> int:
        return self.num_samples


@public("utils.data")
class SubsetRandomSampler(Sampler):
    """Given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: random.Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in random.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


@public("utils.data")
class WeightedRandomSampler(Sampler):
    """Indices drawn with probabilities proportional to weights."""

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        generator: random.Generator | None = None,
    ) -> None:
        self.weights = as_tensor(weights).to("float64")
        if self.weights.ndim != 1:
            raise ArgumentError(
                f"WeightedRandomSampler: weights must have one axis, got shape {self.weights.shape}"
            )
        if not isinstance(num_samples, int) or num_samples <= 0:
            raise ArgumentError(
                f"WeightedRandomSampler: num_samples must be positive, not {num_samples}"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        drawn = random.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


@public("utils.data")
class BatchSampler(Sampler):
    """The indices of another sampler, grouped into lists of `batch_size`."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole if self.drop_last or not rest else whole + 1
