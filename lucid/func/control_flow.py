"""Control flow inside programs: cond, switch, while_loop, fori_loop, scan, map.

Each traces its functions once, on abstract values, and applies one operation that holds their
Graphs. Tensors that the functions close over become operands, so gradients flow to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import optree

from lucid.errors import ArgumentError, DTypeError, LucidError, ShapeError
from lucid.ir.graph import Graph
from lucid.ir.pytree import NAMESPACE, flatten, unflatten
from lucid.ir.source import at_line
from lucid.ir.types import Type, is_differentiable
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.higher_order.control.scan import Scan, run_scan
from lucid.ops.higher_order.control.switch import Switch
from lucid.ops.higher_order.control.while_loop import While
from lucid.public.declare import public
from lucid.tape.bind import bind
from lucid.tape.cut import cut
from lucid.tape.modes import local
from lucid.tape.node import GRAD, TRACE, Node, Trace, leaf, next_serial
from lucid.tape.trace import function_name, input_names
from lucid.tape.views import tensor_of

__all__ = ["cond", "fori_loop", "map", "scan", "switch", "while_loop"]


class Body(NamedTuple):
    """A traced function: its Graph, captured tensors, output types and output structure."""

    graph: Graph
    captured: list[Any]
    outputs: list[Type]
    tree: Any

    def with_consts(self, n_inputs: int, consts: Sequence[Any], first: int) -> Graph:
        """Return the Graph with `consts` before its inputs; its own constants start at `first`."""
        from lucid.ir.graph import Var

        mine = self.graph.inputs[n_inputs:]
        own = range(first, first + len(mine))
        inputs = [mine[i - first] if i in own else Var(x.type) for i, x in enumerate(consts)]
        inside = (*inputs, *self.graph.inputs[:n_inputs])
        return Graph(self.graph.name, inside, self.graph.equations, self.graph.outputs)


def trace_body(
    what: str, f: Callable[..., Any], tree: Any, types: Sequence[Type], is_branch: bool = False
) -> Body:
    """Trace `f` on abstract arguments of these types.

    A branch contains all that it computes; computations in a loop body that do not depend on its
    arguments stay outside, where they run once.
    """
    if not callable(f):
        raise ArgumentError(f"{what}: {f!r} is not callable{at_line()}")
    trace = Trace(f"{what} of {function_name(f)}", depth=len(local.maps) + 1)
    inputs = [leaf(t, trace, TRACE | (GRAD if is_differentiable(t.dtype) else 0)) for t in types]
    before = local.grad
    local.grad = True
    since = next_serial() if is_branch or not types else None
    try:
        args = unflatten(tree, inputs)
        leaves, out_tree = flatten(f(*args))
        outs = [as_tensor(y) for y in leaves]
        section = cut(inputs, outs, since)
        if since is not None and any(
            is_value_dropped(section.slots[slot]) for slot in section.captured
        ):
            for y in outs:
                if y.node is not None and y.value is not None:
                    y.node.saved = y.value
            section = cut(inputs, outs)
    finally:
        local.grad = before
        trace.active = False
    graph = section.graph(function_name(f), input_names(f, args, {}))
    captured = [tensor_of(section.slots[slot]) for slot in section.captured]
    return Body(graph, captured, list(graph.out_types), out_tree)


def is_value_dropped(node: Node) -> bool:
    """True if the value of a Node was not saved, because no derivative reads it."""
    return node.saved is None and node.trace is None


def leaf_names(tree: Any, name: str) -> list[str]:
    """Return `name` followed by the path of every leaf, in Python syntax."""
    paths = optree.tree_accessors(unflatten(tree, range(tree.num_leaves)), namespace=NAMESPACE)
    return [path.codify(name) for path in paths]


def check_carry(what: str, tree: Any, types: Sequence[Type], body: Body, out_tree: Any) -> None:
    """Raise an error unless the body returns a carry of the same structure and types."""
    if out_tree != tree:
        raise LucidError(
            f"{what}: the carry starts as {tree} and the body returns {out_tree}; "
            f"the structures must match{at_line()}"
        )
    for name, before, after in zip(leaf_names(tree, "carry"), types, body.outputs):
        if before != after:
            raise (DTypeError if before.dtype != after.dtype else ShapeError)(
                f"{what}: {name} starts as {before} and the body returns {after}; make the types "
                f"match with {'to(dtype)' if before.dtype != after.dtype else 'expand()'} "
                f"before the loop or in its body{at_line()}"
            )


def as_scalar(what: str, x: Any, kinds: str, role: str) -> Any:
    """Return `x` as a 0-d tensor of one of the dtype kinds."""
    x = as_tensor(x)
    if x.shape:
        raise ShapeError(
            f"{what}: {role} must be a scalar, not {x.type}; for an elementwise choice use "
            f"where() or vmap{at_line()}"
        )
    if x.dtype.kind not in kinds:
        if "b" in kinds and x.dtype.kind in "iuf" and kinds == "b":
            return x != 0
        raise DTypeError(f"{what}: {role} must be an integer, not {x.type}{at_line()}")
    return x


@public("func")
def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any
) -> Any:
    """Return `true_fn(*operands)` if `pred` is True, else `false_fn(*operands)`; only one runs.

    >>> import lucid
    >>> f = lambda x: lucid.func.cond(x > 0, lucid.sqrt, lambda x: -x, x)
    >>> lucid.func.grad(f)(lucid.tensor(4.0)), f(lucid.tensor(-3.0))
    (Tensor(0.25), Tensor(3.))
    """
    return bind_switch(
        "cond", as_scalar("cond", pred, "b", "the predicate"), [false_fn, true_fn], operands
    )


@public("func")
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Return `branches[index](*operands)`; an index out of range is clamped.

    >>> import lucid
    >>> lucid.func.switch(1, [lucid.sin, lucid.exp], lucid.tensor(0.0))
    Tensor(1.)
    """
    if not isinstance(branches, (tuple, list)) or not branches:
        raise ArgumentError(f"switch: {branches!r} is not a list of functions{at_line()}")
    chosen = as_scalar("switch", index, "biu", "the index")
    chosen = chosen if chosen.dtype.kind == "b" else cast(chosen, np.dtype("int64"))
    return bind_switch("switch", chosen, branches, operands)


def bind_switch(what: str, chosen: Any, functions: Sequence[Any], operands: Any) -> Any:
    leaves, tree = flatten(tuple(operands))
    inputs = [as_tensor(x) for x in leaves]
    bodies = [trace_body(what, f, tree, [x.type for x in inputs], True) for f in functions]
    first = bodies[0]
    for body, f in zip(bodies[1:], functions[1:]):
        names = f"{function_name(functions[0])} and {function_name(f)}"
        if body.tree != first.tree:
            raise LucidError(
                f"{what}: {names} return {first.tree} and {body.tree}; the structures must "
                f"match{at_line()}"
            )
        for name, a, b in zip(leaf_names(first.tree, "result"), first.outputs, body.outputs):
            if a != b:
                raise (DTypeError if a.dtype != b.dtype else ShapeError)(
                    f"{what}: {names} return {a} and {b} for {name}; the types must "
                    f"match{at_line()}"
                )
    captured = [x for body in bodies for x in body.captured]
    graphs, start = [], 0
    for body in bodies:
        graphs.append(body.with_consts(len(inputs), captured, start))
        start += len(body.captured)
    outs = bind(Switch(tuple(graphs)), chosen, *captured, *inputs)
    return unflatten(first.tree, outs)


def promote_weak_carry(
    what: str, inputs: list[Any], leaves: Sequence[Any], trace: Callable[[list[Type]], Body]
) -> tuple[list[Any], Body]:
    """Trace the body; Python numbers in the initial carry take the dtype the body returns."""
    body = trace([x.type for x in inputs])
    weak = [isinstance(x, (bool, int, float, complex)) for x in leaves]
    changed = [
        cast(x, t.dtype) if w and t.shape == () and t.dtype != x.dtype else x
        for x, w, t in zip(inputs, weak, body.outputs)
    ]
    if all(a is b for a, b in zip(changed, inputs)):
        return inputs, body
    return changed, trace([x.type for x in changed])


@public("func")
def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> Any:
    """Return (last carry, stacked ys) of `carry, y = f(carry, x)` for the rows x of `xs`.

    length     the number of steps, required without xs
    reverse    from the last row to the first
    unroll     accepted as in JAX, has no effect

    >>> import lucid
    >>> step = lambda total, x: (total + x, total * x)
    >>> lucid.func.scan(step, lucid.tensor(0.0), lucid.tensor([1.0, 2.0, 3.0]))
    (Tensor(6.), Tensor([0., 2., 9.]))
    """
    leaves, tree = flatten(init)
    row_leaves = flatten(xs)[0]
    rows = [as_tensor(x) for x in row_leaves]
    steps = number_of_steps(rows, length)
    del unroll
    row_types = [Type(x.dtype, x.shape[1:]) for x in rows]
    both = flatten((init, xs))[1]

    def trace(types: list[Type]) -> Body:
        return trace_body("scan", f, both, [*types, *row_types])

    inputs, body = promote_weak_carry("scan", [as_tensor(x) for x in leaves], leaves, trace)
    parts = body.tree.children() if body.tree.type is tuple else []
    if len(parts) != 2:
        raise LucidError(
            f"scan: {function_name(f)} must return (carry, y), not {body.tree}; y may be "
            f"None{at_line()}"
        )
    check_carry("scan", tree, [x.type for x in inputs], body, parts[0])
    graph = body.with_consts(len(inputs) + len(rows), body.captured, 0)
    op = Scan(graph, len(body.captured), len(inputs), steps, bool(reverse))
    outs = run_scan(op, *body.captured, *inputs, *rows)
    n = len(inputs)
    return unflatten(tree, outs[:n]), unflatten(parts[1], outs[n:])


def number_of_steps(rows: Sequence[Any], length: int | None) -> int:
    if length is not None and (not isinstance(length, int) or length < 0):
        raise ArgumentError(f"scan: length={length!r} must be a non-negative integer{at_line()}")
    for x in rows:
        if not x.shape:
            raise ShapeError(f"scan: xs contains a 0-d tensor, which has no rows{at_line()}")
    sizes = {x.shape[0] for x in rows} | ({length} if length is not None else set())
    if not sizes:
        raise ArgumentError(f"scan: give xs or length to set the number of steps{at_line()}")
    if len(sizes) > 1:
        raise ShapeError(
            f"scan: xs and length have different numbers of steps: {sorted(sizes)}{at_line()}"
        )
    return sizes.pop()


@public("func")
def while_loop(cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init_val: Any) -> Any:
    """Repeat `val = body_fun(val)` while `cond_fun(val)` is True, starting with `init_val`.

    Reverse mode is supported: residuals are saved for as many steps as the loop runs.

    >>> import lucid
    >>> f = lambda x: lucid.func.while_loop(lambda x: x < 100, lambda x: x * x, x)
    >>> f(lucid.tensor(3.0)), lucid.func.grad(f)(lucid.tensor(3.0))
    (Tensor(6561.), Tensor(17496.))
    """
    leaves, tree = flatten(init_val)
    whole = flatten((init_val,))[1]

    def trace(types: list[Type]) -> Body:
        return trace_body("while_loop", body_fun, whole, types)

    inputs, body = promote_weak_carry("while_loop", [as_tensor(x) for x in leaves], leaves, trace)
    types = [x.type for x in inputs]
    check_carry("while_loop", tree, types, body, body.tree)
    test = trace_body("while_loop", cond_fun, whole, types)
    if test.outputs != [Type.parse("bool[]")]:
        raise DTypeError(
            f"while_loop: {function_name(cond_fun)} must return one bool, not "
            f"{', '.join([str(t) for t in test.outputs]) or 'nothing'}{at_line()}"
        )
    n, n_tests, n_consts = len(inputs), len(test.captured), len(body.captured)
    first = n_tests + n_consts
    loop = (
        body.with_consts(n, body.captured, 0),
        False,
        tuple(range(n_tests, first)),
        tuple([(first + i,) for i in range(n)]),
        (),
    )
    results = tuple(range(first + n, first + 2 * n))
    cond_graph = test.with_consts(n, test.captured, 0)
    op = While(cond_graph, tuple(range(n_tests)), (loop,), results)
    return unflatten(tree, bind(op, *test.captured, *body.captured, *inputs))


@public("func")
def fori_loop(lower: Any, upper: Any, body_fun: Callable[..., Any], init_val: Any) -> Any:
    """Repeat `val = body_fun(i, val)` for i from `lower` to `upper - 1`, starting with `init_val`.

    With Python integers as bounds it is a `scan`, with tensors a `while_loop`.

    >>> import lucid
    >>> lucid.func.fori_loop(0, 4, lambda i, x: x + i, lucid.tensor(0))
    Tensor(6)
    """
    if isinstance(lower, int) and isinstance(upper, int):
        carry = (as_tensor(lower), init_val)
        steps = max(int(upper) - int(lower), 0)
        (_, val), _ = scan(lambda c, _: ((c[0] + 1, body_fun(*c)), None), carry, None, steps)
        return val
    start = as_scalar("fori_loop", lower, "iu", "a bound")
    end = as_scalar("fori_loop", upper, "iu", "a bound")
    dtype = end.dtype if isinstance(lower, int) else start.dtype
    start, end = cast(start, dtype), cast(end, dtype)
    _, val = while_loop(lambda c: c[0] < end, lambda c: (c[0] + 1, body_fun(*c)), (start, init_val))
    return val


@public("func")
def map(f: Callable[..., Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Return the stacked results of `f` for every row of `xs`, `batch_size` rows at once.

    >>> import lucid
    >>> lucid.func.map(lambda x: x * x, lucid.tensor([1.0, 2.0, 3.0]))
    Tensor([1., 4., 9.])
    """
    from lucid.func.batching import vmap

    if batch_size is None:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    if not isinstance(batch_size, int) or batch_size < 1:
        raise ArgumentError(f"map: batch_size={batch_size!r} must be at least 1{at_line()}")
    leaves, tree = flatten(xs)
    rows = [as_tensor(x) for x in leaves]
    n = number_of_steps(rows, None)
    whole = n // batch_size
    parts = []
    if whole:
        full = [x[: whole * batch_size].reshape((whole, batch_size, *x.shape[1:])) for x in rows]
        ys = scan(lambda _, x: (None, vmap(f)(x)), None, unflatten(tree, full))[1]
        flat, out_tree = flatten(ys)
        parts.append([y.reshape((whole * batch_size, *y.shape[2:])) for y in flat])
    if n % batch_size or not whole:
        rest = unflatten(tree, [x[whole * batch_size :] for x in rows])
        flat, out_tree = flatten(vmap(f)(rest))
        parts.append(flat)
    return unflatten(out_tree, [concatenate(pieces) for pieces in zip(*parts)])


def concatenate(pieces: Sequence[Any]) -> Any:
    from lucid.ops.shape.joining import cat

    return pieces[0] if len(pieces) == 1 else cat(list(pieces), 0)
