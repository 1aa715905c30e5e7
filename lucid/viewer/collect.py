"""collect: programs -> plain data for the page: equations, stages, kernels, memory and times.

An equation is a row; stages that leave an equation unchanged share its row, so a stage is a list of
row numbers, and two stages are compared as lists. `from` of a row lists the numbers of the traced
equations that it comes from, which link all panes.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Sequence
from typing import Any

from lucid.compiler.backends.selection import using
from lucid.compiler.passes.pipeline import stages
from lucid.ir.graph import Atom, Equation, Graph, Var
from lucid.ir.text import op_text, readable_name
from lucid.ir.types import SHORT_NAMES
from lucid.viewer.measure import compiled
from lucid.viewer.subjects import Origin, Program

WHOLE_FILE = 1500  # lines; of a longer file only the part around the lines that are used is shown
AROUND = 30
MAX_PARAMETER = 160  # characters of the parameters of an operation


class Files:
    """The source files of the programs, and the lines of them that are used."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}
        self.used: list[set[int]] = []

    def place(self, source: Any) -> tuple[int, int]:
        """Return the number of a source's file and its line, (-1, 0) if unknown."""
        name, line = getattr(source, "file", ""), getattr(source, "line", 0)
        if not name or not line:
            return -1, 0
        number = self.number.setdefault(name, len(self.number))
        if number == len(self.used):
            self.used.append(set())
        self.used[number].add(line)
        return number, line

    def data(self) -> list[dict[str, Any]]:
        return [self._file(name, self.used[number]) for name, number in self.number.items()]

    def _file(self, name: str, used: set[int]) -> dict[str, Any]:
        lines = [line.rstrip("\n") for line in linecache.getlines(name)]
        first, last = 1, len(lines)
        if len(lines) > WHOLE_FILE:
            first, last = max(1, min(used) - AROUND), min(len(lines), max(used) + AROUND)
            last = min(last, first + WHOLE_FILE)
        return {"name": os.path.basename(name), "first": first, "lines": lines[first - 1 : last]}


class Scopes:
    """The scopes of a program as a tree: rows of (label, kind, number of the outer scope)."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, int]] = []
        self.number: dict[Any, int] = {}

    def of(self, scope: Any) -> int:
        """Return the number of a scope, -1 for none."""
        if scope is None:
            return -1
        if scope.outer is None and scope.owner is None and scope.path:  # of a parsed text
            number, parts = -1, scope.path.replace("/", ".").split(".")
            for part in parts[:-1]:
                number = self._add((number, part, ""), part, "", number)
            return self._add((number, parts[-1], scope.kind), parts[-1], scope.kind, number)
        outer = self.of(scope.outer)
        label = scope.path or scope.kind
        above = scope.outer.path if scope.outer is not None else ""
        label = label.removeprefix(above).lstrip("./") or scope.kind
        return self._add((outer, label, scope.kind), label, scope.kind, outer)

    def _add(self, key: Any, label: str, kind: str, outer: int) -> int:
        if key not in self.number:
            self.number[key] = len(self.rows)
            self.rows.append((label, "" if kind == label else kind, outer))
        return self.number[key]


class Table:
    """The rows of all stages of a program."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.scopes = Scopes()
        self.rows: list[dict[str, Any]] = []
        self.number: dict[Any, int] = {}
        self.names: dict[Var, str] = {}
        self.results = 0  # how many of them are numbered
        self.labels: dict[Graph, str] = {}
        self.bodies: dict[str, dict[str, Any]] = {}
        self.taken: set[str] = set()
        self.maker: dict[Var, dict[str, Any]] = {}
        self.forward: dict[int, int] = {}  # traced equation -> the one it is the derivative of

    def name_inputs(self, graph: Graph) -> list[str]:
        found = []
        for i, var in enumerate(graph.inputs):
            name = stem = readable_name(var.name) or f"x{i}"
            k = 1
            while name in self.taken:
                name, k = f"{stem}_{k}", k + 1
            self.taken.add(name)
            self.names[var] = name
            found.append(name)
        return found

    def name(self, var: Var) -> str:
        if var not in self.names:
            self.names[var] = f"%{self.results}"
            self.results += 1
        return self.names[var]

    def atom(self, x: Atom, dtype: Any = None) -> str:
        if isinstance(x, Var):
            return self.name(x)
        text = repr(x.value).replace(" ", "")
        implied = dtype is not None and x.dtype == dtype  # NumPy takes None for float64
        return text if implied else f"{text}:{SHORT_NAMES[x.dtype]}"

    def row(self, eqn: Equation) -> int:
        """Return the number of an equation's row."""
        inputs = tuple([x if isinstance(x, Var) else x.key for x in eqn.inputs])
        key = (eqn.op, inputs, eqn.outputs)
        if key in self.number:
            return self.number[key]
        dtype = next((x.type.dtype for x in eqn.inputs if isinstance(x, Var)), None)
        text = op_text(eqn.op, self.labels)[len(eqn.op.name) :]
        text = text if len(text) <= MAX_PARAMETER else f"{text[:MAX_PARAMETER]}...]"
        origin = eqn.source if isinstance(eqn.source, Origin) else None
        file, line = self.files.place(None if origin is None else origin.source)
        row = {
            "in": [self.atom(x, dtype) for x in eqn.inputs],
            "out": [[self.name(v), str(v.type)] for v in eqn.outputs],
            "op": eqn.op.name,
            "kind": theme_of(eqn.op),
            "with": text,
            "at": [file, line],
            "scope": self.scopes.of(None if origin is None else origin.scope),
            "from": self.makers(eqn) if origin is None else [origin.number],
        }
        if origin is not None and origin.forward >= 0:
            self.forward[origin.number] = origin.forward
        bodies = [self.body(g) for g in graphs_of(eqn.op)]
        if bodies:
            row["bodies"] = bodies
        self.number[key] = len(self.rows)
        self.rows.append(row)
        for var in eqn.outputs:
            self.maker[var] = row
        return self.number[key]

    def makers(self, eqn: Equation) -> list[int]:
        """Return where the operand of an equation without a source, a copy, comes from."""
        return next((self.maker[x]["from"] for x in eqn.inputs if x in self.maker), [])  # type: ignore[index]

    def body(self, graph: Graph) -> str:
        """Return the label of a Graph that an operation holds, adding it if it is new."""
        label = self.labels.setdefault(graph, f"@{len(self.labels)}")
        if label not in self.bodies:
            self.bodies[label] = {}
            names = self.name_inputs(graph)
            self.bodies[label] = self.section(graph, names)
        return label

    def section(self, graph: Graph, names: Sequence[str]) -> dict[str, Any]:
        rows = [self.row(eqn) for eqn in graph.equations]
        return {
            "inputs": [[name, str(x.type)] for name, x in zip(names, graph.inputs)],
            "rows": rows,
            "returns": [self.atom(x) for x in graph.outputs],
        }


THEMES = ("elementwise", "linalg", "reduce", "shape", "index", "nn", "random", "special",
          "higher_order")  # fmt: skip


def theme_of(op: Any) -> str:
    """Return the folder of an operation, by which the page colors it."""
    parts = type(op).__module__.split(".")
    return parts[2] if parts[:2] == ["lucid", "ops"] and parts[2] in THEMES else "other"


def graphs_of(op: Any) -> list[Graph]:
    """Return the Graphs among the parameters of an operation."""
    found: list[Graph] = []

    def add(value: Any) -> None:
        if isinstance(value, Graph):
            found.append(value)
        elif isinstance(value, tuple):
            for x in value:
                add(x)

    for value in op.params().values():
        add(value)
    return found


def program_data(program: Program, files: Files) -> dict[str, Any]:
    """Return the data that the page shows about one program."""
    table = Table(files)
    names = table.name_inputs(program.graph)
    graphs = stages(program.graph)
    shown: list[dict[str, Any]] = []
    for stage, graph in graphs.items():
        shown.append({"name": stage, **table.section(graph, names)})
    with using(program.backend):
        code = compiled(graphs["copies_inserted"], program, table)
    given = program.given if program.given >= 0 else len(names)
    return {
        "title": program.title,
        "note": program.note,
        "given": given,
        "stages": shown,
        "bodies": table.bodies,
        "rows": table.rows,
        "scopes": table.scopes.rows,
        "forward": table.forward,
        **code,
    }
