"""pmap: the work of vmap as independent tasks, on a Dask client or on local processes."""

from __future__ import annotations

import functools
import math
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import Any

import numpy as np

from lucid.errors import ArgumentError, ShapeError, TaskError
from lucid.func.mapping.batching import vmap
from lucid.ir.pytree import flatten, unflatten
from lucid.ops.core.promote import as_tensor
from lucid.ops.shape.joining import stack as stack_tensors
from lucid.public.declare import public
from lucid.tape.node import Traced
from lucid.tensors.tensor import Tensor

TASKS_PER_WORKER = 4  # so that a slow task does not keep the others waiting
SHOWN = 200  # characters of an input in an error


@public("distributed")
def pmap(
    f: Callable[..., Any],
    *,
    client: Any = None,
    workers: int | None = None,
    in_dims: Any = 0,
    chunk_size: int | None = None,
    vectorize: bool = False,
    stack: bool = True,
    progress: bool = False,
) -> Callable[..., Any]:
    """Return a function that maps `f` over the examples of its arguments, in many processes.

    client        a Dask client, `distributed.Client(...)`; None for processes of this machine
    workers       the number of local processes; by default the number of cores
    in_dims       for each argument, 0 if its rows are examples or it is a list of examples,
                  None if it is the same for all
    chunk_size    the number of examples per task
    vectorize     compute the examples of a task at once, by `vmap`; `f` is then traced
    stack         stack the results along a new first axis; otherwise they are a list, in order
    progress      show a progress bar

    A failure raises a TaskError that names the inputs.

    >>> import lucid, lucid.distributed as dist
    >>> dist.pmap(lucid.sin, workers=0)(lucid.zeros(3))  # workers=0: in this process
    Tensor([0., 0., 0.])
    """
    if not callable(f):
        raise ArgumentError(f"pmap: {f!r} is not a function")

    @functools.wraps(f)
    def mapped(*args: Any) -> Any:
        dims = in_dims if isinstance(in_dims, (tuple, list)) else [in_dims] * len(args)
        n = count_examples(args, dims)
        n_workers = client_size(client) if client is not None else local_size(workers)
        size = chunk_size or max(1, math.ceil(n / (max(n_workers, 1) * TASKS_PER_WORKER)))
        tasks = [
            Task(f, chunk_of(args, dims, begin, min(begin + size, n)), begin, vectorize)
            for begin in range(0, n, size)
        ]
        if client is not None:
            found = on_client(client, tasks)
        elif n_workers == 0:
            found = ((i, task()) for i, task in enumerate(tasks))
        else:
            found = on_processes(min(n_workers, len(tasks)), tasks)
        results: list[Any] = [None] * len(tasks)
        for i, result in shown(found, len(tasks), progress):
            results[i] = result
        rows = [row for result in results for row in result]
        return stacked(rows) if stack else rows

    return mapped


class Task:
    """Some examples and the function to apply to them, as sent to another process.

    first    the number of the first example, for errors
    """

    def __init__(self, f: Any, examples: list[tuple[Any, ...]], first: int, many: bool) -> None:
        self.f, self.examples, self.first, self.many = f, examples, first, many

    def __call__(self) -> list[Any]:
        """Return the results, or raise a TaskError."""
        if self.many:
            try:
                return self.run_batch()
            except Exception as error:
                raise failure(error, self.first, self.examples[0], len(self.examples)) from error
        out = []
        for i, example in enumerate(self.examples):
            try:
                out.append(portable(self.f(*example)))
            except Exception as error:
                raise failure(error, self.first + i, example, 1) from error
        return out

    def run_batch(self) -> list[Any]:
        columns = [stacked(list(column)) for column in zip(*self.examples)]
        leaves, tree = flatten(vmap(self.f)(*columns))
        rows = range(len(self.examples))
        return [portable(unflatten(tree, [leaf[i] for leaf in leaves])) for i in rows]


def failure(error: Exception, number: int, example: Sequence[Any], n: int) -> TaskError:
    inputs = ", ".join([shorten(repr(x)) for x in example])
    which = f"example {number}" if n == 1 else f"one of examples {number} to {number + n - 1}"
    return TaskError(f"pmap: {which} failed: {type(error).__name__}: {error}; inputs: {inputs}")


def shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def portable(result: Any) -> Any:
    """Return a result without its history, which stays in its process."""
    leaves, tree = flatten(result)
    return unflatten(tree, [y.detach() if isinstance(y, Tensor) else y for y in leaves])


def is_list(x: Any) -> bool:
    return isinstance(x, (list, tuple, range))


def count_examples(args: Sequence[Any], dims: Sequence[Any]) -> int:
    """Return the number of examples, which must be the same in all mapped arguments."""
    if len(dims) != len(args):
        raise ArgumentError(f"pmap: {len(dims)} in_dims for {len(args)} arguments")
    sizes: set[int] = set()
    for x, dim in zip(args, dims):
        if dim not in (0, None):
            raise ArgumentError(f"pmap: in_dims={dim!r} is not 0 or None")
        if dim is None:
            continue
        if is_list(x):
            sizes.add(len(x))
            continue
        for leaf in flatten(x)[0]:
            shape = np.shape(leaf) if not isinstance(leaf, Traced) else leaf.shape
            if not shape:
                raise ShapeError("pmap: a number has no examples; pass in_dims=None for it")
            sizes.add(shape[0])
    if len(sizes) != 1:
        raise ShapeError(f"pmap: mapped arguments have {sorted(sizes)} examples; these must agree")
    return sizes.pop()


def chunk_of(
    args: Sequence[Any], dims: Sequence[Any], begin: int, end: int
) -> list[tuple[Any, ...]]:
    """Return the arguments of some examples."""

    def example(x: Any, dim: Any, i: int) -> Any:
        if dim is None:
            return x
        if is_list(x):
            return x[i]
        leaves, tree = flatten(x)
        return unflatten(tree, [as_tensor(leaf)[i].detach() for leaf in leaves])

    return [tuple([example(x, dim, i) for x, dim in zip(args, dims)]) for i in range(begin, end)]


def stacked(rows: list[Any]) -> Any:
    """Return results with their tensors and numbers stacked along a new first axis."""
    if not rows:
        return as_tensor(np.zeros(0, np.float32))
    parts = [flatten(row) for row in rows]
    tree = parts[0][1]
    if any([other != tree for _, other in parts]):
        raise ShapeError("pmap: results differ in structure; pass stack=False for a list")
    columns = zip(*[leaves for leaves, _ in parts])
    return unflatten(tree, [stack_tensors([as_tensor(x) for x in xs]) for xs in columns])


# Where tasks run


def local_size(workers: int | None) -> int:
    if workers is None:
        return len(os.sched_getaffinity(0))
    if workers < 0:
        raise ArgumentError(f"pmap: workers={workers}")
    return workers


def client_size(client: Any) -> int:
    """Return the number of threads of a Dask client's workers."""
    return max(1, sum(client.nthreads().values()))


def pickled(task: Task) -> bytes:
    """Return a task as bytes; functions of a script or of another function need cloudpickle."""
    try:
        import cloudpickle  # type: ignore[import-untyped]
    except ImportError:
        return pickle.dumps(task)
    return cloudpickle.dumps(task)


def run_pickled(text: bytes) -> list[Any]:
    return pickle.loads(text)()


def on_processes(workers: int, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
    """Run tasks on new processes of this machine; they end with the last task."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        numbers: dict[Future[Any], int] = {
            pool.submit(run_pickled, pickled(task)): i for i, task in enumerate(tasks)
        }
        waiting = set(numbers)
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield numbers[future], future.result()
        finally:
            for future in waiting:
                future.cancel()


def on_client(client: Any, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
    """Run tasks on the workers of a Dask client."""
    from distributed import as_completed

    futures = [client.submit(run_pickled, pickled(task), pure=False, retries=0) for task in tasks]
    numbers = {future.key: i for i, future in enumerate(futures)}
    try:
        for future in as_completed(futures):
            yield numbers[future.key], future.result()
    finally:
        client.cancel(futures)


def shown(found: Iterable[Any], total: int, progress: bool) -> Iterator[Any]:
    """Pass results on, with a progress bar if wanted."""
    if not progress:
        yield from found
        return
    from lucid.utils.progress_bar import Progress

    steps = iter(Progress(range(total), "pmap"))
    for item in found:
        next(steps)
        yield item
    next(steps, None)
