"""Which examples a rank gets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lucid.distributed.runtime import rank as this_rank
from lucid.distributed.runtime import world_size
from lucid.errors import ArgumentError
from lucid.public.declare import public
from lucid.utils.data.samplers import Sampler


@public("distributed")
class DistributedSampler(Sampler):
    """The part of a dataset that this rank visits; call `set_epoch` for another order.

    With `batch_size`, it yields lists of indices, for DataLoader's `batch_sampler`: this rank's
    part of each batch of that many examples, in the order in which one process would visit them.
    The parts of the last batch may be unequal or empty; every rank takes the same number of steps.
    Without it, it yields single indices as PyTorch's does: every rank gets the same number, for
    which some are repeated unless `drop_last`.

    >>> from lucid.distributed import DistributedSampler
    >>> list(DistributedSampler(range(7), 2, 1, shuffle=False))
    [1, 3, 5, 0]
    >>> list(DistributedSampler(range(7), 2, 1, shuffle=False, batch_size=4))
    [[2, 3], [6]]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        batch_size: int | None = None,
    ) -> None:
        self.dataset = dataset
        self.num_replicas = world_size() if num_replicas is None else num_replicas
        self.rank = this_rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ArgumentError(
                f"DistributedSampler: rank {self.rank} of {self.num_replicas} replicas"
            )
        if batch_size is not None and batch_size < 1:
            raise ArgumentError(f"DistributedSampler: batch_size={batch_size}")
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.batch_size = batch_size
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch: the same on all ranks."""
        self.epoch = epoch

    def order(self) -> np.ndarray:
        """Return all indices in the order of this epoch."""
        n = len(self.dataset)
        if not self.shuffle:
            return np.arange(n)
        return np.random.default_rng((self.seed, self.epoch)).permutation(n)

    def __iter__(self) -> Iterator[Any]:
        order, n, r = self.order(), self.num_replicas, self.rank
        if self.batch_size is not None:
            return self.parts(order)
        if self.drop_last:
            order = order[: len(order) // n * n]
        elif len(order):
            order = np.resize(order, -(-len(order) // n) * n)
        return iter(order[r::n].tolist())

    def parts(self, order: np.ndarray) -> Iterator[list[int]]:
        assert self.batch_size is not None
        for number in range(len(self)):
            batch = order[number * self.batch_size : (number + 1) * self.batch_size]
            yield np.array_split(batch, self.num_replicas)[self.rank].tolist()

    def __len__(self) -> int:
        n, size = len(self.dataset), self.batch_size or self.num_replicas
        return n // size if self.drop_last else -(-n // size)
