"""Lowers cholesky, lu_factor, qr, permutation, and solves with factors to LAPACK calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.compiler.lowering.lapack.matrix_operands import (
    accepts,
    alloc_info,
    as_operand,
    batch_size,
    check_info,
    copy_matrices,
    fill_zeros,
    leading_block,
    real_parts,
    scalar,
    transposed,
)
from lucid.compiler.lowering.nest_builder import NestWriter, copy, label_of
from lucid.compiler.plan.arrays import Array
from lucid.compiler.runtime.lapack import (
    Operand,
    Workspace,
    call,
    per_matrix,
    prefix,
    query_workspace,
)
from lucid.ir.graph import Equation
from lucid.ir.types import Type

Work = list[Any]
BLOCK = 64  # right-hand sides of one system that are solved together, if there are many


class CholeskyLowering:
    """Copies the lower triangle to the result, where potrf factors it."""

    accepts = staticmethod(accepts)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        x, (out, info), label = layout.array(eqn.inputs[0]), outputs(layout, eqn), label_of(eqn)
        n, batch = x.shape[-1], batch_size(x)
        args = ["U", n, per_matrix(out), n, per_matrix(info, 0)]
        work: Work = copy_matrices(x, out, label, "lower")
        work.append(call(layout, prefix(x.type.dtype) + "potrf", args, batch, n**3 / 3, label))
        return [*work, *(check_info(layout, eqn, info) if eqn.op.checked else [])]  # type: ignore[attr-defined]


def outputs(layout: Any, eqn: Equation) -> list[Array]:
    return [layout.array(var) for var in eqn.outputs]


class LuFactorLowering:
    """Copies the transposed matrix to the result, which LAPACK reads as the matrix itself."""

    accepts = staticmethod(accepts)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        x, label = layout.array(eqn.inputs[0]), label_of(eqn)
        packed, pivots, info = outputs(layout, eqn)
        m, n = x.shape[-2:]
        args = [m, n, per_matrix(packed), m, per_matrix(pivots, 1), per_matrix(info, 0)]
        flops = m * n * min(m, n) * 2 / 3
        name = prefix(x.type.dtype) + "getrf"
        work = copy_matrices(transposed(x), packed, label)
        return [*work, call(layout, name, args, batch_size(x), flops, label)]


class PermutationLowering:
    """Applies the pivots' row swaps to 0, 1, 2, ... by laswp on float64 numbers."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return eqn.inputs[0].type.size > 0

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        out, label = layout.array(eqn.outputs[0]), label_of(eqn)
        size, swaps = eqn.op.size, eqn.inputs[0].type.shape[-1]  # type: ignore[attr-defined]
        pivots, work = as_operand(layout, eqn.inputs[0], label, 1)
        rows = layout.scratch(Type(np.dtype("float64"), out.shape))
        writer = NestWriter(out.shape)
        count = writer.value("iota", "i64", param=len(out.shape) - 1)
        writer.store(writer.value("cast", "f64", count), rows)
        args = [1, per_matrix(rows, 1), size, 1, swaps, pivots, 1]
        exchange = call(layout, "dlaswp", args, batch_size(out, 1), 4.0 * size, label)
        back = NestWriter(out.shape)
        back.store(back.value("cast", "i64", back.load(rows)), out)
        return [*work, *writer.work(label), exchange, *back.work(label)]


class TriangularSolveLowering:
    """Row-major a x = b is column-major xᵀ aᵀ = bᵀ: trsm from the right, in place in the result."""

    accepts = staticmethod(accepts)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        op: Any = eqn.op
        out, label = layout.array(eqn.outputs[0]), label_of(eqn)
        a, work = as_operand(layout, eqn.inputs[0], label)
        work += copy_operand(layout, eqn.inputs[1], out, label)
        (n, k), dtype = out.shape[-2:], out.type.dtype
        uplo, trans = "L" if op.upper else "U", "C" if op.adjoint else "N"
        batch = batch_size(out)
        blocks = blocks_of(batch, k)
        wide = k // blocks
        b = per_matrix(out) if blocks == 1 else Operand(out.address, wide * dtype.itemsize)
        a = a if blocks == 1 else Operand(a.address)
        args = ["R", uplo, trans, "U" if op.unit else "N", wide, n, scalar(1, dtype), a, n, b, k]
        name = prefix(dtype) + "trsm"
        return [*work, call(layout, name, args, batch * blocks, float(n * n * wide), label)]


def blocks_of(batch: int, columns: int) -> int:
    """Into how many blocks the right-hand sides of one system are split, for threads."""
    if batch > 1 or columns < 2 * BLOCK:
        return 1
    return next((columns // size for size in range(BLOCK, 15, -1) if columns % size == 0), 1)


def copy_operand(layout: Any, x: Any, target: Array, label: str) -> Work:
    """Copy a Var to an array of the same shape."""
    if target.type.dtype.kind != "c":
        return copy(layout, x, target, label)
    return copy_matrices(layout.array(x), target, label)


class LuSolveLowering:
    """Copies the right-hand side to column-major order for getrs, and the solution back."""

    accepts = staticmethod(accepts)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        op: Any = eqn.op
        out, label = layout.array(eqn.outputs[0]), label_of(eqn)
        (n, k), dtype, batch = out.shape[-2:], out.type.dtype, batch_size(out)
        packed, copies = as_operand(layout, eqn.inputs[1], label)
        pivots, more = as_operand(layout, eqn.inputs[2], label, 1)
        work: Work = [*copies, *more]
        if op.checked:
            work += check_singular(layout, eqn, layout.array(eqn.inputs[1]))
        blocks = blocks_of(batch, k)
        if blocks > 1:
            packed, pivots = Operand(packed.address), Operand(pivots.address)
        columns = out if k == 1 else layout.scratch(Type(dtype, (*out.shape[:-2], k, n)))
        work += copy_operand(layout, eqn.inputs[3], out if k == 1 else transposed(columns), label)
        trans = "C" if op.adjoint else "N"
        info = alloc_info(layout, (batch * blocks,))
        wide = k // blocks
        part = Operand(columns.address, wide * n * dtype.itemsize)
        args = [trans, n, wide, packed, n, pivots, part, n, per_matrix(info, 0)]
        name, flops = prefix(dtype) + "getrs", 2.0 * n * n * wide
        work.append(call(layout, name, args, batch * blocks, flops, label))
        return work if k == 1 else [*work, *copy_matrices(transposed(columns), out, label)]


def check_singular(layout: Any, eqn: Equation, packed: Array) -> Work:
    """Report an error if a diagonal element is zero."""
    n = packed.shape[-1]
    type = Type(packed.type.dtype, packed.shape[:-1])
    strides = (*packed.strides[:-2], packed.strides[-1] + packed.strides[-2])
    diagonal = Array(packed.ref, type, strides, packed.offset)
    found = layout.scratch(Type(np.dtype("int32"), (*packed.shape[:-2], n)))
    writer = NestWriter(found.shape)
    zero = None
    for part in real_parts(diagonal):
        value = writer.load(part)
        none = writer.value("eq", "bool", value, writer.value("const", part.dtype, param=0.0))
        zero = none if zero is None else writer.value("bitwise_and", "bool", zero, none)
    assert zero is not None
    writer.store(writer.value("cast", "i32", zero), found)
    return [*writer.work(f"{eqn.op.name} check"), *check_info(layout, eqn, found)]


class QrLowering:
    """Computes the LQ of the transposed matrix: R = Lᵀ, and Q is what LAPACK stores by rows."""

    accepts = staticmethod(accepts)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        x, (q, r), label = layout.array(eqn.inputs[0]), outputs(layout, eqn), label_of(eqn)
        dtype, batch = x.type.dtype, batch_size(x)
        (m, n), wide = x.shape[-2:], q.shape[-1]
        k = min(m, n)
        kind = prefix(dtype)
        factors = layout.scratch(x.type)
        tau = layout.scratch(Type(dtype, (*x.shape[:-2], k)))
        info = alloc_info(layout, x.shape[:-2])
        space = query_workspace(kind + "gelqf", dtype.name, (n, m, 0, n, 0))
        args = [
            n,
            m,
            per_matrix(factors),
            n,
            per_matrix(tau, 1),
            Workspace(dtype.name, space),
            space,
        ]
        work: Work = copy_matrices(x, factors, label)
        flops = 2.0 * m * n * k
        work.append(call(layout, kind + "gelqf", [*args, per_matrix(info, 0)], batch, flops, label))
        if k < r.shape[-2]:
            work += fill_zeros(r, label)
        work += copy_matrices(leading_block(factors, k, n), leading_block(r, k, n), label, "upper")
        work += copy_matrices(leading_block(factors, m, k), leading_block(q, m, k), label)
        name = kind + ("unglq" if dtype.kind == "c" else "orglq")
        space = query_workspace(name, dtype.name, (wide, m, k, 0, wide, 0))
        args = [
            wide,
            m,
            k,
            per_matrix(q),
            wide,
            per_matrix(tau, 1),
            Workspace(dtype.name, space),
            space,
        ]
        work.append(
            call(layout, name, [*args, per_matrix(info, 0)], batch, 2.0 * m * wide * k, label)
        )
        return work


class RefuseLowering:
    """Copies the operand, and reports an error where the condition holds."""

    @staticmethod
    def accepts(eqn: Equation) -> bool:
        return eqn.inputs[0].type.dtype.str[1:] != "f2"

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        out, label = layout.array(eqn.outputs[0]), label_of(eqn)
        if not out.type.size:
            return []
        return [
            *copy_operand(layout, eqn.inputs[0], out, label),
            *check_info(layout, eqn, layout.array(eqn.inputs[1])),
        ]
