"""verify accepts what transforms produce and names the equation that breaks a rule."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.errors import VerifyError
from lucid.ir import Equation, Graph, Type, Var, parse, verify
from lucid.ops.elementwise.arithmetic import ADD
from lucid.ops.reduce.reduction import Sum

F32 = np.dtype("float32")


def vector(name: str = "") -> Var:
    return Var(Type(F32, (3,)), name)


def test_right_graph_is_returned_as_it_is():
    graph = parse("graph f(x: f32[3]):\n    %0: f32[3] = add x x\n    return %0, x")
    assert verify(graph) is graph


def test_value_read_before_its_definition_is_found():
    x, y, z = vector("x"), vector(), vector()
    graph = Graph("f", (x,), (Equation(ADD, (x, y), (z,)), Equation(ADD, (x, x), (y,))), (z,))
    with pytest.raises(VerifyError, match=r"equation 0, add reads .* before it is defined"):
        verify(graph)


def test_value_defined_twice_is_found():
    x, y = vector("x"), vector()
    graph = Graph("f", (x,), (Equation(ADD, (x, x), (y,)), Equation(ADD, (x, y), (y,))), (y,))
    with pytest.raises(VerifyError, match=r"equation 1, add defines .* twice"):
        verify(graph)


def test_input_defined_twice_is_found():
    x = vector("x")
    with pytest.raises(VerifyError, match=r"input .* is defined twice"):
        verify(Graph("f", (x, x), (), (x,)))


def test_type_that_infer_does_not_give_is_found():
    with pytest.raises(VerifyError, match=r"equation 0, sum\[axes=\(0,\)\] has type"):
        verify(parse("graph f(x: f32[3]):\n    %0: f64[] = sum[axes=(0,)] x\n    return %0"))


def test_operands_that_the_operation_refuses_are_found():
    with pytest.raises(VerifyError, match=r"equation 0, add: add: shapes"):
        verify(parse("graph f(x: f32[3], y: f32[4]):\n    %0: f32[3] = add x y\n    return %0"))


def test_wrong_number_of_outputs_is_found():
    x = vector("x")
    graph = Graph("f", (x,), (Equation(Sum((0,)), (x,), (Var(Type(F32, ())), vector())),), (x,))
    with pytest.raises(VerifyError, match=r"equation 0"):
        verify(graph)


def test_undefined_output_is_found():
    x, y = vector("x"), vector("y")
    with pytest.raises(VerifyError, match=r"output .* is not defined"):
        verify(Graph("f", (x,), (), (y,)))
