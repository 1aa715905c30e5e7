"""Lucid, JAX and PyTorch under the same names: array functions, transforms, control flow.

What an objective calls is the library's own wherever the names agree; the rest stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Library:
    """`lib.exp` and the like are those of `arrays`; everything in float64.

    compiled           a function as it is timed
    reverse_of_while   whether reverse mode goes through a while_loop
    """

    name: str
    arrays: Any
    array: Callable[[Any], Any]
    grad: Callable[..., Any]
    jvp: Callable[..., Any]
    jacfwd: Callable[..., Any]
    jacrev: Callable[..., Any]
    vmap: Callable[..., Any]
    cond: Callable[..., Any]
    scan: Callable[..., Any]
    while_loop: Callable[..., Any]
    compiled: Callable[..., Any]
    logsumexp: Callable[[Any, int], Any]
    sigmoid: Callable[[Any], Any]
    reverse_of_while: bool = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.arrays, name)

    def concatenate(self, parts: Any, axis: int = 0) -> Any:
        join = self.arrays.cat if hasattr(self.arrays, "cat") else self.arrays.concatenate
        return join(parts, axis)


def lucid() -> Library:
    import lucid
    from lucid import func as f

    return Library(
        "lucid", lucid, lambda x: lucid.tensor(np.asarray(x)), f.grad, f.jvp, f.jacfwd, f.jacrev,
        f.vmap, f.cond, f.scan, f.while_loop, lucid.jit, lucid.logsumexp, lucid.sigmoid,
    )  # fmt: skip


def jax() -> Library:
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")

    def compiled(f: Callable[..., Any]) -> Callable[..., Any]:
        jitted = jax.jit(f)
        return lambda *args: jax.block_until_ready(jitted(*args))

    return Library(
        "jax", jax.numpy, jax.numpy.asarray, jax.grad, jax.jvp, jax.jacfwd, jax.jacrev, jax.vmap,
        jax.lax.cond, jax.lax.scan, jax.lax.while_loop, compiled, jax.nn.logsumexp,
        jax.nn.sigmoid, reverse_of_while=False,
    )  # fmt: skip


def torch() -> Library:
    """PyTorch is eager: its control flow is Python's."""
    import torch
    from torch import func as f

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)

    def cond(pred: Any, true: Any, false: Any, *operands: Any) -> Any:
        return true(*operands) if pred else false(*operands)

    def scan(step: Any, carry: Any, xs: Any = None, length: int | None = None) -> Any:
        ys = []
        for i in range(len(xs) if length is None else length):
            carry, y = step(carry, None if xs is None else xs[i])
            ys.append(y)
        return carry, None if ys[0] is None else torch.stack(ys)

    def while_loop(going: Any, step: Any, value: Any) -> Any:
        while going(value):
            value = step(value)
        return value

    return Library(
        "torch", torch, lambda x: torch.as_tensor(np.asarray(x)), f.grad, f.jvp, f.jacfwd, f.jacrev,
        f.vmap, cond, scan, while_loop, lambda g: g, torch.logsumexp, torch.sigmoid,
    )  # fmt: skip


LIBRARIES = {"lucid": lucid, "jax": jax, "torch": torch}
