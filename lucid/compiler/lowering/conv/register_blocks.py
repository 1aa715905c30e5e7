"""The innermost loops of convolutions: blocks of results that stay in registers for a whole sum.

There are two kinds. In *row* blocks a vector holds adjacent positions and is multiplied by one
weight after another: for few results, and rows that fill vectors. In *panel* blocks a vector holds
adjacent results, packed side by side, and is multiplied by one position after another: positions
may lie anywhere, so that no row is too short, but results are stored one by one.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from lucid.compiler.lowering.conv.window_tiles import LANES, llvm_types, word_pointer
from lucid.compiler.lowering.llvm_builder import Int, LLVMBuilder, Pointer, Variable
from lucid.support.caches import once
from lucid.support.processor import features

ROWS_COST = 1.15  # cost of a product in row blocks, relative to panel blocks
WRITE_COST = 16  # cost of storing a single result, in products
FEW = 256  # positions below which several images are processed together


class Block(NamedTuple):
    """`rows` results by `columns` vectors of positions, or single positions for panels."""

    rows: int
    columns: int
    panels: bool = False

    def __str__(self) -> str:
        return f"{'panels' if self.panels else 'rows'}_{self.rows}_{self.columns}"


@once
def registers() -> int:
    """The number of sums that a kernel may hold, for 32 or 16 vector registers."""
    wide = ("AVX512VL", "AVX512_SKX", "ASIMD", "NEON")
    return 24 if any(features().get(name) for name in wide) else 12


def panel_lanes(dtype: str) -> int:
    """The lanes of the longest vectors; row blocks use shorter ones, which fit rows better."""
    return LANES[dtype] * (2 if features().get("AVX512F") else 1)


def choose_block(dtype: str, results: int, positions: int, vectors: int, terms: int) -> Block:
    """Choose the block with the least estimated work for an image of these sizes."""
    by_rows, rows, columns = choose_row_block(results, vectors)
    written = results * vectors
    by_rows = LANES[dtype] * by_rows * terms * ROWS_COST + written * WRITE_COST
    by_panels, m, n = choose_panel_block(dtype, results, positions)
    if by_panels * terms + results * positions * WRITE_COST < by_rows:
        return Block(m, n, True)
    return Block(rows, columns)


def choose_row_block(results: int, vectors: int) -> tuple[float, int, int]:
    """Return the cost of a term, and the sizes of the best row block."""
    most, found = registers(), []
    for rows in range(1, min(results, 8) + 1):
        for columns in range(1, min(most // rows, 8) + 1):
            done = -(-results // rows) * rows * (-(-vectors // columns) * columns)
            loads = (1 / rows + 1 / columns) / 2  # for each product
            idle = max(1.0, 8 / (rows * columns))  # latency of dependent sums
            found.append((done * max(idle, 0.75 + loads), -rows * columns, rows, columns))
    cost, _, rows, columns = min(found)
    return cost, rows, columns


def choose_panel_block(dtype: str, results: int, positions: int) -> tuple[float, int, int]:
    most, lanes, found = registers(), panel_lanes(dtype), []
    taken = positions * max(1, FEW // positions)
    for vectors in range(1, 7):
        for columns in range(1, min(most // vectors, 9) + 1):
            rows = vectors * lanes
            done = -(-results // rows) * rows * (-(-taken // columns) * columns) * positions / taken
            loads = 0.25 / columns + 0.1 / vectors
            idle = max(1.0, 5 / (vectors * columns))
            found.append((done * (idle + loads), -vectors * columns, rows, columns))
    cost, _, rows, columns = min(found)
    return cost, rows, columns


def block_bytes(dtype: str, block: Block) -> int:
    """The bytes of a block's sums."""
    return block.rows * block.columns * (llvm_types(dtype)[1] if block.panels else 32)


def alloca_sums(code: LLVMBuilder, dtype: str, block: Block) -> Pointer:
    return code.alloca(f"[{block_bytes(dtype, block) // 32} x <8 x float>]")


def multiply_rows(code: LLVMBuilder, dtype: str, block: Block) -> None:
    """Write a function that multiplies a block of weights with vectors of positions."""
    _, item, vector = llvm_types(dtype)
    names = ("weights", "local", "places", "offsets", "sums")
    inner = code.inner("multiply", ", ".join(f"ptr noalias %{n}" for n in names) + ", i64 %n")
    weights, local, positions, offsets, out = (Pointer(inner, f"%{n}") for n in names)
    begins = [local.at(inner.load_int(positions.at(j * 16))) for j in range(block.columns)]
    sums = [[Variable(inner, vector) for _ in begins] for _ in range(block.rows)]
    for each in itertools.chain.from_iterable(sums):
        each.set("zeroinitializer")
    with inner.loop(0, Int(inner, "%n")) as k:
        offset = inner.load_int(offsets.at(k * 8))
        xs = [inner.load(vector, begin.at(offset), item) for begin in begins]
        for i, row in enumerate(sums):
            address = weights.at(k * (block.rows * item)).at(i * item)
            w = splat(inner, dtype, LANES[dtype], address)
            for x, total in zip(xs, row):
                total.set(multiply_add(inner, vector, w, x, total.get()))
    store_sums(inner, vector, sums, out)


def multiply_panels(code: LLVMBuilder, dtype: str, block: Block, entry_bytes: int) -> Pointer:
    """Write a function that multiplies a panel with positions, `entry_bytes` apart in a table.

    Sums start with those at `start`; return a block of zeros for the first terms.
    """
    element, item, _ = llvm_types(dtype)
    lanes = panel_lanes(dtype)
    vector = f"<{lanes} x {element}>"
    names = ("panel", "local", "places", "offsets", "start", "sums")
    inner = code.inner("multiply", ", ".join(f"ptr %{n}" for n in names) + ", i64 %n")
    panel, local, positions, offsets, start, out = (Pointer(inner, f"%{n}") for n in names)
    vectors = range(block.rows // lanes)
    begins = [local.at(inner.load_int(positions.at(j * entry_bytes))) for j in range(block.columns)]
    sums = [[Variable(inner, vector) for _ in vectors] for _ in begins]
    for i, each in enumerate(itertools.chain.from_iterable(sums)):
        each.set(inner.load(vector, start.at(i * lanes * item), 32))
    with inner.loop(0, Int(inner, "%n")) as k:
        offset = inner.load_int(offsets.at(k * 8))
        term = panel.at(k * (block.rows * item))
        ws = [inner.load(vector, term.at(i * lanes * item), item) for i in vectors]
        for begin, column in zip(begins, sums):
            x = splat(inner, dtype, lanes, begin.at(offset))
            for w, total in zip(ws, column):
                total.set(multiply_add(inner, vector, w, x, total.get()))
    store_sums(inner, vector, sums, out, lanes * item)
    zeros = alloca_sums(code, dtype, block)
    for at in range(0, block_bytes(dtype, block), 32):
        code.store("<8 x float>", "zeroinitializer", zeros.at(at), 32)
    return zeros


def store_sums(
    inner: LLVMBuilder, vector: str, sums: list[list[Variable]], out: Pointer, nbytes: int = 32
) -> None:
    for i, total in enumerate(itertools.chain.from_iterable(sums)):
        inner.store(vector, total.get(), out.at(nbytes * i), 32)


def splat(code: LLVMBuilder, dtype: str, lanes: int, address: Pointer) -> str:
    element, item, _ = llvm_types(dtype)
    vector = f"<{lanes} x {element}>"
    one = code.load(element, address, item)
    first = code.write(f"insertelement {vector} poison, {element} {one}, i64 0")
    mask = f"<{lanes} x i32> zeroinitializer"
    return code.write(f"shufflevector {vector} {first}, {vector} poison, {mask}")


def multiply_add(code: LLVMBuilder, vector: str, x: str, y: str, total: str) -> str:
    product = code.write(f"fmul contract {vector} {x}, {y}")
    return code.write(f"fadd contract {vector} {total}, {product}")


def write_rows(
    code: LLVMBuilder,
    a: dict[str, Int],
    dtype: str,
    sums: Pointer,
    block: Block,
    dense: bool,
    out: Pointer,
    v: Int,
    m: Int,
) -> None:
    element, item, vector = llvm_types(dtype)
    positions, columns = word_pointer(code, a, "vector_table"), block.columns
    with code.loop(0, (a["results"] - m).min(block.rows)) as i, code.loop(0, columns) as j:
        total = sums.at((i * columns + j) * 32)
        target = out.at((m + i) * a["om"] + code.load_int(positions.at((v + j) * 16 + 8)))
        if dense:
            code.store(vector, code.load(vector, total, 32), target, item)
        else:
            with code.loop(0, a["lanes"]) as lane:
                one = code.load(element, total.at(lane * item), item)
                code.store(element, one, target.at(lane * a["o2"]), item)


def write_panels(
    code: LLVMBuilder,
    a: dict[str, Int],
    dtype: str,
    sums: Pointer,
    block: Block,
    out: Pointer,
    v: Int,
    m: Int,
) -> None:
    element, item, _ = llvm_types(dtype)
    positions = word_pointer(code, a, "vector_table").at(v * 16 + 8)
    targets = [out.at(code.load_int(positions.at(j * 16))) for j in range(block.columns)]
    with code.loop(0, (a["results"] - m).min(block.rows)) as i:
        row = (m + i) * a["om"]
        for j, target in enumerate(targets):
            one = code.load(element, sums.at((i + j * block.rows) * item), item)
            code.store(element, one, target.at(row), item)


def prefetch_panels(
    code: LLVMBuilder, a: dict[str, Int], block: Block, out: Pointer, v: Int, m: Int
) -> None:
    """Prefetch the memory of the results while they are computed."""
    positions = word_pointer(code, a, "vector_table").at(v * 16 + 8)
    ends = [out.at(code.load_int(positions.at(j * 16))) for j in (0, block.columns - 1)]
    with code.loop(0, (a["results"] - m).min(block.rows)) as i:
        for end in ends:
            at = end.at((m + i) * a["om"])
            code.call("llvm.prefetch.p0", "void", f"ptr {at.name}, i32 1, i32 3, i32 1")
