"""The C target: a C99 file with the kernels of a Graph, a header, and a ctypes loader."""

from __future__ import annotations

import math
from typing import Any

from lucid.compiler.backends.numba.compile import operations
from lucid.compiler.backends.numba.functions import Definitions
from lucid.compiler.plan.arrays import dense
from lucid.compiler.plan.work import NestWork
from lucid.compiler.resolve import resolve
from lucid.errors import ExportError
from lucid.exporters.c_kernel import C_TYPES, KernelWriter, literal
from lucid.exporters.export import Recorded
from lucid.exporters.fused import Kernel, Layout, View, fused_steps, operand_view, work_kernel
from lucid.exporters.scalar_text import c_functions
from lucid.ir.graph import Equation, Graph, Literal
from lucid.ir.types import SHORT_NAMES

PRELUDE = """\
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BITS(A, NAME_A, B, NAME_B) \\
    static inline B bits_##NAME_A##_##NAME_B(A x) { B y; memcpy(&y, &x, sizeof y); return y; }
BITS(float, float, int32_t, i32)
BITS(int32_t, i32, float, float)
BITS(double, double, int64_t, i64)
BITS(int64_t, i64, double, double)

static inline int64_t fshl_i64(int64_t a, int64_t b, int64_t n) {
    n &= 63;
    return n ? (int64_t)((uint64_t)a << n | (uint64_t)b >> (64 - n)) : a;
}

static inline int64_t to_int64(double x) { /* saturating; nan is 0 */
    if (x != x) return 0;
    if (x >= 0x1p63) return INT64_MAX;
    return x < -0x1p63 ? INT64_MIN : (int64_t)x;
}

static inline int64_t to_uint64(double x) {
    if (!(x > 0)) return 0;
    return (int64_t)(x >= 0x1p64 ? UINT64_MAX : (uint64_t)x);
}

enum { INDEX_OUT_OF_RANGE = 1, OUT_OF_MEMORY = 2 };
#if defined(__GNUC__)
static __thread int status;
#else
static int status; /* calls of this function must not overlap */
#endif

static inline int64_t wrap_index(int64_t i, int64_t size) {
    i += i < 0 ? size : 0;
    if (i >= 0 && i < size) return i;
    status = INDEX_OUT_OF_RANGE;
    return 0;
}

static void *allocate(size_t size) {
    void *found = malloc(size ? size : 1);
    if (!found) status = OUT_OF_MEMORY;
    return found;
}"""


def c_type(type: Any) -> str:
    short = SHORT_NAMES[type.dtype]
    if short not in C_TYPES:
        raise ExportError(f"export: {type} has no type in C")
    return C_TYPES[short]


def nbytes(type: Any) -> int:
    return type.size * type.dtype.itemsize


class CWriter:
    """Writes the functions of Graphs and their kernels."""

    def __init__(self) -> None:
        self.definitions = Definitions()
        self.kernels: dict[str, str] = {}
        self.functions: list[str] = []
        self.names: dict[Graph, str] = {}

    def function(self, graph: Graph) -> str:
        """The name of the function of a Graph: pointers to inputs, then to outputs."""
        if graph in self.names:
            return self.names[graph]
        name = self.names[graph] = f"graph{len(self.names)}"
        inputs = [f"const {c_type(v.type)} *x{i}" for i, v in enumerate(graph.inputs)]
        outputs = [f"{c_type(t)} *y{i}" for i, t in enumerate(graph.out_types)]
        body = self.body(graph)
        text = "\n".join(f"    {line}" for line in body)
        self.functions.append(f"static void {name}({', '.join(inputs + outputs)}) {{\n{text}\n}}")
        return name

    def body(self, original: Graph) -> list[str]:
        graph, layout, steps = fused_steps(original)
        names: dict[Any, str] = {v: f"x{i}" for i, v in enumerate(graph.inputs)}
        declared: list[str] = []
        lines: list[str] = []

        def declare(var: Any, type: Any) -> str:
            names[var] = f"v{len(declared)}"
            kind = c_type(type)
            declared.append(f"{kind} *{names[var]} = allocate({nbytes(type)});")
            return names[var]

        def pointer(part: View) -> str:
            shift = f" + {part.first}" if part.first else ""
            return f"{names[part.base]}{shift}"

        def run(kernel: Kernel) -> None:
            for scratch, type in kernel.scratch.items():
                declare(scratch, type)
            given = ", ".join(pointer(view) for view in kernel.views)
            lines.append(f"{self.kernel(kernel)}({given});")

        for step in steps:
            if isinstance(step, Kernel):
                for eqn in step.equations:
                    var = eqn.outputs[0]
                    if var in layout.arrays and var not in names:
                        declare(var, var.type)
                run(step)
                continue
            for var in step.outputs:
                declare(var, var.type)
            lines += self.equation(step, layout, names, pointer, run)
        results = []
        for i, x in enumerate(graph.outputs):
            if isinstance(x, Literal):
                results.append(f"*y{i} = {literal(x.value, SHORT_NAMES[x.dtype])};")
            else:
                part = operand_view(layout, x)
                assert isinstance(part, View)
                results.append(f"memcpy(y{i}, {pointer(part)}, {nbytes(x.type)});")
        made = [line.split()[1].lstrip("*") for line in declared]
        check = f"if ({' && '.join(made) or '1'}) {{"
        inside = [f"    {line}" for line in [*lines, *results]]
        return [*declared, check, *inside, "}", *[f"free({name});" for name in made]]

    def kernel(self, kernel: Kernel) -> str:
        """The name of the function of a kernel; equal ones are written once."""
        text = KernelWriter(kernel, self.definitions, operations()).run("KERNEL")
        if text not in self.kernels:
            self.kernels[text] = f"kernel{len(self.kernels)}"
        return self.kernels[text]

    # Equations that are not part of a kernel

    def equation(
        self, eqn: Equation, layout: Layout, names: Any, pointer: Any, run: Any
    ) -> list[str]:
        special = getattr(self, f"op_{eqn.op.name}", None)
        if special is not None:
            return special(eqn, layout, names, pointer)
        lowering: Any = resolve(eqn.op.lowering)
        try:
            works = lowering.lower(layout, eqn)
        except (AttributeError, TypeError):
            works = [None]
        if not all(isinstance(work, NestWork) for work in works):
            where = f" at {eqn.source}" if eqn.source else ""
            raise ExportError(f"export: {eqn.op.name}{where} has no C text")
        for work in works:
            run(work_kernel(layout, work, eqn))
        return []

    def operand(self, layout: Layout, x: Any, pointer: Any) -> tuple[str, View]:
        part = operand_view(layout, x)
        if isinstance(part, Literal):
            raise ExportError("export: a product with a number has no C text")
        return pointer(part), part

    def op_matmul(self, eqn: Any, layout: Layout, names: Any, pointer: Any) -> list[str]:
        (a, x), (b, y) = (self.operand(layout, z, pointer) for z in eqn.inputs)
        out = eqn.outputs[0]
        xs, ys = [*zip(x.shape, x.strides)], [*zip(y.shape, y.strides)]
        rows, (k, x_step) = (xs[-2] if len(xs) > 1 else (1, 0)), xs[-1]
        (_, y_step), columns = (ys[-2], ys[-1]) if len(ys) > 1 else (ys[-1], (1, 0))
        batch = list(out.type.shape)[: out.type.ndim - (len(xs) > 1) - (len(ys) > 1)]
        lines, at = [], [f"const {c_type(eqn.inputs[0].type)} *a = {a};"]
        at.append(f"const {c_type(eqn.inputs[1].type)} *b = {b};")
        at.append(f"{c_type(out.type)} *c = {names[out]};")
        steps = dense((*batch, rows[0] * columns[0]))
        for d, n in enumerate(batch):
            lines.append(f"for (int64_t g{d} = 0; g{d} < {n}; ++g{d})")
            for name, axes in (("a", xs[:-2]), ("b", ys[:-2])):
                own = d - (len(batch) - len(axes))
                if own >= 0 and axes[own][0] != 1:
                    at.append(f"{name} += g{d} * {axes[own][1]};")
            at.append(f"c += g{d} * {steps[d]};")
        kind = c_type(out.type)
        m, n = rows[0], columns[0]
        return [
            *lines,
            "{",
            *[f"    {line}" for line in at],
            f"    memset(c, 0, {m * n} * sizeof *c);",
            f"    for (int64_t i = 0; i < {m}; ++i)",
            f"        for (int64_t p = 0; p < {k}; ++p) {{",
            f"            const {kind} u = a[i * {rows[1]} + p * {x_step}];",
            f"            for (int64_t j = 0; j < {n}; ++j)",
            f"                c[i * {n} + j] += u * b[p * {y_step} + j * {columns[1]}];",
            "        }",
            "}",
        ]

    def op_scan(self, eqn: Any, layout: Layout, names: Any, pointer: Any) -> list[str]:
        op = eqn.op
        called = self.function(op.body)
        n, m = op.n_consts, op.n_carry
        given, lines = [], []
        for i, x in enumerate(eqn.inputs):
            part = operand_view(layout, x)
            if isinstance(part, Literal):
                kind = C_TYPES[SHORT_NAMES[part.dtype]]
                lines.append(f"const {kind} l{i} = {literal(part.value, SHORT_NAMES[part.dtype])};")
                given.append(f"&l{i}")
            elif tuple(part.strides) != dense(part.shape) and math.prod(part.shape) > 1:
                raise ExportError("export: an operand of scan is not dense")
            else:
                given.append(pointer(part))
        outs = [names[var] for var in eqn.outputs]
        carries, body = [], []
        for i in range(m):
            type = op.body.in_types[n + i]
            kind, size = c_type(type), nbytes(type)
            lines.append(f"memcpy({outs[i]}, {given[n + i]}, {size});")
            lines.append(f"{kind} *next{i} = allocate({size});")
            carries.append((outs[i], f"next{i}", size))
        xs = [f"{given[n + m + i]} + i * {t.size}" for i, t in enumerate(op.body.in_types[n + m :])]
        ys = [f"{outs[m + i]} + i * {t.size}" for i, t in enumerate(op.body.out_types[m:])]
        arguments = [*given[:n], *[a for a, _, _ in carries], *xs, *[b for _, b, _ in carries], *ys]
        body = [f"{called}({', '.join(arguments)});"]
        body += [f"memcpy({a}, {b}, {size});" for a, b, size in carries]
        start, stop = (op.length - 1, -1) if op.reverse else (0, op.length)
        step = "--i" if op.reverse else "++i"
        made = " && ".join(b for _, b, _ in carries) or "1"
        return [
            "{",
            *[f"    {line}" for line in lines],
            f"    if ({made})",
            f"        for (int64_t i = {start}; i != {stop}; {step}) {{",
            *[f"            {line}" for line in body],
            "        }",
            *[f"    free({b});" for _, b, _ in carries],
            "}",
        ]


def c_module(recorded: Recorded) -> dict[str, str]:
    """The C file, the header and the loader of a recorded function."""
    writer = CWriter()
    graph, name = recorded.graph, recorded.name
    main = writer.function(graph)
    names = [*recorded.arguments, *recorded.constants]
    inputs = [f"const {c_type(v.type)} *{n}" for n, v in zip(names, graph.inputs)]
    outputs = [f"{c_type(t)} *result{i}" for i, t in enumerate(graph.out_types)]
    prototype = f"int {name}({', '.join(inputs + outputs)})"
    passed = ", ".join([*names, *[f"result{i}" for i in range(len(outputs))]])
    kernels = [text.replace("KERNEL", k, 1) for text, k in writer.kernels.items()]
    scalars = c_functions(writer.definitions.modules())
    entry = f"{prototype} {{\n    status = 0;\n    {main}({passed});\n    return status;\n}}"
    source = "\n\n".join(
        [f'/* {name}, exported by Lucid. */\n#include "{name}.h"\n', PRELUDE, scalars, *kernels,
         *writer.functions, entry]
    )  # fmt: skip
    shapes = [f"{n}: {v.type}" for n, v in zip(names, graph.inputs)]
    shapes += [f"result{i}: {t}" for i, t in enumerate(graph.out_types)]
    header = HEADER.format(
        name=name, upper=name.upper(), prototype=prototype, shapes="\n   ".join(shapes)
    )
    return {
        f"{name}.c": source + "\n",
        f"{name}.h": header,
        f"{name}.py": loader(recorded),
    }


HEADER = """\
/* {name}, exported by Lucid: dense arrays in row-major order.

   {shapes}

   Returns 0, 1 if an index is out of range, 2 if there is no memory. */
#ifndef {upper}_H
#define {upper}_H

#include <stdint.h>

{prototype};

#endif
"""

LOADER = '''\
"""{name}, exported by Lucid as C: built by `build()`, called through ctypes; needs NumPy."""

import ctypes
import os
import subprocess

import numpy as np

FOLDER = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.join(FOLDER, "lib{name}.so")
FLAGS = ["-std=c99", "-O3", "-march=native", "-ffp-contract=off", "-fPIC", "-shared"]
INPUTS = {inputs}
OUTPUTS = {outputs}


def build(compiler=os.environ.get("CC", "cc"), flags=FLAGS):
    """Compile the C file to a shared library."""
    draft = f"{{LIBRARY}}.{{os.getpid()}}.tmp"
    source = os.path.join(FOLDER, "{name}.c")
    subprocess.run([compiler, *flags, "-o", draft, source, "-lm"], check=True)
    os.replace(draft, LIBRARY)


if not os.path.exists(LIBRARY):
    build()
_function = ctypes.CDLL(LIBRARY).{name}
_function.restype = ctypes.c_int
{constants}

def {name}({arguments}):
    given = []
    for (name, dtype, shape), x in zip(INPUTS, [{passed}]):
        x = np.ascontiguousarray(x, dtype).reshape(np.shape(x))
        if x.shape != shape:
            raise ValueError(f"{{name}} has shape {{x.shape}}; it was exported for {{shape}}")
        given.append(x)
    results = [np.empty(shape, dtype) for dtype, shape in OUTPUTS]
    status = _function(*[ctypes.c_void_p(x.ctypes.data) for x in (*given, *results)])
    if status:
        raise IndexError("an index is out of range") if status == 1 else MemoryError()
    return results[0] if len(results) == 1 else tuple(results)
'''


def loader(recorded: Recorded) -> str:
    names = [*recorded.arguments, *recorded.constants]
    inputs = [(n, v.type.dtype.name, v.type.shape) for n, v in zip(names, recorded.graph.inputs)]
    outputs = [(t.dtype.name, t.shape) for t in recorded.graph.out_types]
    path = f'os.path.join(FOLDER, "{recorded.name}.npz")'
    load = f"_constants = dict(np.load({path}, allow_pickle=False))\n"
    constants = load if recorded.constants else ""
    passed = [*recorded.arguments, *[f'_constants["{n}"]' for n in recorded.constants]]
    return LOADER.format(
        name=recorded.name,
        inputs=inputs,
        outputs=outputs,
        constants=constants,
        arguments=", ".join(recorded.arguments),
        passed=", ".join(passed),
    )
