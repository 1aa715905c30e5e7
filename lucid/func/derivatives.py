"""grad, vjp, jvp, linearize and hvp, as in JAX, nested to any depth and order.

Each runs the function on fresh inputs, extracts the Graph of that run from the tape, transforms it,
and records the result if an outer transform is active. Arguments and results are pytrees.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

from lucid.errors import DTypeError, GraphError, ShapeError
from lucid.func.numpy_results import at_positions, numpy_like, returns_numpy
from lucid.func.run import ArgNums, Run, argnums_partial
from lucid.ir.graph import Var
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.types import is_differentiable
from lucid.ops.core.arguments import public_function
from lucid.ops.core.kinds import conjugate
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.shape.derivative_seeds import full_constant
from lucid.tape.recording.trace import function_name, trace_types
from lucid.transforms.prepare import pullback, pushforward
from lucid.transforms.vjp import vjp as transposed


def scalar_seed(run: Run, holomorphic: bool = False) -> list[Any]:
    """Return the cotangent 1 for the only output, a scalar of the right kind, or raise an error."""
    if len(run.outputs) != 1 or run.outputs[0].shape != ():
        types = ", ".join(str(y.type) for y in run.outputs)
        raise ShapeError(
            f"{run.what}: the function must return one scalar, not {types or 'nothing'}; "
            "sum() it, or use vjp or jacrev"
        )
    if run.non_tensor_outputs:
        raise DTypeError(
            f"{run.what}: the function returned {run.non_tensor_outputs}, which has no "
            "gradient; return a tensor and avoid item() and numpy()"
        )
    dtype = run.outputs[0].dtype
    if holomorphic:
        for x in (*run.inputs, *run.outputs):
            if x.dtype.kind != "c":
                raise DTypeError(
                    f"{run.what}: holomorphic=True needs complex numbers, not {x.type}"
                )
    elif dtype.kind != "f":
        raise DTypeError(
            f"{run.what}: the function must return a real floating number, not {dtype}"
        )
    return [full_constant(1.0, (), dtype, run.tracing)]


P = ParamSpec("P")


@public_function("func")
def grad_and_value(
    f: Callable[P, Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[Any, Any]]:
    """Return a function that computes (gradient, value), or (gradient, (value, aux)).

    holomorphic    `f` is holomorphic, complex to complex; the result is its complex derivative
    allow_int      integer arguments get zero gradients, instead of raising an error
    """

    @returns_numpy(at_positions(argnums))
    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        chosen, primals = argnums_partial(f, argnums, args, kwargs)
        run = Run(chosen, primals, f"grad of {function_name(f)}", has_aux, allow_int)
        found = run.pull(scalar_seed(run, holomorphic))
        grads = unflatten(run.in_tree, [conjugate(g) for g in found] if holomorphic else found)
        grads = grads[0] if isinstance(argnums, int) else grads
        value = run.result()
        return (grads, (value, run.unwrap_tree(run.aux))) if has_aux else (grads, value)

    return wrapped


@public_function("func")
def grad(
    f: Callable[P, Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the gradient of the scalar function `f`.

    holomorphic    `f` is holomorphic, complex to complex; the result is its complex derivative
    allow_int      integer arguments get zero gradients, instead of raising an error

    As with every transform, NumPy arrays in give NumPy arrays out, if no argument to differentiate
    is a tensor.

    >>> import lucid, numpy as np
    >>> lucid.func.grad(lambda x: (x ** 3).sum())(lucid.tensor([1.0, 2.0]))
    Tensor([ 3., 12.])
    >>> lucid.func.grad(lambda x: (x ** 3).sum())(np.array([1.0, 2.0]))
    array([ 3., 12.])
    """

    both = grad_and_value(f, argnums, has_aux, holomorphic=holomorphic, allow_int=allow_int)

    @returns_numpy(at_positions(argnums))
    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapped


@public_function("func")
def value_and_grad(
    f: Callable[P, Any],
    argnums: ArgNums = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[Any, Any]]:
    """Return a function that computes (value, gradient), or ((value, aux), gradient)."""
    both = grad_and_value(f, argnums, has_aux, holomorphic=holomorphic, allow_int=allow_int)

    @returns_numpy(at_positions(argnums))
    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        grads, value = both(*args, **kwargs)
        return value, grads

    return wrapped


def seeds_like(tree: Any, structure: Any, outputs: Sequence[Any], what: str) -> list[Any]:
    """Return cotangents or tangents given as a pytree, checked against their primals.

    None in the place of an array is a zero.
    """
    seeds: list[Any] = []
    for given, like in zip(leaves_like(tree, structure, len(outputs), what), outputs):
        if given is None or not is_differentiable(like.dtype):
            seeds.append(None)
            continue
        seed = as_tensor(given)
        if seed.dtype.kind == "c" and like.dtype.kind != "c":
            raise DTypeError(
                f"{what}: got {seed.dtype} for an array of dtype {like.dtype}, where an imaginary "
                "part has no meaning; pass its .real"
            )
        seed = cast(seed, like.dtype)
        if seed.shape != like.shape:
            if seed.ndim:
                raise ShapeError(f"{what}: got shape {seed.shape}, expected {like.shape}")
            seed = seed.expand(like.shape)
        seeds.append(seed)
    return seeds


def leaves_like(tree: Any, structure: Any, n: int, what: str) -> list[Any]:
    """Return the leaves of a tree of a given structure.

    A list or a tuple may stand for a tuple of another class, an array for a tuple of one.
    """
    kind = structure.type
    if kind is not None and issubclass(kind, tuple):
        plain = type(tree) in (tuple, list) and len(tree) == structure.num_children
        parts = tree if plain else [tree] if structure.num_children == 1 else None
        if parts is not None and type(tree) is not kind:
            tree = tuple(parts) if kind is tuple else kind(*parts)
    try:
        leaves = structure.flatten_up_to(tree)
    except ValueError:
        leaves = [()]
    if not any(isinstance(x, (tuple, list, dict)) for x in leaves):
        return leaves
    given, found = flatten(tree)
    facts = f"got {len(given)} arrays, expected {n}"
    if len(given) == n:
        facts = f"got {shown_tree(found)}, expected {shown_tree(structure)}"
    raise ShapeError(f"{what}: {facts}")


def shown_tree(structure: Any) -> str:
    """Return the structure of a pytree as text, with * for each array."""
    return str(unflatten(structure, [Star()] * structure.num_leaves))


class Star:
    def __repr__(self) -> str:
        return "*"


def flags_of_seeds(seeds: Sequence[Any]) -> int:
    """Return which transforms track any of the cotangents or tangents."""
    flags = 0
    for seed in seeds:
        if seed is not None and seed.node is not None:
            flags |= seed.node.flags
    return flags


@public_function("func")
def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return (output, vjp_fn); `vjp_fn` maps cotangents of the output to those of `primals`.

    Without primals it is curried: `vjp(f)(*primals)`. vjp_fn returns a tuple with a cotangent for
    each primal. With has_aux the result is (output, vjp_fn, aux).

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
        seeds = seeds_like(tree, run.out_tree, run.outputs, run.what)
        outer = flags_of_seeds(seeds)
        record = run.record or bool(outer)
        grads = pullback(run.cut, seeds, record, run.constant)
        grads = [run.zeros(x) if g is None else g for x, g in zip(run.primals, grads)]
        result = unflatten(run.in_tree, [run.unwrap(g, outer) for g in grads])
        return numpy_like((primals, cotangents), result)

    out = numpy_like(primals, run.result())
    aux = numpy_like(primals, run.unwrap_tree(run.aux)) if has_aux else None
    return (out, vjp_fn, aux) if has_aux else (out, vjp_fn)


@public_function("func")
def jvp(
    f: Callable[..., Any], primals: Any = None, tangents: Any = None, *, has_aux: bool = False
) -> Any:
    """Return (output, tangent of the output), computed by forward mode.

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
    if not isinstance(tangents, (tuple, list)):
        raise ShapeError(
            f"{run.what}: the tangents are a {type(tangents).__name__}; primals and tangents are "
            "both tuples"
        )
    seeds = seeds_like(tuple(tangents), run.in_tree, run.inputs, run.what)
    for seed in seeds:
        if seed is not None and seed.node is not None:
            run.outer |= seed.node.flags
    result = unflatten(run.out_tree, run.push(seeds))
    out = run.result()
    both = (out, result, run.unwrap_tree(run.aux)) if has_aux else (out, result)
    return numpy_like((primals, tangents), both)


@public_function("func")
def linearize(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return (output, jvp_fn); `jvp_fn` is the derivative of `f` at `primals`.

    With has_aux the result is (output, jvp_fn, aux).

    >>> import lucid
    >>> out, push = lucid.func.linearize(lambda x: x * x, lucid.tensor([1.0, 3.0]))
    >>> push(lucid.ones(2))
    Tensor([2., 6.])
    """
    run = Run(f, primals, f"linearize of {function_name(f)}", has_aux)

    def jvp_fn(*tangents: Any) -> Any:
        seeds = seeds_like(tangents, run.in_tree, run.inputs, run.what)
        outer = flags_of_seeds(seeds)
        record = run.record or bool(outer)
        ts = pushforward(run.cut, seeds, record, run.constant)
        ts = [run.zeros(y) if t is None else t for y, t in zip(run.outputs, ts)]
        result = unflatten(run.out_tree, [run.unwrap(t, outer) for t in ts])
        return numpy_like((primals, tangents), result)

    out = numpy_like(primals, run.result())
    return (
        (out, jvp_fn, numpy_like(primals, run.unwrap_tree(run.aux))) if has_aux else (out, jvp_fn)
    )


@public_function("func")
def linear_transpose(f: Callable[..., Any], *primals: Any) -> Callable[..., tuple[Any, ...]]:
    """Return the transpose of a linear function: cotangents of its output to those of `primals`.

    Only the types of the primals matter: tensors, arrays or Types. A function that is not linear
    raises an error.

    >>> import lucid
    >>> back = lucid.func.linear_transpose(lambda x: x[::2] * 3.0, lucid.ones(4))
    >>> back(lucid.ones(2))
    (Tensor([3., 0., 3., 0.]),)
    """
    what = f"linear_transpose of {function_name(f)}"
    graph, _, captured = trace_types(f, primals, {})
    inputs = graph.inputs[: len(graph.inputs) - len(captured)]
    for x in inputs:
        if not is_differentiable(x.type.dtype):
            raise DTypeError(
                f"{what}: an argument of type {x.type} has no cotangent; close over it"
            )
    read = transposed(graph, inputs, [is_differentiable(y.type.dtype) for y in graph.outputs])
    if read.residuals and not depends_on(graph, inputs).isdisjoint(read.residuals):
        raise GraphError(f"{what}: the function is not linear: its derivative reads its arguments")
    zeros = unflatten(
        flatten(tuple(primals))[1],
        [full_constant(0.0, x.type.shape, x.type.dtype, False) for x in inputs],
    )
    return vjp(f, *zeros)[1]


def depends_on(graph: Any, inputs: Sequence[Any]) -> set[Any]:
    """Return the inputs and every value of a Graph that is computed from them."""
    found = set(inputs)
    for eqn in graph.equations:
        if not found.isdisjoint(x for x in eqn.inputs if isinstance(x, Var)):
            found.update(eqn.outputs)
    return found


@public_function("func")
def hvp(f: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """Return the Hessian-vector product of a scalar function without forming the Hessian.

    >>> import lucid
    >>> x, v = lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 1.0])
    >>> lucid.func.hvp(lambda x: (x ** 3).sum(), x, v)
    Tensor([ 6., 12.])
    """
    if not isinstance(primals, (tuple, list)):
        primals, tangents = (primals,), (tangents,)
    argnums: ArgNums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return jvp(grad(f, argnums), tuple(primals), tuple(tangents))[1]


@public_function("func")
def stop_gradient(x: Any) -> Any:
    """Return `x` (a pytree) as a constant for all derivatives."""
    leaves, structure = flatten(x)
    return unflatten(structure, [as_tensor(leaf).detach() for leaf in leaves])
