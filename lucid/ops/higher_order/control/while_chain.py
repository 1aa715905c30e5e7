"""LoopChain: the loops of a While under construction, with references instead of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lucid.ir.graph import Graph


class Loop(NamedTuple):
    """One loop of a While. All its loops make the same number of steps.

    body       (constants, carries, one step of each stack) -> (carries, one step of new stacks)
    reverse    True if it runs from the last step to the first
    consts     the values that are its constants
    inits      for each carry the values whose sum is its initial value
    stacks     the stacks that it reads
    """

    body: Graph
    reverse: bool
    consts: tuple[Any, ...]
    inits: tuple[tuple[Any, ...], ...]
    stacks: tuple[Any, ...]

    @property
    def n_carry(self) -> int:
        return len(self.inits)

    def split(self, xs: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Split values that belong to the inputs of the body into constants, carries and steps."""
        first, last = len(self.consts), len(self.consts) + len(self.inits)
        return list(xs[:first]), list(xs[first:last]), list(xs[last:])


class Value(NamedTuple):
    """The final value of a carry; loop -1 stands for the operands."""

    loop: int
    position: int


class LoopChain:
    """Loops with references: a Value, or (loop, index) for a stack; `to_numbers` resolves them."""

    def __init__(self, operands: Sequence[Any] = ()) -> None:
        self.operands = list(operands)
        self.loops: list[Loop] = []

    def operand(self, x: Any) -> Value:
        self.operands.append(x)
        return Value(-1, len(self.operands) - 1)

    def add(self, loop: Loop) -> tuple[list[Value], list[tuple[int, int]]]:
        """Append a loop; return references to its final carries and to its stacks."""
        here, n = len(self.loops), loop.n_carry
        self.loops.append(loop)
        carries = [Value(here, i) for i in range(n)]
        return carries, [(here, i) for i in range(len(loop.body.outputs) - n)]

    def to_numbers(
        self, tests: Sequence[Value], results: Sequence[Value]
    ) -> tuple[tuple[Loop, ...], tuple[int, ...], tuple[int, ...]]:
        """Return the loops, the operands of the condition and the results by number."""
        number: dict[Any, int] = {Value(-1, i): i for i in range(len(self.operands))}
        stack: dict[Any, int] = {}
        loops = []
        for i, loop in enumerate(self.loops):
            consts = tuple([number[v] for v in loop.consts])
            inits = tuple([tuple([number[v] for v in init]) for init in loop.inits])
            stacks = tuple([stack[s] for s in loop.stacks])
            loops.append(Loop(loop.body, loop.reverse, consts, inits, stacks))
            for k in range(loop.n_carry):
                number[Value(i, k)] = len(number)
            for k in range(len(loop.body.outputs) - loop.n_carry):
                stack[i, k] = len(stack)
        chosen = tuple([number[v] for v in results])
        return tuple(loops), tuple([number[v] for v in tests]), chosen


def with_references(op: Any, n_operands: int) -> tuple[list[Loop], list[Value], list[Value]]:
    """Return the loops, tests and results of a While with references."""
    values = [Value(-1, i) for i in range(n_operands)]
    stacks: list[tuple[int, int]] = []
    loops = []
    for i, numbers in enumerate(op.loops):
        loop = Loop(*numbers)
        loops.append(
            Loop(
                loop.body,
                loop.reverse,
                tuple([values[v] for v in loop.consts]),
                tuple([tuple([values[v] for v in init]) for init in loop.inits]),
                tuple([stacks[s] for s in loop.stacks]),
            )
        )
        values += [Value(i, k) for k in range(loop.n_carry)]
        stacks += [(i, k) for k in range(len(loop.body.outputs) - loop.n_carry)]
    return loops, [values[v] for v in op.tests], [values[v] for v in op.results]
