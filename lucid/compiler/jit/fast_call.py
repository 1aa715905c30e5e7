"""fast_call: call the path that a jitted function took last time, with the least Python.

Only the native function compares the types of arguments. If anything has changed, nothing has
happened yet, and the general path (`Jitted.__call__`) takes over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid.compiler.jit.donation import copy_if_shared, have_distinct_memory, invalidate
from lucid.tape import node as tape
from lucid.tape.node import Traced, followers, untracked_tensors
from lucid.tape.writes import keep_for_others

new = object.__new__
ndarray = np.ndarray
GUARD_FAILED = object()  # the result of a path whose guards did not hold


class FastCall:
    """What a fast call of a Path needs.

    run              the native function, which returns None for arguments of other types
    input_indices    which of arguments, captured tensors and constants it takes; None: all
    unused_inputs    (index, dtype, shape) of those it does not take: only their types matter
    tree             the structure of the arguments, None if each is a leaf
    reads            whether there is anything to read besides the arguments
    writes           whether there is state to write or a guard to check
    returns_numpy    whether the results for such arguments are NumPy arrays; None: never
    overwrites       whether the program writes into the memory of its operands
    """

    __slots__ = (
        "checks",
        "input_indices",
        "n_args",
        "overwrites",
        "reads",
        "returns_numpy",
        "run",
        "tree",
        "unused_inputs",
        "writes",
    )

    @staticmethod
    def of(path: Any, tree: Any) -> FastCall | None:
        """Return the fast call of a path for such arguments; None if its program is not a plan."""
        if getattr(path.program, "plan", None) is None:
            return None
        if path.donated:
            return DonatingFastCall(path, tree)
        if path.locks.locks:
            return LockedFastCall(path, tree)
        call = FastCall(path, tree)
        return PureFastCall(path, tree) if call.is_pure(path) else call

    def __init__(self, path: Any, tree: Any) -> None:
        self.run = path.program.plan.run
        self.input_indices: list[int] | None = path.program.input_indices
        self.checks: bool = path.program.checks
        types = [var.type for var in path.graph.inputs]
        used = range(len(types)) if self.input_indices is None else self.input_indices
        unused = sorted(set(range(len(types))) - set(used))
        self.unused_inputs = [(i, types[i].dtype, types[i].shape) for i in unused]
        self.n_args = tree.num_leaves
        self.tree = None if all(child.is_leaf() for child in tree.children()) else tree
        state = path.sources, path.constants, path.cells, path.entries, path.attributes
        self.reads = any(state)
        self.writes = bool(path.n_state or path.cells or path.guards)
        self.overwrites = bool(path.written or path.overwritten)
        self.returns_numpy: Any = path.returns_numpy

    def __call__(self, path: Any, args: Sequence[Any]) -> Any:
        """Return (result,), None to fall back to the general path, or GUARD_FAILED."""
        values = self.arguments(args)
        if values is None:
            return None
        if self.reads:
            if path.needs_grad() or not path.state_holds():
                return None
            extra = path.current_arrays()
            if extra is None:
                return None
            values += extra
        for i, dtype, shape in self.unused_inputs:
            x = values[i]
            if x is None or x.shape != shape or x.dtype != dtype:
                return None
        if self.overwrites:
            if followers:
                keep_for_others(values)
            if not have_distinct_memory(values):
                return None
        if path.cleared:
            if not path.types_match(values, 0):
                return None
            path.clear_gradients()
        indices = self.input_indices
        outputs = self.run(*(values if indices is None else [values[i] for i in indices]))
        if outputs is None or (self.checks and outputs[-1]):
            return None
        n = path.n_outputs
        if self.writes:
            m = n + path.n_state
            if path.guards and path.failed_guard(outputs[m:]) is not None:
                return GUARD_FAILED
            path.commit(outputs[n:m])
        results = outputs if len(outputs) == n else outputs[:n]
        made = untracked_tensors(results)
        if self.returns_numpy is not None:
            for x in args:
                if x.__class__ is not tape.tensor_class:
                    made = as_numpy(results) if self.returns_numpy(args) else made
                    break
        return (path.result(made, () if path.all_tensors else self.leaves(args)),)

    def is_pure(self, path: Any) -> bool:
        """True if the program takes only the arguments, each a tensor, and returns one tensor."""
        selects = self.unused_inputs or self.input_indices is not None
        extra = self.reads or self.writes or self.checks or selects
        return path.is_tensor and self.tree is None and not (extra or self.overwrites)

    def leaves(self, args: Sequence[Any]) -> Sequence[Any]:
        return args if self.tree is None else self.tree.flatten_up_to(args)

    def arguments(self, args: Sequence[Any]) -> list[Any] | None:
        """Return the arrays of the arguments, None if one is tracked, pending or not an array."""
        if self.tree is not None:
            try:
                args = self.tree.flatten_up_to(args)
            except ValueError:
                return None
        if len(args) != self.n_args:
            return None
        cls = tape.tensor_class
        values = []
        for x in args:
            if x.__class__ is cls or isinstance(x, Traced):
                node = x.node
                if node is not None and node.flags:
                    return None
                x = x.raw
            if x.__class__ is not ndarray:
                return None
            values.append(x)
        return values


class PureFastCall(FastCall):
    """The fast call of a path from tensors to one tensor, without state or guards."""

    __slots__ = ()

    def __call__(self, path: Any, args: Sequence[Any]) -> Any:
        cls = tape.tensor_class
        values = []
        for x in args:
            if x.__class__ is cls or isinstance(x, Traced):
                node = x.node
                if node is not None and node.flags:
                    return None
                x = x.raw
            elif self.returns_numpy is not None:
                return super().__call__(path, args)
            values.append(x)
        if len(values) != self.n_args:
            return None
        outputs = self.run(*values)  # None too if a value is pending or not an array
        if outputs is None:
            return None
        result = new(cls)
        result.raw = outputs[0]
        result.node = result.storage = result.origin = None
        return (result,)


class LockedFastCall(FastCall):
    """The fast call of a path with state that other threads may change."""

    __slots__ = ()

    def __call__(self, path: Any, args: Sequence[Any]) -> Any:
        return path.locks.run(super().__call__, path, args)


class DonatingFastCall(LockedFastCall):
    """The fast call of a path with donated arguments."""

    __slots__ = ("donated",)

    def __init__(self, path: Any, tree: Any) -> None:
        super().__init__(path, tree)
        self.donated: list[int] = path.donated

    def __call__(self, path: Any, args: Sequence[Any]) -> Any:
        found = super().__call__(path, args)
        if found is not None and found is not GUARD_FAILED:
            leaves = self.leaves(args)
            invalidate(leaves, path.spent(leaves), path.name)
        return found

    def arguments(self, args: Sequence[Any]) -> list[Any] | None:
        values = super().arguments(args)
        if values is not None:
            copy_if_shared(self.leaves(args), values, self.donated)
        return values


def as_numpy(arrays: Sequence[np.ndarray]) -> list[Any]:
    """Return arrays that nothing else holds as NumPy's, a number for one without axes."""
    distinct = len({id(y) for y in arrays}) == len(arrays)
    return [y[()] if distinct else y.copy()[()] for y in arrays]


def is_tracked(x: Any) -> bool:
    return isinstance(x, Traced) and x.node is not None and bool(x.node.flags)
