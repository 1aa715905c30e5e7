"""verify: check every derivative rule that a loss uses against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.autograd.functions.eager import FunctionCall
from lucid.autograd.gradient_check import gradcheck
from lucid.autograd.modes import no_grad
from lucid.debugging.recording import line, recorded, walk
from lucid.debugging.widening import wide_array, wide_dtype, wide_literal, wide_op_of
from lucid.errors import ArgumentError, GraphError
from lucid.func.custom_rules.reverse import CustomVjpCall
from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.primitive import Primitive
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.rewrite import inline_regions
from lucid.ir.types import Type, is_differentiable
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor
from lucid.ops.higher_order.custom_derivative import CustomJvp, CustomVjp
from lucid.tape.cut import ancestors, cut_nodes
from lucid.tape.node import Node, Traced, residual
from lucid.tape.recording.trace import replay
from lucid.tape.views import node_of


@dataclass(frozen=True)
class Verified:
    """The rules that were checked, those that are wrong, and those that cannot be checked here."""

    checked: int
    wrong: tuple[str, ...]
    skipped: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.wrong

    def __repr__(self) -> str:
        lines = [f"{self.checked} rules checked, {len(self.wrong)} wrong"]
        lines += [f"  wrong: {text}" for text in self.wrong]
        return "\n".join([*lines, *[f"  not checked: {text}" for text in self.skipped]])


@public_function()
def verify(loss: Any, *args: Any) -> Verified:
    """Check every derivative rule of a program against finite differences, at its own values.

    loss    a tensor with a history, or a function of the further arguments

    Custom rules (custom_vjp, custom_jvp, autograd.Function) are checked too, each call by calling
    it again at other values. Leaves of a tensor's history that no derivative needs are not kept;
    random values replace them.

    >>> import lucid
    >>> x = lucid.tensor([0.5, 2.0], requires_grad=True)
    >>> lucid.verify((lucid.sin(x) * x).sum())
    3 rules checked, 0 wrong
    """
    if isinstance(loss, Traced):
        graph, inputs = history(loss)
    else:
        graph, inputs = program_of(loss, args)
    seen: set[Any] = set()
    wrong, skipped = [], []
    for eqn, xs, ys in walk(graph, inputs, skip_errors=True, evaluate=evaluate):
        key = (eqn.op, tuple(x.type for x in eqn.inputs))
        outputs = [y for y in eqn.outputs if is_differentiable(y.type.dtype)]
        chosen = [i for i, x in enumerate(eqn.inputs) if is_chosen(x)]
        if key in seen or not outputs or not chosen or not eqn.op.differentiable:
            continue
        seen.add(key)
        text = f"{name_of(eqn.op)}{line(eqn)}"
        if ys is None:
            skipped.append(f"{text}: its value is not known")
            continue
        try:
            if not check(eqn, xs, chosen, outputs):
                wrong.append(text)
        except Exception as error:
            skipped.append(f"{text}: {type(error).__name__}: {str(error)[:80]}")
    return Verified(len(seen) - len(skipped), tuple(wrong), tuple(skipped))


def evaluate(op: Primitive, xs: list[Any]) -> Any:
    """The value of an operation; an eager call of a Function calls it again."""
    if not isinstance(op, FunctionCall):
        return op.eval(*xs)
    with no_grad():
        return tuple(np.asarray(y.value) for y in op.call.again([as_tensor(x) for x in xs]))


def name_of(op: Primitive) -> str:
    """The name of an operation, and that of the function whose custom rule it has."""
    if isinstance(op, FunctionCall):
        return f"{'custom_vjp' if op.call.cls is CustomVjpCall else 'Function'} {op.call.name}"
    return f"{op.name} {op.forward.name}" if isinstance(op, CustomVjp | CustomJvp) else op.name


def is_chosen(x: Any) -> bool:
    return isinstance(x, Var) and is_differentiable(x.type.dtype)


def program_of(f: Any, args: Any) -> tuple[Graph, list[Any]]:
    """The Graph of a function as jit records it, or of an eager run if it cannot be compiled."""
    try:
        return recorded(f, args)
    except GraphError:  # a Function whose backward reads values
        leaves, tree = flatten(args)
        for i, x in enumerate(leaves):
            if isinstance(x, Traced) and is_differentiable(x.type.dtype):
                leaves[i] = x.detach().requires_grad_()  # type: ignore[attr-defined]
        result = f(*unflatten(tree, leaves))
        if not isinstance(result, Traced) or result.node is None:
            raise
        return history(result)


def history(loss: Any) -> tuple[Graph, list[Any]]:
    """The Graph of a tensor, and the values of its leaves."""
    if loss.node is None:
        raise ArgumentError("verify: the tensor has no history; pass the function and arguments")
    end = node_of(loss)
    inputs = {x for node in ancestors([end]) for x in node.inputs if isinstance(x, Node)}
    leaves = sorted({x for x in inputs if x.op is None}, key=lambda node: node.serial)
    section = cut_nodes(leaves, [end])
    nodes = [*leaves, *[section.slots[slot] for slot in section.captured]]
    graph = section.graph()
    return inline_regions(graph), [value(n, v.type) for n, v in zip(nodes, graph.inputs)]


def value(node: Node, type: Any) -> np.ndarray:
    """The value of a Node; if no derivative needs it, it was not kept and is drawn at random."""
    if node.saved is not None:
        return residual(node)
    return np.random.default_rng(0).standard_normal(type.shape).astype(type.dtype)


def check(eqn: Equation, xs: list[Any], chosen: list[int], outputs: list[Var]) -> bool:
    """True if the rules of one equation agree with differences, in float64."""
    kept = [k for k, y in enumerate(eqn.outputs) if y in outputs]
    given = [wide_array(x) for x in xs]
    run = runner(eqn)

    def f(*variable: Any) -> Any:
        operands: list[Any] = [
            wide_literal(x) if isinstance(x, Literal) else as_tensor(value)
            for x, value in zip(eqn.inputs, given)
        ]
        for i, x in zip(chosen, variable):
            operands[i] = x
        results = run(operands)
        return tuple(results[k] for k in kept)

    variable = tuple(as_tensor(given[i]).requires_grad_() for i in chosen)
    forward = not isinstance(eqn.op, FunctionCall)  # whose eager calls have reverse mode only
    return gradcheck(f, variable, raise_exception=False, check_forward_ad=forward)


def runner(eqn: Equation) -> Callable[[list[Any]], Any]:
    """A function of tensors that applies the operation, in float64, with its rules."""
    op = eqn.op
    if isinstance(op, FunctionCall):
        return lambda xs: op.call.again([as_tensor(x) for x in xs])
    if isinstance(op, CustomJvp) and hasattr(op.rule, "again"):
        return lambda xs: op.rule.again([as_tensor(x) for x in xs[: op.n_in]])
    inputs = tuple(Var(Type(wide_dtype(x.type.dtype), x.type.shape)) for x in eqn.inputs)
    wide = wide_op_of(eqn)
    types = wide.infer(*[x.type for x in inputs])
    outputs = tuple(map(Var, types if isinstance(types, tuple) else (types,)))
    graph = Graph("rule", inputs, (Equation(wide, inputs, outputs),), outputs)
    return lambda xs: replay(graph, xs)
