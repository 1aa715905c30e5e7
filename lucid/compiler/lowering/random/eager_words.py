"""drawing: random words for eager programs, from the cipher that compiled ones use, as plans."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from lucid.compiler.lowering.random.threefry import RandomWork
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder, Plan
from lucid.compiler.runtime.kernel_table import kernels_of
from lucid.ir.types import Type

KEPT = 256  # plans: one for each number of words that is drawn again and again
SOON = 4  # draws of the same number of words after which a plan is made
LARGE = 4096  # words for which it pays at once

UINT32 = np.dtype("uint32")


class Words:
    """words(key, counter, size): random words for each key, None where NumPy is as quick."""

    def __init__(self) -> None:
        self.runs: OrderedDict[Any, Any] = OrderedDict()
        self.seen: dict[Any, int] = {}
        self.plan((2,), 2)

    def __call__(self, key: np.ndarray, counter: np.ndarray, size: int) -> np.ndarray | None:
        known = (size, key.shape)
        run = self.runs.get(known)
        if run is None:
            if not self.is_worth_it(known):
                return None
            run = self.runs[known] = self.plan(key.shape, size).run
            while len(self.runs) > KEPT:
                self.runs.popitem(last=False)
        found = run(key, counter)
        return None if found is None else found[0]

    def is_worth_it(self, known: Any) -> bool:
        size, keys = known
        if not size or 0 in keys:
            return False
        if len(self.seen) > 4 * KEPT:
            self.seen.clear()
        self.seen[known] = count = self.seen.get(known, 0) + 1
        return count >= SOON or size * keys[0] >= LARGE

    def plan(self, keys: tuple[int, ...], size: int) -> Plan:
        """Keys and counters in, words out."""
        builder = Builder()
        given = Type(UINT32, keys)
        made = Type(UINT32, (*keys[:-1], size))
        key, counter = (Array.of(builder.input(UINT32, keys), given) for _ in range(2))
        out = Array.of(builder.output(UINT32, made.shape), made)
        work = RandomWork(key, counter, out, size, "random_bits")
        work.add(builder, kernels_of(work.kernels()))
        return builder.build()
