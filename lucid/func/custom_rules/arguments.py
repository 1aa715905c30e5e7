"""Shared by custom_vjp and custom_jvp: the function, its arguments as leaves, a rule's results."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, TypeVar

from lucid.errors import ArgumentError, GraphError
from lucid.func.run import argument_numbers
from lucid.ir.pytree import flatten, unflatten
from lucid.ops.core.arguments import check_callable
from lucid.ops.core.decorated import portable_function, wrapper_of
from lucid.ops.core.promote import as_tensor
from lucid.tape.node import is_recording
from lucid.tape.recording.trace import function_name

RULES = ("fwd", "bwd", "rule")  # what `defvjp` and `defjvp` set

P = ParamSpec("P")
R = TypeVar("R")


class CustomRuleFunction(Generic[P, R]):
    """A function with a custom rule; its arguments are static or pytrees of tensors."""

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] | None = (),
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
    if names is not None and not isinstance(names, Sequence):
        raise ArgumentError(f"{what}: nondiff_argnames={names!r:.40} is not a sequence of names")
    names = [names] if isinstance(names, str) else list(names or ())
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
