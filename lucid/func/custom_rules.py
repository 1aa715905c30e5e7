"""custom_vjp and custom_jvp: functions with user-defined derivative rules, as in JAX.

The rules are traced once for every differentiated call and become one equation that every transform
supports. A tensor that the function closes over is a constant: pass it as an argument to
differentiate with respect to it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from threading import get_ident
from typing import Any, Generic, ParamSpec, TypeVar

from lucid.autograd.function import Function
from lucid.autograd.function_calls import derivative_like
from lucid.errors import ArgumentError, GraphError, TracedValueError
from lucid.func.batching import vmap
from lucid.func.run import argument_numbers
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.types import is_differentiable
from lucid.ops.core.arguments import check_callable
from lucid.ops.core.decorated import portable_function, wrapper_of
from lucid.ops.core.promote import as_tensor
from lucid.ops.higher_order.custom_derivative import CustomJvp
from lucid.ops.shape.derivative_seeds import full_constant
from lucid.public.declare import public
from lucid.tape.bind import bind, fresh
from lucid.tape.cut import cut
from lucid.tape.modes import local
from lucid.tape.node import GRAD, TRACE, Trace, Traced, is_recording, leaf
from lucid.tape.recorder import CollectEffects
from lucid.tape.trace import function_name, replay
from lucid.tape.views import tensor_of
from lucid.transforms.vmap import current_axis_name

RULES = ("fwd", "bwd", "rule")  # what `defvjp` and `defjvp` set
_depth = count(2000)
_running: dict[int, list[Any]] = {}  # custom_vjp functions whose fwd is running, by thread
_running_jvp: dict[int, list[Any]] = {}  # custom_jvp functions whose rule runs on values
_running_bwd: dict[int, list[Any]] = {}  # those whose bwd is running


P = ParamSpec("P")
R = TypeVar("R")


class CustomRuleFunction(Generic[P, R]):
    """A function with a custom rule; its arguments are static or pytrees of tensors."""

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ) -> None:
        check_callable(type(self).__name__, fun)
        functools.update_wrapper(self, fun)  # type: ignore[arg-type]
        self.function: Callable[..., R] = fun
        named = named_positions(type(self).__name__, fun, nondiff_argnames)
        self.static = tuple(dict.fromkeys((*argument_numbers(nondiff_argnums), *named)))

    def __reduce__(self) -> Any:
        rules = {name: self.__dict__[name] for name in RULES if name in self.__dict__}
        return rebuild_custom, (type(self), portable_function(self.function), self.static), rules

    def arguments(self, args: Any, kwargs: Any) -> Arguments:
        return Arguments(self, bind_positional(self.function, args, kwargs))

    def missing_rule_error(self, method: str) -> GraphError:
        name = function_name(self.function)
        return GraphError(f"{name}: no rule was given; call {name}.{method}(...) first")


def named_positions(what: str, fun: Any, names: Any) -> list[int]:
    """Return the positions of the arguments of a function with these names."""
    names = [names] if isinstance(names, str) else list(names)
    known = list(inspect.signature(fun).parameters) if names else []
    for name in names:
        if name not in known:
            raise ArgumentError(
                f"{what}: nondiff_argnames has {name!r}, which is not an argument of "
                f"{function_name(fun)}"
            )
    return sorted(known.index(name) for name in names)


def rebuild_custom(cls: Any, function: Any, static: tuple[int, ...]) -> Any:
    """Return the function of a pickle: the one that this process has, if it has it."""
    found = wrapper_of(function)
    return found if isinstance(found, cls) else cls(function, static)


class Arguments:
    """The arguments of one call, split into static ones and leaves."""

    def __init__(self, custom_function: CustomRuleFunction, args: tuple[Any, ...]) -> None:
        self.args = args
        self.positions = [i for i in range(len(args)) if i not in custom_function.static]
        self.static = [args[i] for i in custom_function.static if i < len(args)]
        given, self.tree = flatten(tuple(args[i] for i in self.positions))
        self.leaves = [as_tensor(x) for x in given]

    @property
    def is_tracked(self) -> bool:
        """True if operations on these arguments are recorded."""
        return is_recording() or any(x.node is not None and x.node.flags for x in self.leaves)

    def dynamic(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        return unflatten(self.tree, leaves)

    def all(self, leaves: Sequence[Any]) -> list[Any]:
        """Return all arguments, with `leaves` in place of the tensors."""
        full = list(self.args)
        for i, x in zip(self.positions, self.dynamic(leaves)):
            full[i] = x
        return full


def bind_positional(function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, ...]:
    """Return the arguments of a call as positional ones, with defaults applied."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return args
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(f"{function_name(function)}: {error}") from None
    bound.apply_defaults()
    if bound.kwargs:
        raise ArgumentError(
            f"{function_name(function)}: keyword-only arguments are not supported with custom "
            f"rules: {', '.join(bound.kwargs)}"
        )
    return bound.args


def flatten_derivatives(what: str, given: Any, trees: Any) -> list[Any]:
    """Return a derivative for every leaf of pytrees; None means zero for a leaf or a subtree."""
    if given is None:
        return [None] * trees.num_leaves
    if trees.is_leaf():
        return [given]
    children = trees.children()
    parts = list(given.values()) if isinstance(given, dict) else list(given)
    if len(parts) != len(children):
        raise GraphError(f"{what}: the rule returned {len(parts)} derivatives, not {len(children)}")
    if isinstance(given, dict):
        parts = [given[key] for key in trees.entries()]
    return [
        x for part, child in zip(parts, children) for x in flatten_derivatives(what, part, child)
    ]


@public("func")
class custom_vjp(CustomRuleFunction[P, R]):
    """A function whose reverse-mode rule is given by `defvjp(fwd, bwd)`.

    fwd(*args)            (output, residuals)
    bwd(residuals, ct)    a tuple with the cotangent of every argument, None for zero

    Static arguments (`nondiff_argnums`) come first in bwd.

    >>> import lucid
    >>> @lucid.func.custom_vjp
    ... def clip_gradient(x):
    ...     return x * 1.0
    >>> clip_gradient.defvjp(
    ...     lambda x: (x * 1.0, None), lambda res, ct: (ct.clamp(-1.0, 1.0),)
    ... )
    >>> lucid.func.grad(lambda x: 5.0 * clip_gradient(x))(lucid.tensor(2.0))
    Tensor(1.)
    """

    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the reverse-mode rule."""
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.fwd is None or self.bwd is None:
            raise self.missing_rule_error("defvjp")
        arguments = self.arguments(args, kwargs)
        if not arguments.is_tracked or self in _running.get(get_ident(), ()):
            return self.function(*arguments.args)
        call = VjpCall(self, arguments)
        outputs = CustomVjpCall.apply(call, *arguments.leaves)
        return unflatten(call.out_tree, outputs)


class VjpCall:
    """One call of a custom_vjp function: maps leaves to arguments, residuals and results."""

    def __init__(self, custom_function: custom_vjp, arguments: Arguments) -> None:
        self.custom_function, self.arguments = custom_function, arguments
        self.name = function_name(custom_function.function)
        self.out_tree: Any = None
        self.residual_tree: Any = None
        self.residuals: list[Any] = []

    def forward(self, leaves: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the leaves of the result, and the residuals that are tensors."""
        running = _running.setdefault(get_ident(), [])
        running.append(self.custom_function)  # a call inside fwd runs the plain function
        try:
            result = self.custom_function.fwd(*self.arguments.all(leaves))  # type: ignore[misc]
        finally:
            running.remove(self.custom_function)
        if not isinstance(result, tuple) or len(result) != 2:
            raise GraphError(f"{self.name}: fwd must return (output, residuals)")
        outputs, self.out_tree = flatten(result[0])
        self.residuals, self.residual_tree = flatten(result[1])
        return outputs, [x for x in self.residuals if isinstance(x, Traced)]

    def backward(self, saved: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        rest = iter(saved)
        leaves = [next(rest) if isinstance(x, Traced) else x for x in self.residuals]
        residuals = unflatten(self.residual_tree, leaves)
        ct = unflatten(self.out_tree, cts)
        given = self.run_bwd(residuals, ct)
        if len(self.arguments.positions) == 1 and not isinstance(given, (tuple, list)):
            given = (given,)
        found = flatten_derivatives(self.name, given, self.arguments.tree)
        said = f"{self.name}: the rule returned a cotangent"
        return [
            None if g is None else derivative_like(said, "an argument", g, x.type)
            for g, x in zip(found, self.arguments.leaves)
        ]

    def run_bwd(self, residuals: Any, ct: Any) -> Any:
        """Run the user's rule, which must not call itself: tracing it would never end."""
        running = _running_bwd.setdefault(get_ident(), [])
        if self.custom_function in running:
            raise GraphError(
                f"{self.name}: its bwd calls {self.name} itself, so tracing would never end; call "
                "a plain function there, or define the rule with custom_jvp"
            )
        running.append(self.custom_function)
        try:
            return self.custom_function.bwd(*self.arguments.static, residuals, ct)  # type: ignore[misc]
        finally:
            running.remove(self.custom_function)


class CustomVjpCall(Function):
    """The autograd Function that runs a VjpCall."""

    @staticmethod
    def forward(ctx: Any, call: VjpCall, *leaves: Any) -> Any:
        ctx.call = call
        outputs, saved = call.forward(leaves)
        ctx.save_for_backward(*saved)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *cts: Any) -> Any:
        return (None, *ctx.call.backward(ctx.saved_tensors, cts))


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
        op = CustomJvp(forward.graph("forward"), rule, len(given))
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
        return trace_rule(self, primals, nonzero, self.inner.name)

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


@dataclass(frozen=True)
class StaticArgument:
    """A static argument, compared by value if it is hashable and by identity otherwise."""

    key: Any
    value: Any = field(compare=False)


def static_argument(x: Any) -> StaticArgument:
    try:
        hash(x)
    except TypeError:
        return StaticArgument(id(x), x)
    return StaticArgument((type(x), x), x)


def tangent_like(name: str, tangent: Any, output: Any) -> Any:
    if tangent is None:
        return None
    said = f"{name}: the rule returned a tangent"
    return derivative_like(said, "an output", tangent, output.type)
