"""Random words for eager programs: plans of the same cipher kernel that compiled programs use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lucid.compiler.lowering.random.threefry import RandomWork
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import kernels_of
from lucid.ir.types import Type

UINT32 = np.dtype("uint32")


def build_draw(keys: tuple[int, ...], size: int) -> Callable[..., Any]:
    """Return the native function from keys and counters to (words,)."""
    builder = Builder()
    given = Type(UINT32, keys)
    made = Type(UINT32, (*keys[:-1], size))
    key, counter = (Array.of(builder.input(UINT32, keys), given) for _ in range(2))
    out = Array.of(builder.output(UINT32, made.shape), made)
    work = RandomWork(key, counter, out, size, "random_bits")
    work.add(builder, kernels_of(work.kernels()))
    return builder.build().run
