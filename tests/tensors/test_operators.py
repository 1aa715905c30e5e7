"""Python's operators do what the functions do without their fast paths, whatever the operands."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest

import lucid
from lucid.errors import LucidError
from lucid.ops.core import apply
from lucid.ops.core.promote import promote
from lucid.ops.elementwise import arithmetic, logic, power, rounding
from lucid.tape.node import Traced
from lucid.tensors.operators import Operators

OPERATORS = {
    name: inspect.getclosurevars(method).nonlocals
    for name, method in vars(Operators).items()
    if inspect.isfunction(method) and "general" in inspect.getclosurevars(method).nonlocals
}
OTHERS = {
    "tensor": lambda dtype: lucid.tensor(np.array([2, 1, 3]).astype(dtype)),
    "tensor of grad": lambda dtype: lucid.tensor(
        np.array([2, 1, 3]).astype(dtype), requires_grad=np.dtype(dtype).kind == "f"
    ),
    "float64": lambda dtype: lucid.tensor(np.array([2.0, 1.0, 3.0])),
    "int16": lambda dtype: lucid.tensor(np.array([2, 1, 3], "int16")),
    "bool": lambda dtype: lucid.tensor(np.array([True, True, False])),
    "column": lambda dtype: lucid.tensor(np.array([[2], [3]]).astype(dtype)),
    "float": lambda dtype: 1.5,
    "int": lambda dtype: 3,
    "-0.0": lambda dtype: -0.0,
    "0": lambda dtype: 0,
    "True": lambda dtype: True,
    "large": lambda dtype: 300,
    "complex": lambda dtype: 1 + 2j,
    "list": lambda dtype: [1, 2, 3],
    "array": lambda dtype: np.array([1, 2, 3]).astype(dtype),
    "scalar": lambda dtype: np.float32(2.5),
}
DTYPES = ["float32", "float64", "float16", "int64", "uint8", "bool", "complex64"]


def slow_binary(op, x, y):
    """`apply.binary` without its fast paths."""
    return apply._bind_checked(op, promote(x, y))


@pytest.fixture
def without_fast_paths(monkeypatch):
    def switch():
        for module in (arithmetic, logic, power, rounding):
            for name in ("binary", "floating_binary", "operands"):
                slow = {"binary": slow_binary, "operands": promote}.get(name)
                if slow is not None and hasattr(module, name):
                    monkeypatch.setattr(module, name, slow)
        monkeypatch.setattr(apply, "operands", promote)

    return switch


def outcome(function, x, y):
    """What an operator gives: its facts, or the class of its error."""
    with np.errstate(all="ignore"):
        try:
            z = function(x, y)
        except LucidError as error:
            return type(error)
    node = z.node
    inputs = None if node is None else [getattr(i, "key", "node") for i in node.inputs]
    return str(z.type), repr(z.tolist()), None if node is None else (node.op, inputs, node.flags)


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_do_what_the_functions_do_without_fast_paths(name, without_fast_paths):
    general = OPERATORS[name]["general"]
    method = getattr(lucid.Tensor, name)
    reflected = "accepts" not in OPERATORS[name]  # the closure of `other op self`

    def tensors():
        for dtype, (kind, make) in itertools.product(DTYPES, OTHERS.items()):
            for grad in (False, np.dtype(dtype).kind == "f"):
                values = np.array([1, 2, 1]).astype(dtype)
                yield (dtype, kind), lucid.tensor(values, requires_grad=grad), make(dtype)

    fast = [
        (what, outcome(method, x, y))
        for what, x, y in tensors()
        if not (reflected and isinstance(y, Traced))
    ]
    without_fast_paths()
    slow = [
        (what, outcome(lambda x, y: general(y, x) if reflected else general(x, y), x, y))
        for what, x, y in tensors()
        if not (reflected and isinstance(y, Traced))
    ]
    assert len(fast) > 50
    assert fast == slow
