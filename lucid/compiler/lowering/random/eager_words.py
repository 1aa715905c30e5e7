"""Random words for eager programs: plans of the same cipher kernel that compiled programs use."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from lucid.compiler.lowering.random.threefry import RandomWork
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.plan import Builder, Plan
from lucid.compiler.runtime.kernel_table import kernels_of
from lucid.ir.types import Type

MAX_PLANS = 256  # one plan for each number of words that is drawn repeatedly
COMPILE_AFTER = 4  # draws of the same number of words before a plan is built
COMPILE_WORDS = 4096  # words from which a plan pays at the first draw

UINT32 = np.dtype("uint32")


class Words:
    """words(key, counter, size): random words for each key, or None if NumPy is as fast."""

    def __init__(self) -> None:
        self.runs: OrderedDict[Any, Any] = OrderedDict()
        self.draws: dict[Any, int] = {}
        self.plan((2,), 2)

    def __call__(self, key: np.ndarray, counter: np.ndarray, size: int) -> np.ndarray | None:
        signature = (size, key.shape)
        run = self.runs.get(signature)
        if run is None:
            if not self.should_compile(signature):
                return None
            run = self.runs[signature] = self.plan(key.shape, size).run
            while len(self.runs) > MAX_PLANS:
                self.runs.popitem(last=False)
        found = run(key, counter)
        return None if found is None else found[0]

    def should_compile(self, signature: Any) -> bool:
        size, keys = signature
        if not size or 0 in keys:
            return False
        if len(self.draws) > 4 * MAX_PLANS:
            self.draws.clear()
        self.draws[signature] = count = self.draws.get(signature, 0) + 1
        return count >= COMPILE_AFTER or size * keys[0] >= COMPILE_WORDS

    def plan(self, keys: tuple[int, ...], size: int) -> Plan:
        """Build the plan from keys and counters to words."""
        builder = Builder()
        given = Type(UINT32, keys)
        made = Type(UINT32, (*keys[:-1], size))
        key, counter = (Array.of(builder.input(UINT32, keys), given) for _ in range(2))
        out = Array.of(builder.output(UINT32, made.shape), made)
        work = RandomWork(key, counter, out, size, "random_bits")
        work.add(builder, kernels_of(work.kernels()))
        return builder.build()
