"""Forward and backward of factorizations against PyTorch and JAX: `python -m benchmarks.linalg`.

Each library runs in a process of its own, in turn; the table has the quickest of all runs in µs and
the ratio of Lucid's time to the better of the others. LUCID_BENCH_PYTHON names an interpreter that
has torch and jax.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import numpy as np

SHAPES = [(100, 8, 8), (64, 64), (256, 256)]
ROUNDS = 2


def inputs(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype("float32")
    n = shape[-1]
    steps = np.diag(np.linspace(1, 2 * n, n)).astype("float32")
    b = rng.standard_normal((*shape[:-1], 4)).astype("float32")
    return (x @ x.swapaxes(-1, -2)) / n + steps, b


def losses(linalg, b):
    """Scalar functions of a positive definite matrix with eigenvalues far apart."""
    w = b @ b.swapaxes(-1, -2)
    return {
        "cholesky": lambda a: (linalg.cholesky(a) ** 2).sum(),
        "solve": lambda a: (linalg.solve(a, b) ** 2).sum(),
        "inv": lambda a: (linalg.inv(a) ** 2).sum(),
        "slogdet": lambda a: linalg.slogdet(a)[1].sum(),
        "eigh": lambda a: weighted(linalg.eigh(a), w),
        "svd": lambda a: weighted(linalg.svd(a, full_matrices=False), w),
        "qr": lambda a: weighted(linalg.qr(a), w),
    }


def weighted(parts, w):
    """A loss of vectors and values that does not underflow."""
    return sum((part * (w if part.ndim == w.ndim else w[..., 0])).sum() for part in parts)


def lucid_steps(a, b):
    import lucid

    x = lucid.tensor(a)
    for name, loss in losses(lucid.linalg, lucid.tensor(b)).items():
        step = lucid.jit(lucid.func.value_and_grad(loss))
        yield name, lambda step=step: step(x)


def eager_steps(a, b):
    import lucid

    x = lucid.tensor(a, requires_grad=True)
    for name, loss in losses(lucid.linalg, lucid.tensor(b)).items():
        yield name, lambda loss=loss: backward(loss, x)


def torch_steps(a, b):
    import torch

    torch.set_num_threads(2)
    x = torch.from_numpy(a).requires_grad_()
    for name, loss in losses(torch.linalg, torch.from_numpy(b)).items():
        yield name, lambda loss=loss: backward(loss, x)


def backward(loss, x):
    x.grad = None
    loss(x).backward()


def jax_steps(a, b):
    import jax
    import jax.numpy as jnp

    x = jnp.asarray(a)
    for name, loss in losses(jnp.linalg, jnp.asarray(b)).items():
        step = jax.jit(jax.value_and_grad(loss))
        yield name, lambda step=step: jax.block_until_ready(step(x))


STEPS = {"lucid": lucid_steps, "eager": eager_steps, "torch": torch_steps, "jax": jax_steps}


def measure(library: str) -> dict[str, float]:
    found = {}
    for shape in SHAPES:
        for name, step in STEPS[library](*inputs(shape)):
            for _ in range(20):  # what is run 16 times is compiled
                step()
            best, end = float("inf"), time.perf_counter() + 0.15
            while time.perf_counter() < end:
                start = time.perf_counter()
                step()
                best = min(best, time.perf_counter() - start)
            found[f"{name} {'x'.join(map(str, shape))}"] = best * 1e6
    return found


def main() -> None:
    other = os.environ.get("LUCID_BENCH_PYTHON", sys.executable)
    best: dict[str, dict[str, float]] = {library: {} for library in STEPS}
    for _ in range(ROUNDS):
        for library in STEPS:
            python = sys.executable if library in ("lucid", "eager") else other
            command = [python, "-m", "benchmarks.linalg", library]
            run = subprocess.run(command, capture_output=True, text=True, check=True)
            for key, value in json.loads(run.stdout.splitlines()[-1]).items():
                best[library][key] = min(value, best[library].get(key, float("inf")))
    print(f"{'µs':24}{'lucid jit':>10}{'eager':>10}{'torch':>10}{'jax':>10}{'ratio':>8}")
    for key in best["lucid"]:
        row = [best[library][key] for library in STEPS]
        cells = "".join(f"{value:10.0f}" for value in row)
        print(f"{key:24}{cells}{row[0] / min(row[2:]):8.2f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
    else:
        main()
