"""BLAS and LAPACK as instructions of a plan: single-threaded calls in our thread pool.

`gemm(builder, ...)` adds a (batched) matrix product, split into tiles that depend on the sizes
alone; `fortran(builder, name, ...)` adds a call of any BLAS or LAPACK routine of SciPy's OpenBLAS,
which `openblas` opens.

On a CPU with AVX2 or AVX-512 the tiles are multiplied by code of ours (`lowering/product_kernel`):
it reaches 0.9 of the peak from 64 rows on, packs little where a product is small, and uses the
vectors of this CPU whatever OpenBLAS takes it for. Elsewhere OpenBLAS multiplies them.
"""

from __future__ import annotations

import contextlib
import math
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lucid.compiler.plan.instructions import Ref
from lucid.compiler.plan.plan import Builder
from lucid.compiler.runtime import native_kernel as kernel
from lucid.compiler.runtime.native_kernel import Kernel
from lucid.compiler.runtime.openblas import address
from lucid.support.caches import once
from lucid.support.locks import new_lock
from lucid.support.processor import features

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

TILE_ROWS, TILE_PRODUCTS = 240, 2**20  # rows of a tile at most, multiplications about
ROWS = 24  # a multiple of the rows that are multiplied together
PANEL_VECTORS = 2
CALL_NS = 100
_loading = new_lock()
GEMV_TILE_BYTES = 1 << 18
BYTES_PER_NS = 60.0
FLOPS_PER_NS = {"f4": 90.0, "f8": 45.0}

_PREFIXES = {"f4": "s", "f8": "d"}


class Tiling(NamedTuple):
    """Sizes of the tiles of a product, and of the pieces of its inner dimension."""

    rows: int
    columns: int
    piece: int


@dataclass(frozen=True)
class Product:
    """c = alpha a b + beta c for row-major a (m, k), b (k, n), c (m, n), or a batch of them.

    `transpose` says which of a and b are stored transposed; `leading` are the leading dimensions as
    stored, in elements; `strides` are those between matrices of a batch, in bytes; `scale` is
    (alpha, beta). A batch may consist of inner batches of `inner` matrices each, with
    `outer_strides` between them.
    """

    dtype: np.dtype
    m: int
    n: int
    k: int
    transpose: tuple[bool, bool] = (False, False)
    leading: tuple[int, int, int] | None = None
    scale: tuple[float, float] = (1.0, 0.0)
    batch: int = 1
    strides: tuple[int, int, int] = (0, 0, 0)
    inner: int = 0
    outer_strides: tuple[int, int, int] = (0, 0, 0)

    @property
    def batches(self) -> list[int]:
        """The arguments of a kernel for nested batches."""
        return [self.inner or self.batch, *self.outer_strides]

    @property
    def code(self) -> str:
        return np.dtype(self.dtype).str[1:]

    @property
    def row_strides(self) -> tuple[int, int, int]:
        transpose_a, transpose_b = self.transpose
        dense = (self.m if transpose_a else self.k, self.k if transpose_b else self.n, self.n)
        lda, ldb, ldc = self.leading or dense
        return max(lda, 1), max(ldb, 1), max(ldc, 1)


def gemm(
    builder: Builder,
    product: Product,
    a: Ref | int,
    b: Ref | int,
    c: Ref | int,
    label: str = "gemm",
) -> None:
    """Add a matrix product at the given addresses; nothing may overlap c."""
    if min(product.m, product.n, product.batch) == 0:
        return
    if product.k and product.n == 1:
        _add_gemv(builder, product, a, b, c, label)
    elif product.k and product.m == 1:
        _add_gemv(builder, _transposed(product), b, a, c, label)
    else:
        _add_gemm(builder, product, a, b, c, label)


def traffic_of(product: Product) -> tuple[int, int]:
    """The bytes of the three matrices, and the multiplications and additions."""
    m, n, k = product.m, product.n, product.k
    size = np.dtype(product.dtype).itemsize
    return product.batch * (m * k + k * n + m * n) * size, product.batch * 2 * m * n * k


def _add_gemm(
    builder: Builder, product: Product, a: Ref | int, b: Ref | int, c: Ref | int, label: str
) -> None:
    m, n, k, code = product.m, product.n, product.k, product.code
    tile = tiling(code, m, n, k)
    down, across = math.ceil(m / tile.rows), math.ceil(n / tile.columns)
    alpha, beta, one = (_bits(code, x) for x in (*product.scale, 1.0))
    args = [a, b, c, multiplier(code), m, n, k, *product.row_strides]
    args += [*map(int, product.transpose), alpha, beta, *product.strides]
    args += [tile.rows, tile.columns, down, across, tile.piece, one, *product.batches]
    flops = 2 * min(m, tile.rows) * min(n, tile.columns) * k
    cost = CALL_NS + flops / FLOPS_PER_NS[code]
    extent = product.batch * down * across
    name = f"gemm_{code}"
    builder.call(
        product_kernels()[name], args, extent, cost, label=label, traffic=traffic_of(product)
    )


def _add_gemv(
    builder: Builder, product: Product, a: Ref | int, b: Ref | int, c: Ref | int, label: str
) -> None:
    """Add c = alpha a b + beta c for n = 1."""
    m, k, code = product.m, product.k, product.code
    transpose_a, transpose_b = product.transpose
    lda, ldb, ldc = product.row_strides
    rows, columns = (k, m) if transpose_a else (m, k)
    size = np.dtype(product.dtype).itemsize
    least = 1024 if transpose_a else 16  # narrow columns would be read across all rows
    tile = min(m, max(least, math.ceil(GEMV_TILE_BYTES / (k * size) / 16) * 16))
    tiles = math.ceil(m / tile)
    alpha, beta = (_bits(code, x) for x in product.scale)
    args = [a, b, c, address(_PREFIXES[code] + "gemv"), rows, columns, lda, int(transpose_a)]
    args += [alpha, beta, 1 if transpose_b else ldb, ldc, *product.strides, tile, tiles]
    args += product.batches
    cost = CALL_NS + tile * k * size / BYTES_PER_NS
    name, extent = f"gemv_{code}", product.batch * tiles
    builder.call(
        product_kernels()[name], args, extent, cost, label=label, traffic=traffic_of(product)
    )


def _transposed(product: Product) -> Product:
    """The same product as c' = b' a', for m = 1: the result is then contiguous."""
    transpose_a, transpose_b = product.transpose
    lda, ldb, _ = product.row_strides
    stride_a, stride_b, stride_c = product.strides
    outer_a, outer_b, outer_c = product.outer_strides
    return replace(
        product,
        m=product.n,
        n=1,
        transpose=(not transpose_b, not transpose_a),
        leading=(ldb, lda, 1),
        strides=(stride_b, stride_a, stride_c),
        outer_strides=(outer_b, outer_a, outer_c),
    )


def tiling(code: str, m: int, n: int, k: int) -> Tiling:
    """Choose tiles from the sizes alone, so that no result depends on the number of threads."""
    k = max(k, 1)
    panel = panel_columns(code)
    if not panel:
        return Tiling(max(64, math.ceil(m / 8)), n if m >= 128 else 512, k)
    parts = max(1, math.ceil(m / TILE_ROWS))
    rows = min(m, math.ceil(m / parts / ROWS) * ROWS)
    return Tiling(rows, panel * max(1, TILE_PRODUCTS // (panel * k * max(rows, 1))), k)


def multiplier(code: str) -> int:
    """Return the address of what multiplies matrices: ours, or that of OpenBLAS."""
    if not panel_columns(code):
        return address(_PREFIXES[code] + "gemm")
    with _loading:
        return _multiplier(code).address


def panel_columns(code: str) -> int:
    """Return the columns that our products take at a time; 0 if OpenBLAS multiplies."""
    return PANEL_VECTORS * vector_lanes(code)


def vector_lanes(code: str) -> int:
    """Return the numbers of a vector with fused multiply-adds; 0 if this CPU has none of ours."""
    wide, middle = features().get("AVX512_SKX"), features().get("AVX2") and features().get("FMA3")
    return (64 if wide else 32 if middle else 0) // int(code[1:])


@once
def _multiplier(code: str) -> Kernel:
    from lucid.compiler.lowering.product_kernel import Shape, product_text

    name, lanes = f"multiply_{code}", vector_lanes(code)
    rows = 8 if features().get("AVX512_SKX") else 6  # that fit into 32 or 16 registers
    dtype = {"f4": "f32", "f8": "f64"}[code]
    text = product_text(name, dtype, Shape(lanes, rows, PANEL_VECTORS))
    return kernel.load([name], text, key=text.encode(), optimize=False)[name]


def fortran(
    builder: Builder,
    name: str,
    args: Sequence[Ref | int],
    strides: Sequence[int] | None = None,
    batch: int = 1,
    cost: float = 1000.0,
    label: str = "",
) -> None:
    """Add the call of a routine of BLAS or LAPACK, such as `dpotrf`, `batch` times.

    Every argument is an address, as in Fortran; `scalar` and `character` make those of constants.
    From one call of the batch to the next, argument i moves by strides[i] bytes. A batch may run
    in parallel, so everything it writes (also workspace and info) must move.
    """
    moves = strides or [0] * len(args)
    table = [address(name), *(word for pair in zip(args, moves, strict=True) for word in pair)]
    builder.call(_caller(len(args)), table, batch, cost, label=label or name)


def scalar(builder: Builder, value: object, dtype: DTypeLike = np.int32) -> int:
    """Return the address of a constant: a Fortran integer, or a number of another dtype."""
    return builder.constant(np.array(value, dtype))


def character(builder: Builder, value: str) -> int:
    """Return the address of a character, such as the uplo of dpotrf."""
    return builder.constant(np.frombuffer(value.encode(), np.uint8))


def _bits(code: str, value: float) -> int:
    """The bits of a number of the matrix type, in the low bytes of a word."""
    kinds = ("<f", "<i") if code == "f4" else ("<d", "<q")
    return struct.unpack(kinds[1], struct.pack(kinds[0], value))[0]


def gemm_epilogue() -> Kernel:
    """The kernel that multiplies a block of rows and runs another kernel on it right away."""
    return product_kernels()["gemm_epilogue"]


@once
def prepare(code: str) -> None:
    """Load what products of a dtype need on a thread, while other kernels are compiled."""
    name = f"lucid-compile-products-{code}"
    threading.Thread(target=_try_to_load, args=[code], name=name).start()


def _try_to_load(code: str) -> None:
    with contextlib.suppress(Exception):  # what needs them tries again, and raises the error
        multiplier(code)
        product_kernels()


def product_kernels() -> dict[str, Kernel]:
    """The kernels of `native/blas.ll`, by name; waits for the thread that loads them."""
    with _loading:
        return _kernels()


@once
def _kernels() -> dict[str, Kernel]:
    text = kernel.native_text("blas.ll")
    names = ["gemm_f4", "gemm_f8", "gemv_f4", "gemv_f8", "gemm_epilogue"]
    return kernel.load(names, text, key=text.encode(), optimize=False)


@once
def _caller(count: int) -> Kernel:
    """A kernel that calls a Fortran routine with `count` addresses, each with its stride."""
    text = _caller_text(count)
    return kernel.load(["fortran"], text, key=text.encode(), optimize=False)["fortran"]


def _caller_text(count: int) -> str:
    loads, moves = [], []
    for i in range(count):
        loads += [
            f"%p{i} = getelementptr i64, ptr %args, i64 {2 * i + 1}",
            f"%base{i} = load ptr, ptr %p{i}",
            f"%q{i} = getelementptr i64, ptr %args, i64 {2 * i + 2}",
            f"%stride{i} = load i64, ptr %q{i}",
        ]
        moves += [
            f"%offset{i} = mul i64 %unit, %stride{i}",
            f"%a{i} = getelementptr i8, ptr %base{i}, i64 %offset{i}",
        ]
    # The hidden lengths of CHARACTER arguments follow the others in Fortran's calling convention.
    arguments = ", ".join([f"ptr %a{i}" for i in range(count)] + ["i64 1"] * 3)
    return "\n".join(
        [
            "define void @fortran(ptr %args, i64 %lo, i64 %hi) nounwind {",
            "entry:",
            "%routine = load ptr, ptr %args",
            *loads,
            "br label %next",
            "next:",
            "%unit = phi i64 [ %lo, %entry ], [ %unit1, %run ]",
            "%more = icmp slt i64 %unit, %hi",
            "br i1 %more, label %run, label %done",
            "run:",
            *moves,
            f"call void %routine({arguments})",
            "%unit1 = add i64 %unit, 1",
            "br label %next",
            "done:",
            "ret void",
            "}",
        ]
    )
