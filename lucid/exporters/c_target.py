"""The C target: a C99 file with the kernels of a Graph, a header, and a ctypes loader."""

from __future__ import annotations

from typing import Any

from lucid.compiler.backends.numba.compile import operations
from lucid.compiler.backends.numba.functions import Definitions
from lucid.compiler.plan.work import NestWork
from lucid.compiler.resolve import resolve
from lucid.errors import ExportError
from lucid.exporters.c_kernel import C_TYPES, KernelWriter, literal
from lucid.exporters.c_ops import Operations, c_type, nbytes
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
#define PER_THREAD __thread
#else
#define PER_THREAD /* calls of this function must not overlap */
#endif
static PER_THREAD int status;

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
}

static inline void *grow(void *old, size_t size) {
    void *found = status ? NULL : realloc(old, size ? size : 1);
    if (!found) status = OUT_OF_MEMORY;
    return found ? found : old;
}"""


class CWriter(Operations):
    """Writes the functions of Graphs and their kernels."""

    def __init__(self) -> None:
        self.definitions = Definitions()
        self.kernels: dict[str, str] = {}
        self.functions: list[str] = []
        self.extras: dict[str, str] = {}
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
            if kernel.is_empty:
                return
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
                if SHORT_NAMES[var.type.dtype] not in C_TYPES:
                    raise no_text(step, f": its result is {var.type}")
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
        layout.scratches = {}
        try:
            works = lowering.lower(layout, eqn)
        except Exception:  # a lowering that asks for more than this layout has
            works = [None]
        if not all(isinstance(work, NestWork) for work in works):
            raise no_text(eqn)
        for i, work in enumerate(works):
            run(work_kernel(layout, work, eqn, {} if i else layout.scratches))
        return []


def no_text(eqn: Equation, why: str = "") -> ExportError:
    where = f" at {eqn.source}" if eqn.source else ""
    return ExportError(f"export: {eqn.op.name}{where} has no C text{why}")


def c_module(recorded: Recorded) -> dict[str, str]:
    """The C file, the header and the loader of a recorded function."""
    writer = CWriter()
    graph, name = recorded.graph, recorded.name
    main = writer.function(graph)
    names = [*recorded.arguments, *recorded.constants]
    inputs = [f"const {c_type(v.type)} *{n}" for n, v in zip(names, graph.inputs)]
    outputs = [f"{c_type(t)} *result{i}" for i, t in enumerate(graph.out_types)]
    size = ["int64_t batch_size"] * (recorded.batch is not None)
    prototype = f"int {name}({', '.join(size + inputs + outputs)})"
    passed = ", ".join([*names, *[f"result{i}" for i in range(len(outputs))]])
    kernels = [text.replace("KERNEL", k, 1) for text, k in writer.kernels.items()]
    scalars = c_functions(writer.definitions.modules())
    begin = (
        "status = 0;" if recorded.batch is None else "status = 0;\n    current_batch = batch_size;"
    )
    entry = f"{prototype} {{\n    {begin}\n    {main}({passed});\n    return status;\n}}"
    source = "\n\n".join(
        [f'/* {name}, exported by Lucid. */\n#include "{name}.h"\n', PRELUDE,
         *["static PER_THREAD int64_t current_batch;"] * (recorded.batch is not None),
         *writer.extras.values(),
         scalars, *kernels, *writer.functions, entry]
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


def _types({batch}):
    """The arguments and the results: names, dtypes, shapes."""
    return (
        {inputs},
        {outputs},
    )


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
    {read}inputs, outputs = _types({batch})
    given = []
    for (name, dtype, shape), x in zip(inputs, [{passed}]):
        x = np.ascontiguousarray(x, dtype).reshape(np.shape(x))
        if x.shape != shape:
            raise ValueError(f"{{name}} has shape {{x.shape}}; it was exported for {{shape}}")
        given.append(x)
    results = [np.empty(shape, dtype) for dtype, shape in outputs]
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*given, *results)]
    status = _function({size}*pointers)
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
    read = ""
    if recorded.batch is not None:
        argument, axis = recorded.batch
        read = f"batch_size = np.shape({argument})[{axis}]\n    "
    return LOADER.format(
        batch="batch_size" if read else "",
        read=read,
        size="ctypes.c_int64(batch_size), " if read else "",
        name=recorded.name,
        inputs=inputs,
        outputs=outputs,
        constants=constants,
        arguments=", ".join(recorded.arguments),
        passed=", ".join(passed),
    )
