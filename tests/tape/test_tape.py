"""The tape: what is recorded, what it keeps alive, and what a cut recovers from it."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import lucid
from lucid.errors import LeakError, ShapeError, TracedValueError
from lucid.ir import Graph, Literal, evaluate, parse, trace
from lucid.ir.types import Type
from lucid.ops.elementwise.arithmetic import ADD, MUL
from lucid.ops.reduce.reduction import Sum
from lucid.tape.bind import bind
from lucid.tape.cut import cut
from lucid.tape.modes import local
from lucid.tape.node import TRACE, Trace, leaf
from lucid.tape.views import node_of

F32 = np.dtype("float32")


def tracked(*values: float) -> lucid.Tensor:
    return lucid.tensor(list(values), requires_grad=True)


def test_plain_arithmetic_records_nothing():
    x, y = lucid.tensor([1.0, 2.0]), lucid.tensor([3.0, 4.0])
    z = x + y
    assert x.node is None and y.node is None and z.node is None


def test_operation_on_a_tracked_tensor_is_recorded_with_its_line():
    x = tracked(1.0, 2.0)
    y = x * 2.0
    (eqn,) = y.graph().equations
    assert eqn.op is MUL and isinstance(eqn.inputs[1], Literal)
    assert str(eqn.source).startswith("test_tape.py:")


def test_nodes_point_only_backwards_so_memory_is_freed_without_the_collector():
    gc.disable()
    try:
        x = tracked(1.0, 2.0)
        middle = x * x
        gone = weakref.ref(middle.node)
        y = middle.sum()
        del middle
        assert gone() is not None
        del y
        assert gone() is None
    finally:
        gc.enable()


def test_value_is_kept_only_where_a_derivative_reads_it():
    x = tracked(1.0, 2.0)
    total = (x + x) + x
    assert total.node.inputs[0].saved is None
    product = (x + x) * x
    assert product.node.inputs[0].saved is not None


def test_nothing_is_recorded_without_grad_mode():
    x = tracked(1.0, 2.0)
    local.grad = False
    try:
        y = x * x
    finally:
        local.grad = True
    assert y.node is None


def test_grad_mode_belongs_to_the_thread():
    seen = []
    local.grad = False
    try:
        thread = threading.Thread(target=lambda: seen.append((tracked(1.0) * 2.0).requires_grad))
        thread.start()
        thread.join()
    finally:
        local.grad = True
    assert seen == [True]


def test_cut_recovers_what_lies_between_and_captures_the_rest():
    x, w = tracked(1.0, 2.0), lucid.tensor([3.0, 4.0])
    y = x * w
    z = (y + y).sum()
    graph = cut([x], [z]).graph()
    assert [eqn.op.name for eqn in graph.equations] == ["mul", "add", "sum"]
    assert len(graph.inputs) == 2
    (value,) = evaluate(graph, x.numpy(), w.numpy())
    assert value == z.item()


def test_cut_from_an_intermediate_value_leaves_out_what_is_before_it():
    x = tracked(1.0, 2.0)
    y = x * x
    z = y + y
    assert [eqn.op.name for eqn in Graph.between([y], [z]).equations] == ["add"]


def test_equal_programs_have_equal_keys_and_others_do_not():
    def program(x, factor):
        return (x * factor).sum()

    x, y, longer = tracked(1.0, 2.0), tracked(3.0, 4.0), tracked(1.0, 2.0, 3.0)
    key = cut([x], [program(x, 2.0)]).key
    assert cut([y], [program(y, 2.0)]).key == key
    assert cut([x], [program(x, 3.0)]).key != key
    assert cut([longer], [program(longer, 2.0)]).key != key


def test_long_chain_is_cut_without_recursion():
    x = tracked(1.0)
    y = x
    for _ in range(20_000):
        y = y + x
    assert len(cut([x], [y]).rows) == 20_000


def test_abstract_values_have_types_and_record_every_equation():
    running = Trace("test")
    x = leaf(Type(F32, (2, 3)), running)
    y = bind(Sum((0,)), bind(ADD, x, x))
    assert y.value is None and y.type == Type(F32, (3,))
    assert node_of(y).flags & TRACE
    assert [eqn.op.name for eqn in cut([x], [y]).graph().equations] == ["add", "sum"]


def test_reading_an_abstract_value_names_the_transform_and_the_line():
    x = leaf(Type(F32, (2,)), Trace("vmap of f"))
    with pytest.raises(TracedValueError, match=r"inside vmap of f.*\[test_tape.py:\d+\]"):
        x.tolist()
    with pytest.raises(TracedValueError, match="bool"):
        bool(bind(Sum((0,)), x))


def test_abstract_value_used_after_its_transform_is_a_leak():
    running = Trace("vmap of f")
    x = leaf(Type(F32, (2,)), running)
    running.active = False
    with pytest.raises(LeakError, match=r"vmap of f.*\[test_tape.py:\d+\]"):
        bind(ADD, x, x)


def test_error_of_an_operation_names_the_facts_and_the_line():
    with pytest.raises(ShapeError, match=r"add: .*\(2,\) and \(3,\).*\[test_tape.py:\d+\]"):
        lucid.tensor([1.0, 2.0]) + lucid.tensor([1.0, 2.0, 3.0])


def test_trace_of_types_needs_no_values():
    graph = trace(lambda x: (x * x).sum())(Type(F32, (4,)))
    assert graph.in_types == (Type(F32, (4,)),)
    assert parse(str(graph)).key == graph.key


def test_trace_gives_the_same_graph_with_and_without_values():
    def f(x, y):
        return (x * y + y).sum()

    known = trace(f)(lucid.tensor([1.0, 2.0]), lucid.tensor([3.0, 4.0]))
    unknown = trace(f)(Type(F32, (2,)), Type(F32, (2,)))
    assert known.key == unknown.key


def test_recorded_graph_gives_the_eager_value():
    x = tracked(1.0, 2.0, 3.0)
    y = ((x * 2.0) + x).sum()
    (value,) = evaluate(y.graph(), x.numpy())
    assert value == y.item() == 18.0
