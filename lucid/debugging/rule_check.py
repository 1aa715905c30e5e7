"""verify: check every derivative rule that a loss uses against finite differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid.autograd.gradient_check import gradcheck
from lucid.debugging.recording import line, recorded, walk
from lucid.errors import ArgumentError
from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.rewrite import inline_regions
from lucid.ir.types import is_differentiable
from lucid.ops.core.arguments import public_function
from lucid.ops.core.promote import as_tensor
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

    Leaves of a tensor's history that no derivative needs are not kept; random values replace them.

    >>> import lucid
    >>> x = lucid.tensor([0.5, 2.0], requires_grad=True)
    >>> lucid.verify((lucid.sin(x) * x).sum())
    3 rules checked, 0 wrong
    """
    if isinstance(loss, Traced):
        graph, inputs = history(loss)
    else:
        leaves, tree = flatten(args)
        graph, inputs = recorded(loss, unflatten(tree, [wide_leaf(x) for x in leaves]))
    seen: set[Any] = set()
    wrong, skipped = [], []
    for eqn, xs, ys in walk(graph, inputs, skip_errors=True):
        key = (eqn.op, tuple(x.type for x in eqn.inputs))
        outputs = [y for y in eqn.outputs if is_differentiable(y.type.dtype)]
        chosen = [i for i, x in enumerate(eqn.inputs) if is_chosen(x)]
        if key in seen or not outputs or not chosen or not eqn.op.differentiable:
            continue
        seen.add(key)
        text = f"{eqn.op.name}{line(eqn)}"
        if ys is None:
            skipped.append(f"{text}: its value is not known")
            continue
        try:
            if not check(eqn, xs, chosen, outputs):
                wrong.append(text)
        except Exception as error:
            skipped.append(f"{text}: {type(error).__name__}: {str(error)[:80]}")
    return Verified(len(seen) - len(skipped), tuple(wrong), tuple(skipped))


def is_chosen(x: Any) -> bool:
    return isinstance(x, Var) and is_differentiable(x.type.dtype)


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


def wide_leaf(x: Any) -> Any:
    """A floating argument in float64: rules are checked in the precision of differences."""
    value = getattr(x, "value", x)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
        return x
    return as_tensor(value.astype("complex128" if value.dtype.kind == "c" else "float64"))


def widened(x: Literal) -> Literal:
    return Literal(x.value, np.dtype("float64")) if x.dtype.kind == "f" else x


def check(eqn: Equation, xs: list[Any], chosen: list[int], outputs: list[Var]) -> bool:
    """True if the rules of one equation agree with differences, in float64."""
    inputs = tuple(Var(x.type) for x in eqn.inputs)
    graph = Graph("rule", inputs, (Equation(eqn.op, inputs, eqn.outputs),), tuple(outputs))
    given = [np.asarray(x) for x in xs]

    def f(*variable: Any) -> Any:
        operands: list[Any] = [
            widened(x) if isinstance(x, Literal) else as_tensor(value)
            for x, value in zip(eqn.inputs, given)
        ]
        for i, x in zip(chosen, variable):
            operands[i] = x
        return tuple(replay(graph, operands))

    wide = [as_tensor(given[i].astype("complex128" if given[i].dtype.kind == "c" else "float64"))
            for i in chosen]  # fmt: skip
    given_wide = tuple(x.requires_grad_() for x in wide)
    return gradcheck(f, given_wide, raise_exception=False, check_forward_ad=True)
