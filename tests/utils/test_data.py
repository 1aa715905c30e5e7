"""Datasets, samplers, collating, and the DataLoader in one process and in many."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, IndexingError, ShapeError
from lucid.utils import data
from lucid.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    WorkerError,
    default_collate,
    get_worker_info,
    random_split,
)

Point = namedtuple("Point", "x y")


class Squares(Dataset):
    """Example i is i²; `before` runs in front of every example."""

    def __init__(self, n, before=None):
        self.n, self.before = n, before

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        if self.before is not None:
            self.before(i)
        return i * i

    def __len__(self):
        return self.n


class Stream(IterableDataset):
    """Numbers, of which every worker takes its share."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        return iter(range(self.n) if info is None else range(info.id, self.n, info.num_workers))


def children():
    return [p for p in multiprocessing.active_children() if p.is_alive()]


@pytest.fixture(autouse=True)
def no_process_is_left_behind():
    yield
    if children():
        gc.collect()  # a loader that was dropped in a cycle ends its workers then
    assert children() == []


def listed(loader):
    return [batch.tolist() for batch in loader]


# Datasets


def test_tensor_dataset_gives_the_parts_of_its_tensors():
    x, y = lucid.arange(6).reshape(3, 2), lucid.tensor([5, 6, 7])
    dataset = TensorDataset(x, y)
    assert len(dataset) == 3
    assert [part.tolist() for part in dataset[1]] == [[2, 3], 6]
    with pytest.raises(ArgumentError, match="differ in the size of their first axis"):
        TensorDataset(x, lucid.ones(2))
    with pytest.raises(ArgumentError, match="differ in the size of their first axis"):
        TensorDataset(lucid.tensor(1.0))


def test_concatenated_datasets_stand_behind_each_other():
    both = Squares(3) + Squares(2)
    assert isinstance(both, ConcatDataset) and len(both) == 5
    assert [both[i] for i in range(5)] == [0, 1, 4, 0, 1] and both[-1] == 1 and both[-5] == 0
    for index in (5, -6):
        with pytest.raises(IndexingError, match="out of range"):
            both[index]
    with pytest.raises(ArgumentError, match="no dataset"):
        ConcatDataset([])
    with pytest.raises(ArgumentError, match="ChainDataset"):
        ConcatDataset([Stream(3)])


def test_chained_streams_stand_behind_each_other():
    both = Stream(2) + Stream(3)
    assert isinstance(both, ChainDataset) and list(both) == [0, 1, 0, 1, 2]


def test_stacked_datasets_give_tuples_or_dictionaries():
    assert StackDataset(Squares(3), [7, 8, 9])[2] == (4, 9)
    assert StackDataset(x=Squares(3), y=[7, 8, 9])[1] == {"x": 1, "y": 8}
    with pytest.raises(ArgumentError, match="lengths differ"):
        StackDataset(Squares(3), Squares(2))
    with pytest.raises(ArgumentError, match="by position or by name, not both"):
        StackDataset()


def test_subset_takes_some_examples():
    part = Subset(Squares(10), [7, 2])
    assert len(part) == 2 and [part[0], part[1]] == [49, 4]


def test_random_split_shares_no_example_and_follows_its_generator():
    def split(lengths):
        return random_split(Squares(10), lengths, generator=lucid.Generator(7))

    parts = split([7, 3])
    assert [len(p) for p in parts] == [7, 3]
    assert sorted(i for p in parts for i in p.indices) == list(range(10))
    assert [p.indices for p in split([7, 3])] == [p.indices for p in parts]
    assert [len(p) for p in split([0.55, 0.25, 0.2])] == [6, 2, 2]
    with pytest.raises(ArgumentError, match="do not sum"):
        split([7, 4])


def test_what_a_dataset_lacks_is_named():
    with pytest.raises(NotImplementedError, match="Dataset has no __getitem__"):
        Dataset()[0]
    with pytest.raises(NotImplementedError, match="IterableDataset has no __iter__"):
        iter(IterableDataset())


# Samplers


def test_sequential_and_random_samplers_give_every_index_once():
    assert list(SequentialSampler(Squares(4))) == [0, 1, 2, 3]
    sampler = RandomSampler(Squares(50), generator=lucid.Generator(1))
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(50)) and first != second
    assert len(sampler) == 50 and first != list(range(50))
    assert list(RandomSampler(Squares(50), generator=lucid.Generator(1))) == first


def test_random_sampler_gives_as_many_as_wished():
    few = list(RandomSampler(Squares(10), num_samples=4))
    assert len(set(few)) == 4
    many = Counter(RandomSampler(Squares(4), num_samples=10))
    assert sum(many.values()) == 10 and set(many.values()) <= {2, 3}
    drawn = list(RandomSampler(Squares(3), replacement=True, num_samples=200))
    assert set(drawn) == {0, 1, 2} and len(drawn) == 200
    assert list(RandomSampler(Squares(0))) == []
    with pytest.raises(ArgumentError, match="num_samples must be positive"):
        RandomSampler(Squares(3), num_samples=0)


def test_subset_random_sampler_gives_its_indices_in_some_order():
    sampler = SubsetRandomSampler([5, 7, 9, 11], generator=lucid.Generator(0))
    assert sorted(sampler) == [5, 7, 9, 11] and len(sampler) == 4


def test_weighted_sampler_draws_by_weight():
    sampler = WeightedRandomSampler([1.0, 0.0, 3.0], 20_000, generator=lucid.Generator(0))
    drawn = Counter(sampler)
    assert set(drawn) == {0, 2} and abs(drawn[2] / 20_000 - 0.75) < 0.02
    once = list(WeightedRandomSampler([1.0, 2.0, 3.0], 3, replacement=False))
    assert sorted(once) == [0, 1, 2]
    with pytest.raises(ArgumentError, match="one axis"):
        WeightedRandomSampler(lucid.ones(2, 2), 3)
    with pytest.raises(ArgumentError, match="num_samples must be positive"):
        WeightedRandomSampler([1.0], 0)


def test_weighted_sampler_of_many_examples_takes_little_memory():
    """A table of samples times examples would take 8 GB."""
    n = 32_000
    drawn = list(WeightedRandomSampler(lucid.ones(n), n))
    assert len(drawn) == n and 0 <= min(drawn) and max(drawn) < n


def test_batch_sampler_makes_lists():
    assert list(BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert [len(BatchSampler(range(n), 2, False)) for n in (4, 5)] == [2, 3]
    assert len(BatchSampler(range(5), 2, True)) == 2
    for size in (0, -1, 2.0, True):
        with pytest.raises(ArgumentError, match="BatchSampler: batch_size=.* is not"):
            BatchSampler(range(3), size, False)


# Collating


def test_collate_stacks_and_goes_into_structures():
    examples = [(lucid.ones(2) * i, {"n": i, "name": f"n{i}"}, [i / 2, True]) for i in range(3)]
    x, record, (half, flag) = default_collate(examples)
    np.testing.assert_array_equal(x.numpy(), [[0, 0], [1, 1], [2, 2]])
    assert record["n"].tolist() == [0, 1, 2] and record["n"].dtype == lucid.int64
    assert record["name"] == ("n0", "n1", "n2")
    assert half.tolist() == [0.0, 0.5, 1.0] and half.dtype == lucid.float64
    assert flag.dtype == lucid.bool


def test_collate_keeps_named_tuples_and_takes_numpy():
    batch = default_collate([Point(np.float32(1), np.ones(2)), Point(np.float32(2), np.zeros(2))])
    assert isinstance(batch, Point) and batch.x.dtype == lucid.float32
    assert batch.y.tolist() == [[1, 1], [0, 0]]


def test_collate_of_differing_examples_tells_the_remedy():
    with pytest.raises(ShapeError, match="collate_fn that pads"):
        default_collate([lucid.ones(2), lucid.ones(3)])
    with pytest.raises(ShapeError, match="give a collate_fn"):
        default_collate([(1, 2), (1, 2, 3)])


# The loader

EVERYWHERE = pytest.mark.parametrize("workers", [0, 1, 3])


@EVERYWHERE
def test_batches_come_in_order(workers):
    loader = DataLoader(Squares(10), batch_size=4, num_workers=workers)
    assert listed(loader) == [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]
    assert len(loader) == 3 and listed(loader) == listed(loader)
    short = DataLoader(Squares(10), batch_size=4, num_workers=workers, drop_last=True)
    assert listed(short) == [[0, 1, 4, 9], [16, 25, 36, 49]] and len(short) == 2


def test_order_does_not_depend_on_which_worker_is_quick():
    dataset = Squares(12, before=lambda i: time.sleep(0.05 if i < 2 else 0.0))
    loader = DataLoader(dataset, 2, num_workers=3)
    assert [x for batch in listed(loader) for x in batch] == [i * i for i in range(12)]


@EVERYWHERE
def test_without_batches_examples_come_one_by_one(workers):
    loader = DataLoader(Squares(4), batch_size=None, num_workers=workers)
    assert list(loader) == [0, 1, 4, 9] and len(loader) == 4


@EVERYWHERE
def test_shuffling_follows_the_generator_whatever_the_workers(workers):
    def shuffled(seed):
        generator = lucid.Generator(seed)
        return [listed(DataLoader(Squares(9), 2, True, num_workers=workers, generator=generator))]

    assert shuffled(5) == shuffled(5) != shuffled(6)
    assert sorted(x for batch in shuffled(5)[0] for x in batch) == [i * i for i in range(9)]


def test_the_order_of_a_generator_is_the_same_with_and_without_workers():
    found = [
        listed(DataLoader(Squares(9), 2, True, num_workers=n, generator=lucid.Generator(5)))
        for n in (0, 2)
    ]
    assert found[0] == found[1]


def test_every_pass_shuffles_anew():
    loader = DataLoader(Squares(30), 30, shuffle=True)
    assert listed(loader) != listed(loader)


@EVERYWHERE
def test_samplers_of_numpy_numbers_and_tensors_are_taken(workers):
    class OfNumpy:
        def __iter__(self):
            return iter(np.array([3, 1]))

    assert listed(DataLoader(Squares(5), 2, sampler=OfNumpy(), num_workers=workers)) == [[9, 1]]
    batches = [[2, 0], [np.int64(4)]]
    loader = DataLoader(Squares(5), batch_sampler=batches, num_workers=workers)
    assert listed(loader) == [[4, 0], [16]] and len(loader) == 2


@dataclass
class Odd:
    name: str
    values: object


@EVERYWHERE
def test_batches_may_be_any_structure(workers):
    def collate(batch):
        x = lucid.tensor(batch)
        return {
            "point": Point(x, b"bytes"), "odd": Odd("o", x.numpy()), "empty": lucid.ones(0, 2),
            "scalar": lucid.tensor(2.5), "complex": x * 1j, "strided": x[::-1], 3: {1, 2},
        }  # fmt: skip

    (batch,) = DataLoader(Squares(3), 3, collate_fn=collate, num_workers=workers)
    assert batch["point"].x.tolist() == [0, 1, 4] and batch["point"].y == b"bytes"
    assert isinstance(batch["odd"], Odd) and batch["odd"].values.tolist() == [0, 1, 4]
    assert batch["empty"].shape == (0, 2) and batch["scalar"].shape == () and batch[3] == {1, 2}
    assert batch["complex"].tolist() == [0, 1j, 4j] and batch["strided"].tolist() == [4, 1, 0]


@EVERYWHERE
def test_tensor_datasets_are_batched(workers, rng):
    x, y = rng.normal(size=(7, 3)), rng.integers(0, 5, 7)
    dataset = TensorDataset(lucid.tensor(x), lucid.tensor(y))
    found = list(DataLoader(Subset(dataset, [6, 0, 3]), 2, num_workers=workers))
    assert all(isinstance(batch, list) for batch in found)
    np.testing.assert_array_equal(np.concatenate([b[0].numpy() for b in found]), x[[6, 0, 3]])
    np.testing.assert_array_equal(np.concatenate([b[1].numpy() for b in found]), y[[6, 0, 3]])


def test_a_subclass_that_changes_examples_is_asked_for_each():
    class Doubled(TensorDataset):
        def __getitem__(self, i):
            (x,) = super().__getitem__(i)
            return (x * 2,)

    ((batch,),) = DataLoader(Doubled(lucid.arange(3)), 3)
    assert batch.tolist() == [0, 2, 4]


@EVERYWHERE
def test_streams_are_batched_and_shared_among_workers(workers):
    loader = DataLoader(Stream(10), batch_size=3, num_workers=workers)
    found = listed(loader)
    assert sorted(x for batch in found for x in batch) == list(range(10))
    if workers < 2:
        assert found == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    else:
        assert found[0] == [0, 3, 6]
    one_by_one = DataLoader(Stream(5), batch_size=None, num_workers=workers)
    assert sorted(one_by_one) == list(range(5))
    whole = DataLoader(Stream(10), batch_size=4, num_workers=workers, drop_last=True)
    assert all(len(batch) == 4 for batch in listed(whole))


@EVERYWHERE
def test_an_empty_dataset_gives_nothing(workers):
    assert list(DataLoader(Squares(0), 2, num_workers=workers)) == []
    assert list(DataLoader(Stream(0), 2, num_workers=workers)) == []


# Workers


class Reports(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        info = get_worker_info()
        drawn = lucid.randint(10**9, ()).item()
        return info.id, info.num_workers, info.seed, drawn, os.getpid()


def reports(seed, **settings):
    loader = DataLoader(Reports(), 1, num_workers=2, generator=lucid.Generator(seed), **settings)
    return [[part.item() for part in batch] for batch in loader]


def test_workers_know_themselves_and_draw_numbers_of_their_own():
    found = reports(1)
    assert [r[0] for r in found] == [0, 1, 0, 1] and {r[1] for r in found} == {2}
    assert len({r[3] for r in found}) == 4 and len({r[4] for r in found}) == 2
    assert os.getpid() not in {r[4] for r in found} and get_worker_info() is None


def test_random_numbers_in_workers_follow_the_seed_of_the_loader():
    first, again, other = ([r[2:4] for r in reports(seed)] for seed in (1, 1, 2))
    assert first == again and not {tuple(r) for r in first} & {tuple(r) for r in other}


def test_worker_init_fn_runs_in_every_worker():
    def init(number):
        lucid.manual_seed(100)

    found = reports(1, worker_init_fn=init)
    assert found[0][3] == found[1][3] != found[2][3]


def test_an_exception_in_a_worker_comes_with_its_traceback():
    def trouble(i):
        if i == 5:
            raise ValueError("example five is bad")

    loader = DataLoader(Squares(8, trouble), 2, num_workers=2)
    found = []
    with pytest.raises(WorkerError, match=r"(?s)worker 0 failed.*in trouble.*example five is bad"):
        for batch in loader:
            found.append(batch.tolist())
    assert found == [[0, 1], [4, 9]]


def test_an_exception_in_worker_init_fn_is_told():
    def init(number):
        raise RuntimeError("no such disk")

    with pytest.raises(WorkerError, match="no such disk"):
        list(DataLoader(Squares(4), num_workers=1, worker_init_fn=init))


def test_an_exception_without_workers_is_itself():
    def trouble(i):
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        list(DataLoader(Squares(2, trouble)))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_worker_is_an_error_at_once(number):
    def die(i):
        if i == 3:
            os.kill(os.getpid(), number)

    start = time.perf_counter()
    with pytest.raises(WorkerError, match=rf"worker 1 .*killed by {number.name}"):
        list(DataLoader(Squares(20, die), 1, num_workers=2))
    assert time.perf_counter() - start < 10


def test_a_worker_killed_in_the_midst_of_a_batch_is_an_error():
    big = TensorDataset(lucid.zeros(4, 4_000_000))
    loader = iter(DataLoader(big, 1, num_workers=1))
    next(loader)
    (process,) = children()
    time.sleep(0.2)  # it waits with half a batch in the pipe
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(WorkerError, match="killed by SIGKILL"):
        list(loader)


def test_a_worker_that_exits_is_an_error():
    with pytest.raises(WorkerError, match="exit code 3"):
        list(DataLoader(Squares(4, lambda i: os._exit(3)), num_workers=1))


def test_a_slow_worker_is_an_error_after_the_timeout():
    with pytest.raises(WorkerError, match=r"timed out after 0\.2 s"):
        list(DataLoader(Squares(2, lambda i: time.sleep(30)), num_workers=1, timeout=0.2))


def test_breaking_off_early_leaves_no_process():
    for _ in range(3):
        for batch in DataLoader(Squares(1000), 2, num_workers=2):
            if batch[0].item() >= 16:
                break
    gc.collect()
    assert children() == []


def test_large_batches_and_long_lists_of_indices_do_not_wait_for_each_other():
    """Tasks and batches that are larger than the buffer of a pipe cross in both directions."""
    n = 300_000
    dataset = TensorDataset(lucid.arange(n), lucid.arange(n))
    loader = DataLoader(dataset, 50_000, num_workers=2, prefetch_factor=3, timeout=60)
    assert [b[0][0].item() for b in loader] == list(range(0, n, 50_000))


def test_workers_compute_with_lucid_after_the_parent_did():
    x = lucid.ones(400, 400)
    f = lucid.jit(lambda x: (x @ x).sin().sum())
    expected = f(x).item()
    loader = DataLoader([0, 1], collate_fn=lambda b: f(x), num_workers=2, timeout=60)
    assert [y.item() for y in loader] == pytest.approx([expected] * 2, rel=1e-5)


def test_persistent_workers_stay_for_the_next_pass_and_end_with_the_loader():
    loader = DataLoader(Reports(), 1, num_workers=2, persistent_workers=True)
    first, second = ([int(b[4].item()) for b in loader] for _ in range(2))
    assert first == second and len(children()) == 2
    del loader
    gc.collect()
    assert children() == []


def test_persistent_workers_start_streams_anew():
    loader = DataLoader(Stream(7), 2, num_workers=2, persistent_workers=True)
    found = [sorted(x for batch in listed(loader) for x in batch) for _ in range(3)]
    assert found == [list(range(7))] * 3


def test_persistent_workers_that_were_broken_off_start_again():
    loader = DataLoader(Squares(100), 1, num_workers=2, persistent_workers=True)
    for _ in loader:
        break
    assert len(listed(loader)) == 100


def test_workers_end_when_their_parent_is_killed():
    code = """
import os, signal, sys, lucid
from lucid.utils.data import DataLoader
loader = iter(DataLoader(list(range(100)), num_workers=2))
next(loader)
import multiprocessing
print(*[p.pid for p in multiprocessing.active_children()], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    pids = [int(pid) for pid in run.stdout.split()]
    assert len(pids) == 2, run.stderr
    deadline = time.monotonic() + 10
    while any(is_running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(is_running(pid) for pid in pids)


def is_running(pid):
    """Whether a process does anything: not gone, and no zombie that nobody has collected."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


@pytest.mark.parametrize("workers", [0, 2])
def test_memory_stays_flat_over_many_batches(workers):
    dataset = TensorDataset(lucid.zeros(64, 20_000))
    loader = DataLoader(dataset, 8, num_workers=workers, persistent_workers=bool(workers))
    for _ in range(3):
        list(map(len, loader))
    before = resident()
    for _ in range(30):
        for _ in loader:
            pass
    assert resident() - before < 20  # 30 passes move 150 MB


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"num_workers": -1}, "num_workers=-1 is not a number of at least 0"),
        ({"timeout": -1}, "timeout=-1 is not a number of at least 0"),
        ({"num_workers": 1, "prefetch_factor": 0}, "at least 1"),
        ({"shuffle": True, "sampler": [0]}, "not both"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "excludes"),
        ({"batch_sampler": [[0]], "shuffle": True}, "excludes"),
        ({"batch_size": None, "drop_last": True}, "needs a batch_size"),
        ({"persistent_workers": True}, "needs num_workers"),
        ({"batch_size": 0}, "batch_size=0 is not at least 1"),
        ({"batch_size": 2.5}, "batch_size=2.5 is not an integer"),
    ],
)
def test_misuse_is_told(settings, part):
    with pytest.raises(ArgumentError, match=part):
        DataLoader(Squares(3), **settings)


def test_streams_have_their_own_order():
    with pytest.raises(ArgumentError, match="shuffle inside it"):
        DataLoader(Stream(3), shuffle=True)


def test_every_public_name_is_documented():
    assert all(getattr(data, name).__doc__ for name in data.__all__)


def test_pythons_random_numbers_in_workers_follow_the_seed():
    import random

    drawn = []
    for _ in range(2):
        lucid.manual_seed(3)
        loader = DataLoader(range(6), 1, num_workers=2, collate_fn=lambda batch: random.random())
        drawn.append(list(loader))
    assert drawn[0] == drawn[1] and len(set(drawn[0])) == 6


def test_persistent_workers_end_with_their_loader():
    import multiprocessing

    before = set(multiprocessing.active_children())
    loader = DataLoader(range(6), 2, num_workers=2, persistent_workers=True)
    list(loader)
    assert len(set(multiprocessing.active_children()) - before) == 2
    del loader
    assert set(multiprocessing.active_children()) == before


def test_positions_of_arguments_are_pytorchs():
    loader = DataLoader(range(5), 2, None, None, None, 0, None, True, True, 0, None, "fork")
    assert loader.pin_memory and loader.drop_last and len(loader) == 2
    with pytest.raises(ArgumentError, match="forked"):
        DataLoader(range(5), 2, num_workers=1, multiprocessing_context="spawn")


def test_an_iterable_dataset_needs_a_batch_size_too():
    class Endless(IterableDataset):
        def __iter__(self):
            return iter(int, 1)

    with pytest.raises(ArgumentError, match="batch_size=0 is not at least 1"):
        DataLoader(Endless(), 0)


class Endless:
    def __getitem__(self, i):
        return i


@pytest.mark.parametrize("dataset", [5, None, (i for i in range(3)), Endless()])
def test_what_is_no_dataset_is_refused(dataset):
    with pytest.raises(lucid.errors.ArgumentError, match="is not a dataset|has no __len__"):
        DataLoader(dataset)


def test_a_dataset_without_a_length_takes_a_sampler():
    assert [x.item() for x in DataLoader(Endless(), sampler=[3, 5])] == [3, 5]


class Compiled:
    """A dataset whose items are computed by jitted functions that draw."""

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return lucid.jit(lambda x: x * float(i) + lucid.rand(3) * 0)(lucid.ones(3))


def test_workers_compile_although_they_were_forked_while_another_thread_compiled():
    stop = threading.Event()

    def compile_for_ever():
        number = 0
        while not stop.is_set():
            number += 1
            lucid.jit(lambda x, c=float(number): lucid.exp(x * c) + lucid.rand(3))(lucid.zeros(3))

    thread = threading.Thread(target=compile_for_ever)
    thread.start()
    try:
        for _ in range(3):
            batches = list(DataLoader(Compiled(), batch_size=2, num_workers=2, timeout=60))
            assert [b[:, 0].tolist() for b in batches] == [[0.0, 1.0], [2.0, 3.0]]
    finally:
        stop.set()
        thread.join()
