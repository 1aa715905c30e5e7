"""Operations of the C target that are not kernels: products, convolutions, sorting, control flow.

Each takes pointers to its operands and writes to the pointers of its results.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.compiler.plan.arrays import dense
from lucid.errors import ExportError
from lucid.exporters.c_kernel import C_TYPES, literal
from lucid.exporters.fused import Layout, View, operand_view
from lucid.ir.graph import Literal
from lucid.ir.types import SHORT_NAMES

SORT = """\
static void sort_KIND(const KIND *x, int64_t step, int64_t n, int64_t *order, int64_t *other,
                      int descending) { /* a stable merge sort of indices; nan is the largest */
    for (int64_t i = 0; i < n; ++i) order[i] = i;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t low = 0; low < n; low += 2 * width) {
            const int64_t middle = low + width < n ? low + width : n;
            const int64_t high = middle + width < n ? middle + width : n;
            int64_t i = low, j = middle;
            for (int64_t k = low; k < high; ++k) {
                int second = i >= middle;
                if (i < middle && j < high) {
                    const KIND a = x[order[descending ? i : j] * step];
                    const KIND b = x[order[descending ? j : i] * step];
                    second = a < b || (b != b && a == a);
                }
                other[k] = second ? order[j++] : order[i++];
            }
        }
        memcpy(order, other, (size_t)n * sizeof *order);
    }
}"""


def c_type(type: Any) -> str:
    short = SHORT_NAMES[type.dtype]
    if short not in C_TYPES:
        raise ExportError(f"export: {type} has no type in C")
    return C_TYPES[short]


def nbytes(type: Any) -> int:
    return type.size * type.dtype.itemsize


def indented(lines: list[str], depth: int = 1) -> list[str]:
    return [f"{'    ' * depth}{line}" for line in lines]


class Operations:
    """The C statements of equations; a part of CWriter."""

    extras: dict[str, str]
    if TYPE_CHECKING:

        def function(self, graph: Any) -> str: ...

    def operand(self, layout: Layout, x: Any, pointer: Any) -> tuple[str, View]:
        part = operand_view(layout, x)
        if isinstance(part, Literal):
            raise ExportError("export: a product with a number has no C text")
        return pointer(part), part

    def dense_operands(self, eqn: Any, layout: Layout, pointer: Any) -> tuple[list[str], list[str]]:
        """Statements that make operands, and pointers to all of them."""
        lines, given = [], []
        for i, x in enumerate(eqn.inputs):
            part = operand_view(layout, x)
            if isinstance(part, Literal):
                short = SHORT_NAMES[part.dtype]
                lines.append(f"const {C_TYPES[short]} l{i} = {literal(part.value, short)};")
                given.append(f"&l{i}")
            elif tuple(part.strides) != dense(part.shape) and math.prod(part.shape) > 1:
                raise ExportError(f"export: an operand of {eqn.op.name} is not dense")
            else:
                given.append(pointer(part))
        return lines, given

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
            *indented(at),
            f"    memset(c, 0, {m * n} * sizeof *c);",
            f"    for (int64_t i = 0; i < {m}; ++i)",
            f"        for (int64_t p = 0; p < {k}; ++p) {{",
            f"            const {kind} u = a[i * {rows[1]} + p * {x_step}];",
            f"            for (int64_t j = 0; j < {n}; ++j)",
            f"                c[i * {n} + j] += u * b[p * {y_step} + j * {columns[1]}];",
            "        }",
            "}",
        ]

    # Convolutions: one trilinear form, and which of the three arrays is the result

    def op_convolution(self, eqn: Any, layout: Layout, names: Any, pointer: Any) -> list[str]:
        return self.convolution(eqn, layout, names, pointer, "xwy")

    def op_convolution_transpose(
        self, eqn: Any, layout: Layout, names: Any, pointer: Any
    ) -> list[str]:
        return self.convolution(eqn, layout, names, pointer, "ywx")

    def op_convolution_weight(
        self, eqn: Any, layout: Layout, names: Any, pointer: Any
    ) -> list[str]:
        return self.convolution(eqn, layout, names, pointer, "xyw")

    def convolution(
        self, eqn: Any, layout: Layout, names: Any, pointer: Any, order: str
    ) -> list[str]:
        """Loops of `T(x, w, y)`; `order` names the operands and, last, the result."""
        op, out = eqn.op, eqn.outputs[0]
        found = [self.operand(layout, z, pointer) for z in eqn.inputs]
        own = View(out, 0, out.type.shape, dense(out.type.shape), SHORT_NAMES[out.type.dtype])
        parts = dict(zip(order, [*found, (names[out], own)]))
        (x, xv), (w, wv), (y, yv) = (parts[name] for name in "xwy")
        kind, result = c_type(out.type), order[-1]
        g, outs, channels = op.groups, wv.shape[0] // op.groups, wv.shape[1]
        lines = ["{"]
        for name, pointed in zip("xwy", (x, w, y)):
            constant = "" if name == result else "const "
            lines.append(f"    {constant}{kind} *{name} = {pointed};")
        lines.append(f"    memset({result}, 0, {nbytes(out.type)});")
        loops = [("n", xv.shape[0]), ("g", g), ("o", outs), ("c", channels)]
        loops += [(f"k{i}", n) for i, n in enumerate(wv.shape[2:])]
        for index, n in loops:
            lines.append(f"    for (int64_t {index} = 0; {index} < {n}; ++{index})")
        lines.append("    {")
        at = {
            "x": [f"n * {xv.strides[0]}", f"(g * {channels} + c) * {xv.strides[1]}"],
            "w": [f"(g * {outs} + o) * {wv.strides[0]}", f"c * {wv.strides[1]}"],
            "y": [f"n * {yv.strides[0]}", f"(g * {outs} + o) * {yv.strides[1]}"],
        }
        inner = []
        for i, (s, p, d) in enumerate(zip(op.stride, op.padding, op.dilation)):
            size, count = xv.shape[2 + i], yv.shape[2 + i]
            lines.append(f"        const int64_t t{i} = k{i} * {d} - {p};")
            low = f"(t{i} < 0 ? ({s - 1} - t{i}) / {s} : 0)"
            high = f"({size - 1} - t{i} < 0 ? 0 : ({size - 1} - t{i}) / {s} + 1)"
            lines.append(f"        const int64_t first{i} = {low}, end{i} = {high};")
            lines.append(f"        const int64_t last{i} = end{i} < {count} ? end{i} : {count};")
            inner.append(f"for (int64_t q{i} = first{i}; q{i} < last{i}; ++q{i})")
            at["x"].append(f"(q{i} * {s} + t{i}) * {xv.strides[2 + i]}")
            at["w"].append(f"k{i} * {wv.strides[2 + i]}")
            at["y"].append(f"q{i} * {yv.strides[2 + i]}")
        a, b, c = (f"{name}[{' + '.join(at[name])}]" for name in order)
        return [*lines, *indented(inner, 2), f"            {c} += {a} * {b};", "    }", "}"]

    def op_max_pool(self, eqn: Any, layout: Layout, names: Any, pointer: Any) -> list[str]:
        """The largest element of every window, and its index in the pooled axes."""
        op = eqn.op
        x, view = self.operand(layout, eqn.inputs[0], pointer)
        kind, best, index = c_type(eqn.inputs[0].type), *[names[y] for y in eqn.outputs]
        outer = len(view.shape) - len(op.size)
        shape = eqn.outputs[0].type.shape
        target = " + ".join(f"q{i} * {s}" for i, s in enumerate(dense(shape))) or "0"
        source = [f"q{i} * {view.strides[i]}" for i in range(outer)]
        flat, inside, find = "0", [], []
        for i, (s, p, d) in enumerate(zip(op.stride, op.padding, op.dilation)):
            n = view.shape[outer + i]
            find.append(f"const int64_t t{i} = q{outer + i} * {s} + k{i} * {d} - {p};")
            inside.append(f"t{i} >= 0 && t{i} < {n}")
            source.append(f"t{i} * {view.strides[outer + i]}")
            flat = f"({flat}) * {n} + t{i}"
        return [
            *[f"for (int64_t q{i} = 0; q{i} < {n}; ++q{i})" for i, n in enumerate(shape)],
            "{",
            f"    {kind} best = 0;",
            "    int64_t at = -1;",
            *indented(
                [f"for (int64_t k{i} = 0; k{i} < {n}; ++k{i})" for i, n in enumerate(op.window)]
            ),
            "    {",
            *indented(find, 2),
            f"        if ({' && '.join(inside) or '1'}) {{",
            f"            const {kind} u = {x}[{' + '.join(source) or '0'}];",
            f"            if (at < 0 || u > best || u != u) {{ best = u; at = {flat}; }}",
            "        }",
            "    }",
            f"    {best}[{target}] = best;",
            f"    {index}[{target}] = at < 0 ? 0 : at;",
            "}",
        ]

    # Sorting

    def op_argsort(self, eqn: Any, layout: Layout, names: Any, pointer: Any) -> list[str]:
        return self.sorting(eqn, layout, pointer, "", names[eqn.outputs[0]])

    def op_sort(self, eqn: Any, layout: Layout, names: Any, pointer: Any) -> list[str]:
        return self.sorting(eqn, layout, pointer, *[names[y] for y in eqn.outputs])

    def sorting(
        self, eqn: Any, layout: Layout, pointer: Any, values: str, indices: str
    ) -> list[str]:
        x, view = self.operand(layout, eqn.inputs[0], pointer)
        kind, axis = c_type(eqn.inputs[0].type), eqn.op.axis
        self.extras[f"sort {kind}"] = SORT.replace("KIND", kind)
        n, steps = view.shape[axis], dense(view.shape)
        others = [i for i in range(len(view.shape)) if i != axis]
        source = " + ".join(f"i{i} * {view.strides[i]}" for i in others) or "0"
        target = " + ".join(f"i{i} * {steps[i]}" for i in others) or "0"
        call = f"sort_{kind}(x, {view.strides[axis]}, {n}, order, order + {n}, "
        stores = [f"{indices}[{target} + i * {steps[axis]}] = order[i];"]
        if values:
            read = f"x[order[i] * {view.strides[axis]}]"
            stores.append(f"{values}[{target} + i * {steps[axis]}] = {read};")
        return [
            "{",
            f"    int64_t *order = allocate({16 * n});",
            "    if (order)",
            *indented([f"for (int64_t i{i} = 0; i{i} < {view.shape[i]}; ++i{i})" for i in others]),
            "    {",
            f"        const {kind} *x = {x} + {source};",
            f"        {call}{int(eqn.op.descending)});",
            f"        for (int64_t i = 0; i < {n}; ++i) {{",
            *indented(stores, 3),
            "        }",
            "    }",
            "    free(order);",
            "}",
        ]

    # Control flow

    def op_switch(self, eqn: Any, layout: Layout, names: Any, pointer: Any) -> list[str]:
        lines, given = self.dense_operands(eqn, layout, pointer)
        last = len(eqn.op.branches) - 1
        arguments = ", ".join([*given[1:], *[names[y] for y in eqn.outputs]])
        labels = [*[f"case {i}" for i in range(last)], "default"]
        cases = [
            f"{label}: {self.function(branch)}({arguments}); break;"
            for label, branch in zip(labels, eqn.op.branches)
        ]
        chosen = f"*{given[0]} < 0 ? 0 : (int64_t)*{given[0]}"
        if SHORT_NAMES[eqn.inputs[0].type.dtype][0] in "bu":
            chosen = f"*{given[0]} > {last} ? {last} : (int64_t)*{given[0]}"
        return ["{", *indented(lines), f"    switch ({chosen}) {{", *indented(cases), "    }", "}"]

    def op_scan(self, eqn: Any, layout: Layout, names: Any, pointer: Any) -> list[str]:
        op = eqn.op
        called = self.function(op.body)
        n, m = op.n_consts, op.n_carry
        lines, given = self.dense_operands(eqn, layout, pointer)
        outs = [names[var] for var in eqn.outputs]
        carries = []
        for i in range(m):
            type = op.body.in_types[n + i]
            size = nbytes(type)
            lines.append(f"memcpy({outs[i]}, {given[n + i]}, {size});")
            lines.append(f"{c_type(type)} *next{i} = allocate({size});")
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
            *indented(lines),
            f"    if ({made})",
            f"        for (int64_t i = {start}; i != {stop}; {step}) {{",
            *indented(body, 3),
            "        }",
            *[f"    free({b});" for _, b, _ in carries],
            "}",
        ]

    def op_while(self, eqn: Any, layout: Layout, names: Any, pointer: Any) -> list[str]:
        """Loops of equally many steps; the stacks of values that they share grow with the steps."""
        op = eqn.op
        lines, values = self.dense_operands(eqn, layout, pointer)
        lines.append("int64_t steps = 0, room = 0;")
        types: list[Any] = [x.type for x in eqn.inputs]
        made: list[str] = []
        stacks: list[tuple[str, Any]] = []
        run: list[str] = []
        for number, (body, reverse, consts, inits, reads) in enumerate(op.loops):
            called, carries = self.function(body), []
            for i, init in enumerate(inits):
                type, size = types[init[0]], nbytes(types[init[0]])
                now, new = f"now{number}_{i}", f"new{number}_{i}"
                lines.append(
                    f"{c_type(type)} *{now} = allocate({size}), *{new} = allocate({size});"
                )
                run.append(f"memcpy({now}, {values[init[0]]}, {size});")
                for other in init[1:]:
                    total = f"{now}[i] += {values[other]}[i];"
                    run.append(f"for (int64_t i = 0; i < {type.size}; ++i) {total}")
                carries.append((now, new, size, type))
                made += [now, new]
            first = len(stacks)
            for type in body.out_types[len(inits) :]:
                name = f"stack{len(stacks)}"
                lines.append(f"{c_type(type)} *{name} = NULL;")
                stacks.append((name, type))
            at = "steps - 1 - i" if reverse else "i"
            read = [f"{stacks[s][0]} + ({at}) * {stacks[s][1].size}" for s in reads]
            rows = [f"{name} + ({at}) * {type.size}" for name, type in stacks[first:]]
            current = [now for now, _, _, _ in carries]
            arguments = [*[values[v] for v in consts], *current, *read]
            arguments += [*[new for _, new, _, _ in carries], *rows]
            step = [f"{called}({', '.join(arguments)});"]
            step += [f"memcpy({now}, {new}, {size});" for now, new, size, _ in carries]
            if number:
                grow = [
                    f"{name} = allocate(steps * {nbytes(type)});" for name, type in stacks[first:]
                ]
                have = " && ".join(name for name, _ in stacks[first:]) or "1"
                head = f"for (int64_t i = 0; i < steps && !status && {have}; ++i) {{"
                run += [*grow, head, *indented(step), "}"]
            else:
                tests = ", ".join([*[values[v] for v in op.tests], *current, "&more"])
                check = [f"{self.function(op.cond)}({tests});", "if (!more || status) break;"]
                grow = [f"{name} = grow({name}, room * {nbytes(type)});" for name, type in stacks]
                if grow:
                    room = ["room = room ? 2 * room : 16;", *grow, "if (status) break;"]
                    check += ["if (i == room) {", *indented(room), "}"]
                body_lines = [*check, *step, "steps = i + 1;"]
                run += [
                    "uint8_t more = 0;",
                    "for (int64_t i = 0;; ++i) {",
                    *indented(body_lines),
                    "}",
                ]
            values = [*values, *current]
            types += [type for _, _, _, type in carries]
        run += [
            f"memcpy({names[y]}, {values[v]}, {nbytes(y.type)});"
            for v, y in zip(op.results, eqn.outputs)
        ]
        have = " && ".join(made) or "1"
        released = [*made, *[name for name, _ in stacks]]
        return [
            "{",
            *indented(lines),
            f"    if ({have}) {{",
            *indented(run, 2),
            "    }",
            *[f"    free({name});" for name in released],
            "}",
        ]
