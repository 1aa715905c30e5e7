"""jit: record a function on its first call, and run it natively on that call and later ones.

The recording leaves all values pending and computes those that Python reads, so `if` and `while`
work in it; every value read becomes a guard, and if a guard fails on a later call another path is
recorded. Tensors that the function closes over are inputs; those it changes in place, and gradients
it leaves in `.grad`, are written back.
"""

from __future__ import annotations

import functools
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from lucid.compiler.backends.selection import Backend, named
from lucid.compiler.jit.call_signature import CallSignature
from lucid.compiler.jit.donation import copy_if_shared, invalidate, overlap, unshare
from lucid.compiler.jit.fast_call import GUARD_FAILED
from lucid.compiler.jit.path import Path
from lucid.compiler.jit.recording import (
    RUN_PYTHON,
    GuardFailure,
    may_be_caught,
    record,
    returns,
)
from lucid.errors import LucidError
from lucid.ir.graph import Graph
from lucid.ir.pytree import flatten
from lucid.ir.types import Type
from lucid.ops.core.promote import Default
from lucid.public.lazy import LazyModule
from lucid.support.caches import new_cache
from lucid.support.locks import new_lock
from lucid.tape.bind import bind_first
from lucid.tape.modes import current
from lucid.tape.node import Traced, followers, wrap
from lucid.tape.tiering import Tiering
from lucid.tape.writes import flush_pending

budget: Any = LazyModule("lucid.compiler.jit.budget")
decorated: Any = LazyModule("lucid.ops.core.decorated")

MAX_REASONS = 64
HTML_HEAD = ("inputs", "equations", "guards")  # of the paths, in a notebook


P = ParamSpec("P")
R = TypeVar("R")

_jitted: weakref.WeakSet[Jitted] = weakref.WeakSet()


def _forget_paths() -> None:
    for jitted in list(_jitted):
        jitted.forget()


new_cache(f"{__name__}._jitted", _jitted, _forget_paths)


class Jitted(CallSignature, Generic[P, R]):
    """A function made by `jit`."""

    returns_numpy: Any = None  # whether results for such arguments are NumPy arrays; None: never

    def __init__(
        self,
        f: Callable[P, R],
        static_argnums: Any = (),
        donate_argnums: Any = (),
        backend: Backend | str | None = None,
        memory_budget: int | str | None = None,
    ) -> None:
        functools.update_wrapper(self, f, updated=())
        super().__init__(f, static_argnums, donate_argnums)
        self.backend = named(backend)
        self.budget = None if memory_budget is None else budget.parse_bytes("jit", memory_budget)
        self.paths: dict[Any, list[Path]] = {}
        self.names: list[str] = []
        self.reasons: deque[str] = deque(maxlen=MAX_REASONS)
        self.is_uncompiled = False
        self.last: Path | None = None
        self._lock = new_lock()
        self._bound: dict[int, tuple[Any, Jitted]] = {}
        _jitted.add(self)

    def forget(self) -> None:
        """Drop every recorded path: the next call records and compiles again."""
        self.last = None
        self.paths.clear()
        self.is_uncompiled = False

    def __getattr__(self, name: str) -> Any:
        if name == "function":
            raise AttributeError(name)
        return getattr(self.function, name)  # a jitted Module has its parameters, train(), ...

    def __repr__(self) -> str:
        return f"<jitted {self.name}>"

    def _repr_html_(self) -> str:
        from lucid.support.markup import table_html

        paths = [path for found in list(self.paths.values()) for path in list(found)]
        rows = [
            (", ".join(str(x.type) for x in path.graph.inputs[:4]) + ", ..." * (
                len(path.graph.inputs) > 4), len(path.graph.equations), len(path.guards))
            for path in paths
        ]  # fmt: skip
        return table_html(f"{self!r}: {self.why_recompiled()}", HTML_HEAD, rows)

    def __reduce__(self) -> Any:
        """Return the function and the options: machine code never travels."""
        method_of = getattr(self.function, "method_of", None)
        if method_of is not None:
            return functools.partial, (call_method, method_of(), self.function.__name__)
        return rebuild_jitted, (
            type(self),
            decorated.portable_function(self.function),
            self.options(),
        )

    def options(self) -> dict[str, Any]:
        """Return the arguments of the constructor besides the function."""
        backend = None if self.backend is None else self.backend.name
        chosen = {"static_argnums": self.static, "donate_argnums": self.donated}
        return {**chosen, "backend": backend, "memory_budget": self.budget}

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = deepcopy(self.function, memo)
        return self if copied is self.function else type(self)(copied, **self.options())

    def __get__(self, owner: Any, cls: Any = None) -> Any:
        """Return the method of an object, jitted for it alone with its state closed over."""
        if owner is None:
            return self
        key, bound = id(owner), self._bound
        if key not in bound or bound[key][0]() is not owner:
            reference = weakref.ref(owner, functools.partial(bound.pop, key))
            bound[key] = (reference, self.bind_method(reference))
        return BoundMethod(bound[key][1], owner)

    def bind_method(self, reference: Any) -> Jitted:
        """Return this function with a weakly referenced object as its first argument."""

        @functools.wraps(self.function)
        def method(*args: Any, **kwargs: Any) -> Any:
            return self.function(reference(), *args, **kwargs)

        method.method_of = reference  # type: ignore[attr-defined]
        shifted = [tuple(i - 1 if i > 0 else i for i in numbers if i) for numbers in
                   (self.static, self.donated)]  # fmt: skip
        return Jitted(method, shifted[0], shifted[1], self.backend, self.budget)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if followers:
            flush_pending()
        last = self.last
        modes = current()
        if (
            last is not None
            and not kwargs
            and Default.floating is last.default
            and (modes is last.modes or last.fits(modes))
        ):
            found = last.fast_call(last, args)  # type: ignore[misc]
            if found is not None and found is not GUARD_FAILED:
                return found[0]
        return self.call_general(args, kwargs)

    def call_general(self, args: Any, kwargs: Any) -> Any:
        """Call the function on any arguments in any modes: find its path, or record it."""
        modes = current()
        leaves, tree = flatten((self.dynamic(args), kwargs))
        tensors = [x if isinstance(x, Traced) else self.operand(x) for x in leaves]
        if Tiering.compile is None:  # LUCID_DISABLE_JIT
            return self.run_python(args, kwargs, tensors)
        if (
            self.is_uncompiled
            or modes.recorder is not None  # something outside traces this, and what it captures
            or modes.staging is not None
            or modes.maps
            or modes.anomaly  # every operation is to be checked
            or any(x.raw is None for x in tensors)
        ):
            return self.run_python(args, kwargs, tensors)
        key = self.key(args, tree, tensors)
        tracked = any(x.node is not None and x.node.flags for x in tensors)
        paths = tuple(self.paths.get(key, ()))
        failures: list[GuardFailure] = []
        for path in paths:
            found = self.run(path, args, kwargs, tensors, tracked)
            if isinstance(found, GuardFailure):
                failures.append(found)
            elif found is not None:
                fast = path.fast_call is not None and path.program.is_verified
                self.last = path if fast else None
                return found[0]
        with self._lock:
            if len(self.paths.get(key, ())) == len(paths):
                return record(self, key, args, kwargs, tensors, tree, tracked, failures)
        return self(*args, **kwargs)  # another thread has recorded a path meanwhile

    def run_python(self, args: Any, kwargs: Any, tensors: Sequence[Any]) -> Any:
        """Call the function itself; like compiled code it returns no views of other tensors."""
        tree = flatten((self.dynamic(args), kwargs))[1]
        return unshare(self.call_function(args, tree, tensors), tensors)

    def run(
        self, path: Path, args: Any, kwargs: Any, tensors: Sequence[Any], tracked: bool
    ) -> tuple[Any] | GuardFailure | None:
        """Run a recorded path and return (result,), or the failure of a guard, or None if the
        path is for another state than there is now.

        If a derivative is wanted, a path that leaves no gradients and writes no floats is one
        operation on the tape; any other path is not used, and Python runs the function.
        """
        try:
            found = path.locks.run(self.run_locked, path, tensors, tracked)
        except LucidError as error:
            if not may_be_caught(path, error):
                raise
            if path.guards:
                return None  # these values may take another path, without the failing operation
            if not returns(self, args, kwargs, tensors):
                raise
            found = RUN_PYTHON
        return (self.run_python(args, kwargs, tensors),) if found is RUN_PYTHON else found

    def run_locked(self, path: Path, tensors: Sequence[Any], tracked: bool) -> Any:
        """`run` while the locks are held; RUN_PYTHON if Python must run the function."""
        values = [x.value for x in tensors]
        extra = path.arrays()
        if extra is None or not path.types_match(extra, len(values)):
            return None
        if path.written and overlap(values, [x.value for x in path.written_tensors()]):
            return RUN_PYTHON  # a write changes an argument too
        if path.is_shared(extra):
            return RUN_PYTHON  # a write changes another captured tensor too
        if path.layouts and not path.layouts_match(values):
            return None
        if path.written_arguments and not path.is_written_alone(values, extra):
            return RUN_PYTHON  # a write changes another operand too, or is refused
        found = self.compute(path, tensors, values, extra, tracked)
        if found is RUN_PYTHON:
            return found
        outs, outputs, on_tape = found
        failed = path.failed_guard(outputs[path.n_outputs + path.n_state :])
        if failed is not None:
            return self.guard_failure(path, failed, outputs[path.n_outputs + path.n_state :])
        return (self.commit(path, tensors, outs, outputs, on_tape),)

    def compute(
        self, path: Path, tensors: Sequence[Any], values: list[Any], extra: list[Any], tracked: bool
    ) -> Any:
        """Run the program: return its outputs as tensors, as arrays, and whether on the tape."""
        on_tape = tracked or path.needs_grad()
        outs: Sequence[Any] = ()
        if on_tape and path.is_pure:
            operands = (*tensors, *path.operands(), *[wrap(c) for c in path.constants])
            outs, outputs = bind_first(path.call, operands, path.n_outputs)
            outs = path.detach_constants(operands, outs)
        elif tracked:
            return RUN_PYTHON
        else:
            copy_if_shared(tensors, values, path.donated)
            values += extra
            outputs = path.run(values)
        return outs, outputs, on_tape

    def guard_failure(self, path: Path, failed: int, values: Sequence[np.ndarray]) -> GuardFailure:
        guard = path.guards[failed]
        before, now = (summary(guard.read(x)) for x in (guard.recorded, values[failed]))
        self.reasons.append(
            f"{self.name}: {guard.what} at {guard.source} was {before} and is now {now}"
        )
        return GuardFailure(path, failed, values)

    def commit(
        self, path: Path, tensors: Sequence[Any], outs: Any, outputs: Any, on_tape: bool
    ) -> Any:
        """Write back what a run has changed, and return its result."""
        n = path.n_outputs
        path.commit(outputs[n : n + path.n_state], tensors)
        if not on_tape:
            invalidate(tensors, path.spent(tensors), self.name)
        return path.result(outs or [wrap(y) for y in outputs[:n]], tensors)

    def why_recompiled(self) -> str:
        """Return, in one line, why the function was last recompiled."""
        return self.reasons[-1] if self.reasons else f"{self.name}: it was not recompiled"

    def graph(self, *args: Any, stage: str = "traced", **kwargs: Any) -> Graph | str:
        """Return the Graph of the function for these arguments after a stage of the compiler.

        Stages: traced (differentiated is the same: a recorded run contains its derivatives),
        those of `compiler.passes.pipeline.STAGES` (decomposed, simplified, ...,
        copies_inserted), and as text fused and planned.
        """
        from lucid.compiler.inspect.stages import stage_of

        path = self.path_for(args, kwargs)
        return stage_of(path.graph, stage, path.into, path.budget)

    def kernels(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Return the kernels for these arguments, each with `listing`, `llvm` and `assembly`.

        `kernel.replace(text)` replaces a kernel's listing by your own.
        """
        from lucid.compiler.inspect.replacing import kernels_of_call

        return kernels_of_call(self, args, kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Return the function traced for the types of these arguments, to `compile()` it early.

        Arguments are tensors, arrays or Types. Nothing runs, so Python cannot read values inside.
        """
        from lucid.compiler.inspect.lowered import Lowered

        return Lowered(self, args, kwargs)

    def path_for(self, args: Any, kwargs: Any) -> Path:
        """Return the path that a call with these arguments takes, recording it if there is none."""
        tensors = self.operands(args, kwargs)
        tree = flatten((self.dynamic(args), kwargs))[1]
        key = self.key(args, tree, tensors)
        values = [x.value for x in tensors]
        for path in self.paths.get(key, ()):
            if not path.fails_a_guard(values):
                return path
        tracked = any(x.node is not None and x.node.flags for x in tensors)
        with self._lock:
            record(self, key, args, kwargs, tensors, tree, tracked)
        return self.paths[key][0]


class BoundMethod(Jitted[P, R]):
    """A jitted method with its object, which it keeps alive; it shares the state of the method.

    The table of methods holds objects weakly, so that jitting a method does not keep its object.
    """

    __slots__ = ("owner",)

    def __init__(self, jitted: Jitted, owner: Any) -> None:
        self.__dict__ = jitted.__dict__
        self.owner = owner

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, BoundMethod) and self.__dict__ is other.__dict__

    def __hash__(self) -> int:
        return hash(id(self.__dict__))


def call_method(owner: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """Call a method; a pickle of a jitted one holds its object, as that of a method does."""
    return getattr(owner, name)(*args, **kwargs)


def rebuild_jitted(cls: type[Jitted], function: Any, options: dict[str, Any]) -> Any:
    """Return the Jitted of a pickle: the one that this process has, if it has the function."""
    found = decorated.wrapper_of(function)
    return found if isinstance(found, Jitted) else cls(function, **options)


def summary(value: np.ndarray) -> str:
    return str(value.item()) if value.size == 1 else f"an array of {Type(value.dtype, value.shape)}"
