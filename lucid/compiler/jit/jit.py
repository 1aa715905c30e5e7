"""jit: a function that is recorded on its first call and runs natively on later ones.

The recording is a real run, so Python's `if` and `while` work in it; every value that Python looked
at becomes a guard, and where a guard fails on a later call another path is recorded. Tensors that
the function closed over are inputs; those it wrote to in place, and gradients it left in `.grad`,
are written back.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Sequence
from itertools import accumulate
from threading import RLock
from typing import Any

import numpy as np

from lucid.compiler.jit.closure_guards import are_equal, surroundings
from lucid.compiler.jit.donation import give_up, invalidate, overlap
from lucid.compiler.jit.fast_call import BROKEN, is_tracked
from lucid.compiler.jit.path import Path
from lucid.errors import ArgumentError, DTypeError, LucidError
from lucid.ir.graph import Graph
from lucid.ir.interpret import Program
from lucid.ir.pytree import flatten, unflatten
from lucid.ir.source import at_line
from lucid.ir.types import Type
from lucid.ops.core.promote import as_tensor
from lucid.ops.higher_order.call import Call, remembering
from lucid.tape.bind import bind, bind_known
from lucid.tape.modes import local
from lucid.tape.node import GRAD, TRACE, Node, Traced, noted, wrap
from lucid.tape.recorder import Recorder
from lucid.tape.trace import function_name, input_names
from lucid.tape.views import node_of

MOST_PATHS = 16
IN_PYTHON = object()


class RecompileWarning(UserWarning):
    """A jitted function has taken so many paths that it is interpreted from now on."""


class Jitted:
    """A function made by `jit`."""

    def __init__(
        self, f: Callable[..., Any], static_argnums: Any = (), donate_argnums: Any = ()
    ) -> None:
        functools.update_wrapper(self, f, updated=())
        self.function = f
        self.name = function_name(f)
        self.static = (
            (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        )
        self.donated = (
            (donate_argnums,) if isinstance(donate_argnums, int) else tuple(donate_argnums)
        )
        self.paths: dict[Any, list[Path]] = {}
        self.names: list[str] = []
        self.reasons: list[str] = []
        self.given_up = False
        self.last: Path | None = None
        self._lock = RLock()
        self._bound: dict[int, tuple[Any, Jitted]] = {}

    def __getattr__(self, name: str) -> Any:
        if name == "function":
            raise AttributeError(name)
        return getattr(self.function, name)  # a jitted Module has its parameters, train(), ...

    def __repr__(self) -> str:
        return f"<jitted {self.name}>"

    def __get__(self, owner: Any, cls: Any = None) -> Any:
        """The method of an object: jitted for it alone, with what it holds closed over."""
        if owner is None:
            return self
        place, bound = id(owner), self._bound
        if place not in bound or bound[place][0]() is not owner:
            there = weakref.ref(owner, lambda _: bound.pop(place, None))
            bound[place] = (there, self.of(there))
        return bound[place][1]

    def of(self, there: Any) -> Jitted:
        """This function with the object of a weak reference as its first argument."""

        @functools.wraps(self.function)
        def method(*args: Any, **kwargs: Any) -> Any:
            return self.function(there(), *args, **kwargs)

        shifted = [tuple(i - 1 if i > 0 else i for i in numbers if i) for numbers in
                   (self.static, self.donated)]  # fmt: skip
        return Jitted(method, *shifted)

    def operand(self, x: Any) -> Any:
        try:
            return as_tensor(x)
        except DTypeError:
            facts = f"jit of {self.name}: an argument {x!r:.40} is no array"
            raise ArgumentError(f"{facts}; name its place in static_argnums{at_line()}") from None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        last = self.last
        if last is not None and not kwargs and local.grad is last.grad and local.recorder is None:
            found = last.short_way(last, args)  # type: ignore[misc]
            if found is not None and found is not BROKEN:
                return found[0]
        leaves, tree = flatten((self.dynamic(args), kwargs))
        tensors = [x if isinstance(x, Traced) else self.operand(x) for x in leaves]
        if self.given_up or local.recorder is not None or any(x.value is None for x in tensors):
            return self.function(*args, **kwargs)
        key = self.key(args, tree, tensors)
        tracked = any(x.node is not None and x.node.flags for x in tensors)
        paths = tuple(self.paths.get(key, ()))
        for path in paths:
            found = self.run(path, args, kwargs, tensors, tracked)
            if found is not None:
                self.last = path if path.short_way is not None else None
                return found[0]
        with self._lock:
            if len(self.paths.get(key, ())) == len(paths):
                return self.record(key, args, kwargs, tensors, tree, tracked)
        return self(*args, **kwargs)  # another thread has recorded a path meanwhile

    def donated_leaves(self, in_tree: Any) -> list[int]:
        """The leaves of the arguments that are given up."""
        args_tree, _ = in_tree.children()
        counts = [child.num_leaves for child in args_tree.children()]
        chosen = {i % len(counts) for i in self.donated if -len(counts) <= i < len(counts)}
        ends = list(accumulate(counts))
        return [k for i in sorted(chosen) for k in range(ends[i] - counts[i], ends[i])]

    def dynamic(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return (
            tuple(None if i in self.static else x for i, x in enumerate(args))
            if self.static
            else args
        )

    def key(self, args: tuple[Any, ...], tree: Any, tensors: Sequence[Any]) -> Any:
        types = tuple([(x.value.dtype, x.value.shape) for x in tensors])
        fixed = tuple(args[i] for i in self.static if i < len(args))
        return (tree, types, fixed, local.grad)

    def run(
        self, path: Path, args: Any, kwargs: Any, tensors: Sequence[Any], tracked: bool
    ) -> tuple[Any] | None:
        """The result of a recorded path, None where it does not hold for these values.

        Where a derivative is wanted, a path that leaves no gradients and writes no floats is one
        operation on the tape; any other is not repeated, and Python runs the function.
        """
        with path.locks:
            try:
                found = self.run_alone(path, tensors, tracked)
            except LucidError:
                if not path.guards:
                    raise
                return None  # what failed may not be on the way that these values take
        return (self.function(*args, **kwargs),) if found is IN_PYTHON else found

    def run_alone(self, path: Path, tensors: Sequence[Any], tracked: bool) -> Any:
        """`run` while the locks are held; IN_PYTHON where Python must run the function."""
        values = [x.value for x in tensors]
        extra = path.arrays()
        if extra is None or not path.fits(extra, len(values)):
            return None
        if path.written and overlap(values, [x.value for x in path.written]):
            return IN_PYTHON  # a write changes the argument too
        watched = tracked or path.is_followed()
        outs: Sequence[Any] = ()
        if watched and path.is_pure:
            operands = (*tensors, *[path.operand(x) for x in path.sources])
            graph = remembering(path.graph)  # a derivative will be asked for
            outs = bind(Call(graph), *operands, *[wrap(c) for c in path.constants])
            outputs = [y.value for y in outs]
            outs = path.on_tape(operands, outs[: path.n_outputs])
        elif tracked:
            return IN_PYTHON
        else:
            give_up(tensors, values, path.donated)
            values += extra
            outputs = path.run(values)
        n, m = path.n_outputs, path.n_outputs + path.n_state
        broken = path.broken(outputs[m:])
        if broken is not None:
            self.reasons.append(
                f"{self.name}: {broken.what} at {broken.source} was {short(broken.expected)} and "
                f"is {short(outputs[m + path.guards.index(broken)])} now"
            )
            return None
        path.commit(outputs[n:m])
        if not watched:
            invalidate(tensors, path.donated, self.name)
        return (path.result(outs or [wrap(y) for y in outputs[:n]]),)

    def record(
        self, key: Any, args: Any, kwargs: Any, tensors: Sequence[Any], tree: Any, tracked: bool
    ) -> Any:
        """Run the function, watching, and keep the path it took."""
        known = self.paths.setdefault(key, [])
        known[:] = [path for path in known if not path.is_over()]
        if len(known) >= MOST_PATHS:
            self.given_up = True
            warnings.warn(
                f"{self.name} has taken {MOST_PATHS} paths for one kind of arguments and is "
                f"interpreted from now on; the last reason: {self.why_recompiled()}",
                RecompileWarning,
                stacklevel=3,
            )
            return self.function(*args, **kwargs)
        if self.paths and not known and len(self.paths) > 1:
            self.reasons.append(
                f"{self.name}: called with {', '.join(str(x.type) for x in tensors)}"
            )
        if known and known[0].differs:
            self.reasons.append(f"{self.name}: {known[0].differs}")
        path, first = self.trace(args, kwargs, tensors, tree, tracked)
        known.insert(0, path)
        if tracked:  # what was recorded is off the tape: it was taken back, and is done again
            found = self.run(path, args, kwargs, tensors, tracked)
            return self.function(*args, **kwargs) if found is None else found[0]
        invalidate(tensors, path.donated, self.name)
        return first

    def trace(
        self, args: Any, kwargs: Any, tensors: Sequence[Any], tree: Any, reversible: bool
    ) -> tuple[Path, Any]:
        """The path that the function takes on these arguments, and its result."""
        self.names = input_names(self.function, args, kwargs) if not self.static else []
        with Recorder(reversible) as recorder:
            inputs = []
            for x in tensors:
                node = Node(None, (), TRACE | (GRAD if is_tracked(x) else 0), x.value)
                recorder.inputs.add(node)
                inputs.append(wrap(x.value, node))
            new_args, new_kwargs = unflatten(tree, inputs)
            full = tuple(args[i] if i in self.static else x for i, x in enumerate(new_args))
            names = surroundings(self.function)
            try:
                result = self.function(*full, **new_kwargs)
            except BaseException:
                settle_state(recorder)
                raise
            for scope, name, value in names:
                now = scope.get(name)
                if now is value or are_equal(now, value):
                    recorder.depends(scope, name)
            for y in flatten(result)[0]:
                if isinstance(y, Traced):
                    noted(node_of(y), y)
            path = Path(self, recorder, inputs, result, tree)
        settle_state(recorder)
        if reversible:
            recorder.take_back()
        leaves = [y.value for y in flatten(result)[0] if isinstance(y, Traced)]
        if not reversible and path.is_followed():
            return path, path.result(followed(path, recorder, tensors, leaves))
        return path, path.result([wrap(y) for y in leaves])

    def why_recompiled(self) -> str:
        """In one line, why the function was last recorded again."""
        return (
            self.reasons[-1] if self.reasons else f"{self.name}: it was not recorded more than once"
        )

    def graph(self, *args: Any, stage: str = "traced", **kwargs: Any) -> Graph | str:
        """The Graph of the function for these arguments after a stage of the compiler.

        Stages: traced (differentiated is the same: a recorded run has its derivatives in it),
        those of `compiler.passes.pipeline.STAGES` (decomposed, simplified, ... settled), and as
        text fused and planned.
        """
        from lucid.compiler.inspect.stages import stage_of

        path = self.path_for(args, kwargs)
        return stage_of(path.graph, stage, path.into)

    def kernels(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The kernels for these arguments, each with its `listing`, `llvm` and `assembly`."""
        from lucid.compiler.inspect.stages import kernels_of_graph

        return kernels_of_graph(self.path_for(args, kwargs).graph)

    def path_for(self, args: Any, kwargs: Any) -> Path:
        """The path that a call with these arguments takes; recorded now where there is none."""
        leaves, tree = flatten((self.dynamic(args), kwargs))
        tensors = [self.operand(x) for x in leaves]
        key = self.key(args, tree, tensors)
        values = [x.value for x in tensors]
        for path in self.paths.get(key, ()):
            if not breaks_a_guard(path, values):
                return path
        self(*args, **kwargs)
        return self.paths[key][0]


def breaks_a_guard(path: Path, values: list[Any]) -> bool:
    """Do these arguments lead Python another way than the one recorded? Nothing is written."""
    extra = path.arrays() if path.guards else None
    if extra is None or not path.fits(extra, len(values)):
        return False
    try:
        outputs = Program(path.graph)([*values, *extra])
    except LucidError:
        return True
    return path.broken(outputs[path.n_outputs + path.n_state :]) is not None


def followed(
    path: Path, recorder: Recorder, tensors: Sequence[Any], outputs: Sequence[np.ndarray]
) -> list[Any]:
    """The outputs of a run that was recorded, on the tape as those of later runs are."""
    before = recorder.before
    captured = [wrap(before[id(x)]) if id(x) in before else x for x in path.sources]
    operands = (*tensors, *captured, *[wrap(c) for c in path.constants])
    values = [*outputs, *[x.value.copy() for x in path.written], *[g.expected for g in path.guards]]
    outs = bind_known(Call(path.graph), operands, tuple(values))
    return path.on_tape(operands, outs[: path.n_outputs])


def settle_state(recorder: Recorder) -> None:
    """Take the tensors that a recorded run has written off its tape."""
    for x, before in recorder.written.values():
        if before is None or not (before.flags or before.cell):
            x.node = None
        else:
            node = Node(None, (), before.flags, x.value)
            node.cell = before.cell
            x.node = node
        if x.storage is not None and x.node is not None:
            x.node.stamp = (x.storage, x.storage.version)
    for cell, _ in recorder.cells.values():
        if cell.grad is not None:
            cell.grad = wrap(cell.grad.value)


def short(value: np.ndarray) -> str:
    return str(value.item()) if value.size == 1 else f"an array of {Type(value.dtype, value.shape)}"


def jit(f: Any = None, *, static_argnums: Any = (), donate_argnums: Any = ()) -> Any:
    """Compile a function: recorded on its first call, one native call afterwards.

    static_argnums    arguments that are no arrays; each value of theirs is a program of its own
    donate_argnums    arguments whose memory the results may take; they cannot be used afterwards

    What the function closes over is read anew at every call, what it changes in place is written
    back. A value that Python looks at inside is compared at every call, and another path is
    recorded where it differs. The result has `graph(*args, stage=...)`, `kernels(*args)` and
    `why_recompiled()`, which show what has become of it.

    >>> import lucid
    >>> @lucid.jit
    ... def f(x):
    ...     return lucid.sin(x) * 2.0
    >>> f(lucid.zeros(3))
    Tensor([0., 0., 0.])
    """
    if f is None:
        return functools.partial(jit, static_argnums=static_argnums, donate_argnums=donate_argnums)
    if not callable(f):
        raise ArgumentError(f"jit: {type(f).__name__} is no function{at_line()}")
    return Jitted(f, static_argnums, donate_argnums)
