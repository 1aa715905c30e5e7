"""Collectives beside plain mpi4py, and the data parallel step beside one process and PyTorch DDP.

python benchmarks/distributed.py [--torch PYTHON]       # PYTHON: an interpreter with PyTorch

Everything runs on two ranks of this machine with one thread each. The times of all_reduce give the
latency and the bandwidth of the cost model in docs/distributed.md, whose predictions are printed
beside measured steps on two and four ranks.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SIZES = [8, 1_000, 10_000, 50_000, 131_072, 325_000, 500_000, 1_250_000]  # elements of float64
LAYERS = [(256, 512), (512, 512), (512, 512), (512, 10)]
BATCH = 512
ROOT = Path(__file__).parent.parent


def quartile_us(runs: list[Callable[[], object]], repeat: int) -> list[float]:
    """The lower quartile of the microseconds of each function, in turns of ten calls each.

    Each turn begins with a call that is not counted, so that all have their memory in the cache.
    """
    times: list[list[float]] = [[] for _ in runs]
    for run in runs:
        run()
    for _ in range(-(-repeat // 10)):
        for run, spent in zip(runs, times):
            run()
            for _ in range(10):
                begin = time.perf_counter()
                run()
                spent.append(time.perf_counter() - begin)
    return [statistics.quantiles(spent, n=4)[0] * 1e6 for spent in times]


def measure_all_reduce() -> dict[str, list[float]]:
    """Microseconds of mpi4py's Allreduce into the same array and into a new one, of ours, and of
    ours inside a compiled function."""
    import numpy as np
    from mpi4py import MPI

    import lucid
    import lucid.distributed as dist

    comm = MPI.COMM_WORLD.Dup()
    found = {}
    compiled = lucid.jit(lambda x: dist.all_reduce(x))
    for n in SIZES:
        x = np.ones(n)
        tensor = lucid.from_numpy(x)
        y = np.empty_like(x)

        def plain(x: np.ndarray = x, y: np.ndarray = y) -> None:
            comm.Allreduce(x, y)

        def new_memory(x: np.ndarray = x) -> np.ndarray:
            z = np.empty_like(x)
            comm.Allreduce(x, z)
            return z

        def ours(t: lucid.Tensor = tensor) -> object:
            return dist.all_reduce(t)

        def jitted(t: lucid.Tensor = tensor) -> object:
            return compiled(t)

        found[str(8 * n)] = quartile_us(
            [plain, new_memory, ours, jitted], max(20, min(300, 2_000_000 // n))
        )
    return found


def measure_step(rows: int, reduced: int = 1) -> float:
    """Milliseconds of a compiled data parallel step on `rows` examples of each rank.

    With reduced = 0 every rank trains by itself, and the time of a step is that of its slowest
    rank: ranks share cores and memory, and wait for one another, without communication.
    """
    import numpy as np

    import lucid
    import lucid.distributed as dist
    from lucid import nn

    dist.manual_seed(0, same=True)
    layers: list[nn.Module] = []
    for i, (a, b) in enumerate(LAYERS):
        layers += [nn.Linear(a, b)] + ([nn.Tanh()] if i < len(LAYERS) - 1 else [])
    model: nn.Module = nn.Sequential(*layers)
    model = dist.DataParallel(model) if reduced else model
    optimizer = lucid.optim.SGD(model.parameters(), lr=0.01)
    x = lucid.tensor(np.random.default_rng(1).normal(size=(rows, LAYERS[0][0])).astype("float32"))
    y = lucid.tensor(np.random.default_rng(2).integers(0, 10, rows))

    @lucid.jit
    def step(x: lucid.Tensor, y: lucid.Tensor) -> lucid.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    step(x, y)
    dist.barrier()
    times = []
    for _ in range(30):
        begin = time.perf_counter()
        step(x, y)
        times.append((time.perf_counter() - begin) * 1e3)
    slowest = np.asarray(dist.all_gather(lucid.tensor(times))).max(0)
    return statistics.quantiles(slowest.tolist(), n=4)[0]


def measure_uneven(overlap: int) -> float:
    """Milliseconds of a step of ranks that are slow in different layers, in buckets of 1 MB.

    With overlap = 0 every reduction waits for its result at once.
    """
    import numpy as np

    import lucid
    import lucid.distributed as dist
    from lucid import nn
    from lucid.distributed.collectives import Collective

    Collective.asynchronous = bool(overlap)
    dist.manual_seed(0, same=True)
    turn = lucid.tensor(np.random.default_rng(5).normal(size=(512, 512)) / 23.0, dtype="float32")

    class Uneven(nn.Module):
        """More work on this rank in every other layer."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.repeats = 4 * ((number + dist.rank()) % 2)

        def forward(self, x: lucid.Tensor) -> lucid.Tensor:
            y = x
            for _ in range(self.repeats):
                y = lucid.tanh(y @ turn)
            return x + 0.001 * y

    layers: list[nn.Module] = []
    for i in range(8):
        layers += [Uneven(i), nn.Linear(512, 512), nn.Tanh()]
    model = dist.DataParallel(nn.Sequential(*layers), bucket_cap_mb=1.0)
    optimizer = lucid.optim.SGD(model.parameters(), lr=0.01)
    x = lucid.tensor(np.random.default_rng(1).normal(size=(256, 512)).astype("float32"))

    @lucid.jit
    def step(x: lucid.Tensor) -> lucid.Tensor:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    step(x)
    dist.barrier()
    return quartile_us([lambda: step(x)], 20)[0] / 1e3


def measure_torch_step(rows: int) -> float:
    """The same step by PyTorch, with DDP over gloo where there are several ranks."""
    import numpy as np
    import torch
    from torch import nn

    torch.set_num_threads(1)
    size = int(os.environ.get("WORLD_SIZE", "1"))
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for i, (a, b) in enumerate(LAYERS):
        layers += [nn.Linear(a, b)] + ([nn.Tanh()] if i < len(LAYERS) - 1 else [])
    model: nn.Module = nn.Sequential(*layers)
    if size > 1:
        torch.distributed.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.tensor(np.random.default_rng(1).normal(size=(rows, LAYERS[0][0])).astype("float32"))
    y = torch.tensor(np.random.default_rng(2).integers(0, 10, rows))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return quartile_us([step], 20)[0] / 1e3


MEASURES: dict[str, Callable[..., object]] = {
    "all_reduce": measure_all_reduce,
    "step": measure_step,
    "uneven": measure_uneven,
    "torch": measure_torch_step,
}


def worker(what: str, args: list[int], out: str) -> None:
    found = MEASURES[what](*args)
    rank = os.environ.get("PMI_RANK", os.environ.get("RANK", "0"))
    if rank == "0":
        Path(out).write_text(json.dumps(found))


def measured(n: int, what: str, *args: int, python: str = sys.executable) -> object:
    """Run a measurement on n ranks and return what rank 0 found."""
    environment = {**os.environ, "LUCID_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "found.json")
        words = [str(Path(__file__)), "--worker", what, "--out", out, *map(str, args)]
        if what != "torch":
            launch = [sys.executable, "-m", "lucid.distributed.run", "-n", str(n), *words]
            subprocess.run(launch, env=environment, check=True)
        else:
            environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
            ranks = [
                subprocess.Popen(
                    [python, *words],
                    env={**environment, "RANK": str(r), "WORLD_SIZE": str(n)},
                )
                for r in range(n)
            ]
            assert not any([rank.wait() for rank in ranks])
        return json.loads(Path(out).read_text())


def fit(times: dict[str, list[float]], nbytes: int) -> tuple[float, float]:
    """Latency in µs and bandwidth in MB/s of a message, from the times of all_reduce on two ranks.

    A ring of n ranks takes 2 (n - 1) messages of 1/n of the bytes. The bandwidth is that of the
    measured size next to `nbytes`: it falls where operands leave the cache.
    """
    points = [(int(measured_bytes), us[2]) for measured_bytes, us in times.items()]
    small = min(us for _, us in points) / 2
    near, us = min(points, key=lambda point: abs(point[0] - nbytes))
    return small, near / (us - 2 * small)


def ring_us(n: int, nbytes: int, latency: float, bandwidth: float) -> float:
    """The time of a ring. Its additions and copies are work of cores, which ranks may share."""
    sharing = max(1.0, n / len(os.sched_getaffinity(0)))
    return sharing * 2 * (n - 1) * (latency + nbytes / n / bandwidth)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", default="", help="a Python with PyTorch")
    parser.add_argument("--worker", default="")
    parser.add_argument("--out", default="")
    parser.add_argument("args", nargs="*", type=int)
    given = parser.parse_args()
    if given.worker:
        worker(given.worker, given.args, given.out)
        return
    times: dict[str, list[float]] = measured(2, "all_reduce")  # type: ignore[assignment]
    print("all_reduce on 2 ranks, µs: bytes, mpi4py (new memory), lucid, compiled, lucid / mpi4py")
    for size_text, (plain, new, ours, compiled) in times.items():
        print(
            f"{int(size_text):>10} {plain:9.1f} ({new:9.1f}) {ours:9.1f} {compiled:9.1f}   "
            f"{ours / plain:.2f} ({ours / new:.2f})"
        )
    nbytes = 4 * sum([a * b + b for a, b in LAYERS])
    for size in (80_000, 1 << 20, nbytes, 10_000_000):
        latency, bandwidth = fit(times, size)
        print(f"at {size} bytes: latency {latency:.1f} µs, bandwidth {bandwidth:.0f} MB/s")
    latency, bandwidth = fit(times, nbytes)
    one = float(measured(1, "step", BATCH))  # type: ignore[arg-type]
    print(f"step, {nbytes / 1e6:.1f} MB of gradients, {BATCH} examples in all, ms:")
    print(f"  one process {one:.2f}")
    for n in (2, 4):
        compute = float(measured(n, "step", BATCH // n, 0))  # type: ignore[arg-type]
        step = float(measured(n, "step", BATCH // n))  # type: ignore[arg-type]
        model = compute + ring_us(n, nbytes, latency, bandwidth) / 1e3
        print(f"  {n} ranks {step:.2f}, by the model {model:.2f}, of which compute {compute:.2f}")
        if given.torch:
            alone = float(measured(1, "torch", BATCH, python=given.torch))  # type: ignore[arg-type]
            ddp = float(measured(n, "torch", BATCH // n, python=given.torch))  # type: ignore[arg-type]
            print(f"  PyTorch: one process {alone:.2f}, DDP with gloo on {n} ranks {ddp:.2f}")
    uneven = [float(measured(2, "uneven", overlap)) for overlap in (1, 0)]  # type: ignore[arg-type]
    print(f"  2 ranks slow in turns: {uneven[0]:.2f}, without overlap {uneven[1]:.2f}")


if __name__ == "__main__":
    main()
