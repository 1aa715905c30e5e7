"""expected_call: a call that was some operations of a followed step, and is so again.

Much of a call is to check its arguments. Checks depend on constants and on the types of tensors:
where the constants are the same and a step expects the operations, comparing the types of its
operands is all that is left to do (`autograd/following/follow.py`). What one operation of the call
computes for another need not be compared. A call may write to its arguments (`expected_writes`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any, TypeVar

from lucid.ir.primitive import Primitive
from lucid.ops.core.promote import Default
from lucid.ops.higher_order.expected_writes import Before, ExpectedWrites, learn_writes
from lucid.tape.modes import current
from lucid.tape.node import Traced, followers, next_serial

F = TypeVar("F", bound=Callable[..., Any])
PLAIN = (type(None), bool, int, float, str)  # classes of what never changes
MAX_STEPS = 8  # operations of one call
_MISSING = object()


class ExpectedCall:
    """A call that was one operation of a followed step, or several in a row.

    function    what was called
    count       the number of its positional arguments
    fixed       those that are not tensors, with their numbers; `named` the others by name
    operands    the numbers of the arguments that are tensors, each with the slot that it fills
    constants   operands that are the same tensors in every call, each with its slot
    steps       the operations
    results     which of them are returned: a number, or a tuple of numbers
    writes      what is written to arguments, or None
    default     the default dtype
    """

    __slots__ = (
        "constants", "count", "default", "fixed", "function", "named", "operands", "results",
        "steps", "writes",
    )  # fmt: skip

    def __init__(self, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        self.function, self.count, self.named = function, len(args), named
        self.fixed = [(i, x) for i, x in enumerate(args) if not isinstance(x, Traced)]
        self.operands: list[tuple[int, int]] = []
        self.constants: list[tuple[Any, int]] = []
        self.steps: list[Any] = []
        self.results: Any = 0
        self.writes: ExpectedWrites | None = None
        self.default = Default.floating

    def is_meant(self, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """True if arguments that are not tensors are the same."""
        if len(args) != self.count or Default.floating is not self.default:
            return False
        for i, x in self.fixed:
            if args[i] is not x:
                return False
        if named or self.named:
            if len(named) != len(self.named):
                return False
            for name, x in self.named.items():
                if named.get(name, _MISSING) is not x:
                    return False
        return True

    def follow(
        self, follower: Any, args: tuple[Any, ...], named: dict[str, Any], in_range: Any
    ) -> Any:
        """Return the pending results for these arguments, None if another call is meant."""
        modes = current()
        if not modes.fast_record or not modes.no_observers or not self.is_meant(args, named):
            return None
        first = self.steps[0]
        xs: tuple[Any, ...] = ()
        if first.checks or in_range is not None:  # there is one step
            if not all([isinstance(args[i], Traced) for i, _ in self.operands]):
                return None
            xs = self.operands_of(first, args)
            if in_range is not None and not in_range(*xs):
                return None
        slots = follower.slots
        for i, slot in self.operands:
            x = args[i]
            try:
                node = x.node
            except AttributeError:  # it is no tensor
                follower.unbind()
                return None
            if node is not None and node is slots[slot]:
                if (storage := x.storage) is None:
                    continue
                stamp = node.stamp
                if stamp is not None and stamp[0] is storage and stamp[1] == storage.version:
                    continue
            if follower.operand(slot, x) is None:
                follower.unbind()
                return None
        for x, slot in self.constants:
            if x.node is not slots[slot] and follower.operand(slot, x) is None:
                follower.unbind()
                return None
        writes = self.writes
        refs = () if writes is None else writes.refs(follower, args)
        if refs is None:
            follower.unbind()
            return None
        if follower.bound:
            follower.bound.clear()
        if first.checks and in_range is None:
            follower.check(first, xs)
        if writes is not None:
            writes.wait(follower, args, refs)
        return self.hand_out(follower, modes.scope)

    def operands_of(self, step: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the operands of a step for these arguments."""
        given: dict[Any, Any] = {slot: args[i] for i, slot in self.operands}
        given.update([(slot, x) for x, slot in self.constants])
        return tuple([given[r] if r.__class__ is int else r for r in step.expects])

    def hand_out(self, follower: Any, scope: Any) -> Any:
        """Return the tensors of the steps, their values pending."""
        at, slots, outs, steps = follower.at, follower.slots, follower.outs, self.steps
        source = follower.source_of(steps[0], outs[at].node.source, scope)
        for step in steps:
            node = slots[step.slot]
            if step.reads_outside:
                node.inputs = step.inputs_in(slots)
            node.serial = next_serial()
            node.source = source
        follower.at += len(steps)
        if self.results.__class__ is int:
            return outs[at + self.results]
        return tuple([outs[at + i] for i in self.results])


def follow_call(
    follower: Any, function: Any, args: tuple[Any, ...], named: dict[str, Any], in_range: Any = None
) -> Any:
    """Return the pending results of a call that is expected, None if it is not.

    in_range    what tells whether indices among the arguments are in range, see `expect_calls`
    """
    expected = follower.steps[follower.at].call
    if expected is None or expected.function is not function:
        return None
    return expected.follow(follower, args, named, in_range)


def learn_call(
    function: Any,
    args: tuple[Any, ...],
    named: dict[str, Any],
    constants: Any,
    out: Any,
    count: int = 1,
    before: Before | None = None,
) -> None:
    """Expect this call again where its result `out` was that of the last `count` steps.

    constants    operands that are the same tensors in every call
    before       what was there before the call, which may have written to its arguments
    """
    follower = followers.get(get_ident())
    if follower is None or not follower.at or not follower.steps[follower.at - 1].is_reused:
        return
    at = follower.at - count
    returned = follower.outs[at : follower.at]
    numbers = []
    for y in out if out.__class__ is tuple else (out,):
        number = find(returned, y)
        if number is None:
            return
        numbers.append(number)
    made = ExpectedCall(function, args, named)
    made.steps = steps = follower.steps[at : follower.at]
    made.results = tuple(numbers) if out.__class__ is tuple else numbers[0]
    if not all([is_constant(x) for x in (*named.values(), *[x for _, x in made.fixed])]):
        return
    if not all([step.is_reused and (count == 1 or not step.checks) for step in steps]):
        return
    inside = {step.slot for step in steps}
    written = [] if before is None else before.written(args)
    if written and before is not None:
        made.writes = learn_writes(follower, args, before, inside)
        if made.writes is None:
            return
    places: dict[Any, Any] = {}  # slot -> the argument or constant that fills it
    nodes = {x.node: x for x in constants}
    read = [i for i, x in enumerate(args) if isinstance(x, Traced) and i not in written]
    nodes.update([(args[i].node, i) for i in read])
    if None in nodes or len(nodes) != len(constants) + len(read):
        return  # not one Node each
    for step in steps:
        for ref, literal in zip(step.expects, step.literals):
            if ref.__class__ is not int or ref in inside:
                continue
            place = None if literal is not None else nodes.get(follower.slots[ref])
            if place is None:
                return  # an operand that the call has made, or a number that changes
            places[ref] = place
    made.operands = [(i, slot) for slot, i in places.items() if i.__class__ is int]
    made.constants = [(x, slot) for slot, x in places.items() if x.__class__ is not int]
    if len(made.operands) == len(read):  # all are read
        steps[0].call = made


def find(xs: Sequence[Any], x: Any) -> int | None:
    """Return where an object is in a list, None if it is not there."""
    for i, y in enumerate(xs):
        if y is x:
            return i
    return None


def is_constant(x: Any) -> bool:
    """True for an argument that is the same as long as it is the same object."""
    if x.__class__ is tuple:
        return all([is_constant(y) for y in x])
    return x.__class__ in PLAIN or isinstance(x, Primitive)


def expect_calls(in_range: Any = None) -> Callable[[F], F]:
    """Let calls of a function skip its checks where a step expects the operations that they were.

    It must return a tensor or a tuple of tensors and change nothing, except that it may `overwrite`
    positional arguments, which it does not return, with what it has computed. What it checks must
    not depend on values, except for indices:

    in_range    function of the operands, False if an index is out of range or not known
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not followers or (follower := followers.get(get_ident())) is None:
                return function(*args, **kwargs)
            if follower.steps[follower.at].op is None:  # nothing more, or the step waits
                return function(*args, **kwargs)
            found = follow_call(follower, call, args, kwargs, in_range)
            if found is not None:
                return found
            before = Before(follower, args)
            at = follower.at
            out = function(*args, **kwargs)
            limit = at + MAX_STEPS if in_range is None else at + 1
            if at < follower.at <= limit and current().no_observers:
                learn_call(call, args, kwargs, (), out, follower.at - at, before)
            return out

        return call  # type: ignore[return-value]

    return decorate
