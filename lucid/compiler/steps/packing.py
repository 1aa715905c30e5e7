"""Weights as the kernels of convolutions read them: a block of rows side by side for every tap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lucid.compiler.arrays import Array
from lucid.compiler.kernels import TextKernel
from lucid.compiler.plan import Builder
from lucid.compiler.steps.loops import Loops
from lucid.compiler.steps.windows import kinds, shared_words

PACK_WORDS = (
    "source", "target", "blocks", "results", "channels", "k0", "k1", "k2",
    "sg", "sm", "sc", "s0", "s1", "s2",
)  # fmt: skip
PACK_NS = 0.7  # estimated, for an element


@lru_cache(maxsize=32)
def pack_kernel(dtype: str, rows: int) -> TextKernel:
    """Weights (G, M, C, three axes) as (G, blocks, C, three axes, rows); units are (g, block, c).

    The last block ends with copies of the last row, whose results nobody reads.
    """
    name = f"pack_{dtype}_{rows}"
    code = Loops(name)
    a = shared_words(code, PACK_WORDS)
    element, item, _ = kinds(dtype)
    taps = a["k0"] * a["k1"] * a["k2"]
    with code.loop(code.lo, code.hi) as unit:
        c, place = unit % a["channels"], unit // a["channels"]
        m, g = place % a["blocks"] * rows, place // a["blocks"]
        begin = code.pointer(0).at(g * a["sg"] + c * a["sc"])
        lines = [begin.at((m + i).min(a["results"] - 1) * a["sm"]) for i in range(rows)]
        target = code.pointer(1).at(unit * taps * (rows * item))
        with (
            code.loop(0, a["k0"]) as i,
            code.loop(0, a["k1"]) as j,
            code.loop(0, a["k2"]) as k,
        ):
            at = i * a["s0"] + j * a["s1"] + k * a["s2"]
            to = target.at(((i * a["k1"] + j) * a["k2"] + k) * (rows * item))
            for r, line in enumerate(lines):
                code.store(element, code.load(element, line.at(at), item), to.at(r * item), item)
    return TextKernel(name, code.text())


@dataclass(eq=False)
class PackWork:
    """Weights of this shape and these strides, in elements, laid out for `convolve_kernel`."""

    weights: Array
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    target: Array
    label: str

    @property
    def rows(self) -> int:
        return self.target.shape[-1]

    def kernels(self) -> Sequence[Any]:
        return (pack_kernel(self.weights.dtype, self.rows),)

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        g, m, c, *kernel = self.shape
        blocks, item = math.ceil(m / self.rows), self.weights.type.dtype.itemsize
        args = [self.weights.address, self.target.address, blocks, m, c, *kernel]
        args += [stride * item for stride in self.strides]
        cost = PACK_NS * self.rows * math.prod(kernel)
        (source,) = self.kernels()
        builder.call(kernels[source.key], args, g * blocks * c, cost, label=self.label)
