"""hoist: Graph -> Graph with matrix products moved out of loops that do not depend on the carry.

    x @ w, w loop-invariant                  one product of all rows of xs, before the loop
    c @ w.T, w loop-invariant                w is transposed once, before the loop
    total + p.T @ q, a sum of products       one product of all steps' p and q, after the loop

A product of many rows runs at the full speed of the machine; one of a few rows does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.compiler.passes.loops.merge_loops import Merged, replace_equations
from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.infer import infer
from lucid.ir.rewrite import dce
from lucid.ir.types import Type
from lucid.ops.elementwise.arithmetic import Add
from lucid.ops.higher_order.control.scan import Scan
from lucid.ops.linalg.contraction import Matmul
from lucid.ops.reduce.reduction import Sum
from lucid.ops.shape.movement import Reshape, Transpose

MAX_BYTES = 1 << 27  # of the stacked operands or results of one hoisted product


def hoist(graph: Graph) -> Graph:
    """Move products out of the scans of a Graph where possible."""
    for number in range(sum(isinstance(eqn.op, Scan) for eqn in graph.equations)):
        eqn = [eqn for eqn in graph.equations if isinstance(eqn.op, Scan)][number]
        hoister = LoopHoister(eqn)
        hoister.hoist_matmuls()
        hoister.move_accumulations_after()
        hoister.hoist_transposes()
        if hoister.changed:
            graph = splice(graph, eqn, hoister)
    return graph


def splice(graph: Graph, old: Equation, new: LoopHoister) -> Graph:
    """Replace a loop in a Graph by the new loop and the equations moved out of it."""
    eqn = new.equation()
    index = graph.equations.index(old)
    rest = graph.equations[index + 1 :]
    equations = [*graph.equations[:index], *new.before, eqn, *new.after, *rest]
    whole = Graph(graph.name, graph.inputs, tuple(equations), graph.outputs)
    return replace_equations(whole, (eqn,), Merged(eqn, new.renamed))


class LoopHoister:
    """A loop from which products are moved.

    before, after    equations moved before and after the loop
    renamed          results of the loop that are now computed after it
    """

    def __init__(self, eqn: Equation) -> None:
        self.old = eqn
        op: Any = eqn.op
        self.op = op
        self.consts, self.carries, self.xs = op.parts(list(zip(op.body.inputs, eqn.inputs)))
        outs = list(zip(op.body.outputs, eqn.outputs))
        self.lasts, self.ys = outs[: op.n_carry], outs[op.n_carry :]
        self.equations = list(op.body.equations)
        self.before: list[Equation] = []
        self.after: list[Equation] = []
        self.renamed: dict[Var, Var] = {}
        self.changed = False

    def equation(self) -> Equation:
        """The equation of the loop that remains."""
        inputs = [v for v, _ in (*self.consts, *self.carries, *self.xs)]
        outputs = [y for y, _ in (*self.lasts, *self.ys)]
        body = dce(Graph(self.op.body.name, tuple(inputs), tuple(self.equations), tuple(outputs)))
        op = Scan(body, len(self.consts), len(self.carries), self.op.length, self.op.reverse)
        given = tuple([x for _, x in (*self.consts, *self.carries, *self.xs)])
        results = tuple([out for _, out in (*self.lasts, *self.ys)])
        return Equation(op, given, results, self.old.source)

    def make(self, where: list[Equation], op: Any, *inputs: Atom) -> Var:
        result = infer(op, tuple([x.type for x in inputs]))
        assert isinstance(result, Type)
        out = Var(result)
        where.append(Equation(op, inputs, (out,), self.old.source))
        return out

    # Before the loop

    def hoist_matmuls(self) -> None:
        """Move products of scanned rows and constants before the loop."""
        free = {v for v, _ in (*self.consts, *self.xs)}
        rows = {v for v, _ in self.xs}
        wanted = []
        for eqn in self.equations:
            movable = eqn.op.aliases or isinstance(eqn.op, Matmul) or not eqn.inputs
            if not movable or not all(x in free or isinstance(x, Literal) for x in eqn.inputs):
                continue
            free.update(eqn.outputs)
            if not rows.isdisjoint(eqn.inputs):
                rows.update(eqn.outputs)
                if isinstance(eqn.op, Matmul):
                    wanted.append(eqn.outputs[0])
        last = [v for v in wanted if v not in self.operands_of(wanted)]
        nbytes = self.op.length * sum(v.type.size * v.type.dtype.itemsize for v in last)
        if self.op.length > 1 and last and nbytes <= MAX_BYTES:
            self.hoist_rows(last)

    def hoist_transposes(self) -> None:
        """Move transposes of constants before the loop: BLAS is faster on row-major operands."""
        consts: dict[Any, Atom] = dict(self.consts)
        transposes: dict[Any, Equation] = {
            e.outputs[0]: e for e in self.equations if e.op == Transpose((1, 0))
        }
        for i, eqn in enumerate(self.equations):
            transpose = transposes.get(eqn.inputs[-1]) if isinstance(eqn.op, Matmul) else None
            if transpose is None or transpose.inputs[0] not in consts:
                continue
            inside = Var(transpose.outputs[0].type)
            outside = self.make(self.before, transpose.op, consts[transpose.inputs[0]])
            self.consts.append((inside, outside))
            inputs = (eqn.inputs[0], inside)
            self.equations[i] = Equation(eqn.op, inputs, eqn.outputs, eqn.source)
            self.changed = True

    def operands_of(self, results: Sequence[Var]) -> set[Any]:
        return {x for e in self.equations if e.outputs[0] in results for x in e.inputs}

    def hoist_rows(self, wanted: Sequence[Var]) -> None:
        """Compute `wanted` for all steps before the loop, and scan over the results."""
        from lucid.transforms.vmap import batch_graph

        given = [*self.consts, *self.xs]
        part = dce(
            Graph("rows", tuple([v for v, _ in given]), tuple(self.equations), tuple(wanted))
        )
        flags = [False] * len(self.consts) + [True] * len(self.xs)
        many = batch_graph(part, self.op.length, flags)
        names: dict[Any, Any] = dict(zip(many.inputs, [x for _, x in given]))
        for eqn in many.equations:
            outs = tuple([Var(v.type) for v in eqn.outputs])
            inputs = tuple([names.get(x, x) for x in eqn.inputs])
            self.before.append(Equation(eqn.op, inputs, outs, eqn.source))
            names.update(zip(eqn.outputs, outs))
        gone = set(wanted)
        self.equations = [e for e in self.equations if e.outputs[0] not in gone]
        self.xs += [(v, names[y]) for v, y in zip(wanted, many.outputs)]
        self.changed = True

    # After the loop

    def move_accumulations_after(self) -> None:
        """Replace carries that accumulate products by sums after the loop."""
        producer = {v: e for e in self.equations for v in e.outputs}
        uses: dict[Any, int] = {}
        for x in [x for e in self.equations for x in e.inputs] + [
            y for y, _ in (*self.lasts, *self.ys)
        ]:
            uses[x] = uses.get(x, 0) + 1
        largest = sorted(range(len(self.carries)), key=lambda k: -self.carries[k][0].type.size)
        gone = []
        for k in largest:  # matrices first: the sums can reuse what they stack
            (inside, init), (new, result) = self.carries[k], self.lasts[k]
            if uses.get(inside) != 1 or uses.get(new) != 1:
                continue
            terms = self.terms(new, producer, uses)
            rest = [t for t in terms if t is not inside]
            if len(rest) < len(terms) and self.move_total_after(rest, producer, init, result):
                gone.append(k)
        self.carries = [x for k, x in enumerate(self.carries) if k not in gone]
        self.lasts = [x for k, x in enumerate(self.lasts) if k not in gone]

    def terms(self, total: Any, producer: Any, uses: Any) -> list[Any]:
        """The terms of a sum, expanding partial sums that have no other use."""
        eqn = producer.get(total)
        if eqn is None or not isinstance(eqn.op, Add) or uses.get(total) != 1:
            return [total]
        if any(x.type != total.type for x in eqn.inputs):
            return [total]
        return [t for x in eqn.inputs for t in self.terms(x, producer, uses)]

    def move_total_after(
        self, terms: Sequence[Any], producer: Any, init: Atom, result: Var
    ) -> bool:
        """Replace a carry that adds up `terms` by a sum after the loop, if every term can move."""
        found = [producer.get(t) for t in terms]
        products = [e for e in found if e is not None and self.is_stackable_matmul(e)]
        stacked = {x for x, _ in (*self.xs, *self.ys)}
        sums = [
            e for e in found if e is not None and isinstance(e.op, Sum) and e.inputs[0] in stacked
        ]
        if not found or len(products) + len(sums) != len(found):
            return False
        total: Atom = init
        for eqn in products:
            total = self.make(self.after, Add(), total, self.matmul_after(eqn))
        for eqn in sums:
            axes = (0, *[a + 1 for a in eqn.op.axes])
            total = self.make(self.after, Add(), total, self.sum_after(eqn, axes))
        self.renamed[result] = total  # type: ignore[assignment]
        self.changed = True
        return True

    def is_stackable_matmul(self, eqn: Equation) -> bool:
        if not isinstance(eqn.op, Matmul) or any(isinstance(x, Literal) for x in eqn.inputs):
            return False
        p, q = (x.type for x in eqn.inputs)
        fits = self.op.length * (p.size + q.size) * p.dtype.itemsize <= MAX_BYTES
        return p.ndim == q.ndim == 2 and fits and self.op.length > 1

    def stack(self, x: Any) -> Any:
        """The values of `x` at all steps, stacked along axis 0."""
        for inside, outside in (*self.xs, *self.ys):
            if inside is x:
                return outside
        made = next((e for e in self.equations if x in e.outputs), None)
        if made is not None and isinstance(made.op, (Reshape, Transpose)):
            return self.view_after(made)
        out = Var(Type(x.type.dtype, (self.op.length, *x.type.shape)))
        self.ys.append((x, out))
        return out

    def view_after(self, eqn: Equation) -> Var:
        """The view of each step, applied to the stacked steps, so that the loop copies nothing."""
        steps = self.stack(eqn.inputs[0])
        match eqn.op:
            case Reshape(shape):
                return self.make(self.after, Reshape((self.op.length, *shape)), steps)
            case Transpose(permutation):
                order = (0, *[i + 1 for i in permutation])
                return self.make(self.after, Transpose(order), steps)
        raise TypeError(f"{eqn.op!r} is not a reshape or transpose")

    def matmul_after(self, eqn: Equation) -> Var:
        """The sum of p @ q over all steps: all columns of p, side by side, times all rows of q."""
        p, q = eqn.inputs
        transpose = next((e for e in self.equations if p in e.outputs), None)
        if transpose is not None and transpose.op == Transpose((1, 0)):
            p_rows: Any = transpose.inputs[0]
        else:
            p_rows = self.make(self.equations, Transpose((1, 0)), p)
        left = self.rows_after(p_rows)
        right = self.rows_after(q)
        return self.make(
            self.after, Matmul(), self.make(self.after, Transpose((1, 0)), left), right
        )

    def rows_after(self, x: Any) -> Var:
        steps, (k, n) = self.stack(x), x.type.shape
        return self.make(self.after, Reshape((self.op.length * k, n)), steps)

    def sum_after(self, eqn: Equation, axes: tuple[int, ...]) -> Var:
        return self.make(self.after, Sum(axes), self.stack(eqn.inputs[0]))
