"""A pure function of fixed arrays, called again and again: compiled, or eager in PyTorch.

Each takes `f` and its arguments as NumPy arrays and gives `step` and `result` as in `training`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def stepping(f: Callable[..., Any], args: Any) -> Any:
    """Steps that call a function; its results as a flat list of arrays."""
    out: Any = None

    def step() -> None:
        nonlocal out
        out = f(*args)

    def result() -> list[np.ndarray]:
        return [np.asarray(y) for y in (out if isinstance(out, (list, tuple)) else [out])]

    return step, result


def lucid(f: Callable[..., Any], args: Any) -> Any:
    import lucid
    from workloads.lucid_jit import jit

    return stepping(jit(f), converted(lucid.tensor, args))


def lucid_eager(f: Callable[..., Any], args: Any) -> Any:
    """Nothing compiled by the user; reading the result makes sure that it is computed."""
    import lucid

    def read(*args: Any) -> Any:
        out = f(*args)
        return [y.numpy() for y in out] if isinstance(out, (list, tuple)) else out.numpy()

    return stepping(read, converted(lucid.tensor, args))


def jax(f: Callable[..., Any], args: Any) -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    compiled = jax.jit(f)
    arrays = converted(jax.device_put, args)
    return stepping(lambda *args: jax.block_until_ready(compiled(*args)), arrays)


def torch(f: Callable[..., Any], args: Any) -> Any:
    import torch

    return stepping(f, converted(torch.tensor, args))


def torch_compile(f: Callable[..., Any], args: Any) -> Any:
    import torch

    return stepping(torch.compile(f), converted(torch.tensor, args))


def converted(convert: Callable[[np.ndarray], Any], args: Any) -> list[Any]:
    return [[convert(x) for x in a] if isinstance(a, list) else convert(a) for a in args]
