"""trace: Python function -> Graph, by running it. replay: run a Graph through `bind`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

from lucid.errors import ArgumentError
from lucid.ir.graph import Equation, Graph, Literal
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.types import Type, is_differentiable
from lucid.public.declare import public
from lucid.public.lazy import LazyModule
from lucid.support.source import at_line
from lucid.tape.bind import bind, fresh, record_constant
from lucid.tape.cut import cut
from lucid.tape.modes import local
from lucid.tape.node import GRAD, TRACE, is_traced
from lucid.tape.scopes import argument_names

body: Any = LazyModule("lucid.tape.recording.body")


def bind_equation(eqn: Equation, xs: Sequence[Any]) -> Sequence[Any]:
    """Apply an equation's operation to tensors, recording it if they are tracked."""
    out = bind(eqn.op, *xs) if eqn.op.inline is None else eqn.op.inline(*xs)
    return out if isinstance(out, tuple) else (out,)


@public("ir")
def replay(
    graph: Graph,
    inputs: Sequence[Any],
    apply: Callable[[Equation, Sequence[Any]], Sequence[Any]] = bind_equation,
) -> list[Any]:
    """Walk a Graph: `apply(equation, inputs)` returns the outputs of each equation.

    New equations inherit the source lines of the original ones.
    """
    env: dict[Any, Any] = dict(zip(graph.inputs, inputs, strict=True))
    tracing = any([is_traced(x) for x in inputs])
    before = local.source
    try:
        for eqn in graph.equations:
            local.source = eqn.source or before
            xs = [x if x.__class__ is Literal else env[x] for x in eqn.inputs]
            if tracing and all([x.__class__ is Literal for x in xs]):
                outs: Sequence[Any] = [record_constant(eqn.op, xs)]
            else:
                outs = apply(eqn, xs)
            for var, out in zip(eqn.outputs, outs):
                env[var] = out
    finally:
        local.source = before
    return [x if x.__class__ is Literal else env[x] for x in graph.outputs]


def call_graph(graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """Run a Graph on tensors, arrays or numbers of the types of its inputs."""
    from lucid.ops.core.promote import as_tensor

    if len(inputs) != len(graph.inputs):
        raise ArgumentError(
            f"graph {graph.name}: {len(inputs)} arguments given, {len(graph.inputs)} expected"
        )
    xs = [as_tensor(x) for x in inputs]
    for var, x in zip(graph.inputs, xs):
        if x.type != var.type:
            raise ArgumentError(
                f"graph {graph.name}: {var.name or 'an input'} is {x.type}, not {var.type}"
            )
    outs = replay(graph, xs)
    return [as_tensor(y.array) if isinstance(y, Literal) else y for y in outs]


Graph.replay = call_graph


@public("func", name="make_jaxpr")
@public("ir")
def trace(f: Callable[..., Any]) -> Callable[..., Graph]:
    """Return a function that traces `f` to a Graph, given tensors, arrays, numbers or Types.

    >>> import lucid
    >>> print(lucid.ir.trace(lambda x, y: x @ y)(lucid.ones(2, 3), lucid.ones(3)).stripped())
    graph lambda(x: f32[2,3], y: f32[3]):
        %0: f32[2] = matmul x y
        return %0

    Tensors that `f` closes over are the last inputs. Tracing has no effects: nothing is written,
    and random draws leave their Generator unchanged.
    """

    if not callable(f):
        raise ArgumentError(f"trace: expected a function, got {type(f).__name__}")

    def traced(*args: Any, **kwargs: Any) -> Graph:
        from lucid.ops.core.promote import as_tensor

        leaves, structure = flatten((args, kwargs))

        def run(recorder: Any) -> Graph:
            inputs = [as_input(x, recorder) for x in leaves]
            new_args, new_kwargs = unflatten(structure, inputs)
            outputs = [as_tensor(y) for y in flatten(f(*new_args, **new_kwargs))[0]]
            section = cut(inputs, outputs, effects=recorder.effects)
            names = input_names(f, args, kwargs)
            return section.graph(function_name(f), names, section.tensor_names(f))

        return body.trace_state(f"trace of {function_name(f)}", run)[0]

    def as_input(x: Any, recorder: Any) -> Any:
        from lucid.ops.core.promote import as_tensor

        if isinstance(x, Type):
            return recorder.input(x)
        x = as_tensor(x)
        return fresh(x, TRACE | (GRAD if is_differentiable(x.dtype) else 0))

    return traced


def trace_types(f: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Graph, Any, list[Any]]:
    """Return the Graph of `f` for the types of its arguments, its out tree and what it captures.

    Nothing is computed and nothing is written; reading a value inside `f` is an error.
    """
    from lucid.ops.core.promote import as_tensor

    if not callable(f):
        raise ArgumentError(f"trace: expected a function, got {type(f).__name__}")
    leaves, structure = flatten((args, kwargs))
    types = [x if isinstance(x, Type) else as_tensor(x).type for x in leaves]
    what = f"trace of {function_name(f)}"

    def run(recorder: Any) -> tuple[Graph, Any, list[Any]]:
        inputs = [recorder.input(type) for type in types]
        new_args, new_kwargs = unflatten(structure, inputs)
        found, out_tree = flatten(f(*new_args, **new_kwargs))
        outputs = [as_tensor(y) for y in found]
        names = input_names(f, args, kwargs)
        graph, captured = recorder.cut(inputs, outputs, function_name(f), names)
        return graph, out_tree, captured

    return body.trace_state(what, run, refused=f"{what} writes to a tensor from outside")[0]


def check_arguments(f: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """Raise an error if a function cannot be called with so many arguments, or with these names."""
    if not callable(f):
        raise ArgumentError(f"trace: expected a function, got {type(f).__name__}")
    try:
        inspect.signature(f).bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(f"trace of {function_name(f)}: {error}{at_line()}") from None
    except ValueError:  # a builtin function may have no signature
        pass


@public("func")
def eval_shape(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the types of what `f` returns, without computing it.

    Arguments are tensors, arrays or Types; a Type has `shape` and `dtype`.

    >>> import lucid
    >>> lucid.func.eval_shape(lambda x, y: x @ y, lucid.ones(2, 3), lucid.ir.Type.parse("f32[3,4]"))
    f32[2,4]
    """
    check_arguments(f, args, kwargs)
    graph, out_tree, _ = trace_types(f, args, kwargs)
    return unflatten(out_tree, graph.out_types)


@public("func")
def closure_convert(f: Callable[..., Any], *example_args: Any) -> tuple[Any, list[Any]]:
    """Return `f` as a function of its arguments and the tensors it closes over, and those tensors.

    >>> import lucid
    >>> w = lucid.tensor([1.0, 2.0])
    >>> g, consts = lucid.func.closure_convert(lambda x: x * w, lucid.ones(2))
    >>> g(lucid.ones(2), *consts), len(consts)
    (Tensor([1., 2.]), 1)
    """
    check_arguments(f, example_args, {})
    graph, out_tree, captured = trace_types(f, example_args, {})

    def converted(*args: Any) -> Any:
        from lucid.ops.core.promote import as_tensor

        n = len(args) - len(captured)
        inputs = [as_tensor(x) for x in (*flatten(args[:n])[0], *args[n:])]
        outs = [as_tensor(y.value) if isinstance(y, Literal) else y for y in replay(graph, inputs)]
        return unflatten(out_tree, outs)

    return converted, captured


def function_name(f: Any) -> str:
    name = getattr(f, "__name__", type(f).__name__)
    return re.sub(r"\W", "", name) or "f"


def input_names(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Return a name for every leaf of the arguments: `x`, `params['w']`, `pair[0]`.

    Leaves are in the order of pytrees: positional arguments, then keywords by name.
    """
    is_module = hasattr(type(f), "named_tensors") and hasattr(f, "forward")
    try:
        bound = inspect.signature(f.forward if is_module else f).bind_partial(*args).arguments
    except (TypeError, ValueError):
        bound = {f"x{i}": x for i, x in enumerate(args)}
    named = [*bound.items(), *sorted(kwargs.items())]
    return [leaf for name, value in named for leaf in argument_names(value, name)]
