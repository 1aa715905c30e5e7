"""Lowers eigh, svd, eig and their values-only forms to LAPACK calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lucid.compiler.lowering.lapack.matrix_operands import (
    accepts,
    alloc_info,
    batch_size,
    check_info,
    copy_matrices,
    real_parts,
    transposed,
)
from lucid.compiler.lowering.nest_builder import NestWriter, label_of
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
from lucid.ops.linalg.matrices import real_dtype

Work = list[Any]
DUMMY_SIZE = 8  # elements of a dummy argument that is not written


class EighLowering:
    """The vectors of the conjugate of a Hermitian matrix, read by rows, are Vᴴ."""

    accepts = staticmethod(accepts)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        x, label = layout.array(eqn.inputs[0]), label_of(eqn)
        vectors = len(eqn.outputs) == 2
        values = layout.array(eqn.outputs[0])
        matrix = layout.array(eqn.outputs[1]) if vectors else layout.scratch(x.type)
        n, dtype = x.shape[-1], x.type.dtype
        name = prefix(dtype) + ("heevd" if dtype.kind == "c" else "syevd")
        job, real = "V" if vectors else "N", real_dtype(dtype).name
        after = 5 if dtype.kind == "c" else 3
        space = query_workspace(name, dtype.name, (job, "L", n, 0, n, 0), after)
        args: list[Any] = [job, "L", n, per_matrix(matrix), n, per_matrix(values, 1)]
        args += [Workspace(dtype.name, space), space]
        if dtype.kind == "c":
            size = 1 + 5 * n + 2 * n * n
            args += [Workspace(real, size), size]
        size = 3 + 5 * n
        info = alloc_info(layout, x.shape[:-2])
        args += [Workspace("int32", size), size, per_matrix(info, 0)]
        work: Work = copy_matrices(transposed(x), matrix, label, conjugate=True)
        flops = (9.0 if vectors else 3.0) * n**3
        work.append(call(layout, name, args, batch_size(x), flops, label))
        return [*work, *check_info(layout, eqn, info)]


class SvdLowering:
    """The left vectors of the transposed matrix, read by rows, are Vᴴ; the right ones are U."""

    accepts = staticmethod(accepts)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        x, label = layout.array(eqn.inputs[0]), label_of(eqn)
        outs = [layout.array(var) for var in eqn.outputs]
        vectors = len(outs) == 3
        values = outs[1] if vectors else outs[0]
        (m, n), dtype = x.shape[-2:], x.type.dtype
        k, real = min(m, n), real_dtype(dtype).name
        job = "N" if not vectors else "A" if eqn.op.full else "S"  # type: ignore[attr-defined]
        left, right = (n, outs[0].shape[-1]) if vectors else (n, k)
        name = prefix(dtype) + "gesdd"
        after = 3 if dtype.kind == "c" else 2
        space = query_workspace(name, dtype.name, (job, n, m, 0, n, 0, 0, left, 0, right), after)
        matrix = layout.scratch(x.type)
        none = layout.scratch(Type(dtype, (DUMMY_SIZE,)))
        u, vt = (
            (per_matrix(outs[2]), per_matrix(outs[0])) if vectors else (Operand(none.address),) * 2
        )
        args: list[Any] = [
            job,
            n,
            m,
            per_matrix(matrix),
            n,
            per_matrix(values, 1),
            u,
            left,
            vt,
            right,
        ]
        args += [Workspace(dtype.name, space), space]
        if dtype.kind == "c":
            high = max(m, n)
            args.append(Workspace(real, k * max(5 * k + 7, 2 * high + 2 * k + 1)))
        info = alloc_info(layout, x.shape[:-2])
        args += [Workspace("int32", 8 * k), per_matrix(info, 0)]
        flops = (20.0 if vectors else 5.0) * m * n * k
        work = [
            *copy_matrices(x, matrix, label),
            call(layout, name, args, batch_size(x), flops, label),
        ]
        return [*work, *check_info(layout, eqn, info)]


class EigLowering:
    """Copies the matrix to column-major order; real ones have real column pairs for conjugates."""

    accepts = staticmethod(accepts)

    @staticmethod
    def lower(layout: Any, eqn: Equation) -> Work:
        return Eigenvalues(layout, eqn).work()


class Eigenvalues:
    """Builds the work of one eig or eigvals equation."""

    def __init__(self, layout: Any, eqn: Equation) -> None:
        self.layout, self.eqn, self.label = layout, eqn, label_of(eqn)
        self.x = layout.array(eqn.inputs[0])
        self.n, self.dtype = self.x.shape[-1], self.x.type.dtype
        self.outer = self.x.shape[:-2]
        self.values = layout.array(eqn.outputs[0])
        self.vectors = layout.array(eqn.outputs[1]) if len(eqn.outputs) == 2 else None
        self.job = "N" if self.vectors is None else "V"

    def scratch(self, *shape: int) -> Array:
        return self.layout.scratch(Type(self.dtype, (*self.outer, *shape)))

    def work(self) -> Work:
        n, layout, x = self.n, self.layout, self.x
        matrix = self.scratch(n, n)
        info = alloc_info(layout, self.outer)
        # A row before and after, so that every column has neighbors to read.
        columns = self.scratch(n + 2, n) if self.vectors is not None else self.scratch(1, 1)
        apart = per_matrix(columns).stride
        first = replace(columns, offset=n) if self.vectors is not None else columns
        vectors = Operand(first.address, apart)
        if self.dtype.kind == "c":
            values: list[Any] = [per_matrix(self.values, 1)]
            rest: list[Any] = [Workspace(real_dtype(self.dtype).name, 2 * n)]
        else:
            halves = self.scratch(n), self.scratch(n)
            values, rest = [per_matrix(half, 1) for half in halves], []
        name = prefix(self.dtype) + "geev"
        asked = ("N", self.job, n, 0, n, *[0] * len(values), 0, n, 0, n)
        space = query_workspace(name, self.dtype.name, asked, 1 + len(rest))
        args: list[Any] = ["N", self.job, n, per_matrix(matrix), n, *values, vectors, n, vectors, n]
        args += [Workspace(self.dtype.name, space), space, *rest, per_matrix(info, 0)]
        flops = (25.0 if self.vectors is not None else 10.0) * n**3
        work: Work = copy_matrices(transposed(x), matrix, self.label)
        work.append(call(layout, name, args, batch_size(x), flops, self.label))
        work += check_info(layout, self.eqn, info)
        if self.dtype.kind == "c":
            return [*work, *(self.copied(first) if self.vectors is not None else [])]
        for half, part in zip(halves, real_parts(self.values)):
            work += copy_matrices(half, part, self.label)
        return [*work, *(self.joined(columns, halves[1]) if self.vectors is not None else [])]

    def rows(self, columns: Array, shift: int) -> Array:
        """The columns that LAPACK wrote, as rows of memory, or their neighbors."""
        start = columns.offset + self.n * (1 + shift)
        type = Type(self.dtype, (*self.outer, self.n, self.n))
        return Array(columns.ref, type, columns.strides, start)

    def copied(self, first: Array) -> Work:
        assert self.vectors is not None
        type = Type(self.dtype, (*self.outer, self.n, self.n))
        columns = Array(first.ref, type, first.strides, first.offset)
        return copy_matrices(transposed(columns), self.vectors, self.label)

    def joined(self, columns: Array, imaginary: Array) -> Work:
        """Combine the real columns v, w of a conjugate pair into v + iw and v - iw."""
        assert self.vectors is not None
        work: Work = []
        before, here, after = (transposed(self.rows(columns, shift)) for shift in (-1, 0, 1))
        for i, part in enumerate(real_parts(self.vectors)):
            writer = NestWriter(part.shape)
            dtype, outer = part.dtype, range(len(self.outer))
            zero = writer.value("const", dtype, param=0.0)
            size = writer.load(imaginary, (*outer, len(self.outer) + 1))
            second = writer.value("lt", "bool", size, zero)
            pair = writer.value("gt", "bool", size, zero)
            if i == 0:
                value = writer.value("where", dtype, second, writer.load(before), writer.load(here))
            else:
                minus = writer.value("neg", dtype, writer.load(here))
                value = writer.value("where", dtype, pair, writer.load(after), zero)
                value = writer.value("where", dtype, second, minus, value)
            writer.store(value, part)
            work += writer.work(self.label)
        return work
