"""The NumPy target: a Graph as a module with one NumPy statement per equation.

Functions that NumPy does not have, such as erf, are those of Lucid's kernels (`scalar_text.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from lucid.compiler.kernels import scalars
from lucid.compiler.passes.cse import cse
from lucid.compiler.passes.expand.decompose import decompose
from lucid.compiler.passes.simplify import simplify
from lucid.compiler.passes.subgraph_passes import recursive
from lucid.errors import ExportError
from lucid.exporters.export import Recorded
from lucid.exporters.numpy_helpers import HELPERS, with_called
from lucid.exporters.scalar_text import numpy_scalar
from lucid.ir.graph import Equation, Graph, Literal
from lucid.ir.types import DTYPES

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<", "le": "<=",
    "gt": ">", "ge": ">=", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
}  # fmt: skip
CALLS = {
    "abs": "np.abs", "acos": "np.arccos", "acosh": "np.arccosh", "asin": "np.arcsin",
    "asinh": "np.arcsinh", "atan": "np.arctan", "atan2": "np.arctan2", "atanh": "np.arctanh",
    "bitwise_not": "np.invert", "cbrt": "np.cbrt", "ceil": "np.ceil", "conj": "np.conj",
    "copysign": "np.copysign", "cos": "np.cos", "cosh": "np.cosh", "exp": "np.exp",
    "exp2": "np.exp2", "expm1": "np.expm1", "floor": "np.floor", "floor_divide": "np.floor_divide",
    "fmod": "np.fmod", "gcd": "np.gcd", "hypot": "np.hypot", "isfinite": "np.isfinite",
    "isinf": "np.isinf", "isnan": "np.isnan", "left_shift": "np.left_shift", "log": "np.log",
    "log10": "np.log10", "log1p": "np.log1p", "log2": "np.log2", "logaddexp": "np.logaddexp",
    "logaddexp2": "np.logaddexp2", "matmul": "np.matmul", "maximum": "np.maximum",
    "minimum": "np.minimum", "neg": "np.negative", "nextafter": "np.nextafter", "pow": "np.power",
    "remainder": "np.remainder", "right_shift": "np.right_shift",
    "rsqrt": "_rsqrt", "relu": "_relu", "scale": "_scale", "sigmoid": "_sigmoid", "sign": "np.sign",
    "sin": "np.sin", "sinh": "np.sinh", "sqrt": "np.sqrt", "tan": "np.tan", "tanh": "np.tanh",
    "trunc": "np.trunc", "where": "np.where", "clamp": "_clamp", "real": "np.real",
    "imag": "np.imag",
}  # fmt: skip
REDUCTIONS = {"sum": "np.add", "prod": "np.multiply", "max": "np.maximum", "min": "np.minimum",
              "any": "np.logical_or", "all": "np.logical_and"}  # fmt: skip


def dtype_text(dtype: Any) -> str:
    return "np.bool_" if np.dtype(dtype) == bool else f"np.{np.dtype(dtype).name}"


def optimized(graph: Graph) -> Graph:
    """The Graph in simple operations, without repetitions."""
    for run in (decompose, simplify, cse):
        graph = recursive(run)(graph)
    return graph


class ModuleWriter:
    """Writes functions of Graphs, and records the helpers that they call."""

    def __init__(self) -> None:
        self.helpers: set[str] = set()
        self.scalars: dict[str, str] = {}
        self.functions: list[str] = []
        self.names: dict[Graph, str] = {}

    # Expressions

    def expression(self, eqn: Equation, args: list[str]) -> str:
        op: Any = eqn.op
        if op.forwards:
            return args[0] if op.forwards == "first" else args[-1]
        if op.orders:
            return args[0]
        special = getattr(self, f"op_{op.name}", None)
        if special is not None:
            return special(eqn, args)
        if op.name in INFIX:
            return f"{args[0]} {INFIX[op.name]} {args[1]}"
        if op.name in REDUCTIONS:
            return self.reduction(eqn, args)
        if f"_{op.name}" in HELPERS and op.name not in CALLS:
            facts = [repr(getattr(op, field.name)) for field in fields(op)]
            return self.helper(f"_{op.name}", *args, *facts)
        called = CALLS.get(op.name)
        if called and fields(op):
            raise self.refusal(eqn)
        if called and not called.startswith("_"):
            return f"{called}({', '.join(args)})"
        if called:
            return self.helper(called, *args)
        if op.scalar and op.scalar in scalars.table:
            return self.scalar(op.scalar, eqn, args)
        raise self.refusal(eqn)

    def refusal(self, eqn: Equation) -> ExportError:
        where = f" at {eqn.source}" if eqn.source else ""
        return ExportError(f"export: {eqn.op.name}{where} has no NumPy text")

    def statement(self, eqn: Equation, args: list[str], outs: list[str]) -> list[str]:
        """The statements of one equation."""
        flow: Callable[..., list[str]] | None = getattr(self, f"flow_{eqn.op.name}", None)
        if flow is not None:
            return flow(eqn, args, outs)
        if eqn.op.value_graph:
            called = self.function(getattr(eqn.op, eqn.op.value_graph))
            return [f"{', '.join(outs)}, = {called}({', '.join(args)})"]
        if len(outs) > 1 and f"_{eqn.op.name}" not in HELPERS:
            raise self.refusal(eqn)
        return [f"{', '.join(outs)} = {self.expression(eqn, args)}"]

    def helper(self, name: str, *args: str) -> str:
        self.helpers.add(name)
        return f"{name}({', '.join(args)})"

    def scalar(self, name: str, eqn: Equation, args: list[str]) -> str:
        """A function of Lucid's kernels, for arrays."""
        code = {"float32": "f4", "float64": "f8"}.get(eqn.outputs[0].type.dtype.name)
        if code is None:
            raise self.refusal(eqn)
        symbol = f"_{name}_{code}"
        if symbol not in self.scalars:
            self.scalars[symbol] = numpy_scalar(name, code, symbol)
            self.helpers |= {"_fma", "_bits", "_float"}
        return f"{symbol}({', '.join(args)})"

    def reduction(self, eqn: Equation, args: list[str]) -> str:
        op: Any = eqn.op
        dtype = dtype_text(eqn.outputs[0].type.dtype)
        return f"{REDUCTIONS[op.name]}.reduce({args[0]}, {op.axes}, {dtype})"

    def op_broadcast(self, eqn: Any, args: list[str]) -> str:
        return self.helper("_broadcast", args[0], repr(eqn.op.shape), repr(eqn.op.axes))

    def op_reshape(self, eqn: Any, args: list[str]) -> str:
        return f"np.reshape({args[0]}, {eqn.op.shape})"

    def op_transpose(self, eqn: Any, args: list[str]) -> str:
        return f"np.transpose({args[0]}, {eqn.op.permutation})"

    def op_slice(self, eqn: Any, args: list[str]) -> str:
        return f"{args[0]}[{', '.join(map(subscript, eqn.op.subscript))}]"

    def op_flip(self, eqn: Any, args: list[str]) -> str:
        return f"{args[0]}[{', '.join(map(subscript, eqn.op.subscript))}]"

    def op_slice_set(self, eqn: Any, args: list[str]) -> str:
        at = ", ".join(map(subscript, eqn.op.region.subscript))
        return self.helper("_put", *args, f"np.s_[{at}]")

    def op_pad(self, eqn: Any, args: list[str]) -> str:
        return self.helper("_pad", args[0], *[repr(x) for x in (eqn.op.low, eqn.op.high,
                                                                 eqn.op.interior)])  # fmt: skip

    def op_concatenate(self, eqn: Any, args: list[str]) -> str:
        return f"np.concatenate(({', '.join(args)},), {eqn.op.axis})"

    def op_gather(self, eqn: Any, args: list[str]) -> str:
        return self.helper("_gather", args[0], repr(eqn.op.axes), str(eqn.op.batch_dims), *args[1:])

    def op_scatter_add(self, eqn: Any, args: list[str]) -> str:
        zeros = f"np.zeros({eqn.op.shape}, {dtype_text(eqn.outputs[0].type.dtype)})"
        facts = [repr(eqn.op.axes), str(eqn.op.batch_dims), "True"]
        return self.helper("_scatter", zeros, args[0], *facts, *args[1:])

    def op_scatter_set(self, eqn: Any, args: list[str]) -> str:
        facts = [repr(eqn.op.axes), str(eqn.op.batch_dims), "False"]
        return self.helper("_scatter", args[0], args[1], *facts, *args[2:])

    def op_take_along(self, eqn: Any, args: list[str]) -> str:
        return f"np.take_along_axis({args[0]}, {args[1]}, {eqn.op.axis})"

    def op_put_along(self, eqn: Any, args: list[str]) -> str:
        return self.helper("_put_along", *args, str(eqn.op.axis), str(eqn.op.size))

    def op_iota(self, eqn: Any, args: list[str]) -> str:
        facts = [repr(eqn.op.shape), str(eqn.op.axis), dtype_text(DTYPES[eqn.op.dtype])]
        return self.helper("_iota", *facts)

    def op_full(self, eqn: Any, args: list[str]) -> str:
        return f"np.full({eqn.op.shape}, {args[0]}, {dtype_text(DTYPES[eqn.op.dtype])})"

    def op_cast(self, eqn: Any, args: list[str]) -> str:
        dtype = DTYPES[eqn.op.dtype]
        is_real = eqn.inputs[0].type.dtype.kind == "c" and dtype.kind not in "cb"
        source = f"np.real({args[0]})" if is_real else f"np.asarray({args[0]})"
        return f"{source}.astype({dtype_text(dtype)})"

    def op_bitcast(self, eqn: Any, args: list[str]) -> str:
        return f"np.array({args[0]}).view({dtype_text(DTYPES[eqn.op.dtype])})"

    def op_logcumsumexp(self, eqn: Any, args: list[str]) -> str:
        if eqn.inputs[0].type.dtype.kind == "c":
            return self.helper("_complex_logcumsumexp", args[0], repr(eqn.op.axis))
        return f"np.logaddexp.accumulate({args[0]}, {eqn.op.axis})"

    def op_resample(self, eqn: Any, args: list[str]) -> str:
        table = [repr(np.asarray(x).tolist()) for x in eqn.op.table]
        return self.helper("_resample", args[0], str(eqn.op.axis), *table)

    def op_round(self, eqn: Any, args: list[str]) -> str:
        return f"np.round({args[0]}, {eqn.op.decimals})"

    # Statements

    def statements(self, graph: Graph, names: dict[Any, str]) -> tuple[list[str], list[str]]:
        """The statements of a Graph, and the names of its results."""
        lines: list[str] = []
        for eqn in graph.equations:
            for var in eqn.outputs:
                names[var] = f"v{len(names)}"
            args = [self.atom(x, names, eqn) for x in eqn.inputs]
            outs = [names[var] for var in eqn.outputs]
            lines += self.statement(eqn, args, outs)
        return lines, [self.atom(x, names) for x in graph.outputs]

    def atom(self, x: Any, names: dict[Any, str], eqn: Equation | None = None) -> str:
        if not isinstance(x, Literal):
            return names[x]
        text = literal(x.value)
        if eqn is not None and eqn.op.name in INFIX:
            others = [y for y in eqn.inputs if not isinstance(y, Literal)]
            if others and all(y.type.dtype == x.dtype for y in others) and "np" not in text:
                return text  # a Python number takes the dtype of the array
        return f"{dtype_text(x.dtype)}({text})"

    def function(self, graph: Graph) -> str:
        """The name of a function of a Graph inside another, which is written first."""
        if graph not in self.names:
            name = f"_graph{len(self.names)}"
            self.names[graph] = name
            names = {var: f"x{i}" for i, var in enumerate(graph.inputs)}
            given = ", ".join(names.values())
            lines, results = self.statements(graph, dict(names))
            body = [*lines, f"return {', '.join(results)},"]
            self.functions.append("\n    ".join([f"def {name}({given}):", *body]))
        return self.names[graph]

    def flow_scan(self, eqn: Any, args: list[str], outs: list[str]) -> list[str]:
        op = eqn.op
        n, carry = op.n_consts, op.n_carry
        given = [", ".join(x) + "," * bool(x) for x in (args[:n], args[n : n + carry],
                                                        args[n + carry :])]  # fmt: skip
        parts = ", ".join(f"({x})" for x in given)
        stacks = ", ".join(f"({t.shape}, {dtype_text(t.dtype)})" for t in op.body.out_types[carry:])
        facts = f"({stacks}{',' * bool(stacks)}), {op.length}, {op.reverse}"
        call = self.helper("_scan", self.function(op.body), parts, facts)
        return [f"{', '.join(outs)}, = {call}"]

    def flow_switch(self, eqn: Any, args: list[str], outs: list[str]) -> list[str]:
        branches = ", ".join(self.function(branch) for branch in eqn.op.branches)
        chosen = f"({branches},)[min(max(int({args[0]}), 0), {len(eqn.op.branches) - 1})]"
        return [f"{', '.join(outs)}, = {chosen}({', '.join(args[1:])})"]

    def flow_while(self, eqn: Any, args: list[str], outs: list[str]) -> list[str]:
        op = eqn.op
        loops = "".join(
            f"({self.function(body)}, {', '.join(map(repr, rest))}), " for body, *rest in op.loops
        )
        parts = [self.function(op.cond), repr(op.tests), f"({loops})", repr(op.results)]
        return [f"{', '.join(outs)}, = {self.helper('_while', *parts, *args)}"]

    def module(self, docstring: str, imports: str, rest: Sequence[str]) -> str:
        """The text of a module with the helpers that its functions call."""
        helpers = with_called({"_array", "_results", *self.helpers})
        parts = [f'"""{docstring}"""', imports, *helpers, *self.scalars.values(), *rest]
        return "\n\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def subscript(part: Any) -> str:
    if part is Ellipsis:
        return "..."
    if not isinstance(part, slice):
        return str(part)
    ends = ["" if x is None else str(x) for x in (part.start, part.stop, part.step)]
    return ":".join(ends[:2] if ends[2] in ("", "1") else ends)


def literal(value: Any) -> str:
    text = repr(value)
    return {"inf": "np.inf", "-inf": "-np.inf", "nan": "np.nan"}.get(text, text)


def constants_text(recorded: Recorded) -> str:
    """The statement that loads the tensors that the function closes over."""
    if not recorded.constants:
        return ""
    file = f'os.path.join(os.path.dirname(os.path.abspath(__file__)), "{recorded.name}.npz")'
    return f"_constants = dict(np.load({file}, allow_pickle=False))"


def entry(recorded: Recorded, graph: Graph, lines: list[str], results: list[str]) -> str:
    """The public function: it checks the arguments, and runs the statements."""
    names = [*recorded.arguments, *recorded.constants]
    given = ", ".join(recorded.arguments)
    checks = batch_size(recorded)
    for i, (name, var) in enumerate(zip(names, graph.inputs)):
        shape = f"{dtype_text(var.type.dtype)}, {var.type.shape}"
        source = name if i < len(recorded.arguments) else f'_constants["{name}"]'
        checks.append(f"{name} = _array({source}, {shape})")
    body = [*checks, *lines, f"return _results({', '.join(results)})"]
    inner = "\n        ".join(['    with np.errstate(all="ignore"):', *body])
    return f"def {recorded.name}({given}):\n{inner}"


def batch_size(recorded: Recorded) -> list[str]:
    """The statement that reads a free batch size."""
    if recorded.batch is None:
        return []
    name, axis = recorded.batch
    return [f"batch_size = _call.batch_size = np.shape({name})[{axis}]"]


def imports_text(recorded: Recorded, lines: Sequence[str]) -> str:
    """The imports of a module, and the place where it keeps a free batch size."""
    plain = ["import os"] * bool(recorded.constants)
    plain += ["import threading"] * (recorded.batch is not None)
    text = "\n".join([*plain, *[""] * bool(plain), *lines])
    return f"{text}\n\n_call = threading.local()" if recorded.batch is not None else text


def numpy_module(recorded: Recorded) -> str:
    """The text of a module that computes a recorded function with NumPy."""
    graph = optimized(recorded.graph)
    writer = ModuleWriter()
    names = dict(zip(graph.inputs, [*recorded.arguments, *recorded.constants]))
    lines, results = writer.statements(graph, names)
    imports = imports_text(recorded, ["import numpy as np"])
    rest = [constants_text(recorded), *writer.functions, entry(recorded, graph, lines, results)]
    return writer.module(f"{recorded.name}, exported by Lucid; needs NumPy alone.", imports, rest)
