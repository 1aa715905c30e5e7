"""diff: two Graphs beside each other, as a diff of their texts, and as a page."""

from __future__ import annotations

import difflib
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from lucid.errors import ArgumentError
from lucid.ir.graph import Graph
from lucid.ops.core.arguments import public_function
from lucid.ops.index import lookup
from lucid.public.declare import public

COLORS = {"-": "rgba(220, 60, 60, 0.22)", "+": "rgba(40, 160, 80, 0.22)", " ": "none"}


@dataclass(frozen=True)
class GraphDiff:
    """The lines of two Graphs: equal ones, removed ones (-) and added ones (+)."""

    lines: tuple[str, ...]

    @property
    def same(self) -> bool:
        return all(text.startswith("  ") for text in self.lines)

    def __bool__(self) -> bool:
        return not self.same

    def __repr__(self) -> str:
        return "the Graphs are equal" if self.same else "\n".join(self.lines)

    def rows(self) -> Iterator[tuple[str, str]]:
        """Lines beside each other: of the first Graph, of the second; "" where there is none."""
        removed: list[str] = []
        added: list[str] = []
        for text in (*self.lines, "  "):
            if text[0] != " ":
                (removed if text[0] == "-" else added).append(text)
                continue
            yield from zip_longest(removed, added, fillvalue="")
            removed, added = [], []
            yield text, text

    def _repr_html_(self) -> str:
        def cell(text: str) -> str:
            color = COLORS[text[:1] or " "]
            style = f"width: 50%; white-space: pre-wrap; background: {color}; text-align: left"
            return f'<td style="{style}">{html.escape(text[2:])}</td>'

        body = "".join(f"<tr>{cell(a)}{cell(b)}</tr>" for a, b in self.rows())
        changed = sum(text[0] != " " for text in self.lines)
        title = "the Graphs are equal" if self.same else f"{changed} lines differ"
        style = "font-family: monospace; table-layout: fixed; width: 100%"
        return f'<table style="{style}"><caption>{title}</caption><tbody>{body}</tbody></table>'


@public("ir", name="diff")
def compare(a: Graph, b: Graph) -> GraphDiff:
    """Compare two Graphs: equations are matched by what they compute, not by their numbers.

    `lucid.diff` is the same function for Graphs; `lucid.view` makes a page of the result.

    >>> import lucid
    >>> a = lucid.ir.trace(lambda x: lucid.sin(x) * 2.0)(lucid.ones(3))
    >>> b = lucid.ir.trace(lambda x: lucid.cos(x) * 2.0)(lucid.ones(3))
    >>> lucid.ir.diff(a, b)
      graph lambda(x: f32[3]):
    -     f32[3] = sin x
    +     f32[3] = cos x
          f32[3] = mul %0 2.0
          return %1
    """
    first, second = (texts(graph) for graph in (a, b))
    matcher = difflib.SequenceMatcher(None, [k for k, _ in first], [k for k, _ in second], False)
    out: list[str] = []
    for tag, i, j, m, n in matcher.get_opcodes():
        if tag == "equal":
            out += [f"  {text}" for _, text in first[i:j]]
            continue
        out += [f"- {text}" for _, text in first[i:j]]
        out += [f"+ {text}" for _, text in second[m:n]]
    return GraphDiff(tuple(out))


@public_function()
def diff(
    input: Any,
    n: Any = 1,
    dim: Any = None,
    prepend: Any = None,
    append: Any = None,
    *,
    axis: Any = None,
) -> Any:
    """The n-th differences between neighbors along an axis, with values added at its ends.

    `diff(graph_a, graph_b)` of two Graphs is what differs between them, as `lucid.ir.diff`.

    >>> import lucid
    >>> lucid.diff(lucid.tensor([1, 4, 9]), prepend=lucid.tensor([0]))
    Tensor([1, 3, 5])
    """
    if not isinstance(input, Graph):
        return lookup.diff(input, n, dim, prepend, append, axis=axis)
    if not isinstance(n, Graph):
        raise ArgumentError(f"diff: a Graph is compared with a Graph, not with {type(n).__name__}")
    return compare(input, n)


def texts(graph: Graph) -> list[tuple[str, str]]:
    """The lines of a Graph without source lines: (without numbers of results, to be shown)."""
    out = []
    for text in str(graph.stripped()).splitlines():
        shown = re.sub(r"%\d+: (\S+) +=", r"\1 =", text)
        out.append((re.sub(r"%\d+", "%", shown), shown))
    return out
