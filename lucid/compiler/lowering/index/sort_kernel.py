"""Lowers sort, argsort and topk: rows are sorted by `native/sort.ll`, several rows at a time."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.compiler.kernels.scalar_code import BYTES, LLVM, STORED
from lucid.compiler.lowering.nest_builder import label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.plan.instructions import INLINE_NS
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime.kernel_table import TextKernel
from lucid.compiler.runtime.native_kernel import native_text
from lucid.ir.graph import Equation
from lucid.ir.types import SHORT_NAMES, Type
from lucid.support.caches import memoize

SHORT = 24  # rows up to this length are sorted by insertion
LONG_ROW = 1 << 16  # row length from which digits of 11 bits pay
NS = 12.0  # estimated, for an element
CHUNKS = 8
WORKSPACE = 1 << 24

FLOAT_KEY = """
  %zero = fcmp oeq $T %x, 0.0
  %plain = select i1 %zero, $T 0.0, $T %x
  %bits = bitcast $T %plain to $KEY
  %sign = ashr $KEY %bits, $LAST
  %flip = or $KEY %sign, $LOWEST
  %key = xor $KEY %bits, %flip
  %nan = fcmp uno $T %x, %x
  %found = select i1 %nan, $KEY -1, $KEY %key
  ret $KEY %found"""


def key_of(dtype: str) -> tuple[str, str]:
    """The integer type of a dtype's keys, and the lines that compute the key of an element."""
    element = STORED[dtype]
    width = 32 if BYTES[element] < 8 else 64
    key = f"i{width}"
    lowest = -(2 ** (8 * BYTES[element] - 1))
    if dtype in ("f32", "f64"):
        names = {"T": LLVM[dtype], "KEY": key, "LAST": width - 1, "LOWEST": lowest}
        return key, string.Template(FLOAT_KEY).substitute(names)
    lines = [f"  %turned = xor {element} %x, {lowest if dtype[0] == 'i' else 0}"]
    wide = element == key
    lines.append(f"  ret {key} %turned" if wide else f"  %wide = zext {element} %turned to {key}")
    return key, "\n".join(lines if wide else [*lines, f"  ret {key} %wide"])


def resized(how: str, source: str, target: str) -> str:
    """The body of a function that resizes its argument."""
    if source == target:
        return f"  ret {target} %x"
    return f"  %y = {how} {source} %x to {target}\n  ret {target} %y"


@memoize(maxsize=256)
def sort_kernel(dtype: str, axes: int) -> TextKernel:
    """The kernel that sorts rows of a dtype, over `axes` other axes."""
    name, (key, lines) = f"sort_{dtype}_{axes}", key_of(dtype)
    width = int(key[1:])
    names = {
        "NAME": name, "ELEMENT": STORED[dtype], "KEY": key, "WIDTH": width, "PAIR": f"i{2 * width}",
        "KEY_OF": lines, "SHORT": SHORT, "OFFSETS": offsets(axes), "AXES": axes,
        "NARROW": resized("trunc", "i64", key), "WIDEN": resized("zext", key, "i64"),
    }  # fmt: skip
    return TextKernel(name, native_text("sort.ll", **names))


def offsets(axes: int) -> str:
    """The lines that compute the offsets of a row, axis by axis from the last."""
    lines = [f"  %o{name}0 = add i64 0, 0" for name in "xiv"]
    for i in range(axes):
        word = 14 + 4 * i
        lines.append(f"  %n{i} = call i64 @word(ptr %args, i64 {word})")
        lines.append(f"  %at{i} = urem i64 %rest{i}, %n{i}")
        lines.append(f"  %rest{i + 1} = udiv i64 %rest{i}, %n{i}")
        for k, name in enumerate("xiv"):
            lines.append(f"  %s{name}{i} = call i64 @word(ptr %args, i64 {word + 1 + k})")
            lines.append(f"  %m{name}{i} = mul i64 %at{i}, %s{name}{i}")
            lines.append(f"  %o{name}{i + 1} = add i64 %o{name}{i}, %m{name}{i}")
    return "\n".join(lines)


@dataclass(eq=False)
class SortWork:
    """Sorts the rows along one axis of an array."""

    x: Array
    indices: Array
    values: Array | None
    axis: int
    wanted: int
    descending: bool
    by_index: bool
    space: Array
    chunks: int
    label: str

    @property
    def rows(self) -> list[tuple[int, int, int, int]]:
        """The size and the strides in x, indices and values of each other axis, from the last."""
        distances = zip(self.x.shape, *[a.strides for a in (self.x, self.indices, self.output)])
        found = [entry for i, entry in enumerate(distances) if i != self.axis and entry[0] != 1]
        return found[::-1]  # type: ignore[return-value]

    @property
    def output(self) -> Array:
        return self.indices if self.values is None else self.values

    @property
    def kernel(self) -> TextKernel:
        return sort_kernel(self.x.dtype, len(self.rows))

    def kernels(self) -> Sequence[Any]:
        return (self.kernel,)

    def add(self, builder: Builder, kernels: dict[Any, Any]) -> None:
        n, rows = self.x.shape[self.axis], self.rows
        extent = math.prod(size for size, *_ in rows)
        grain = math.ceil(extent / self.chunks)
        steps = [a.strides[self.axis] for a in (self.x, self.indices, self.output)]
        args: list[Any] = [self.x.address, self.indices.address]
        args += [0 if self.values is None else self.values.address, self.space.address]
        args += [n, self.wanted, *steps, -1 if self.descending else 0, int(self.by_index)]
        args += [digit_bits(n), grain, self.space.shape[-1]]
        args += [word for entry in rows for word in entry]
        kernel = kernels[self.kernel.key]
        builder.call(kernel, args, extent, NS * n + 50, grain, label=self.label)


def digit_bits(n: int) -> int:
    return 8 if n < LONG_ROW else 11


def workspace(dtype: str, n: int) -> int:
    """Bytes for sorting one row: two arrays of pairs, and the counts of every digit."""
    width, bits = (32 if BYTES[STORED[dtype]] < 8 else 64), digit_bits(n)
    counts = 4 * math.ceil(width / bits) << bits
    return -(-(2 * n * width // 4 + counts) // 64) * 64


class SortLowering:
    """Lowers sort: the sorted values, and their indices."""

    @staticmethod
    def order(op: Any, n: int) -> dict[str, Any]:
        """What is kept of the sorted elements, and in which order."""
        return {"wanted": n, "descending": op.descending, "by_index": False}

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        x = eqn.inputs[0].type
        return SHORT_NAMES[x.dtype] in LLVM and x.shape[eqn.op.axis] < 2**31  # type: ignore[attr-defined]

    @classmethod
    def lower(cls, layout: Any, eqn: Equation) -> list[SortWork]:
        op: Any = eqn.op
        x = layout.array(eqn.inputs[0])
        if not eqn.outputs[0].type.size:
            return []
        outs = [layout.array(var) for var in eqn.outputs]
        n = x.shape[op.axis]
        size = workspace(x.dtype, n)
        rows = x.type.size // n
        chunks = 1 if NS * x.type.size < INLINE_NS else min(rows, CHUNKS, max(2, WORKSPACE // size))
        space = layout.scratch(Type(np.dtype("uint8"), (chunks, size)))
        work = SortWork(
            x,
            indices=outs[-1],
            values=outs[0] if len(outs) == 2 else None,
            axis=op.axis,
            **cls.order(op, n),
            space=space,
            chunks=chunks,
            label=label_of(eqn),
        )
        return [work]


class TopKLowering(SortLowering):
    """Lowers topk: the first k of the sorted elements."""

    @staticmethod
    def order(op: Any, n: int) -> dict[str, Any]:
        return {"wanted": op.k, "descending": op.largest, "by_index": not op.sorted}
