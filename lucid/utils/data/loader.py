"""DataLoader: batches of a dataset, made inline or ahead of time by worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lucid import random
from lucid.errors import ArgumentError
from lucid.ops.core.constructors import ClearConstructor
from lucid.public.declare import public
from lucid.utils.data.collate import default_collate, default_convert
from lucid.utils.data.dataset import CollatedBatch, IterableDataset
from lucid.utils.data.samplers import BatchSampler, RandomSampler, SequentialSampler
from lucid.utils.data.workers import Workers


@public("utils.data")
class DataLoader(ClearConstructor):
    """An iterable over batches; every `for` loop passes over the dataset once.

    >>> import lucid
    >>> data = lucid.utils.data.TensorDataset(lucid.arange(5))
    >>> for (batch,) in lucid.utils.data.DataLoader(data, batch_size=2):
    ...     print(batch)
    Tensor([0, 1])
    Tensor([2, 3])
    Tensor([4])
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: random.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.num_workers, self.timeout = num_workers, timeout
        self.worker_init_fn, self.generator = worker_init_fn, generator
        self.prefetch_factor = 2 if prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.pin_memory, self.in_order = pin_memory, in_order  # accepted, without effect
        self.multiprocessing_context = multiprocessing_context
        self.is_iterable = isinstance(dataset, IterableDataset)
        self._check(shuffle, sampler, batch_sampler)
        if batch_sampler is not None:
            self.batch_size = batch_size = None
        if sampler is None and not self.is_iterable:
            random_order = RandomSampler(dataset, generator=generator)
            sampler = random_order if shuffle else SequentialSampler(dataset)
        if batch_sampler is None and batch_size is not None and not self.is_iterable:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.sampler, self.batch_sampler = sampler, batch_sampler
        batched = batch_sampler is not None or batch_size is not None
        self.collate_fn = collate_fn or (default_collate if batched else default_convert)
        self._persistent: Workers | None = None

    def _check(self, shuffle: bool | None, sampler: Any, batch_sampler: Any) -> None:
        def refuse(facts: str) -> None:
            raise ArgumentError(f"DataLoader: {facts}")

        indexed = hasattr(self.dataset, "__getitem__")
        if not self.is_iterable and not indexed:
            kind = type(self.dataset).__name__
            remedy = "it needs __getitem__ and __len__, or must be an IterableDataset"
            refuse(f"{kind} is not a dataset; {remedy}")
        sized = hasattr(self.dataset, "__len__")
        if indexed and not self.is_iterable and not sized and sampler is batch_sampler is None:
            refuse(
                f"{type(self.dataset).__name__} has no __len__; give a sampler or define __len__"
            )
        if self.multiprocessing_context not in (None, "fork") and (
            getattr(self.multiprocessing_context, "_name", None) != "fork"
        ):
            refuse("worker processes are forked; multiprocessing_context must be 'fork' or None")
        if self.is_iterable and (shuffle or sampler is not None or batch_sampler is not None):
            refuse("an IterableDataset determines its own order; shuffle inside it")
        if sampler is not None and shuffle:
            refuse("give shuffle or a sampler, not both")
        if batch_sampler is not None and (
            self.batch_size != 1 or shuffle or sampler is not None or self.drop_last
        ):
            refuse("batch_sampler excludes batch_size, shuffle, sampler and drop_last")
        if self.batch_size is None and self.drop_last:
            refuse("drop_last needs a batch_size")
        if self.persistent_workers and not self.num_workers:
            refuse("persistent_workers needs num_workers")

    def __len__(self) -> int:
        if self.is_iterable:
            n = len(self.dataset)
            if self.batch_size is None:
                return n
            return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        seed = int(random.randint(0, 2**53, (), generator=self.generator).item())
        if not self.num_workers:
            return self._iterate_inline()
        if self._persistent is not None and self._persistent.is_idle():
            return self._persistent.run(self._tasks())
        workers = Workers(self, seed)
        if self.persistent_workers:
            self._persistent = workers
        return workers.run(self._tasks())

    def _tasks(self) -> Iterator[Any]:
        """Yield what to fetch: an index, a list of indices, or None for an iterable dataset."""
        if self.is_iterable:
            while True:
                yield None
        yield from self.sampler if self.batch_sampler is None else self.batch_sampler

    def _iterate_inline(self) -> Iterator[Any]:
        fetcher = Fetcher(self)
        for task in self._tasks():
            try:
                batch = fetcher(task)
            except EndOfData:
                return
            yield batch


class EndOfData(Exception):
    """Raised when an iterable dataset has no more examples."""


class Fetcher:
    """Creates the batch of a task from the dataset."""

    def __init__(self, loader: DataLoader) -> None:
        self.dataset, self.collate = loader.dataset, loader.collate_fn
        self.batch_size, self.drop_last = loader.batch_size, loader.drop_last
        self.is_default = loader.collate_fn is default_collate
        self.examples = iter(loader.dataset) if loader.is_iterable else None

    def __call__(self, task: Any) -> Any:
        if self.examples is not None:
            return self.next_examples()
        if not isinstance(task, (list, tuple)):
            return self.collate(self.dataset[task])
        if hasattr(self.dataset, "__getitems__"):
            found = self.dataset.__getitems__(task)
            if not isinstance(found, CollatedBatch):
                return self.collate(found)
            if self.is_default:
                return list(found.batch)
        return self.collate([self.dataset[i] for i in task])

    def next_examples(self) -> Any:
        if self.batch_size is None:
            for example in self.examples:  # type: ignore[union-attr]
                return self.collate(example)
            raise EndOfData
        batch: list[Any] = []
        for example in self.examples:  # type: ignore[union-attr]
            batch.append(example)
            if len(batch) == self.batch_size:
                break
        if not batch or (self.drop_last and len(batch) < self.batch_size):
            raise EndOfData
        return self.collate(batch)
