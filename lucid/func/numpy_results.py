"""NumPy arrays in, NumPy arrays out: which kind of array transforms return.

A transform called on NumPy arrays, with no tensor among the arguments it differentiates or maps
over, returns NumPy arrays, so SciPy can use derivatives directly. A result that
something tracks (an outer transform, a captured tensor that requires a gradient) stays a tensor,
and so does everything inside `jit`, which applies the same rule to its own arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from lucid.ir.pytree import flatten, unflatten
from lucid.tape.node import Traced, is_recording

NUMBERS = (int, float, complex, bool)
F = TypeVar("F", bound=Callable[..., Any])


def are_numpy(arguments: Any) -> bool:
    """True if leaves of a sequence are NumPy arrays or NumPy numbers, and none is a tensor."""
    found = False
    rest = list(arguments)
    while rest:  # a tensor is usually among the first, and then the others are not looked at
        x = rest.pop()
        if isinstance(x, Traced):
            return False
        if isinstance(x, (np.ndarray, np.generic)):
            found = True
        elif x.__class__ is dict:
            rest += x.values()
        elif x.__class__ in (tuple, list):
            rest += x
        elif x.__class__ not in NUMBERS:
            leaves = flatten(x)[0]
            if not (len(leaves) == 1 and leaves[0] is x):
                rest += leaves
    return found


def numpy_like(arguments: Any, result: Any) -> Any:
    """Return `result`, as NumPy arrays if the arguments are: a number where it has no axes."""
    return to_numpy(result) if are_numpy(arguments) else result


def to_numpy(result: Any) -> Any:
    """Return a pytree with copies of the values of its untracked tensors."""
    if is_recording():
        return result
    if isinstance(result, Traced):
        return _array(result)
    if result.__class__ is tuple and all([isinstance(x, Traced) for x in result]):
        return tuple([_array(x) for x in result])
    leaves, structure = flatten(result)
    return unflatten(structure, [_array(x) for x in leaves])


def _array(x: Any) -> Any:
    if not isinstance(x, Traced) or (x.node is not None and x.node.flags) or x.raw is None:
        return x
    return x.value.copy()[()]


def returns_numpy(chosen: Callable[[tuple[Any, ...]], Any]) -> Callable[[F], F]:
    """Decorate a transformed function: `chosen(args)` are the arguments that decide.

    Its attributes `returns_numpy` and `to_numpy` let `jit` treat its arguments and results alike.
    """

    def decorate(transformed: F) -> F:
        @functools.wraps(transformed)
        def call(*args: Any, **kwargs: Any) -> Any:
            return numpy_like(chosen(args), transformed(*args, **kwargs))

        call.returns_numpy = lambda args: are_numpy(chosen(args))  # type: ignore[attr-defined]
        call.to_numpy = to_numpy  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


def at_positions(argnums: Any) -> Callable[[tuple[Any, ...]], Any]:
    """Return the function that chooses the arguments `argnums`; wrong ones are left out."""
    numbers = tuple(argnums) if isinstance(argnums, Iterable) else (argnums,)
    numbers = tuple([i for i in numbers if isinstance(i, int)])
    return lambda args: [args[i] for i in numbers if -len(args) <= i < len(args)]
