"""The text of a Graph: a contract. It prints, and parses back to a Graph with the same key.

    graph loss(w: f32[64,10], x: f32[32,64]):
        %0: f32[32,10] = matmul x w              # train.py:12
        %1: f32[32,10] = mul %0 2.0              # train.py:13
        %2: f32[]      = sum[axes=(0,1)] %1      # train.py:14
        return %2

The scope follows the source line: `# train.py:12  blocks.0.norm1: LayerNorm`. Inputs have the
names of arguments and parameters: `x`, `params['w']`, `blocks.0.norm1.weight`.

A literal has the dtype of the equation's first Var unless it says otherwise: `1.5:f64`.
A Graph that is a parameter of an operation is printed below the one that uses it, named like @0.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from lucid.errors import ParseError
from lucid.ir.graph import Atom, Equation, Graph, Literal, Var
from lucid.ir.primitive import find_primitive
from lucid.ir.types import DTYPES, SHORT_NAMES, Type
from lucid.public.declare import public
from lucid.support.source import ParsedSource, comment

_NUMBERS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


@public("ir")
def to_text(graph: Graph) -> str:
    """Return the text of a Graph, `str(graph)`."""
    labels: dict[Graph, str] = {}
    sections = [_section(graph, graph.name, labels)]
    written = 0
    while written < len(labels):
        for inner, label in list(labels.items())[written:]:
            sections.append(_section(inner, label, labels))
            written += 1
    return "\n".join(sections)


def _section(graph: Graph, name: str, labels: dict[Graph, str]) -> str:
    names = _names(graph)

    def atom(x: Atom, context: Any = None) -> str:
        if isinstance(x, Var):
            return names[x]
        value = repr(x.value).replace(" ", "")
        implied = context is not None and x.dtype == context  # NumPy takes None for float64
        return value if implied else f"{value}:{SHORT_NAMES[x.dtype]}"

    rows = []
    for eqn in graph.equations:
        left = ", ".join(f"{names[v]}: {v.type}" for v in eqn.outputs)
        context = _context(eqn.inputs)
        right = " ".join([op_text(eqn.op, labels), *[atom(x, context) for x in eqn.inputs]])
        rows.append((left, right, "" if eqn.source is None else f"# {comment(eqn.source)}"))
    wide_left = max((len(left) for left, _, _ in rows), default=0)
    wide_right = max((len(right) for _, right, _ in rows), default=0)
    head = ", ".join(f"{names[v]}: {v.type}" for v in graph.inputs)
    lines = [f"graph {name}({head}):"]
    for left, right, note in rows:
        line = f"    {left.ljust(wide_left)} = {right.ljust(wide_right) if note else right}"
        lines.append(f"{line}  {note}".rstrip())
    lines.append("    return " + ", ".join(atom(x) for x in graph.outputs))
    return "\n".join(lines).rstrip()


_NAME = r"[^\W\d][\w.\[\]'/+-]*"  # such as x, params['w'], blocks.0.norm1.weight


def readable_name(name: str) -> str:
    """Return a name of an argument or a parameter as the text of a Graph can have it, or ""."""
    name = re.sub(r"[^\w.\[\]'/+-]", "_", name)
    return name if re.fullmatch(_NAME, name) and name not in _NUMBERS else ""


def _names(graph: Graph) -> dict[Var, str]:
    """Name inputs by their own names, made unique, and results by number."""
    names: dict[Var, str] = {}
    taken: set[str] = set()
    for i, var in enumerate(graph.inputs):
        name = stem = readable_name(var.name) or f"x{i}"
        k = 1
        while name in taken:
            name, k = f"{stem}_{k}", k + 1
        taken.add(name)
        names[var] = name
    number = 0
    for eqn in graph.equations:
        for var in eqn.outputs:
            names[var] = f"%{number}"
            number += 1
    return names


def _context(inputs: tuple[Atom, ...]) -> Any:
    return next((x.type.dtype for x in inputs if isinstance(x, Var)), None)


def op_text(op: Any, labels: dict[Graph, str]) -> str:
    inside = ", ".join(f"{k}={_param(v, labels)}" for k, v in op.params().items())
    return f"{op.name}[{inside}]" if inside else op.name


def _param(value: Any, labels: dict[Graph, str]) -> str:
    if isinstance(value, Graph):
        return labels.setdefault(value, f"@{len(labels)}")
    if isinstance(value, tuple):
        inside = ",".join(_param(v, labels) for v in value)
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return repr(value)


_HEAD = re.compile(r"graph\s+([^\s(]+)\((.*)\):\s*$")
_NAMED_TYPE = re.compile(rf"\s*(%\w+|{_NAME})\s*:\s*(\w+\[[\d,]*\])\s*(?:,|$)")
_TOKEN = re.compile(r"\S+")


@public("ir")
def parse(text: str) -> Graph:
    """Parse the text of a Graph.

    >>> import lucid
    >>> graph = lucid.ir.parse('''graph f(x: f32[3]):
    ...     %0: f32[3] = sin x
    ...     return %0''')
    >>> lucid.ir.parse(str(graph)).key == graph.key
    True
    """
    if not isinstance(text, str):
        raise ParseError(f"a {type(text).__name__} is not the text of a Graph")
    sections: list[list[str]] = []
    for line in text.strip().splitlines():
        if line.strip():
            if line.strip().startswith("graph ") or not sections:
                sections.append([])
            sections[-1].append(line)
    if not sections:
        raise ParseError("a Graph begins with `graph name(x: f32[3], ...):`")
    return _parse_section(sections[0], _Sections(sections[1:]))


class _Sections(dict[str, Graph]):
    """The nested Graphs by name, each parsed on first use."""

    def __init__(self, sections: list[list[str]]) -> None:
        heads = [_HEAD.match(lines[0].strip()) for lines in sections]
        self.unparsed = {h.group(1): lines for h, lines in zip(heads, sections) if h is not None}

    def __missing__(self, name: str) -> Graph:
        self[name] = graph = _parse_section(self.unparsed.pop(name), self)
        return graph


def _parse_section(lines: list[str], graphs: dict[str, Graph]) -> Graph:
    head = _HEAD.match(lines[0].strip()) if lines else None
    if head is None:
        raise ParseError("a Graph begins with `graph name(x: f32[3], ...):`")
    scope: dict[str, Var] = {}
    inputs = _declare(head.group(2), scope, 1)
    equations: list[Equation] = []
    for number, line in enumerate(lines[1:-1], 2):
        equations.append(_equation(line, scope, graphs, number))
    last = lines[-1].strip()
    if not last.startswith("return"):
        raise ParseError(f"line {len(lines)}: a Graph ends with `return ...`")
    results = [part.strip() for part in last[len("return") :].split(",") if part.strip()]
    outputs = tuple(_atom(part, scope, None, len(lines)) for part in results)
    return Graph(head.group(1), inputs, tuple(equations), outputs)


def _declare(text: str, scope: dict[str, Var], number: int) -> tuple[Var, ...]:
    out, position = [], 0
    while position < len(text.rstrip()):
        found = _NAMED_TYPE.match(text, position)
        if found is None:
            raise ParseError(f"line {number}: expected `name: f32[3]` at {text[position:]!r}")
        name, type_text = found.groups()
        if name in scope:
            raise ParseError(f"line {number}: {name} is defined twice")
        scope[name] = var = Var(Type.parse(type_text), "" if name.startswith("%") else name)
        out.append(var)
        position = found.end()
    return tuple(out)


def _equation(line: str, scope: dict[str, Var], graphs: dict[str, Graph], number: int) -> Equation:
    code, _, note = line.partition("# ")
    left, equals, right = code.partition(" = ")
    if not equals:
        raise ParseError(
            f"line {number}: expected `%0: f32[3] = op inputs`, found {line.strip()!r}"
        )
    name, params, rest = _split_op(right.strip(), graphs, number)
    cls = find_primitive(name)
    if cls is None:
        raise ParseError(f"line {number}: there is no operation named {name!r}")
    try:
        op = cls(**params)
    except TypeError as error:
        raise ParseError(f"line {number}: {name}: {error}") from None
    words = _TOKEN.findall(rest)
    vars_used = [scope[w] for w in words if w in scope]
    context = vars_used[0].type.dtype if vars_used else None
    inputs = tuple(_atom(w, scope, context, number) for w in words)
    outputs = _declare(left.strip(), scope, number)
    source = ParsedSource(note.strip()) if note.strip() else None
    return Equation(op, inputs, outputs, source)  # type: ignore[arg-type]


def _split_op(text: str, graphs: dict[str, Graph], number: int) -> tuple[str, dict[str, Any], str]:
    """Split `sum[axes=(0,1)] x` into its name, its parameters and the rest."""
    name = re.match(r"\w+", text)
    if name is None:
        raise ParseError(f"line {number}: expected an operation at {text!r}")
    rest = text[name.end() :]
    if not rest.startswith("["):
        return name.group(), {}, rest
    end = _closing_bracket(rest, number)
    try:
        code = re.sub(r"@(\d+)", r"'@\1'", rest[1:end])
        call = ast.parse(f"f({code})", mode="eval").body
        params = {k.arg: _resolve(ast.literal_eval(k.value), graphs) for k in call.keywords}  # type: ignore[attr-defined]
    except (SyntaxError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ParseError(f"line {number}: parameters {rest[: end + 1]} do not parse") from None
    return name.group(), params, rest[end + 1 :]


def _resolve(value: Any, graphs: dict[str, Graph]) -> Any:
    """Replace names of Graphs in a parameter by the Graphs."""
    if isinstance(value, tuple):
        return tuple(_resolve(v, graphs) for v in value)
    return graphs[value] if isinstance(value, str) and value.startswith("@") else value


def _closing_bracket(text: str, number: int) -> int:
    depth, quote = 0, ""
    for i, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "[({":
            depth += 1
        elif char in "])}":
            depth -= 1
            if depth == 0:
                return i
    raise ParseError(f"line {number}: a bracket is not closed in {text!r}")


def _atom(word: str, scope: dict[str, Var], context: Any, number: int) -> Atom:
    if word in scope:
        return scope[word]
    text, colon, dtype_name = word.rpartition(":")
    if not colon:
        text, dtype = word, context
    else:
        dtype = DTYPES.get(dtype_name)
    if dtype is None:
        raise ParseError(f"line {number}: {word!r} is neither a name defined above nor a literal")
    try:
        value = _NUMBERS[text] if text in _NUMBERS else _number(text)
        if not isinstance(value, (bool, int, float, complex)):
            raise ValueError
    except (SyntaxError, ValueError, NameError, TypeError, RecursionError, MemoryError):
        raise ParseError(
            f"line {number}: {word!r} is neither a name defined above nor a literal"
        ) from None
    return Literal(value, dtype)


def _number(text: str) -> Any:
    if "j" in text:
        return complex(text)
    return ast.literal_eval(text)
