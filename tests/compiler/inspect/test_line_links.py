"""Every line of a kernel's texts knows the equations that it computes."""

from __future__ import annotations

from typing import Any

import pytest

import lucid
from lucid.compiler.inspect.line_links import readable_assembly, values_of_texts
from lucid.compiler.inspect.stages import KernelText


def ops_of_lines(kernel: KernelText, form: str) -> list[tuple[str, set[str]]]:
    """The lines of a text, each with the names of the operations that it computes."""
    text = readable_assembly(kernel.assembly) if form == "assembly" else getattr(kernel, form)
    return [
        (line.strip(), {eqn.op.name for v in values for eqn in kernel.nest.equations[v]})
        for line, values in zip(text.split("\n"), values_of_texts(kernel)[form])
    ]


def softmax_of_tanh(x: Any) -> Any:
    return lucid.softmax(lucid.tanh(x) * 2.0, 1)


def column_sums(x: Any) -> Any:
    return (lucid.exp(x) * x).sum(0)


def total(x: Any) -> Any:
    return (lucid.sin(x) * x).sum()


def gathered(x: Any) -> Any:
    return lucid.sqrt(x[lucid.tensor([1, 2, 3])])


def test_a_line_of_a_listing_belongs_to_the_operations_in_it() -> None:
    (kernel,) = lucid.jit(softmax_of_tanh).kernels(lucid.ones(8, 40))
    lines = ops_of_lines(kernel, "listing")
    assert lines[0] == (lines[0][0], set())  # the head
    for call, op in (("tanh(", "tanh"), ("exp(", "exp"), ("maximum(", "max"), ("+= ", "sum")):
        found = [ops for line, ops in lines if call in line]
        assert found and all(op in ops for ops in found)
        assert not any(op in ops for line, ops in lines if line.startswith("v") and "/" in line)


@pytest.mark.parametrize("f", [softmax_of_tanh, column_sums, total, gathered])
@pytest.mark.parametrize("shape", [(8, 40), (3, 70000)], ids=["small", "in chunks"])
def test_locations_leave_the_machine_code_as_it_is(f: Any, shape: tuple[int, int]) -> None:
    x = lucid.ones(shape[0] + 4, shape[1]) if f is gathered else lucid.ones(*shape)
    for kernel in lucid.jit(f).kernels(x):
        assert set(values_of_texts(kernel)) == {"listing", "llvm", "assembly"}


def test_lines_of_llvm_and_assembly_belong_to_their_operation() -> None:
    (kernel,) = lucid.jit(column_sums).kernels(lucid.ones(8, 40))
    llvm = ops_of_lines(kernel, "llvm")
    assert [ops for line, ops in llvm if "@lucid_exp" in line and "call" in line] == [{"exp"}]
    assert [ops for line, ops in llvm if "fmul" in line] == [{"mul"}]
    assert [ops for line, ops in llvm if "fadd" in line] == [{"sum"}]
    known = [ops for _, ops in ops_of_lines(kernel, "assembly") if ops]
    assert {"exp"} in known and {"mul"} in known and {"sum"} in known
