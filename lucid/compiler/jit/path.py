"""path: one recorded run of a jitted function, compiled, with its captured state and guards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lucid.compiler.backends.selection import using
from lucid.compiler.jit.donation import copy_if_aliased, have_distinct_memory, overlap
from lucid.compiler.jit.fast_call import FastCall, is_tracked
from lucid.compiler.jit.gradient_ends import COMPUTED, Gradient, gradient_end, is_outside
from lucid.compiler.jit.guards.guarded_scopes import equal_constants
from lucid.compiler.jit.hot_programs import compile_hot
from lucid.compiler.jit.recorded_facts import (
    differentiable_inputs,
    hooks_of,
    one_per_memory,
    refuse_traced,
    requires_grad,
    same_bits,
    same_objects,
)
from lucid.compiler.jit.reroll_recording import reroll_graph
from lucid.compiler.passes.fold_constants import fold_constants
from lucid.errors import LucidError, OutOfMemoryError
from lucid.ir.graph import Var
from lucid.ir.pytree import flatten, unflatten
from lucid.ops.core.promote import Default, as_tensor
from lucid.public.lazy import LazyModule
from lucid.support.caches import cached_property
from lucid.support.locks import Locks, after_recording
from lucid.support.source import caller
from lucid.tape.bind import bind
from lucid.tape.cut import cut_since
from lucid.tape.markers import STOP_GRADIENT
from lucid.tape.modes import Modes, local
from lucid.tape.node import (
    GRAD,
    GradCell,
    Node,
    Traced,
    followers,
    requires_grad_changes,
    wrap,
)
from lucid.tape.recording.guards import Guard
from lucid.tape.recording.pending import array_of
from lucid.tape.recording.recorder import Recorder, attribute_changes, is_unchanged
from lucid.tape.tiering import Tiering
from lucid.tape.views import base_of, node_of
from lucid.tape.writes import count_unshared_write, keep_for_others, mark_written

call: Any = LazyModule("lucid.ops.higher_order.call")  # of calls that are differentiated
interpret: Any = LazyModule("lucid.ir.interpret")
MANY_ELEMENTS = 1 << 18  # of gradients: fewer of them need not be freed early


class Argument(NamedTuple):
    """A leaf of the result that is an argument itself."""

    number: int


def equal_outputs(x: Any, y: Any) -> bool:
    if x.__class__ is y.__class__ and x.__class__ in (Argument, Gradient):
        return x == y  # type: ignore[no-any-return]
    return x is y or equal_constants(x, y)


class Path:
    """One recorded run, compiled: what it reads, returns and writes, and its guards."""

    def __init__(
        self, jitted: Any, recorder: Recorder, inputs: Sequence[Node], result: Any, in_tree: Any
    ) -> None:
        leaves, self.out_tree = flatten(result)
        self.cells = [cell for cell, _ in recorder.cells.values()]
        self.grad_ends = [gradient_end(cell, recorder) for cell in self.cells]
        self.donated = jitted.donated_leaves(in_tree)
        self.static_outputs = [self.static_output(y, recorder) for y in leaves]
        outputs = [y for y, known in zip(leaves, self.static_outputs) if known is None]
        self.all_tensors = len(outputs) == len(leaves)
        self.is_tensor = self.all_tensors and self.out_tree.is_leaf()
        self.sources: list[Any] = []
        captured: list[Node] = []
        for node, x in recorder.captured.items():
            if x.raw is not None:  # an example inside vmap is not an external tensor
                captured.append(node)
                self.sources.append(recorder.grads.get(id(x), x))
        every_written = [x for x, _ in recorder.written.values()]
        written, self.aliases = one_per_memory(every_written, recorder)
        self.written = [recorder.grads.get(id(x), x) for x in written]
        overwritten = {i: x for i, x in recorder.overwritten.items() if i not in self.donated}
        self.written_arguments = list(overwritten)
        self.layouts = {i: recorder.array_before(x).strides for i, x in overwritten.items()}
        if recorder.writes_results:  # perhaps a copy of an argument, where others are viewed
            read = {i: x.saved for i, x in enumerate(inputs) if i not in recorder.overwritten}
            strided = {i: x for i, x in read.items() if not x.flags.c_contiguous}
            self.layouts.update({i: x.strides for i, x in strided.items()})
        self.had_grad = [
            (cell, before is not None)
            for i, (cell, before) in recorder.cells.items()
            if i not in recorder.assigned_grads
        ]
        self.guards: list[Guard] = recorder.guards
        self.locks = Locks(recorder.locks.values(), traces=bool(recorder.written))
        self.entries = list(recorder.entries.values())
        self.counters = recorder.counters
        self.attributes = recorder.unchanged_attributes()
        self.required_grad = [requires_grad(x) for x in self.sources]
        self.hooks = [hooks_of(cell) for cell in self.cells]
        self.checked_at = (attribute_changes[0], requires_grad_changes[0])
        self.mismatch = ""
        ends_of = zip(self.cells, self.grad_ends)
        changed = [cell.grad for cell, end in ends_of if end is COMPUTED]
        tensors = [*outputs, *written, *overwritten.values(), *changed]
        self.ends = [y.raw for y in tensors]  # pending until the first run
        ends: list[Any] = [node_of(y) for y in tensors]
        ends += [guard.node for guard in self.guards]
        for guard in self.guards:
            guard.node = None  # it holds the tape of the recorded run
        made = list(recorder.constants)
        section = cut_since(list(inputs) + captured + made, ends, recorder.start, recorder.effects)
        refuse_traced(jitted.name, [section.slots[slot] for slot in section.captured])
        known = section.tensor_names(jitted.function)
        names = [*jitted.names, *[known.get(id(x), f"c{i}") for i, x in enumerate(self.sources)]]
        graph = reroll_graph(section.graph(jitted.name, names))
        last = [*made, *[section.slots[slot] for slot in section.captured]]
        constants = zip(graph.inputs[len(graph.inputs) - len(last) :], last)
        self.graph, self.constants = fold_constants(
            graph,
            {var: recorder.constants.get(node, array_of(node.saved)) for var, node in constants},
        )
        self.is_ordered = any([eqn.op.ordered for eqn in self.graph.equations])
        self.n_outputs = len(outputs)
        self.n_state = len(self.written) + len(overwritten) + len(changed)
        self.grad, self.default = local.grad, Default.floating
        self.name = jitted.name
        self.backend = jitted.backend
        self.returns_numpy = jitted.returns_numpy
        self.context_budget = local.budget
        self.modes: Modes | None = None  # in which a fast call was made
        self.budget = self.context_budget if jitted.budget is None else jitted.budget
        self.program: Any = None  # compiled when it first runs
        self.overwritten: list[int] = []
        self.joint: Any = None  # see autograd.following.step_run
        self.fast_call: FastCall | None = None
        args_tree, kwargs_tree = in_tree.children()
        positional = not (jitted.static or kwargs_tree.num_children or self.layouts)
        positional &= not any([node.is_number for node in inputs])  # a fast call takes arrays
        self.positional_tree = args_tree if positional else None
        self.into = {} if self.guards else self.output_aliases(len(inputs))
        self.is_pure = not (self.cells or overwritten) and all(
            id(x) in recorder.states and not node_of(x).flags & GRAD for x in every_written
        )
        self.cleared = self.cleared_cells(recorder)
        self.reads = differentiable_inputs(self.graph, self.n_outputs) if self.is_pure else []
        reached = frozenset[int]().union(*self.reads)
        self.differentiable_sources = [
            x for i, x in enumerate(self.sources, len(inputs)) if i in reached
        ]

    def cleared_cells(self, recorder: Recorder) -> list[Any]:
        """Return the cells whose gradients the run clears before anything else, if they are large.

        A call clears them before the program runs, so that old and new ones are never both there.
        """
        cells = [cell for i, (cell, _) in recorder.cells.items() if i in recorder.cleared_grads]
        sizes = [cell.grad.type.size for cell in cells if cell.grad is not None]
        return cells if not self.guards and sum(sizes) >= MANY_ELEMENTS else []

    def clear_gradients(self) -> None:
        """Drop the gradients that the run clears first: the program is about to run."""
        for cell in self.cleared:
            cell.grad = None

    def compile(self) -> None:
        """Compile the Graph: after the recording, so that nothing waits for it or is half done."""
        if self.program is not None:
            return
        with using(self.backend):
            program = (
                interpret.Program(self.graph)
                if Tiering.compile is None
                else compile_hot(self.graph, self.into, self.budget)
            )
        self.overwritten = getattr(program, "overwritten", [])
        self.program = program
        # with checks, it would communicate again to explain an error
        explains = self.is_ordered and getattr(program, "checks", False)
        if self.positional_tree is not None and not explains:
            self.fast_call = FastCall.of(self, self.positional_tree)

    def static_output(self, y: Any, recorder: Recorder) -> Any:
        """Return what every call returns for a leaf of the result; None if it is computed.

        A tensor that the function was given, or closes over, is returned itself.
        """
        if not isinstance(y, Traced):
            return y
        index = recorder.arguments.get(id(y))
        if index is not None:
            return None if index in self.donated else Argument(index)
        cell = recorder.grads.get(id(y))
        if cell is not None:
            is_left = any([x is cell is end for x, end in zip(self.cells, self.grad_ends)])
            return Gradient(cell) if is_left else None
        return y if is_outside(y, recorder) else None

    def recorded_outputs(self, result: Any, recorder: Recorder) -> list[np.ndarray]:
        """Return the outputs of the recorded run, in memory of their own, as later calls do."""
        values, seen = [], set()
        for y, known in zip(flatten(result)[0], self.static_outputs):
            if known is not None:
                continue
            is_shared = y.origin is not None or node_of(y) in recorder.constants
            is_shared = is_shared or id(y) in recorder.arguments or id(y) in seen
            seen.add(id(y))
            values.append(y.value.copy() if is_shared else y.value)
        return values

    def spent(self, args: Sequence[Any]) -> list[int]:
        """Return the donated arguments, but for a tensor that is returned as another argument."""
        kept = {id(args[y.number]) for y in self.static_outputs if y.__class__ is Argument}
        return [i for i in self.donated if id(args[i]) not in kept]

    def layouts_match(self, values: Sequence[np.ndarray]) -> bool:
        """True if the arguments that it may write have the layouts they were recorded with."""
        return all([values[i].strides == strides for i, strides in self.layouts.items()])

    def is_written_alone(self, values: Sequence[np.ndarray], extra: Sequence[np.ndarray]) -> bool:
        """True if the arguments that the path writes share no memory with what else it reads."""
        chosen = set(self.written_arguments)
        if not all(values[i].flags.writeable for i in chosen):
            return False
        rest = [x for i, x in enumerate(values) if i not in chosen]
        written = [values[i] for i in chosen]
        one_another = any(overlap([x], written[:i]) for i, x in enumerate(written))
        return not (one_another or overlap(written, [*rest, *extra]))

    def output_aliases(self, n_args: int) -> dict[int, int]:
        """Map outputs to the inputs whose memory they reuse: written state, donated arguments."""
        into = {}
        index = {id(x): n_args + i for i, x in enumerate(self.sources)}
        for i, x in enumerate(self.written):
            if id(x) in index:
                into[self.n_outputs + i] = index[id(x)]
        free = list(self.donated)
        for i, y in enumerate(self.graph.outputs[: self.n_outputs]):
            found = next((k for k in free if self.graph.inputs[k].type == y.type), None)
            if found is not None:
                into[i] = found
                free.remove(found)
        return into

    def run(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run the program, copying inputs that it overwrites and that share memory."""
        self.compile()
        if self.overwritten:
            if followers:
                keep_for_others(values)
            values = copy_if_aliased(values, self.overwritten)
        self.clear_gradients()
        try:
            return self.program(values)
        except MemoryError as error:
            if isinstance(error, LucidError):
                raise
            raise OutOfMemoryError(f"jit of {self.name}: {error}") from error

    @cached_property
    def call(self) -> Any:
        """The run as an operation on the tape, with what its derivative will ask for."""
        return call.Call(call.with_residuals(self.graph))

    def operands(self) -> list[Any]:
        """Return the captured tensors as operands on the tape: copies of those it writes to."""
        found = self.captured_tensors()
        for x in self.written_tensors():
            found = [wrap(x.value.copy()) if y is x else y for y in found]
        return found

    def written_tensors(self) -> list[Any]:
        """Return the tensors that the path writes besides arguments; gradients are those of now."""
        return [x if isinstance(x, Traced) else x.grad for x in self.written]

    def is_shared(self, extra: Sequence[np.ndarray]) -> bool:
        """True if what it writes besides arguments shares memory with another captured tensor.

        `extra` is what it reads besides the arguments. Views of each other are known as such.
        """
        written = self.written_tensors()
        arrays = [x.value for x in written]
        if not written or have_distinct_memory([*arrays, *self.unwritten_arrays(extra)]):
            return False
        tensors = [*written, *[x for x in self.captured_tensors() if x is not None]]
        return any([
            x is not y and np.may_share_memory(x.value, y.value) and base_of(x) is not base_of(y)
            for x in written for y in tensors
        ])  # fmt: skip

    def unwritten_arrays(self, extra: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the arrays that it reads besides the arguments, and does not write."""
        written = set(map(id, self.written))
        return [x for x, source in zip(extra, self.sources) if id(source) not in written]

    def fits(self, modes: Modes) -> bool:
        """True if a fast call may run in these modes, which are remembered if they hold no tape."""
        fits = modes.no_observers and modes.grad is self.grad
        fits = fits and modes.budget == self.context_budget
        if fits and modes.dual_level is None:
            self.modes = modes
        return fits

    def needs_grad(self) -> bool:
        """True if an output has a derivative with respect to a tracked captured tensor."""
        return self.grad and any(is_tracked(x) for x in self.differentiable_sources)

    def detach_constants(self, operands: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
        """Detach the outputs that have no derivative with respect to a tracked operand."""
        return [
            y if any(is_tracked(operands[i]) for i in reads) else bind(STOP_GRADIENT, y)
            for y, reads in zip(outs, self.reads)
        ]

    def arrays(self) -> list[np.ndarray] | None:
        """Return what the path reads besides the arguments, None if its state has changed."""
        return self.current_arrays() if self.state_holds() else None

    def state_holds(self) -> bool:
        """True if what the path depends on besides values is as recorded."""
        if (
            self.checked_at != (attribute_changes[0], requires_grad_changes[0])
            and not self.guards_hold()
        ):
            return False
        for cell, had in self.had_grad:
            if (cell.grad is not None) != had:
                return False
        for state, name, value in self.entries:
            now = state.get(name)
            if now is not value and not equal_constants(now, value):
                self.mismatch = f"{name} was changed"
                return False
        return True

    def captured_tensors(self) -> list[Any]:
        """Return the tensors that the path reads besides the arguments, None for a gradient that
        is not there."""
        return [x if isinstance(x, Traced) else x.grad for x in self.sources]

    def current_arrays(self) -> list[np.ndarray] | None:
        """Return what the path reads besides the arguments, None if a part has no value."""
        arrays = []
        for source in self.sources:
            x = source if isinstance(source, Traced) else source.grad
            array = None if x is None else x.raw
            if array is None:
                return None
            arrays.append(array if array.__class__ is np.ndarray else x.value)
        return arrays + self.constants

    def expired(self) -> bool:
        """True if the path can never be taken again."""
        return any(state.get(name) is not value for state, name, value in self.counters)

    def guards_hold(self) -> bool:
        """True if the attributes read, requires_grad and the hooks are as recorded."""
        now = (attribute_changes[0], requires_grad_changes[0])
        for x, name, expected, key in self.attributes:
            if not is_unchanged(x, name, expected, key):
                self.mismatch = f"{type(x).__name__}.{name} was changed"
                return False
        for x, required in zip(self.sources, self.required_grad):
            if requires_grad(x) != required:
                self.mismatch = f"requires_grad of a tensor of type {x.type} was changed"
                return False
        if self.hooks != [hooks_of(cell) for cell in self.cells]:
            self.mismatch = "the hooks of a tensor were changed"
            return False
        self.checked_at = now
        return True

    def types_match(self, arrays: Sequence[np.ndarray], n_args: int) -> bool:
        """True if captured tensors still have their recorded types."""
        for var, array in zip(self.graph.inputs[n_args:], arrays):
            type = var.type
            if type.dtype is not array.dtype and type.dtype != array.dtype:
                return False
            if type.shape != array.shape:
                return False
        return True

    def fails_a_guard(self, values: list[Any]) -> bool:
        """True if a guard fails for these arguments; nothing is written."""
        extra = self.arrays() if self.guards else None
        if extra is None or not self.types_match(extra, len(values)):
            return False
        try:
            outputs = interpret.Program(self.graph)([*values, *extra])
        except LucidError:
            return True
        return self.failed_guard(outputs[self.n_outputs + self.n_state :]) is not None

    def failed_guard(self, values: Sequence[np.ndarray]) -> int | None:
        """Return the number of the first guard that does not hold, or None."""
        for number, (guard, value) in enumerate(zip(self.guards, values)):
            if not guard.holds(value):
                return number
        return None

    def is_repeated_by(self, other: Path) -> bool:
        """True if another run did the same, and Python read the same values in it."""
        reads = zip(self.guards, other.guards)
        return (
            len(self.guards) == len(other.guards)
            and all(same_bits(a.recorded, b.recorded) for a, b in reads)
            and same_objects(self.sources, other.sources)
            and same_objects(self.written, other.written)
            and same_objects(self.cells, other.cells)
            and same_objects(self.grad_ends, other.grad_ends)
            and (self.written_arguments, self.layouts) == (other.written_arguments, other.layouts)
            and self.out_tree == other.out_tree
            and all(map(equal_outputs, self.static_outputs, other.static_outputs))
            and self.graph == other.graph
            and all(map(same_bits, self.constants, other.constants))
        )

    def commit(self, values: Sequence[np.ndarray], args: Sequence[Any] = ()) -> None:
        """Write back the state that a run has changed."""
        written = self.written_tensors()
        if self.written_arguments:
            written += [args[i] for i in self.written_arguments]
        after_recording(self.write, written, values)
        rest = iter(values[len(written) :])
        before = [x.grad for x in self.cells]
        for cell, end in zip(self.cells, self.grad_ends):
            if end is COMPUTED:
                cell.grad = wrap(next(rest))
            elif end is not cell:
                is_moved = isinstance(end, GradCell)
                cell.grad = before[self.cells.index(end)] if is_moved else end

    def write(self, tensors: Sequence[Any], values: Sequence[np.ndarray]) -> None:
        """Give tensors the values that a run has computed for them."""
        source = None
        if followers:
            keep_for_others([x.raw for x in tensors])
        for x, value in zip(tensors, values):
            if value is not x.raw:
                x.value[...] = value
            if x.storage is None and x.node is None:  # see `count_unshared_write`
                x.writes = getattr(x, "writes", 0) + 1
                continue
            if x.storage is not None:
                source = source or caller()
            if not count_unshared_write(x, source):
                source = source or caller()
                mark_written(x, source)
        for x in self.aliases:
            if x.node is not None:  # the write to its memory is counted already
                mark_written(x, source)

    @cached_property
    def leaves_gradients(self) -> bool:
        """True if every `.grad` that the run has read is afterward what it was before."""
        unwritten = all([isinstance(x, Traced) for x in self.written])
        return unwritten and same_objects(self.cells, self.grad_ends)

    def source_vars(self) -> Sequence[Var]:
        """Return the inputs of the Graph that are captured tensors."""
        end = len(self.graph.inputs) - len(self.constants)
        return self.graph.inputs[end - len(self.sources) : end]

    def result(self, outputs: Sequence[Any], args: Sequence[Any] = ()) -> Any:
        """Return the result that has these tensors as its computed outputs."""
        if self.is_tensor:
            return outputs[0]
        if self.all_tensors:
            return self.out_tree.unflatten(outputs)
        rest = iter(outputs)
        leaves = []
        for y in self.static_outputs:
            if y is None:
                y = next(rest)
            elif y.__class__ is Argument:
                y = as_tensor(args[y.number])
            elif y.__class__ is Gradient:
                y = y.cell.grad
            leaves.append(y)
        return unflatten(self.out_tree, leaves)
