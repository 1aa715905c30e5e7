"""Jacobians and Hessians: all unit seeds at once, in parts that fit into memory.

LUCID_JACOBIAN_BYTES bounds the memory for intermediate values, 1 GiB unless told.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

from lucid.errors import ArgumentError, DTypeError
from lucid.func.run import ArgNums, Run, choose
from lucid.ir.interpret import Runner
from lucid.ir.pytree import unflatten
from lucid.ir.source import at_line
from lucid.ir.types import is_differentiable
from lucid.ops.core.promote import as_tensor
from lucid.tape.node import residual, wrap
from lucid.tape.trace import function_name
from lucid.tape.views import tensor_of
from lucid.transforms.constants import filled, unit_rows
from lucid.transforms.prepare import Prepared, prepare
from lucid.transforms.vmap import Batched, batch_graph
from lucid.transforms.vmap import vmap as vmap_graph

JACOBIAN_BYTES = 1 << 30
PROGRAMS = 4  # kept for one derivative, each for another number of seeds


def batched_derivative(mode: str, run: Run, seeds: Sequence[Any], n: int) -> list[Any]:
    """The pullback or pushforward of `n` seeds at once, in axis 0 of their tensors (None: zero)."""
    prepared = prepare(mode, run.cut, [s is not None for s in seeds])
    derivative = prepared.derivative
    nodes = prepared.nodes(run.cut)
    chosen = [seeds[i] for i in derivative.seeds]
    if not run.record:
        arrays = [*map(residual, nodes), *[s.value for s in chosen], *derivative.constants]
        return derivative.spread([wrap(y) for y in program_for(prepared, n)(arrays)])
    inputs = [Batched(tensor_of(node), False) for node in nodes]
    inputs += [Batched(seed, True) for seed in chosen]
    inputs += [Batched(wrap(array), False) for array in derivative.constants]
    outs = vmap_graph(derivative.graph, n, inputs)
    full = [
        y.tensor if y.batched else as_tensor(y.tensor).expand((n, *y.tensor.shape)) for y in outs
    ]
    return derivative.spread(full)


def program_for(prepared: Prepared, n: int) -> Runner:
    """The derivative for `n` seeds at once, kept for the next time."""
    found = prepared.batched.get(n)
    if found is None:
        derivative = prepared.derivative
        flags = [False] * len(prepared.residuals) + [True] * len(derivative.seeds)
        flags += [False] * len(derivative.constants)
        if len(prepared.batched) >= PROGRAMS:
            prepared.batched.clear()
        found = prepared.batched[n] = Runner(batch_graph(derivative.graph, n, flags))
    return found


def rows_that_fit(mode: str, run: Run, n_seeds: int, total: int) -> int:
    """How many seeds at once stay within the bound of memory."""
    graph = prepare(mode, run.cut, [True] * n_seeds).derivative.graph
    return max(1, min(memory_bound() // max(most_alive(graph), 1), total))


def memory_bound() -> int:
    """The bytes that intermediate values may take: LUCID_JACOBIAN_BYTES, or 1 GiB."""
    text = os.environ.get("LUCID_JACOBIAN_BYTES", "").strip()
    if text and not text.isdecimal():
        raise ArgumentError(f"LUCID_JACOBIAN_BYTES={text!r}: a number of bytes is needed")
    return int(text) if text else JACOBIAN_BYTES


def check_chunk(what: str, chunk_size: Any) -> None:
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ArgumentError(
            f"{what}: chunk_size={chunk_size!r}; a positive integer, or None for as many as fit "
            f"into memory{at_line()}"
        )


def most_alive(graph: Any) -> int:
    """The greatest number of bytes that are needed at once to compute a Graph."""
    last: dict[Any, int] = {}
    for i, eqn in enumerate(graph.equations):
        last.update(dict.fromkeys(eqn.inputs, i))
    last.update(dict.fromkeys(graph.outputs, len(graph.equations)))
    alive = most = 0
    ends: dict[int, int] = {}
    for i, eqn in enumerate(graph.equations):
        for y in eqn.outputs:
            size = y.type.size * y.type.dtype.itemsize
            alive += size
            ends[last.get(y, i)] = ends.get(last.get(y, i), 0) + size
        most = max(most, alive)
        alive -= ends.pop(i, 0)
    return most


def jacobian_blocks(
    mode: str, run: Run, sources: Sequence[Any], targets: Sequence[Any], chunk_size: int | None
) -> list[list[Any]]:
    """For each target, for each source: d/d(source) with the source's axes in front."""
    sizes = [math.prod(s.shape) for s in sources]
    total = sum(sizes)
    step = chunk_size or rows_that_fit(mode, run, len(sources), total)
    rows: list[list[Any]] = [[] for _ in targets]
    for start in range(0, total, step):
        stop = min(start + step, total)
        seeds, offset = [], 0
        for source, size in zip(sources, sizes):
            seeds.append(unit_rows(source, offset, start, stop, run.tracing))
            offset += size
        outs = batched_derivative(mode, run, seeds, stop - start)
        for row, target, out in zip(rows, targets, outs):
            zeros = filled(0.0, (stop - start, *target.shape), target.dtype, run.tracing)
            row.append(zeros if out is None else out)
    blocks = []
    for row, target in zip(rows, targets):
        whole = row[0] if len(row) == 1 else concatenated(row, target)
        parts, offset = [], 0
        for source, size in zip(sources, sizes):
            part = whole if size == total else whole[offset : offset + size]
            parts.append(part.reshape(*source.shape, *target.shape))
            offset += size
        blocks.append(parts)
    return blocks


def concatenated(rows: Sequence[Any], target: Any) -> Any:
    from lucid.ops.shape.joining import cat

    return cat(rows, 0) if rows else filled(0.0, (0, *target.shape), target.dtype, False)


def jacrev(
    f: Callable[..., Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The Jacobian by reverse mode: one pullback of all unit cotangents at once.

    >>> import lucid
    >>> lucid.func.jacrev(lambda x: x * x)(lucid.tensor([1.0, 2.0]))
    Tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return run_jacobian(f, argnums, has_aux, chunk_size, args, kwargs, lambda run: "vjp")

    return wrapped


def jacfwd(
    f: Callable[..., Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The Jacobian by forward mode: one pushforward of all unit tangents at once."""

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return run_jacobian(f, argnums, has_aux, chunk_size, args, kwargs, lambda run: "jvp")

    return wrapped


def jacobian(
    f: Callable[..., Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    *,
    sparsity: Any = None,
) -> Callable[..., Any]:
    """The Jacobian, forward where there are fewer inputs than outputs, reverse otherwise.

    chunk_size    how many rows or columns at once; by default as many as fit into the memory bound
                  (LUCID_JACOBIAN_BYTES, 1 GiB)
    sparsity      "auto" finds which elements depend on which from the Graph, a SciPy sparse matrix
                  says it; the result is a SciPy sparse matrix then, from as few products as its
                  colours: one flat axis for all outputs, and one for the argument

    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0, 3.0])
    >>> lucid.func.jacobian(lambda x: x[1:] * x[:-1], sparsity="auto")(x).toarray()
    array([[2., 1., 0.],
           [0., 3., 2.]], dtype=float32)
    """
    if sparsity is not None:
        from lucid.func.sparse_jacobians import sparse_jacobian

        return sparse_jacobian(f, argnums, has_aux, chunk_size, sparsity)

    def mode(run: Run) -> str:
        n_in = sum(math.prod(x.shape) for x in run.inputs)
        n_out = sum(math.prod(y.shape) for y in run.outputs)
        return "jvp" if n_in < n_out else "vjp"

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return run_jacobian(f, argnums, has_aux, chunk_size, args, kwargs, mode)

    return wrapped


def run_jacobian(
    f: Callable[..., Any],
    argnums: ArgNums,
    has_aux: bool,
    chunk_size: int | None,
    args: Sequence[Any],
    kwargs: Any,
    mode_of: Callable[[Run], str],
) -> Any:
    run = checked_run(f, argnums, has_aux, chunk_size, args, kwargs)
    mode = mode_of(run)
    if mode == "vjp":
        by_input = jacobian_blocks(mode, run, run.outputs, run.inputs, chunk_size)
        table = [[by_input[i][o] for i in range(len(run.inputs))] for o in range(len(run.outputs))]
    else:
        by_output = jacobian_blocks(mode, run, run.inputs, run.outputs, chunk_size)
        table = [
            [axes_behind(block, x.ndim) for block, x in zip(row, run.inputs)] for row in by_output
        ]
    trees = []
    for row in table:
        tree = unflatten(run.in_tree, [run.released(block) for block in row])
        trees.append(tree[0] if isinstance(argnums, int) else tree)
    result = unflatten(run.out_tree, trees)
    return (result, run.release(run.aux)) if has_aux else result


def checked_run(
    f: Callable[..., Any], argnums: ArgNums, has_aux: bool, chunk_size: Any, args: Any, kwargs: Any
) -> Run:
    what = f"jacobian of {function_name(f)}"
    check_chunk(what, chunk_size)
    chosen, primals = choose(f, argnums, args, kwargs)
    run = Run(chosen, primals, what, has_aux)
    for y in run.outputs:
        if not is_differentiable(y.dtype):
            raise DTypeError(f"{what}: an output of dtype {y.dtype} has no derivative{at_line()}")
    return run


def axes_behind(block: Any, n: int) -> Any:
    """The first `n` axes moved to the end."""
    order = (*range(n, block.ndim), *range(n))
    return block.permute(order) if n and block.ndim > n else block


def hessian(
    f: Callable[..., Any],
    argnums: ArgNums = 0,
    chunk_size: int | None = None,
    *,
    sparsity: Any = None,
) -> Callable[..., Any]:
    """The matrix of second derivatives of a scalar function: forward mode over reverse mode.

    `chunk_size` and `sparsity` are those of `jacobian`.

    >>> import lucid
    >>> lucid.func.hessian(lambda x: (x ** 3).sum())(lucid.tensor([1.0, 2.0]))
    Tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    if sparsity is not None:
        return jacobian(jacrev(f, argnums), argnums, chunk_size=chunk_size, sparsity=sparsity)
    return jacfwd(jacrev(f, argnums), argnums, chunk_size=chunk_size)
