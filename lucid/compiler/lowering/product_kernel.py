"""product_kernel: a product of matrices in vectors of this CPU, with the arguments of BLAS's gemm.

The columns of B are taken in panels of a few vectors, which are packed side by side unless they are
dense and only a few rows read them. The sums of a block of A's rows with a panel stay in registers;
a block meets several short panels in a row, so that what it writes is contiguous.
Every number of the result is a sum in the order of the inner index, so its bits do not depend on
how a product is split into tiles, nor on the other rows and columns.
"""

from __future__ import annotations

from typing import NamedTuple

from lucid.compiler.lowering.conv.pack_operands import transpose
from lucid.compiler.lowering.llvm_builder import Int, LLVMBuilder, Pointer, Variable

PIECE = 512  # of the inner size: the sums of one piece after another are added to the result
NEAR_ROWS = 256  # of packed panels that stay in the nearest cache: several panels if they are short
FEW_ROWS = 24  # of A, for which a dense panel is not packed
WORDS = ("columns", "rows", "inner", "ldb", "lda", "ldc")
PARAMETERS = (
    "letter_b", "letter_a", "columns", "rows", "inner", "alpha", "b", "ldb", "a", "lda", "beta",
    "c", "ldc",
)  # fmt: skip


class Shape(NamedTuple):
    """Lanes of a vector, and the most rows and vectors of a block of sums."""

    lanes: int
    rows: int
    vectors: int

    @property
    def panel(self) -> int:
        """The columns of a panel."""
        return self.lanes * self.vectors


class Block(NamedTuple):
    """Rows of A, a panel of B and where their product is added; strides are in bytes."""

    a: Pointer
    b: Pointer
    c: Pointer
    row_a: Int
    step_a: Int
    step_b: Int
    row_c: Int
    rows: Int
    inner: Int
    columns: Int


def product_text(name: str, dtype: str, shape: Shape) -> str:
    """Return the LLVM IR of a function `name` that multiplies matrices of "f32" or "f64"."""
    return ProductWriter(name, dtype, shape).text()


class ProductWriter:
    """Writes the function and those of its blocks."""

    def __init__(self, name: str, dtype: str, shape: Shape) -> None:
        self.dtype, self.shape = dtype, shape
        self.element, self.size = ("float", 4) if dtype == "f32" else ("double", 8)
        self.vector = f"<{shape.lanes} x {self.element}>"
        parameters = ", ".join([f"ptr %{parameter}" for parameter in PARAMETERS])
        self.code = LLVMBuilder(name, parameters, is_public=True)

    def text(self) -> str:
        code, size, width = self.code, self.size, self.shape.panel
        n, m, k, ldb, lda, ldc = [code.load_int(Pointer(code, f"%{word}")) for word in WORDS]
        a, b, c = (Pointer(code, f"%{name}") for name in "abc")
        turned_a, turned_b = self.is_turned("a"), self.is_turned("b")
        row_a, step_a = self.strides(turned_a, lda * size)
        step_b, column_b = self.strides(turned_b, ldb * size)
        most = max(PIECE, NEAR_ROWS) * self.shape.vectors
        packed = code.alloca(f"[{most} x {self.vector}]")  # aligned: no load meets two lines
        few = m.icmp("slt", FEW_ROWS)
        is_dense = code.write(f"select i1 {turned_b}, i1 false, i1 {few}")  # and few rows read it
        piece = k.min(PIECE).max(1)
        together = code.select(is_dense, 1, (code.number(NEAR_ROWS) // piece).max(1))
        span = together * width
        with code.loop(0, n, span) as j, code.loop(0, k.max(1), piece) as p:
            inner, stop = (k - p).min(piece), (n - j).min(span)
            beta = self.factor(p)
            start, to = b.at(p * step_b).at(j * column_b), c.at(j * size)
            with code.loop(0, stop, width) as at:
                columns = (stop - at).min(width)
                with code.if_(self.is_packed(is_dense, columns)):
                    panel = packed.at(at * inner * size)
                    self.pack(start.at(at * column_b), step_b, column_b, panel, inner, columns)
            with code.loop(0, m, self.shape.rows) as i, code.loop(0, stop, width) as at:
                rows, columns = (m - i).min(self.shape.rows), (stop - at).min(width)
                is_packed = self.is_packed(is_dense, columns)
                panel = packed.at(at * inner * size)
                source = code.select_pointer(is_packed, panel, start.at(at * column_b))
                apart = code.select(is_packed, width * size, step_b)
                left = a.at(p * step_a).at(i * row_a)
                out = to.at(i * (ldc * size)).at(at * size)
                block = Block(
                    left, source, out, row_a, step_a, apart, ldc * size, rows, inner, columns
                )
                self.multiply(block, beta)
        return code.text()

    def factor(self, p: Int) -> str:
        """Return what the result is multiplied with before the sums from `p` on are added."""
        beta, e = self.number("beta"), self.element
        return self.code.write(f"select i1 {p.icmp('eq', 0)}, {e} {beta}, {e} 1.0")

    def is_packed(self, is_dense: str, columns: Int) -> str:
        """Return the i1 of whether a panel is packed; one that is not whole always is."""
        is_whole = columns.icmp("eq", self.shape.panel)
        return self.negated(self.code.write(f"and i1 {is_dense}, {is_whole}"))

    def is_turned(self, name: str) -> str:
        """Return the i1 of whether an operand is stored transposed."""
        letter = self.code.load("i8", Pointer(self.code, f"%letter_{name}"), 1)
        return self.code.write(f"icmp eq i8 {letter}, {ord('T')}")

    def strides(self, is_turned: str, leading: Int) -> tuple[Int, Int]:
        """Return the bytes from one row to the next, and from one column to the next."""
        code, size = self.code, self.size
        return code.select(is_turned, size, leading), code.select(is_turned, leading, size)

    def number(self, name: str) -> str:
        return self.code.load(self.element, Pointer(self.code, f"%{name}"), self.size)

    def negated(self, condition: str) -> str:
        return self.code.write(f"xor i1 {condition}, true")

    def pack(
        self, b: Pointer, step: Int, column: Int, panel: Pointer, inner: Int, columns: Int
    ) -> None:
        """Copy a panel of B to rows of full vectors, with zeros behind its columns."""
        code, size, lanes = self.code, self.size, self.shape.lanes
        apart = self.shape.panel * size
        is_dense = column.icmp("eq", size)
        with code.if_(is_dense):
            masks = self.masks(code, columns, self.shape.vectors)
            with code.loop(0, inner) as p:
                source, target = b.at(p * step), panel.at(p * apart)
                for v, mask in enumerate(masks):
                    x = self.masked_load(code, source.at(v * lanes * size), mask)
                    code.store(self.vector, x, target.at(v * lanes * size), size)
        with code.if_(self.negated(is_dense)):
            with code.loop(columns, self.shape.panel) as j, code.loop(0, inner) as p:
                code.store(self.element, "0.0", panel.at(p * apart + j * size), size)
            strides = (column, step)
            transpose(code, self.dtype, b, strides, panel, code.number(apart), columns, inner)

    def multiply(self, block: Block, beta: str) -> None:
        """Multiply rows of A with a panel."""
        code, alpha = self.code, self.number("alpha")
        kinds = ["ptr"] * 3 + ["i64"] * 7 + [self.element] * 2
        args = [*[x.name for x in block], alpha, beta]
        given = ", ".join([f"{kind} {x}" for kind, x in zip(kinds, args, strict=True)])
        needed = (block.columns + (self.shape.lanes - 1)) // self.shape.lanes
        for vectors in range(1, self.shape.vectors + 1):
            name = self.block_function(vectors)
            with code.if_(needed.icmp("eq", vectors)):
                code.line(f"call void @{name}({given})")

    def block_function(self, vectors: int) -> str:
        """Add the function that multiplies a few rows with a panel; return its name.

        Rows that A does not have are its last one, and are not stored.
        """
        name = f"{self.code.name}_{vectors}"
        pointers = [f"ptr %{x}" for x in Block._fields[:3]]
        integers = [f"i64 %{x}" for x in Block._fields[3:]]
        numbers = [f"{self.element} %alpha", f"{self.element} %beta"]
        code = self.code.inner(name, ", ".join([*pointers, *integers, *numbers]))
        a, b, c = (Pointer(code, f"%{x}") for x in Block._fields[:3])
        row_a, step_a, step_b, row_c, rows, inner, columns = (
            Int(code, f"%{x}") for x in Block._fields[3:]
        )
        size, lanes, most = self.size, self.shape.lanes, self.shape.rows
        sums = [[Variable(code, self.vector) for _ in range(vectors)] for _ in range(most)]
        for total in [total for row in sums for total in row]:
            total.set("zeroinitializer")
        starts = [a.at(row_a * (rows - 1).min(r)) for r in range(most)]
        with code.loop(0, inner) as p:
            along, source = p * step_a, b.at(p * step_b)
            ys = [code.load(self.vector, source.at(v * lanes * size), size) for v in range(vectors)]
            for row, start in zip(sums, starts):
                x = self.spread(code, code.load(self.element, start.at(along), size))
                for total, y in zip(row, ys):
                    total.set(self.multiply_add(code, x, y, total.get()))
        alpha, beta = self.spread(code, "%alpha"), self.spread(code, "%beta")
        reads = code.write(f"fcmp une {self.element} %beta, 0.0")
        is_whole = self.is_whole(code, rows, columns, vectors, reads)
        with code.if_(is_whole):
            for r, row in enumerate(sums):
                for v, total in enumerate(row):
                    result = code.write(f"fmul {self.vector} {total.get()}, {alpha}")
                    code.store(self.vector, result, c.at(row_c * r).at(v * lanes * size), size)
        with code.if_(code.write(f"xor i1 {is_whole}, true")):
            masks = self.masks(code, columns, vectors)
            done = code.alloca(f"[{most * vectors} x {self.vector}]")
            for n, number in enumerate([number for row in sums for number in row]):
                code.store(self.vector, number.get(), done.at(n * lanes * size), size)
            with code.loop(0, rows) as i:
                for v, mask in enumerate(masks):
                    at = c.at(row_c * i).at(v * lanes * size)
                    place = done.at((i * vectors + v) * (lanes * size))
                    plain = code.load(self.vector, place, size)
                    scaled = Variable(code, self.vector)
                    scaled.set(code.write(f"fmul {self.vector} {plain}, {alpha}"))
                    with code.if_(reads):  # else what stands there may be no number
                        before = self.masked_load(code, at, mask)
                        scaled.set(self.multiply_add(code, before, beta, scaled.get()))
                    self.masked_store(code, scaled.get(), at, mask)
        return name

    def is_whole(self, code: LLVMBuilder, rows: Int, columns: Int, vectors: int, reads: str) -> str:
        """Return the i1 of whether all sums of a block are results as they are."""
        has_rows = rows.icmp("eq", self.shape.rows)
        has_columns = columns.icmp("eq", vectors * self.shape.lanes)
        is_full = code.write(f"and i1 {has_rows}, {has_columns}")
        return code.write(f"and i1 {is_full}, {code.write(f'xor i1 {reads}, true')}")

    def masks(self, code: LLVMBuilder, columns: Int, vectors: int) -> list[str]:
        """Return which lanes of each vector are among the columns."""
        lanes = self.shape.lanes
        kind = f"<{lanes} x i64>"
        numbers = ", ".join([f"i64 {i}" for i in range(lanes)])
        found = []
        for v in range(vectors):
            left = (columns - v * lanes).name
            one = code.write(f"insertelement {kind} poison, i64 {left}, i32 0")
            zeros = f"<{lanes} x i32> zeroinitializer"
            limit = code.write(f"shufflevector {kind} {one}, {kind} poison, {zeros}")
            found.append(code.write(f"icmp slt {kind} <{numbers}>, {limit}"))
        return found

    def spread(self, code: LLVMBuilder, value: str) -> str:
        """Return a vector of one number."""
        one = code.write(f"insertelement {self.vector} poison, {self.element} {value}, i32 0")
        zeros = f"<{self.shape.lanes} x i32> zeroinitializer"
        return code.write(f"shufflevector {self.vector} {one}, {self.vector} poison, {zeros}")

    @property
    def suffix(self) -> str:
        return f"v{self.shape.lanes}{self.dtype}"

    def multiply_add(self, code: LLVMBuilder, x: str, y: str, z: str) -> str:
        args = ", ".join([f"{self.vector} {value}" for value in (x, y, z)])
        return code.call(f"llvm.fma.{self.suffix}", self.vector, args)

    def masked_load(self, code: LLVMBuilder, at: Pointer, mask: str) -> str:
        lanes = f"<{self.shape.lanes} x i1> {mask}"
        args = f"ptr {at.name}, i32 {self.size}, {lanes}, {self.vector} zeroinitializer"
        return code.call(f"llvm.masked.load.{self.suffix}.p0", self.vector, args)

    def masked_store(self, code: LLVMBuilder, value: str, at: Pointer, mask: str) -> None:
        lanes = f"<{self.shape.lanes} x i1> {mask}"
        args = f"{self.vector} {value}, ptr {at.name}, i32 {self.size}, {lanes}"
        code.call(f"llvm.masked.store.{self.suffix}.p0", "void", args)
