"""Single layers and functions, both directions, against PyTorch: `python benchmarks/layers.py`.

    --peer PYTHON    the interpreter that has torch (or the environment's BENCH_PYTHON)
    --only NAME      one of them (may be repeated)
    --compiled       Lucid's is a jitted function; PyTorch's stays as it is
    --rounds N       turns of each library, 8 unless told
    --threads N      of both libraries, 2 unless told

One text for both libraries, and a process for each; they take turns of some milliseconds, and the
best time of each counts, so that a busy moment of the machine does not favor one.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WARM_SECONDS, WARM_CALLS = 0.3, 40  # a layer that has run 16 times is compiled
TURN_SECONDS = 0.03


def images(lib: Any, normal: Callable[..., Any]) -> dict[str, tuple[Any, ...]]:
    """Layers and functions of (32, 32, 28, 28): a callable, then its arguments."""
    nn, F = lib.nn, lib.nn.functional
    x, y = normal(32, 32, 28, 28), normal(32, 32, 28, 28)
    resized = {
        mode: (lambda x, mode=mode: F.interpolate(x, scale_factor=2, mode=mode), x)
        for mode in ("bilinear", "bicubic", "nearest")
    }
    return {
        "BatchNorm2d": (nn.BatchNorm2d(32), x),
        "GroupNorm": (nn.GroupNorm(8, 32), x),
        "InstanceNorm2d": (nn.InstanceNorm2d(32), x),
        "ReLU": (nn.ReLU(), x),
        "LeakyReLU": (nn.LeakyReLU(), x),
        "Sigmoid": (nn.Sigmoid(), x),
        "Tanh": (nn.Tanh(), x),
        "GELU": (nn.GELU(), x),
        "GELU tanh": (nn.GELU("tanh"), x),
        "SiLU": (nn.SiLU(), x),
        "Softplus": (nn.Softplus(), x),
        "Dropout": (nn.Dropout(0.1), x),
        "MaxPool2d": (nn.MaxPool2d(2), x),
        "AvgPool2d": (nn.AvgPool2d(2), x),
        "AdaptiveAvgPool2d": (nn.AdaptiveAvgPool2d(1), x),
        "Conv2d 3x3": (nn.Conv2d(32, 32, 3, padding=1), x),
        "Conv2d 1x1": (nn.Conv2d(32, 64, 1), x),
        "ConvTranspose2d": (nn.ConvTranspose2d(32, 16, 2, stride=2), x),
        **resized,
        "mse_loss": (F.mse_loss, x, y),
        "smooth_l1_loss": (F.smooth_l1_loss, x, y),
        "add": (lambda x, y: x + y, x, y),
        "mul, sum": (lambda x, y: (x * y).sum(-1), x, y),
        "exp": (lib.exp, x),
        "cat": (lambda x: lib.cat([x, x], 1), x),
        "mean": (lambda x: x.mean(dim=(2, 3)), x),
        "pad": (lambda x: F.pad(x, (1, 1, 1, 1)), x),
        "slice": (lambda x: x[:, ::2], x),
        "where": (lambda x: lib.where(x > 0, x, 0.1 * x), x),
        "pow": (lambda x: x**3, x),
        "div": (lambda x, y: x / (y * y + 1), x, y),
        "log": (lambda x: lib.log(x * x + 1), x),
        "to int64 and back": (lambda x: x * x.long().float(), x),
    }


def rows(lib: Any, normal: Callable[..., Any], below: Callable[..., Any]) -> dict[str, Any]:
    """Layers and functions of sequences (16, 64, 128) and of rows (128, 512)."""
    nn, F = lib.nn, lib.nn.functional
    x, seq = normal(128, 512), normal(16, 64, 128)
    attention = nn.MultiheadAttention(128, 4, batch_first=True)
    lstm, gru = nn.LSTM(128, 128, batch_first=True), nn.GRU(128, 128, batch_first=True)
    columns, small = below(512, (128, 64)), normal(32, 10)
    return {
        "LayerNorm": (nn.LayerNorm(128), seq),
        "Softmax": (nn.Softmax(-1), x),
        "Conv1d": (nn.Conv1d(64, 64, 5, padding=2), seq),
        "Linear": (nn.Linear(512, 512), x),
        "Embedding": (nn.Embedding(1000, 128), below(1000, (16, 64))),
        "MultiheadAttention": (lambda x: attention(x, x, x, need_weights=False)[0], seq),
        "encoder layer": (nn.TransformerEncoderLayer(128, 4, 256, 0.0, batch_first=True), seq),
        "the same, dropout": (nn.TransformerEncoderLayer(128, 4, 256, batch_first=True), seq),
        "LSTM": (lambda x: lstm(x)[0], seq),
        "GRU": (lambda x: gru(x)[0], seq),
        "bce with logits": (F.binary_cross_entropy_with_logits, x, lib.sigmoid(normal(128, 512))),
        "cross_entropy": (F.cross_entropy, x, below(512, 128)),
        "cross_entropy 32x10": (F.cross_entropy, small, below(10, 32)),
        "label smoothing": (
            lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1),
            x,
            below(512, 128),
        ),
        "kl_div": (
            lambda x, y: F.kl_div(x, y, reduction="batchmean"),
            x,
            lib.softmax(normal(128, 512), -1),
        ),
        "matmul": (lambda x, y: x @ y, x, normal(512, 256)),
        "gather": (lambda x: lib.gather(x, 1, columns), x),
        "std": (lambda x: x.std(dim=1), x),
        "sort": (lambda x: lib.sort(x, dim=1)[0], x),
        "sort rows of 64": (lambda x: lib.sort(x, dim=1)[0], normal(1024, 64)),
        "topk 10": (lambda x: lib.topk(x, 10)[0], x),
        "topk 5 of 64": (lambda x: lib.topk(x, 5)[0], normal(1024, 64)),
        "cumsum": (lambda x: lib.cumsum(x, 1), x),
    }


def cases(lib: Any) -> dict[str, tuple[Any, ...]]:
    import numpy as np

    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return lib.tensor(rng.normal(size=shape).astype("float32"))

    def below(n: int, shape: Any) -> Any:
        return lib.tensor(rng.integers(0, n, shape))

    return {**images(lib, normal), **rows(lib, normal, below)}


def step_of(lib: Any, f: Any, *args: Any) -> Callable[[], float]:
    """One forward and backward pass, which gives the seconds of the second."""
    x, *others = args
    x = x.detach().clone().requires_grad_() if x.dtype == lib.float32 else x
    ct = lib.ones_like(f(x, *others)).detach()

    def step() -> float:
        y = f(x, *others)
        start = time.perf_counter()
        y.backward(ct)
        x.grad = None
        return time.perf_counter() - start

    return step


def turn(step: Callable[[], float], seconds: float, calls: int = 1) -> tuple[float, float]:
    """The best time of the whole step and of its backward pass, in µs."""
    best, backward, end = float("inf"), float("inf"), time.perf_counter() + seconds
    while calls > 0 or time.perf_counter() < end:
        start = time.perf_counter()
        b = step()
        best, backward = min(best, time.perf_counter() - start), min(backward, b)
        calls -= 1
    return best * 1e6, backward * 1e6


def serve(library: str, compiled: bool, threads: int) -> None:
    """Run the layers that standard input names, a turn of each."""
    sys.path.insert(0, str(ROOT))
    lib = importlib.import_module(library)
    lib.set_num_threads(threads)
    known = cases(lib)
    print(json.dumps(list(known)), flush=True)
    name, step = None, lambda: 0.0
    for line in sys.stdin:
        if line.strip() != name:
            name = line.strip()
            f, *args = known[name]
            step = step_of(lib, lib.jit(f) if compiled and library == "lucid" else f, *args)
            turn(step, WARM_SECONDS, WARM_CALLS)
        print(json.dumps(turn(step, TURN_SECONDS)), flush=True)


class Peer:
    """A library at work in a process of its own."""

    def __init__(self, python: str, library: str, given: argparse.Namespace) -> None:
        command = [python, __file__, "--serve", library, "--threads", str(given.threads)]
        command += ["--compiled"] * given.compiled
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.names = self.answer()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def turn(self, name: str) -> tuple[float, float]:
        assert self.process.stdin is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return self.answer()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--peer", default=os.environ.get("BENCH_PYTHON", sys.executable))
    options.add_argument("--only", action="append", metavar="NAME")
    options.add_argument("--compiled", action="store_true")
    options.add_argument("--rounds", type=int, default=8)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--serve", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve:
        serve(given.serve, given.compiled, given.threads)
        return
    ours = Peer(sys.executable, "lucid", given)
    others = Peer(given.peer, "torch", given)
    print(f"{'µs (of it backward)':22}{'lucid':>18}{'torch':>18}{'ratio':>8}")
    for name in given.only or ours.names:
        turns = [(ours.turn(name), others.turn(name)) for _ in range(given.rounds)]
        best = [[min(t[i][part] for t in turns) for part in (0, 1)] for i in (0, 1)]
        cells = "".join(f"{both:10.0f}{f'({backward:.0f})':>8}" for both, backward in best)
        print(f"{name:22}{cells}{best[0][0] / best[1][0]:8.2f}", flush=True)


if __name__ == "__main__":
    main()
