"""The arguments of a jitted call: which are static, which are donated, and the rest as tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from operator import index
from typing import Any

from lucid.errors import ArgumentError, DTypeError
from lucid.ir.pytree import flatten, unflatten
from lucid.ops.core.constant_key import constant_key, value_key
from lucid.ops.core.promote import Default, as_tensor, cast_to, default_of_kind
from lucid.support.source import at_line
from lucid.tape.bind import bind
from lucid.tape.modes import local
from lucid.tape.node import Node, is_recording
from lucid.tape.recording.trace import function_name

NUMBERS = (bool, int, float, complex)
WIDE = {float: "float64", complex: "complex128"}


def is_number(x: Any) -> bool:
    """True for a tensor that stands for a Python number."""
    return x.node is not None and bool(x.node.is_number)


def narrow(x: Any) -> Any:
    """Return a Python number in the dtype that it has alone; `cast` finds its digits again.

    That needs Nodes of what operators make of it, which only a recorded run has.
    """
    if x.dtype.kind not in "fc" or x.dtype == default_of_kind(x.dtype) or not is_recording():
        return x
    y = bind(cast_to(default_of_kind(x.dtype)), x)
    if y.node is None:
        y.node = Node(None, (), 0, y.raw)
    if y.node.op is None:
        y.node.is_number = x
    return y


class CallSignature:
    """A function with the indices of its static and its donated arguments."""

    def __init__(self, f: Callable[..., Any], static_argnums: Any, donate_argnums: Any) -> None:
        self.function = f
        self.name = function_name(f)
        self.static = argument_indices("static_argnums", static_argnums)
        self.donated = argument_indices("donate_argnums", donate_argnums)

    def operand(self, x: Any) -> Any:
        """Return one of the leaves as a tensor, a Python number as one with all of its digits."""
        try:
            if x.__class__ not in NUMBERS:
                return as_tensor(x)
            number = as_tensor(x, WIDE.get(x.__class__))
            number.node = Node(None, (), 0, number.raw)
            number.node.is_number = True
            return number
        except DTypeError:
            facts = f"jit of {self.name}: argument {x!r:.40} is not an array"
            raise ArgumentError(f"{facts}; add its index to static_argnums{at_line()}") from None

    def operands(self, args: Any, kwargs: Any) -> list[Any]:
        """Return the leaves of the arguments as tensors."""
        leaves = flatten((self.dynamic(args), kwargs))[0]
        return [self.operand(x) for x in leaves]

    def dynamic(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return (
            tuple(None if i in self.static_indices(args) else x for i, x in enumerate(args))
            if self.static
            else args
        )

    def static_indices(self, args: tuple[Any, ...]) -> list[int]:
        return [i + len(args) if i < 0 else i for i in self.static]

    def donated_leaves(self, in_tree: Any) -> list[int]:
        """Return the indices of the leaves of donated arguments."""
        args_tree, _ = in_tree.children()
        counts = [child.num_leaves for child in args_tree.children()]
        chosen = {i % len(counts) for i in self.donated if -len(counts) <= i < len(counts)}
        ends = list(accumulate(counts))
        return [k for i in sorted(chosen) for k in range(ends[i] - counts[i], ends[i])]

    def key(self, args: tuple[Any, ...], tree: Any, tensors: Sequence[Any]) -> Any:
        types = tuple([(x.dtype, x.shape, is_number(x)) for x in tensors])
        static: Any = [args[i] for i in self.static_indices(args) if 0 <= i < len(args)]
        modes = (local.grad, Default.floating, local.budget)
        key = (tree, types, constant_key(static, value_key), modes)
        try:
            hash(key)
        except TypeError:
            facts = f"jit of {self.name}: a static argument has no hash: {static!r:.80}"
            raise ArgumentError(f"{facts}; static arguments are constants{at_line()}") from None
        return key

    def call_function(self, args: tuple[Any, ...], tree: Any, tensors: Sequence[Any]) -> Any:
        """Call the function itself, on tensors for all arguments that are not static."""
        given, kwargs = unflatten(tree, [narrow(x) if is_number(x) else x for x in tensors])
        static = self.static_indices(args)
        full = [args[i] if i in static else x for i, x in enumerate(given)]
        return self.function(*full, **kwargs)


def argument_indices(name: str, given: Any) -> tuple[int, ...]:
    """Return the indices of arguments that a user gives as an integer or a sequence of them."""
    try:
        return (index(given),) if not isinstance(given, Iterable) else tuple(map(index, given))
    except TypeError:
        facts = f"jit: {name}={given!r} is not an integer or a sequence of integers"
        raise ArgumentError(f"{facts}{at_line()}") from None
