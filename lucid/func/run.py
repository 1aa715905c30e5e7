"""Run: one call of a function on fresh inputs and the Cut of its tape, which transforms use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any

from lucid.compiler.jit.reroll_recording import reroll_recording
from lucid.errors import ArgumentError, DTypeError, LucidError
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.types import is_differentiable
from lucid.ops.core.arguments import check_callable
from lucid.ops.core.promote import as_tensor
from lucid.ops.shape.derivative_seeds import zeros_like
from lucid.tape.bind import fresh, without_gradient
from lucid.tape.cut import Cut, ancestors
from lucid.tape.modes import local
from lucid.tape.node import TRACE, Node, Traced, is_recording, next_serial, wrap
from lucid.tape.recording.trace import function_name
from lucid.tape.template import find_cut
from lucid.tape.views import node_of, storage_of
from lucid.transforms.prepare import pullback, pushforward

ArgNums = int | Sequence[int]


class Run:
    """One call of a function on fresh inputs: its outputs and the Cut between them.

    inputs                the fresh tensors it was called with
    outputs               the leaves of its result
    non_tensor_outputs    the class names of leaves that are not tensors
    outer                 flags of outer transforms that track the arguments or captured values
    constant              whether it was called under `no_grad`: for outer transforms what it
                          returns and saves is constant
    """

    def __init__(
        self,
        f: Callable[..., Any],
        primals: Sequence[Any],
        what: str,
        has_aux: bool = False,
        allow_int: bool = False,
    ) -> None:
        self.what = what
        check_callable(what, f)
        given, self.in_tree = flatten(tuple(primals))
        self.primals = [as_tensor(x) for x in given]
        if not allow_int and not all([is_differentiable(x.dtype) for x in self.primals]):
            check_differentiable(primals, what)
        start = next_serial()
        self.inputs = [fresh(x) for x in self.primals]
        nodes = [x.node for x in self.inputs]
        before = local.grad
        self.constant = not before
        local.grad = True
        local.transforms += 1
        try:
            result = f(*unflatten(self.in_tree, self.inputs))
        finally:
            local.grad = before
            local.transforms -= 1
        self.aux: Any = None
        if has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise LucidError(f"{what}: with has_aux the function must return (output, aux)")
            result, self.aux = result
        leaves, self.out_tree = flatten(result)
        self.outputs = [as_tensor(y) for y in leaves]
        kinds = {type(y).__name__ for y in leaves if not isinstance(y, Traced)}
        self.non_tensor_outputs = ", ".join(sorted(kinds))
        if is_recording():
            reroll_recording(self.outputs, [node_of(x) for x in self.inputs], start)
        ends = [node_of(y) for y in self.outputs]
        self.cut: Cut = find_cut(ends, [node_of(x) for x in self.inputs])
        self.outer = 0
        for x, node in zip(self.primals, nodes):
            node.flags = 0 if x.node is None else x.node.flags  # this run no longer tracks it
            self.outer |= node.flags
        for slot in self.cut.captured:
            self.outer |= outer_flags(self.cut.slots[slot], start)

    @property
    def record(self) -> bool:
        return (bool(self.outer) and local.grad and not self.constant) or self.tracing

    @property
    def tracing(self) -> bool:
        """True if an outer transform or recording needs every equation, constants included."""
        return bool(self.outer & TRACE) or is_recording()

    def zeros(self, x: Any) -> Any:
        return zeros_like(x, self.tracing)

    def unwrap_tree(self, tree: Any) -> Any:
        """Return results detached from this run's tape but not from outer transforms."""
        leaves, structure = flatten(tree)
        return unflatten(structure, [self.unwrap(x) for x in leaves])

    def unwrap(self, x: Any, outer: int = 0) -> Any:
        """Return a result without this run's flags; `outer` are those of its seeds."""
        if not isinstance(x, Traced) or x.node is None:
            return x
        if not (self.record or outer):
            if x.raw is None:
                return x
            out = wrap(x.value)
            # a pullback may have saved this memory, so writes to it must be counted
            out.storage = storage_of(x)
            return out
        if self.constant and not outer:
            return without_gradient(x)
        if not (self.outer | outer) & TRACE:
            x.node.flags &= ~TRACE
        return x

    def result(self) -> Any:
        return unflatten(self.out_tree, [self.unwrap(y) for y in self.outputs])

    def pull(self, cotangents: Sequence[Any]) -> list[Any]:
        """Return the cotangents of the inputs, zeros for unused inputs."""
        grads = pullback(self.cut, cotangents, self.record, self.constant)
        return [self.zeros(x) if g is None else self.unwrap(g) for x, g in zip(self.primals, grads)]

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        """Return the tangents of the outputs, zeros for outputs independent of the inputs."""
        ts = pushforward(self.cut, tangents, self.record, self.constant)
        return [self.zeros(y) if t is None else self.unwrap(t) for y, t in zip(self.outputs, ts)]


def outer_flags(node: Node, start: int) -> int:
    """Return which transforms track a value, without those that began since `start` and ended.

    An ended run leaves its flags on what it computed, though not on its inputs.
    """
    if not node.flags or node.serial < start or node.op is None:
        return node.flags
    flags = 0
    for equation in ancestors([node], start):
        for x in equation.inputs:
            if x.__class__ is Node and (x.op is None or x.serial < start):
                flags |= x.flags
    return flags & node.flags


def check_differentiable(primals: Sequence[Any], what: str) -> None:
    """Raise an error for an argument without floats; integers in a mixed pytree are constants."""
    for argument in primals:
        dtypes = [as_tensor(x).dtype for x in flatten(argument)[0]]
        if dtypes and not any(is_differentiable(dtype) for dtype in dtypes):
            raise DTypeError(
                f"{what}: an argument of dtype {dtypes[0]} has no derivative; pass floats, "
                "or remove it from argnums"
            )


def argument_numbers(argnums: Any) -> tuple[int, ...]:
    """Return the positions of arguments that a user gives as an integer or a sequence of them."""
    try:
        return tuple(map(index, argnums)) if isinstance(argnums, Iterable) else (index(argnums),)
    except TypeError:
        facts = f"argnums={argnums!r:.60} is not an integer or a sequence of integers"
        raise ArgumentError(facts) from None


def argnums_partial(
    f: Callable[..., Any], argnums: ArgNums, args: Sequence[Any], kwargs: Any
) -> tuple[Any, list[Any]]:
    """Return `f` as a function of the arguments `argnums`, and those arguments."""
    check_callable("func", f)
    numbers = argument_numbers(argnums)
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise LucidError(
                f"argnums={number} is out of range: {function_name(f)} was called with {len(args)} "
                "positional arguments"
            )
    numbers = tuple(number % len(args) for number in numbers)
    if len(set(numbers)) != len(numbers):
        raise ArgumentError(
            f"argnums={tuple(argnums)} names an argument twice"  # type: ignore[arg-type]
        )

    def chosen(*values: Any) -> Any:
        full = list(args)
        for number, value in zip(numbers, values):
            full[number] = value
        return f(*full, **kwargs)

    return chosen, [args[number] for number in numbers]
