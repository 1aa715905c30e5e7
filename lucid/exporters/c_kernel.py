"""A kernel's listing as a C function: Python's syntax tree in, C text out.

The sizes and strides of the export are constants in it. Functions such as `exp` are called by the
symbols of their LLVM text, which `scalar_text.c_functions` writes as C.
"""

from __future__ import annotations

import ast
from typing import Any

from lucid.compiler.backends.numba.functions import Definitions, result_dtype
from lucid.compiler.kernels.reductions import BITS
from lucid.errors import ExportError
from lucid.exporters.fused import Kernel
from lucid.exporters.summation import listing

C_TYPES = {"bool": "uint8_t", "f32": "float", "f64": "double"} | {
    f"{sign}{bits}": f"{'u' * (sign == 'u')}int{bits}_t"
    for sign in "iu"
    for bits in (8, 16, 32, 64)
}
OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|",
    ast.BitXor: "^", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.Mod: "%", ast.FloorDiv: "/",
}  # fmt: skip


def literal(value: Any, dtype: str) -> str:
    """A number in C."""
    if dtype == "bool":
        return "1" if value else "0"
    if dtype in ("f32", "f64"):
        value = float(value)
        if value != value or value in (float("inf"), -float("inf")):
            return "NAN" if value != value else "INFINITY" if value > 0 else "-INFINITY"
        return value.hex() if dtype == "f64" else f"(float){value.hex()}"
    if int(value) == -(2**63):
        return "INT64_MIN"
    return f"({C_TYPES[dtype]}){'UINT64_C' if dtype == 'u64' else 'INT64_C'}({int(value)})"


class KernelWriter:
    """Writes one kernel."""

    def __init__(
        self, kernel: Kernel, definitions: Definitions, operations: dict[str, str]
    ) -> None:
        self.kernel = kernel
        self.definitions = definitions
        self.operations = operations
        self.values = kernel.nest.structure.values
        self.variables: dict[str, str] = {}

    def run(self, name: str) -> str:
        for view in self.kernel.views:
            if view.dtype not in C_TYPES:
                raise ExportError(f"export: kernels of {view.dtype} are not written in C")
        function = ast.parse(listing(self.kernel.nest)).body[0]
        assert isinstance(function, ast.FunctionDef)
        count = len(self.kernel.views)
        self.constants: dict[str, tuple[str, str]] = {}
        for parameter, default in zip(function.args.args[count:], function.args.defaults):
            self.constants[parameter.arg] = self.expression(default)
        body = [line for node in function.body for line in self.statement(node)]
        stored = {s.buffer for s in self.kernel.nest.stores}
        stored |= {v.param.buffer for v in self.values if v.op == "scan" and v.param.buffer >= 0}
        given = [
            f"{'' if i in stored else 'const '}{C_TYPES[view.dtype]} *b{i}"
            for i, view in enumerate(self.kernel.views)
        ]
        known = [f"const {C_TYPES[t]} {n} = {x};" for n, (x, t) in self.constants.items()]
        used = [f"(void){n};" for n in self.constants]
        declared = [f"{C_TYPES[t]} {name};" for name, t in self.variables.items()]
        lines = [*known, " ".join(used), *declared, *body]
        inside = "\n".join(f"    {line}" for line in lines if line)
        return f"static void {name}({', '.join(given)}) {{\n{inside}\n}}"

    # Statements

    def statement(self, node: ast.stmt) -> list[str]:
        if isinstance(node, ast.For):
            assert isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call)
            i = node.target.id
            self.variables[i] = "i64"
            *first, stop = [self.expression(x)[0] for x in node.iter.args]
            head = f"for ({i} = {first[0] if first else 0}; {i} < {stop}; ++{i}) {{"
            body = [line for x in node.body for line in self.statement(x)]
            return [head, *[f"    {line}" for line in body], "}"]
        if isinstance(node, ast.AugAssign):
            target, dtype = self.target(node.target)
            value, _ = self.expression(node.value)
            return [f"{target} {OPERATORS[type(node.op)]}= {value};"]
        assert isinstance(node, ast.Assign)
        value, dtype = self.expression(node.value)
        if isinstance(node.targets[0], ast.Name):
            self.variables.setdefault(node.targets[0].id, self.dtype_of(node.targets[0].id, dtype))
        target, _ = self.target(node.targets[0])
        return [f"{target} = {value};"]

    def dtype_of(self, name: str, found: str) -> str:
        """The dtype of a variable: of a value of the Nest, of a key, or of an index."""
        if name[0] in "vs" and name[1:].isdigit():
            return self.values[int(name[1:])].dtype
        if name[0] == "k" and name[1:].isdigit():
            return BITS[self.values[int(name[1:])].dtype]
        return found

    def target(self, node: ast.expr) -> tuple[str, str]:
        return self.expression(node)

    # Expressions: (text, dtype)

    def expression(self, node: ast.expr) -> tuple[str, str]:
        match node:
            case ast.Constant(value=bool() as value):
                return literal(value, "bool"), "bool"
            case ast.Constant(value=value):
                return str(value), "i64" if isinstance(value, int) else "f64"
            case ast.Name(id=name):
                if name in self.constants:
                    return name, self.constants[name][1]
                return name, self.variables.get(name, "i64")
            case ast.Subscript():
                return self.element(node)
            case ast.IfExp():
                condition, (a, dtype) = self.expression(node.test)[0], self.expression(node.body)
                return f"({condition} ? {a} : {self.expression(node.orelse)[0]})", dtype
            case ast.Compare():
                a, b = self.expression(node.left)[0], self.expression(node.comparators[0])[0]
                return f"({a} {OPERATORS[type(node.ops[0])]} {b})", "bool"
            case ast.UnaryOp():
                return self.unary(node)
            case ast.BinOp():
                return self.binary(node)
            case ast.Call():
                return self.call(node)
        raise ExportError(f"export: no C text for {ast.unparse(node)}")

    def element(self, node: ast.Subscript) -> tuple[str, str]:
        assert isinstance(node.value, ast.Name)
        view = self.kernel.views[int(node.value.id[1:])]
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        terms = [
            f"({self.expression(part)[0]}) * {stride}"
            for part, stride in zip(parts, view.strides, strict=True)
        ]
        return f"{node.value.id}[{' + '.join(terms) or '0'}]", view.dtype

    def unary(self, node: ast.UnaryOp) -> tuple[str, str]:
        x, dtype = self.expression(node.operand)
        if isinstance(node.op, ast.Not):
            return f"(!{x})", "bool"
        if isinstance(node.op, ast.Invert):
            return f"({C_TYPES[dtype]})(~{x})", dtype
        if dtype[0] in "iu":
            wide = wide_unsigned(dtype)
            return f"({C_TYPES[dtype]})(0 - ({wide}){x})", dtype
        return f"(-{x})", dtype

    def binary(self, node: ast.BinOp) -> tuple[str, str]:
        (a, dtype), (b, _) = self.expression(node.left), self.expression(node.right)
        sign = OPERATORS[type(node.op)]
        if dtype[0] in "iu" and sign in "+-*":
            wide = wide_unsigned(dtype)
            return f"({C_TYPES[dtype]})(({wide}){a} {sign} ({wide}){b})", dtype
        return f"({a} {sign} {b})", dtype

    def call(self, node: ast.Call) -> tuple[str, str]:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if name in C_TYPES and (known := constant(node.args[0])) is not None:
            return literal(known, name), name
        found = [self.expression(x) for x in node.args]
        args = ", ".join(x for x, _ in found)
        if name == "wrap_index":
            return f"wrap_index((int64_t)({found[0][0]}), {found[1][0]})", "i64"
        operands = tuple(dtype for _, dtype in found)
        op, dtype = ("cast", name) if name in C_TYPES else (self.operations[name], "")
        if op == "where":
            operands = ("bool", operands[2], operands[2])
        dtype = dtype or result_dtype(op, operands)
        return f"{self.definitions.define(op, dtype, operands)}({args})", dtype


def wide_unsigned(dtype: str) -> str:
    return "uint64_t" if dtype.endswith("64") else "uint32_t"


def constant(node: ast.expr) -> Any:
    """The value of a cast's argument if it is a number, else None."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=inside):
            found = constant(inside)
            return None if found is None else -found
        case ast.Name(id=("inf" | "nan") as name):
            return float(name)
    return None
