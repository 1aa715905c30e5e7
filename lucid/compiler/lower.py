"""lower: the steps of a Graph -> instructions of plans. What has no native code yet runs through NumPy between plans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lucid.compiler import blas
from lucid.compiler.arrays import Array, dense
from lucid.compiler.fuse import REDUCTIONS, VIEWS, Group, Reading, Step, fuse, scalar_name
from lucid.compiler.instructions import INLINE_NS, Ref, chunk_length
from lucid.compiler.kernels import kernels_of
from lucid.compiler.memory import Life, allocate
from lucid.compiler.nest import Buffer, Nest, Store, Structure, Value, simplify_axes
from lucid.compiler.plan import Builder, Plan
from lucid.ir.graph import Equation, Graph, Literal, Var
from lucid.ir.types import SHORT_NAMES, Type
from lucid.ops.contraction import Matmul
from lucid.ops.creation import Full, Iota

COSTS = {"load": 0.1, "const": 0.0, "reduce": 0.1, "iota": 0.05}
EXPENSIVE = 0.6  # ns for a function such as exp
CHEAP = 0.06


def is_native(step: Step) -> bool:
    """Has the step instructions of its own?"""
    if isinstance(step, Group):
        return True
    op = step.equation.op
    if isinstance(op, Matmul):
        x, y = step.equation.inputs
        return (
            x.type.dtype.str[1:] in ("f4", "f8")
            and x.type.ndim <= 3
            and y.type.ndim <= 3
            and x.type.size * y.type.size > 0
        )
    return False


@dataclass(eq=False)
class Segment:
    """Steps that one plan runs: from arrays of the environment to arrays of the environment."""

    steps: list[Step]
    inputs: list[Var] = field(default_factory=list)
    outputs: list[Var] = field(default_factory=list)
    plan: Plan | None = None


class Lowering:
    """One settled Graph on its way to an Executable."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.steps, self.readings = fuse(graph)
        self.producer: dict[Var, Equation] = {
            v: eqn for eqn in graph.equations for v in eqn.outputs
        }
        self.step_of: dict[Var, Step] = {}
        for step in self.steps:
            for eqn in step.equations if isinstance(step, Group) else [step.equation]:
                for var in eqn.outputs:
                    self.step_of[var] = step

    def base(self, x: Var) -> Var:
        """The computed Var or input that `x` is a view of."""
        while (
            x in self.producer
            and isinstance(self.producer[x].op, VIEWS)
            and isinstance(self.producer[x].inputs[0], Var)
        ):
            x = self.producer[x].inputs[0]  # type: ignore[assignment]
        return x

    def reads(self, step: Step) -> list[Var]:
        """The bases of what a step reads from outside itself."""
        equations = step.equations if isinstance(step, Group) else [step.equation]
        found = [self.base(x) for eqn in equations for x in eqn.inputs if isinstance(x, Var)]
        return list(dict.fromkeys(x for x in found if self.step_of.get(x) is not step))

    def segments(self) -> list[Segment | Equation]:
        """The steps in runs: native ones together, others one by one."""
        out: list[Segment | Equation] = []
        for step in self.steps:
            if not is_native(step):
                out.append(step.equation)  # type: ignore[union-attr]
            elif out and isinstance(out[-1], Segment):
                out[-1].steps.append(step)
            else:
                out.append(Segment([step]))
        self.connect(out)
        return out

    def connect(self, parts: Sequence[Segment | Equation]) -> None:
        """Find what each segment takes and gives."""
        wanted: set[Var] = {self.base(x) for x in self.graph.outputs if isinstance(x, Var)}
        for part in reversed(parts):
            if isinstance(part, Equation):
                wanted |= {self.base(x) for x in part.inputs if isinstance(x, Var)}
                continue
            made = [
                var
                for step in part.steps
                for eqn in (step.equations if isinstance(step, Group) else [step.equation])
                for var in eqn.outputs
            ]
            inside = set(made)
            last = [x for x in self.graph.outputs if x in inside]
            part.outputs = list(dict.fromkeys([*last, *[var for var in made if var in wanted]]))  # type: ignore[list-item]
            reads = dict.fromkeys(x for step in part.steps for x in self.reads(step))
            part.inputs = [x for x in reads if x not in inside]
            wanted |= set(part.inputs)

    def lay_out(self) -> None:
        """Decide on memory and instructions, but compile nothing yet."""
        self.parts = self.segments()
        self.layouts = [
            SegmentLayout(self, part) for part in self.parts if isinstance(part, Segment)
        ]

    def structures(self) -> list[Structure]:
        """What the kernels of the program depend on."""
        return [
            call.nest.structure for layout in self.layouts for call in layout.calls if call.nest
        ]

    def finish(self) -> Executable:
        kernels = kernels_of(self.structures())
        for layout in self.layouts:
            layout.build(kernels)
        return Executable(self.graph, self.parts, self.producer)


@dataclass(eq=False)
class Call:
    """An instruction to be: a nest with its buffers, or a matrix product."""

    nest: Nest | None
    arrays: list[Array]
    product: Any = None
    label: str = ""
    cost: float = 1.0
    chunks: int = 1
    grain: int = 0


class SegmentLayout:
    """A segment's memory and instructions."""

    def __init__(self, lowering: Lowering, segment: Segment) -> None:
        self.lowering = lowering
        self.segment = segment
        self.builder = Builder()
        self.arrays: dict[Var, Array] = {}
        self.calls: list[Call] = []
        self.lives: list[Life] = []
        self.arena: list[Ref] = []
        for var in segment.inputs:
            self.arrays[var] = Array.of(
                self.builder.input(var.type.dtype, var.type.shape), var.type
            )
        self.plan_memory()
        for number, step in enumerate(segment.steps):
            if isinstance(step, Group):
                self.lower_group(step, number)
            else:
                self.lower_matmul(step.equation)

    # Memory

    def plan_memory(self) -> None:
        """Give every value that one step leaves for another a place: an output, or one in the arena."""
        segment, lowering = self.segment, self.lowering
        last: dict[Var, int] = {}
        first: dict[Var, int] = {}
        for number, step in enumerate(segment.steps):
            for x in lowering.reads(step):
                last[x] = number
        outputs = set(segment.outputs)
        temporaries: list[Var] = []
        for number, step in enumerate(segment.steps):
            for eqn in step.equations if isinstance(step, Group) else [step.equation]:
                for var in eqn.outputs:
                    first[var] = number
                    if var not in outputs and (var in last or not isinstance(step, Group)):
                        temporaries.append(var)
        for var in segment.outputs:
            self.arrays[var] = Array.of(
                self.builder.output(var.type.dtype, var.type.shape), var.type
            )
        lives = [
            Life(var.type.size * var.type.dtype.itemsize, first[var], last.get(var, first[var]))
            for var in temporaries
        ]
        offsets, self.top = allocate(lives)
        for var, offset in zip(temporaries, offsets):
            self.arrays[var] = Array.of(self.builder.arena(offset), var.type)

    def scratch(self, type: Type) -> Array:
        """Memory above all planned buffers, for the inside of one step."""
        offset = self.top
        self.top += -(-max(type.size * type.dtype.itemsize, 1) // 64) * 64
        return Array.of(self.builder.arena(offset), type)

    def array(self, x: Var) -> Array:
        """Where a value, or a view of one, lies."""
        if x in self.arrays:
            return self.arrays[x]
        eqn = self.lowering.producer[x]
        found = self.array(eqn.inputs[0]).view(eqn.op)  # type: ignore[arg-type]
        assert found is not None, "settle leaves only views that can be taken"
        return found

    # Steps

    def lower_group(self, group: Group, number: int) -> None:
        built = NestBuilder(self, group)
        nest, arrays = built.run()
        label = " ".join(dict.fromkeys(eqn.op.name for eqn in group.equations))
        source = next((str(eqn.source) for eqn in group.equations if eqn.source), "")
        label = f"{label}  [{source}]" if source else label
        cost = cost_of(nest)
        if nest.reduced and all(nest.reduced) and nest.size * cost > INLINE_NS:
            self.add_split(nest, arrays, label, cost)
        else:
            self.calls.append(Call(nest, arrays, label=label, cost=cost))

    def add_split(self, nest: Nest, arrays: list[Array], label: str, cost: float) -> None:
        """A reduction of everything to one number: a partial result for each chunk, then those together."""
        unit = cost * nest.size / nest.sizes[0]
        grain = chunk_length(nest.sizes[0], unit)
        chunks = math.ceil(nest.sizes[0] / grain)
        stage, depends = nest.structure.stage, nest.structure.depends
        reductions = [v for v, value in enumerate(nest.values) if value.op == "reduce"]
        buffers, first_arrays = list(nest.buffers), list(arrays)
        first_stores, partials = [], []
        for store in nest.stores:
            if stage[store.value] == 0 and (
                depends[store.value] or any(nest.buffers[store.buffer].strides)
            ):
                first_stores.append(store)
        for v in reductions:
            partial = self.scratch(Type(np.dtype(LONG[nest.values[v].dtype]), (chunks,)))
            partials.append(partial)
            buffers.append(Buffer(nest.values[v].dtype, (0,) * len(nest.sizes)))
            first_arrays.append(partial)
            first_stores.append(Store(len(buffers) - 1, v))
        first = Nest(nest.sizes, nest.reduced, tuple(buffers), nest.values, tuple(first_stores))
        self.calls.append(
            Call(
                prune(first),
                [first_arrays[i] for i in used_buffers(first)],
                label=label,
                cost=cost,
                grain=grain,
            )
        )
        rest = [store for store in nest.stores if store not in first_stores]
        second_values = list(nest.values)
        second_buffers = [Buffer(b.dtype, (0,)) for b in nest.buffers]
        extra: list[Value] = []
        for v, partial in zip(reductions, partials):
            second_buffers.append(Buffer(nest.values[v].dtype, (1,)))
            extra.append(Value("load", (), nest.values[v].dtype, len(second_buffers) - 1))
        shift = len(extra)
        place = {v: k for k, v in enumerate(reductions)}
        moved = []
        for v, value in enumerate(second_values):
            if v in place:
                moved.append(Value("reduce", (place[v],), value.dtype, value.param))
            else:
                moved.append(value._replace(args=tuple(a + shift for a in value.args)))
        second = Nest(
            (chunks,), (True,), tuple(second_buffers), (*extra, *moved),
            tuple(Store(s.buffer, s.value + shift) for s in rest),
        )  # fmt: skip
        second_arrays = [*arrays, *partials]
        pruned = prune(second)
        self.calls.append(
            Call(pruned, [second_arrays[i] for i in used_buffers(second)], label=label, cost=0.5)
        )

    def lower_matmul(self, eqn: Equation) -> None:
        x, y = (self.array(operand) for operand in eqn.inputs)  # type: ignore[arg-type]
        out = self.array(eqn.outputs[0])
        self.calls.append(
            Call(
                None,
                [x, y, out],
                product=eqn,
                label=f"matmul  [{eqn.source}]" if eqn.source else "matmul",
            )
        )

    def build(self, kernels: dict[Any, Any]) -> None:
        for call in self.calls:
            if call.nest is None:
                add_product(self.builder, call)
                continue
            nest = call.nest
            addresses = [array.address for array in call.arrays]
            extent, unit = extent_of(nest)
            words = nest.arguments()
            grain = None
            if nest.structure.mode == "rows" and all(nest.reduced):
                grain = call.grain or extent
                words.append(grain)
            kernel = kernels[nest.structure.key]
            self.builder.call(
                kernel,
                [*addresses, *words],
                extent,
                max(call.cost * unit, 0.01),
                grain,
                label=call.label,
            )
        self.segment.plan = self.builder.build(self.top)


LONG = {short: str(dtype) for dtype, short in SHORT_NAMES.items()}


def used_buffers(nest: Nest) -> list[int]:
    used, _ = _used(nest)
    return used


def _used(nest: Nest) -> tuple[list[int], list[int]]:
    values: set[int] = set()
    stack = [store.value for store in nest.stores]
    while stack:
        v = stack.pop()
        if v not in values:
            values.add(v)
            stack.extend(nest.values[v].args)
    buffers = {nest.values[v].param for v in values if nest.values[v].op == "load"}
    buffers |= {store.buffer for store in nest.stores}
    return sorted(buffers), sorted(values)


def prune(nest: Nest) -> Nest:
    """The nest with only the values and buffers that its stores need."""
    buffers, values = _used(nest)
    buffer_at = {b: i for i, b in enumerate(buffers)}
    value_at = {v: i for i, v in enumerate(values)}
    kept = []
    for v in values:
        value = nest.values[v]
        param = buffer_at[value.param] if value.op == "load" else value.param
        kept.append(Value(value.op, tuple(value_at[a] for a in value.args), value.dtype, param))
    stores = tuple(Store(buffer_at[s.buffer], value_at[s.value]) for s in nest.stores)
    return Nest(
        nest.sizes, nest.reduced, tuple(nest.buffers[b] for b in buffers), tuple(kept), stores
    )


def cost_of(nest: Nest) -> float:
    """Estimated ns for a point of the domain."""
    total = 0.0
    for value in nest.values:
        if value.op in COSTS:
            total += COSTS[value.op]
        elif value.op in blas_free_functions():
            total += EXPENSIVE
        else:
            total += CHEAP
    return total + 0.1 * len(nest.stores)


def blas_free_functions() -> Any:
    from lucid.compiler import scalars

    return scalars.table


def extent_of(nest: Nest) -> tuple[int, float]:
    """How far a kernel's loop over [lo, hi) goes, and how many points of the domain one unit of it is."""
    mode = nest.structure.mode
    kept = [n for n, r in zip(nest.sizes, nest.reduced) if not r]
    if mode == "map":
        extent = math.prod(kept[:-1]) if len(kept) > 1 else kept[0]
    elif mode == "rows":
        extent = math.prod(kept) if kept else nest.sizes[0]
    else:
        extent = math.prod(kept[:-1]) if len(kept) > 1 else kept[0]
    return extent, nest.size / max(extent, 1)


class NestBuilder:
    """Turns a Group into a Nest and the arrays of its buffers."""

    def __init__(self, layout: SegmentLayout, group: Group) -> None:
        self.layout = layout
        self.group = group
        self.readings = layout.lowering.readings
        self.values: list[Value] = []
        self.number: dict[Any, int] = {}
        self.value_of: dict[Var, int] = {}
        self.buffers: list[Buffer] = []
        self.arrays: list[Array] = []

    def run(self) -> tuple[Nest, list[Array]]:
        group = self.group
        for eqn in group.equations:
            self.value_of[eqn.outputs[0]] = self.equation(eqn)
        stores = []
        for eqn in group.equations:
            var = eqn.outputs[0]
            if var in self.layout.arrays:
                array = self.layout.arrays[var]
                stores.append(Store(self.buffer(array, group.coords[var]), self.value_of[var]))
        reduced = group.reduced or frozenset()
        flags = tuple(axis in reduced for axis in range(len(group.sizes)))
        nest = Nest(group.sizes, flags, tuple(self.buffers), tuple(self.values), tuple(stores))
        nest = simplify_axes(self.hold_columns(nest))
        if not nest.sizes:
            flat = tuple(Buffer(b.dtype, (0,)) for b in nest.buffers)
            nest = Nest((1,), (False,), flat, nest.values, nest.stores)
        return nest, self.arrays

    def hold_columns(self, nest: Nest) -> Nest:
        """In a column kernel every reduction has memory: give those that are not stored some."""
        axes = [i for i, n in enumerate(nest.sizes) if n != 1]
        if not axes or nest.reduced[axes[-1]] or not any(nest.reduced[i] for i in axes):
            return nest
        stores, held = list(nest.stores), {s.value for s in nest.stores}
        kept = [i for i in axes if not nest.reduced[i]]
        shape = tuple(nest.sizes[i] for i in kept)
        for v, value in enumerate(nest.values):
            if value.op == "reduce" and v not in held:
                array = self.layout.scratch(Type(np.dtype(LONG[value.dtype]), shape))
                strides = [0] * len(nest.sizes)
                for i, stride in zip(kept, dense(shape)):
                    strides[i] = stride
                self.buffers.append(Buffer(value.dtype, tuple(strides)))
                self.arrays.append(array)
                stores.append(Store(len(self.buffers) - 1, v))
        return Nest(nest.sizes, nest.reduced, tuple(self.buffers), nest.values, tuple(stores))

    def add(self, value: Value) -> int:
        key = (value.op, value.args, value.dtype, repr(value.param))
        if key not in self.number:
            self.number[key] = len(self.values)
            self.values.append(value)
        return self.number[key]

    def buffer(self, array: Array, coords: Sequence[int | None]) -> int:
        strides = [0] * len(self.group.sizes)
        for n, stride, axis in zip(array.shape, array.strides, coords):
            if axis is not None and n != 1:
                strides[axis] = stride
        self.buffers.append(Buffer(array.dtype, tuple(strides)))
        self.arrays.append(array)
        return len(self.buffers) - 1

    def operand(self, x: Any, points: Sequence[int | None]) -> int:
        if isinstance(x, Literal):
            return self.add(Value("const", (), SHORT_NAMES[x.dtype], x.value))
        base = (self.readings.get(x) or Reading(x, ())).base
        if base in self.value_of:
            return self.value_of[base]
        if isinstance(base, Literal):
            return self.add(Value("const", (), SHORT_NAMES[base.dtype], base.value))
        array = self.layout.array(x)
        coords = [
            None if array.shape[j] == 1 else points[j + len(points) - len(array.shape)]
            for j in range(len(array.shape))
        ]
        strides = [0] * len(self.group.sizes)
        for stride, axis in zip(array.strides, coords):
            if axis is not None:
                strides[axis] = stride
        key = ("load", array.address, tuple(strides), array.dtype)
        if key not in self.number:
            self.buffers.append(Buffer(array.dtype, tuple(strides)))
            self.arrays.append(array)
            self.number[key] = len(self.values)
            self.values.append(Value("load", (), array.dtype, len(self.buffers) - 1))
        return self.number[key]

    def equation(self, eqn: Equation) -> int:
        out = eqn.outputs[0]
        points = self.group.points[out]
        dtype = SHORT_NAMES[out.type.dtype]
        if isinstance(eqn.op, Iota):
            axis = points[eqn.op.axis]
            return self.add(
                Value("const", (), dtype, 0) if axis is None else Value("iota", (), dtype, axis)
            )
        args = tuple(self.operand(x, points) for x in eqn.inputs)
        if isinstance(eqn.op, Full):
            return args[0]
        kind = REDUCTIONS.get(type(eqn.op))
        if kind is None:
            return self.add(Value(scalar_name(eqn.op), args, dtype))
        if self.values[args[0]].dtype != dtype:
            args = (self.add(Value("cast", args, dtype)),)
        if not any(points[i] is not None for i in eqn.op.axes):  # type: ignore[attr-defined]
            return args[0]
        return self.add(Value("reduce", args, dtype, kind))


def add_product(builder: Builder, call: Call) -> None:
    """A (batched) matrix product as instructions."""
    x, y, out = call.arrays
    xs, ys = matrices(x, left=True), matrices(y, left=False)
    (m, k), n = xs[0], ys[0][1]
    batches = [a[2] for a in (xs, ys) if a[2] is not None]
    batch = batches[0] if batches else 1
    if batch > 1 and xs[2] is not None and ys[2] is None and not xs[4] and xs[3] * 1 == m * xs[5]:
        m, batch = m * batch, 1  # one product over all rows
    size = x.type.dtype.itemsize
    strides = (
        (xs[3] if xs[2] is not None else 0) * size,
        (ys[3] if ys[2] is not None else 0) * size,
        m * n * size,
    )
    product = blas.Product(
        x.type.dtype,
        m,
        n,
        k,
        (xs[4], ys[4]),
        (xs[5], ys[5], max(n, 1)),
        batch=batch,
        strides=strides if batch > 1 else (0, 0, 0),
    )
    blas.gemm(builder, product, x.address, y.address, out.address, call.label)


def matrices(a: Array, left: bool) -> tuple[tuple[int, int], Any, int | None, int, bool, int]:
    """(rows, columns), None, batch or None, its stride, transposed as stored, distance between stored rows."""
    shape, strides = a.shape, a.strides
    if len(shape) == 1:
        shape, strides = ((1, shape[0]), (shape[0], 1)) if left else ((shape[0], 1), (1, 1))
    batch, step = (shape[0], strides[0]) if len(shape) == 3 else (None, 0)
    (m, n), (down, across) = shape[-2:], strides[-2:]
    if (across == 1 or n == 1) and (down >= n or m == 1):
        return (m, n), None, batch, step, False, max(down if m > 1 else n, n, 1)
    return (m, n), None, batch, step, True, max(across if n > 1 else m, m, 1)


class Executable:
    """A compiled Graph: arrays in, arrays out."""

    def __init__(
        self, graph: Graph, parts: Sequence[Segment | Equation], producer: dict[Var, Equation]
    ) -> None:
        self.graph = graph
        self.parts = list(parts)
        self.producer = producer
        self.plan: Plan | None = None
        if len(self.parts) == 1 and isinstance(self.parts[0], Segment):
            part = self.parts[0]
            same = list(part.outputs) == list(graph.outputs)
            given = [graph.inputs.index(x) for x in part.inputs]
            self.plan = part.plan if same else None
            self.given = given if given != list(range(len(graph.inputs))) else None

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        if self.plan is not None:
            chosen = inputs if self.given is None else [inputs[i] for i in self.given]
            return list(self.plan(*chosen))
        env: dict[Any, Any] = dict(zip(self.graph.inputs, inputs))
        for part in self.parts:
            if isinstance(part, Segment):
                assert part.plan is not None
                env.update(zip(part.outputs, part.plan(*[env[x] for x in part.inputs])))
            else:
                with np.errstate(all="ignore"):
                    out = part.op.eval(*[self.read(x, env) for x in part.inputs])
                outs = out if isinstance(out, tuple) else (out,)
                env.update((var, np.asarray(y)) for var, y in zip(part.outputs, outs))
        return [np.asarray(self.read(x, env)) for x in self.graph.outputs]

    def read(self, x: Any, env: dict[Any, Any]) -> Any:
        if isinstance(x, Literal):
            return x.array
        if x not in env:
            eqn = self.producer[x]
            env[x] = eqn.op.eval(*[self.read(i, env) for i in eqn.inputs])
        return env[x]
