"""custom_jvp: a function whose forward-mode rule the user gives; reverse mode transposes it.

The rule is traced once for every differentiated call and becomes one equation that every transform
supports. A tensor that the function closes over is a constant.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from threading import get_ident
from typing import Any

from lucid.autograd.functions.calls import derivative_like
from lucid.errors import ArgumentError, GraphError, TracedValueError
from lucid.func.custom_rules.arguments import (
    CustomRuleFunction,
    P,
    R,
    flatten_derivatives,
    static_argument,
)
from lucid.func.mapping.batching import vmap
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.types import is_differentiable
from lucid.ops.core.promote import as_tensor
from lucid.ops.higher_order.custom_derivative import CustomJvp
from lucid.ops.shape.derivative_seeds import full_constant
from lucid.public.declare import public
from lucid.tape.bind import bind, fresh
from lucid.tape.cut import cut
from lucid.tape.modes import local
from lucid.tape.node import GRAD, TRACE, Trace, leaf
from lucid.tape.recording.recorder import CollectEffects
from lucid.tape.recording.trace import function_name, replay
from lucid.tape.views import tensor_of
from lucid.transforms.vmap import current_axis_name

_depth = count(2000)
_running_jvp: dict[int, list[Any]] = {}  # custom_jvp functions whose rule runs on values, by thread


@public("func")
class custom_jvp(CustomRuleFunction[P, R]):
    """A function whose forward-mode rule is given by `defjvp(rule)`; reverse mode follows.

    rule(primals, tangents)    (output, tangent of the output), linear in the tangents

    Static arguments (`nondiff_argnums`) come first in the rule.

    >>> import lucid
    >>> @lucid.func.custom_jvp
    ... def log1pexp(x):
    ...     return lucid.log(1 + lucid.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), lucid.sigmoid(x) * t
    >>> lucid.func.grad(log1pexp)(lucid.tensor(100.0))
    Tensor(1.)
    """

    rule: Callable[..., Any] | None = None

    @functools.cached_property
    def value_reads(self) -> dict[Any, bool]:
        """Whether Python reads values in the rule, by the types of the arguments."""
        return {}

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the forward-mode rule; also usable as a decorator."""
        self.rule = rule
        return rule

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """Set a rule for every argument: `rule(tangent, output, *primals)`, or None for zero."""
        if self.static:
            raise ArgumentError("defjvps: use defjvp with nondiff_argnums")

        def rule(primals: Any, tangents: Any) -> Any:
            output = self(*primals)  # type: ignore[call-arg]
            parts = [f(t, output, *primals) for f, t in zip(rules, tangents) if f is not None]
            total = parts[0]
            for part in parts[1:]:
                total = total + part
            return output, total

        self.rule = rule

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.rule is None:
            raise self.missing_rule_error("defjvp")
        arguments = self.arguments(args, kwargs)
        if not arguments.is_tracked or self in _running_jvp.get(get_ident(), ()):
            return self.function(*arguments.args)
        given = arguments.leaves
        inputs = [fresh(x, TRACE | (GRAD if is_differentiable(x.dtype) else 0)) for x in given]
        with CollectEffects() as effects:
            result, out_tree = flatten(self.function(*arguments.all(inputs)))
        forward = cut(inputs, [as_tensor(y) for y in result], effects=effects)
        captured = [tensor_of(forward.slots[s]) for s in forward.captured]
        static = tuple(map(static_argument, arguments.static))
        rule: Any = TangentRule(self, static, arguments.tree, out_tree)
        if all(x.raw is not None for x in given) and self.rule_reads_values(rule, given):
            rule = RecordedRule.of(rule, given)
        op = CustomJvp(forward.graph(rule.name), rule, len(given))
        return unflatten(out_tree, bind(op, *given, *captured))

    def rule_reads_values(self, rule: TangentRule, given: Sequence[Any]) -> bool:
        """True if Python reads values in the rule, which therefore runs on those of each call."""
        key = (rule, tuple(x.type for x in given))
        if key not in self.value_reads:
            trace = Trace(f"the rule of {rule.name}", next(_depth))
            try:
                trace_rule(
                    rule, [leaf(x.type, trace) for x in given], rule.nonzero(given), rule.name
                )
            except TracedValueError:
                self.value_reads[key] = True
            except Exception:  # raised again where the derivative is taken
                self.value_reads[key] = False
            else:
                self.value_reads[key] = False
        return self.value_reads[key]


@dataclass(frozen=True)
class TangentRule:
    """The rule of a custom_jvp function on leaves. Equal rules make equal equations."""

    custom_function: custom_jvp
    static: tuple[Any, ...]
    tree: Any
    out_tree: Any

    @property
    def name(self) -> str:
        return function_name(self.custom_function.function)

    def again(self, leaves: Sequence[Any]) -> list[Any]:
        """Call the function with other tensors; return the leaves of its result."""
        static = dict(zip(self.custom_function.static, [x.value for x in self.static]))
        dynamic = iter(unflatten(self.tree, leaves))
        n = len(self.tree.children()) + len(static)
        args = [static[i] if i in static else next(dynamic) for i in range(n)]
        return flatten(self.custom_function(*args))[0]

    def nonzero(self, primals: Sequence[Any]) -> list[int]:
        """Return the positions of the arguments that have tangents."""
        return [i for i, x in enumerate(primals) if is_differentiable(x.dtype)]

    def tangents(self, primals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Return the tangents of the outputs, None for zero."""
        name = function_name(self.custom_function.function)
        given = [x.value for x in self.static]
        at = unflatten(self.tree, primals), unflatten(self.tree, tangents)
        found = self.custom_function.rule(*given, *at)  # type: ignore[misc]
        if not isinstance(found, tuple) or len(found) != 2:
            raise GraphError(f"{name}: the rule must return (output, tangent)")
        outputs = [as_tensor(y) for y in flatten(found[0])[0]]
        leaves = flatten_derivatives(name, found[1], self.out_tree)
        return [
            tangent_like(name, t, y) if is_differentiable(y.dtype) else None
            for t, y in zip(leaves, outputs, strict=True)
        ]

    def traced(self, primals: Sequence[Any], nonzero: Sequence[int]) -> tuple[Any, list[int]]:
        """Return the Cut of the rule as a function of the tangents, and the non-zero outputs."""
        return trace_rule(self, primals, nonzero, function_name(self.custom_function.function))

    def batched(self, n: int, flags: tuple[bool, ...]) -> BatchedRule:
        return BatchedRule(self, n, flags, current_axis_name())


@dataclass(frozen=True, eq=False)
class RecordedRule:
    """A rule as it ran on values that Python read: the Graph of the branch it took.

    graph       takes arguments, their tangents and captured tensors; returns nonzero tangents
    moved       the positions of these tangents among the `n_out` outputs
    """

    inner: TangentRule
    graph: Any
    captured: tuple[Any, ...]
    moved: tuple[int, ...]
    n_out: int

    @property
    def name(self) -> str:
        return self.inner.name

    def again(self, leaves: Sequence[Any]) -> list[Any]:
        return self.inner.again(leaves)

    @staticmethod
    def of(rule: TangentRule, given: Sequence[Any]) -> RecordedRule:
        """Run a rule on values; inside it the function is called without its rule."""
        trace = Trace(f"the rule of {rule.name}", next(_depth))
        flags = [TRACE | (GRAD if is_differentiable(x.dtype) else 0) for x in given]
        primals = [fresh(x, flag) for x, flag in zip(given, flags)]
        seeds = {i: leaf(given[i].type, trace) for i in rule.nonzero(given)}
        running = _running_jvp.setdefault(get_ident(), [])
        running.append(rule.custom_function)
        before, local.staging = local.staging, trace
        try:
            found = rule.tangents(primals, [seeds.get(i) for i in range(len(given))])
            moved = tuple(i for i, t in enumerate(found) if t is not None)
            section = cut([*primals, *seeds.values()], [found[i] for i in moved])
        finally:
            local.staging, trace.active = before, False
            running.remove(rule.custom_function)
        captured = tuple(tensor_of(section.slots[s]) for s in section.captured)
        return RecordedRule(rule, section.graph("tangent"), captured, moved, len(found))

    def tangents(self, primals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        zero = [full_constant(0.0, x.shape, x.dtype, True) if t is None else t
                for x, t in zip(primals, tangents) if is_differentiable(x.dtype)]  # fmt: skip
        results: list[Any] = [None] * self.n_out
        for i, t in zip(self.moved, replay(self.graph, [*primals, *zero, *self.captured])):
            results[i] = t
        return results

    def traced(self, primals: Sequence[Any], nonzero: Sequence[int]) -> tuple[Any, list[int]]:
        return trace_rule(self, primals, nonzero, self.name)

    def batched(self, n: int, flags: tuple[bool, ...]) -> BatchedRule:
        return BatchedRule(self, n, flags, current_axis_name())


@dataclass(frozen=True)
class BatchedRule:
    """A rule over a batch: examples are in axis 0 of the batched arguments."""

    inner: Any
    n: int
    flags: tuple[bool, ...]
    axis_name: Any

    def tangents(self, primals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        nonzero = [i for i, t in enumerate(tangents) if t is not None]
        dims = [0 if flag else None for flag in self.flags]

        positions: list[int] = []
        size = 0

        def one(*values: Any) -> Any:
            nonlocal positions, size
            seeds = dict(zip(nonzero, values[len(primals) :]))
            full = [seeds.get(i) for i in range(len(primals))]
            found = self.inner.tangents(values[: len(primals)], full)
            positions, size = [i for i, t in enumerate(found) if t is not None], len(found)
            return [found[i] for i in positions]

        in_dims = (*dims, *[dims[i] for i in nonzero])
        mapped = vmap(one, in_dims=in_dims, axis_name=self.axis_name)
        found = mapped(*primals, *[tangents[i] for i in nonzero])
        results: list[Any] = [None] * size
        for i, t in zip(positions, found):
            results[i] = t
        return results

    def traced(self, primals: Sequence[Any], nonzero: Sequence[int]) -> tuple[Any, list[int]]:
        return trace_rule(self, primals, nonzero, "vmap")

    def batched(self, n: int, flags: tuple[bool, ...]) -> BatchedRule:
        return BatchedRule(self, n, flags, current_axis_name())


def trace_rule(
    rule: Any, primals: Sequence[Any], nonzero: Sequence[int], name: str
) -> tuple[Any, list[int]]:
    trace = Trace(f"the rule of {name}", next(_depth))
    seeds = {i: leaf(primals[i].type, trace) for i in nonzero}
    before, local.staging = local.staging, trace
    trace.is_cached = before is not None and before.is_cached
    try:
        found = rule.tangents(primals, [seeds.get(i) for i in range(len(primals))])
        nonzero_outputs = [i for i, t in enumerate(found) if t is not None]
        return cut(list(seeds.values()), [found[i] for i in nonzero_outputs]), nonzero_outputs
    finally:
        local.staging, trace.active = before, False


def tangent_like(name: str, tangent: Any, output: Any) -> Any:
    if tangent is None:
        return None
    said = f"{name}: the rule returned a tangent"
    return derivative_like(said, "an output", tangent, output.type)
