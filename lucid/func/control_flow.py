"""Control flow inside programs: cond, switch, while_loop, fori_loop, scan, map.

Each traces its functions once, on abstract values, and applies one operation that holds their
Graphs. Tensors that the functions close over become operands, so gradients flow to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lucid.errors import ArgumentError, DTypeError, LucidError, ShapeError
from lucid.func.state import run_with_state
from lucid.ir.graph import Graph, Var
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.types import Type
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor, cast
from lucid.ops.higher_order.control.scan import Scan, run_scan
from lucid.ops.higher_order.control.switch import Switch
from lucid.ops.higher_order.control.while_loop import While
from lucid.support.structures import NAMESPACE, optree, subscripts
from lucid.tape.bind import bind
from lucid.tape.modes import local
from lucid.tape.recording.body import BodyRecorder, State, trace_state
from lucid.tape.recording.trace import function_name, input_names, replay

__all__ = ["cond", "fori_loop", "map", "scan", "switch", "while_loop"]


class Body(NamedTuple):
    """A traced function: its Graph, captured tensors, output types, output structure and state.

    The Graph takes the arguments, the state and the captured tensors, and returns the results and
    the state after it. `written` if it writes any of the state.
    """

    graph: Graph
    captured: list[Any]
    outputs: list[Type]
    tree: Any
    state: list[State]
    written: bool

    def with_inputs(
        self, n_args: int, captured: Sequence[Any], first: int, state: Sequence[State]
    ) -> Graph:
        """Return the Graph with inputs (captured, state, arguments) and outputs (state, results).

        captured    tensors captured by several bodies; those of this one start at `first`
        state       the state of several bodies; what this one does not write it returns unchanged
        """
        n_state = n_args + len(self.state)
        mine = self.graph.inputs[n_state:]
        own = range(first, first + len(mine))
        inputs = [mine[i - first] if i in own else Var(x.type) for i, x in enumerate(captured)]
        args = self.graph.inputs[:n_args]
        n_out = len(self.outputs)
        ids = [id(s.tensor) for s in self.state]
        before = dict(zip(ids, self.graph.inputs[n_args:]))
        after = dict(zip(ids, self.graph.outputs[n_out:]))
        given = [before.get(id(s.tensor)) or Var(s.tensor.type) for s in state]
        left = [after.get(id(s.tensor), x) for s, x in zip(state, given)]
        results = (*left, *self.graph.outputs[:n_out])
        return Graph(self.graph.name, (*inputs, *given, *args), self.graph.equations, results)


def trace_body(
    what: str,
    f: Callable[..., Any],
    tree: Any,
    types: Sequence[Type],
    is_branch: bool = False,
    refused: str = "",
    state: Sequence[State] = (),
) -> Body:
    """Trace `f` on abstract arguments of these types.

    A branch contains all that it computes; computations in a loop body that do not depend on its
    arguments stay outside, where they run once.

    refused    why it must not write to outside tensors; "" if it may
    state      outside tensors that are state in any case
    """
    if not callable(f):
        raise ArgumentError(f"{what}: {f!r} is not callable")
    name = function_name(f)

    def run(recorder: BodyRecorder) -> tuple[Any, ...]:
        inputs = [recorder.input(t) for t in types]
        args = unflatten(tree, inputs)
        leaves, out_tree = flatten(f(*args))
        outs = [as_tensor(y) for y in leaves]
        graph, captured = recorder.cut(inputs, outs, name, input_names(f, args, {}))
        return graph, captured, len(outs), out_tree

    before, local.grad = local.grad, True
    try:
        (graph, captured, n_out, out_tree), recorder = trace_state(
            f"{what} of {name}", run, refused, state
        )
    finally:
        local.grad = before
    found = recorder.found_state()
    if not is_branch:
        graph, captured = hoist_invariant(graph, len(types) + len(found), captured)
    written = bool(recorder.writes)
    return Body(graph, captured, list(graph.out_types[:n_out]), out_tree, found, written)


def hoist_invariant(
    graph: Graph, n_inputs: int, captured: Sequence[Any]
) -> tuple[Graph, list[Any]]:
    """Compute outside what a body computes from captured tensors alone.

    Return the rest of the body, and the tensors that it takes after its `n_inputs` inputs.
    """
    consts = graph.inputs[n_inputs:]
    known: set[Any] = set(consts)
    moved, rest = [], []
    for eqn in graph.equations:
        read = [x for x in eqn.inputs if isinstance(x, Var)]
        stays = eqn.op.single_use or eqn.op.ordered
        if read and known.issuperset(read) and not stays:
            moved.append(eqn)
            known.update(eqn.outputs)
        else:
            rest.append(eqn)
    if not moved:
        return graph, list(captured)
    used = {x for eqn in rest for x in eqn.inputs if isinstance(x, Var)}.union(
        x for x in graph.outputs if isinstance(x, Var)
    )
    made = [y for eqn in moved for y in eqn.outputs if y in used]
    values = replay(Graph(graph.name, consts, tuple(moved), tuple(made)), captured)
    kept = [(var, x) for var, x in zip(consts, captured) if var in used]
    inputs = (*graph.inputs[:n_inputs], *[var for var, _ in kept], *made)
    body = Graph(graph.name, inputs, tuple(rest), graph.outputs)
    return body, [*[x for _, x in kept], *values]


def leaf_names(tree: Any, name: str) -> list[str]:
    """Return `name` followed by the path of every leaf, in Python syntax."""
    inside = subscripts(tree)
    if inside is not None:
        return [name + text for text in inside]
    paths = optree.tree_accessors(unflatten(tree, range(tree.num_leaves)), namespace=NAMESPACE)
    return [path.codify(name) for path in paths]


def check_carry(what: str, tree: Any, types: Sequence[Type], body: Body, out_tree: Any) -> None:
    """Raise an error unless the body returns a carry of the same structure and types."""
    if out_tree != tree:
        raise LucidError(
            f"{what}: the carry starts as {tree} and the body returns {out_tree}; "
            "the structures must match"
        )
    for name, before, after in zip(leaf_names(tree, "carry"), types, body.outputs):
        if before != after:
            raise (DTypeError if before.dtype != after.dtype else ShapeError)(
                f"{what}: {name} starts as {before} and the body returns {after}; make the types "
                f"match with {'to(dtype)' if before.dtype != after.dtype else 'expand()'} "
                "before the loop or in its body"
            )


def as_scalar(what: str, x: Any, kinds: str, role: str) -> Any:
    """Return `x` as a 0-d tensor of one of the dtype kinds."""
    x = as_tensor(x)
    if x.shape:
        raise ShapeError(
            f"{what}: {role} must be a scalar, not {x.type}; for an elementwise choice use "
            "where() or vmap"
        )
    if x.dtype.kind not in kinds:
        if "b" in kinds and x.dtype.kind in "iuf" and kinds == "b":
            return x != 0
        raise DTypeError(f"{what}: {role} must be an integer, not {x.type}")
    return x


@public_function("func")
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


@public_function("func")
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Return `branches[index](*operands)`; an index out of range is clamped.

    >>> import lucid
    >>> lucid.func.switch(1, [lucid.sin, lucid.exp], lucid.tensor(0.0))
    Tensor(1.)
    """
    if not isinstance(branches, (tuple, list)) or not branches:
        raise ArgumentError(f"switch: {branches!r} is not a list of functions")
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
                f"{what}: {names} return {first.tree} and {body.tree}; the structures must match"
            )
        for name, a, b in zip(leaf_names(first.tree, "result"), first.outputs, body.outputs):
            if a != b:
                raise (DTypeError if a.dtype != b.dtype else ShapeError)(
                    f"{what}: {names} return {a} and {b} for {name}; the types must match"
                )
    state = merge_state([body.state for body in bodies])
    captured = [x for body in bodies for x in body.captured]
    graphs, start = [], 0
    for body in bodies:
        graphs.append(body.with_inputs(len(inputs), captured, start, state))
        start += len(body.captured)
    op = Switch(tuple(graphs))
    outs = run_with_state(what, state, lambda xs: bind(op, chosen, *captured, *xs, *inputs))
    return unflatten(first.tree, outs)


def merge_state(states: Sequence[Sequence[State]]) -> list[State]:
    """Return what any of several bodies writes, detached where all of them are."""
    found: dict[int, State] = {}
    for s in [s for state in states for s in state]:
        before = found.get(id(s.tensor), s)
        locks = (*before.locks, *s.locks)
        found[id(s.tensor)] = State(s.tensor, s.detached and before.detached, locks)
    return list(found.values())


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


@public_function("func")
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
    reverse    go from the last row to the first
    unroll     accepted for compatibility with JAX; has no effect

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
            f"scan: {function_name(f)} must return (carry, y), not {body.tree}; y may be None"
        )
    check_carry("scan", tree, [x.type for x in inputs], body, parts[0])
    graph = body.with_inputs(len(inputs) + len(rows), body.captured, 0, body.state)
    n, consts = len(inputs), body.captured
    op = Scan(graph, len(consts), len(body.state) + n, steps, bool(reverse))
    outs = run_with_state(
        "scan", body.state, lambda state: run_scan(op, *consts, *state, *inputs, *rows)
    )
    return unflatten(tree, outs[:n]), unflatten(parts[1], outs[n:])


def number_of_steps(rows: Sequence[Any], length: int | None) -> int:
    if length is not None and (not isinstance(length, int) or length < 0):
        raise ArgumentError(f"scan: length={length!r} must be a non-negative integer")
    for x in rows:
        if not x.shape:
            raise ShapeError("scan: xs contains a 0-d tensor, which has no rows")
    sizes = {x.shape[0] for x in rows} | ({length} if length is not None else set())
    if not sizes:
        raise ArgumentError("scan: give xs or length to set the number of steps")
    if len(sizes) > 1:
        raise ShapeError(f"scan: xs and length have different numbers of steps: {sorted(sizes)}")
    return sizes.pop()


@public_function("func")
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
    test = trace_body("while_loop", cond_fun, whole, types, state=body.state)
    if test.outputs != [Type.parse("bool[]")]:
        raise DTypeError(
            f"while_loop: {function_name(cond_fun)} must return one bool, not "
            f"{', '.join([str(t) for t in test.outputs]) or 'nothing'}"
        )
    if test.written:
        return while_loop_with_tested_carry(cond_fun, body_fun, unflatten(tree, inputs))
    n, n_tests, n_consts = len(inputs) + len(body.state), len(test.captured), len(body.captured)
    first = n_tests + n_consts
    loop = (
        body.with_inputs(len(inputs), body.captured, 0, body.state),
        False,
        tuple(range(n_tests, first)),
        tuple([(first + i,) for i in range(n)]),
        (),
    )
    results = tuple(range(first + n, first + 2 * n))
    condition = test.with_inputs(len(inputs), test.captured, 0, body.state)
    condition = Graph(condition.name, condition.inputs, condition.equations, condition.outputs[-1:])
    op = While(condition, tuple(range(n_tests)), (loop,), results)
    consts = [*test.captured, *body.captured]
    outs = run_with_state(
        "while_loop", body.state, lambda state: bind(op, *consts, *state, *inputs)
    )
    return unflatten(tree, outs)


def while_loop_with_tested_carry(
    cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init_val: Any
) -> Any:
    """`while_loop` whose condition draws or writes: the body evaluates it for the next step."""

    def step(carry: Any) -> Any:
        val = body_fun(carry[1])
        return cond_fun(val), val

    first = as_scalar("while_loop", cond_fun(init_val), "b", "the condition")
    return while_loop(lambda carry: carry[0], step, (first, init_val))[1]


@public_function("func")
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


@public_function("func")
def map(f: Callable[..., Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Return the stacked results of `f` for every row of `xs`, `batch_size` rows at a time.

    >>> import lucid
    >>> lucid.func.map(lambda x: x * x, lucid.tensor([1.0, 2.0, 3.0]))
    Tensor([1., 4., 9.])
    """
    from lucid.func.mapping.batching import vmap

    if batch_size is None:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    if not isinstance(batch_size, int) or batch_size < 1:
        raise ArgumentError(f"map: batch_size={batch_size!r} must be at least 1")
    leaves, tree = flatten(xs)
    rows = [as_tensor(x) for x in leaves]
    n = number_of_steps(rows, None)
    whole = n // batch_size
    mapped = vmap(f, randomness="different")
    parts = []
    if whole:
        full = [x[: whole * batch_size].reshape((whole, batch_size, *x.shape[1:])) for x in rows]
        ys = scan(lambda _, x: (None, mapped(x)), None, unflatten(tree, full))[1]
        flat, out_tree = flatten(ys)
        parts.append([y.reshape((whole * batch_size, *y.shape[2:])) for y in flat])
    if n % batch_size or not whole:
        rest = unflatten(tree, [x[whole * batch_size :] for x in rows])
        flat, out_tree = flatten(mapped(rest))
        parts.append(flat)
    return unflatten(out_tree, [concatenate(pieces) for pieces in zip(*parts)])


def concatenate(pieces: Sequence[Any]) -> Any:
    from lucid.ops.shape.joining import cat

    return pieces[0] if len(pieces) == 1 else cat(list(pieces), 0)
