"""Compiled = interpreted: the programs that are tried, and how close is equal.

A Job is a Graph with inputs. `compile_jobs` compiles the kernels of many together, which takes a
quarter of the time; `difference` says in words where the two results differ, "" where they do not.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import tests.cases
from lucid.compiler.lowering.lower import Executable, GraphLowering
from lucid.compiler.passes.pipeline import stages
from lucid.compiler.plan import verified
from lucid.compiler.runtime.kernel_table import kernels_of
from lucid.ir.graph import Graph, Literal
from lucid.ir.types import is_differentiable, type_of
from lucid.ops.core.kinds import Elementwise
from lucid.ops.higher_order import exactness
from lucid.ops.linalg.contraction import Matmul
from lucid.transforms.jvp import jvp
from lucid.transforms.vjp import vjp
from tests import laws
from tests.cases.case import Case

TOGETHER = 40  # kernels in one module


@dataclass(frozen=True)
class Job:
    label: str
    graph: Graph
    arrays: Sequence[np.ndarray]


def families() -> dict[str, list[Case]]:
    """The cases of tests/cases by the file that holds them."""
    modules = [m.name for m in pkgutil.iter_modules(tests.cases.__path__)]
    found = {name: importlib.import_module(f"tests.cases.{name}") for name in modules}
    return {name: module.CASES for name, module in found.items() if hasattr(module, "CASES")}


def jobs(cases: Iterable[Case], dtype: str) -> list[Job]:
    """The value, the vjp and the jvp of every case."""
    return [job for case in cases for job in jobs_of(case, dtype)]


def jobs_of(case: Case, dtype: str) -> Iterable[Job]:
    arrays = case.arrays(dtype)
    graph = laws.graph_of(case, arrays)
    yield Job(f"{case} {dtype}", graph, arrays)
    real = any(is_differentiable(var.type.dtype) for var in graph.inputs)
    if not (case.op.differentiable and real):
        return
    every = tuple(graph.vars())
    values = laws.run(Graph("all", graph.inputs, graph.equations, every), arrays)
    env = dict(zip(every, values))
    for transform, types in ((vjp, graph.out_types), (jvp, graph.in_types)):
        derivative = transform(graph, graph.inputs)
        seeds = laws.random_like(types, 1)
        residuals = [env[var] for var in derivative.residuals]
        chosen = [seeds[i] for i in derivative.seeds]
        inputs = [*residuals, *chosen, *derivative.constants]
        yield Job(f"{transform.__name__} of {case} {dtype}", derivative.graph, inputs)


def scaled(case: Case, elements: int) -> Case:
    """The case with every axis longer: its largest operand has at least so many elements."""
    largest = max(case.args, key=lambda arg: np.prod(arg.shape))
    axes = sum(n > 1 for n in largest.shape)
    factor = int(np.ceil((elements / np.prod(largest.shape)) ** (1 / axes)))
    longer = [tuple(n if n == 1 else n * factor for n in arg.shape) for arg in case.args]
    return replace(case, args=tuple(replace(a, shape=s) for a, s in zip(case.args, longer)))


def scalable(case: Case) -> bool:
    """True if the op takes operands of any size."""
    known = isinstance(case.op, (Elementwise, Matmul)) or case.op.monoid
    return known and any(min(a.shape, default=0) > 1 for a in case.args)


def compile_jobs(some: Sequence[Job]) -> list[Executable]:
    """Their Executables, with all kernels compiled a module for every TOGETHER of them."""
    lowerings = []
    for job in some:
        lowering = GraphLowering(stages(job.graph)["copies_inserted"])
        lowering.lay_out()
        lowerings.append(lowering)
    kernels = list({s.key: s for lowering in lowerings for s in lowering.kernel_sources()}.values())
    for i in range(0, len(kernels), TOGETHER):
        kernels_of(kernels[i : i + TOGETHER])
    return [lowering.finish() for lowering in lowerings]


def is_exact(graph: Graph) -> bool:
    """True if the result is determined to the bit."""
    return all(exactness.is_exact(eqn) for eqn in graph.equations)


def largest_sum(graph: Graph) -> int:
    """How many numbers are added at most to make one number of the result."""
    sizes = [1]
    for eqn in graph.equations:
        inside = max((x.type.size for x in eqn.inputs), default=0)
        outside = max(1, min((y.type.size for y in eqn.outputs), default=1))
        if isinstance(eqn.op, Matmul):
            inside, outside = eqn.inputs[0].type.shape[-1], 1
        if not isinstance(eqn.op, Elementwise) and not exactness.is_exact(eqn):
            sizes.append(max(inside // outside, 1))
    return int(np.prod([float(n) for n in sizes]))


def partial_sums(job: Job) -> float:
    """How large the partial sums of a Graph that is a sum are, whatever is left of them at the end.

    The result of 100,000 terms of both signs may be 1, and its error is that of numbers near 200.
    """
    if [eqn.op.monoid for eqn in job.graph.equations] != ["sum"]:
        return 0.0
    terms = np.abs(job.arrays[0].astype(np.complex128))
    finite = terms[np.isfinite(terms)]
    return float(np.sqrt(np.mean(finite**2) * largest_sum(job.graph))) if finite.size else 0.0


def rounded_to(graph: Graph) -> list[np.dtype | None]:
    """The coarsest dtype that anything inexact on the way to each result was rounded to."""
    found: dict[Any, np.dtype] = {}

    def coarsest(dtypes: Iterable[np.dtype | None]) -> np.dtype | None:
        return max([x for x in dtypes if x is not None], key=eps_of, default=None)

    for eqn in graph.equations:
        inside = [found.get(x) for x in eqn.inputs if not isinstance(x, Literal)]
        for y in eqn.outputs:
            is_rounded = y.type.dtype.kind in "fc" and not exactness.is_exact(eqn)
            found[y] = coarsest([*inside, y.type.dtype if is_rounded else None])
    return [None if isinstance(y, Literal) else found.get(y) for y in graph.outputs]


def eps_of(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).eps)


def difference(job: Job, got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> str:
    """In words, where two results differ by more than they may; "" where they agree."""
    if [type_of(x) for x in got] != [type_of(x) for x in want]:
        return f"types {[type_of(x) for x in got]}, not {[type_of(x) for x in want]}"
    exact, terms = is_exact(job.graph), largest_sum(job.graph)
    for i, (a, b, rounded) in enumerate(zip(got, want, rounded_to(job.graph), strict=True)):
        if exact or a.dtype.kind not in "fc":
            if not same_bits(a, b):
                return f"output {i} is not the same to the bit:\n{a}\n{b}"
            continue
        real = np.zeros((), rounded or a.dtype).real.dtype  # a result may have more digits
        finite = np.abs(b)[np.isfinite(b)]
        size = max(float(finite.max()) if finite.size else 0.0, partial_sums(job))
        eps = eps_of(real)
        rtol = verified.RTOL[real.name]
        close = np.isclose(a, b, rtol, rtol * 0.1 + eps * terms**0.5 * size, equal_nan=True)
        if not close.all():
            return f"output {i}, {np.count_nonzero(~close)} elements:\n{a[~close]}\n{b[~close]}"
    return ""


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal numbers with equal signs; nan equals nan."""
    if a.dtype.kind == "c":
        return same_bits(a.real, b.real) and same_bits(a.imag, b.imag)
    equal = np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if a.dtype.kind != "f" or not equal:
        return equal
    return bool(np.all((np.signbit(a) == np.signbit(b)) | np.isnan(a)))
