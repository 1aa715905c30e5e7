"""The short way of a jitted call: the path that held last time, with the fewest steps in Python.

Types of arguments are compared by the native function alone. Wherever something is not as it was,
nothing has happened yet, and the long way (`Jitted.__call__`) decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.compiler.jit.donation import give_up, invalidate, own_memory
from lucid.tape import node as tape
from lucid.tape.node import Traced

new = object.__new__
BROKEN = object()  # stands for the result of a path whose guards did not hold


class ShortWay:
    """What a call of a Path needs.

    run       the native function, which gives None for arguments of other types
    given     which of arguments, captured tensors and constants it takes; None: all in their order
    others    (place, dtype, shape) of those it does not take: only their type was of use
    tree      the structure of the arguments, None where each is a leaf
    reads     is there anything to read beside the arguments?
    writes    is there any state to write or value to compare?
    """

    __slots__ = ("checks", "given", "n_args", "others", "reads", "run", "tree", "writes")

    @staticmethod
    def of(path: Any, tree: Any) -> ShortWay | None:
        """The short way of a path for such arguments; None where its program is not one plan."""
        if getattr(path.program, "plan", None) is None:
            return None
        if path.donated:
            return DonatingWay(path, tree)
        if path.locks.locks:
            return LockedWay(path, tree)
        way = ShortWay(path, tree)
        return PureWay(path, tree) if way.is_pure(path) else way

    def __init__(self, path: Any, tree: Any) -> None:
        self.run = path.program.plan.run
        self.given: list[int] | None = path.program.given
        self.checks: bool = path.program.checks
        types = [var.type for var in path.graph.inputs]
        taken = range(len(types)) if self.given is None else self.given
        left = sorted(set(range(len(types))) - set(taken))
        self.others = [(i, types[i].dtype, types[i].shape) for i in left]
        self.n_args = tree.num_leaves
        self.tree = None if all(child.is_leaf() for child in tree.children()) else tree
        state = path.sources, path.constants, path.cells, path.entries, path.attributes
        self.reads = any(state)
        self.writes = bool(path.n_state or path.cells or path.guards)

    def __call__(self, path: Any, args: Sequence[Any]) -> Any:
        """(result,), None where the long way must decide, BROKEN where a guard does not hold."""
        values = self.arguments(args)
        if values is None:
            return None
        if self.reads:
            if path.is_followed():
                return None
            extra = path.arrays()
            if extra is None:
                return None
            values += extra
        for i, dtype, shape in self.others:
            x = values[i]
            if x is None or x.shape != shape or x.dtype != dtype:
                return None
        if (path.written or path.overwritten) and not own_memory(values):
            return None
        given = self.given
        outputs = self.run(*(values if given is None else [values[i] for i in given]))
        if outputs is None or (self.checks and outputs[-1]):
            return None
        n = path.n_outputs
        if self.writes:
            m = n + path.n_state
            if path.guards and path.broken(outputs[m:]) is not None:
                return BROKEN
            path.commit(outputs[n:m])
        return (path.result(plain_tensors(outputs[:n])),)

    def is_pure(self, path: Any) -> bool:
        """Does the program take the arguments alone, each a tensor, and give one tensor?"""
        asks = self.reads or self.writes or self.checks or self.others or self.given is not None
        return path.is_tensor and self.tree is None and not (asks or path.overwritten)

    def arguments(self, args: Sequence[Any]) -> list[Any] | None:
        """The arrays of the arguments, None where one is tracked or no array."""
        if self.tree is not None:
            try:
                args = self.tree.flatten_up_to(args)
            except ValueError:
                return None
        if len(args) != self.n_args:
            return None
        values = []
        for x in args:
            if isinstance(x, Traced):
                node = x.node
                if node is not None and node.flags:
                    return None
                values.append(x.value)
            elif x.__class__ is np.ndarray:
                values.append(x)
            else:
                return None
        return values


class PureWay(ShortWay):
    """The short way of a path from tensors to one tensor, with nothing beside them."""

    __slots__ = ()

    def __call__(self, path: Any, args: Sequence[Any]) -> Any:
        values = []
        for x in args:
            if isinstance(x, Traced):
                node = x.node
                if node is not None and node.flags:
                    return None
                values.append(x.value)
            elif x.__class__ is np.ndarray:
                values.append(x)
            else:
                return None
        if len(values) != self.n_args:
            return None
        outputs = self.run(*values)
        if outputs is None:
            return None
        result = new(tape.tensor_class)
        result.value = outputs[0]
        result.node = result.storage = result.origin = None
        return (result,)


class LockedWay(ShortWay):
    """The short way of a path with state that other threads may change."""

    __slots__ = ()

    def __call__(self, path: Any, args: Sequence[Any]) -> Any:
        with path.locks:
            return super().__call__(path, args)


class DonatingWay(LockedWay):
    """The short way of a path to which arguments are given up."""

    __slots__ = ("donated",)

    def __init__(self, path: Any, tree: Any) -> None:
        super().__init__(path, tree)
        self.donated: list[int] = path.donated

    def __call__(self, path: Any, args: Sequence[Any]) -> Any:
        found = super().__call__(path, args)
        if found is not None and found is not BROKEN:
            invalidate(self.leaves(args), self.donated, path.name)
        return found

    def leaves(self, args: Sequence[Any]) -> Sequence[Any]:
        return args if self.tree is None else self.tree.flatten_up_to(args)

    def arguments(self, args: Sequence[Any]) -> list[Any] | None:
        values = super().arguments(args)
        if values is not None:
            give_up(self.leaves(args), values, self.donated)
        return values


def is_tracked(x: Any) -> bool:
    return isinstance(x, Traced) and x.node is not None and bool(x.node.flags)


def plain_tensors(arrays: Sequence[np.ndarray]) -> list[Any]:
    """`wrap` for many arrays while nothing is recorded."""
    new, cls, out = object.__new__, tape.tensor_class, []
    for array in arrays:
        x = new(cls)
        x.value = array
        x.node = x.storage = x.origin = None
        out.append(x)
    return out
