"""expected_call: a call that was one operation of a followed step, and is so again.

Much of a call is to check its arguments. Checks depend on constants and on the types of tensors:
where the constants are the same and a step expects the operation, comparing the types of its
operands is all that is left to do (`autograd/following/follow.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import Any, TypeVar

from lucid.ir.primitive import Primitive
from lucid.ops.core.promote import Default
from lucid.tape.modes import current
from lucid.tape.node import Traced, followers

F = TypeVar("F", bound=Callable[..., Any])
PLAIN = (type(None), bool, int, float, str)  # classes of what never changes
_MISSING = object()


class ExpectedCall:
    """A call whose result was that of one step.

    function    what was called
    count       the number of its positional arguments
    fixed       those that are not tensors, with their numbers; `named` the others by name
    places      the numbers of the operands among the arguments; other operands as they are
    tensors     the numbers of the arguments that are tensors
    default     the default dtype
    """

    __slots__ = ("count", "default", "fixed", "function", "named", "places", "tensors")

    def __init__(self, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        self.function, self.count, self.named = function, len(args), named
        self.tensors = [i for i, x in enumerate(args) if isinstance(x, Traced)]
        self.fixed = [(i, x) for i, x in enumerate(args) if i not in self.tensors]
        self.places: list[Any] = []
        self.default = Default.floating

    def operands(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...] | None:
        """Return the operands for these arguments, None if another call is meant."""
        if len(args) != self.count or Default.floating is not self.default:
            return None
        for i, x in self.fixed:
            if args[i] is not x:
                return None
        for i in self.tensors:
            if not isinstance(args[i], Traced):
                return None
        if named or self.named:
            if len(named) != len(self.named):
                return None
            for name, x in self.named.items():
                if named.get(name, _MISSING) is not x:
                    return None
        return tuple([args[p] if p.__class__ is int else p for p in self.places])


def follow_call(
    follower: Any, function: Any, args: tuple[Any, ...], named: dict[str, Any], in_range: Any = None
) -> Any:
    """Return the pending result of a call that is expected, None if it is not.

    in_range    what tells whether indices among the arguments are in range, see `expect_calls`
    """
    step = follower.steps[follower.at]
    expected = step.call
    if expected is None or expected.function is not function:
        return None
    operands = expected.operands(args, named)
    if operands is None or (in_range is not None and not in_range(*operands)):
        return None
    return follower.follow(step.op, operands, True, in_range is not None)


def learn_call(
    function: Any, args: tuple[Any, ...], named: dict[str, Any], constants: Any, out: Any
) -> None:
    """Expect this call again where its result `out` was that of one step.

    constants    operands that are the same tensors in every call
    """
    follower = followers.get(get_ident())
    if follower is None or not follower.at:
        return
    step = follower.steps[follower.at - 1]
    if not step.is_reused or follower.outs[follower.at - 1] is not out:
        return
    if not all([is_constant(x) for x in named.values()]):
        return
    if not all([isinstance(x, Traced) or is_constant(x) for x in args]):
        return
    made = ExpectedCall(function, args, named)
    nodes: dict[Any, Any] = {x.node: x for x in constants}
    nodes.update([(args[i].node, i) for i in made.tensors])
    for ref in step.expects:
        place = nodes.get(follower.slots[ref], ref) if ref.__class__ is int else ref
        if place is ref and ref.__class__ is int:
            return  # an operand that the call has made
        made.places.append(place)
    if len(nodes) == len(made.tensors) + len(constants):  # one Node each,
        if {p for p in made.places if p.__class__ is int} == set(made.tensors):  # and all are read
            step.call = made


def is_constant(x: Any) -> bool:
    """True for an argument that is the same as long as it is the same object."""
    if x.__class__ is tuple:
        return all([is_constant(y) for y in x])
    return x.__class__ in PLAIN or isinstance(x, Primitive)


def expect_calls(in_range: Any = None) -> Callable[[F], F]:
    """Let calls of a function that were one operation skip its checks where a step expects them.

    It must be pure, and what it checks must not depend on values, except for indices:

    in_range    function of the operands, False if an index is out of range or not known
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not followers or (follower := followers.get(get_ident())) is None:
                return function(*args, **kwargs)
            if not current().no_observers:
                return function(*args, **kwargs)
            found = follow_call(follower, call, args, kwargs, in_range)
            if found is not None:
                return found
            at = follower.at
            out = function(*args, **kwargs)
            if follower.at == at + 1:
                learn_call(call, args, kwargs, (), out)
            return out

        return call  # type: ignore[return-value]

    return decorate
