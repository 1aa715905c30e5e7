"""Pruning a While to the parts that its used results need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lucid.ir.primitive import Primitive
from lucid.ops.higher_order.control.subgraphs import Writer, ancestors
from lucid.ops.higher_order.control.while_chain import Loop, LoopChain, Value, with_references


def prune_while(
    op: Any, n: int, used: Sequence[bool]
) -> tuple[Primitive, list[int], list[int]] | None:
    """Return (primitive, its operands, its outputs), or None if everything is needed."""
    loops, tests, results = with_references(op, n)
    outputs = [i for i, u in enumerate(used) if u]
    read_by_test = ancestors(op.cond, op.cond.outputs)
    asked = [i for i, x in enumerate(op.cond.inputs) if x in read_by_test]
    values: set[Any] = {results[i] for i in outputs}
    values |= {tests[i] for i in asked if i < len(tests)}
    values |= {Value(0, i - len(tests)) for i in asked if i >= len(tests)}
    stacks: set[Any] = set()
    kept: list[tuple[list[int], list[int]]] = [([], [])] * len(loops)
    for number in reversed(range(len(loops))):
        kept[number] = needed_inputs_outputs(loops[number], number, values, stacks)
    whole = all(
        len(ins) == len(loop.body.inputs) and len(outs) == len(loop.body.outputs)
        for loop, (ins, outs) in zip(loops, kept)
    )
    operands = [i for i in range(n) if Value(-1, i) in values]
    if whole and len(outputs) == len(results) and len(operands) == n:
        return None
    return rebuild_while(op, loops, kept, operands, outputs, tests, results)


def needed_inputs_outputs(
    loop: Loop, number: int, values: set[Any], stacks: set[Any]
) -> tuple[list[int], list[int]]:
    """Return the inputs and outputs of a loop's body to keep; add what they need to the sets."""
    body, n = loop.body, loop.n_carry
    outs = {i for i in range(n) if Value(number, i) in values}
    outs |= {n + i for i in range(len(body.outputs) - n) if (number, i) in stacks}
    carries = loop.split(body.inputs)[1]
    while True:
        found = ancestors(body, [body.outputs[i] for i in outs])
        more = outs | {i for i, x in enumerate(carries) if x in found}
        if more == outs:
            break
        outs = more
    first = len(loop.consts)
    ins = [
        i
        for i, x in enumerate(body.inputs)
        if (i - first in outs if first <= i < first + n else x in found)
    ]
    for i in ins:
        if i < first:
            values.add(loop.consts[i])
        elif i < first + n:
            values.update(loop.inits[i - first])
        else:
            stacks.add(loop.stacks[i - first - n])
    return ins, sorted(outs)


def rebuild_while(
    op: Any,
    loops: Sequence[Loop],
    kept: Sequence[tuple[list[int], list[int]]],
    operands: list[int],
    outputs: list[int],
    tests: Sequence[Value],
    results: Sequence[Value],
) -> tuple[Primitive, list[int], list[int]]:
    chain = LoopChain(operands)
    moved: dict[Any, Any] = {Value(-1, x): Value(-1, i) for i, x in enumerate(operands)}
    for number, (loop, (ins, outs)) in enumerate(zip(loops, kept)):
        if not outs and number:
            continue
        body, n, first = loop.body, loop.n_carry, len(loop.consts)
        carries = [i for i in outs if i < n]
        graph = Writer(body.equations).graph(
            body.name, [body.inputs[i] for i in ins], [body.outputs[i] for i in outs]
        )
        finals, stacks = chain.add(
            Loop(
                graph,
                loop.reverse,
                tuple([moved[loop.consts[i]] for i in ins if i < first]),
                tuple([tuple([moved[v] for v in loop.inits[i]]) for i in carries]),
                tuple([moved["stack", *loop.stacks[i - first - n]] for i in ins if i >= first + n]),
            )
        )
        moved.update((Value(number, i), v) for i, v in zip(carries, finals))
        made = [i - n for i in outs if i >= n]
        moved.update((("stack", number, i), s) for i, s in zip(made, stacks))
    carried = [i for i in kept[0][1] if i < loops[0].n_carry]
    read = ancestors(op.cond, op.cond.outputs)
    asked = [i for i in range(len(tests)) if op.cond.inputs[i] in read]
    inputs = [op.cond.inputs[i] for i in (*asked, *[len(tests) + i for i in carried])]
    cond = Writer(op.cond.equations).graph(op.cond.name, inputs, op.cond.outputs)
    made_loops, numbers, chosen = chain.to_numbers(
        [moved[tests[i]] for i in asked], [moved[results[i]] for i in outputs]
    )
    return type(op)(cond, numbers, made_loops, chosen), operands, outputs
