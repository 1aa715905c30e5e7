"""A While for many examples: together where they share the condition, else while any goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.ir.graph import Equation, Graph, Var
from lucid.ir.types import Type
from lucid.ops.higher_order.control.subgraphs import BatchedGraph, batched_graph, over_examples
from lucid.ops.higher_order.control.while_chain import Chain, Loop, Value, referenced
from lucid.tape.bind import bind


def batch_while(op: Any, n: int, batched: Sequence[bool], operands: Sequence[Any]) -> Any:
    """The results for `n` examples, all with the examples in axis 0."""
    forced: set[Value] = set()
    while True:
        batching = Batching(op, n, batched, operands, forced)
        batching.add_loops()
        if batching.forced == forced:
            return batching.outputs()
        forced = batching.forced


class Batching:
    """One run of `batch_while`.

    is_batched    of every value and stack, whether it differs between examples
    moved         every value and stack in the new While
    active        the stack that says which examples make a step; None where all make the same
    forced        values that must have examples because a later loop begins with them
    """

    def __init__(
        self,
        op: Any,
        n: int,
        batched: Sequence[bool],
        operands: Sequence[Any],
        forced: set[Value],
    ) -> None:
        self.op = op
        self.n = n
        self.loops, self.tests, self.results = referenced(op, len(operands))
        self.chain = Chain(operands)
        values = [Value(-1, i) for i in range(len(operands))]
        self.is_batched: dict[Any, bool] = dict(zip(values, batched))
        self.moved: dict[Any, Any] = {v: v for v in values}
        self.active: Any = None
        self.forced = set(forced)

    def add_loops(self) -> None:
        self.cond, each_tests = self.condition()
        for number, loop in enumerate(self.loops):
            self.add(number, loop, each_tests)

    def outputs(self) -> tuple[Any, ...]:
        loops, asked, chosen = self.chain.numbered(
            [self.moved[v] for v in self.tests], [self.moved[r] for r in self.results]
        )
        outs = bind(type(self.op)(self.cond, asked, loops, chosen), *self.chain.operands)
        return tuple(
            [over_examples(self.n, self.is_batched[r], y) for r, y in zip(self.results, outs)]
        )

    def condition(self) -> tuple[Graph, bool]:
        """The condition that any example goes on, and whether they decide for themselves."""
        op, loop = self.op, self.loops[0]
        carries = self.fixpoint(loop, self.begins(loop, 0))
        while True:
            flags = [*[self.is_batched[v] for v in self.tests], *carries.batched[: loop.n_carry]]
            found = batched_graph(op.cond, self.n, flags, [False])
            if not found.batched[0]:
                return found.graph, False
            if all(carries.batched[: loop.n_carry]):
                break
            every = [True] * loop.n_carry
            carries = carries._replace(batched=(*every, *carries.batched[loop.n_carry :]))
        return any_of(found.graph), True

    def begins(self, loop: Loop, number: int) -> list[bool]:
        """Which carries differ between examples before the first step."""
        return [
            any(self.is_batched[v] for v in init) or Value(number, i) in self.forced
            for i, init in enumerate(loop.inits)
        ]

    def fixpoint(
        self, loop: Loop, carries: list[bool], graph: Any = None, wrapped: Any = None
    ) -> BatchedGraph:
        """The body for many examples, with every carry batched that ever differs."""
        graph = graph or loop.body
        n = loop.n_carry
        free = [False] * (len(graph.outputs) - n)
        ends = [self.is_batched["stack", *s] for s in loop.stacks]
        begins = [self.is_batched[v] for v in loop.consts]
        while True:
            flags = [*begins, *carries, *ends]
            flags += [True] * (len(graph.inputs) - len(flags))
            found = batched_graph(graph, self.n, flags, [*carries, *free], wrapped)
            now = list(found.batched[:n])
            if now == carries:
                return found
            carries = now

    def add(self, number: int, loop: Loop, each_tests: bool) -> None:
        """The loop over all examples, of which only active ones change."""
        n = loop.n_carry
        if not each_tests:
            found = self.fixpoint(loop, self.begins(loop, number))
        elif number == 0:
            found, loop = self.first(loop)
        else:
            active = Var(Type.parse("bool[]"))
            graph = Graph(
                loop.body.name,
                (*loop.body.inputs, active),
                loop.body.equations,
                loop.body.outputs,
            )
            extended = loop._replace(stacks=(*loop.stacks, self.active))
            begin = len(loop.consts)

            def keep(given: Sequence[Any], results: Sequence[Any]) -> list[Any]:
                return kept(given[-1].tensor, given[begin : begin + n], results, n)

            self.is_batched["stack", *self.active] = True
            self.moved["stack", *self.active] = self.active
            found = self.fixpoint(extended, [True] * n, graph, keep)
            loop = extended
        inits = tuple([self.begun(init, b) for init, b in zip(loop.inits, found.batched)])
        finals, stacks = self.chain.add(
            Loop(
                found.graph,
                loop.reverse,
                tuple([self.moved[v] for v in loop.consts]),
                inits,
                tuple([self.moved["stack", *s] for s in loop.stacks]),
            )
        )
        self.moved.update((Value(number, i), v) for i, v in enumerate(finals))
        self.is_batched.update((Value(number, i), b) for i, b in enumerate(found.batched[:n]))
        for i, (s, b) in enumerate(zip(stacks, found.batched[n:])):
            self.moved["stack", number, i] = s
            self.is_batched["stack", number, i] = b
        if each_tests and number == 0:
            self.active = stacks[-1]

    def first(self, loop: Loop) -> tuple[BatchedGraph, Loop]:
        """The first loop, in which examples whose condition no longer holds stay as they are."""
        body, cond, n = loop.body, self.op.cond, loop.n_carry
        carries = loop.split(body.inputs)[1]
        names: dict[Any, Any] = dict(zip(cond.inputs[len(self.tests) :], carries))
        tests = [Var(x.type) for x in cond.inputs[: len(self.tests)]]
        names.update(zip(cond.inputs, tests))
        equations = list(body.equations)
        for eqn in cond.equations:
            new = tuple([Var(v.type) for v in eqn.outputs])
            inputs = tuple([names.get(x, x) for x in eqn.inputs])
            equations.append(Equation(eqn.op, inputs, new, eqn.source))
            names.update(zip(eqn.outputs, new))
        goes_on = names.get(cond.outputs[0], cond.outputs[0])
        first = len(tests)
        graph = Graph(body.name, (*tests, *body.inputs), tuple(equations), (*body.outputs, goes_on))
        begin = first + len(loop.consts)

        def keep(given: Sequence[Any], results: Sequence[Any]) -> list[Any]:
            return kept(results[-1].tensor, given[begin : begin + n], results, n)

        extended = loop._replace(consts=(*self.tests, *loop.consts))
        return self.fixpoint(extended, [True] * n, graph, keep), extended

    def begun(self, init: tuple[Value, ...], batched: bool) -> tuple[Any, ...]:
        """What a carry begins with, over the examples where it is to differ between them."""
        out = []
        for v in init:
            ref = self.moved[v]
            if batched and not self.is_batched[v]:
                if v.loop >= 0:
                    self.forced.add(v)
                    continue
                ref = self.chain.operand(over_examples(self.n, False, self.chain.operands[v.place]))
            out.append(ref)
        return tuple(out)


def kept(active: Any, before: Sequence[Any], results: Sequence[Any], n: int) -> list[Any]:
    """Carries that change only where an example is active."""
    from lucid.ops.elementwise.conditional import where
    from lucid.ops.higher_order.control.subgraphs import as_tensor_inside
    from lucid.transforms.vmap import Batched

    out = []
    for old, new in zip(before, results[:n]):
        x, y = as_tensor_inside(old.tensor), as_tensor_inside(new.tensor)
        ndim = y.ndim if new.batched else y.ndim + 1
        mask = active.reshape((active.shape[0], *[1] * (ndim - 1)))
        x = x if old.batched else x.reshape((1, *x.shape))
        y = y if new.batched else y.reshape((1, *y.shape))
        out.append(Batched(where(mask, y, x), True))
    return [*out, *results[n:]]


def any_of(graph: Graph) -> Graph:
    """The Graph whose only output, one bool for each example, is joined by or."""
    from lucid.ops.reduce.reduction import AnyTrue

    out = Var(Type.parse("bool[]"))
    equations = (*graph.equations, Equation(AnyTrue((0,)), graph.outputs, (out,)))
    return Graph(graph.name, graph.inputs, equations, (out,))
