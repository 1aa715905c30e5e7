"""cholesky, lu_factor, qr, permutation, and systems solved by factors, as calls of LAPACK."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.compiler.lowering.lapack.matrix_operands import (
    accepts,
    batch_of,
    checked,
    info_for,
    leading,
    move,
    number,
    parts,
    readable,
    turned,
    zeros,
)
from lucid.compiler.lowering.nest_builder import NestWriter, copy, label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.runtime.lapack import Operand, Space, best_space, call, each, prefix
from lucid.ir.graph import Equation
from lucid.ir.types import Type

Work = list[Any]
BLOCK = 64  # columns of one system that are solved together, where there are many


class CholeskyStep:
    """The Hermitian part's lower triangle goes to the result, where potrf works on it."""

    accepts = staticmethod(accepts)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        x, (out, info), label = layout.array(eqn.inputs[0]), outputs(layout, eqn), label_of(eqn)
        n, batch = x.shape[-1], batch_of(x)
        args = ["U", n, each(out), n, each(info, 0)]
        work: Work = move(x, out, label, "lower", hermitian=True)
        work.append(call(layout, prefix(x.type.dtype) + "potrf", args, batch, n**3 / 3, label))
        return [*work, *(checked(layout, eqn, info) if eqn.op.checked else [])]  # type: ignore[attr-defined]


def outputs(layout: Any, eqn: Equation) -> list[Array]:
    return [layout.array(var) for var in eqn.outputs]


class LuStep:
    """The transposed matrix goes to the result, which LAPACK reads as the matrix."""

    accepts = staticmethod(accepts)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        x, label = layout.array(eqn.inputs[0]), label_of(eqn)
        packed, pivots, info = outputs(layout, eqn)
        m, n = x.shape[-2:]
        args = [m, n, each(packed), m, each(pivots, 1), each(info, 0)]
        flops = m * n * min(m, n) * 2 / 3
        name = prefix(x.type.dtype) + "getrf"
        work = move(turned(x), packed, label)
        return [*work, call(layout, name, args, batch_of(x), flops, label)]


class PermutationStep:
    """0, 1, 2, ... with the pivots' exchanges, made by laswp on float64 numbers."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return eqn.inputs[0].type.size > 0

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        out, label = layout.array(eqn.outputs[0]), label_of(eqn)
        size, swaps = eqn.op.size, eqn.inputs[0].type.shape[-1]  # type: ignore[attr-defined]
        pivots, work = readable(layout, eqn.inputs[0], label, 1)
        rows = layout.scratch(Type(np.dtype("float64"), out.shape))
        writer = NestWriter(out.shape)
        count = writer.value("iota", "i64", param=len(out.shape) - 1)
        writer.store(writer.value("cast", "f64", count), rows)
        args = [1, each(rows, 1), size, 1, swaps, pivots, 1]
        exchange = call(layout, "dlaswp", args, batch_of(out, 1), 4.0 * size, label)
        back = NestWriter(out.shape)
        back.store(back.value("cast", "i64", back.load(rows)), out)
        return [*work, *writer.work(label), exchange, *back.work(label)]


class TriangularStep:
    """a x = b by rows is xᵀ aᵀ = bᵀ by columns: trsm from the right, on the result itself."""

    accepts = staticmethod(accepts)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        op: Any = eqn.op
        out, label = layout.array(eqn.outputs[0]), label_of(eqn)
        a, work = readable(layout, eqn.inputs[0], label)
        work += moved(layout, eqn.inputs[1], out, label)
        (n, k), dtype = out.shape[-2:], out.type.dtype
        uplo, trans = "L" if op.upper else "U", "C" if op.adjoint else "N"
        batch = batch_of(out)
        blocks = blocks_of(batch, k)
        wide = k // blocks
        b = each(out) if blocks == 1 else Operand(out.address, wide * dtype.itemsize)
        a = a if blocks == 1 else Operand(a.address)
        args = ["R", uplo, trans, "U" if op.unit else "N", wide, n, number(1, dtype), a, n, b, k]
        name = prefix(dtype) + "trsm"
        return [*work, call(layout, name, args, batch * blocks, float(n * n * wide), label)]


def blocks_of(batch: int, columns: int) -> int:
    """Into how many parts the columns of one system go, which threads then share."""
    if batch > 1 or columns < 2 * BLOCK:
        return 1
    return next((columns // size for size in range(BLOCK, 15, -1) if columns % size == 0), 1)


def moved(layout: Any, x: Any, target: Array, label: str) -> Work:
    """A Var copied to an array of the same shape."""
    if target.type.dtype.kind != "c":
        return copy(layout, x, target, label)
    return move(layout.array(x), target, label)


class LuSolveStep:
    """The right-hand side goes to columns, where getrs solves, and back to rows."""

    accepts = staticmethod(accepts)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        op: Any = eqn.op
        out, label = layout.array(eqn.outputs[0]), label_of(eqn)
        (n, k), dtype, batch = out.shape[-2:], out.type.dtype, batch_of(out)
        packed, copies = readable(layout, eqn.inputs[1], label)
        pivots, more = readable(layout, eqn.inputs[2], label, 1)
        work: Work = [*copies, *more]
        if op.checked:
            work += singular(layout, eqn, layout.array(eqn.inputs[1]))
        blocks = blocks_of(batch, k)
        if blocks > 1:
            packed, pivots = Operand(packed.address), Operand(pivots.address)
        columns = out if k == 1 else layout.scratch(Type(dtype, (*out.shape[:-2], k, n)))
        work += moved(layout, eqn.inputs[3], out if k == 1 else turned(columns), label)
        trans = "C" if op.adjoint else "N"
        info = info_for(layout, (batch * blocks,))
        wide = k // blocks
        part = Operand(columns.address, wide * n * dtype.itemsize)
        args = [trans, n, wide, packed, n, pivots, part, n, each(info, 0)]
        name, flops = prefix(dtype) + "getrs", 2.0 * n * n * wide
        work.append(call(layout, name, args, batch * blocks, flops, label))
        return work if k == 1 else [*work, *move(turned(columns), out, label)]


def singular(layout: Any, eqn: Equation, packed: Array) -> Work:
    """Note an error where a diagonal element is zero."""
    n = packed.shape[-1]
    type = Type(packed.type.dtype, packed.shape[:-1])
    strides = (*packed.strides[:-2], packed.strides[-1] + packed.strides[-2])
    diagonal = Array(packed.ref, type, strides, packed.offset)
    found = layout.scratch(Type(np.dtype("int32"), (*packed.shape[:-2], n)))
    writer = NestWriter(found.shape)
    zero = None
    for part in parts(diagonal):
        value = writer.load(part)
        none = writer.value("eq", "bool", value, writer.value("const", part.dtype, param=0.0))
        zero = none if zero is None else writer.value("bitwise_and", "bool", zero, none)
    assert zero is not None
    writer.store(writer.value("cast", "i32", zero), found)
    return [*writer.work(f"{eqn.op.name} check"), *checked(layout, eqn, found)]


class QrStep:
    """Of the transposed matrix it is the LQ: R = Lᵀ and Q by rows are what LAPACK leaves."""

    accepts = staticmethod(accepts)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        x, (q, r), label = layout.array(eqn.inputs[0]), outputs(layout, eqn), label_of(eqn)
        dtype, batch = x.type.dtype, batch_of(x)
        (m, n), wide = x.shape[-2:], q.shape[-1]
        k = min(m, n)
        kind = prefix(dtype)
        factors = layout.scratch(x.type)
        tau = layout.scratch(Type(dtype, (*x.shape[:-2], k)))
        info = info_for(layout, x.shape[:-2])
        space = best_space(kind + "gelqf", dtype.name, (n, m, 0, n, 0))
        args = [n, m, each(factors), n, each(tau, 1), Space(dtype.name, space), space]
        work: Work = move(x, factors, label)
        flops = 2.0 * m * n * k
        work.append(call(layout, kind + "gelqf", [*args, each(info, 0)], batch, flops, label))
        if k < r.shape[-2]:
            work += zeros(r, label)
        work += move(leading(factors, k, n), leading(r, k, n), label, "upper")
        work += move(leading(factors, m, k), leading(q, m, k), label)
        name = kind + ("unglq" if dtype.kind == "c" else "orglq")
        space = best_space(name, dtype.name, (wide, m, k, 0, wide, 0))
        args = [wide, m, k, each(q), wide, each(tau, 1), Space(dtype.name, space), space]
        work.append(call(layout, name, [*args, each(info, 0)], batch, 2.0 * m * wide * k, label))
        return work


class RefuseStep:
    """A copy, which notes an error where the condition holds."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return eqn.inputs[0].type.dtype.str[1:] in ("f4", "f8", "c8", "c16")

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        out, label = layout.array(eqn.outputs[0]), label_of(eqn)
        if not out.type.size:
            return []
        return [
            *moved(layout, eqn.inputs[0], out, label),
            *checked(layout, eqn, layout.array(eqn.inputs[1])),
        ]
