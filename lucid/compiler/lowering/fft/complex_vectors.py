"""Vectors of complex numbers in LLVM code: arithmetic, and the arrays that hold them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lucid.compiler.kernels.scalar_code import constant
from lucid.compiler.lowering.llvm_builder import Int, LLVMBuilder, Pointer

LANES = {"f32": 8, "f64": 4}
ELEMENT = {"f32": "float", "f64": "double"}
ITEM = {"f32": 4, "f64": 8}
DTYPE: dict[str, np.dtype] = {"f32": np.dtype("float32"), "f64": np.dtype("float64")}

Number = tuple[str, str]  # real and imaginary part, vectors of some width


class ConstantTable:
    """The constants of a kernel: the scale of its results, then roots of unity."""

    def __init__(self, scale: float) -> None:
        self.parts = [np.array([scale])]
        self.size = 1

    def add(self, numbers: np.ndarray) -> int:
        """Add complex numbers and return the offset of their real parts; imaginary ones follow."""
        offset, both = self.size, np.concatenate([numbers.real, numbers.imag])
        self.parts.append(both)
        self.size += both.size
        return offset

    def array(self, dtype: str) -> np.ndarray:
        return np.concatenate(self.parts).astype(DTYPE[dtype])


class VectorOps:
    """Emits operations on vectors of one element type into the code of a kernel."""

    def __init__(self, code: LLVMBuilder, dtype: str, table: Pointer) -> None:
        self.code, self.dtype, self.table = code, dtype, table
        self.element, self.item, self.lanes = ELEMENT[dtype], ITEM[dtype], LANES[dtype]

    def type(self, width: int) -> str:
        return self.element if width == 1 else f"<{width} x {self.element}>"

    def number(self, value: float, width: int) -> str:
        text = constant(value, self.dtype)
        return text if width == 1 else f"splat ({self.element} {text})"

    def do(self, op: str, width: int, a: str, b: str) -> str:
        return self.code.write(f"{op} contract {self.type(width)} {a}, {b}")

    def negate(self, width: int, a: str) -> str:
        return self.code.write(f"fneg {self.type(width)} {a}")

    def add(self, w: int, x: Number, y: Number) -> Number:
        return self.do("fadd", w, x[0], y[0]), self.do("fadd", w, x[1], y[1])

    def sub(self, w: int, x: Number, y: Number) -> Number:
        return self.do("fsub", w, x[0], y[0]), self.do("fsub", w, x[1], y[1])

    def multiply(self, w: int, x: Number, y: Number) -> Number:
        (a, b), (c, d) = x, y
        re = self.do("fsub", w, self.do("fmul", w, a, c), self.do("fmul", w, b, d))
        return re, self.do("fadd", w, self.do("fmul", w, a, d), self.do("fmul", w, b, c))

    def times_minus_i(self, w: int, x: Number) -> Number:
        """-i x."""
        return x[1], self.negate(w, x[0])

    def scale_by(self, w: int, x: Number, factor: float) -> Number:
        c = self.number(factor, w)
        return self.do("fmul", w, x[0], c), self.do("fmul", w, x[1], c)

    def shuffle(self, width: int, a: str, b: str, mask: Sequence[int]) -> str:
        t, positions = self.type(width), ", ".join(f"i32 {i}" for i in mask)
        return self.code.write(f"shufflevector {t} {a}, {t} {b}, <{len(mask)} x i32> <{positions}>")

    def splat(self, scalar: str, width: int) -> str:
        if width == 1:
            return scalar
        t = self.type(width)
        one = self.code.write(f"insertelement {t} poison, {self.element} {scalar}, i64 0")
        return self.code.write(
            f"shufflevector {t} {one}, {t} poison, <{width} x i32> zeroinitializer"
        )

    def load(self, pointer: Pointer, index: Int | int, width: int) -> str:
        at = pointer.at(self.code.number(index) * self.item)
        return self.code.load(self.type(width), at, self.item)

    def store(self, value: str, pointer: Pointer, index: Int | int, width: int) -> None:
        at = pointer.at(self.code.number(index) * self.item)
        self.code.store(self.type(width), value, at, self.item)

    def constants(self, offset: int, count: int, index: Int | int, width: int) -> Number:
        """Load adjacent complex constants of the table."""
        index = self.code.number(index)
        return (
            self.load(self.table, index + offset, width),
            self.load(self.table, index + (offset + count), width),
        )

    def factor(self, width: int) -> str:
        """The scale of the results, in all lanes."""
        return self.splat(self.load(self.table, 0, 1), width)

    def vector_loop(self, start: int, stop: int, body: Callable[[Int, int], None]) -> None:
        """Emit body(i, width) over adjacent numbers; the last vector may overlap the one before."""
        width = min(self.lanes, stop - start)
        if width <= 0:
            return
        rest = (stop - start) % width
        if stop - start == width:
            body(self.code.number(start), width)
            return
        with self.code.loop(start, stop - rest, width) as i:
            body(i, width)
        if rest:
            body(self.code.number(stop - width), width)


class SplitComplex:
    """Complex numbers with real and imaginary parts in separate arrays."""

    def __init__(self, vec: VectorOps, re: Pointer, im: Pointer) -> None:
        self.vec, self.re, self.im = vec, re, im

    def load(self, index: Int | int, width: int) -> Number:
        return self.vec.load(self.re, index, width), self.vec.load(self.im, index, width)

    def store(self, x: Number, index: Int | int, width: int) -> None:
        self.vec.store(x[0], self.re, index, width)
        self.vec.store(x[1], self.im, index, width)

    def swapped(self) -> SplitComplex:
        return SplitComplex(self.vec, self.im, self.re)


class InterleavedComplex:
    """Interleaved complex numbers, with the parts swapped on request; stores are scaled."""

    def __init__(self, vec: VectorOps, at: Pointer, swapped: bool = False) -> None:
        self.vec, self.at, self.swapped = vec, at, swapped

    def load(self, index: Int | int, width: int) -> Number:
        vec, first = self.vec, self.vec.code.number(index) * 2
        if width == 1:
            re, im = vec.load(self.at, first, 1), vec.load(self.at, first + 1, 1)
        else:
            both = vec.load(self.at, first, 2 * width)
            re = vec.shuffle(2 * width, both, both, range(0, 2 * width, 2))
            im = vec.shuffle(2 * width, both, both, range(1, 2 * width, 2))
        return (im, re) if self.swapped else (re, im)

    def store(self, x: Number, index: Int | int, width: int) -> None:
        vec, first = self.vec, self.vec.code.number(index) * 2
        scale = vec.factor(width)
        re, im = (vec.do("fmul", width, part, scale) for part in x)
        re, im = (im, re) if self.swapped else (re, im)
        if width == 1:
            vec.store(re, self.at, first, 1)
            vec.store(im, self.at, first + 1, 1)
            return
        mask = [j for i in range(width) for j in (i, i + width)]
        vec.store(vec.shuffle(width, re, im, mask), self.at, first, 2 * width)


class InterleavedColumns(InterleavedComplex):
    """Rows of `width` numbers that are `row_bytes` apart, with one transform per column."""

    def __init__(
        self, vec: VectorOps, at: Pointer, row_bytes: Int, width: int, swapped: bool = False
    ) -> None:
        super().__init__(vec, at, swapped)
        self.row_bytes, self.width = row_bytes, width

    def load(self, index: Int | int, width: int) -> Number:
        return InterleavedComplex(self.vec, self.row(index), self.swapped).load(0, width)

    def store(self, x: Number, index: Int | int, width: int) -> None:
        InterleavedComplex(self.vec, self.row(index), self.swapped).store(x, 0, width)

    def row(self, index: Int | int) -> Pointer:
        return self.at.at(self.vec.code.number(index) // self.width * self.row_bytes)


class RealNumbers:
    """Real numbers: loads have imaginary part zero, stores drop it."""

    def __init__(self, vec: VectorOps, at: Pointer) -> None:
        self.vec, self.at = vec, at

    def load(self, index: Int | int, width: int) -> Number:
        return self.vec.load(self.at, index, width), self.vec.number(0.0, width)

    def store(self, x: Number, index: Int | int, width: int) -> None:
        scale_by = self.vec.do("fmul", width, x[0], self.vec.factor(width))
        self.vec.store(scale_by, self.at, index, width)


# Small transforms
