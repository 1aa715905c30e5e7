"""What the examples share: their options, the handwritten digits, and where pictures go."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lucid

HERE = Path(__file__).resolve().parent


def options(doc: str | None, arguments: list[str] | None = None) -> argparse.Namespace:
    """The options that every example understands."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small configuration, in seconds")
    parser.add_argument("--eager", action="store_true", help="without lucid.jit")
    parser.add_argument("--out", type=Path, default=HERE / "pictures", help="folder for pictures")
    return parser.parse_args(arguments)


def digits(held_out: int = 360, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Images (n, 8, 8) of 0..1 and labels to learn from, then those that are held out."""
    with np.load(HERE / "data" / "digits.npz") as file:
        images, labels = file["images"], file["labels"]
    order = np.random.default_rng(seed).permutation(len(labels))
    x = lucid.tensor((images[order] / 16).astype(np.float32))
    y = lucid.tensor(labels[order].astype(np.int64))
    return x[held_out:], y[held_out:], x[:held_out], y[:held_out]


def seconds(run: Callable[[], Any]) -> tuple[Any, float]:
    """What `run` returns, and how long it took."""
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


def picture(file: Path, draw: Callable[[Any], None], size: tuple[float, float] = (6, 4)) -> None:
    """Let `draw(figure)` draw and save it, where matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print(f"no {file.name}: pictures need matplotlib")
        return
    figure = Figure(figsize=size, layout="constrained")
    draw(figure)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
    print(f"wrote {file}")
