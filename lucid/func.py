"""Functional transforms in JAX's manner: grad, vjp, jvp, jacobians, vmap, to any depth and order.

Each runs the function on fresh inputs, cuts the Graph of what it did, transforms that, and replays
the result where an outer transform is watching. Arguments and results are pytrees.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from lucid.associative import associative_scan
from lucid.checkpoint import checkpoint, checkpoint_name, saved_residuals
from lucid.control import cond, fori_loop, map, scan, switch, while_loop
from lucid.errors import DTypeError, LucidError, ShapeError
from lucid.implicit import fixed_point, linear_solve, root
from lucid.ir.binding import fresh
from lucid.ir.cut import Cut
from lucid.ir.modes import local
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.sharing import node_of, storage_of, tensor_of
from lucid.ir.source import at_line
from lucid.ir.tape import TRACE, Traced, is_recording, residual, wrap
from lucid.ir.template import find_cut
from lucid.ir.tracing import function_name
from lucid.ir.types import is_differentiable
from lucid.mapping import vmap
from lucid.ops.promote import as_tensor, cast
from lucid.rules import custom_jvp, custom_vjp
from lucid.transforms.constants import filled, unit_rows, zeros_like
from lucid.transforms.differentiate import prepare, pullback, pushforward
from lucid.transforms.vmap import Batched
from lucid.transforms.vmap import vmap as vmap_graph

__all__ = [
    "associative_scan", "checkpoint", "checkpoint_name", "cond", "custom_jvp", "custom_vjp",
    "fixed_point", "fori_loop", "grad", "grad_and_value", "hessian", "hvp", "jacfwd", "jacobian",
    "jacrev", "jvp", "linear_solve", "linearize", "map", "root", "saved_residuals", "scan",
    "switch", "value_and_grad", "vjp", "vmap", "while_loop",
]  # fmt: skip

ArgNums = int | Sequence[int]


class Run:
    """One run of a function on fresh inputs: what it returned, and the Cut in between.

    inputs      the tensors it was called with, fresh
    outputs     the leaves of its result
    outer       flags of whatever outside was watching the arguments or captured values
    """

    def __init__(
        self, f: Callable[..., Any], primals: Sequence[Any], what: str, has_aux: bool = False
    ) -> None:
        self.what = what
        given, self.in_tree = flatten(tuple(primals))
        self.primals = [as_tensor(x) for x in given]
        check_differentiable(primals, what)
        self.inputs = [fresh(x) for x in self.primals]
        before = local.grad
        local.grad = True
        try:
            result = f(*unflatten(self.in_tree, self.inputs))
        finally:
            local.grad = before
        self.aux: Any = None
        if has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise LucidError(
                    f"{what}: with has_aux the function returns (output, aux){at_line()}"
                )
            result, self.aux = result
        leaves, self.out_tree = flatten(result)
        self.outputs = [as_tensor(y) for y in leaves]
        ends = [node_of(y) for y in self.outputs]
        self.cut: Cut = find_cut(ends, [node_of(x) for x in self.inputs])
        self.outer = 0
        for node in [x.node for x in self.primals] + [self.cut.slots[s] for s in self.cut.captured]:
            if node is not None:
                self.outer |= node.flags

    @property
    def record(self) -> bool:
        return (bool(self.outer) and local.grad) or self.tracing

    @property
    def tracing(self) -> bool:
        """True where an outer transform or recording wants every equation, constants too."""
        return bool(self.outer & TRACE) or is_recording()

    def zeros(self, x: Any) -> Any:
        return zeros_like(x, self.tracing)

    def release(self, tree: Any) -> Any:
        """Results as the caller may keep them: off this run's tape, on that of outer watchers."""
        leaves, structure = flatten(tree)
        return unflatten(structure, [self.released(x) for x in leaves])

    def released(self, x: Any) -> Any:
        if not isinstance(x, Traced) or x.node is None:
            return x
        if not self.record:
            if x.value is None:
                return x
            out = wrap(x.value)
            # a write to it is a write to what a pullback may have saved
            out.storage = storage_of(x)
            return out
        if not self.outer & TRACE:
            x.node.flags &= ~TRACE
        return x

    def result(self) -> Any:
        return self.release(unflatten(self.out_tree, self.outputs))

    def pull(self, cotangents: Sequence[Any]) -> list[Any]:
        """Cotangents of the inputs, zeros where an input was not used."""
        grads = pullback(self.cut, cotangents, self.record)
        return [
            self.zeros(x) if g is None else self.released(g) for x, g in zip(self.primals, grads)
        ]

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        """Tangents of the outputs, zeros where an output does not depend on the inputs."""
        ts = pushforward(self.cut, tangents, self.record)
        return [self.zeros(y) if t is None else self.released(t) for y, t in zip(self.outputs, ts)]


def check_differentiable(primals: Sequence[Any], what: str) -> None:
    """Refuse an argument without a derivative; integers beside floats in a pytree are constants."""
    for argument in primals:
        dtypes = [as_tensor(x).dtype for x in flatten(argument)[0]]
        if dtypes and not any(is_differentiable(dtype) for dtype in dtypes):
            raise DTypeError(
                f"{what}: an argument of dtype {dtypes[0]} has no derivative; pass floats, "
                f"or leave it out of argnums{at_line()}"
            )


def choose(
    f: Callable[..., Any], argnums: ArgNums, args: Sequence[Any], kwargs: Any
) -> tuple[Any, list[Any]]:
    """`f` as a function of the chosen arguments alone, and those arguments."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise LucidError(
                f"argnums {number} is out of range: {function_name(f)} was called with {len(args)} "
                f"positional arguments{at_line()}"
            )
    numbers = tuple(number % len(args) for number in numbers)

    def chosen(*values: Any) -> Any:
        full = list(args)
        for number, value in zip(numbers, values):
            full[number] = value
        return f(*full, **kwargs)

    return chosen, [args[number] for number in numbers]


def scalar_seed(run: Run) -> list[Any]:
    """The cotangent 1 of a function whose only output is one real number."""
    if len(run.outputs) != 1 or run.outputs[0].shape != ():
        types = ", ".join(str(y.type) for y in run.outputs)
        raise ShapeError(
            f"{run.what}: the function must return one scalar, not {types or 'nothing'}; "
            "sum() it, or use "
            f"vjp or jacrev{at_line()}"
        )
    dtype = run.outputs[0].dtype
    if dtype.kind != "f":
        raise DTypeError(
            f"{run.what}: the function must return a real floating number, not {dtype}{at_line()}"
        )
    return [filled(1.0, (), dtype, run.tracing)]


def grad_and_value(
    f: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns (gradient, value) of `f`; with has_aux (gradient, (value, aux))."""

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        chosen, primals = choose(f, argnums, args, kwargs)
        run = Run(chosen, primals, f"grad of {function_name(f)}", has_aux)
        grads = unflatten(run.in_tree, run.pull(scalar_seed(run)))
        grads = grads[0] if isinstance(argnums, int) else grads
        value = run.result()
        return (grads, (value, run.release(run.aux))) if has_aux else (grads, value)

    return wrapped


def grad(f: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient of a scalar function, as a function of the same arguments.

    >>> import lucid
    >>> lucid.func.grad(lambda x: (x ** 3).sum())(lucid.tensor([1.0, 2.0]))
    Tensor([ 3., 12.])
    """

    both = grad_and_value(f, argnums, has_aux)

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapped


def value_and_grad(
    f: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns (value, gradient) of `f`; with has_aux ((value, aux), gradient)."""
    both = grad_and_value(f, argnums, has_aux)

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        grads, value = both(*args, **kwargs)
        return value, grads

    return wrapped


def seeds_like(tree: Any, outputs: Sequence[Any], what: str, strict: bool = True) -> list[Any]:
    """Cotangents or tangents given as a pytree, checked against what they belong to."""
    leaves = flatten(tree)[0]
    if len(leaves) != len(outputs):
        raise ShapeError(f"{what}: {len(leaves)} arrays were given for {len(outputs)}{at_line()}")
    seeds: list[Any] = []
    for given, like in zip(leaves, outputs):
        if not is_differentiable(like.dtype):
            seeds.append(None)
            continue
        seed = cast(as_tensor(given), like.dtype)
        if seed.shape != like.shape:
            if seed.ndim:
                raise ShapeError(
                    f"{what}: shape {seed.shape} was given for {like.shape}{at_line()}"
                )
            seed = seed.expand(like.shape)
        seeds.append(seed)
    return seeds


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """(output, vjp_fn): the value of `f`, and the map from cotangents of it to those of `primals`.

    Without primals it is curried: `vjp(f)(*primals)`. vjp_fn gives a tuple, a cotangent each;
    with has_aux the result is (output, vjp_fn, aux).

    >>> import lucid
    >>> out, vjp_fn = lucid.func.vjp(lambda x: x * x, lucid.tensor([1.0, 2.0]))
    >>> vjp_fn(lucid.ones(2))
    (Tensor([2., 4.]),)
    """
    if not primals:
        return functools.partial(vjp, f, has_aux=has_aux)
    run = Run(f, primals, f"vjp of {function_name(f)}", has_aux)

    def vjp_fn(*cotangents: Any) -> Any:
        tree = cotangents[0] if len(cotangents) == 1 else cotangents
        seeds = seeds_like(tree, run.outputs, run.what)
        record = run.record or any(
            s is not None and s.node is not None and s.node.flags for s in seeds
        )
        grads = pullback(run.cut, seeds, record)
        grads = [run.zeros(x) if g is None else g for x, g in zip(run.primals, grads)]
        return unflatten(run.in_tree, [run.released(g) if not record else g for g in grads])

    out = run.result()
    return (out, vjp_fn, run.release(run.aux)) if has_aux else (out, vjp_fn)


def jvp(
    f: Callable[..., Any], primals: Any = None, tangents: Any = None, *, has_aux: bool = False
) -> Any:
    """(output, tangent of the output): forward mode, in one pass.

    Without primals it is curried: `jvp(f)(primals, tangents)`.

    >>> import lucid
    >>> lucid.func.jvp(lambda x: x * x, (lucid.tensor(3.0),), (lucid.tensor(1.0),))
    (Tensor(9.), Tensor(6.))
    """
    if primals is None:
        return functools.partial(jvp, f, has_aux=has_aux)
    if not isinstance(primals, (tuple, list)):
        primals, tangents = (primals,), (tangents,)
    run = Run(f, primals, f"jvp of {function_name(f)}", has_aux)
    seeds = seeds_like(tuple(tangents), run.inputs, run.what)
    for seed in seeds:
        if seed is not None and seed.node is not None:
            run.outer |= seed.node.flags
    result = unflatten(run.out_tree, run.push(seeds))
    out = run.result()
    return (out, result, run.release(run.aux)) if has_aux else (out, result)


def linearize(f: Callable[..., Any], *primals: Any) -> Any:
    """(output, jvp_fn): the value of `f`, and its derivative at `primals`, linear in tangents.

    >>> import lucid
    >>> out, push = lucid.func.linearize(lambda x: x * x, lucid.tensor([1.0, 3.0]))
    >>> push(lucid.ones(2))
    Tensor([2., 6.])
    """
    run = Run(f, primals, f"linearize of {function_name(f)}")

    def jvp_fn(*tangents: Any) -> Any:
        seeds = seeds_like(tangents, run.inputs, run.what)
        record = run.record or any(
            s is not None and s.node is not None and s.node.flags for s in seeds
        )
        ts = pushforward(run.cut, seeds, record)
        ts = [run.zeros(y) if t is None else t for y, t in zip(run.outputs, ts)]
        return unflatten(run.out_tree, [run.released(t) if not record else t for t in ts])

    return run.result(), jvp_fn


def batched_derivative(mode: str, run: Run, seeds: Sequence[Any], n: int) -> list[Any]:
    """The pullback or pushforward of `n` seeds at once, in axis 0 of their tensors (None: zero)."""
    prepared = prepare(mode, run.cut, [s is not None for s in seeds])
    nodes = prepared.nodes(run.cut)
    known = [tensor_of(node) if run.record else wrap(residual(node)) for node in nodes]
    inputs = [Batched(x, False) for x in known]
    inputs += [Batched(seeds[i], True) for i in prepared.derivative.seeds]
    inputs += [Batched(wrap(array), False) for array in prepared.derivative.constants]
    outs = vmap_graph(prepared.derivative.graph, n, inputs)
    full = [
        y.tensor if y.batched else as_tensor(y.tensor).expand((n, *y.tensor.shape)) for y in outs
    ]
    return prepared.derivative.spread(full)


def jacobian_blocks(
    mode: str, run: Run, sources: Sequence[Any], targets: Sequence[Any], chunk_size: int | None
) -> list[list[Any]]:
    """For each target, for each source: d/d(source) with the source's axes in front."""
    sizes = [math.prod(s.shape) for s in sources]
    total = sum(sizes)
    step = chunk_size or max(total, 1)
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
    from lucid.ops.joining import cat

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
) -> Callable[..., Any]:
    """The Jacobian, forward where there are fewer inputs than outputs, reverse otherwise."""

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
    chosen, primals = choose(f, argnums, args, kwargs)
    run = Run(chosen, primals, f"jacobian of {function_name(f)}", has_aux)
    for y in run.outputs:
        if not is_differentiable(y.dtype):
            raise DTypeError(
                f"{run.what}: an output of dtype {y.dtype} has no derivative{at_line()}"
            )
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


def axes_behind(block: Any, n: int) -> Any:
    """The first `n` axes moved to the end."""
    order = (*range(n, block.ndim), *range(n))
    return block.permute(order) if n and block.ndim > n else block


def hessian(
    f: Callable[..., Any], argnums: ArgNums = 0, chunk_size: int | None = None
) -> Callable[..., Any]:
    """The matrix of second derivatives of a scalar function: forward mode over reverse mode.

    >>> import lucid
    >>> lucid.func.hessian(lambda x: (x ** 3).sum())(lucid.tensor([1.0, 2.0]))
    Tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(f, argnums), argnums, chunk_size=chunk_size)


def hvp(f: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """The Hessian of a scalar function times `tangents`, without the Hessian itself.

    >>> import lucid
    >>> x, v = lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 1.0])
    >>> lucid.func.hvp(lambda x: (x ** 3).sum(), x, v)
    Tensor([ 6., 12.])
    """
    if not isinstance(primals, (tuple, list)):
        primals, tangents = (primals,), (tangents,)
    argnums: ArgNums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return jvp(grad(f, argnums), tuple(primals), tuple(tangents))[1]


def stop_gradient(x: Any) -> Any:
    """`x` as a constant for every derivative."""
    leaves, structure = flatten(x)
    return unflatten(structure, [as_tensor(leaf).detach() for leaf in leaves])


def __getattr__(name: str) -> Any:
    """What belongs to modules is loaded when it is first used."""
    if name in ("functional_call", "stack_module_state"):
        from lucid.nn import stateless

        return getattr(stateless, name)
    raise AttributeError(f"module 'lucid.func' has no attribute {name!r}")
