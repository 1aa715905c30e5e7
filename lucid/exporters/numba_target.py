"""The Numba target: fused kernels under `@njit`, and NumPy statements for everything else.

A kernel's text is its listing. The functions that it calls are those of Lucid's kernels, as LLVM
text that the module links into Numba's own code.
"""

from __future__ import annotations

import ast
from typing import Any

from lucid.compiler.backends.numba.compile import lower
from lucid.compiler.backends.numba.functions import Definitions, collecting
from lucid.errors import ExportError
from lucid.exporters.export import Recorded
from lucid.exporters.fused import Kernel, View, fused_steps, operand_view
from lucid.exporters.numpy_target import (
    ModuleWriter,
    constants_text,
    dtype_text,
    entry,
    imports_text,
)
from lucid.exporters.summation import listing
from lucid.ir.graph import Graph, Literal
from lucid.ir.types import DTYPES

PRELUDE = '''
def _intrinsics(symbols):
    """An intrinsic for each operation: it calls the LLVM function of its operands' types."""

    def link(context):
        library = context.codegen().create_library("lucid_functions")
        for text in LLVM:
            text = text.replace("define linkonce_odr hidden", "define weak_odr")
            library.add_llvm_module(llvmlite.binding.parse_assembly(text))
        library.finalize()
        context.active_code_library.add_linking_library(library)

    def make(table, arity):
        def typed(*args):
            found = table.get(tuple(str(types.unliteral(x)) for x in args))
            if found is None:
                return None
            symbol, result = found

            def generate(context, builder, signature, arguments):
                link(context)
                kind = ir.FunctionType(
                    context.get_value_type(result), [x.type for x in arguments]
                )
                function = cgutils.get_or_insert_function(builder.module, kind, symbol)
                return builder.call(function, arguments)

            return result(*[types.unliteral(x) for x in args]), generate

        def unary(context, x):
            return typed(x)

        def binary(context, x, y):
            return typed(x, y)

        def ternary(context, x, y, z):
            return typed(x, y, z)

        return intrinsic((unary, binary, ternary)[arity - 1])

    found = {}
    for name, rows in symbols.items():
        table = {row[2:]: (row[0], getattr(types, row[1])) for row in rows}
        found[name] = make(table, len(rows[0]) - 2)
    return found


@njit
def wrap_index(index, size):
    """A nonnegative index; negative ones count from the end."""
    if index < -size or index >= size:
        raise IndexError("an index is out of range")
    return index + size if index < 0 else index


def _view(x, first, shape, strides):
    """A part of an array, by strides in elements."""
    flat = x.reshape(-1)[first:]
    return np.lib.stride_tricks.as_strided(flat, shape, [s * x.itemsize for s in strides])
'''
NAMES = {"bool": "boolean", "f32": "float32", "f64": "float64"} | {
    f"{sign}{bits}": f"{'u' * (sign == 'u')}int{bits}" for sign in "iu" for bits in (8, 16, 32, 64)
}
TYPED = {**NAMES, "bool": "bool"}  # as Numba prints the types of operands


class NumbaWriter(ModuleWriter):
    """Writes a Graph as calls of its kernels, and NumPy statements."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels: list[str] = []
        self.definitions = Definitions()

    def kernel(self, kernel: Kernel) -> str:
        """Add the function of a kernel; return its name."""
        if any(view.dtype == "f16" for view in kernel.views):
            raise ExportError("export: kernels of float16 are not written for Numba")
        name = f"kernel{len(self.kernels)}"
        with collecting() as found:
            lower(name, kernel.nest.structure)
        self.definitions.functions |= found.functions
        self.definitions.declared |= found.declared
        self.definitions.used |= found.used
        text = without_defaults(listing(kernel.nest)).replace("def kernel(", f"def {name}(", 1)
        lines = ", ".join(dict.fromkeys(str(e.source) for e in kernel.equations if e.source))
        note = f"# {lines}\n" if lines else ""
        self.kernels.append(f'{note}@njit(error_model="numpy", nogil=True)\n{text}')
        return name

    def statements(self, graph: Graph, names: dict[Any, str]) -> tuple[list[str], list[str]]:
        graph, layout, steps = fused_steps(graph)
        lines: list[str] = []
        names = dict(zip(graph.inputs, names.values()))
        count = len(names)

        def view(part: View | Literal) -> str:
            if isinstance(part, Literal):
                return self.atom(part, names)
            base = names.get(part.base, part.base)
            whole = getattr(part.base, "type", None)
            if whole is not None and whole.dtype.kind == "c" and part.dtype[0] == "f":
                base = f"{base}.view({dtype_text(DTYPES[part.dtype])})"  # pairs of numbers
                return f"_view({base}, {part.first}, {part.shape}, {part.strides})"
            dense = part.shape == getattr(getattr(part.base, "type", None), "shape", None)
            if dense and is_dense(part) and not part.first:
                return base
            return f"_view({base}, {part.first}, {part.shape}, {part.strides})"

        for step in steps:
            if isinstance(step, Kernel):
                made = [e.outputs[0] for e in step.equations if e.outputs[0] in layout.arrays]
                for var in made:
                    if var not in names:
                        names[var], count = f"v{count}", count + 1
                        lines.append(f"{names[var]} = {empty(var.type)}")
                lines += [f"{name} = {empty(type)}" for name, type in step.scratch.items()]
                if step.is_empty:
                    continue
                given = [view(part) for part in step.views]
                lines.append(f"{self.kernel(step)}({', '.join([*given, *scalars_of(step)])})")
                continue
            args = [view(operand_view(layout, x)) for x in step.inputs]
            outs = []
            for var in step.outputs:
                names[var], count = f"v{count}", count + 1
                outs.append(names[var])
            lines += self.statement(step, args, outs)
            lines += [f"{y} = np.ascontiguousarray({y}).reshape(np.shape({y}))" for y in outs]
        results = [
            self.atom(x, names) if isinstance(x, Literal) else view(operand_view(layout, x))
            for x in graph.outputs
        ]
        return lines, results

    def tables(self) -> str:
        """The statement that defines the functions of the kernels."""
        rows: dict[str, list[tuple[str, ...]]] = {}
        for symbol, text in self.definitions.functions.items():
            name, result, operands = symbol_parts(symbol, text)
            types = [TYPED[t] for t in operands]
            rows.setdefault(name, []).append((symbol, NAMES[result], *types))
        texts = ",\n".join(f'    r"""\n{text}"""' for text in self.definitions.modules())
        table = ",\n".join(f"    {name!r}: {found!r}" for name, found in sorted(rows.items()))
        return (
            f"LLVM = (\n{texts},\n)\nglobals().update(_intrinsics({{\n{table},\n}}))\n"
            "inf, nan = float('inf'), float('nan')"
        )


def symbol_parts(symbol: str, text: str) -> tuple[str, str, list[str]]:
    """The name in listings, the dtype of the result and of the operands of an LLVM function."""
    from lucid.compiler.kernels.listing import function_name

    words = symbol.removeprefix("lucid_").split("_")
    arity = text.partition("(")[2].partition(")")[0].count("%x")
    operands, result = words[len(words) - arity :], words[-arity - 1]
    op = "_".join(words[: -arity - 1])
    return result if op == "cast" else function_name(op), result, operands


def is_dense(view: View) -> bool:
    expected = 1
    for n, s in zip(reversed(view.shape), reversed(view.strides)):
        if n != 1 and s != expected:
            return False
        expected *= n
    return True


def empty(type: Any) -> str:
    return f"np.empty({type.shape}, {dtype_text(type.dtype)})"


def scalars_of(kernel: Kernel) -> list[str]:
    """The arguments of a kernel after its buffers, as in its listing."""
    head = ast.parse(listing(kernel.nest)).body[0]
    assert isinstance(head, ast.FunctionDef)
    out = []
    for value in head.args.defaults:
        text = ast.unparse(value)
        if isinstance(value, ast.Call):
            assert isinstance(value.func, ast.Name)
            inside = ast.unparse(value.args[0])
            text = f"{dtype_text(DTYPES[value.func.id])}({inside})"
        out.append(text)
    return out


def without_defaults(text: str) -> str:
    """A listing whose arguments have no defaults."""
    head, _, body = text.partition("\n")
    function = ast.parse(f"{head}\n    pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    return f"def kernel({', '.join(a.arg for a in function.args.args)}):\n{body}"


def numba_module(recorded: Recorded) -> str:
    """The text of a module that computes a recorded function by kernels under `@njit`."""
    writer = NumbaWriter()
    graph = recorded.graph
    names = dict(zip(graph.inputs, [*recorded.arguments, *recorded.constants]))
    lines, results = writer.statements(graph, names)
    imports = imports_text(
        recorded,
        [
            "import llvmlite.binding",
            "import numpy as np",
            "from llvmlite import ir",
            "from numba import njit, types",
            "from numba.core import cgutils",
            "from numba.extending import intrinsic",
        ],
    )
    rest = [
        PRELUDE,
        writer.tables() if writer.definitions.functions else "",
        *writer.kernels,
        constants_text(recorded),
        *writer.functions,
        entry(recorded, graph, lines, results),
    ]
    return writer.module(
        f"{recorded.name}, exported by Lucid; needs NumPy and Numba.", imports, rest
    )
