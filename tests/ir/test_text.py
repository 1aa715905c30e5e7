"""The text of a Graph: it prints, parses back, and refuses what is no Graph."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import ParseError
from lucid.ir import Equation, Graph, Literal, Type, Var, evaluate, parse, trace, verify
from lucid.ops.elementwise.arithmetic import ADD, MUL
from lucid.ops.reduce.reduction import Sum

F32 = np.dtype("float32")

PROGRAM = """
graph loss(w: f32[2,3], x: f32[3]):
    %0: f32[2,3] = mul w x            # train.py:12
    %1: f32[2,3] = add %0 2.0
    %2: f32[]    = sum[axes=(0,1)] %1  # train.py:13
    return %2, x
""".strip()


def scaled_by(literal: Literal, name: str = "x") -> Graph:
    x = Var(Type(literal.dtype, (2,)), name)
    y = Var(x.type)
    return Graph("f", (x,), (Equation(MUL, (x, literal), (y,)),), (y,))


def test_parsed_graph_computes_what_is_written():
    graph = verify(parse(PROGRAM))
    w, x = np.ones((2, 3), "float32"), np.arange(3, dtype="float32")
    total, same = evaluate(graph, w, x)
    assert total == 18.0 and same is x


def test_text_parses_back_to_the_same_key_and_the_same_text():
    graph = parse(PROGRAM)
    assert parse(str(graph)).key == graph.key
    assert str(parse(str(graph))) == str(graph)


def test_source_lines_survive_the_round_trip():
    assert [str(e.source) if e.source else None for e in parse(PROGRAM).equations] == [
        "train.py:12",
        None,
        "train.py:13",
    ]


def test_stripped_graph_has_the_same_key_and_no_source_lines():
    graph = parse(PROGRAM)
    assert graph.stripped().key == graph.key
    assert "#" not in str(graph.stripped())


def test_names_of_inputs_and_of_the_graph_do_not_enter_the_key():
    other = PROGRAM.replace("loss", "f").replace("w", "weights")
    assert parse(other).key == parse(PROGRAM).key


@pytest.mark.parametrize(
    "change",
    [("mul w x", "add w x"), ("2.0", "3.0"), ("return %2, x", "return %2, w"), ("2,3]", "4,3]")],
)
def test_key_tells_different_graphs_apart(change):
    assert parse(PROGRAM.replace(*change)).key != parse(PROGRAM).key


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1.5, "float32"),
        (1e-30, "float64"),
        (-0.0, "float32"),
        (float("inf"), "float64"),
        (float("-inf"), "float32"),
        (float("nan"), "float64"),
        (7, "int64"),
        (-3, "int8"),
        (True, "bool"),
        (1 - 2j, "complex64"),
        (complex("nan+infj"), "complex128"),
    ],
)
def test_literals_of_every_kind_round_trip(value, dtype):
    graph = scaled_by(Literal(value, np.dtype(dtype)))
    back = parse(str(graph))
    assert back.key == graph.key
    literal = back.equations[0].inputs[1]
    np.testing.assert_equal(literal.value, value)
    assert type(literal.value) is type(value)


def test_minus_zero_and_zero_have_different_keys():
    assert scaled_by(Literal(-0.0, F32)).key != scaled_by(Literal(0.0, F32)).key


def test_literal_of_another_dtype_than_its_neighbour_says_so():
    graph = scaled_by(Literal(2.0, np.dtype("float64")))
    x = Var(Type(F32, (2,)), "x")
    mixed = Graph("f", (x,), (Equation(MUL, (x, Literal(2.0, np.dtype("float64"))), (x,)),), (x,))
    assert "2.0:f64" in str(mixed)
    assert "mul x 2.0\n" in str(graph)


def test_literal_may_be_an_output():
    x = Var(Type(F32, ()), "x")
    graph = Graph("f", (x,), (), (x, Literal(1.0, F32)))
    assert str(graph).endswith("return x, 1.0:f32")
    assert parse(str(graph)).key == graph.key


@pytest.mark.parametrize("name", ["inf", "nan", "graph"])
def test_input_whose_name_looks_like_something_else_round_trips(name):
    graph = scaled_by(Literal(float("inf"), F32), name)
    assert parse(str(graph)).key == graph.key


def test_inputs_of_the_same_name_are_told_apart():
    a, b = Var(Type(F32, (2,)), "x"), Var(Type(F32, (2,)), "x")
    y = Var(a.type)
    graph = Graph("f", (a, b), (Equation(ADD, (a, b), (y,)),), (y,))
    assert parse(str(graph)).key == graph.key


def test_graph_without_inputs_or_equations_round_trips():
    graph = Graph("nothing", (), (), ())
    assert parse(str(graph)).key == graph.key


def test_parameters_print_as_python_literals():
    x = Var(Type(F32, (2, 3)), "x")
    y = Var(Type(F32, (3,)))
    graph = Graph("f", (x,), (Equation(Sum(axes=(0,)), (x,), (y,)),), (y,))
    assert "sum[axes=(0,)] x" in str(graph)
    assert parse(str(graph)).equations[0].op is Sum(axes=(0,))


def test_traced_function_names_its_inputs_and_its_lines():
    def weighted(weights, x):
        return (weights * x).sum()

    graph = trace(weighted)(lucid.tensor([1.0, 2.0]), lucid.tensor([3.0, 4.0]))
    assert str(graph).startswith("graph weighted(weights: f32[2], x: f32[2]):")
    assert "# test_text.py:" in str(graph)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "begins with"),
        ("graph f(x: f32[3]):\n    %0: f32[3] = add x x", "ends with `return"),
        ("graph f(x: f33[3]):\n    return x", "not a type"),
        ("graph f(x f32[3]):\n    return x", "expected `name: f32"),
        ("graph f(x: f32[3], x: f32[3]):\n    return x", "defined twice"),
        ("graph f(x: f32[3]):\n    %0: f32[3] = frobnicate x\n    return %0", "no operation named"),
        ("graph f(x: f32[3]):\n    %0: f32[3] = add x y\n    return %0", "neither a name"),
        ("graph f(x: f32[3]):\n    add x x\n    return x", "line 2: expected"),
        ("graph f(x: f32[3]):\n    %0: f32[] = sum[axes=(0,] x\n    return %0", "line 2"),
        ("graph f(x: f32[3]):\n    %0: f32[] = sum[axes=f()] x\n    return %0", "do not parse"),
        ("graph f(x: f32[3]):\n    %0: f32[] = sum[axis=0] x\n    return %0", "axis"),
        ("graph f(x: f32[3]):\n    return %0", "neither a name"),
    ],
)
def test_text_that_is_no_graph_is_refused_with_the_line(text, complaint):
    with pytest.raises(ParseError, match=complaint.replace("(", r"\(").replace("[", r"\[")):
        parse(text)


@pytest.mark.parametrize("text", ["f32[2,3]", "bool[]", "c128[0]", "u8[1,1,1]"])
def test_types_print_as_they_parse(text):
    assert str(Type.parse(text)) == text


@pytest.mark.parametrize("text", ["f32", "f32[2", "f32[a]", "float32[2]", "f32[2,]"])
def test_text_that_is_no_type_is_refused(text):
    with pytest.raises(ParseError, match="not a type"):
        Type.parse(text)


def test_float64_literal_without_a_var_beside_it_says_its_dtype():
    text = "graph f():\n    %0: f64[2] = full[shape=(2,), dtype='f64'] 1.0:f64\n    return %0"
    assert str(parse(text)) == text


def test_a_folded_text_has_a_line_for_each_scope(capsys):
    def f(x):
        with lucid.named_scope("first"):
            y = lucid.sin(x) * 2.0
        with lucid.named_scope("second"):
            return (y + x).sum(), y

    graph = lucid.ir.trace(f)(lucid.ones(3))
    graph.show(color=False, fold=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == [
        "    %1: f32[3] = [2 equations]  # first",
        "    %3: f32[] = [2 equations]  # second",
    ]
    assert lines[-1].split() == ["return", "%3,", "%1"]
    graph.show(color=False)
    assert capsys.readouterr().out == f"{graph}\n"
