"""Data parallel training: every rank has the whole model and a part of each batch.

Gradients are summed over ranks in buckets, weighted by the number of examples, so a step computes
the same as one process on the whole batch, however the batch is divided. In a compiled step the
reduction of a bucket starts as soon as the plan has its gradients, and continues while the plan
computes those of earlier layers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from lucid.distributed.functions import all_gather, all_reduce, broadcast
from lucid.distributed.runtime import Group, world_size
from lucid.errors import ArgumentError
from lucid.ir.pytree import flatten, unflatten
from lucid.nn.module import Module
from lucid.ops.core.promote import as_tensor
from lucid.ops.shape.joining import cat
from lucid.public.declare import public
from lucid.tape.node import Traced, counters
from lucid.tensors.tensor import Tensor

BUCKET_MB = 4.0


def buckets_of(tensors: Sequence[Any], megabytes: float) -> list[list[int]]:
    """Group tensors of one dtype, last first, as backward computes their gradients."""
    limit = megabytes * 2**20
    found: list[list[int]] = []
    open_: dict[Any, tuple[list[int], float]] = {}
    for i in reversed(range(len(tensors))):
        x = tensors[i]
        nbytes = x.dtype.itemsize * int(np.prod(x.shape))
        bucket, size = open_.get(x.dtype, ([], limit))
        if size + nbytes > limit:
            bucket, size = [], 0.0
            found.append(bucket)
        bucket.append(i)
        open_[x.dtype] = (bucket, size + nbytes)
    return found


def weighted_means(
    tensors: Sequence[Any], count: int, megabytes: float = BUCKET_MB, group: Group | None = None
) -> list[Any]:
    """Return the means over all examples of all ranks, from the means over `count` examples here.

    The number of examples is one more value of the first bucket.
    """
    if not tensors:
        return []
    wide = [x.to(np.float32) if x.dtype == np.float16 else x for x in tensors]
    wide.append(wide[-1].new_full((), 1.0))
    weighted = [x * float(count) if count else x.new_zeros(x.shape) for x in wide]
    *sums, examples = sums_of(weighted, megabytes, group)
    return [(y / examples).to(x.dtype) for x, y in zip(tensors, sums)]


def sums_of(tensors: Sequence[Any], megabytes: float, group: Group | None) -> list[Any]:
    """Return the sums over ranks, with one collective for each bucket."""
    out: list[Any] = [None] * len(tensors)
    for bucket in buckets_of(tensors, megabytes):
        xs = [tensors[i] for i in bucket]
        if len(xs) == 1:
            out[bucket[0]] = all_reduce(xs[0], group=group)
            continue
        total = all_reduce(cat([x.reshape(-1) for x in xs]), group=group)
        first = 0
        for i, x in zip(bucket, xs):
            size = int(np.prod(x.shape))
            out[i] = total[first : first + size].reshape(x.shape)
            first += size
    return out


def batch_size(args: Any) -> int:
    """Return the size of axis 0 of the first array among the arguments."""
    for x in flatten(args)[0]:
        if getattr(x, "shape", None):
            return int(x.shape[0])
    raise ArgumentError("data parallel: no argument is an array, so the examples cannot be counted")


@public("distributed")
class DataParallel(Module):
    """A module whose gradients are averaged over all examples of all ranks.

    module              the same on every rank; parameters and buffers are those of rank 0
    bucket_cap_mb       how many megabytes of gradients one collective reduces
    broadcast_buffers   whether buffers such as running statistics are those of rank 0 at every call
    group               the ranks, all by default

    After `loss.backward()`, where the loss is the mean over this rank's part of the batch, the
    gradients are those of the mean over the whole batch, even if the parts differ in size.

    >>> import lucid, lucid.distributed as dist
    >>> model = dist.DataParallel(lucid.nn.Linear(2, 1))
    >>> model(lucid.ones(3, 2)).mean().backward()
    >>> model.module.weight.grad
    Tensor([[1., 1.]])
    """

    def __init__(
        self,
        module: Module,
        bucket_cap_mb: float = BUCKET_MB,
        broadcast_buffers: bool = True,
        group: Group | None = None,
    ) -> None:
        super().__init__()
        self.module = module
        self.bucket_cap_mb = bucket_cap_mb
        self.broadcast_buffers = broadcast_buffers
        self.group = group
        self.require_sync = True
        self._shared = Shared()
        for x in (*module.parameters(), *module.buffers()):
            copy_from_first(x, group)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self._on_gradient)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        self._shared.count = batch_size((args, kwargs))
        if self.broadcast_buffers and self.training and self.require_sync:
            for x in self.module.buffers():
                copy_from_first(x, self.group)
        return self.module(*args, **kwargs)

    def _on_gradient(self, _: Any) -> None:
        """Average all gradients, once in each backward pass."""
        if not self.require_sync or self._shared.reduced_in == counters.backward_passes:
            return
        self._shared.reduced_in = counters.backward_passes
        parameters = [p for p in self.module.parameters() if p.grad is not None]
        means = weighted_means(
            [p.grad for p in parameters], self._shared.count, self.bucket_cap_mb, self.group
        )
        for p, mean in zip(parameters, means):
            p.grad = mean

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients accumulate on each rank; the next backward outside averages their sum."""
        before, self.require_sync = self.require_sync, False
        try:
            yield
        finally:
            self.require_sync = before

    def average(self, value: Any) -> Tensor:
        """Return the mean over all examples of all ranks of a mean over this rank's examples."""
        x = as_tensor(value).detach()
        return weighted_means([x], self._shared.count, group=self.group)[0]


class Shared:
    """What a call of a DataParallel module leaves for backward; not part of the model's state.

    count         the number of examples of the last call
    reduced_in    the backward pass whose gradients were averaged last
    """

    def __init__(self) -> None:
        self.count = 0
        self.reduced_in = -1


def copy_from_first(x: Any, group: Group | None) -> None:
    """Give a tensor the value that it has on the first rank."""
    if world_size(group) > 1:
        x.detach().copy_(broadcast(x.detach(), 0, group=group))


@public("distributed")
def data_parallel(
    step: Callable[..., Any],
    *,
    batch_argnums: int | Sequence[int] = 1,
    bucket_cap_mb: float = BUCKET_MB,
    shards: int | None = None,
    group: Group | None = None,
) -> Callable[..., Any]:
    """Return a step on all ranks from a step on one: its results are means over all examples.

    step             a function such as `value_and_grad(loss)`, whose floating results are means
                     over the examples in axis 0 of its batch arguments
    batch_argnums    the arguments of which every rank has its own part
    bucket_cap_mb    how many megabytes one collective reduces
    shards           the deterministic option: the whole batch is computed in this many equal
                     parts, which are added in the same order for any number of ranks, so results
                     are bitwise equal for every number of ranks that divides it

    >>> import lucid, lucid.distributed as dist
    >>> loss = lambda w, x: ((x @ w) ** 2).mean()
    >>> step = lucid.jit(dist.data_parallel(lucid.func.value_and_grad(loss)))
    >>> step(lucid.ones(2), lucid.tensor([[1.0, 2.0], [3.0, 4.0]]))
    (Tensor(29.), Tensor([24., 34.]))
    """
    places = (batch_argnums,) if isinstance(batch_argnums, int) else tuple(batch_argnums)

    @functools.wraps(step)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        chosen = [args[i] for i in places]
        count = batch_size(chosen)
        if shards is None:
            leaves, tree = flatten(step(*args, **kwargs))
            means = iter(
                weighted_means([y for y in leaves if is_mean(y)], count, bucket_cap_mb, group)
            )
            return unflatten(tree, [next(means) if is_mean(y) else y for y in leaves])
        here = shards_here(shards, count, group)
        parts = [
            flatten(step(*replaced(args, places, part, count // here), **kwargs))
            for part in range(here)
        ]
        means = iter(ordered_means([leaves for leaves, _ in parts], shards, group))
        first, tree = parts[0]
        return unflatten(tree, [next(means) if is_mean(y) else y for y in first])

    return wrapped


def is_mean(y: Any) -> bool:
    return isinstance(y, Traced) and y.dtype.kind in "fc"


def shards_here(shards: int, count: int, group: Group | None) -> int:
    """Return how many of the shards this rank computes."""
    size = world_size(group)
    if shards < 1 or shards % size or count % (shards // size):
        raise ArgumentError(
            f"data_parallel: {shards} shards do not divide into equal parts of {size} ranks with "
            f"{count} examples each"
        )
    return shards // size


def replaced(args: Sequence[Any], places: Sequence[int], part: int, size: int) -> list[Any]:
    """Return the arguments with one shard of those that are batches."""

    def cut(x: Any) -> Any:
        return x[part * size : (part + 1) * size] if getattr(x, "shape", None) else x

    out = list(args)
    for i in places:
        leaves, tree = flatten(args[i])
        out[i] = unflatten(tree, [cut(x) for x in leaves])
    return out


def ordered_means(parts: Sequence[Sequence[Any]], shards: int, group: Group | None) -> list[Any]:
    """Return the means over all shards, added one after another in the order of the shards."""
    chosen = [[y for y in part if is_mean(y)] for part in parts]
    out: list[Any] = [None] * len(chosen[0])
    for dtype in dict.fromkeys([y.dtype for y in chosen[0]]):
        numbers = [i for i, y in enumerate(chosen[0]) if y.dtype == dtype]
        rows = [cat([part[i].reshape(-1) for i in numbers]) for part in chosen]
        mine = cat([row.reshape(1, -1) for row in rows])
        every = all_gather(mine, tiled=True, group=group)
        total = every[0]
        for s in range(1, shards):
            total = total + every[s]
        total = total / shards
        first = 0
        for i in numbers:
            y = chosen[0][i]
            size = int(np.prod(y.shape))
            out[i] = total[first : first + size].reshape(y.shape)
            first += size
    return out
