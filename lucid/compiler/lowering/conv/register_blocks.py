"""The innermost products of convolutions: blocks of results that stay in registers for a whole sum.

There are two kinds. Of *rows*, a vector holds neighbouring places and is multiplied by one weight
after the other: for few results, and rows that fill vectors. Of *panels*, a vector holds
neighbouring results, packed side by side, and is multiplied by one place after the other: places
lie as they like, so that no row is too short, but results are written apart from each other.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import NamedTuple

from lucid.compiler.lowering.conv.window_tiles import LANES, kinds, table
from lucid.compiler.lowering.loop_language import Int, Loops, Pointer, Variable

ROWS_COST = 1.15  # of a product by rows, where one by panels costs 1
WRITE_COST = 16  # of a result that is written alone, in products
FEW = 256  # places, below which those of several images are taken together


class Block(NamedTuple):
    """So many results by so many vectors of places, or by so many places if it is of panels."""

    rows: int
    columns: int
    panels: bool = False

    def __str__(self) -> str:
        return f"{'panels' if self.panels else 'rows'}_{self.rows}_{self.columns}"


@lru_cache(maxsize=1)
def features() -> dict[str, bool]:
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    return _multiarray_umath.__cpu_features__


@lru_cache(maxsize=1)
def registers() -> int:
    """How many sums a kernel may hold: 32 vector registers, or 16."""
    wide = ("AVX512VL", "AVX512_SKX", "ASIMD", "NEON")
    return 24 if any(features().get(name) for name in wide) else 12


def panel_lanes(dtype: str) -> int:
    """The longest vectors there are; rows use shorter ones, which fit them better."""
    return LANES[dtype] * (2 if features().get("AVX512F") else 1)


def block_of(dtype: str, results: int, places: int, vectors: int, terms: int) -> Block:
    """The block with as little as possible done for nothing, for images of so many places."""
    by_rows, rows, columns = rows_of(results, vectors)
    written = results * vectors
    by_rows = LANES[dtype] * by_rows * terms * ROWS_COST + written * WRITE_COST
    by_panels, m, n = panel_of(dtype, results, places)
    if by_panels * terms + results * places * WRITE_COST < by_rows:
        return Block(m, n, True)
    return Block(rows, columns)


def rows_of(results: int, vectors: int) -> tuple[float, int, int]:
    """The cost of a term, and the sizes of the block."""
    most, found = registers(), []
    for rows in range(1, min(results, 8) + 1):
        for columns in range(1, min(most // rows, 8) + 1):
            done = -(-results // rows) * rows * (-(-vectors // columns) * columns)
            loads = (1 / rows + 1 / columns) / 2  # for each product
            idle = max(1.0, 8 / (rows * columns))  # sums that wait for themselves
            found.append((done * max(idle, 0.75 + loads), -rows * columns, rows, columns))
    cost, _, rows, columns = min(found)
    return cost, rows, columns


def panel_of(dtype: str, results: int, places: int) -> tuple[float, int, int]:
    most, lanes, found = registers(), panel_lanes(dtype), []
    taken = places * max(1, FEW // places)
    for vectors in range(1, 7):
        for columns in range(1, min(most // vectors, 9) + 1):
            rows = vectors * lanes
            done = -(-results // rows) * rows * (-(-taken // columns) * columns) * places / taken
            loads = 0.25 / columns + 0.1 / vectors
            idle = max(1.0, 5 / (vectors * columns))
            found.append((done * (idle + loads), -vectors * columns, rows, columns))
    cost, _, rows, columns = min(found)
    return cost, rows, columns


def block_bytes(dtype: str, block: Block) -> int:
    """The memory of a block's sums."""
    return block.rows * block.columns * (kinds(dtype)[1] if block.panels else 32)


def sums_space(code: Loops, dtype: str, block: Block) -> Pointer:
    return code.space(f"[{block_bytes(dtype, block) // 32} x <8 x float>]")


def multiply_rows(code: Loops, dtype: str, block: Block) -> None:
    """The sums of products of a block of weights with some vectors of places."""
    _, item, vector = kinds(dtype)
    names = ("weights", "local", "places", "offsets", "sums")
    inner = code.inner("multiply", ", ".join(f"ptr noalias %{n}" for n in names) + ", i64 %n")
    weights, local, places, offsets, out = (Pointer(inner, f"%{n}") for n in names)
    begins = [local.at(inner.load_int(places.at(j * 16))) for j in range(block.columns)]
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
    keep(inner, vector, sums, out)


def multiply_panels(code: Loops, dtype: str, block: Block, apart: int) -> Pointer:
    """Sums over terms of a panel times single elements, of places `apart` bytes apart in a table.

    They begin with those at `start`; zeros for the first terms are what is returned.
    """
    element, item, _ = kinds(dtype)
    lanes = panel_lanes(dtype)
    vector = f"<{lanes} x {element}>"
    names = ("panel", "local", "places", "offsets", "start", "sums")
    inner = code.inner("multiply", ", ".join(f"ptr %{n}" for n in names) + ", i64 %n")
    panel, local, places, offsets, start, out = (Pointer(inner, f"%{n}") for n in names)
    vectors = range(block.rows // lanes)
    begins = [local.at(inner.load_int(places.at(j * apart))) for j in range(block.columns)]
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
    keep(inner, vector, sums, out, lanes * item)
    zeros = sums_space(code, dtype, block)
    for at in range(0, block_bytes(dtype, block), 32):
        code.store("<8 x float>", "zeroinitializer", zeros.at(at), 32)
    return zeros


def keep(
    inner: Loops, vector: str, sums: list[list[Variable]], out: Pointer, nbytes: int = 32
) -> None:
    for i, total in enumerate(itertools.chain.from_iterable(sums)):
        inner.store(vector, total.get(), out.at(nbytes * i), 32)


def splat(code: Loops, dtype: str, lanes: int, address: Pointer) -> str:
    element, item, _ = kinds(dtype)
    vector = f"<{lanes} x {element}>"
    one = code.load(element, address, item)
    first = code.write(f"insertelement {vector} poison, {element} {one}, i64 0")
    mask = f"<{lanes} x i32> zeroinitializer"
    return code.write(f"shufflevector {vector} {first}, {vector} poison, {mask}")


def multiply_add(code: Loops, vector: str, x: str, y: str, total: str) -> str:
    product = code.write(f"fmul contract {vector} {x}, {y}")
    return code.write(f"fadd contract {vector} {total}, {product}")


def write_rows(
    code: Loops,
    a: dict[str, Int],
    dtype: str,
    sums: Pointer,
    block: Block,
    dense: bool,
    out: Pointer,
    v: Int,
    m: Int,
) -> None:
    element, item, vector = kinds(dtype)
    places, columns = table(code, a, "vector_table"), block.columns
    with code.loop(0, (a["results"] - m).min(block.rows)) as i, code.loop(0, columns) as j:
        total = sums.at((i * columns + j) * 32)
        target = out.at((m + i) * a["om"] + code.load_int(places.at((v + j) * 16 + 8)))
        if dense:
            code.store(vector, code.load(vector, total, 32), target, item)
        else:
            with code.loop(0, a["lanes"]) as lane:
                one = code.load(element, total.at(lane * item), item)
                code.store(element, one, target.at(lane * a["o2"]), item)


def write_panels(
    code: Loops,
    a: dict[str, Int],
    dtype: str,
    sums: Pointer,
    block: Block,
    out: Pointer,
    v: Int,
    m: Int,
) -> None:
    element, item, _ = kinds(dtype)
    places = table(code, a, "vector_table").at(v * 16 + 8)
    targets = [out.at(code.load_int(places.at(j * 16))) for j in range(block.columns)]
    with code.loop(0, (a["results"] - m).min(block.rows)) as i:
        row = (m + i) * a["om"]
        for j, target in enumerate(targets):
            one = code.load(element, sums.at((i + j * block.rows) * item), item)
            code.store(element, one, target.at(row), item)


def expect_panels(
    code: Loops, a: dict[str, Int], block: Block, out: Pointer, v: Int, m: Int
) -> None:
    """Have the cache fetch where the results will be written, while they are computed."""
    places = table(code, a, "vector_table").at(v * 16 + 8)
    ends = [out.at(code.load_int(places.at(j * 16))) for j in (0, block.columns - 1)]
    with code.loop(0, (a["results"] - m).min(block.rows)) as i:
        for end in ends:
            at = end.at((m + i) * a["om"])
            code.call("llvm.prefetch.p0", "void", f"ptr {at.name}, i32 1, i32 3, i32 1")
