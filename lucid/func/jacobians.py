"""Jacobians and Hessians: all unit seeds at once, in chunks that fit into memory.

LUCID_JACOBIAN_BYTES bounds the memory for intermediate values, 1 GiB by default.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

from lucid.errors import ArgumentError, DTypeError
from lucid.func.numpy_results import at_positions, returns_numpy
from lucid.func.run import ArgNums, Run, argnums_partial
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.types import is_differentiable
from lucid.ops.core.kinds import conjugate
from lucid.ops.core.promote import as_tensor
from lucid.ops.shape.derivative_seeds import full_constant, unit_rows
from lucid.public.declare import public
from lucid.support.caches import memoize
from lucid.support.settings import setting
from lucid.tape.bind import without_gradient
from lucid.tape.node import residual, wrap
from lucid.tape.recording.trace import function_name, replay
from lucid.tape.tiering import TieredProgram
from lucid.tape.views import tensor_of
from lucid.transforms.prepare import Prepared, prepare
from lucid.transforms.vmap import batch_graph

MAX_BATCHED_PROGRAMS = 4  # cached for one derivative, one for each number of seeds

P = ParamSpec("P")


def batched_derivative(mode: str, run: Run, seeds: Sequence[Any], n: int) -> list[Any]:
    """Return the pullback or pushforward of `n` seeds, stacked in axis 0 (None: zero)."""
    prepared = prepare(mode, run.cut, [s is not None for s in seeds])
    derivative = prepared.derivative
    nodes = prepared.nodes(run.cut)
    chosen = [seeds[i] for i in derivative.seeds]
    if not run.record:
        arrays = [*map(residual, nodes), *[s.value for s in chosen], *derivative.constants]
        return derivative.with_zeros([wrap(y) for y in batched_program(prepared, n)(arrays)])
    residuals = [tensor_of(node) for node in nodes]
    if run.constant:
        residuals = [without_gradient(x) for x in residuals]
    constants = [wrap(array) for array in derivative.constants]
    outs = replay(batched_program(prepared, n).graph, [*residuals, *chosen, *constants])
    return derivative.with_zeros(outs)


def batched_program(prepared: Prepared, n: int) -> TieredProgram:
    """Return the cached program of the derivative for `n` seeds at once."""
    found = prepared.batched.get(n)
    if found is None:
        derivative = prepared.derivative
        flags = [False] * len(prepared.residuals) + [True] * len(derivative.seeds)
        flags += [False] * len(derivative.constants)
        if len(prepared.batched) >= MAX_BATCHED_PROGRAMS:
            prepared.batched.clear()
        found = prepared.batched[n] = TieredProgram(batch_graph(derivative.graph, n, flags))
    return found


def seeds_per_chunk(mode: str, run: Run, n_seeds: int, total: int) -> int:
    """Return how many seeds can be computed at once within the memory bound."""
    graph = prepare(mode, run.cut, [True] * n_seeds).derivative.graph
    return max(1, min(memory_bound() // max(peak_bytes(graph), 1), total))


def memory_bound() -> int:
    """Return the memory bound for intermediate values: LUCID_JACOBIAN_BYTES, or 1 GiB."""
    return setting("LUCID_JACOBIAN_BYTES")


def check_chunk(what: str, chunk_size: Any) -> None:
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ArgumentError(
            f"{what}: chunk_size={chunk_size!r} must be a positive integer, or None for as many as "
            "fit into memory"
        )


@memoize(maxsize=128)
def peak_bytes(graph: Any) -> int:
    """Return the peak number of bytes of live values while a Graph runs."""
    last: dict[Any, int] = {}
    for i, eqn in enumerate(graph.equations):
        last.update(dict.fromkeys(eqn.inputs, i))
    last.update(dict.fromkeys(graph.outputs, len(graph.equations)))
    live = peak = 0
    ends: dict[int, int] = {}
    for i, eqn in enumerate(graph.equations):
        for y in eqn.outputs:
            size = y.type.size * y.type.dtype.itemsize
            live += size
            ends[last.get(y, i)] = ends.get(last.get(y, i), 0) + size
        peak = max(peak, live)
        live -= ends.pop(i, 0)
    return peak


def jacobian_blocks(
    mode: str, run: Run, sources: Sequence[Any], targets: Sequence[Any], chunk_size: int | None
) -> list[list[Any]]:
    """Return, for each target and source, the derivative with the source's axes in front."""
    sizes = [math.prod(s.shape) for s in sources]
    total = sum(sizes)
    step = chunk_size or seeds_per_chunk(mode, run, len(sources), total)
    rows: list[list[Any]] = [[] for _ in targets]
    for start in range(0, total, step):
        stop = min(start + step, total)
        seeds, offset = [], 0
        for source, size in zip(sources, sizes):
            seeds.append(unit_rows(source, offset, start, stop, run.tracing))
            offset += size
        outs = batched_derivative(mode, run, seeds, stop - start)
        for row, target, out in zip(rows, targets, outs):
            if out is None:
                shape = (stop - start, *target.shape)
                out = full_constant(0.0, shape, target.dtype, run.tracing)
            row.append(out)
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

    return cat(rows, 0) if rows else full_constant(0.0, (0, *target.shape), target.dtype, False)


@public("func")
def jacrev(
    f: Callable[P, Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    *,
    holomorphic: bool = False,
    sparsity: Any = None,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of `f` by reverse mode.

    A complex function of complex arguments must be holomorphic (pass `holomorphic=True`);
    the result is its complex derivative. For a real function of complex arguments it is the
    gradient, as `grad` returns it. `chunk_size` and `sparsity` are as in `jacobian`.

    >>> import lucid
    >>> lucid.func.jacrev(lambda x: x * x)(lucid.tensor([1.0, 2.0]))
    Tensor([[2., 0.],
            [0., 4.]])
    """
    if sparsity is not None:
        from lucid.func.sparse.sparse_jacobians import sparse_jacobian

        return sparse_jacobian(f, argnums, has_aux, chunk_size, sparsity, "vjp", holomorphic)

    @returns_numpy(at_positions(argnums))
    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return run_jacobian(
            f, argnums, has_aux, chunk_size, args, kwargs, lambda run: "vjp", holomorphic
        )

    return wrapped


@public("func")
def jacfwd(
    f: Callable[P, Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    *,
    holomorphic: bool = False,
    sparsity: Any = None,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of `f` by forward mode.

    `chunk_size` and `sparsity` are as in `jacobian`, `holomorphic` is as in `jacrev`.
    """
    if sparsity is not None:
        from lucid.func.sparse.sparse_jacobians import sparse_jacobian

        return sparse_jacobian(f, argnums, has_aux, chunk_size, sparsity, "jvp", holomorphic)

    @returns_numpy(at_positions(argnums))
    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return run_jacobian(
            f, argnums, has_aux, chunk_size, args, kwargs, lambda run: "jvp", holomorphic
        )

    return wrapped


@public("func")
def jacobian(
    f: Callable[P, Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    chunk_size: int | None = None,
    *,
    sparsity: Any = None,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian by forward or reverse mode.

    Forward mode is used if there are fewer inputs than outputs.

    chunk_size    rows or columns to compute at once; by default as many as fit into the memory
                  bound (LUCID_JACOBIAN_BYTES, 1 GiB)
    sparsity      "auto" to derive the sparsity pattern from the Graph, or the pattern as a SciPy
                  sparse matrix; the result is then a SciPy sparse matrix (all outputs by all
                  inputs, flattened), computed with one product per color

    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0, 3.0])
    >>> lucid.func.jacobian(lambda x: x[1:] * x[:-1], sparsity="auto")(x).toarray()
    array([[2., 1., 0.],
           [0., 3., 2.]], dtype=float32)
    """
    if sparsity is not None:
        from lucid.func.sparse.sparse_jacobians import sparse_jacobian

        return sparse_jacobian(f, argnums, has_aux, chunk_size, sparsity)

    def mode(run: Run) -> str:
        if is_complex(run.inputs) != is_complex(run.outputs):
            return "vjp" if is_complex(run.inputs) else "jvp"
        n_in = sum(math.prod(x.shape) for x in run.inputs)
        n_out = sum(math.prod(y.shape) for y in run.outputs)
        return "jvp" if n_in < n_out else "vjp"

    @returns_numpy(at_positions(argnums))
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
    holomorphic: bool = False,
) -> Any:
    run = run_checked(f, argnums, has_aux, chunk_size, args, kwargs)
    if holomorphic and not all(x.dtype.kind == "c" for x in (*run.inputs, *run.outputs)):
        raise DTypeError(f"{run.what}: holomorphic=True needs complex arguments and results")
    mode = mode_of(run)
    check_complex(run, mode)
    if mode == "vjp":
        by_input = jacobian_blocks(mode, run, run.outputs, run.inputs, chunk_size)
        table = [
            [conjugate_block(by_input[i][o], y) for i in range(len(run.inputs))]
            for o, y in enumerate(run.outputs)
        ]
    else:
        by_output = jacobian_blocks(mode, run, run.inputs, run.outputs, chunk_size)
        table = [
            [move_axes_to_end(block, x.ndim) for block, x in zip(row, run.inputs)]
            for row in by_output
        ]
    trees = []
    for row in table:
        tree = unflatten(run.in_tree, [run.unwrap(block) for block in row])
        trees.append(tree[0] if isinstance(argnums, int) else tree)
    result = unflatten(run.out_tree, trees)
    return (result, run.unwrap_tree(run.aux)) if has_aux else result


def is_complex(xs: Sequence[Any]) -> bool:
    return any(x.dtype.kind == "c" for x in xs)


def check_complex(run: Run, mode: str) -> None:
    """Raise where unit seeds do not give a derivative: they are real numbers."""
    sources, targets = (run.inputs, run.outputs) if mode == "jvp" else (run.outputs, run.inputs)
    if not is_complex(sources) or all(x.dtype.kind == "c" for x in targets):
        return
    if mode == "vjp":
        facts = "reverse mode has no Jacobian of a complex output in a real input; use jacfwd"
    else:
        facts = "forward mode has no Jacobian of a real output in a complex input; use jacrev"
    raise DTypeError(f"{run.what}: {facts}")


def conjugate_block(block: Any, output: Any) -> Any:
    """Return a block of a Jacobian by reverse mode: cotangents carry conjugate derivatives."""
    return conjugate(block) if output.dtype.kind == "c" else block


def run_checked(
    f: Callable[..., Any], argnums: ArgNums, has_aux: bool, chunk_size: Any, args: Any, kwargs: Any
) -> Run:
    what = f"jacobian of {function_name(f)}"
    check_chunk(what, chunk_size)
    chosen, primals = argnums_partial(f, argnums, args, kwargs)
    run = Run(chosen, primals, what, has_aux)
    for y in run.outputs:
        if not is_differentiable(y.dtype):
            raise DTypeError(f"{what}: an output of dtype {y.dtype} has no derivative")
    return run


def move_axes_to_end(block: Any, n: int) -> Any:
    """Move the first `n` axes to the end."""
    order = (*range(n, block.ndim), *range(n))
    return block.permute(order) if n and block.ndim > n else block


@public("func")
def hessian(
    f: Callable[P, Any],
    argnums: ArgNums = 0,
    chunk_size: int | None = None,
    *,
    sparsity: Any = None,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the Hessian of a scalar function, forward over reverse.

    `chunk_size` and `sparsity` are as in `jacobian`.

    >>> import lucid
    >>> lucid.func.hessian(lambda x: (x ** 3).sum())(lucid.tensor([1.0, 2.0]))
    Tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    checked = holomorphic_or_real(f, argnums, has_aux)
    gradient = jacrev(checked, argnums, has_aux, holomorphic=holomorphic)
    if sparsity is not None:
        return jacobian(gradient, argnums, has_aux, chunk_size, sparsity=sparsity)
    return jacfwd(gradient, argnums, has_aux, chunk_size, holomorphic=holomorphic)


def holomorphic_or_real(
    f: Callable[..., Any], argnums: ArgNums, has_aux: bool = False
) -> Callable[..., Any]:
    """Return `f`, which raises for a real result of complex arguments: it has no Hessian."""

    @functools.wraps(f)
    def checked(*args: Any, **kwargs: Any) -> Any:
        result = f(*args, **kwargs)
        chosen = argnums_partial(f, argnums, args, kwargs)[1]
        inputs = [as_tensor(x) for x in flatten(chosen)[0]]
        outputs = [as_tensor(y) for y in flatten(result[0] if has_aux else result)[0]]
        if is_complex(inputs) and any(y.dtype.kind != "c" for y in outputs):
            raise DTypeError(
                f"hessian of {function_name(f)}: a real function of complex arguments has no "
                "complex Hessian; differentiate with respect to their view_as_real"
            )
        return result

    return checked
