"""Rule: the derivative of one equation as a few equations, cached by operation and types.

A primitive's jvp or vjp runs once on abstract tensors; what it records becomes a list of steps.
Differentiating a Graph then copies steps, so a long program costs little more than its distinct
equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.ir.graph import Equation, Literal, Var
from lucid.ir.infer import infer
from lucid.support.caches import new_cache
from lucid.tape.cut import cut
from lucid.tape.modes import local
from lucid.tape.node import Trace, leaf
from lucid.tape.recording.pending import array_of

_LIMIT = 20_000


class Rule:
    """Steps (op, references, result types) over an environment of values.

    The environment starts with the equation's operands, its results, the seeds and the constants;
    each step appends its results. A reference is a position or a Literal.

    results    the position of every derivative, None if it is zero
    """

    __slots__ = ("constants", "results", "steps")

    def __init__(self, given: Sequence[Any], derivatives: Sequence[Any]) -> None:
        there = [
            (i, x) for i, x in enumerate(given) if x is not None and x.__class__ is not Literal
        ]
        section = cut([x for _, x in there], [d for d in derivatives if d is not None])
        graph = section.graph()
        n_given = len(there)
        position: dict[Any, int] = {var: i for (i, _), var in zip(there, graph.inputs)}
        captured = [section.slots[slot].saved for slot in section.captured]
        self.constants: list[np.ndarray] = [array_of(x) for x in captured]  # rules outlive a jit
        for i, var in enumerate(graph.inputs[n_given:], len(given)):
            position[var] = i
        free = len(given) + len(self.constants)
        self.steps: list[tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = []
        for eqn in graph.equations:
            refs = tuple([position[x] if x.__class__ is Var else x for x in eqn.inputs])
            self.steps.append((eqn.op, refs, tuple([var.type for var in eqn.outputs])))
            for var in eqn.outputs:
                position[var] = free
                free += 1
        ends = iter(graph.outputs)
        self.results = [None if d is None else position[next(ends)] for d in derivatives]


_rules: dict[Any, Rule] = new_cache(f"{__name__}._rules", {})


def rule_for(
    mode: str, eqn: Equation, seeded: tuple[bool, ...], wanted: tuple[bool, ...], default: np.dtype
) -> Rule:
    """Return the Rule of an equation in mode "vjp" or "jvp", cached.

    seeded     which results have a cotangent, or which operands have a tangent
    wanted     which operands need a cotangent, or which results a tangent
    default    the default dtype, which a rule may read
    """
    types = tuple([x.type if x.__class__ is Var else x.key for x in eqn.inputs])  # type: ignore[union-attr]
    key = (mode, eqn.op, types, seeded, wanted, default)
    found = _rules.get(key)
    if found is None:
        found = make_rule(mode, eqn, seeded, wanted)
        if not eqn.op.single_use:
            if len(_rules) >= _LIMIT:
                _rules.clear()
            _rules[key] = found
    return found


def make_rule(mode: str, eqn: Equation, seeded: tuple[bool, ...], wanted: tuple[bool, ...]) -> Rule:
    """Run a primitive's rule on abstract tensors."""
    trace = Trace(mode)
    trace.is_cached = True
    before, local.staging, source, local.source = local.staging, trace, local.source, local.source
    local.source = eqn.source or source
    try:
        xs = [x if x.__class__ is Literal else leaf(x.type, trace) for x in eqn.inputs]
        ys = [leaf(var.type, trace) for var in eqn.outputs]
        like = eqn.outputs if mode == "vjp" else eqn.inputs
        seeds = tuple([leaf(x.type, trace) if there else None for x, there in zip(like, seeded)])
        derivatives = run_rule(mode, eqn, seeds, ys, xs)
        kept = [d if want else None for d, want in zip(derivatives, wanted, strict=True)]
        for x, d in zip(eqn.inputs if mode == "vjp" else eqn.outputs, kept):
            assert d is None or d.type == x.type, f"{eqn.op!r}: {mode} gave {d.type} for {x.type}"
        return Rule([*xs, *ys, *seeds], kept)
    finally:
        local.staging, local.source, trace.active = before, source, False


def run_rule(
    mode: str, eqn: Equation, seeds: tuple[Any, ...], ys: list[Any], xs: list[Any]
) -> tuple[Any, ...]:
    """Return a derivative for each operand (vjp) or result (jvp), None if it is zero."""
    several = isinstance(infer(eqn.op, tuple([x.type for x in eqn.inputs])), tuple)
    y = tuple(ys) if several else ys[0]
    if mode == "vjp":
        return eqn.op.vjp(seeds if several else seeds[0], y, *xs)
    result = eqn.op.jvp(seeds, y, *xs)
    return result if several else (result,)
